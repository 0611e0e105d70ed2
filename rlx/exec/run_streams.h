// The streams of a program over several devices, and the begin and end of its runs on them. Internal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rlx/base/trace.h"
#include "rlx/exec/fetching.h"
#include "rlx/exec/program.h"

namespace rlx {

/// One stream per device. The home device uses the stream passed to each run, the others have their own. Events order
/// work between streams. Errors that remain on the streams when a run fails are not reported again.
class RunStreams {
 public:
  /// For a program of these devices that is bound to `first`, device number `home`.
  RunStreams(std::span<const ProgramDevice> devices, std::uint32_t home, OpenDevice& first);

  std::uint32_t count() const { return static_cast<std::uint32_t>(devices_.size()); }
  OpenDevice& device(std::uint32_t d) const { return *devices_[d]; }
  bool on_host(std::uint32_t d) const { return devices_[d]->memory_model() == MemoryModel::Host; }
  /// The stream of a device. It is created on first use.
  Stream& of(std::uint32_t d) {
    if (d == home_) return *run_stream_;
    if (!streams_[d]) streams_[d] = devices_[d]->stream();
    return *streams_[d];
  }
  /// Creates the stream before the first run.
  void open(std::uint32_t d) {
    if (d != home_) (void)of(d);
  }
  bool is_open(std::uint32_t d) const { return d == home_ || streams_[d]; }

  /// Makes later work of `then` wait for the work submitted to `first` so far.
  static void order(Stream& first, Stream& then) { wait_behind(then, first.record()); }
  /// The same for the streams of two devices.
  void order(std::uint32_t first, std::uint32_t then) {
    if (first != then) order(of(first), of(then));
  }
  /// Keeps the order of ordered ops across devices.
  void keep_order(std::uint32_t d) {
    if (ordered_on_) order(*ordered_on_, d);
    ordered_on_ = d;
  }

  /// One run on `stream`, from its first work to `end`. If it is destroyed before `end`, the run has failed, and a wait
  /// for `stream` still waits for all work of the run.
  class Run {
   public:
    Run(RunStreams& streams, Stream& stream);
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    ~Run();
    Event end();

   private:
    RunStreams& s_;
  };
  /// True when the last run reached its end.
  bool ended() const { return ended_; }

 private:
  std::vector<std::shared_ptr<OpenDevice>> devices_;
  std::vector<std::shared_ptr<Stream>> streams_;  // null for the home device, and for devices without work
  std::uint32_t home_;
  Stream* run_stream_ = nullptr;
  std::optional<std::uint32_t> ordered_on_;
  Event last_;
  bool ended_ = true;
};

/// Records work submitted to a device other than the host, in a trace on the track of that device.
class DeviceSpan {
 public:
  DeviceSpan(const RunStreams& streams, std::uint32_t d, std::string_view what, std::size_t number) {
    Trace* const trace = Trace::current();
    if (!trace || streams.on_host(d)) return;
    span_.emplace(trace, trace->name("step", concat_text(what, number)),
                  trace->track(device_text(streams.device(d).id())));
  }

 private:
  std::optional<TraceSpan> span_;
};

}  // namespace rlx
