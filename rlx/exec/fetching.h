// Waits for work that writes to host memory.
#pragma once

#include "rlx/device/open_device.h"
#include "rlx/error.h"

namespace rlx {

/// Waits, and ignores a failure of the work.
inline void wait_quietly(const Event& event) {
  try {
    event.wait();
  } catch (const Error&) {
  }
}

/// The same for all work that the stream has so far. The call itself may throw a failure that nobody has seen yet.
inline void wait_quietly(Stream& stream) {
  try {
    stream.record().wait();
  } catch (const Error&) {
  }
}

/// Later work of `stream` runs after `event` and fails with it. An event that is done without failure needs no wait. A
/// ready event may have failed.
inline void wait_behind(Stream& stream, const Event& event) {
  if (!event.ready() || event.failed()) stream.wait(event);
}

/// A guard for work that writes to memory of a caller: its destructor waits until that work is done, on all paths.
class Fetching {
 public:
  explicit Fetching(Stream& stream) : stream_(&stream) {}
  Fetching(const Fetching&) = delete;
  Fetching& operator=(const Fetching&) = delete;
  ~Fetching() {
    if (!stream_) return;
    try {
      stream_->record().wait();
    } catch (...) {  // whoever throws reports the failure
    }
  }
  /// Waits for all work so far, and throws its failure.
  void finish(const Event& done) {
    done.wait();
    stream_ = nullptr;
  }

 private:
  Stream* stream_;
};

}  // namespace rlx
