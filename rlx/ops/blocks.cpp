// HIR blocks: linear layers, residual norms, BERT's encoder layer and Llama's decoder layer. FusionPolicy::Direct
// lowers them to fused ops, Fusable to chains of primitives that the fusion passes may join.
#include <algorithm>
#include <cmath>

#include "rlx/ir/functions.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/ops/attention_core.h"
#include "rlx/ops/elementwise.h"

namespace rlx {
namespace {

// -- pieces of decompositions --

// The epilogue act(acc + bias) for an accumulator like `acc`.
Subgraph bias_act_epilogue(const Shape& acc, const std::optional<Shape>& bias,
                           std::optional<ActivationKind> activation) {
  auto body = std::make_shared<Graph>("epilogue");
  Expr y = body->input("acc", acc);
  if (bias) y = y + body->input("bias", *bias);
  if (activation) y = body->activation(*activation, y);
  body->set_outputs({y});
  return body;
}

// act(x w + bias) as one FusedDot; x [.., K], w [K, N].
Expr linear_fused(Graph& g, Expr x, Expr w, std::optional<Expr> bias, std::optional<ActivationKind> activation) {
  const std::int64_t last = x.rank() - 1;
  const ops::DotGeneral dims{{last}, {0}, {}, {}};
  if (!bias && !activation) return g.dot_general(x, w, dims);
  Dims acc(x.shape().dims().begin(), x.shape().dims().end() - 1);
  acc.push_back(w.dim(1));
  std::vector<Value> operands{x, w};
  if (bias) operands.push_back(*bias);
  return g.add(ops::FusedDot{dims.lhs_contract,
                             dims.rhs_contract,
                             {},
                             {},
                             bias_act_epilogue(Shape(acc, x.dtype()),
                                               bias ? std::optional(bias->shape()) : std::nullopt, activation)},
               operands);
}

Expr linear_chain(Graph& g, Expr x, Expr w, std::optional<Expr> bias, std::optional<ActivationKind> activation) {
  Expr y = g.matmul(x, w);
  if (bias) y = y + *bias;
  return activation ? g.activation(*activation, y) : y;
}

Expr linear_into(DecomposeContext& c, Expr x, Expr w, std::optional<Expr> bias,
                 std::optional<ActivationKind> activation = std::nullopt) {
  return c.policy() == FusionPolicy::Direct ? linear_fused(c.graph(), x, w, bias, activation)
                                            : linear_chain(c.graph(), x, w, bias, activation);
}

// x times several weights at once; Direct joins the weights along N (a fold at load time) and slices the product.
std::vector<Expr> shared_linear(DecomposeContext& c, Expr x, const std::vector<Expr>& weights,
                                const std::vector<Expr>& biases) {
  Graph& g = c.graph();
  std::vector<Expr> out;
  if (c.policy() == FusionPolicy::Fusable) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      out.push_back(
          linear_chain(g, x, weights[i], biases.empty() ? std::nullopt : std::optional(biases[i]), std::nullopt));
    return out;
  }
  Expr y = linear_fused(g, x, g.concat(weights, 1), biases.empty() ? std::nullopt : std::optional(g.concat(biases, 0)),
                        std::nullopt);
  Dim start = 0;
  for (const Expr& w : weights) {
    out.push_back(g.narrow(y, -1, start, w.dim(1)));
    start = start + w.dim(1);
  }
  return out;
}

Expr residual_layer_norm(DecomposeContext& c, Expr x, Expr residual, Expr gamma, Expr beta, double eps) {
  if (c.policy() == FusionPolicy::Direct)
    return c.graph().add_named(ops::FusedResidualLN{eps, {}},
                               {{"x", x}, {"residual", residual}, {"gamma", gamma}, {"beta", beta}});
  return c.graph().layer_norm(x + residual, gamma, beta, eps);
}

// {RmsNorm(x + residual), x + residual}
std::pair<Expr, Expr> residual_rms_norm(DecomposeContext& c, Expr x, Expr residual, Expr gamma,
                                        std::optional<Expr> beta, double eps) {
  if (c.policy() == FusionPolicy::Direct) {
    std::vector<std::pair<std::string_view, Expr>> operands{{"x", x}, {"residual", residual}, {"gamma", gamma}};
    if (beta) operands.emplace_back("beta", *beta);
    Expr y = c.graph().add_named(ops::FusedResidualRmsNorm{eps, {}}, operands);
    return {y, y.result(1)};
  }
  Expr sum = x + residual;
  return {c.graph().rms_norm(sum, gamma, beta, eps), sum};
}

// -- checks --

// The result shape of x w for x [.., K], w [K, N].
Result<Shape> infer_linear(const InferContext& c, int w_operand, const char* name) {
  const Shape &x = c.input(0), &w = c.input(w_operand);
  if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
  if (x.rank() < 1) return c.error("x must be [.., K], got ", x);
  if (w.rank() != 2 || !(w.dim(0) == x.dim(-1)))
    return c.error(name, " must be [", x.dim(-1), ", N] for x ", x, ", got ", w);
  return x.with_dim(x.rank() - 1, w.dim(1));
}

std::optional<Diagnostic> check_activation(const InferContext& c, std::optional<ActivationKind> activation) {
  if (activation && !contains(function_row(*activation).dtypes, DType::F32))
    return c.attr_error("activation '", enum_name(*activation), "' takes ",
                        dtypes_text(function_row(*activation).dtypes), ", the product is float");
  return std::nullopt;
}

std::optional<Diagnostic> check_eps(const InferContext& c, double eps) {
  if (!(eps >= 0) || !std::isfinite(eps)) return c.attr_error("eps must be a finite number >= 0, got ", eps);
  return std::nullopt;
}

std::optional<Diagnostic> check_dims(const InferContext& c, int operand, const char* name, const Dims& dims) {
  if (c.input(operand).dims() != dims) return c.error(name, " must be ", dims_text(dims), ", got ", c.input(operand));
  return std::nullopt;
}

double rows_of(const Shape& x) {
  return static_cast<double>(x.num_elements()) / std::max(1.0, static_cast<double>(x.dim(-1).value()));
}

// Products of every row of x with the matrices among the operands, plus attention scores over the sequence.
Cost block_cost(const CostContext& c, std::int64_t num_heads, std::int64_t head_dim) {
  const double rows = rows_of(c.inputs[0]);
  double dense = 0;
  for (std::size_t i = 1; i < c.inputs.size(); ++i)
    if (c.inputs[i].rank() == 2 && c.inputs[i].dtype() == c.inputs[0].dtype())
      dense += static_cast<double>(c.inputs[i].num_elements());
  const double scores = rows * static_cast<double>(c.inputs[0].dim(1).value()) * static_cast<double>(num_heads);
  return c.with_flops(2 * rows * dense + scores * (4 * static_cast<double>(head_dim) + 6));
}

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
  static void samples(SampleSet& s) {
    const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
    s.add("plain", {f32({2, 3}), f32({3, 2})}, ops::Linear{std::nullopt, false});
    s.add("bias", {f32({2, 2, 3}), f32({3, 2}), f32({2})}, ops::Linear{std::nullopt, true});
    s.add("bias gelu", {f32({2, 3}), f32({3, 4}), f32({4})}, ops::Linear{ActivationKind::Gelu, true});
    s.add("tanh", {f32({2, 3}), f32({3, 4})}, ops::Linear{ActivationKind::Tanh, false});
    s.add("vector", {f32({3}), f32({3, 2}), f32({2})}, ops::Linear{std::nullopt, true});
    s.add("no rows", {f32({0, 3}), f32({3, 2}), f32({2})}, ops::Linear{ActivationKind::Silu, true});
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
    c.set_result(linear_fused(c.graph(), c.input(0), c.input(1), c.input(2), c.op<ops::LinearFused>().activation));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) { return LinearRules::cost(c); }
  static void samples(SampleSet& s) {
    const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
    s.add("bias", {f32({2, 3}), f32({3, 2}), f32({2})}, ops::LinearFused{std::nullopt});
    s.add("gelu", {f32({2, 2, 3}), f32({3, 2}), f32({2})}, ops::LinearFused{ActivationKind::Gelu});
  }
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
  static void samples(SampleSet& s) {
    const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
    s.add("different widths", {f32({2, 3}), f32({3, 2}), f32({3, 4})}, ops::SharedLinearPair{});
    s.add("rank 3", {f32({2, 1, 3}), f32({3, 2}), f32({3, 2})}, ops::SharedLinearPair{});
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
      c.set_result(residual_layer_norm(c, c.input(0), c.input(1), c.input(2), c.input(3), eps));
    else
      c.set_result(residual_rms_norm(c, c.input(0), c.input(1), c.input(2), c.input(3), eps).first);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static void samples(SampleSet& s) {
    const Shape x({2, 3, 4}, DType::F32), v({4}, DType::F32);
    s.add("rank 3", {x, x, v, v}, Op{1e-3});
    s.add("f64", {Shape({2, 3}, DType::F64), Shape({2, 3}, DType::F64), Shape({3}, DType::F64), Shape({3}, DType::F64)},
          Op{1e-5});
  }
  static constexpr AttrField attrs[] = {field<&Op::eps>("eps")};
};
using ResidualRmsNormRules = ResidualNormRules<ops::ResidualRmsNorm>;
using ResidualLayerNormRules = ResidualNormRules<ops::ResidualLayerNorm>;

// -- whole layers --

// Checks head counts, x [B, S, E] and its mask.
std::optional<Diagnostic> check_layer(const InferContext& c, const AttentionSpec& spec, int num_dense) {
  if (auto e = check_attention_attrs(c, spec)) return e;
  if (spec.mask == MaskKind::SlidingWindow)
    return c.attr_error("mask kind sliding_window has no window attribute here");
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
    Expr h =
        residual_layer_norm(c, linear_into(c, attended, c.input(7), c.input(8)), x, c.input(9), c.input(10), op.eps);
    Expr up = linear_into(c, h, c.input(11), c.input(12), op.activation);
    Expr down = linear_into(c, up, c.input(13), c.input(14));
    c.set_result(residual_layer_norm(c, down, h, c.input(15), c.input(16), op.eps));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    return block_cost(c, c.op<ops::EncoderBlock>().num_heads, c.op<ops::EncoderBlock>().head_dim);
  }
  static void samples(SampleSet& s) {
    auto in = [](int batch, int seq, int e, int inner, int ffn, DType t) {
      const Shape wide({inner}, t), vec({e}, t);
      std::vector<SampleInput> v{Shape({batch, seq, e}, t)};
      for (int i = 0; i < 3; ++i) {
        v.push_back(Shape({e, inner}, t));
        v.push_back(wide);
      }
      for (const Shape& shape : {Shape({inner, e}, t), vec, vec, vec, Shape({e, ffn}, t), Shape({ffn}, t),
                                 Shape({ffn, e}, t), vec, vec, vec})
        v.push_back(shape);
      return v;
    };
    ops::EncoderBlock op;
    op.num_heads = 2, op.head_dim = 2, op.eps = 1e-3;
    s.add("plain", in(1, 2, 3, 4, 5, DType::F64), op);
    op.mask = MaskKind::Custom;
    auto masked = in(2, 2, 4, 4, 3, DType::F32);
    masked.push_back(SampleInput(Shape({2, 1, 1, 2}, DType::F32), Fill::Boolean));
    s.add("mask", std::move(masked), op);
  }
  static constexpr AttrField attrs[] = {field<&ops::EncoderBlock::num_heads>("num_heads"),
                                        field<&ops::EncoderBlock::head_dim>("head_dim"),
                                        field<&ops::EncoderBlock::mask>("mask"), field<&ops::EncoderBlock::eps>("eps"),
                                        field<&ops::EncoderBlock::activation>("activation")};
};

struct LlamaDecoderBlockRules {
  static AttentionSpec spec(const ops::LlamaDecoderBlock& op) {
    return {op.num_heads, op.kv_heads,  op.head_dim,       op.head_dim, op.mask, 0,
            std::nullopt, std::nullopt, HeadLayout::Merged};
  }
  static ops::Rope rope(const ops::LlamaDecoderBlock& op) {
    return {op.head_dim, op.head_dim, RopePairing::Half, HeadLayout::Merged, false};
  }
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::LlamaDecoderBlock>();
    if (auto e = check_layer(c, spec(op), 12)) return *e;
    if (auto e = check_eps(c, op.eps)) return *e;
    const Shape& x = c.input(0);
    const Dim width = x.dim(2), q_width = Dim(op.num_heads) * Dim(op.head_dim),
              kv_width = Dim(op.kv_heads) * Dim(op.head_dim);
    const Dim ffn = c.input(7).rank() == 2 ? c.input(7).dim(1) : Dim(0);
    const struct {
      const char* name;
      Dims dims;
    } operands[] = {{"ln1_gamma", {width}},     {"w_q", {width, q_width}}, {"w_k", {width, kv_width}},
                    {"w_v", {width, kv_width}}, {"w_o", {q_width, width}}, {"ln2_gamma", {width}},
                    {"w_gate", {width, ffn}},   {"w_up", {width, ffn}},    {"w_down", {ffn, width}}};
    for (int i = 0; i < 9; ++i)
      if (auto e = check_dims(c, i + 1, operands[i].name, operands[i].dims)) return *e;
    // The tables are checked by the rule of Rope itself.
    const Shape q({x.dim(0), x.dim(1), q_width}, x.dtype());
    const Shape shapes[] = {q, c.input(10), c.input(11)};
    auto rotated = infer_shapes(rope(op), shapes);
    if (!rotated) return c.error("its ", rotated.error().message);
    return make_shapes(x);
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::LlamaDecoderBlock>();
    Expr x = c.input(0);
    auto qkv =
        shared_linear(c, g.rms_norm(x, c.input(1), std::nullopt, op.eps), {c.input(2), c.input(3), c.input(4)}, {});
    Expr q = g.rope(qkv[0], c.input(10), c.input(11), rope(op)), k = g.rope(qkv[1], c.input(10), c.input(11), rope(op));
    std::optional<Operand> mask;
    if (c.has("mask")) mask = c.input("mask");
    Expr attended = g.attention(
        q, k, qkv[2], ops::Attention{op.num_heads, op.kv_heads, op.head_dim, op.mask, 0, {}, {}, HeadLayout::Merged},
        mask);
    auto [normed, sum] =
        residual_rms_norm(c, linear_into(c, attended, c.input(5), std::nullopt), x, c.input(6), std::nullopt, op.eps);
    Expr hidden;
    if (c.policy() == FusionPolicy::Direct) {
      hidden = g.add(ops::FusedSwiGLU{false},
                     {g.matmul(normed, g.concat({c.input(8), c.input(7)}, 1))});  // up first, then gate
    } else {
      hidden = g.silu(g.matmul(normed, c.input(7))) * g.matmul(normed, c.input(8));
    }
    c.set_result(g.matmul(hidden, c.input(9)) + sum);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    return block_cost(c, c.op<ops::LlamaDecoderBlock>().num_heads, c.op<ops::LlamaDecoderBlock>().head_dim);
  }
  static void samples(SampleSet& s) {
    ops::LlamaDecoderBlock op;
    op.num_heads = 2, op.kv_heads = 1, op.head_dim = 2, op.eps = 1e-3;
    auto in = [](DType t) {
      const Shape vec({3}, t), table({2, 1}, t);
      return std::vector<SampleInput>{Shape({1, 2, 3}, t),
                                      vec,
                                      Shape({3, 4}, t),
                                      Shape({3, 2}, t),
                                      Shape({3, 2}, t),
                                      Shape({4, 3}, t),
                                      vec,
                                      Shape({3, 5}, t),
                                      Shape({3, 5}, t),
                                      Shape({5, 3}, t),
                                      table,
                                      table};
    };
    s.add("causal", in(DType::F64), op);
    op.mask = MaskKind::Custom;
    auto masked = in(DType::F32);
    masked.push_back(SampleInput(Shape({1, 1, 1, 2}, DType::Bool), Fill::Boolean));
    s.add("mask", std::move(masked), op);
  }
  static constexpr AttrField attrs[] = {
      field<&ops::LlamaDecoderBlock::num_heads>("num_heads"), field<&ops::LlamaDecoderBlock::kv_heads>("kv_heads"),
      field<&ops::LlamaDecoderBlock::head_dim>("head_dim"), field<&ops::LlamaDecoderBlock::mask>("mask"),
      field<&ops::LlamaDecoderBlock::eps>("eps")};
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
                                       .cost = LinearRules::cost,
                                       .samples = LinearRules::samples};

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
                                            .cost = LinearFusedRules::cost,
                                            .samples = LinearFusedRules::samples};

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
                                                 .cost = SharedLinearPairRules::cost,
                                                 .samples = SharedLinearPairRules::samples};

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
                                                .cost = flops_per_element<6>,
                                                .samples = ResidualRmsNormRules::samples};

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
                                                  .cost = flops_per_element<9>,
                                                  .samples = ResidualLayerNormRules::samples};

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
    .cost = EncoderBlockRules::cost,
    .samples = EncoderBlockRules::samples};

constinit const OpDef ops::LlamaDecoderBlock::def{
    .kind = kind,
    .name = "llama_decoder_block",
    .what = "Llama's pre-norm decoder layer.",
    .inputs = inputs("x", "ln1_gamma", "w_q", "w_k", "w_v", "w_o", "ln2_gamma", "w_gate", "w_up", "w_down", "cos",
                     "sin", maybe("mask"))
                  .present_when(mask_present<ops::LlamaDecoderBlock, 12>),
    .attrs = LlamaDecoderBlockRules::attrs,
    .level = Level::Hir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Compute,
    .infer = LlamaDecoderBlockRules::infer,
    .decompose = LlamaDecoderBlockRules::decompose,
    .vjp = LlamaDecoderBlockRules::vjp,
    .jvp = LlamaDecoderBlockRules::jvp,
    .batch = LlamaDecoderBlockRules::batch,
    .reference = by_decomposition,
    .cost = LlamaDecoderBlockRules::cost,
    .samples = LlamaDecoderBlockRules::samples};

}  // namespace rlx
