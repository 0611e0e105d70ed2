// Runs on several streams: they begin after the previous run and join at the end.
#include "rlx/exec/run_streams.h"

namespace rlx {

RunStreams::RunStreams(std::span<const ProgramDevice> devices, std::uint32_t home, OpenDevice& first)
    : streams_(devices.size()), home_(home) {
  for (std::uint32_t d = 0; d < devices.size(); ++d)
    devices_.push_back(d == home ? first.shared_from_this() : devices[d].device);
}

RunStreams::Run::Run(RunStreams& streams, Stream& stream) : s_(streams) {
  s_.run_stream_ = &stream;
  s_.ordered_on_.reset();
  if (!s_.ended_ || s_.last_.failed())
    for (const auto& other : s_.streams_)
      if (other) wait_quietly(*other);
  s_.ended_ = false;
  if (!s_.last_.ready()) stream.wait(s_.last_);
}

Event RunStreams::Run::end() {
  for (const auto& other : s_.streams_)
    if (other) order(*other, *s_.run_stream_);
  s_.last_ = s_.run_stream_->record();
  s_.ended_ = true;
  return s_.last_;
}

RunStreams::Run::~Run() {
  if (s_.ended_) return;
  for (const auto& other : s_.streams_) {
    if (!other) continue;
    Event so_far;
    try {
      so_far = other->record();
      s_.run_stream_->wait_order(so_far);
    } catch (...) {  // the current error says more
      try {
        so_far.wait();
      } catch (...) {
      }
    }
  }
}

}  // namespace rlx
