// Shared rules of the ops with bodies (If, While, Scan, Call): running, costs and rearrangement of closed graphs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/rewrite/body_transforms.h"

namespace rlx {

using Exprs = std::vector<Expr>;

// -- reference and cost --

/// The outputs of a closed body on dense tensors, in the order of its Inputs.
std::vector<Tensor> run_body(const Graph& body, std::span<const Tensor> inputs);
/// Row t of a stack [n, ..], and a row stored into one.
Tensor row_of(const Tensor& stack, std::int64_t t);
void set_row(Tensor& stack, std::int64_t t, const Tensor& row);
/// The cost of one run of the body.
Cost body_cost(const Graph& body);
/// The cost of `times` runs.
Cost repeated(const Cost& once, double times);

// -- masks --

Mask slice_of(const Mask& m, std::size_t first, std::size_t count);
void append(Mask& to, const Mask& more);
inline std::size_t count_of(const Mask& m) { return static_cast<std::size_t>(std::count(m.begin(), m.end(), true)); }
inline bool any_of(const Mask& m) { return std::find(m.begin(), m.end(), true) != m.end(); }
/// A mask of the shapes that are floating or complex.
Mask inexact_of(std::span<const Shape> shapes);
/// The elementwise and of a and b.
Mask both(const Mask& a, const Mask& b);

// -- bodies --

Shapes input_shapes(const Graph& body);
Shapes output_shapes(const Graph& body);
inline std::size_t num_body_inputs(const Graph& body) { return body.leaves(OpKind::Input).size(); }
/// Adds an Input for every shape, called `prefix` and a number.
Exprs add_inputs(Graph& body, const Shapes& shapes, std::string_view prefix);
/// `shape` without axis 0, and with one more axis in front.
Shape row_shape(const Shape& stack);
Shape stacked_shape(const Dim& n, const Shape& row);
/// The body with its inputs and outputs in another order. Position k takes the one at `inputs[k]`; every input is named
/// once.
Graph permuted(const Graph& body, const std::vector<std::size_t>& inputs, const std::vector<std::size_t>& outputs);
/// An empty body with the name and the symbols of `like`.
Graph like_body(const Graph& like);
/// The finished body, moved from the graph that built it, with the given outputs or with those it has.
Subgraph finished(Graph& body, const Exprs& outputs);
inline Subgraph finished(Graph&& body) { return std::make_shared<const Graph>(std::move(body)); }
/// A zero of any shape and dtype.
Expr zeros_in(Graph& g, const Shape& shape);
/// cond [B] ? a : b of [B, ..], for each example.
Expr select_examples(Graph& g, Expr cond, Expr a, Expr b);
/// The operands [B, ..] (those of `batched`) and [..] of a body that runs for every example while its results are kept
/// for the examples of `kept` [B] alone. Of the other examples derivatives are 0, also where those of the body are not
/// finite. Where examples share an operand with a derivative, whose cotangent sums over them, the others run with the
/// operands of an example that is kept.
Exprs operands_of_kept(Graph& g, Expr kept, const Exprs& operands, const Mask& batched);

// -- nodes --

/// Adds a node and returns all its results.
Exprs add_node(Graph& g, OpBox op, const Exprs& operands);
Exprs concat_exprs(std::initializer_list<Exprs> parts);
/// The marked elements of `all`.
template <class T>
std::vector<T> marked(const std::vector<T>& all, const Mask& marks) {
  std::vector<T> out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (marks[i]) out.push_back(all[i]);
  return out;
}
/// x with axes 0 and 1 exchanged.
Expr swap_leading(Graph& g, Expr x);

}  // namespace rlx
