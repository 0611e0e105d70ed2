// fuse-attention-block: the joined projection, slices, attention and output projection become one op.
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/match.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

constexpr std::string_view kAttentionBlockPattern = "attention_block";

// The weight as [K, N].
Expr upright(GraphRewriter& r, const BiasedMatmul& p) {
  Expr w = r.expr(p.weight);
  return p.transposed ? r.stage().transpose(w, {1, 0}) : w;
}

void fuse_attention(GraphRewriter& r, const PassContext& context, NodeId attention) {
  const Graph& g = r.source();
  const UseIndex& uses = r.uses();
  const Node& node = g.node(attention);
  const auto& op = node.op.as<ops::Attention>();
  auto miss = [&](MissReason reason, std::string detail, std::string hint = {}) {
    context.missed(kAttentionBlockPattern, g, attention, reason, std::move(detail), std::move(hint));
  };
  if (op.present.bits != 0)
    return miss(MissReason::NotFused,
                "the attention has lengths or sinks, which fused_attention_block does not support");
  if (op.v_head_dim.value_or(op.head_dim) != op.head_dim)
    return miss(MissReason::ShapeMismatch,
                concat_text("heads of v have ", *op.v_head_dim, " elements, but heads of q have ", op.head_dim));
  if (const Value lse(attention, 1); uses.use_count(lse) != 0 || uses.is_output(lse))
    return miss(uses.is_output(lse) ? MissReason::IsOutput : MissReason::MultiConsumer,
                concat_text("the log-sum-exp ", lse, " of the attention has readers"));
  // q, k and v are slices of one value, in this order and without gaps.
  AxisRange part[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const Value v = node.inputs[i];
    std::optional<AxisRange> range = axis_range(g, v);
    if (!range)
      return miss(MissReason::NotFused, concat_text("operand ", v, " is ", op_text_name(g.node(v.node).op),
                                                    ", not a slice of a joined projection"));
    part[i] = *range;
    if (part[i].source != part[0].source)
      return miss(MissReason::NotFused, concat_text("q and ", v, " are slices of different values"));
    if (!uses.single_use(v))
      return miss(uses.is_output(v) ? MissReason::IsOutput : MissReason::MultiConsumer,
                  concat_text(v, " has other readers than the attention"));
  }
  const Value qkv = part[0].source;
  const Shape& joined = g.shape(qkv);
  const Dim q_width = Dim(op.num_heads) * Dim(op.head_dim), kv_width = Dim(op.kv_heads) * Dim(op.head_dim);
  if (op.layout != HeadLayout::Merged || joined.rank() != 3)
    return miss(MissReason::ShapeMismatch, concat_text("the heads are not in the last axis of ", joined));
  Dim start = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (part[i].axis != 2)
      return miss(MissReason::AxisNotLast, concat_text("q, k and v are slices of axis ", part[i].axis, " of ", joined));
    Dim limit = start + (i == 0 ? q_width : kv_width);
    if (!(part[i].start == start) || !(part[i].limit == limit))
      return miss(MissReason::ShapeMismatch, concat_text("columns [", part[i].start, ", ", part[i].limit, ") of ",
                                                         joined, " should be [", start, ", ", limit, ")"));
    start = limit;
  }
  if (!(start == joined.dim(2)))
    return miss(MissReason::ShapeMismatch, concat_text(joined, " has columns after q, k and v"));
  if (uses.is_output(qkv)) return miss(MissReason::IsOutput, concat_text(qkv, " is an output of the graph"));
  if (uses.use_count(qkv) != 3)
    return miss(MissReason::MultiConsumer, concat_text(qkv, " has ", uses.use_count(qkv), " readers"));
  std::optional<BiasedMatmul> in = biased_product_of(g, uses, qkv);
  if (!in)
    return miss(MissReason::NotFused,
                concat_text(qkv, " is ", op_text_name(g.node(qkv.node).op), ", not a matmul with one weight"));
  // The only matmul that reads the attention.
  const Value attended(attention);
  if (uses.is_output(attended)) return miss(MissReason::IsOutput, concat_text(attended, " is an output of the graph"));
  if (!uses.single_use(attended))
    return miss(MissReason::MultiConsumer, concat_text(attended, " has ", uses.use_count(attended), " readers"));
  std::optional<BiasedMatmul> out = biased_matmul_at(g, uses, uses.uses(attended)[0].user);
  if (!out || out->x != attended)
    return miss(MissReason::NotFused,
                concat_text("the attention is read by ", node_text(g, uses.uses(attended)[0].user)));

  Graph& stage = r.stage();
  const bool has_bias = in->bias || out->bias;
  std::vector<Value> operands{r.expr(in->x), upright(r, *in), upright(r, *out)};
  if (has_bias)  // the op takes both biases or none: a missing one is zeros
    for (const BiasedMatmul* p : {&*in, &*out})
      operands.push_back(p->bias ? r.expr(*p->bias) : stage.expand(stage.scalar(0, joined.dtype()), {p->n}));
  if (node.inputs.size() > 3) operands.push_back(r.expr(node.inputs[3]));
  ops::FusedAttentionBlock block;
  block.num_heads = op.num_heads, block.kv_heads = op.kv_heads, block.head_dim = op.head_dim;
  block.mask = op.mask, block.window = op.window, block.scale = op.scale, block.softcap = op.softcap,
  block.has_bias = has_bias;
  Expr fused = stage.add(block, operands);
  if (const char* why = context.refuses(r, fused, out->result))
    return miss(MissReason::NotClaimed, concat_text("the target does not claim this fused_attention_block: ", why));
  r.replace(out->result, fused);
  context.fused(kAttentionBlockPattern);
}

std::optional<Graph> run_fuse_attention_block(const Graph& g, const PassContext& context) {
  if (!context.claims->has(OpKind::FusedAttentionBlock)) return std::nullopt;
  GraphRewriter r(g);
  for (NodeId id : r.nodes())
    if (g.node(id).kind() == OpKind::Attention) fuse_attention(r, context, id);
  if (!r.changed()) return std::nullopt;
  return r.commit(fuse_attention_block.name).graph;
}

}  // namespace

const Pass fuse_attention_block{"fuse-attention-block",
                                "Joins x w_qkv [+ b], its slices q, k, v, their attention and the output projection [+ "
                                "b]. Legal: merged heads, slices in the order q, k, v "
                                "without gaps, every intermediate read by the pattern alone.",
                                run_fuse_attention_block};

}  // namespace rlx
