// The distributions of test and bench values for an operand. Function tables name the range where a function is well
// behaved.
#pragma once

#include <cstdint>

namespace rlx {

/// How test values of one operand are drawn.
enum class Fill : std::uint8_t {
  Normal,    // about N(0, 1), distinct enough that max and sort have no ties
  Positive,  // uniform in [0.5, 2)
  Unit,      // uniform in (-0.9, 0.9)
  AboveOne,  // uniform in [1.25, 3)
  Index,     // integers in [0, bound)
  Boolean,   // 0 or 1
  Small,     // integers in [-3, 3] (ties happen)
};

}  // namespace rlx
