// The streams of a program over several devices, and where its runs begin and end on them. Internal.
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

/// One stream on each device: on the first the one that a run brings, on others one of its own. Work goes from one to
/// another by points; what is left on them when a run fails is not told again.
class RunStreams {
 public:
  /// Of a program of these devices that is bound to `first`, at the place `home`.
  RunStreams(std::span<const ProgramDevice> devices, std::uint32_t home, OpenDevice& first);

  OpenDevice& device(std::uint32_t d) const { return *devices_[d]; }
  bool on_host(std::uint32_t d) const { return devices_[d]->memory_model() == MemoryModel::Host; }
  /// That of a device, made when there is none yet.
  Stream& of(std::uint32_t d) {
    if (d == home_) return *run_stream_;
    if (!streams_[d]) streams_[d] = devices_[d]->stream();
    return *streams_[d];
  }
  /// Makes it before the first run.
  void open(std::uint32_t d) {
    if (d != home_) (void)of(d);
  }
  bool is_open(std::uint32_t d) const { return d == home_ || streams_[d]; }

  /// What `then` gets from now on runs behind what `first` holds.
  static void order(Stream& first, Stream& then) { wait_behind(then, first.record()); }
  /// The same of two devices.
  void order(std::uint32_t first, std::uint32_t then) {
    if (first != then) order(of(first), of(then));
  }
  /// Ops that others see run keep their order, on whichever devices they are.
  void keep_order(std::uint32_t d) {
    if (ordered_on_) order(*ordered_on_, d);
    ordered_on_ = d;
  }

  /// One run, from its first work to its end, which is on the stream it brings. One that does not come to that fails;
  /// whoever waits for the stream then waits for all of it all the same.
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
  /// True once the last run came to its end.
  bool ended() const { return ended_; }

 private:
  std::vector<std::shared_ptr<OpenDevice>> devices_;
  std::vector<std::shared_ptr<Stream>> streams_;  // null for the first, and where nothing runs
  std::uint32_t home_;
  Stream* run_stream_ = nullptr;
  std::optional<std::uint32_t> ordered_on_;
  Event last_;
  bool ended_ = true;
};

/// Records work that is given to a device which is not the host, in a trace on a track of that device.
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
