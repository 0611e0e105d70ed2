// Building blocks of models as compositions of ops and HIR blocks.
#include "rlx/functions/blocks.h"

#include <charconv>
#include <cmath>

#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/rope.h"

namespace rlx::nn {
namespace {

using building::At;
using building::fail;

Graph& graph_of(const Operand& x, const char* what) {
  if (x.is_scalar())
    fail(x.loc(), ErrorCode::InvalidArgument, concat_text(what, ": x must be a value of a graph, got a number"),
         "make the number a value: g.scalar(x)");
  return x.expr().graph();
}

}  // namespace

Expr linear_bias(Operand x, Operand w, Operand bias) { return graph_of(x, "linear_bias").linear(x, w, bias); }
Expr linear_bias_act(Operand x, Operand w, Operand bias, ActivationKind activation) {
  return graph_of(x, "linear_bias_act").linear(x, w, bias, activation);
}
std::pair<Expr, Expr> shared_matmul_pair(Operand x, Operand w1, Operand w2) {
  return graph_of(x, "shared_matmul_pair").shared_linear_pair(x, w1, w2);
}
Expr swiglu_ffn(Operand x, Operand w_up, Operand w_gate, Operand w_down) {
  return graph_of(x, "swiglu_ffn").swiglu(x, w_up, w_gate, w_down);
}
Expr fused_swiglu_ffn(Operand x, Operand w, Operand w_down, bool gate_first) {
  Graph& g = graph_of(x, "fused_swiglu_ffn");
  const At at{x.loc()};
  const Expr both = g.matmul(x, w);
  return g.matmul(at(g.add(ops::FusedSwiGLU{gate_first, {}}, {both}, x.loc())), w_down);
}
Expr lora_matmul(Operand x, Operand w, Operand a, Operand b, double scale) {
  Graph& g = graph_of(x, "lora_matmul");
  const At at{x.loc()};
  const Expr low = g.matmul(at(g.matmul(x, a)), b);
  return g.add(at(g.matmul(x, w)), at(g.mul(at(low), at(scale))));
}
Expr rope_n(Operand x, Operand cos, Operand sin, std::int64_t head_dim, std::int64_t n_rot) {
  return graph_of(x, "rope_n")
      .rope(x, cos, sin, ops::Rope{head_dim, n_rot, RopePairing::Half, HeadLayout::Merged, false, {}});
}

Expr axial_rope2d(Operand x, const AxialRope2d& form) {
  Graph& g = graph_of(x, "axial_rope2d");
  const SourceLoc loc = x.loc();
  const auto refuse = [&](ErrorCode code, std::string message) {
    fail(loc, code, concat_text("axial_rope2d: ", message),
         "x must be [B, end_x end_y repeat_factor, num_heads head_dim]");
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  for (std::int64_t n : {form.end_x, form.end_y, form.head_dim, form.num_heads, form.repeat_factor})
    if (n < 1 || n > kMost) refuse(ErrorCode::InvalidArgument, concat_text("extents must be in [1, 2^20], got ", n));
  if (form.head_dim % 4 != 0)
    refuse(ErrorCode::InvalidArgument, concat_text("head_dim must be a multiple of 4, got ", form.head_dim));
  if (!(form.theta > 0) || !std::isfinite(form.theta))
    refuse(ErrorCode::InvalidArgument, concat_text("theta must be a finite number above 0, got ", form.theta));
  const Expr v = x.expr();
  const std::int64_t places = form.end_x * form.end_y, pairs = form.head_dim / 2, quarter = pairs / 2;
  if (!is_float(v.dtype())) refuse(ErrorCode::DTypeMismatch, concat_text("x must be float, got ", v.shape()));
  if (v.rank() != 3 || !v.dim(1).is_static() || v.dim(1).value() / form.repeat_factor != places ||
      v.dim(1).value() % form.repeat_factor != 0 || !v.dim(2).is_static(form.num_heads * form.head_dim))
    refuse(ErrorCode::ShapeMismatch,
           concat_text("got x ", v.shape(), " for a grid of ", form.end_x, " x ", form.end_y));
  const std::int64_t tokens = v.dim(1).value();
  Tensor cos = Tensor::zeros(Shape({tokens, pairs}, v.dtype())), sin = cos;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t place = token / form.repeat_factor;
    for (std::int64_t i = 0; i < pairs; ++i) {
      const std::int64_t c = i % quarter, at = i < quarter ? place % form.end_x : place / form.end_x;
      const double angle = static_cast<double>(at) *
                           std::pow(form.theta, -4 * static_cast<double>(c) / static_cast<double>(form.head_dim));
      cos.set(token * pairs + i, std::cos(angle));
      sin.set(token * pairs + i, std::sin(angle));
    }
  }
  const At own{loc};
  return g.rope(x, own(g.constant(std::move(cos), loc)), own(g.constant(std::move(sin), loc)),
                ops::Rope{form.head_dim, form.head_dim, RopePairing::Interleaved, HeadLayout::Merged, false, {}});
}

AttentionKind attention_kind(std::string_view text) {
  constexpr std::string_view kSliding = "sliding:";
  if (text == "none") return {};
  if (text == "causal") return {MaskKind::Causal, 0};
  if (text.starts_with(kSliding)) {
    const std::string_view number = text.substr(kSliding.size());
    std::int64_t window = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), window);
    if (error == std::errc() && end == number.data() + number.size() && window >= 0)
      return {MaskKind::SlidingWindow, window};
  }
  throw Error(ErrorCode::InvalidArgument, concat_text("'", text.substr(0, 40), "' is not a kind of attention mask"),
              "use \"none\", \"causal\" or \"sliding:<n>\", where n is a number of keys");
}

Expr depthwise_conv1d_causal(Operand x, Operand w, Operand left_pad) {
  if (left_pad.is_scalar())
    fail(left_pad.loc(), ErrorCode::InvalidArgument,
         "depthwise_conv1d_causal: left_pad must be a value of a graph, got a number",
         "give the rows before x: [B, K - 1, C]");
  CausalConvOptions options;
  options.context = left_pad.expr();
  return causal_conv1d(x, w, options).y;
}

Expr qwen35_mtp_head(const Qwen35MtpHead& h, SourceLoc loc) {
  if (!h.embed.valid())
    fail(loc, ErrorCode::InvalidArgument, "qwen35_mtp_head: embed is missing",
         "every value except the mask is required");
  Graph& g = h.embed.graph();
  const At at{loc};
  const auto own = [&](const Expr& e) { return at(building::own_at(g, at(e), loc)); };
  const auto norm = [&](const Expr& x, const Expr& gamma) {
    return g.rms_norm(own(x), own(gamma), std::nullopt, h.eps);
  };
  const auto product = [&](const Expr& x, const Expr& w) { return g.matmul(own(x), own(w)); };
  if (h.num_heads < 1 || h.kv_heads < 1 || h.head_dim < 1)
    fail(loc, ErrorCode::InvalidArgument, "qwen35_mtp_head: num_heads, kv_heads and head_dim must be above 0");
  const Expr x = product(g.concat({norm(h.embed, h.embed_norm), norm(h.hidden, h.hidden_norm)}, -1, {}, loc), h.w_in);
  if (x.rank() != 3)
    fail(loc, ErrorCode::ShapeMismatch, concat_text("qwen35_mtp_head: embed must be [B, S, E], got ", h.embed.shape()));
  const Dim &batch = x.dim(0), &steps = x.dim(1);
  const Expr normed = norm(x, h.ln1);
  const Expr both = g.reshape(at(product(normed, h.w_q)), {batch, steps, h.num_heads, 2 * h.head_dim});
  const auto heads = [&](const Expr& e, const Expr& gamma) {  // normalises each head, then rotates it
    const Dims merged{batch, steps, e.dim(2) * Dim(h.head_dim)};
    return g.rope(at(g.reshape(at(norm(e, gamma)), merged)), own(h.cos), own(h.sin),
                  ops::Rope{h.head_dim, h.n_rot, RopePairing::Half, HeadLayout::Merged, false, {}});
  };
  const Expr q = heads(g.narrow(at(both), -1, 0, h.head_dim), h.q_norm);
  const Expr gate = g.reshape(at(g.narrow(at(both), -1, h.head_dim, h.head_dim)), q.shape().dims());
  const Expr k = heads(g.reshape(at(product(normed, h.w_k)), {batch, steps, h.kv_heads, h.head_dim}), h.k_norm);
  ops::Attention attention;
  attention.num_heads = h.num_heads, attention.kv_heads = h.kv_heads, attention.head_dim = h.head_dim;
  attention.mask = h.mask ? MaskKind::Custom : MaskKind::Causal;
  std::optional<Operand> mask;
  if (h.mask) mask = own(*h.mask);
  const Expr seen = g.attention(at(q), at(k), at(product(normed, h.w_v)), attention, mask);
  const Expr middle = g.add(at(x), at(product(g.mul(at(seen), at(g.sigmoid(at(gate)))), h.w_o)));
  const Expr out = g.add(at(middle), at(g.swiglu(at(norm(middle, h.ln2)), own(h.w_up), own(h.w_gate), own(h.w_down))));
  const Expr last = g.squeeze(at(g.narrow(at(out), 1, steps - Dim(1), 1)), 1);
  return product(norm(last, h.norm), h.w_head);
}

}  // namespace rlx::nn
