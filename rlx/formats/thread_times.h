// What each thread did during the runs that a trace recorded: time by kernel, and time between kernels.
#pragma once

#include <string>
#include <vector>

#include "rlx/base/trace.h"

namespace rlx {

/// One thread of the runs of a trace.
struct ThreadTimes {
  /// Steps of one op and kernel. A step that holds others (a loop) has the time outside of them.
  struct Kernel {
    std::string op, kernel;  // "matmul", "packed_gemm_f32 (avx512)"
    double ms = 0;
    int pieces = 0;  // the times that the thread took up a step
  };
  std::string thread;           // its name in the trace, or "caller"
  std::vector<Kernel> kernels;  // longest first
  double busy_ms = 0;           // in kernels
  double waiting_ms = 0;        // the other time of the runs: barriers, and the calls around the kernels
};

/// The threads that ran steps on the cpu, in the order of their first step. A run is an outermost event of the category
/// "run". Events that the trace has lost are missing.
std::vector<ThreadTimes> thread_times(const Trace& trace);

/// The same as text, a table of the kernels that take at least a hundredth, with a column of milliseconds a run for
/// each thread and a last line of waiting. Empty without threads.
std::string thread_times_text(const std::vector<ThreadTimes>& threads, int runs);

}  // namespace rlx
