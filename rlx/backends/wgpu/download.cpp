// Mapping, and copying out of mapped memory.
#include "rlx/backends/wgpu/download.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rlx::wgpu {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} << 20;  // of staging in a download that nobody uses

}  // namespace

Download::~Download() {
  if (staging_) gpu_->release(staging_);
}

void Download::add(std::shared_ptr<const rlx::Buffer> from, abi::Buffer handle, std::size_t offset,
                   std::span<std::byte> to, std::shared_ptr<const rlx::Buffer> kept) {
  pieces_.push_back({std::move(from), handle, offset, bytes_, to.size(), to.data(), std::move(kept)});
  bytes_ += round_up(to.size(), 8);
}

void Download::encode(abi::CommandEncoder encoder) {
  if (capacity_ < bytes_) {
    if (staging_) gpu_->release(std::exchange(staging_, nullptr));
    capacity_ = 0;
    const std::size_t wanted = std::max<std::size_t>(4096, round_up(bytes_, 4096));
    staging_ = gpu_->buffer(wanted, abi::usage::kMapRead | abi::usage::kCopyTarget, "results on their way to the host");
    capacity_ = wanted;
  }
  gpu_->call("a download", [&] {
    for (Piece& p : pieces_) {
      gpu_->api.CommandEncoderCopyBufferToBuffer(encoder, p.handle, p.offset, staging_, p.at, round_up(p.bytes, 4));
      p.from.reset();  // the encoder holds it
    }
  });
}

void Download::begin(const std::shared_ptr<Download>& self, std::uint64_t submission, std::shared_ptr<Download> before,
                     std::shared_ptr<Download> also) {
  Download& d = *self;
  d.submission_ = submission;
  d.before_ = std::move(before), d.also_ = std::move(also);
  if (d.pieces_.empty()) {
    d.state_ = State::There;
    return;
  }
  d.self_ = self;
  d.state_ = State::Asked;
  abi::CallbackInfo<abi::MapCallback> asked;
  asked.callback = on_mapped, asked.userdata1 = self.get();
  CallError error;
  d.gpu_->call(
      [&] { (void)d.gpu_->api.BufferMapAsync(d.staging_, abi::kMapModeRead, 0, round_up(d.bytes_, 8), asked); }, error);
  if (error.type != abi::ErrorType{}) d.gpu_->raise(error, "a download");
}

void Download::on_mapped(abi::MapStatus status, abi::StringView, void* download, void*) {
  auto* const d = static_cast<Download*>(download);
  d->state_ = status == abi::MapStatus::Success ? State::There : State::Failed;
  d->self_.reset();  // may end it
}

bool Download::ready() const {
  if (all_there_ || state_ == State::Written || gpu_->lost()) return true;
  if (state_ == State::Asked || (before_ && !before_->ready()) || (also_ && !also_->ready())) return false;
  // Kept: streams that wait for each other share what is before them, and each would ask for all of it again.
  all_there_ = true;
  return true;
}

void Download::finish() {
  std::lock_guard lock(mutex_);
  if (state_ == State::Written) return;
  if (before_) before_->finish();
  if (also_) also_->finish();
  while (state_ == State::Asked) {
    gpu_->wait(submission_);
    gpu_->poll();  // the callback may come after the work
  }
  if (state_ == State::Failed) {
    gpu_->require();
    throw Error(ErrorCode::Internal, concat_text("device ", gpu_->text, ": results cannot be mapped"),
                "please report it");
  }
  if (!pieces_.empty()) {
    gpu_->call("a download", [&] {
      const auto* from =
          static_cast<const std::byte*>(gpu_->api.BufferGetConstMappedRange(staging_, 0, round_up(bytes_, 8)));
      check(from != nullptr, "a buffer that is mapped has no address");
      for (const Piece& p : pieces_) std::memcpy(p.to, from + p.at, p.bytes);
      gpu_->api.BufferUnmap(staging_);
    });
  }
  pieces_.clear();
  before_.reset(), also_.reset();
  state_ = State::Written;
}

// For the next use. Nobody waited for what it may still hold.
void Download::restart() {
  if (state_ == State::There && !pieces_.empty()) {
    CallError ignored;
    gpu_->call([&] { gpu_->api.BufferUnmap(staging_); }, ignored);
  }
  if (state_ == State::Failed || capacity_ > kMostKept) {
    if (staging_) gpu_->release(std::exchange(staging_, nullptr));
    capacity_ = 0;
  }
  pieces_.clear();
  before_.reset(), also_.reset();
  bytes_ = 0;
  all_there_ = false;
  state_ = State::Filling;
}

DownloadPool::~DownloadPool() {
  const auto asked = [](const auto& d) { return d->state_ == Download::State::Asked; };
  if (std::any_of(all_.begin(), all_.end(), asked)) gpu_->drain();
}

std::shared_ptr<Download> DownloadPool::take() {
  std::lock_guard lock(mutex_);
  const auto idle = std::find_if(all_.begin(), all_.end(), [](const auto& d) { return d.use_count() == 1; });
  if (idle != all_.end()) {
    std::atomic_thread_fence(std::memory_order_acquire);  // behind whoever let go of it
    (*idle)->restart();
    return *idle;
  }
  return all_.emplace_back(std::make_shared<Download>(gpu_));
}

}  // namespace rlx::wgpu
