// A point of a stream's work.
#pragma once

#include <memory>
#include <utility>

#include "rlx/backends/wgpu/download.h"

namespace rlx::wgpu {

/// All work up to a submission, and the downloads that began by then, up to a number.
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

}  // namespace rlx::wgpu
