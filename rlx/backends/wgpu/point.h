// Points of a stream's work, whose memory is used again: runs that record them allocate nothing.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "rlx/backends/wgpu/download.h"

namespace rlx::wgpu {

/// Everything up to a submission, and the downloads that began by then, up to a number of those.
class Point final : public Event::Point {
 public:
  Point(std::shared_ptr<Downloads> downloads, std::uint64_t submission, std::uint64_t download)
      : downloads_(std::move(downloads)), submission_(submission), download_(download) {}
  bool ready() override {
    if (!gpu().passed(submission_)) return false;
    if (downloads_->ready(download_)) return true;
    gpu().poll();
    return downloads_->ready(download_);
  }
  void wait() override { downloads_->finish(submission_, download_); }
  bool failed() override { return gpu().lost() && !(gpu().is_done(submission_) && downloads_->finished(download_)); }
  const Gpu& gpu() const { return downloads_->gpu(); }
  std::uint64_t download() const { return download_; }

 private:
  std::shared_ptr<Downloads> downloads_;
  std::uint64_t submission_, download_;
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

/// Makes points in memory of those that are gone.
class Points {
 public:
  std::shared_ptr<Point> make(const std::shared_ptr<Downloads>& downloads, std::uint64_t submission,
                              std::uint64_t download) {
    return std::allocate_shared<Point>(Allocator<Point>{blocks_}, downloads, submission, download);
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
