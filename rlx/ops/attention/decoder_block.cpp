// The HIR block of a decoder layer, as in Llama, with the additions of Qwen, Gemma and others.
#include <cmath>

#include "rlx/ir/build/counting.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/ops/quant/block_parts.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

constexpr int kMaskPlace = 12;

struct LlamaDecoderBlockRules {
  static AttentionSpec spec(const ops::LlamaDecoderBlock& op) {
    return {op.num_heads, op.kv_heads, op.head_dim, op.head_dim,       op.mask,
            op.window,    op.scale,    op.softcap,  HeadLayout::Merged};
  }
  static ops::Rope rope(const ops::LlamaDecoderBlock& op) {
    return {op.head_dim, op.n_rot == 0 ? op.head_dim : op.n_rot, op.pairing, HeadLayout::Merged, false, {}};
  }
  static std::optional<Diagnostic> check_operands(const InferContext& c, const Shape& x, const Dim& keys) {
    const auto& op = c.op<ops::LlamaDecoderBlock>();
    const Dim width = x.dim(2), head(op.head_dim), q_width = Dim(op.num_heads) * head,
              kv_width = Dim(op.kv_heads) * head;
    const Dim ffn = c.input("w_gate").rank() == 2 ? c.input("w_gate").dim(1) : Dim(0);
    const struct {
      const char* name;
      Dims dims;
    } operands[] = {{"ln1_gamma", {width}},     {"w_q", {width, q_width}}, {"w_k", {width, kv_width}},
                    {"w_v", {width, kv_width}}, {"w_o", {q_width, width}}, {"ln2_gamma", {width}},
                    {"w_gate", {width, ffn}},   {"w_up", {width, ffn}},    {"w_down", {ffn, width}},
                    {"ln1_beta", {width}},      {"ln2_beta", {width}},     {"q_norm", {head}},
                    {"k_norm", {head}},         {"b_q", {q_width}},        {"b_k", {kv_width}},
                    {"b_v", {kv_width}},        {"b_o", {width}}};
    for (const auto& o : operands) {
      if (!c.has(o.name)) continue;
      if (c.input(o.name).dtype() != x.dtype())
        return c.dtype_error(o.name, " must be ", dtype_name(x.dtype()), " like x, got ", c.input(o.name));
      if (auto e = check_dims(c, c.index(o.name), o.name, o.dims)) return e;
    }
    if (c.has("k_cache") != c.has("v_cache")) return c.error("k_cache and v_cache must be given together");
    if (c.has("start") && !c.has("k_cache")) return c.error("start is a position in k_cache, but k_cache is missing");
    if (!c.has("k_cache")) return std::nullopt;
    const Shape &k = c.input("k_cache"), &v = c.input("v_cache");
    const Dim& rows = k.rank() == 3 ? k.dim(1) : keys;
    if (!is_float(k.dtype())) return c.dtype_error("k_cache must be float, got ", k);
    for (const Shape& s : {k, v})
      if (s.dtype() != k.dtype() || s.dims() != Dims{x.dim(0), rows, kv_width})
        return c.error("k_cache and v_cache must be equal [", x.dim(0), ", P, ", kv_width, "], got ", k, " and ", v);
    if (!c.has("start")) return std::nullopt;
    if (const Shape& start = c.input("start"); start.rank() != 0 || start.dtype() != DType::I32)
      return c.error("start must be an i32 scalar, got ", start);
    if (rows.is_static() && x.dim(1).is_static() && x.dim(1).value() > rows.value())
      return c.error("the ", x.dim(1), " new rows do not fit in the ", rows, " rows of k_cache ", k);
    return std::nullopt;
  }
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::LlamaDecoderBlock>();
    const AttentionSpec s = spec(op);
    if (auto e = check_attention_attrs(c, s)) return *e;
    if (auto e = check_eps(c, op.eps)) return *e;
    if (auto e = check_activation(c, op.activation)) return *e;
    const Shape& x = c.input("x");
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (x.rank() != 3) return c.error("x must be [B, S, E], got ", x);
    const bool cached = c.has("k_cache") && c.input("k_cache").rank() == 3;
    const Dim keys = !cached          ? x.dim(1)
                     : c.has("start") ? c.input("k_cache").dim(1)
                                      : c.input("k_cache").dim(1) + x.dim(1);
    if (auto e = check_operands(c, x, keys)) return *e;
    if (c.has("mask"))
      if (auto e = check_attention_mask(c, s, c.input("mask"), x.dim(0), x.dim(1), keys)) return *e;
    // The rule of Rope checks the tables: they have a row for every known position.
    const Dim rotated = c.has("start") ? x.dim(1) : keys;
    const Shape q({x.dim(0), rotated, Dim(op.num_heads) * Dim(op.head_dim)}, x.dtype());
    const Shape shapes[] = {q, c.input("cos"), c.input("sin")};
    auto turned = infer_shapes(rope(op), shapes);
    if (!turned) return c.error("its ", turned.error().message);
    if (!c.has("k_cache")) return make_shapes(x);
    const Shape& cache = c.input("k_cache");
    const Shape all({x.dim(0), keys, cache.dim(2)}, cache.dtype());
    return make_shapes(x, all, all);
  }

  // RmsNorm of each head of x [B, S, H D].
  static Expr head_norm(DecomposeContext& c, Expr x, const char* gamma, std::int64_t heads) {
    if (!c.has(gamma)) return x;
    Graph& g = c.graph();
    const auto& op = c.op<ops::LlamaDecoderBlock>();
    const Expr split = g.reshape(x, {x.dim(0), x.dim(1), heads, op.head_dim});
    return g.reshape(g.rms_norm(split, c.input(gamma), std::nullopt, op.eps), x.shape().dims());
  }
  static std::vector<Expr> biases(DecomposeContext& c, const std::vector<Expr>& weights) {
    const std::vector<const char*> names{"b_q", "b_k", "b_v"};
    std::vector<Expr> out;
    bool any = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      any = any || c.has(names[i]);
      out.push_back(c.has(names[i]) ? c.input(names[i]) : c.zeros(Shape({weights[i].dim(1)}, weights[i].dtype())));
    }
    return any ? out : std::vector<Expr>{};
  }

  struct Attended {
    Expr y, k, v;  // k and v: all rows, in the dtype of the caches
  };
  static Attended attend(DecomposeContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::LlamaDecoderBlock>();
    const Expr x = c.input("x"), cos = c.input("cos"), sin = c.input("sin");
    const Dim& steps = x.dim(1);
    const std::vector<Expr> weights{c.input("w_q"), c.input("w_k"), c.input("w_v")};
    const Expr normed = g.rms_norm(x, c.input("ln1_gamma"), c.optional_input("ln1_beta"), op.eps);
    const std::vector<Expr> qkv = shared_linear(c, normed, weights, biases(c, weights));
    Expr q = head_norm(c, qkv[0], "q_norm", op.num_heads), k = head_norm(c, qkv[1], "k_norm", op.kv_heads), v = qkv[2];
    AttentionOptions options;
    if (c.has("mask")) options.mask = c.input("mask");
    if (!c.has("k_cache")) {
      q = g.rope(q, cos, sin, rope(op)), k = g.rope(k, cos, sin, rope(op));
    } else {
      const Expr k_cache = c.input("k_cache"), v_cache = c.input("v_cache");
      const Expr first = c.has("start") ? c.input("start") : dim_value(g, k_cache.dim(1), DType::I32);
      const Expr at = positions(g, steps, 0, 1, DType::I32) + first;
      q = g.rope(q, cos, sin, at, rope(op)), k = g.rope(k, cos, sin, at, rope(op));
      k = g.cast(k, k_cache.dtype()), v = g.cast(v, k_cache.dtype());
      if (c.has("start")) {
        const Expr zero = g.constant(Tensor::zeros(Shape({1}, DType::I32)));
        const Expr starts = g.concat({zero, g.reshape(first, {1}), zero}, 0);
        k = g.dynamic_update_slice(k_cache, k, starts), v = g.dynamic_update_slice(v_cache, v, starts);
        options.kv_len = g.expand(first + dim_value(g, steps, DType::I32), {x.dim(0)});
      } else {
        k = g.concat({k_cache, k}, 1), v = g.concat({v_cache, v}, 1);
      }
    }
    ops::Attention attention{op.num_heads, op.kv_heads, op.head_dim, op.mask,
                             op.window,    op.scale,    op.softcap,  HeadLayout::Merged};
    return {g.attention(q, k, v, attention, options), k, v};
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::LlamaDecoderBlock>();
    const Attended a = attend(c);
    auto [normed, sum] =
        residual_rms_norm_into(c, linear_into(c, a.y, c.input("w_o"), c.optional_input("b_o")), c.input("x"),
                               c.input("ln2_gamma"), c.optional_input("ln2_beta"), op.eps);
    const Expr gate = c.input("w_gate"), up = c.input("w_up");
    Expr hidden;
    if (c.policy() == FusionPolicy::Direct && op.activation == ActivationKind::Silu)
      hidden = g.add(ops::FusedSwiGLU{false, {}}, {g.matmul(normed, g.concat({up, gate}, 1))});  // up first, then gate
    else
      hidden = g.activation(op.activation, g.matmul(normed, gate)) * g.matmul(normed, up);
    c.set_result(0, g.matmul(hidden, c.input("w_down")) + sum);
    if (c.num_results() == 1) return;
    c.set_result(1, a.k);
    c.set_result(2, a.v);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    return block_cost(c, c.op<ops::LlamaDecoderBlock>().num_heads, c.op<ops::LlamaDecoderBlock>().head_dim);
  }
  static constexpr AttrField attrs[] = {field<&ops::LlamaDecoderBlock::num_heads>("num_heads"),
                                        field<&ops::LlamaDecoderBlock::kv_heads>("kv_heads"),
                                        field<&ops::LlamaDecoderBlock::head_dim>("head_dim"),
                                        field<&ops::LlamaDecoderBlock::mask>("mask"),
                                        field<&ops::LlamaDecoderBlock::eps>("eps"),
                                        field<&ops::LlamaDecoderBlock::window>("window"),
                                        field<&ops::LlamaDecoderBlock::scale>("scale"),
                                        field<&ops::LlamaDecoderBlock::softcap>("softcap"),
                                        field<&ops::LlamaDecoderBlock::n_rot>("n_rot"),
                                        field<&ops::LlamaDecoderBlock::pairing>("pairing"),
                                        field<&ops::LlamaDecoderBlock::activation>("activation"),
                                        field<&ops::LlamaDecoderBlock::present>("present")};
};

}  // namespace

constinit const OpDef ops::LlamaDecoderBlock::def{
    .kind = kind,
    .name = "llama_decoder_block",
    .what = "Llama's pre-norm decoder layer, with optional biases, norms of q and k, and KV caches.",
    .inputs =
        inputs("x", "ln1_gamma", "w_q", "w_k", "w_v", "w_o", "ln2_gamma", "w_gate", "w_up", "w_down", "cos", "sin",
               maybe("mask"), maybe("ln1_beta"), maybe("ln2_beta"), maybe("q_norm"), maybe("k_norm"), maybe("b_q"),
               maybe("b_k"), maybe("b_v"), maybe("b_o"), maybe("k_cache"), maybe("v_cache"), maybe("start"))
            .masked_by<&ops::LlamaDecoderBlock::present>()
            .presence_from(kMaskPlace, mask_present<ops::LlamaDecoderBlock, kMaskPlace>),
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
    .cost = LlamaDecoderBlockRules::cost};

}  // namespace rlx
