// Op structs that work along an axis: reductions, cumulative ops, softmax.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

enum class ArgReduceKind : std::uint8_t { Max, Min };
template <> struct EnumNames<ArgReduceKind> { static constexpr std::string_view values[] = {"max", "min"}; };

namespace ops {

/// x reduced by fn over the sorted `axes`. The axes are removed, or have extent 1 with keep_dims.
struct Reduce {
  RLX_OP(Reduce);
  ReduceKind fn = ReduceKind::Sum;
  std::vector<std::int64_t> axes{};
  bool keep_dims = false;
};
/// The index (I32) of the first max or min along `axis`. A NaN counts as the extremum.
struct ArgReduce {
  RLX_OP(ArgReduce);
  ArgReduceKind fn = ArgReduceKind::Max;
  std::int64_t axis = 0;
  bool keep_dims = false;
};
/// The running fn (prefix scan) along `axis`. exclusive: element i leaves x[i] out, and the scan starts with the
/// identity. reverse: runs from the end.
struct Cumulative {
  RLX_OP(Cumulative);
  CumulativeKind fn = CumulativeKind::Sum;
  std::int64_t axis = 0;
  bool exclusive = false, reverse = false;
};
/// exp(x - max(x)) / sum along `axis`. x: float [..., N, ...]. A row of -inf gives zeros.
struct Softmax { RLX_OP(Softmax); std::int64_t axis = 0; };
/// x - logsumexp(x) along `axis`. Composite.
struct LogSoftmax { RLX_OP(LogSoftmax); std::int64_t axis = 0; };

}  // namespace ops
}  // namespace rlx
// clang-format on
