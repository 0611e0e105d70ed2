// The op vocabulary: every op kind, one struct per op, and the list that keeps them in step.
//
// Semantics stated once, for all ops:
// * Operands have equal dtypes unless an op says otherwise; builder functions insert the cast (`promote`).
// * Integer arithmetic wraps; integer division and mod by zero give 0; floats follow IEEE 754, and NaN propagates
//   through max, min, relu, clamp and every reduction.
// * Reductions accumulate in at least F32, in an order fixed by the shape; an empty sum is 0, an empty product 1, an
//   empty max or min the lowest or highest value of the dtype (minus or plus infinity), an empty mean NaN.
// * Axes in attributes are normalised: in [0, rank). Indices are I32 or I64, and clamped into range where an op says
//   so.
// * Broadcasting is NumPy's: right-aligned, 1 stretches.
// * Infinities, ties, kinks of derivatives, casts and overflow: docs/numerics.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/error.h"
#include "rlx/tensor/shape.h"
#include "rlx/tensor/tensor.h"

namespace rlx {

class Graph;
struct OpDef;
/// A closed sub-graph held by an attribute: inputs, constants and ops only.
using Subgraph = std::shared_ptr<const Graph>;

// Lists and one-line structs below are tables, which read better than a page a struct.
// clang-format off
/// The attribute-free discriminant of an op; backends claim these.
enum class OpKind : std::uint16_t {
  // leaves
  Input, Param, Constant, State,
  // elementwise
  Activation, Binary, Compare, Where, Cast, Clamp, StopGradient,
  // shape
  Reshape, Transpose, Expand, Slice, Concat, Pad, Reverse, Iota, DimSize,
  // indexing
  Gather, ScatterAdd, DynamicSlice, DynamicUpdateSlice, TopK,
  // reductions
  Reduce, ArgReduce, Cumulative, Softmax, LogSoftmax,
  // linear algebra
  MatMul, DotGeneral,
  // normalisation, attention, position
  LayerNorm, RmsNorm, LayerNormBackward, RmsNormBackward, Attention, AttentionBackward, Rope,
  // fused by passes
  FusedDot, FusedResidualLN, FusedResidualRmsNorm, FusedSwiGLU, FusedAttentionBlock, ElementwiseRegion,
  // HIR blocks
  Linear, LinearFused, SharedLinearPair, SwiGLU, ResidualRmsNorm, ResidualLayerNorm, EncoderBlock, LlamaDecoderBlock,
  // LIR only
  Relayout, PackedDot,
  // other projects
  Custom,

  // The documented name of a FusedDot whose epilogue is bias [+ activation]: claims and queries of it are those of
  // FusedDot.
  FusedMatMulBiasAct = FusedDot,
};

/// Whether HIR blocks lower to fused ops (Direct) or to chains of primitives that passes and derivatives see through
/// (Fusable).
enum class FusionPolicy : std::uint8_t { Fusable, Direct };

/// Elementwise functions of one operand. Gelu is the erf form, GeluApprox the tanh form; Round goes to the nearest
/// even.
enum class ActivationKind : std::uint8_t {
  Gelu, GeluApprox, Silu, Relu, Sigmoid, Tanh, Exp, Log, Sqrt, Rsqrt, Neg, Abs, Sin, Cos, Tan, Atan, Round,
  Recip, Floor, Ceil, Sign, Softplus, Elu, Erf, HardSwish, HardSigmoid, Mish, Softsign, LogSigmoid,
  Expm1, Log1p, Not, Square,
};
/// Elementwise functions of two operands (broadcast). Div of integers truncates toward zero; Mod has the divisor's sign
/// (Python's %); the bit ops take integers or Bool; shifts of a negative count or past the width give 0 (or -1 for Shr
/// of a negative number).
enum class BinaryKind : std::uint8_t { Add, Sub, Mul, Div, Max, Min, Pow, Mod, Atan2, BitAnd, BitOr, BitXor, Shl, Shr };
/// Comparisons (broadcast, Bool result); with NaN every one but Ne is false.
enum class CompareKind : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
enum class ReduceKind : std::uint8_t { Sum, Mean, Max, Min, Prod };
enum class ArgReduceKind : std::uint8_t { Max, Min };
enum class CumulativeKind : std::uint8_t { Sum, Prod, Max, Min };
enum class MaskKind : std::uint8_t { None, Causal, SlidingWindow, Custom, Bias };
/// How heads lie in q, k, v and the output: [B, S, H*D], [B, H, S, D] or [B, S, H, D].
enum class HeadLayout : std::uint8_t { Merged, HeadsFirst, HeadsInner };
/// Which elements rope rotates together: (i, i + n_rot/2), or (2i, 2i + 1).
enum class RopePairing : std::uint8_t { Half, Interleaved };
/// How often a param is set. Frozen: seldom, so what depends on params alone is computed and packed when they are set.
/// Mutable: between runs, so it is read as it is and setting it is one copy. (A weight that the program itself updates,
/// as training does, is a State.)
enum class ParamMode : std::uint8_t { Frozen, Mutable };

/// Lower-case text names of an attribute enum, in enumerator order.
template <class E>
struct EnumNames;
template <> struct EnumNames<ActivationKind> {
  static constexpr std::string_view values[] = {
      "gelu", "gelu_approx", "silu", "relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "neg", "abs", "sin",
      "cos", "tan", "atan", "round", "recip", "floor", "ceil", "sign", "softplus", "elu", "erf", "hard_swish",
      "hard_sigmoid", "mish", "softsign", "log_sigmoid", "expm1", "log1p", "not", "square"};
};
template <> struct EnumNames<BinaryKind> {
  static constexpr std::string_view values[] = {
      "add", "sub", "mul", "div", "max", "min", "pow", "mod", "atan2", "bit_and", "bit_or", "bit_xor", "shl", "shr"};
};
template <> struct EnumNames<CompareKind> {
  static constexpr std::string_view values[] = {"eq", "ne", "lt", "le", "gt", "ge"};
};
template <> struct EnumNames<ReduceKind> {
  static constexpr std::string_view values[] = {"sum", "mean", "max", "min", "prod"};
};
template <> struct EnumNames<ArgReduceKind> { static constexpr std::string_view values[] = {"max", "min"}; };
template <> struct EnumNames<CumulativeKind> {
  static constexpr std::string_view values[] = {"sum", "prod", "max", "min"};
};
template <> struct EnumNames<MaskKind> {
  static constexpr std::string_view values[] = {"none", "causal", "sliding_window", "custom", "bias"};
};
template <> struct EnumNames<HeadLayout> {
  static constexpr std::string_view values[] = {"merged", "heads_first", "heads_inner"};
};
template <> struct EnumNames<RopePairing> { static constexpr std::string_view values[] = {"half", "interleaved"}; };
template <> struct EnumNames<ParamMode> { static constexpr std::string_view values[] = {"frozen", "mutable"}; };

template <class E>
constexpr std::string_view enum_name(E value) {
  const auto i = static_cast<std::size_t>(value);
  if (i >= std::size(EnumNames<E>::values))
    detail::throw_no_enumerator("attribute value", static_cast<std::int64_t>(value));
  return EnumNames<E>::values[i];
}
inline constexpr int kNumActivationKinds = static_cast<int>(std::size(EnumNames<ActivationKind>::values));
inline constexpr int kNumBinaryKinds = static_cast<int>(std::size(EnumNames<BinaryKind>::values));

namespace ops {

#define RLX_OP(Kind) static constexpr OpKind kind = OpKind::Kind; static const OpDef def

/// A run-time tensor, bound by name at each run.
struct Input { RLX_OP(Input); std::string name{}; Dims dims{}; DType dtype = DType::F32; };
/// A weight, bound by name after compiling.
struct Param {
  RLX_OP(Param);
  std::string name{};
  Dims dims{};
  DType dtype = DType::F32;
  ParamMode mode = ParamMode::Frozen;
};
/// An embedded tensor.
struct Constant { RLX_OP(Constant); Tensor value{}; };
/// A persistent value: reads what the last run (or `init`) left; `graph.set_state` declares the value after the run.
struct State { RLX_OP(State); std::string name{}; Dims dims{}; DType dtype = DType::F32; Tensor init{}; };

/// fn(x), elementwise. x: float (neg, abs, sign, square, relu: also integers; not: Bool or integers) -> same shape and
/// dtype.
struct Activation { RLX_OP(Activation); ActivationKind fn = ActivationKind::Relu; };
/// fn(a, b), elementwise with broadcasting. a, b: equal dtypes -> broadcast shape.
struct Binary { RLX_OP(Binary); BinaryKind fn = BinaryKind::Add; };
/// fn(a, b), elementwise with broadcasting -> Bool.
struct Compare { RLX_OP(Compare); CompareKind fn = CompareKind::Eq; };
/// cond ? a : b, elementwise; cond Bool; all three broadcast.
struct Where { RLX_OP(Where); };
/// Numeric conversion by the rules of `Tensor::cast`.
struct Cast { RLX_OP(Cast); DType to = DType::F32; };
/// min(max(x, low), high), elementwise with broadcasting. Composite.
struct Clamp { RLX_OP(Clamp); };
/// x, with a zero derivative.
struct StopGradient { RLX_OP(StopGradient); };

/// The same elements under other dimensions (no -1: the builder resolves it).
struct Reshape { RLX_OP(Reshape); Dims dims{}; };
/// out[i_perm] = x[i]: result dim k is input dim perm[k].
struct Transpose { RLX_OP(Transpose); std::vector<std::int64_t> perm{}; };
/// x broadcast to `dims` (NumPy rules, rank may grow).
struct Expand { RLX_OP(Expand); Dims dims{}; };
/// x[start : limit : stride] on each axis; 0 <= start <= limit <= extent, stride >= 1. `narrow` is its one-axis form.
struct Slice { RLX_OP(Slice); Dims starts{}; Dims limits{}; std::vector<std::int64_t> strides{}; };
/// Operands joined along `axis`; the other dims agree.
struct Concat { RLX_OP(Concat); std::int64_t axis = 0; };
/// x with `low[d]` copies of the scalar `value` before and `high[d]` after each axis (negative amounts crop) and
/// `interior[d]` between neighbours. Inputs: x, value (scalar).
struct Pad { RLX_OP(Pad); std::vector<std::int64_t> low{}, high{}, interior{}; };
/// x with the order along `axes` reversed.
struct Reverse { RLX_OP(Reverse); std::vector<std::int64_t> axes{}; };
/// 0, 1, 2, ... along `axis`, repeated along the others.
struct Iota { RLX_OP(Iota); Dims dims{}; DType dtype = DType::I32; std::int64_t axis = 0; };
/// The extent of `axis` of x as an I64 scalar.
struct DimSize { RLX_OP(DimSize); std::int64_t axis = 0; };

/// out = table[..axis] ++ indices ++ table[axis+1..]: rows of `table` picked along `axis` by I32/I64 indices, each
/// clamped into [0, extent).
struct Gather { RLX_OP(Gather); std::int64_t axis = 0; };
/// operand with updates added at rows `indices` of `axis` (duplicates accumulate, out-of-range indices are dropped).
/// Inputs: operand, indices (I32/I64, any rank r), updates = operand[..axis] ++ indices.dims ++ operand[axis+1..].
struct ScatterAdd { RLX_OP(ScatterAdd); std::int64_t axis = 0; };
/// The window of `sizes` at `starts` (I32/I64 [rank]); starts are clamped so that the window fits. Inputs: x, starts.
struct DynamicSlice { RLX_OP(DynamicSlice); Dims sizes{}; };
/// x with the window at `starts` replaced by `update`; starts are clamped so that it fits. Inputs: x, update, starts.
struct DynamicUpdateSlice { RLX_OP(DynamicUpdateSlice); };
/// The k largest of the last axis, descending, ties to the smaller index, NaN first. Results: values, indices (I32).
struct TopK { RLX_OP(TopK); std::int64_t k = 1; };

/// fn over `axes` (sorted); they disappear, or stay as 1 with keep_dims.
struct Reduce {
  RLX_OP(Reduce);
  ReduceKind fn = ReduceKind::Sum;
  std::vector<std::int64_t> axes{};
  bool keep_dims = false;
};
/// Index (I32) of the first max or min along `axis`; a NaN counts as the extremum.
struct ArgReduce {
  RLX_OP(ArgReduce);
  ArgReduceKind fn = ArgReduceKind::Max;
  std::int64_t axis = 0;
  bool keep_dims = false;
};
/// Running fn along `axis`; exclusive starts from the identity; reverse runs from the end.
struct Cumulative {
  RLX_OP(Cumulative);
  CumulativeKind fn = CumulativeKind::Sum;
  std::int64_t axis = 0;
  bool exclusive = false, reverse = false;
};
/// exp(x - max(x)) / sum along `axis`. x: float [..., N, ...]. A row of -inf gives zeros.
struct Softmax { RLX_OP(Softmax); std::int64_t axis = 0; };
/// x - logsumexp(x) along `axis`. Composite.
struct LogSoftmax { RLX_OP(LogSoftmax); std::int64_t axis = 0; };

/// NumPy matmul: [.., M, K] x [.., K, N] -> [.., M, N], leading dims broadcast; both rank >= 2. Composite of
/// DotGeneral.
struct MatMul { RLX_OP(MatMul); };
/// XLA's dot_general: result = batch ++ lhs free ++ rhs free. Floats accumulate in at least F32.
struct DotGeneral {
  RLX_OP(DotGeneral);
  std::vector<std::int64_t> lhs_contract{}, rhs_contract{}, lhs_batch{}, rhs_batch{};
};

/// (x - mean) / sqrt(var + eps) * gamma + beta over `axis`, biased variance. gamma, beta: [dim(axis)].
struct LayerNorm { RLX_OP(LayerNorm); std::int64_t axis = 0; double eps = 1e-5; };
/// x / sqrt(mean(x^2) + eps) * gamma + beta over `axis`. gamma, beta: [dim(axis)].
struct RmsNorm { RLX_OP(RmsNorm); std::int64_t axis = 0; double eps = 1e-6; };
/// Cotangents of LayerNorm. Inputs: x, gamma, dy. Results: dx, dgamma, dbeta.
struct LayerNormBackward { RLX_OP(LayerNormBackward); std::int64_t axis = 0; double eps = 1e-5; };
/// Cotangents of RmsNorm. Inputs: x, gamma, dy. Results: dx, dgamma, dbeta.
struct RmsNormBackward { RLX_OP(RmsNormBackward); std::int64_t axis = 0; double eps = 1e-6; };
/// softmax(mask(softcap(q k^T * scale))) v per head. Inputs: q, k, v [, mask]. kv_heads divides num_heads: each kv head
/// serves num_heads / kv_heads query heads. scale defaults to head_dim^-0.5; softcap c: c tanh(s / c).
/// Query i stands at key position i + (S_k - S_q); Causal: key j visible iff j <= i'; SlidingWindow: i' - window <= j
/// <= i'. Custom mask: Bool, or float visible iff >= 0.5; Bias: float, added to the scaled scores, -inf hides. Both are
/// broadcast to [B, H, S_q, S_k] from the right: rank 2 is [S_q, S_k], a mask of keys [B, 1, 1, S_k]. A fully masked
/// row gives zeros, and k and v of a hidden key may hold anything, NaN too.
struct Attention {
  RLX_OP(Attention);
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  HeadLayout layout = HeadLayout::Merged;
};
/// Cotangents of Attention. Inputs: q, k, v, dy [, mask]. Results: dq, dk, dv (and dmask for a Bias mask): zero at a
/// hidden key, whatever its k and v hold; a NaN of dy reaches dv of every key.
struct AttentionBackward {
  RLX_OP(AttentionBackward);
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  HeadLayout layout = HeadLayout::Merged;
};
/// Rotary position: the first n_rot elements of each head are rotated pairwise by (cos, sin), the rest copied. x in
/// `layout`; cos, sin: [S, T] or [B, S, T] with T >= n_rot / 2, row = position. `inverse` rotates back (the transpose).
struct Rope {
  RLX_OP(Rope);
  std::int64_t head_dim = 2, n_rot = 2;
  RopePairing pairing = RopePairing::Half;
  HeadLayout layout = HeadLayout::Merged;
  bool inverse = false;
};

/// epilogue(dot_general(x, w), operands...). Inputs: x, w, operands...; the epilogue's inputs are the accumulator, then
/// the operands in order; its one output is the result.
struct FusedDot {
  RLX_OP(FusedDot);
  std::vector<std::int64_t> lhs_contract{}, rhs_contract{}, lhs_batch{}, rhs_batch{};
  Subgraph epilogue{};
};
/// LayerNorm(x + residual [+ bias]) over the last axis. Inputs: x, residual, [bias], gamma, beta.
struct FusedResidualLN { RLX_OP(FusedResidualLN); bool has_bias = false; double eps = 1e-5; };
/// RmsNorm of the same sum. Inputs: x, residual, [bias], gamma, beta. Results: normalised, sum.
struct FusedResidualRmsNorm { RLX_OP(FusedResidualRmsNorm); bool has_bias = false; double eps = 1e-6; };
/// up * silu(gate) of the halves of the last axis: up first, or gate first. x: [.., 2N] -> [.., N].
struct FusedSwiGLU { RLX_OP(FusedSwiGLU); bool gate_first = false; };
/// Packed projection, split, attention, output projection. Inputs: x [B, S, E], w_qkv [E, (H + 2 KV) D], w_out [H D,
/// E'], [b_qkv, b_out], [mask]. Column order of w_qkv: all q heads, all k heads, all v heads.
struct FusedAttentionBlock {
  RLX_OP(FusedAttentionBlock);
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  bool has_bias = false;
};
/// Elementwise ops on broadcast inputs, run per element. The body's inputs match the operands; results are its outputs.
struct ElementwiseRegion { RLX_OP(ElementwiseRegion); Subgraph body{}; };

/// act(x w + bias). Inputs: x [.., K], w [K, N], [bias [N]].
struct Linear { RLX_OP(Linear); std::optional<ActivationKind> activation{}; bool has_bias = false; };
/// The same, always lowered to FusedDot. Inputs: x, w, bias.
struct LinearFused { RLX_OP(LinearFused); std::optional<ActivationKind> activation{}; };
/// x w1 and x w2. Results: y1, y2.
struct SharedLinearPair { RLX_OP(SharedLinearPair); };
/// (silu(x w_gate) * (x w_up)) w_down. Inputs: x, w_up, w_gate, w_down.
struct SwiGLU { RLX_OP(SwiGLU); };
/// RmsNorm(x + residual). Inputs: x, residual, gamma, beta.
struct ResidualRmsNorm { RLX_OP(ResidualRmsNorm); double eps = 1e-6; };
/// LayerNorm(x + residual). Inputs: x, residual, gamma, beta.
struct ResidualLayerNorm { RLX_OP(ResidualLayerNorm); double eps = 1e-5; };
/// BERT's post-norm encoder layer. Inputs: x [B, S, E], w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o, ln1_gamma, ln1_beta,
/// w_up, b_up, w_down, b_down, ln2_gamma, ln2_beta, [mask]. Weights are [in, out].
struct EncoderBlock {
  RLX_OP(EncoderBlock);
  std::int64_t num_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::None;
  double eps = 1e-12;
  ActivationKind activation = ActivationKind::Gelu;
};
/// Llama's pre-norm decoder layer. Inputs: x [B, S, E], ln1_gamma, w_q, w_k, w_v, w_o, ln2_gamma, w_gate, w_up, w_down,
/// cos, sin, [mask].
struct LlamaDecoderBlock {
  RLX_OP(LlamaDecoderBlock);
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::Causal;
  double eps = 1e-6;
};

/// A weight packed for a kernel; the sources are joined along N in order. Inputs: weights [K, N_i] (or [N_i, K] when
/// transposed[i] != 0). Result: opaque bytes, U8 [size].
struct Relayout {
  RLX_OP(Relayout);
  std::int64_t panel_width = 0;
  std::vector<std::int64_t> transposed{};
  std::int64_t k = 0, n = 0, packed_bytes = 0;
};
/// epilogue(x w, operands...) with w in the form Relayout packed. Inputs: x [.., K], packed U8 [bytes], operands...;
/// the epilogue's inputs are the accumulator [.., N], then the operands; its one output is the result.
struct PackedDot { RLX_OP(PackedDot); std::int64_t k = 0, n = 0, panel_width = 0; Subgraph epilogue{}; };

/// An op of another project: `name` picks the record given to `register_op` (ir/custom_op.h), which knows what `attrs`
/// means. Any number of operands and results.
struct Custom { RLX_OP(Custom); std::string name{}; std::vector<std::byte> attrs{}; };

#undef RLX_OP
}  // namespace ops

template <class... Ops>
struct OpList {
  static constexpr int size = sizeof...(Ops);
  static constexpr OpKind kinds[sizeof...(Ops)] = {Ops::kind...};
};

/// Every op, in the order of OpKind.
using AllOps = OpList<
    ops::Input, ops::Param, ops::Constant, ops::State, ops::Activation, ops::Binary, ops::Compare, ops::Where,
    ops::Cast, ops::Clamp, ops::StopGradient, ops::Reshape, ops::Transpose, ops::Expand, ops::Slice, ops::Concat,
    ops::Pad, ops::Reverse, ops::Iota, ops::DimSize, ops::Gather, ops::ScatterAdd, ops::DynamicSlice,
    ops::DynamicUpdateSlice, ops::TopK, ops::Reduce, ops::ArgReduce, ops::Cumulative, ops::Softmax, ops::LogSoftmax,
    ops::MatMul, ops::DotGeneral, ops::LayerNorm, ops::RmsNorm, ops::LayerNormBackward, ops::RmsNormBackward,
    ops::Attention, ops::AttentionBackward, ops::Rope, ops::FusedDot, ops::FusedResidualLN,
    ops::FusedResidualRmsNorm, ops::FusedSwiGLU, ops::FusedAttentionBlock, ops::ElementwiseRegion, ops::Linear,
    ops::LinearFused, ops::SharedLinearPair, ops::SwiGLU, ops::ResidualRmsNorm, ops::ResidualLayerNorm,
    ops::EncoderBlock, ops::LlamaDecoderBlock, ops::Relayout, ops::PackedDot, ops::Custom>;

// clang-format on

inline constexpr int kNumOpKinds = static_cast<int>(OpKind::Custom) + 1;
namespace detail {
constexpr bool kinds_in_order() {
  for (int i = 0; i < AllOps::size; ++i)
    if (static_cast<int>(AllOps::kinds[i]) != i) return false;
  return AllOps::size == kNumOpKinds;
}
}  // namespace detail
static_assert(detail::kinds_in_order(), "AllOps must list every op in the order of OpKind");

}  // namespace rlx
