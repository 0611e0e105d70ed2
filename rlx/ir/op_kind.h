// The kinds of ops, and the attribute enums that several families or the builder share. The op structs are in
// ops/<family>.h, and op.h includes them all. Files that need only kinds are not recompiled when an op struct changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string_view>

#include "rlx/error.h"

namespace rlx {

class Graph;
struct OpDef;
/// A closed sub-graph held by an attribute: inputs, constants and ops only.
using Subgraph = std::shared_ptr<const Graph>;

// The lists below are formatted as tables by hand.
// clang-format off
/// Every op once. OpKind, the declarations in namespace ops and the tables of records follow this order. The structs
/// are in ops/<family>.h.
#define RLX_FOR_EACH_OP(X)                                                                                          \
  /* leaves.h */                                                                                                    \
  X(Input) X(Param) X(Constant) X(State)                                                                            \
  /* elementwise.h */                                                                                               \
  X(Activation) X(Binary) X(Compare) X(Where) X(Cast) X(Clamp) X(StopGradient) X(Bitcast) X(Complex) X(ComplexPart) \
  /* shape.h */                                                                                                     \
  X(Reshape) X(Transpose) X(Expand) X(Slice) X(Concat) X(Pad) X(Reverse) X(Iota) X(DimSize)                         \
  /* indexing.h */                                                                                                  \
  X(Gather) X(Scatter) X(DynamicSlice) X(DynamicUpdateSlice) X(TopK) X(Sort)                                        \
  /* random.h */                                                                                                    \
  X(RngBits) X(Sample)                                                                                              \
  /* reduce.h */                                                                                                    \
  X(Reduce) X(ArgReduce) X(Cumulative) X(Softmax) X(LogSoftmax)                                                     \
  /* linalg.h */                                                                                                    \
  X(MatMul) X(DotGeneral) X(GroupedDot) X(Cholesky) X(TriangularSolve) X(Lu) X(Qr) X(Eigh) X(Svd)                   \
  /* conv.h, fft.h */                                                                                               \
  X(Conv) X(ReduceWindow) X(SelectAndScatter) X(Interpolate) X(Fft)                                                 \
  /* norm.h, attention.h, rope.h */                                                                                 \
  X(LayerNorm) X(RmsNorm) X(LayerNormBackward) X(RmsNormBackward) X(Attention) X(AttentionBackward)                 \
  X(PagedAttention) X(Rope) X(GroupNorm) X(BatchNorm)                                                               \
  /* sequence.h, loss.h */                                                                                          \
  X(Rnn) X(Gru) X(Lstm) X(SelectiveScan) X(Mamba2) X(GatedDeltaNet) X(SoftmaxCrossEntropy) X(CtcLoss)               \
  /* quantize.h */                                                                                                  \
  X(Quantize) X(Dequantize) X(DynamicQuantize) X(FakeQuantize) X(FakeQuantizeLsq) X(QMatMul) X(QConv)               \
  /* fused.h: by passes */                                                                                          \
  X(FusedDot) X(FusedConv) X(FusedResidualLN) X(FusedResidualRmsNorm) X(FusedSwiGLU) X(FusedAttentionBlock)          \
  X(ElementwiseRegion)                                                                                              \
  /* blocks.h: HIR */                                                                                               \
  X(Linear) X(LinearFused) X(SharedLinearPair) X(SwiGLU) X(ResidualRmsNorm) X(ResidualLayerNorm) X(EncoderBlock)    \
  X(LlamaDecoderBlock)                                                                                              \
  /* control.h: bodies that are programs */                                                                         \
  X(If) X(While) X(Scan) X(Call) X(OptimizationBarrier)                                                             \
  /* collectives.h: ranks run them together */                                                                      \
  X(AllReduce) X(AllGather) X(ReduceScatter) X(AllToAll) X(Permute) X(AxisIndex)                                    \
  /* lir.h: LIR only */                                                                                             \
  X(Relayout) X(Transfer)                                                                                           \
  /* custom.h: other projects; the last */                                                                          \
  X(Custom)

/// The kind of an op without its attributes; backends claim kinds.
enum class OpKind : std::uint16_t {
#define RLX_ENUMERATOR(Kind) Kind,
  RLX_FOR_EACH_OP(RLX_ENUMERATOR)
#undef RLX_ENUMERATOR

  // The documented name of a FusedDot whose epilogue is bias [+ activation]. Its claims and queries are those of
  // FusedDot.
  FusedMatMulBiasAct = FusedDot,
};
inline constexpr int kNumOpKinds = static_cast<int>(OpKind::Custom) + 1;

namespace ops {
#define RLX_DECLARE(Kind) struct Kind;
RLX_FOR_EACH_OP(RLX_DECLARE)
#undef RLX_DECLARE
}  // namespace ops

/// The first members of every op struct: its kind, and its record, which rlx/ops/<name>.cpp defines.
#define RLX_OP(Kind) static constexpr OpKind kind = OpKind::Kind; static const OpDef def

/// Whether HIR blocks lower to fused ops (Direct) or to chains of primitives, which passes can fuse and autodiff can
/// differentiate (Fusable).
enum class FusionPolicy : std::uint8_t { Fusable, Direct };

/// The elementwise functions of one operand: enumerator, builder call, name in text, number of parameters. Everything
/// else is in the function's row in function_table.h. Gelu is the erf version, GeluApprox the tanh version. Round
/// rounds to the nearest even.
#define RLX_FOR_EACH_FUNCTION(X)                                                                                    \
  X(Gelu, gelu, "gelu", 0) X(GeluApprox, gelu_approx, "gelu_approx", 0) X(Silu, silu, "silu", 0)                    \
  X(Relu, relu, "relu", 0) X(Sigmoid, sigmoid, "sigmoid", 0) X(Tanh, tanh, "tanh", 0) X(Exp, exp, "exp", 0)         \
  X(Log, log, "log", 0) X(Sqrt, sqrt, "sqrt", 0) X(Rsqrt, rsqrt, "rsqrt", 0) X(Neg, neg, "neg", 0)                  \
  X(Abs, abs, "abs", 0) X(Sin, sin, "sin", 0) X(Cos, cos, "cos", 0) X(Tan, tan, "tan", 0) X(Atan, atan, "atan", 0)  \
  X(Round, round, "round", 0) X(Recip, recip, "recip", 0) X(Floor, floor, "floor", 0) X(Ceil, ceil, "ceil", 0)      \
  X(Sign, sign, "sign", 0) X(Softplus, softplus, "softplus", 0) X(Elu, elu, "elu", 1) X(Erf, erf, "erf", 0)         \
  X(HardSwish, hard_swish, "hard_swish", 0) X(HardSigmoid, hard_sigmoid, "hard_sigmoid", 2) X(Mish, mish, "mish", 0) \
  X(Softsign, softsign, "softsign", 0) X(LogSigmoid, log_sigmoid, "log_sigmoid", 0) X(Expm1, expm1, "expm1", 0)     \
  X(Log1p, log1p, "log1p", 0) X(Not, logical_not, "not", 0) X(Square, square, "square", 0) \
  X(LeakyRelu, leaky_relu, "leaky_relu", 1) X(Asin, asin, "asin", 0) X(Acos, acos, "acos", 0) X(Sinh, sinh, "sinh", 0) \
  X(Cosh, cosh, "cosh", 0) X(Asinh, asinh, "asinh", 0) X(Acosh, acosh, "acosh", 0) X(Atanh, atanh, "atanh", 0) \
  X(Exp2, exp2, "exp2", 0) X(Log2, log2, "log2", 0) X(Log10, log10, "log10", 0) X(Cbrt, cbrt, "cbrt", 0) \
  X(Trunc, trunc, "trunc", 0) X(Erfinv, erfinv, "erfinv", 0) X(Erfc, erfc, "erfc", 0) X(Lgamma, lgamma, "lgamma", 0) \
  X(Digamma, digamma, "digamma", 0) X(Polygamma, polygamma, "polygamma", 1) X(Sinc, sinc, "sinc", 0) \
  X(Popcount, popcount, "popcount", 0) X(Clz, clz, "clz", 0)

enum class ActivationKind : std::uint8_t {
#define RLX_ENUMERATOR(Kind, call, text, params) Kind,
  RLX_FOR_EACH_FUNCTION(RLX_ENUMERATOR)
#undef RLX_ENUMERATOR
};
/// Elementwise functions of two operands, which broadcast. Integer Div truncates toward zero. Mod has the divisor's
/// sign (Python's %), Rem the dividend's (C's fmod). The bit ops take integers or Bool. Shifts by a negative count or
/// by the width or more give 0 (-1 for Shr of a negative number). Igamma(a, x) is the regularised lower incomplete
/// gamma function P, Igammac is 1 - P, IgammaGradA is the derivative of P by a.
enum class BinaryKind : std::uint8_t {
  Add, Sub, Mul, Div, Max, Min, Pow, Mod, Atan2, BitAnd, BitOr, BitXor, Shl, Shr,
  Rem, Hypot, LogAddExp, Igamma, Igammac, IgammaGradA
};
/// Comparisons, which broadcast and give Bool. With NaN every one but Ne is false.
enum class CompareKind : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
enum class ReduceKind : std::uint8_t { Sum, Mean, Max, Min, Prod };
enum class CumulativeKind : std::uint8_t { Sum, Prod, Max, Min };
/// How a scatter combines an update with the element it names. Among updates to one element, Set keeps the last.
enum class ScatterKind : std::uint8_t { Set, Add, Mul, Min, Max };
/// How an index outside [0, extent) is handled. No op counts a negative index from the end. Clamp uses the nearest
/// index inside. Drop discards the update. Fill reads the fill value.
enum class IndexMode : std::uint8_t { Clamp, Drop, Fill };
/// The grouped dimension of a grouped matmul. Rows: each row uses its group's matrix. Contract: rows of a group are
/// contracted into its matrix.
enum class GroupedKind : std::uint8_t { Rows, Contract };
enum class MaskKind : std::uint8_t { None, Causal, SlidingWindow, Custom, Bias };
/// The layout of heads in q, k, v and the output: [B, S, H*D], [B, H, S, D] or [B, S, H, D].
enum class HeadLayout : std::uint8_t { Merged, HeadsFirst, HeadsInner };
/// The pairs of elements that rope rotates. Half: (i, i + n_rot / 2). Interleaved: (2i, 2i + 1).
enum class RopePairing : std::uint8_t { Half, Interleaved };
/// How often a param is set. Frozen: seldom, so values that depend on params alone are computed and packed when they
/// are set. Mutable: between runs, so the param is read as it is and setting it is one copy. (A weight that the program
/// itself updates, as in training, is a State.)
enum class ParamMode : std::uint8_t { Frozen, Mutable };
/// What a Call keeps of its body for reverse mode. All: everything the derivative reads. Dots: only the matmul results
/// among it; the rest is recomputed. Nothing: everything is recomputed from the operands.
enum class CallSave : std::uint8_t { All, Dots, Nothing };

/// Lower-case text names of an attribute enum, in enumerator order.
template <class E>
struct EnumNames;
template <> struct EnumNames<ActivationKind> {
#define RLX_TEXT(Kind, call, text, params) text,
  static constexpr std::string_view values[] = {RLX_FOR_EACH_FUNCTION(RLX_TEXT)};
#undef RLX_TEXT
};
template <> struct EnumNames<BinaryKind> {
  static constexpr std::string_view values[] = {
      "add", "sub", "mul", "div", "max", "min", "pow", "mod", "atan2", "bit_and", "bit_or", "bit_xor", "shl", "shr",
      "rem", "hypot", "logaddexp", "igamma", "igammac", "igamma_grad_a"};
};
template <> struct EnumNames<CompareKind> {
  static constexpr std::string_view values[] = {"eq", "ne", "lt", "le", "gt", "ge"};
};
template <> struct EnumNames<ReduceKind> {
  static constexpr std::string_view values[] = {"sum", "mean", "max", "min", "prod"};
};
template <> struct EnumNames<CumulativeKind> {
  static constexpr std::string_view values[] = {"sum", "prod", "max", "min"};
};
template <> struct EnumNames<ScatterKind> {
  static constexpr std::string_view values[] = {"set", "add", "mul", "min", "max"};
};
template <> struct EnumNames<IndexMode> { static constexpr std::string_view values[] = {"clamp", "drop", "fill"}; };
template <> struct EnumNames<GroupedKind> { static constexpr std::string_view values[] = {"rows", "contract"}; };
template <> struct EnumNames<MaskKind> {
  static constexpr std::string_view values[] = {"none", "causal", "sliding_window", "custom", "bias"};
};
template <> struct EnumNames<HeadLayout> {
  static constexpr std::string_view values[] = {"merged", "heads_first", "heads_inner"};
};
template <> struct EnumNames<RopePairing> { static constexpr std::string_view values[] = {"half", "interleaved"}; };
template <> struct EnumNames<CallSave> { static constexpr std::string_view values[] = {"all", "dots", "nothing"}; };
template <> struct EnumNames<ParamMode> { static constexpr std::string_view values[] = {"frozen", "mutable"}; };

template <class E>
constexpr std::string_view enum_name(E value) {
  const auto i = static_cast<std::size_t>(value);
  if (i >= std::size(EnumNames<E>::values))
    detail::throw_no_enumerator("the attribute's type", static_cast<std::int64_t>(value));
  return EnumNames<E>::values[i];
}
inline constexpr int kNumActivationKinds = static_cast<int>(std::size(EnumNames<ActivationKind>::values));
inline constexpr int kNumBinaryKinds = static_cast<int>(std::size(EnumNames<BinaryKind>::values));
// clang-format on

}  // namespace rlx
