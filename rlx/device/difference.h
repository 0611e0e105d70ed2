// Known differences between the results of a backend's devices and the rules of the ops. The documentation of ops lists
// them. Device tests show each of them, and allow no other difference.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rlx/ir/op_kind.h"

namespace rlx {

struct Difference {
  enum class What : std::uint8_t {
    Subnormals,      // subnormal operands count as 0, and subnormal results are 0
    PowOfSubnormal,  // a power of a subnormal base is not that of 0 either
    ReluOfZero,      // relu(-0) is 0
    OrderOfTerms,    // terms are summed in another order, so a partial sum may overflow although the total does not
  };
  What what;
  std::span<const OpKind> kinds;  // primitives; other ops have the differences of the primitives they decompose into
  std::string_view text;          // for people
  bool on_some = false;           // only some of the devices have it
};

}  // namespace rlx
