// fuse-swiglu: fuses silu(gate) * up over the two halves of one value.
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/match.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

constexpr std::string_view kSwigluPattern = "swiglu";

void fuse_matmul(GraphRewriter& r, const PassContext& context, NodeId product) {
  const Graph& g = r.source();
  const UseIndex& uses = r.uses();
  const std::vector<Value>& in = g.node(product).inputs;
  auto miss = [&](MissReason reason, std::string detail, std::string hint = {}) {
    context.missed(kSwigluPattern, g, product, reason, std::move(detail), std::move(hint));
  };
  for (std::size_t i = 0; i < 2; ++i) {
    const Value activated = in[i], up = in[1 - i];
    const Node* silu = as_activation(g, activated, ActivationKind::Silu);
    if (!silu || activated == up) continue;
    const Value gated = silu->inputs[0];
    if (uses.is_output(activated))
      return miss(MissReason::IsOutput, concat_text(activated, " is an output of the graph"));
    if (!uses.single_use(activated))
      return miss(MissReason::MultiConsumer, concat_text(activated, " has ", uses.use_count(activated), " readers"));
    std::optional<AxisRange> gate = axis_range(g, gated), other = axis_range(g, up);
    if (!gate || !other || gate->source != other->source)
      return miss(MissReason::SwigluNotSharedInput,
                  concat_text("gate ", gated, " and up ", up, " are not the halves of one value"),
                  "give both matmuls the same x, and make their weights params");
    for (Value half : {gated, up}) {
      if (uses.is_output(half)) return miss(MissReason::IsOutput, concat_text(half, " is an output of the graph"));
      if (!uses.single_use(half))
        return miss(MissReason::MultiConsumer, concat_text(half, " has ", uses.use_count(half), " readers"));
    }
    const Shape& whole = g.shape(gate->source);
    if (gate->axis != whole.rank() - 1 || other->axis != gate->axis)
      return miss(MissReason::AxisNotLast, concat_text("the halves of ", whole, " are along axis ", gate->axis),
                  "put gate and up side by side in the last axis");
    const bool gate_first = gate->start.is_static(0);
    const AxisRange& first = gate_first ? *gate : *other;
    const AxisRange& second = gate_first ? *other : *gate;
    if (!first.start.is_static(0) || !(second.start == first.limit) || !(second.limit == whole.dim(-1)) ||
        !(first.limit + first.limit == whole.dim(-1)))
      return miss(MissReason::ShapeMismatch, concat_text("[", first.start, ", ", first.limit, ") and [", second.start,
                                                         ", ", second.limit, ") are not the two halves of ", whole));
    Expr fused = r.stage().add(ops::FusedSwiGLU{gate_first, {}}, {r.expr(gate->source)});
    if (const char* why = context.refuses(r, fused, Value(product)))
      return miss(MissReason::NotClaimed, concat_text("the target does not claim fused_swiglu for ", whole, ": ", why));
    r.replace(Value(product), fused);
    context.fused(kSwigluPattern);
    return;
  }
}

std::optional<Graph> run_fuse_swiglu(const Graph& g, const PassContext& context) {
  if (!context.claims->has(OpKind::FusedSwiGLU)) return std::nullopt;
  GraphRewriter r(g);
  for (NodeId id : r.nodes()) {
    const auto* mul = g.node(id).op.get_if<ops::Binary>();
    if (mul && mul->fn == BinaryKind::Mul) fuse_matmul(r, context, id);
  }
  if (!r.changed()) return std::nullopt;
  return r.commit(fuse_swiglu.name).graph;
}

}  // namespace

const Pass fuse_swiglu{
    "fuse-swiglu",
    "Joins silu(gate) * up over the two halves of the last axis of one value; gate may come first or second. Legal: "
    "nothing else reads the halves or the activated gate. merge-shared-input-dots turns two matmuls into such halves.",
    run_fuse_swiglu};

}  // namespace rlx
