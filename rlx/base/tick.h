// A monotonic clock for short durations.
#pragma once

#include <chrono>
#include <cstdint>

namespace rlx {

/// A time point of the monotonic clock.
class Tick {
 public:
  static Tick now() { return Tick(Clock::now()); }
  /// The time since this moment.
  std::int64_t elapsed_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - at_).count();
  }
  double elapsed_us() const { return static_cast<double>(elapsed_ns()) * 1e-3; }
  double elapsed_ms() const { return static_cast<double>(elapsed_ns()) * 1e-6; }

 private:
  using Clock = std::chrono::steady_clock;
  explicit Tick(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

/// The duration of `f()` in ns.
template <class F>
std::int64_t time_ns(F&& f) {
  const Tick start = Tick::now();
  f();
  return start.elapsed_ns();
}

}  // namespace rlx
