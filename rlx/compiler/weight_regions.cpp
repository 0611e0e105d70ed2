// Traces weight matrices through bodies, and through ops that move, widen or dequantize their elements. The result says
// from where a packed layout can be made without the row-major matrix in between.
#include "rlx/compiler/weight_regions.h"

#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {
namespace {

/// Traces one matrix. `index` is its number in a stack: along the first axis of a batched matmul's weight, or the
/// iteration of a scan. The trace passes only through nodes that `known` marks (`pure` or `loop_invariant`).
class RegionTracer {
 public:
  RegionTracer(std::int64_t index, std::vector<bool> WeightScope::*known) : index_(index), known_(known) {}

  void trace(const WeightScope& scope, Value matrix, int n_axis) {
    const std::int64_t columns = scope.graph->shape(matrix).dim(n_axis).value();
    follow(scope, WeightRegion{matrix, 1 - n_axis, n_axis, {0, 0}, columns});
  }
  // `matrices` has rank 3: axis 0 counts the matrices, and `n_axis` is 1 or 2.
  void trace_of_stack(const WeightScope& scope, Value matrices, int n_axis) {
    const std::int64_t columns = scope.graph->shape(matrices).dim(n_axis).value();
    follow(scope, WeightRegion{matrices, 3 - n_axis, n_axis, {index_, 0, 0}, columns});
  }

  std::vector<WeightRegion> found;
  const WeightScope* stack = nullptr;  // the outermost scan body that receives one slice in each iteration
  bool nested_rows = false;            // a scan body within `stack` receives slices too

 private:
  // Maps the region of a node's result to its operand, and goes on there. Stops at a node through which a region has no
  // image. Each branch handles one kind of op: concat continues in its operands, the others fall through to the end.
  void follow(const WeightScope& scope, WeightRegion r) {
    const Graph& g = *scope.graph;
    const Node& n = g.node(r.value.node);
    if (scope.parent && n.kind() == OpKind::Input) return follow_out(scope, std::move(r));
    if (n.num_results() != 1 || n.inputs.empty() || !(scope.*known_)[r.value.node.index])
      return stop(scope, std::move(r));
    const Shape& shape = n.shape();
    if (const auto* concat = n.op.get_if<ops::Concat>()) {
      if (concat->axis == r.k_axis) return stop(scope, std::move(r));
      return follow_parts(scope, std::move(r), n, static_cast<int>(concat->axis));
    }
    if (const auto* transpose = n.op.get_if<ops::Transpose>()) {
      if (is_block_scheme(r.scheme) && transpose->perm.back() != shape.rank() - 1) return stop(scope, std::move(r));
      std::vector<std::int64_t> start(r.start.size());
      for (std::size_t i = 0; i < start.size(); ++i) start[static_cast<std::size_t>(transpose->perm[i])] = r.start[i];
      r.k_axis = static_cast<int>(transpose->perm[static_cast<std::size_t>(r.k_axis)]);
      r.n_axis = static_cast<int>(transpose->perm[static_cast<std::size_t>(r.n_axis)]);
      r.start = std::move(start);
    } else if (const auto* slice = n.op.get_if<ops::Slice>(); slice && has_static_unit_stride(*slice)) {
      std::vector<std::int64_t> starts(r.start.size());
      for (std::size_t i = 0; i < starts.size(); ++i) starts[i] = slice->starts[i].value();
      if (is_block_scheme(r.scheme)) {
        const BlockLayout& l = block_layout(r.scheme);
        if (starts.back() % l.bytes != 0) return stop(scope, std::move(r));
        starts.back() = starts.back() / l.bytes * l.elements;
      }
      for (std::size_t i = 0; i < starts.size(); ++i) r.start[i] += starts[i];
    } else if (n.op.is<ops::Reshape>()) {
      if (!follow_reshape(r, shape, g.shape(n.inputs[0]))) return stop(scope, std::move(r));
    } else if (const auto* dequantize = n.op.get_if<ops::Dequantize>()) {
      // A run does not pack blocks: what it dequantizes itself stays quantized for its matmuls.
      if (known_ != &WeightScope::pure || !begins_at_block(r, *dequantize)) return stop(scope, std::move(r));
      r.scheme = dequantize->scheme;
    } else if (!is_widening_cast(n, shape.dtype(), g.shape(n.inputs[0]).dtype())) {
      return stop(scope, std::move(r));
    }
    r.value = n.inputs[0];
    follow(scope, std::move(r));
  }

  // Traces into the operands of a concat that hold the region. Along the columns of the region these may be several
  // operands. Along any other axis the region has one index, so it is one operand.
  void follow_parts(const WeightScope& scope, WeightRegion r, const Node& n, int along) {
    const auto axis = static_cast<std::size_t>(along);
    std::int64_t first = r.start[axis], remaining = along == r.n_axis ? r.columns : 1;
    for (Value part : n.inputs) {
      const std::int64_t extent = scope.graph->shape(part).dim(along).value();
      if (const std::int64_t take = std::min(remaining, extent - first); take > 0) {
        WeightRegion in_part = r;
        in_part.value = part;
        in_part.start[axis] = first;
        if (along == r.n_axis) in_part.columns = take;
        follow(scope, std::move(in_part));
        remaining -= take;
      }
      first = std::max<std::int64_t>(0, first - extent);
    }
  }

  // Goes from an Input of a body to the operand outside the body.
  void follow_out(const WeightScope& scope, WeightRegion r) {
    const WeightScope::Source from = scope.source(r.value.node);
    if (from.slice) {
      nested_rows = nested_rows || (stack && stack != &scope);
      stack = &scope;
      r.start.insert(r.start.begin(), index_);
      ++r.k_axis, ++r.n_axis;
    }
    r.value = scope.parent->graph->node(scope.node).inputs[from.operand];
    follow(*scope.parent, std::move(r));
  }

  // Ends the trace at this value. A value that a body computes cannot be prepared before the run, so its region has an
  // empty value.
  void stop(const WeightScope& scope, WeightRegion r) {
    if (scope.parent) r.value = Value{};
    found.push_back(std::move(r));
  }

  static bool has_static_unit_stride(const ops::Slice& s) {
    const auto one = [](std::int64_t step) { return step == 1; };
    const auto fixed = [](const Dim& d) { return d.is_static(); };
    return std::all_of(s.strides.begin(), s.strides.end(), one) && std::all_of(s.starts.begin(), s.starts.end(), fixed);
  }

  // True when the quantized blocks lie along k and the region begins at the start of a block.
  static bool begins_at_block(const WeightRegion& r, const ops::Dequantize& op) {
    return is_block_scheme(op.scheme) && op.dtype == DType::F32 && !is_block_scheme(r.scheme) &&
           r.k_axis == static_cast<int>(r.start.size()) - 1 && r.start.back() % block_layout(op.scheme).elements == 0;
  }

  static bool is_widening_cast(const Node& n, DType to, DType from) {
    return n.kind() == OpKind::Cast && to == DType::F32 && (from == DType::BF16 || from == DType::F16);
  }

  // Follows a reshape that only adds or drops axes of one element. `to` is the shape of its result, `from` that of its
  // operand.
  static bool follow_reshape(WeightRegion& r, const Shape& to, const Shape& from) {
    std::vector<std::int64_t> start(static_cast<std::size_t>(from.rank()), 0);
    int k_axis = -1, n_axis = -1, t = 0;
    for (int f = 0; f < from.rank(); ++f) {
      if (from.dim(f).is_static(1)) continue;
      while (t < to.rank() && to.dim(t).is_static(1)) ++t;
      if (t == to.rank() || !(to.dim(t) == from.dim(f))) return false;
      start[static_cast<std::size_t>(f)] = r.start[static_cast<std::size_t>(t)];
      if (t == r.k_axis) k_axis = f;
      if (t == r.n_axis) n_axis = f;
      ++t;
    }
    if (k_axis < 0 || n_axis < 0) return false;
    r.k_axis = k_axis, r.n_axis = n_axis;
    r.start = std::move(start);
    return true;
  }

  std::int64_t index_;
  std::vector<bool> WeightScope::*known_;
};

// The most matrices of a stack. Larger stacks do not occur and would be slow to trace.
constexpr std::int64_t kMostStacked = 1024;

bool all_static(const Node& n) {
  return std::all_of(n.shapes.begin(), n.shapes.end(), [](const Shape& s) { return s.is_static(); });
}

// For a body: marks the values computed from Inputs whose operands are `known` outside. With `rows`, slices of known
// operands (the xs of a scan) count too. Carries change in each iteration, so they do not count. Nor do Constants: they
// belong to the body, so the program's graph has no value to prepare from.
std::vector<bool> known_in_body(const WeightScope& scope, std::vector<bool> WeightScope::*known, bool rows) {
  const Graph& g = *scope.graph;
  const Node& control = scope.parent->graph->node(scope.node);
  const std::optional<LoopParts> loop = loop_parts(control.op);
  std::vector<bool> found(g.num_nodes(), false);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    if (!all_static(n)) continue;
    if (n.kind() == OpKind::Input) {
      const WeightScope::Source from = scope.source(NodeId{i});
      const bool carry = loop && from.operand >= loop->first_carry() && from.operand < loop->first_x();
      found[i] = !carry && (rows || !from.slice) && (scope.parent->*known)[control.inputs[from.operand].node.index];
    } else if (!n.inputs.empty() && !is_ordered(n.op)) {
      found[i] = std::all_of(n.inputs.begin(), n.inputs.end(), [&](Value v) { return found[v.node.index]; });
    }
  }
  return found;
}

}  // namespace

std::int64_t WeightScope::iterations() const {
  std::int64_t all = 1;
  for (const WeightScope* body = this; body->parent; body = body->parent) {
    const OpBox& op = body->parent->graph->node(body->node).op;
    if (op.is<ops::While>()) return kUnknownIterations;
    const auto* scan = op.get_if<ops::Scan>();
    if (!scan) continue;
    const Dim& length = scan->length[0];
    if (!length.is_static() || __builtin_mul_overflow(all, length.value(), &all)) return kUnknownIterations;
  }
  return all;
}

WeightScope::Source WeightScope::source(NodeId input) const {
  const auto i = static_cast<std::uint32_t>(std::lower_bound(inputs.begin(), inputs.end(), input) - inputs.begin());
  const OpBox& op = parent->graph->node(node).op;
  if (op.is<ops::If>()) return {i + 1, false};
  const std::optional<LoopParts> loop = loop_parts(op);
  return {i, loop && i >= loop->first_x()};
}

std::vector<std::unique_ptr<WeightScope>> weight_scopes(const Graph& g, std::vector<bool> pure, const Target& target) {
  std::vector<std::unique_ptr<WeightScope>> scopes;
  std::vector<bool> loop_invariant(g.num_nodes());
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) loop_invariant[i] = all_static(g.nodes()[i]);
  scopes.push_back(std::make_unique<WeightScope>(WeightScope{&g, std::move(pure), std::move(loop_invariant)}));
  for (std::size_t s = 0; s < scopes.size(); ++s) {
    const Graph& outer = *scopes[s]->graph;
    for (std::uint32_t i = 0; i < outer.num_nodes(); ++i) {
      const Node& n = outer.nodes()[i];
      // Nodes that depend on weights alone run in the prepare graph. Calls were inlined by an earlier pass.
      if (scopes[s]->pure[i] || !(n.op.is<ops::If>() || loop_parts(n.op))) continue;
      const bool on_own_device = target.host_controlled(outer, NodeId{i}) ||
                                 (target.plans_bodies(outer, NodeId{i}) && target.device_of(outer, NodeId{i}, 0) == 0);
      if (!on_own_device) continue;
      for (const Subgraph& graph : body_graphs(n.op)) {
        auto body = std::make_unique<WeightScope>(
            WeightScope{graph.get(), {}, {}, scopes[s].get(), NodeId{i}, scopes.size(), graph->leaves(OpKind::Input)});
        body->pure = known_in_body(*body, &WeightScope::pure, true);
        body->loop_invariant = known_in_body(*body, &WeightScope::loop_invariant, false);
        scopes.push_back(std::move(body));
      }
    }
  }
  return scopes;
}

std::vector<std::int64_t> element_dims(const WeightRegion& r, const Shape& of) {
  std::vector<std::int64_t> dims = of.static_dims();
  if (!is_block_scheme(r.scheme)) return dims;
  const BlockLayout& l = block_layout(r.scheme);
  dims.back() = dims.back() / l.bytes * l.elements;
  return dims;
}

std::optional<WeightMatrices> trace_stack(const WeightScope& scope, Value stack, int n_axis) {
  const Dim& count = scope.graph->shape(stack).dim(0);
  if (scope.parent || !count.is_static() || count.value() < 2 || count.value() > kMostStacked) return std::nullopt;
  WeightMatrices all;
  all.count = count.value();
  for (std::int64_t i = 0; i < all.count; ++i) {
    RegionTracer tracer(i, &WeightScope::pure);
    tracer.trace_of_stack(scope, stack, n_axis);
    for (WeightRegion& r : tracer.found) all.regions.push_back(std::move(r));
  }
  return all;
}

std::optional<WeightMatrices> trace_weight(const WeightScope& scope, Value matrix, int n_axis) {
  WeightMatrices all;
  // The trace of the first matrix finds whether there is a stack, and so how many matrices follow.
  for (std::int64_t i = 0; i < all.count; ++i) {
    RegionTracer tracer(i, &WeightScope::pure);
    tracer.trace(scope, matrix, n_axis);
    if (tracer.nested_rows) return std::nullopt;
    if (tracer.stack && i == 0) {
      all.stack = tracer.stack;
      const Dim& length = tracer.stack->parent->graph->node(tracer.stack->node).op.as<ops::Scan>().length[0];
      if (!length.is_static() || length.value() < 2 || length.value() > kMostStacked) return std::nullopt;
      all.count = length.value();
    }
    for (WeightRegion& r : tracer.found) all.regions.push_back(std::move(r));
  }
  return all;
}

WeightMatrices trace_loop_invariant(const WeightScope& scope, Value matrix, int n_axis) {
  RegionTracer tracer(0, &WeightScope::loop_invariant);
  tracer.trace(scope, matrix, n_axis);
  return {std::move(tracer.found)};
}

}  // namespace rlx
