// Roots of unity by octant, so that equal sines and cosines have equal bits.
#include "rlx/ir/math/roots_of_unity.h"

#include <cmath>
#include <numbers>

namespace rlx {

LongDoubleComplex root_of_unity(std::int64_t k, std::int64_t n) {
  const std::int64_t octant = 8 * k / n;
  // Eighths of n from the nearest axis or diagonal.
  const std::int64_t rest = octant % 2 == 0 ? 8 * k - octant * n : (octant + 1) * n - 8 * k;
  const long double angle =
      std::numbers::pi_v<long double> * static_cast<long double>(rest) / (4 * static_cast<long double>(n));
  const long double c = std::cos(angle), s = std::sin(angle);
  switch (octant) {
    case 0: return {c, -s};
    case 1: return {s, -c};
    case 2: return {-s, -c};
    case 3: return {-c, -s};
    case 4: return {-c, s};
    case 5: return {-s, c};
    case 6: return {s, c};
    default: return {c, s};
  }
}

}  // namespace rlx
