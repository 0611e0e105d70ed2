// Maps staging memory and copies from it.
#include "rlx/backends/wgpu/download.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rlx::wgpu {
namespace {

constexpr std::size_t kLeastStaging = 256;
constexpr std::size_t kMostKept = std::size_t{64} << 20;  // most staging bytes kept in an idle download
constexpr std::size_t kMostIdle = 64;                     // most idle downloads

}  // namespace

// -- one --

void Download::add(std::shared_ptr<const rlx::Buffer> from, abi::Buffer handle, std::size_t offset,
                   std::span<std::byte> to, std::shared_ptr<const void> kept) {
  pieces_.push_back({std::move(from), handle, offset, bytes_, to.size(), to.data(), std::move(kept)});
  bytes_ += round_up(to.size(), 8);
}

void Download::encode(abi::CommandEncoder encoder) {
  if (capacity_ < bytes_) {
    staging_.reset(), capacity_ = 0;
    const std::size_t wanted = round_up(bytes_, bytes_ < 4096 ? kLeastStaging : 4096);
    staging_ = gpu_.buffer(wanted, abi::usage::kMapRead | abi::usage::kCopyTarget, "a copy of results to the host");
    capacity_ = wanted;
  }
  gpu_.call("a download", [&] {
    for (Piece& p : pieces_) {
      gpu_.api.CommandEncoderCopyBufferToBuffer(encoder, p.handle, p.offset, staging_.get(), p.at,
                                                round_up(p.bytes, 4));
      p.from.reset();  // the encoder holds it
    }
  });
}

void Download::ask(std::uint64_t submission) {
  submission_ = submission;
  state_ = State::Asked;
  abi::CallbackInfo<abi::MapCallback> asked;
  asked.callback = on_mapped, asked.userdata1 = this;
  CallError error;
  gpu_.call([&] { (void)gpu_.api.BufferMapAsync(staging_.get(), abi::kMapModeRead, 0, mapped_bytes(), asked); }, error);
  if (error.type != abi::ErrorType{}) gpu_.raise(error, "a download");
}

void Download::on_mapped(abi::MapStatus status, abi::StringView, void* download, void*) {
  static_cast<Download*>(download)->state_ = status == abi::MapStatus::Success ? State::There : State::Failed;
}

bool Download::write() {
  bool given = false;
  CallError error;
  gpu_.call(
      [&] {
        const void* const from = gpu_.api.BufferGetConstMappedRange(staging_.get(), 0, mapped_bytes());
        if (!from) return;
        for (const Piece& p : pieces_) std::memcpy(p.to, static_cast<const std::byte*>(from) + p.at, p.bytes);
        gpu_.api.BufferUnmap(staging_.get());
        given = true;
      },
      error);
  return given && error.type == abi::ErrorType{};
}

// -- all of a device --

Downloads::~Downloads() {
  bool asked = false;
  for (const Download* d = first_.get(); d; d = d->next_.get()) asked = asked || d->state_ == Download::State::Asked;
  if (asked) gpu_->drain();
  while (first_) {  // one at a time: destroying the first would destroy the whole list recursively
    std::unique_ptr<Download> d = std::exchange(first_, std::move(first_->next_));
    CallError ignored;
    if (d->state_ == Download::State::Asked) gpu_->call([&] { gpu_->api.BufferUnmap(d->staging_.get()); }, ignored);
    if (d->state_ == Download::State::Asked) (void)d.release();  // the library may still write to it
  }
  while (idle_) idle_ = std::move(idle_->next_);
}

std::unique_ptr<Download> Downloads::take() {
  std::lock_guard lock(mutex_);
  if (!idle_) return std::make_unique<Download>(*gpu_);
  --num_idle_;
  return std::exchange(idle_, std::move(idle_->next_));
}

void Downloads::give(std::unique_ptr<Download> d) {
  if (num_idle_ == kMostIdle) return;
  if (d->capacity_ > kMostKept) d->staging_.reset(), d->capacity_ = 0;
  d->pieces_.clear();
  d->bytes_ = 0;
  d->state_ = Download::State::Filling;
  d->next_ = std::move(idle_);
  idle_ = std::move(d);
  ++num_idle_;
}

std::uint64_t Downloads::begin(std::unique_ptr<Download> d, std::uint64_t submission) {
  d->ask(submission);
  std::lock_guard lock(mutex_);
  d->number_ = ++begun_;
  Download* const added = d.get();
  (first_ ? last_->next_ : first_) = std::move(d);
  last_ = added;
  if (!unknown_) unknown_ = added;
  return added->number_;
}

bool Downloads::ready(std::uint64_t number) {
  if (there_ >= number || gpu_->lost()) return true;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return there_ >= number;  // another thread is writing
  while (unknown_ && unknown_->state_ != Download::State::Asked) {
    there_ = unknown_->number_;
    unknown_ = unknown_->next_.get();
  }
  return there_ >= number;
}

void Downloads::finish(std::uint64_t submission, std::uint64_t number) try {
  gpu_->wait(submission);
  finish_up_to(number);
} catch (...) {
  const std::lock_guard others(mutex_);  // another thread may be writing; it sees the loss before it writes more
  throw;
}

void Downloads::finish_up_to(std::uint64_t number) {
  while (!finished(number)) {
    std::unique_lock lock(mutex_);
    if (finished(number)) return;
    if (first_->state_ == Download::State::Asked) {
      const std::uint64_t submission = first_->submission_;
      lock.unlock();
      gpu_->wait(submission);
      gpu_->require();
      gpu_->poll();  // the callback may run after the work is complete
      continue;
    }
    gpu_->require();
    if (first_->state_ == Download::State::Failed || !first_->write()) {
      gpu_->lose("results could not be copied to the host");
      gpu_->throw_lost();
    }
    std::unique_ptr<Download> d = std::exchange(first_, std::move(first_->next_));
    if (unknown_ == d.get()) unknown_ = first_.get();
    there_ = std::max<std::uint64_t>(there_, d->number_);
    written_ = d->number_;
    give(std::move(d));
  }
}

}  // namespace rlx::wgpu
