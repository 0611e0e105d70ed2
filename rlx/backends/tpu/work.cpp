// Chains of work may be long, so they are walked and released without recursion.
#include "rlx/backends/tpu/work.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "rlx/backends/tpu/device.h"
#include "rlx/exec/fetching.h"

namespace rlx::tpu {

std::string OnDevice::usage() const {
  std::string out;
  for (int i = 0; i < kNumBufferUses; ++i)
    if (const std::size_t n = in_use[static_cast<std::size_t>(i)]; n != 0)
      out +=
          concat_text(out.empty() ? "in use are " : ", ", n, " bytes for ", buffer_use_name(static_cast<BufferUse>(i)));
  return out;
}

OnDevice::Path OnDevice::take_path() const {
  std::lock_guard lock(mutex_);
  return std::exchange(path_, {});
}

void OnDevice::give_path(Path path) const {
  path.clear();
  std::lock_guard lock(mutex_);
  if (path.capacity() > path_.capacity()) path_.swap(path);
}

Work::Work(std::shared_ptr<const OnDevice> place, abi::Point* event, std::array<Before, 2> before)
    : place_(std::move(place)), event_(event), before_(std::move(before)) {}

Work::~Work() {
  place_->client->library().destroy(event_);
  std::vector<std::shared_ptr<Work>> left;
  const auto take = [&left](Work& w) {
    for (Before& b : w.before_)
      if (b.work) left.push_back(std::exchange(b.work, nullptr));
  };
  take(*this);
  while (!left.empty()) {
    const std::shared_ptr<Work> w = std::move(left.back());
    left.pop_back();
    if (w.use_count() == 1) take(*w);
  }
}

std::shared_ptr<Work> Work::unsettled_before() {
  std::lock_guard lock(mutex_);
  for (const Before& b : before_)
    if (b.work && b.work->state_ == State::Pending) return b.work;
  return nullptr;
}

Work::State Work::settle(bool block) {
  if (const State s = state_; s != State::Pending) return s;
  struct Walk {
    const OnDevice& place;
    OnDevice::Path path = place.take_path();
    ~Walk() { place.give_path(std::move(path)); }
  } walk{*place_};
  OnDevice::Path& path = walk.path;
  Work* at = this;
  for (;;) {
    if (std::shared_ptr<Work> earlier = at->unsettled_before()) {
      at = earlier.get();
      path.push_back(std::move(earlier));
      continue;
    }
    if (at->finish(block) == State::Pending) return State::Pending;
    if (path.empty()) return state_;
    path.pop_back();
    at = path.empty() ? this : path.back().get();
  }
}

// All work before it has finished.
Work::State Work::finish(bool block) {
  std::optional<Diagnostic> own;
  if (event_) {
    const Library& library = place_->client->library();
    try {
      if (!block) {
        auto ask = abi::arguments<abi::EventIsReady>();
        ask.event = event_;
        if (abi::Failure* failure = library.attempt(place_->text, ask))
          library.drop(failure);  // the wait reports the failure again
        else if (!ask.is_ready)
          return State::Pending;
      }
      auto await = abi::arguments<abi::EventAwait>();
      await.event = event_;
      library.call(place_->text, await);
    } catch (const Error& e) {
      own = e.diagnostic();
      if (own->code == ErrorCode::DeviceLost) place_->client->lose();
      if (const std::string used = place_->usage(); own->code == ErrorCode::OutOfMemory && !used.empty())
        own->hint = concat_text(used, ": ", own->hint);
    }
  }
  std::lock_guard lock(mutex_);
  if (state_ != State::Pending) return state_;  // another thread finished it
  for (const Before& b : before_)
    if (b.work && !b.order_only && b.work->state_ == State::Failed && !error_) error_ = b.work->error_;
  if (!error_) error_ = std::move(own);
  for (Before& b : before_) b.work.reset();
  state_ = error_ ? State::Failed : State::Done;
  return state_;
}

void Work::wait() {
  if (settle(true) == State::Done) return;
  told_ = true;
  throw Error(*error_);
}

TpuStream::~TpuStream() {
  if (last_ && !last_->ready()) device_->keep(std::move(last_));
}

namespace {
[[noreturn]] void refuse_bytes(const TpuDevice& device, std::string_view what) {
  throw Error(ErrorCode::Unsupported,
              concat_text(device.text(), ": ", what,
                          " addresses bytes of a buffer, but the device transfers whole values only"),
              "use put and get");
}
}  // namespace

void TpuStream::upload(std::span<const std::byte>, const BufferView&) { refuse_bytes(*device_, "an upload"); }
void TpuStream::download(const BufferView&, std::span<std::byte>) { refuse_bytes(*device_, "a download"); }
void TpuStream::copy(const BufferView&, const BufferView&) { refuse_bytes(*device_, "a copy"); }

void TpuStream::begin() {
  device_->require_alive();
  const std::shared_ptr<Work> last = this->last();
  if (!last || !last->ready()) return;
  set_last(nullptr);
  if (last->failed() && !last->told()) last->wait();
}

void TpuStream::add(abi::Point* event) {
  if (!event) return;
  const Library& library = device_->library();
  auto ask = abi::arguments<abi::EventIsReady>();
  auto await = abi::arguments<abi::EventAwait>();
  ask.event = await.event = event;
  // Completed work need not be kept. The event reports a failure again.
  if (abi::Failure* failure = library.attempt(device_->text(), ask); failure) {
    library.drop(failure);
  } else if (ask.is_ready) {
    failure = library.attempt(device_->text(), await);
    if (!failure) return library.destroy(event);
    library.drop(failure);
  }
  try {
    set_last(make_pooled<Work>(device_->place()->works, device_->place(), event,
                               std::array<Work::Before, 2>{Work::Before{last()}, {}}));
  } catch (...) {  // no memory to track it
    library.give_back(await);
    library.destroy(event);
    throw;
  }
}

void TpuStream::wait_for_fetches(const void* to, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(to), end = begin + bytes;
  // Nothing may fail once the fetch has started. The reserved capacity lets later runs with more fetches allocate
  // nothing.
  constexpr std::size_t kUsual = 64;
  fetches_.reserve(std::max(fetches_.size() + 1, kUsual));
  std::erase_if(fetches_, [&](const Fetch& f) {
    if (f.done.ready()) return true;
    if (f.end <= begin || end <= f.begin) return false;
    wait_quietly(f.done);
    return true;
  });
}

void TpuStream::note_fetch(const void* to, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(to);
  fetches_.push_back({begin, begin + bytes, record()});
}

void TpuStream::wait(const Event& event, bool order_only) {
  if (!event.point()) return;
  auto* const ours = dynamic_cast<Work*>(event.point());
  if (!ours || ours->on().client != device_->client()) {
    if (order_only) return Stream::wait_order(event);
    return event.wait();
  }
  if (ours == last().get() || (ours->ready() && (order_only || !ours->failed()))) return;
  begin();
  std::array<Work::Before, 2> before{Work::Before{last()}, {ours->shared_from_this(), order_only}};
  set_last(make_pooled<Work>(device_->place()->works, device_->place(), nullptr, std::move(before)));
}

}  // namespace rlx::tpu
