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

/// The node that computes v when it is the Binary or Activation `fn`, else null.
const Node* as_binary(const Graph& g, Value v, BinaryKind fn);
const Node* as_activation(const Graph& g, Value v, ActivationKind fn);

/// v as factor * base, through products and quotients with constants and negations.
struct Scaled {
  Value base;
  double factor = 1;
};
Scaled peel_scale(const Graph& g, Value v);
/// The other operand when `n`, a Binary, has a constant: value op constant, or constant op value for Add and Mul.
struct WithConstant {
  Value other;
  double constant = 0;
};
std::optional<WithConstant> with_constant(const Graph& g, const Node& n);

}  // namespace rlx
