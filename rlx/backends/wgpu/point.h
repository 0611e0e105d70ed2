// Points of a stream's work, whose memory is used again: runs that record them allocate nothing.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "rlx/backends/wgpu/download.h"
#include "rlx/backends/wgpu/gpu.h"

namespace rlx::wgpu {

/// Everything up to a submission, and what is on its way to the host by then.
class Point final : public Event::Point {
 public:
  Point(std::shared_ptr<Gpu> gpu, std::uint64_t submission, std::shared_ptr<Download> download)
      : gpu_(std::move(gpu)), submission_(submission), download_(std::move(download)) {}
  bool ready() override {
    if (!gpu_->passed(submission_)) return false;
    if (!download_ || download_->ready()) return true;
    gpu_->poll();
    return download_->ready();
  }
  void wait() override {
    gpu_->wait(submission_);
    if (download_) download_->finish();
  }
  bool failed() override {
    return gpu_->lost() && !(gpu_->is_done(submission_) && (!download_ || download_->finished()));
  }
  const Gpu& gpu() const { return *gpu_; }
  const std::shared_ptr<Download>& download() const { return download_; }

 private:
  std::shared_ptr<Gpu> gpu_;
  std::uint64_t submission_;
  std::shared_ptr<Download> download_;
};

/// Blocks of one size, given back to whoever asks next.
class Blocks {
 public:
  ~Blocks() {
    for (void* b : free_) ::operator delete(b);
  }
  void* take(std::size_t bytes) {
    {
      std::lock_guard lock(mutex_);
      check(bytes_ == 0 || bytes_ == bytes, "blocks of one size");
      bytes_ = bytes;
      if (!free_.empty()) {
        void* const b = free_.back();
        free_.pop_back();
        return b;
      }
      free_.reserve(++made_);
    }
    return ::operator new(bytes);
  }
  void give(void* block) {
    std::lock_guard lock(mutex_);
    free_.push_back(block);  // there is room for all that were made
  }

 private:
  std::mutex mutex_;
  std::vector<void*> free_;
  std::size_t bytes_ = 0, made_ = 0;
};

class Points {
 public:
  std::shared_ptr<Point> make(const std::shared_ptr<Gpu>& gpu, std::uint64_t submission,
                              const std::shared_ptr<Download>& download) {
    return std::allocate_shared<Point>(Allocator<Point>{blocks_}, gpu, submission, download);
  }

 private:
  template <class T>
  struct Allocator {
    using value_type = T;
    std::shared_ptr<Blocks> blocks;
    explicit Allocator(std::shared_ptr<Blocks> b) : blocks(std::move(b)) {}
    template <class U>
    Allocator(const Allocator<U>& other) : blocks(other.blocks) {}  // NOLINT(implicit)
    T* allocate(std::size_t n) { return static_cast<T*>(blocks->take(n * sizeof(T))); }
    void deallocate(T* p, std::size_t) { blocks->give(p); }
    template <class U>
    bool operator==(const Allocator<U>& other) const {
      return blocks == other.blocks;
    }
  };
  std::shared_ptr<Blocks> blocks_ = std::make_shared<Blocks>();
};

}  // namespace rlx::wgpu
