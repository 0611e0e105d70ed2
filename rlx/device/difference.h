// Where the numbers of a backend's devices are not those that the rules of the ops give. The page of ops tells of each,
// and the tests of devices show it, allow for it, and for nothing else.
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
    OrderOfTerms,    // terms are joined in another order, in which a part may overflow where the whole does not
  };
  What what;
  std::span<const OpKind> kinds;  // primitives: other ops have the differences of their parts
  std::string_view text;          // for people
  bool on_some = false;           // only some of the devices do so
};

}  // namespace rlx
