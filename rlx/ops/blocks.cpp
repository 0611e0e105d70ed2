// HIR blocks: linear layers, residual norms and BERT's encoder layer. FusionPolicy::Direct lowers them to fused ops,
// Fusable to chains of primitives that the fusion passes can join.
#include <algorithm>
#include <cmath>

#include "rlx/ir/functions.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/ops/attention/attention_core.h"
#include "rlx/ops/elementwise/elementwise.h"
#include "rlx/ops/quant/block_parts.h"

namespace rlx {
namespace {

// -- linear --

struct LinearRules {
  static std::uint32_t present(const void* op) { return static_cast<const ops::Linear*>(op)->has_bias ? 1U << 2 : 0; }
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Linear>();
    if (auto e = c.check_same_dtype(0, c.num_inputs())) return *e;
    if (auto e = check_activation(c, op.activation)) return *e;
    auto y = infer_linear(c, 1, "w");
    if (!y) return y.error();
    if (c.has("bias"))
      if (auto e = check_dims(c, c.index("bias"), "bias", {c.input(1).dim(1)})) return *e;
    return make_shapes(*y);
  }
  static void decompose(DecomposeContext& c) {
    const auto& op = c.op<ops::Linear>();
    c.set_result(linear_into(c, c.input("x"), c.input("w"), c.optional_input("bias"), op.activation));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    return c.with_flops(2 * c.elements() * static_cast<double>(c.inputs[0].dim(-1).value()));
  }
  static constexpr AttrField attrs[] = {field<&ops::Linear::activation>("activation"),
                                        field<&ops::Linear::has_bias>("has_bias")};
};

struct LinearFusedRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto e = c.check_same_dtype(0, 3)) return *e;
    if (auto e = check_activation(c, c.op<ops::LinearFused>().activation)) return *e;
    auto y = infer_linear(c, 1, "w");
    if (!y) return y.error();
    if (auto e = check_dims(c, 2, "bias", {c.input(1).dim(1)})) return *e;
    return make_shapes(*y);
  }
  static void decompose(DecomposeContext& c) {
    c.set_result(fused_linear(c.graph(), c.input(0), c.input(1), c.input(2), c.op<ops::LinearFused>().activation));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) { return LinearRules::cost(c); }
  static constexpr AttrField attrs[] = {field<&ops::LinearFused::activation>("activation")};
};

struct SharedLinearPairRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto e = c.check_same_dtype(0, 3)) return *e;
    auto y1 = infer_linear(c, 1, "w1");
    if (!y1) return y1.error();
    auto y2 = infer_linear(c, 2, "w2");
    if (!y2) return y2.error();
    return make_shapes(*y1, *y2);
  }
  static void decompose(DecomposeContext& c) {
    auto y = shared_linear(c, c.input(0), {c.input(1), c.input(2)}, {});
    c.set_result(0, y[0]);
    c.set_result(1, y[1]);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    return c.with_flops(2 * (c.elements(0) + c.elements(1)) * static_cast<double>(c.inputs[0].dim(-1).value()));
  }
};

// -- residual norms --

template <class Op>
struct ResidualNormRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (auto e = c.check_same_dtype(0, 4)) return *e;
    if (auto e = check_eps(c, c.op<Op>().eps)) return *e;
    if (x.rank() < 1) return c.error("x must have an axis to normalise, got ", x);
    if (auto e = check_dims(c, 1, "the residual", x.dims())) return *e;
    if (auto e = check_dims(c, 2, "gamma", {x.dim(-1)})) return *e;
    if (auto e = check_dims(c, 3, "beta", {x.dim(-1)})) return *e;
    return make_shapes(x);
  }
  static void decompose(DecomposeContext& c) {
    const double eps = c.op<Op>().eps;
    if constexpr (std::is_same_v<Op, ops::ResidualLayerNorm>)
      c.set_result(residual_layer_norm_into(c, c.input(0), c.input(1), c.input(2), c.input(3), eps));
    else
      c.set_result(residual_rms_norm_into(c, c.input(0), c.input(1), c.input(2), c.input(3), eps).first);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static constexpr AttrField attrs[] = {field<&Op::eps>("eps")};
};
using ResidualRmsNormRules = ResidualNormRules<ops::ResidualRmsNorm>;
using ResidualLayerNormRules = ResidualNormRules<ops::ResidualLayerNorm>;

// -- whole layers --

// Checks head counts, x [B, S, E] and its mask.
std::optional<Diagnostic> check_layer(const InferContext& c, const AttentionSpec& spec, int num_dense) {
  if (auto e = check_attention_attrs(c, spec)) return e;
  if (spec.mask == MaskKind::SlidingWindow)
    return c.attr_error("mask kind sliding_window is not supported here: the op has no window attribute");
  const Shape& x = c.input(0);
  if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
  if (auto e = c.check_same_dtype(0, num_dense)) return e;
  if (x.rank() != 3) return c.error("x must be [B, S, E], got ", x);
  if (c.has("mask")) return check_attention_mask(c, spec, c.input("mask"), x.dim(0), x.dim(1), x.dim(1));
  return std::nullopt;
}

struct EncoderBlockRules {
  static AttentionSpec spec(const ops::EncoderBlock& op) {
    return {op.num_heads, op.num_heads, op.head_dim,       op.head_dim, op.mask, 0,
            std::nullopt, std::nullopt, HeadLayout::Merged};
  }
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::EncoderBlock>();
    if (auto e = check_layer(c, spec(op), 17)) return *e;
    if (auto e = check_activation(c, op.activation)) return *e;
    if (auto e = check_eps(c, op.eps)) return *e;
    const Shape& x = c.input(0);
    const Dim width = x.dim(2), inner = Dim(op.num_heads) * Dim(op.head_dim);
    const Dim ffn = c.input(11).rank() == 2 ? c.input(11).dim(1) : Dim(0);
    const struct {
      const char* name;
      Dims dims;
    } operands[] = {{"w_q", {width, inner}},  {"b_q", {inner}},      {"w_k", {width, inner}}, {"b_k", {inner}},
                    {"w_v", {width, inner}},  {"b_v", {inner}},      {"w_o", {inner, width}}, {"b_o", {width}},
                    {"ln1_gamma", {width}},   {"ln1_beta", {width}}, {"w_up", {width, ffn}},  {"b_up", {ffn}},
                    {"w_down", {ffn, width}}, {"b_down", {width}},   {"ln2_gamma", {width}},  {"ln2_beta", {width}}};
    for (int i = 0; i < 16; ++i)
      if (auto e = check_dims(c, i + 1, operands[i].name, operands[i].dims)) return *e;
    return make_shapes(x);
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::EncoderBlock>();
    Expr x = c.input(0);
    auto qkv = shared_linear(c, x, {c.input(1), c.input(3), c.input(5)}, {c.input(2), c.input(4), c.input(6)});
    std::optional<Operand> mask;
    if (c.has("mask")) mask = c.input("mask");
    Expr attended = g.attention(
        qkv[0], qkv[1], qkv[2],
        ops::Attention{op.num_heads, op.num_heads, op.head_dim, op.mask, 0, {}, {}, HeadLayout::Merged}, mask);
    Expr h = residual_layer_norm_into(c, linear_into(c, attended, c.input(7), c.input(8)), x, c.input(9), c.input(10),
                                      op.eps);
    Expr up = linear_into(c, h, c.input(11), c.input(12), op.activation);
    Expr down = linear_into(c, up, c.input(13), c.input(14));
    c.set_result(residual_layer_norm_into(c, down, h, c.input(15), c.input(16), op.eps));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    return block_cost(c, c.op<ops::EncoderBlock>().num_heads, c.op<ops::EncoderBlock>().head_dim);
  }
  static constexpr AttrField attrs[] = {field<&ops::EncoderBlock::num_heads>("num_heads"),
                                        field<&ops::EncoderBlock::head_dim>("head_dim"),
                                        field<&ops::EncoderBlock::mask>("mask"), field<&ops::EncoderBlock::eps>("eps"),
                                        field<&ops::EncoderBlock::activation>("activation")};
};

}  // namespace

constinit const OpDef ops::Linear::def{.kind = kind,
                                       .name = "linear",
                                       .what = "act(x w + bias).",
                                       .inputs = inputs("x", "w", maybe("bias")).present_when(LinearRules::present),
                                       .attrs = LinearRules::attrs,
                                       .level = Level::Hir,
                                       .leaf = LeafKind::None,
                                       .elementwise = ElementwiseKind::No,
                                       .view = ViewKind::None,
                                       .precision = PrecisionCategory::Compute,
                                       .infer = LinearRules::infer,
                                       .decompose = LinearRules::decompose,
                                       .vjp = LinearRules::vjp,
                                       .jvp = LinearRules::jvp,
                                       .batch = LinearRules::batch,
                                       .reference = by_decomposition,
                                       .cost = LinearRules::cost};

constinit const OpDef ops::LinearFused::def{.kind = kind,
                                            .name = "linear_fused",
                                            .what = "act(x w + bias), always lowered to fused_dot.",
                                            .inputs = inputs("x", "w", "bias"),
                                            .attrs = LinearFusedRules::attrs,
                                            .level = Level::Hir,
                                            .leaf = LeafKind::None,
                                            .elementwise = ElementwiseKind::No,
                                            .view = ViewKind::None,
                                            .precision = PrecisionCategory::Compute,
                                            .infer = LinearFusedRules::infer,
                                            .decompose = LinearFusedRules::decompose,
                                            .vjp = LinearFusedRules::vjp,
                                            .jvp = LinearFusedRules::jvp,
                                            .batch = LinearFusedRules::batch,
                                            .reference = by_decomposition,
                                            .cost = LinearFusedRules::cost};

constinit const OpDef ops::SharedLinearPair::def{.kind = kind,
                                                 .name = "shared_linear_pair",
                                                 .what = "x w1 and x w2.",
                                                 .inputs = inputs("x", "w1", "w2"),
                                                 .attrs = {},
                                                 .level = Level::Hir,
                                                 .leaf = LeafKind::None,
                                                 .elementwise = ElementwiseKind::No,
                                                 .view = ViewKind::None,
                                                 .precision = PrecisionCategory::Compute,
                                                 .infer = SharedLinearPairRules::infer,
                                                 .decompose = SharedLinearPairRules::decompose,
                                                 .vjp = SharedLinearPairRules::vjp,
                                                 .jvp = SharedLinearPairRules::jvp,
                                                 .batch = SharedLinearPairRules::batch,
                                                 .reference = by_decomposition,
                                                 .cost = SharedLinearPairRules::cost};

constinit const OpDef ops::ResidualRmsNorm::def{.kind = kind,
                                                .name = "residual_rms_norm",
                                                .what = "rms_norm of x + residual over the last axis.",
                                                .inputs = inputs("x", "residual", "gamma", "beta"),
                                                .attrs = ResidualRmsNormRules::attrs,
                                                .level = Level::Hir,
                                                .leaf = LeafKind::None,
                                                .elementwise = ElementwiseKind::No,
                                                .view = ViewKind::None,
                                                .precision = PrecisionCategory::Reduction,
                                                .infer = ResidualRmsNormRules::infer,
                                                .decompose = ResidualRmsNormRules::decompose,
                                                .vjp = ResidualRmsNormRules::vjp,
                                                .jvp = ResidualRmsNormRules::jvp,
                                                .batch = ResidualRmsNormRules::batch,
                                                .reference = by_decomposition,
                                                .cost = flops_per_element<6>};

constinit const OpDef ops::ResidualLayerNorm::def{.kind = kind,
                                                  .name = "residual_layer_norm",
                                                  .what = "layer_norm of x + residual over the last axis.",
                                                  .inputs = inputs("x", "residual", "gamma", "beta"),
                                                  .attrs = ResidualLayerNormRules::attrs,
                                                  .level = Level::Hir,
                                                  .leaf = LeafKind::None,
                                                  .elementwise = ElementwiseKind::No,
                                                  .view = ViewKind::None,
                                                  .precision = PrecisionCategory::Reduction,
                                                  .infer = ResidualLayerNormRules::infer,
                                                  .decompose = ResidualLayerNormRules::decompose,
                                                  .vjp = ResidualLayerNormRules::vjp,
                                                  .jvp = ResidualLayerNormRules::jvp,
                                                  .batch = ResidualLayerNormRules::batch,
                                                  .reference = by_decomposition,
                                                  .cost = flops_per_element<9>};

constinit const OpDef ops::EncoderBlock::def{
    .kind = kind,
    .name = "encoder_block",
    .what = "BERT's post-norm encoder layer.",
    .inputs = inputs("x", "w_q", "b_q", "w_k", "b_k", "w_v", "b_v", "w_o", "b_o", "ln1_gamma", "ln1_beta", "w_up",
                     "b_up", "w_down", "b_down", "ln2_gamma", "ln2_beta", maybe("mask"))
                  .present_when(mask_present<ops::EncoderBlock, 17>),
    .attrs = EncoderBlockRules::attrs,
    .level = Level::Hir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Compute,
    .infer = EncoderBlockRules::infer,
    .decompose = EncoderBlockRules::decompose,
    .vjp = EncoderBlockRules::vjp,
    .jvp = EncoderBlockRules::jvp,
    .batch = EncoderBlockRules::batch,
    .reference = by_decomposition,
    .cost = EncoderBlockRules::cost};

}  // namespace rlx
