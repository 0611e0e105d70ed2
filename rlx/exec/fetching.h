// Waiting for work that writes to memory of the host.
#pragma once

#include "rlx/device/open_device.h"
#include "rlx/error.h"

namespace rlx {

/// Waits; what failed on the way is no reason to fail here.
inline void wait_quietly(const Event& event) {
  try {
    event.wait();
  } catch (const Error&) {
  }
}

/// The same of all that the stream has so far. What nobody saw of it may show at the call already.
inline void wait_quietly(Stream& stream) {
  try {
    stream.record().wait();
  } catch (const Error&) {
  }
}

/// What `stream` gets from now on runs behind `event` and fails with it. There is nothing to wait for where that is
/// done and good; one that is ready may have failed.
inline void wait_behind(Stream& stream, const Event& event) {
  if (!event.ready() || event.failed()) stream.wait(event);
}

/// While work writes to memory of a caller: lets nobody leave before it is done, however they leave.
class Fetching {
 public:
  explicit Fetching(Stream& stream) : stream_(&stream) {}
  Fetching(const Fetching&) = delete;
  Fetching& operator=(const Fetching&) = delete;
  ~Fetching() {
    if (!stream_) return;
    try {
      stream_->record().wait();
    } catch (...) {  // what failed is reported by whoever throws
    }
  }
  /// Waits for all so far; throws what failed.
  void finish(const Event& done) {
    done.wait();
    stream_ = nullptr;
  }

 private:
  Stream* stream_;
};

}  // namespace rlx
