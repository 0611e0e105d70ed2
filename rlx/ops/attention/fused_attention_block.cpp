// FusedAttentionBlock: packed projection, attention and output projection in one op. Composite.
#include "rlx/ops/attention/attention_core.h"

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/rope.h"

namespace rlx {
namespace {

struct FusedAttentionBlockRules {
  static std::uint32_t present(const void* op) {
    const auto& o = *static_cast<const ops::FusedAttentionBlock*>(op);
    return (o.has_bias ? 1U << 3 | 1U << 4 : 0) | (takes_mask(o.mask) ? 1U << 5 : 0) |
           (o.has_rope ? 1U << 6 | 1U << 7 : 0);
  }
  static AttentionSpec spec(const ops::FusedAttentionBlock& op) {
    return {op.num_heads, op.kv_heads, op.head_dim, op.head_dim,       op.mask,
            op.window,    op.scale,    op.softcap,  HeadLayout::Merged};
  }
  static ops::Rope rope(const ops::FusedAttentionBlock& op) {
    return {op.head_dim, op.n_rot == 0 ? op.head_dim : op.n_rot, op.pairing, HeadLayout::Merged, false, {}};
  }
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::FusedAttentionBlock>();
    const AttentionSpec s = spec(op);
    if (auto e = check_attention_attrs(c, s)) return *e;
    const Shape &x = c.input(0), &w_qkv = c.input(1), &w_out = c.input(2);
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (auto e = c.check_same_dtype(0, op.has_bias ? 5 : 3)) return *e;
    if (x.rank() != 3) return c.error("x must be [B, S, E], got ", x);
    const Dim q_width = Dim(s.num_heads) * Dim(s.head_dim),
              qkv_width = q_width + Dim(2) * Dim(s.kv_heads) * Dim(s.head_dim);
    if (w_qkv.rank() != 2 || !(w_qkv.dim(0) == x.dim(2)) || !(w_qkv.dim(1) == qkv_width))
      return c.error("w_qkv must be ", dims_text({x.dim(2), qkv_width}), ", got ", w_qkv);
    if (w_out.rank() != 2 || !(w_out.dim(0) == q_width))
      return c.error("w_out must be [", q_width, ", E'], got ", w_out);
    if (op.has_bias) {
      if (const Shape& b = c.input("b_qkv"); b.dims() != Dims{qkv_width})
        return c.error("b_qkv must be [", qkv_width, "], got ", b);
      if (const Shape& b = c.input("b_out"); b.dims() != Dims{w_out.dim(1)})
        return c.error("b_out must be [", w_out.dim(1), "], got ", b);
    }
    if (c.has("mask"))
      if (auto e = check_attention_mask(c, s, c.input("mask"), x.dim(0), x.dim(1), x.dim(1))) return *e;
    if (op.has_rope) {  // the rule of Rope checks the tables
      const Shape shapes[] = {Shape({x.dim(0), x.dim(1), q_width}, x.dtype()), c.input("cos"), c.input("sin")};
      auto turned = infer_shapes(rope(op), shapes);
      if (!turned) return c.error("its ", turned.error().message);
    }
    return make_shapes(Shape({x.dim(0), x.dim(1), w_out.dim(1)}, x.dtype()));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::FusedAttentionBlock>();
    const std::int64_t q_width = op.num_heads * op.head_dim, kv_width = op.kv_heads * op.head_dim;
    Expr qkv = g.matmul(c.input(0), c.input(1));
    if (op.has_bias) qkv = qkv + c.input("b_qkv");
    Expr q = g.narrow(qkv, -1, 0, q_width), k = g.narrow(qkv, -1, q_width, kv_width),
         v = g.narrow(qkv, -1, q_width + kv_width, kv_width);
    if (op.has_rope) {
      q = g.rope(q, c.input("cos"), c.input("sin"), rope(op));
      k = g.rope(k, c.input("cos"), c.input("sin"), rope(op));
    }
    const ops::Attention attention{op.num_heads, op.kv_heads, op.head_dim, op.mask,
                                   op.window,    op.scale,    op.softcap,  HeadLayout::Merged};
    std::optional<Operand> mask;
    if (c.has("mask")) mask = c.input("mask");
    Expr y = g.matmul(g.attention(q, k, v, attention, mask), c.input(2));
    c.set_result(op.has_bias ? y + c.input("b_out") : y);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    const auto& op = c.op<ops::FusedAttentionBlock>();
    auto value = [](const Dim& d) { return static_cast<double>(d.value()); };
    const double rows = value(c.inputs[0].dim(0)) * value(c.inputs[0].dim(1));
    const double dense =
        static_cast<double>(c.inputs[1].num_elements()) + static_cast<double>(c.inputs[2].num_elements());
    const double scores = rows * value(c.inputs[0].dim(1)) * static_cast<double>(op.num_heads);
    return c.with_flops(2 * rows * dense + scores * (4 * static_cast<double>(op.head_dim) + 6));
  }
  static constexpr AttrField attrs[] = {
      field<&ops::FusedAttentionBlock::num_heads>("num_heads"), field<&ops::FusedAttentionBlock::kv_heads>("kv_heads"),
      field<&ops::FusedAttentionBlock::head_dim>("head_dim"),   field<&ops::FusedAttentionBlock::mask>("mask"),
      field<&ops::FusedAttentionBlock::window>("window"),       field<&ops::FusedAttentionBlock::scale>("scale"),
      field<&ops::FusedAttentionBlock::softcap>("softcap"),     field<&ops::FusedAttentionBlock::has_bias>("has_bias"),
      field<&ops::FusedAttentionBlock::has_rope>("has_rope"),   field<&ops::FusedAttentionBlock::n_rot>("n_rot"),
      field<&ops::FusedAttentionBlock::pairing>("pairing")};
};

}  // namespace

constinit const OpDef ops::FusedAttentionBlock::def{
    .kind = kind,
    .name = "fused_attention_block",
    .what = "The joined projection of q, k and v, attention, and the output projection.",
    .inputs = inputs("x", "w_qkv", "w_out", maybe("b_qkv"), maybe("b_out"), maybe("mask"), maybe("cos"), maybe("sin"))
                  .present_when(FusedAttentionBlockRules::present),
    .attrs = FusedAttentionBlockRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Compute,
    .infer = FusedAttentionBlockRules::infer,
    .decompose = FusedAttentionBlockRules::decompose,
    .vjp = FusedAttentionBlockRules::vjp,
    .jvp = FusedAttentionBlockRules::jvp,
    .batch = FusedAttentionBlockRules::batch,
    .reference = by_decomposition,
    .cost = FusedAttentionBlockRules::cost};

}  // namespace rlx
