// Completion of asynchronous work, and the streams that order it. Work is a PJRT event with the work that it comes
// after. A stream without waits makes a chain of any length, so chains are settled and released without recursion.
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

Work::Work(std::shared_ptr<const OnDevice> place, abi::Point* event, std::array<Dependency, 2> dependencies)
    : place_(std::move(place)), event_(event), dependencies_(std::move(dependencies)) {}

Work::~Work() {
  place_->client->library().destroy(event_);
  std::vector<std::shared_ptr<Work>> to_release;
  const auto take_dependencies = [&to_release](Work& w) {
    for (Dependency& b : w.dependencies_)
      if (b.work) to_release.push_back(std::exchange(b.work, nullptr));
  };
  take_dependencies(*this);
  while (!to_release.empty()) {
    const std::shared_ptr<Work> w = std::move(to_release.back());
    to_release.pop_back();
    if (w.use_count() == 1)
      take_dependencies(*w);  // its destructor then has nothing to release, so it does not recurse
  }
}

std::shared_ptr<Work> Work::unsettled_dependency() {
  std::lock_guard lock(mutex_);
  for (const Dependency& b : dependencies_)
    if (b.work && b.work->state_ == State::Pending) return b.work;
  return nullptr;
}

// Finishes the chain that this work depends on, earliest first: depth-first with `path` as the stack. Without `block`
// it ends at the first work that is not ready.
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
    if (std::shared_ptr<Work> earlier = at->unsettled_dependency()) {
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

// Requires that all work before it is settled. Polls the event, or awaits it with `block`, and stores the outcome: the
// failure of earlier work if there is one, else the event's own.
Work::State Work::finish(bool block) {
  std::optional<Diagnostic> own_error;
  if (event_) {
    const Library& library = place_->client->library();
    try {
      if (!block) {
        auto ask = abi::arguments<abi::EventIsReady>();
        ask.event = event_;
        if (abi::Failure* failure = library.attempt(place_->text, ask))
          library.drop(failure);  // the await below reports the failure again
        else if (!ask.is_ready)
          return State::Pending;
      }
      auto await = abi::arguments<abi::EventAwait>();
      await.event = event_;
      library.call(place_->text, await);
    } catch (const Error& e) {
      own_error = e.diagnostic();
      if (own_error->code == ErrorCode::DeviceLost) place_->client->lose();
      if (const std::string usage = place_->usage(); own_error->code == ErrorCode::OutOfMemory && !usage.empty())
        own_error->hint = concat_text(usage, ": ", own_error->hint);
    }
  }
  std::lock_guard lock(mutex_);
  if (state_ != State::Pending) return state_;  // another thread finished it
  for (const Dependency& b : dependencies_)
    if (b.work && !b.order_only && b.work->state_ == State::Failed && !error_) error_ = b.work->error_;
  if (!error_) error_ = std::move(own_error);
  for (Dependency& b : dependencies_) b.work.reset();
  state_ = error_ ? State::Failed : State::Done;
  return state_;
}

void Work::wait() {
  if (settle(true) == State::Done) return;
  reported_ = true;
  throw Error(*error_);
}

TpuStream::~TpuStream() {
  if (last_ && !last_->ready()) device_->keep(std::move(last_));  // a drain of the device still waits for it
}

namespace {
[[noreturn]] void refuse_byte_access(const TpuDevice& device, std::string_view what) {
  throw Error(ErrorCode::Unsupported,
              concat_text(device.text(), ": ", what,
                          " addresses bytes of a buffer, but the device transfers whole values only"),
              "use put and get");
}
}  // namespace

void TpuStream::upload(std::span<const std::byte>, const BufferView&) { refuse_byte_access(*device_, "an upload"); }
void TpuStream::download(const BufferView&, std::span<std::byte>) { refuse_byte_access(*device_, "a download"); }
void TpuStream::copy(const BufferView&, const BufferView&) { refuse_byte_access(*device_, "a copy"); }

void TpuStream::begin() {
  device_->require_alive();
  const std::shared_ptr<Work> last = this->last();
  if (!last || !last->ready()) return;
  set_last(nullptr);
  if (last->failed() && !last->reported()) last->wait();
}

void TpuStream::add(abi::Point* event) {
  if (!event) return;
  const Library& library = device_->library();
  auto ask = abi::arguments<abi::EventIsReady>();
  auto await = abi::arguments<abi::EventAwait>();
  ask.event = await.event = event;
  // Work that has succeeded already is not tracked. A failed event is tracked like a pending one: `Work::finish` reads
  // the failure from it again.
  if (abi::Failure* failure = library.attempt(device_->text(), ask); failure) {
    library.drop(failure);
  } else if (ask.is_ready) {
    failure = library.attempt(device_->text(), await);
    if (!failure) return library.destroy(event);
    library.drop(failure);
  }
  try {
    set_last(make_pooled<Work>(device_->place()->works, device_->place(), event,
                               std::array<Work::Dependency, 2>{Work::Dependency{last()}, {}}));
  } catch (...) {  // no memory to track it
    // Awaits the event: nothing can wait for it later, and its work may still write to memory of the caller.
    library.give_back(await);
    library.destroy(event);
    throw;
  }
}

void TpuStream::wait_for_fetches(const void* to, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(to), end = begin + bytes;
  // Reserved here, because `note_fetch` may not throw: the fetch has started by then. With room for 64 from the start,
  // later runs with more fetches allocate nothing.
  constexpr std::size_t kReservedFetches = 64;
  fetches_.reserve(std::max(fetches_.size() + 1, kReservedFetches));
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
  // The plug-in can order work only after events of the same client. For others the host waits.
  auto* const ours = dynamic_cast<Work*>(event.point());
  if (!ours || ours->on().client != device_->client()) {
    if (order_only) return Stream::wait_order(event);
    return event.wait();
  }
  if (ours == last().get() || (ours->ready() && (order_only || !ours->failed()))) return;
  begin();
  std::array<Work::Dependency, 2> dependencies{Work::Dependency{last()}, {ours->shared_from_this(), order_only}};
  set_last(make_pooled<Work>(device_->place()->works, device_->place(), nullptr, std::move(dependencies)));
}

}  // namespace rlx::tpu
