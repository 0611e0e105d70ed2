// Bounds on the work and the memory that one input from outside may cause.
#pragma once

#include <cstdint>
#include <limits>

namespace rlx {

/// What one input (a template, a pattern, a decoder, an archive) may still take. A reader spends steps before it works
/// and takes bytes before it makes them; where a call returns false, the reader refuses the input with an error that
/// names it. A step is some nanoseconds. Budgets that grow with the input (`allow`) keep the work linear.
class WorkBudget {
 public:
  constexpr WorkBudget(std::uint64_t steps, std::uint64_t bytes) : steps_(steps), bytes_(bytes) {}
  /// More input allows more work.
  constexpr void allow(std::uint64_t steps, std::uint64_t bytes) {
    steps_ = sum(steps_, steps);
    bytes_ = sum(bytes_, bytes);
  }
  /// False when fewer than `n` steps are left.
  [[nodiscard]] constexpr bool spend(std::uint64_t n) {
    if (n > steps_) return false;
    steps_ -= n;
    return true;
  }
  /// False when fewer than `n` bytes are left.
  [[nodiscard]] constexpr bool take(std::uint64_t n) {
    if (n > bytes_) return false;
    bytes_ -= n;
    return true;
  }
  /// Returns bytes that are free again.
  constexpr void give(std::uint64_t n) { bytes_ = sum(bytes_, n); }
  constexpr std::uint64_t steps() const { return steps_; }
  constexpr std::uint64_t bytes() const { return bytes_; }

 private:
  static constexpr std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    return b > std::numeric_limits<std::uint64_t>::max() - a ? std::numeric_limits<std::uint64_t>::max() : a + b;
  }
  std::uint64_t steps_, bytes_;
};

}  // namespace rlx
