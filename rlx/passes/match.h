// Patterns shared by several fusion passes.
#pragma once

#include <optional>

#include "rlx/ir/rewrite.h"

namespace rlx {

/// A matmul of x [.., K] and a matrix, contracted over the last axis of x, plus an optional bias vector.
struct BiasedMatmul {
  NodeId dot;    // DotGeneral or FusedDot
  Value result;  // the matmul, or its sum with the bias
  Value x, weight;
  bool transposed = false;  // weight is [N, K]
  Dim n;
  std::optional<Value> bias;  // [N]
};

/// The matmul at node `dot`, with its own bias epilogue or the bias add that is its only reader. None when `dot` is no
/// such matmul, or is a FusedDot whose epilogue is more than a bias add.
std::optional<BiasedMatmul> biased_matmul_at(const Graph& g, const UseIndex& uses, NodeId dot);
/// The matmul whose result is `v`. With its bias when `v` is the sum.
std::optional<BiasedMatmul> biased_product_of(const Graph& g, const UseIndex& uses, Value v);

/// A stride-1 range of one axis, and the whole of all other axes.
struct AxisRange {
  Value source;
  int axis = 0;
  Dim start, limit;
};
/// The range of a Slice node that slices exactly one axis.
std::optional<AxisRange> axis_range(const Graph& g, Value v);

/// The node that computes v if it is the Binary or Activation `fn`, else null.
const Node* as_binary(const Graph& g, Value v, BinaryKind fn);
const Node* as_activation(const Graph& g, Value v, ActivationKind fn);

/// v as factor * base, read through multiplications and divisions by constants and through negations.
struct Scaled {
  Value base;
  double factor = 1;
};
Scaled peel_scale(const Graph& g, Value v);
/// The other operand when `n` is a Binary with a constant: value op constant, or constant op value for Add and Mul.
struct WithConstant {
  Value other;
  double constant = 0;
};
std::optional<WithConstant> with_constant(const Graph& g, const Node& n);

}  // namespace rlx
