// Patterns that several fusion passes look for.
#pragma once

#include <optional>

#include "rlx/ir/rewrite.h"

namespace rlx {

/// x [.., K] times a matrix over its last axis, plus a vector when there is one.
struct BiasedProduct {
  NodeId dot;    // DotGeneral or FusedDot
  Value result;  // the product, or its sum with the bias
  Value x, weight;
  bool transposed = false;  // weight is [N, K]
  Dim n;
  std::optional<Value> bias;  // [N]
};

/// The product at node `dot`, with the bias add that alone reads it or its own bias epilogue. None when `dot` is no
/// product of that form, or a FusedDot whose epilogue is more than a bias add.
std::optional<BiasedProduct> biased_product_at(const Graph& g, const UseIndex& uses, NodeId dot);
/// The product whose result `v` is (with its bias, when `v` is the sum).
std::optional<BiasedProduct> biased_product_of(const Graph& g, const UseIndex& uses, Value v);

/// A stride-1 range of one axis, all of the others.
struct AxisRange {
  Value source;
  int axis = 0;
  Dim start, limit;
};
/// The range that a Slice node takes when it cuts exactly one axis.
std::optional<AxisRange> axis_range(const Graph& g, Value v);

/// silu(x) found at `v`: the Activation, or x * sigmoid(x) whose sigmoid nothing else reads.
struct SiluMatch {
  Value x;
  int reads_of_x = 1;  // edges from x into the match
};
std::optional<SiluMatch> match_silu(const Graph& g, const UseIndex& uses, Value v);

}  // namespace rlx
