// Builder functions of Graph: `g.matmul(x, w)`, operators on values, scalars as operands.
//
// Every function appends nodes to the graph, infers and checks shapes at once, and throws rlx::Error naming the user's
// line. The general functions (binary, softmax, matmul, ...) take the declared result shape as an optional last
// argument; the short names (add, gelu, sum, ...) infer it. Axes may be negative. Operands of different dtypes are cast
// by JAX's promotion table (k and v of attention too); an update written into another value takes that value's dtype. A
// scalar takes the dtype of the tensor beside it; an integer that this dtype cannot hold is an error. Shapes are named
// like [B, S, H].
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/value.h"
#include "rlx/tensor/block_schemes.h"
#include "rlx/tensor/tensor.h"

namespace rlx {

/// The result shape a caller declares as the last argument of a builder function: checked against inference, which
/// alone decides. A ShapeMismatch names both.
class DeclaredShape {
 public:
  DeclaredShape() = default;
  DeclaredShape(Shape shape) : shape_(std::move(shape)) {}  // NOLINT(implicit)
  DeclaredShape(Dims dims, DType dtype) : shape_(Shape(std::move(dims), dtype)) {}
  /// `e`, when its shape is the declared one or none was.
  Expr check(Expr e) const;

 private:
  std::optional<Shape> shape_;
};

/// Several values: what a body takes and gives. One value is a list of one.
class ExprList : public std::vector<Expr> {
 public:
  ExprList() = default;
  ExprList(Expr e) : std::vector<Expr>{std::move(e)} {}                     // NOLINT(implicit)
  ExprList(std::initializer_list<Expr> list) : std::vector<Expr>(list) {}   // NOLINT(implicit)
  ExprList(std::vector<Expr> list) : std::vector<Expr>(std::move(list)) {}  // NOLINT(implicit)
};
/// What one step of a loop gives: the carries of the next one, and a row of each y.
struct LoopStep {
  ExprList carries, ys;
  LoopStep(Expr carry) : carries(std::move(carry)) {}                                         // NOLINT(implicit)
  LoopStep(ExprList carry, ExprList y = {}) : carries(std::move(carry)), ys(std::move(y)) {}  // NOLINT(implicit)
};
/// The last carries, the stacked ys [length, ..], and of a while loop the trips it made (I64).
struct LoopResult {
  ExprList carries, ys;
  Expr trips{};
};

/// Builds a body on the graph it is given from the Inputs that stand for its operands. Values of the graphs around may
/// be used as they are: they become operands too.
using BodyFn = std::function<ExprList(Graph& body, const ExprList& operands)>;
using BranchFn = std::function<ExprList(Graph& body)>;
using ScanFn = std::function<LoopStep(Graph& body, const ExprList& carries, const ExprList& xs)>;
using WhileFn = std::function<LoopStep(Graph& body, const ExprList& carries)>;
using ConditionFn = std::function<Expr(Graph& body, const ExprList& carries)>;

struct ScanOptions {
  std::optional<Dim> length{};  // needed where there are no xs
  bool reverse = false;         // from the last row to the first
  bool checkpoint = false;      // reverse mode computes each step again from its carries, instead of keeping it
  std::string name = "scan";
};
struct WhileOptions {
  std::optional<std::int64_t> max_trips{};  // the loop stops there; needed for ys and for reverse mode
  bool cut_ys = false;                      // ys have rows of trips that happened alone: their extent is a symbol
  std::string name = "while";
};
/// A function with derivatives of its own, any of which may be left out. Tangents and cotangents are those of floating
/// and complex values.
struct CustomFn {
  BodyFn body;        // operands -> results
  BodyFn forward{};   // operands -> results.., residuals..; only with `backward`
  BodyFn backward{};  // residuals (without `forward`: operands.., results..) and cotangents -> cotangents of operands
  BodyFn jvp{};       // operands.., tangents.. -> results.., tangents of the results
  std::string name = "custom_fn";
};

/// The operands that an attention may have: see ops::Attention and ops::PagedAttention (mask, sinks).
struct AttentionOptions {
  std::optional<Operand> mask{}, kv_len{}, q_len{}, sinks{};
};

class Builder {
 public:
  // -- leaves
  /// A run-time tensor, bound by name at each run.
  Expr input(std::string name, Shape shape, SourceLoc loc = SourceLoc::current());
  /// A weight, bound by name. Frozen: set seldom, packed for its kernel; Mutable: set between runs, read as it is.
  Expr param(std::string name, Shape shape, ParamMode mode = ParamMode::Frozen, SourceLoc loc = SourceLoc::current());
  Expr constant(Tensor value, SourceLoc loc = SourceLoc::current());
  /// A rank-0 constant of any C++ number; an error naming the range when an integer dtype does not hold it.
  template <class T>
    requires std::is_arithmetic_v<T>
  Expr scalar(T value, DType dtype = DType::F32, SourceLoc loc = SourceLoc::current()) {
    return scalar_constant(Operand(value, loc), dtype);
  }
  /// A persistent value that starts as `init`, which lies on the host, as a constant's value does.
  Expr state(std::string name, Tensor init, SourceLoc loc = SourceLoc::current());

  // -- elementwise
  Expr activation(ActivationKind fn, Operand x, const DeclaredShape& shape = {});
  /// fn of x with parameters of its own; see ops::Activation.
  Expr activation(ActivationKind fn, Operand x, std::optional<double> alpha, std::optional<double> beta);
  /// log.
  Expr ln(Operand x) { return activation(ActivationKind::Log, x); }

  Expr binary(BinaryKind fn, Operand a, Operand b, const DeclaredShape& shape = {});
  Expr add(Operand a, Operand b) { return binary(BinaryKind::Add, a, b); }
  Expr sub(Operand a, Operand b) { return binary(BinaryKind::Sub, a, b); }
  Expr mul(Operand a, Operand b) { return binary(BinaryKind::Mul, a, b); }
  Expr div(Operand a, Operand b) { return binary(BinaryKind::Div, a, b); }
  Expr max(Operand a, Operand b) { return binary(BinaryKind::Max, a, b); }
  Expr min(Operand a, Operand b) { return binary(BinaryKind::Min, a, b); }
  Expr pow(Operand a, Operand b) { return binary(BinaryKind::Pow, a, b); }
  Expr mod(Operand a, Operand b) { return binary(BinaryKind::Mod, a, b); }
  Expr atan2(Operand a, Operand b) { return binary(BinaryKind::Atan2, a, b); }
  Expr bit_and(Operand a, Operand b) { return binary(BinaryKind::BitAnd, a, b); }
  Expr bit_or(Operand a, Operand b) { return binary(BinaryKind::BitOr, a, b); }
  Expr bit_xor(Operand a, Operand b) { return binary(BinaryKind::BitXor, a, b); }
  Expr shl(Operand a, Operand b) { return binary(BinaryKind::Shl, a, b); }
  Expr shr(Operand a, Operand b) { return binary(BinaryKind::Shr, a, b); }
  Expr rem(Operand a, Operand b) { return binary(BinaryKind::Rem, a, b); }
  /// sqrt(a^2 + b^2), without overflow of the squares.
  Expr hypot(Operand a, Operand b) { return binary(BinaryKind::Hypot, a, b); }
  /// log(exp(a) + exp(b)), without overflow of the exponentials.
  Expr logaddexp(Operand a, Operand b) { return binary(BinaryKind::LogAddExp, a, b); }
  /// P(a, x), the regularised lower incomplete gamma function, Q = 1 - P, and dP/da: see BinaryKind.
  Expr igamma(Operand a, Operand x) { return binary(BinaryKind::Igamma, a, x); }
  Expr igammac(Operand a, Operand x) { return binary(BinaryKind::Igammac, a, x); }
  Expr igamma_grad_a(Operand a, Operand x) { return binary(BinaryKind::IgammaGradA, a, x); }

  Expr compare(CompareKind fn, Operand a, Operand b, const DeclaredShape& shape = {});
  Expr eq(Operand a, Operand b) { return compare(CompareKind::Eq, a, b); }
  Expr ne(Operand a, Operand b) { return compare(CompareKind::Ne, a, b); }
  Expr lt(Operand a, Operand b) { return compare(CompareKind::Lt, a, b); }
  Expr le(Operand a, Operand b) { return compare(CompareKind::Le, a, b); }
  Expr gt(Operand a, Operand b) { return compare(CompareKind::Gt, a, b); }
  Expr ge(Operand a, Operand b) { return compare(CompareKind::Ge, a, b); }

  /// cond ? a : b; cond Bool (another dtype is compared with zero first).
  Expr where(Operand cond, Operand a, Operand b, const DeclaredShape& shape = {});
  /// x as `to`; x itself when it already is.
  Expr cast(Operand x, DType to, const DeclaredShape& shape = {});
  Expr clamp(Operand x, Operand low, Operand high, const DeclaredShape& shape = {});
  Expr stop_gradient(Operand x);

  // -- shape
  /// One entry may be -1; it is inferred.
  Expr reshape(Operand x, Dims dims, const DeclaredShape& shape = {});
  Expr transpose(Operand x, std::vector<std::int64_t> perm, const DeclaredShape& shape = {});
  /// The last two axes swapped.
  Expr t(Operand x);
  /// x broadcast to `dims` (NumPy rules).
  Expr expand(Operand x, Dims dims, const DeclaredShape& shape = {});
  Expr slice(Operand x, Dims starts, Dims limits, std::vector<std::int64_t> strides = {},
             const DeclaredShape& shape = {});
  /// x[start, start + len) along `axis`.
  Expr narrow(Operand x, std::int64_t axis, Dim start, Dim len, const DeclaredShape& shape = {});
  Expr concat(const std::vector<Expr>& xs, std::int64_t axis, const DeclaredShape& shape = {},
              SourceLoc loc = SourceLoc::current());
  Expr pad(Operand x, std::vector<std::int64_t> low, std::vector<std::int64_t> high, Operand value = 0,
           std::vector<std::int64_t> interior = {}, const DeclaredShape& shape = {});
  Expr reverse(Operand x, std::vector<std::int64_t> axes);
  Expr iota(Shape shape, std::int64_t axis, SourceLoc loc = SourceLoc::current());
  Expr unsqueeze(Operand x, std::int64_t axis);
  Expr squeeze(Operand x, std::int64_t axis);
  Expr dim_size(Operand x, std::int64_t axis);

  // -- extents that are values (builder_by_value.cpp, docs/runtime.md): symbols of the graph, which bodies have not
  /// A dimension that in each run is `value`, an integer scalar in [min, max]: a new symbol with this source
  /// (Graph::symbol gives it a name and a divisor). A run with another value is an error.
  Dim value_dim(Operand value, std::int64_t max, std::int64_t min = 0);
  /// The first `count` along `axis`, an integer scalar from 0 to the extent there: x[:count].
  Expr first(Operand x, Operand count, std::int64_t axis = 0);
  /// The rows of x along `axis` where mask [extent], a Bool, is true, in their order; numpy.compress, ONNX Compress.
  Expr compress(Operand x, Operand mask, std::int64_t axis = 0);
  /// Where x is not zero, in row-major order: indices I64 [rank, n]; ONNX NonZero.
  Expr nonzero(Operand x);

  // -- indexing
  /// Rows of `table` along `axis`; indices I32 or I64, clamped into range: a negative one is the first row.
  Expr gather(Operand table, Operand indices, std::int64_t axis = 0, const DeclaredShape& shape = {});
  /// Elements along the axes of `op`, which may be negative and in any order; the index tensors broadcast.
  Expr gather(Operand table, const ExprList& indices, ops::Gather op, const DeclaredShape& shape = {});
  Expr scatter_add(Operand operand, Operand indices, Operand updates, std::int64_t axis = 0,
                   const DeclaredShape& shape = {});
  /// Updates put by `fn` into rows along `axis`; indices out of range, negative ones too, are dropped.
  Expr scatter(ScatterKind fn, Operand operand, Operand indices, Operand updates, std::int64_t axis = 0,
               const DeclaredShape& shape = {});
  /// The same along several axes, as for gather.
  Expr scatter(Operand operand, const ExprList& indices, Operand updates, ops::Scatter op,
               const DeclaredShape& shape = {});
  /// numpy.take: rows along `axis`, where a negative index counts from the end; out of range as `mode` says.
  Expr take(Operand table, Operand indices, std::int64_t axis, IndexMode mode = IndexMode::Clamp);
  /// numpy.take_along_axis and ONNX GatherElements: x at an index for each place of `indices`, which has the rank of x
  /// and at most its extents (or 1) on other axes; negative ones count from the end.
  Expr take_along_axis(Operand x, Operand indices, std::int64_t axis);
  /// numpy.put_along_axis and ONNX ScatterElements: the updates, of the dims of `indices`, put by `fn`.
  Expr put_along_axis(Operand x, Operand indices, Operand updates, std::int64_t axis,
                      ScatterKind fn = ScatterKind::Set);
  /// ONNX GatherND: indices [batch.., .., A] name elements of the A axes behind the first `batch_dims`, which both
  /// share; negative ones count from the end.
  Expr gather_nd(Operand x, Operand indices, std::int64_t batch_dims = 0);
  /// ONNX ScatterND: the updates put by `fn` where indices [.., A] name elements of the first A axes.
  Expr scatter_nd(Operand x, Operand indices, Operand updates, ScatterKind fn = ScatterKind::Set);
  /// x in stable order along `axis`, NaN above all numbers.
  Expr sort(Operand x, std::int64_t axis = -1, bool descending = false);
  /// keys so, and each of `values` in the order of the keys: {keys, values..}.
  ExprList sort(Operand keys, const ExprList& values, std::int64_t axis = -1, bool descending = false);
  /// The places that the sorted elements had, I32.
  Expr argsort(Operand x, std::int64_t axis = -1, bool descending = false);
  Expr dynamic_slice(Operand x, Operand starts, Dims sizes);
  Expr dynamic_update_slice(Operand x, Operand update, Operand starts);
  struct TopKResult;
  /// The k largest of the last axis: {values, indices I32}.
  TopKResult top_k(Operand x, std::int64_t k);
  Expr arg_max(Operand x, std::int64_t axis, bool keep_dims = false);
  Expr arg_min(Operand x, std::int64_t axis, bool keep_dims = false);

  // -- reductions
  /// Over `axes` (all axes when empty).
  Expr reduce(ReduceKind fn, Operand x, std::vector<std::int64_t> axes, bool keep_dims = false,
              const DeclaredShape& shape = {});
  Expr sum(Operand x, std::vector<std::int64_t> axes = {}, bool keep_dims = false) {
    return reduce(ReduceKind::Sum, x, std::move(axes), keep_dims);
  }
  Expr mean(Operand x, std::vector<std::int64_t> axes = {}, bool keep_dims = false) {
    return reduce(ReduceKind::Mean, x, std::move(axes), keep_dims);
  }
  Expr reduce_max(Operand x, std::vector<std::int64_t> axes = {}, bool keep_dims = false) {
    return reduce(ReduceKind::Max, x, std::move(axes), keep_dims);
  }
  Expr reduce_min(Operand x, std::vector<std::int64_t> axes = {}, bool keep_dims = false) {
    return reduce(ReduceKind::Min, x, std::move(axes), keep_dims);
  }
  Expr reduce_prod(Operand x, std::vector<std::int64_t> axes = {}, bool keep_dims = false) {
    return reduce(ReduceKind::Prod, x, std::move(axes), keep_dims);
  }
  Expr cumulative(CumulativeKind fn, Operand x, std::int64_t axis, bool exclusive = false, bool reverse = false,
                  const DeclaredShape& shape = {});
  Expr cumsum(Operand x, std::int64_t axis, bool exclusive = false, bool reverse = false) {
    return cumulative(CumulativeKind::Sum, x, axis, exclusive, reverse);
  }
  Expr cumprod(Operand x, std::int64_t axis, bool exclusive = false, bool reverse = false) {
    return cumulative(CumulativeKind::Prod, x, axis, exclusive, reverse);
  }
  Expr cummax(Operand x, std::int64_t axis, bool exclusive = false, bool reverse = false) {
    return cumulative(CumulativeKind::Max, x, axis, exclusive, reverse);
  }
  Expr cummin(Operand x, std::int64_t axis, bool exclusive = false, bool reverse = false) {
    return cumulative(CumulativeKind::Min, x, axis, exclusive, reverse);
  }
  Expr softmax(Operand x, std::int64_t axis = -1, const DeclaredShape& shape = {});
  Expr sm(Operand x, std::int64_t axis = -1) { return softmax(x, axis); }
  Expr log_softmax(Operand x, std::int64_t axis = -1, const DeclaredShape& shape = {});

  // -- linear algebra
  /// NumPy matmul; rank-1 operands get a 1 that is removed again.
  Expr matmul(Operand a, Operand b, const DeclaredShape& shape = {});
  Expr mm(Operand a, Operand b) { return matmul(a, b); }
  /// With dims.out the operands keep their dtypes.
  Expr dot_general(Operand a, Operand b, ops::DotGeneral dims, const DeclaredShape& shape = {});
  /// x [M, K] times the matrix of each row's group, of w [E, K, N]: [M, N]; zeros where ids [M] is outside [0, E).
  Expr grouped_dot(Operand x, Operand w, Operand ids);
  /// The sums of x [M, K] by y [M, N] over the rows of each of `groups` groups: [E, K, N].
  Expr grouped_dot_contract(Operand x, Operand y, Operand ids, std::int64_t groups);

  // -- random numbers (builder_random.cpp); keys are U32 [.., 2], one for each array of results [.., dims] --
  /// The key of a seed, as jax.random.key.
  Expr rng_key(std::uint64_t seed, SourceLoc loc = SourceLoc::current());
  /// U8, U16, U32 or U64, as jax.random.bits: see ops::RngBits.
  Expr rng_bits(Operand key, Dims dims, DType dtype = DType::U32);
  /// `count` keys [.., count, 2] of one.
  Expr rng_split(Operand key, Dim count = 2);
  /// The key of an integer and a key; the integer is taken modulo 2^32.
  Expr rng_fold_in(Operand key, Operand data);
  /// Floats in [low, high), a multiple of the gap below 1 apart.
  Expr rng_uniform(Operand key, Dims dims, DType dtype = DType::F32, double low = 0, double high = 1);
  /// N(0, 1) by the inverse of erf.
  Expr rng_normal(Operand key, Dims dims, DType dtype = DType::F32);
  /// Bool, true with probability p.
  Expr rng_bernoulli(Operand key, double p, Dims dims);
  struct SampleResult;
  struct SampleSettings;
  /// A token I32 [B] of each row of logits [B, V], and its logarithm of probability: see ops::Sample.
  SampleResult sample(Operand logits, Operand key, const SampleSettings& settings);

  // -- normalisation, attention, position
  /// gamma, beta: of the dims of `axes`, in ascending order. The mean and 1 / sqrt(var + eps) are results 1 and 2.
  Expr layer_norm(Operand x, std::optional<Operand> gamma = std::nullopt, std::optional<Operand> beta = std::nullopt,
                  double eps = 1e-5, const std::vector<std::int64_t>& axes = {-1}, const DeclaredShape& shape = {});
  /// The same without the mean; 1 / sqrt(mean of squares + eps) is result 1.
  Expr rms_norm(Operand x, std::optional<Operand> gamma = std::nullopt, std::optional<Operand> beta = std::nullopt,
                double eps = 1e-6, const std::vector<std::int64_t>& axes = {-1}, const DeclaredShape& shape = {});
  /// See ops::Attention; `mask` is the operand of Custom and Bias. k and v keep their dtype. Result 1 of the node is
  /// the log of the softmax's sums: `y.result(1)`.
  Expr attention(Operand q, Operand k, Operand v, ops::Attention op, std::optional<Operand> mask = std::nullopt,
                 const DeclaredShape& shape = {});
  /// The same with lengths of the keys and queries [B] or sinks [H]: `g.attention(q, k, v, op, {.kv_len = n})`.
  Expr attention(Operand q, Operand k, Operand v, ops::Attention op, const AttentionOptions& options,
                 const DeclaredShape& shape = {});
  /// See ops::PagedAttention; of the options mask and sinks. Result 1 is the log of the softmax's sums.
  Expr paged_attention(Operand q, Operand k_pool, Operand v_pool, Operand block_table, Operand kv_len, Operand q_start,
                       ops::PagedAttention op, const AttentionOptions& options = {}, const DeclaredShape& shape = {});
  /// See ops::Rope; n_rot 0 means the whole head.
  Expr rope(Operand x, Operand cos, Operand sin, ops::Rope op, const DeclaredShape& shape = {});
  /// The same with the table rows that the elements of a sequence take, I32 [S] or [B, S].
  Expr rope(Operand x, Operand cos, Operand sin, Operand positions, ops::Rope op, const DeclaredShape& shape = {});

  // -- functions of one operand: one call for each of RLX_FOR_EACH_FUNCTION (op_kind.h), as g.gelu(x) or, of functions
  // with parameters, g.elu(x, 0.5) --
#define RLX_CALL_0(Kind, call) \
  Expr call(Operand x) { return activation(ActivationKind::Kind, x); }
#define RLX_CALL_1(Kind, call) \
  Expr call(Operand x, std::optional<double> alpha = {}) { return activation(ActivationKind::Kind, x, alpha, {}); }
#define RLX_CALL_2(Kind, call)                                                              \
  Expr call(Operand x, std::optional<double> alpha = {}, std::optional<double> beta = {}) { \
    return activation(ActivationKind::Kind, x, alpha, beta);                                \
  }
#define RLX_CALL(Kind, call, text, params) RLX_CALL_##params(Kind, call)
  RLX_FOR_EACH_FUNCTION(RLX_CALL);
#undef RLX_CALL
#undef RLX_CALL_0
#undef RLX_CALL_1
#undef RLX_CALL_2

  // -- quantised values (docs/quantisation.md); the axis of an op may be negative, without an op there is one scale --
  /// Codes of x, i8 without an op: see ops::Quantize.
  Expr quantize(Operand x, Operand scale);
  Expr quantize(Operand x, Operand scale, ops::Quantize op, std::optional<Operand> zero_point = std::nullopt,
                const DeclaredShape& shape = {});
  /// x as blocks U8 [.., row bytes] of q8_0, q4_0, q4_1, q5_0 or q5_1.
  Expr quantize(Operand x, QuantScheme scheme, const DeclaredShape& shape = {});
  /// The numbers that affine codes stand for, f32 without an op: see ops::Dequantize. An absent scale is 1.
  Expr dequantize(Operand codes, std::optional<Operand> scale);
  Expr dequantize(Operand codes, std::optional<Operand> scale, ops::Dequantize op,
                  std::optional<Operand> zero_point = std::nullopt, std::optional<Operand> global_scale = std::nullopt,
                  const DeclaredShape& shape = {});
  /// The numbers that codes U8 [.., row bytes] of a block scheme stand for: [.., row elements].
  Expr dequantize(Operand codes, QuantScheme scheme, DType dtype = DType::F32, const DeclaredShape& shape = {});
  struct DynamicQuantizeResult;
  /// Codes with the scale and zero point of x itself, symmetric i8 without an op: see ops::DynamicQuantize.
  DynamicQuantizeResult dynamic_quantize(Operand x);
  DynamicQuantizeResult dynamic_quantize(Operand x, ops::DynamicQuantize op);
  struct FakeQuantizeResult;
  /// x as codes would give it back, of 8 bits without an op, and the scale that was used: see ops::FakeQuantize.
  FakeQuantizeResult fake_quantize(Operand x);
  FakeQuantizeResult fake_quantize(Operand x, ops::FakeQuantize op, std::optional<Operand> scale = std::nullopt);
  /// x [.., K] times a quantised weight: the documented name of a product and a dequantize. Affine codes are [K, N];
  /// block schemes [N, row bytes], which stand for [N, K], as GGUF lies.
  Expr dequant_matmul(Operand x, Operand codes, std::optional<Operand> scale);
  Expr dequant_matmul(Operand x, Operand codes, std::optional<Operand> scale, ops::Dequantize op,
                      std::optional<Operand> zero_point = std::nullopt,
                      std::optional<Operand> global_scale = std::nullopt);
  Expr dequant_matmul(Operand x, Operand codes, QuantScheme scheme);

  // -- bits and complex values
  /// The bits of x as `to`; where the widths differ, the last axis has the ratio: see ops::Bitcast.
  Expr bitcast(Operand x, DType to);
  /// re + i im of floats of equal shapes: F32 gives C64, F64 C128.
  Expr complex(Operand re, Operand im);
  /// Of complex x in its real dtype; of other dtypes x itself, and zeros.
  Expr real(Operand x);
  Expr imag(Operand x);
  /// re - i im; x itself where it is not complex.
  Expr conj(Operand x);

  // -- convolution and windows: see the structs; conv1d, pools, interpolation and more are in rlx/functions
  Expr conv(Operand x, Operand w, ops::Conv op, const DeclaredShape& shape = {});
  Expr reduce_window(Operand x, ops::ReduceWindow op, const DeclaredShape& shape = {});
  Expr select_and_scatter(Operand x, Operand source, ops::SelectAndScatter op);
  struct ConvOptions;
  /// x [N, C, H, W] with filters w [O, C / groups, kH, kW] -> [N, O, H', W'].
  Expr conv2d(Operand x, Operand w, const ConvOptions& options);
  Expr conv2d(Operand x, Operand w);
  /// Its transpose, after PyTorch: w [C, O / groups, kH, kW].
  Expr conv_transpose2d(Operand x, Operand w, const ConvOptions& options);
  /// x [N, C, H, W] normalised over C at each place; gamma, beta [C].
  Expr layer_norm2d(Operand x, Operand gamma, Operand beta, double eps = 1e-5);
  /// x [N, C, ..] normalised over each of `groups` groups of channels; gamma, beta [C].
  Expr group_norm(Operand x, std::int64_t groups, std::optional<Operand> gamma = std::nullopt,
                  std::optional<Operand> beta = std::nullopt, double eps = 1e-5);

  // -- Fourier transforms and matrix factors: see the structs; rlx/functions has numpy's fft and linalg
  Expr fft(Operand x, ops::Fft op, const DeclaredShape& shape = {});
  Expr cholesky(Operand a);
  Expr triangular_solve(Operand a, Operand b, ops::TriangularSolve op);
  ExprList lu(Operand a);
  ExprList qr(Operand a, bool full = false);
  ExprList eigh(Operand a);
  ExprList svd(Operand a, bool full = false);

  // -- recurrences, losses, codes: see the structs; operands in the order of their records, absent ones left out
  ExprList rnn(ops::Rnn op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  ExprList gru(ops::Gru op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  ExprList lstm(ops::Lstm op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  ExprList selective_scan(ops::SelectiveScan op, const std::vector<Expr>& operands,
                          SourceLoc loc = SourceLoc::current());
  ExprList mamba2(ops::Mamba2 op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  ExprList gated_delta_net(ops::GatedDeltaNet op, const std::vector<Expr>& operands,
                           SourceLoc loc = SourceLoc::current());
  Expr softmax_cross_entropy(Operand logits, Operand labels);
  Expr fake_quantize_lsq(Operand x, Operand scale, ops::FakeQuantizeLsq op);
  Expr q_matmul(ops::QMatMul op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  Expr q_conv(ops::QConv op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());

  // -- HIR blocks (lowered by FusionPolicy)
  /// act(x w + bias); x [.., K], w [K, N], bias [N].
  Expr linear(Operand x, Operand w, std::optional<Operand> bias = std::nullopt,
              std::optional<ActivationKind> activation = std::nullopt);
  Expr linear_fused(Operand x, Operand w, Operand bias, std::optional<ActivationKind> activation = std::nullopt);
  std::pair<Expr, Expr> shared_linear_pair(Operand x, Operand w1, Operand w2);
  Expr swiglu(Operand x, Operand w_up, Operand w_gate, Operand w_down);
  Expr residual_rms_norm(Operand x, Operand residual, Operand gamma, Operand beta, double eps = 1e-6);
  Expr residual_layer_norm(Operand x, Operand residual, Operand gamma, Operand beta, double eps = 1e-5);
  /// Operands in the order of ops::EncoderBlock.
  Expr encoder_block(ops::EncoderBlock op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  /// Operands in the order of ops::LlamaDecoderBlock.
  Expr llama_decoder_block(ops::LlamaDecoderBlock op, const std::vector<Expr>& operands,
                           SourceLoc loc = SourceLoc::current());

  // -- control flow (builder_control.cpp). InvalidArgument for a body that declares inputs, params or states: create
  // those on the graph around it, and use them
  /// then(operands..) where pred, a Bool scalar, is true, else otherwise(operands..); both give values of equal types.
  ExprList cond(Operand pred, const ExprList& operands, const BodyFn& then, const BodyFn& otherwise,
                SourceLoc loc = SourceLoc::current());
  /// The same for branches that take what they need from the graphs around them.
  ExprList cond(Operand pred, const BranchFn& then, const BranchFn& otherwise, SourceLoc loc = SourceLoc::current());
  /// cond for branches whose results have equal ranks and dtypes, but may differ in extents: each such extent is a
  /// symbol of the graph, and the branch that is smaller there takes the memory of the other.
  ExprList cond_ragged(Operand pred, const ExprList& operands, const BodyFn& then, const BodyFn& otherwise,
                       SourceLoc loc = SourceLoc::current());
  /// body(carries, rows of xs) for every row of xs [length, ..], from `init` on; carries keep their types.
  LoopResult scan(const ExprList& init, const ExprList& xs, const ScanFn& body, const ScanOptions& options = {},
                  SourceLoc loc = SourceLoc::current());
  /// body(carries) as long as condition(carries), a Bool scalar, holds; rows of ys behind the last trip are zero.
  LoopResult while_loop(const ExprList& init, const ConditionFn& condition, const WhileFn& body,
                        const WhileOptions& options = {}, SourceLoc loc = SourceLoc::current());
  /// body(operands..) as one op with a name, until the compiler writes it out.
  ExprList call(std::string name, const ExprList& operands, const BodyFn& body, SourceLoc loc = SourceLoc::current());
  /// The same, of which reverse mode keeps only what `save` says, and computes the rest again.
  ExprList checkpoint(const ExprList& operands, const BodyFn& body, CallSave save = CallSave::Nothing,
                      SourceLoc loc = SourceLoc::current());
  /// fn.body(operands..) with the derivatives of `fn`, whose bodies take nothing from the graphs around them.
  ExprList custom_fn(const ExprList& operands, const CustomFn& fn, SourceLoc loc = SourceLoc::current());
  /// The values, across which no pass merges or moves anything.
  ExprList optimization_barrier(const ExprList& xs, SourceLoc loc = SourceLoc::current());

  // -- between ranks (ops/collectives.h): `mesh_axes` is "data" or "data,model", `ranks` the number of ranks there
  /// The sum, mean, product, largest or smallest over the ranks, on all of them.
  Expr all_reduce(Operand x, ReduceKind fn, std::string mesh_axes, std::int64_t ranks);
  /// The same of several values at once.
  ExprList all_reduce_each(const ExprList& xs, ReduceKind fn, std::string mesh_axes, std::int64_t ranks,
                           SourceLoc loc = SourceLoc::current());
  /// The values of all ranks joined along `axis`.
  Expr all_gather(Operand x, std::int64_t axis, std::string mesh_axes, std::int64_t ranks);
  /// This rank's part along `axis` of the sum or the mean.
  Expr reduce_scatter(Operand x, ReduceKind fn, std::int64_t axis, std::string mesh_axes, std::int64_t ranks);
  /// Part s along `split` goes to rank s; what comes is joined along `concat`.
  Expr all_to_all(Operand x, std::int64_t split, std::int64_t concat, std::string mesh_axes, std::int64_t ranks);
  /// For every {source, target} the value of rank source goes to rank target; who is no target gets zeros.
  Expr permute(Operand x, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, std::string mesh_axes,
               std::int64_t ranks);
  /// The number of this rank there, an I64 scalar.
  Expr axis_index(std::string mesh_axes, std::int64_t ranks, SourceLoc loc = SourceLoc::current());

 private:
  Graph& graph();
  Expr scalar_constant(const Operand& value, DType dtype);
};

/// One entry for each axis of space; one entry alone is that of all of them.
struct Builder::ConvOptions {
  std::vector<std::int64_t> strides{1}, padding{0}, dilation{1}, output_padding{0};
  std::int64_t groups = 1;
};
struct Builder::TopKResult {
  Expr values, indices;
};
/// Numbers, or values [] or [B]; what is not given does nothing.
struct Builder::SampleSettings {
  std::optional<Operand> temperature{}, top_k{}, top_p{}, min_p{};
  std::optional<Operand> mask_bits{};  // U32 [B, ceil(V / 32)]
};
struct Builder::SampleResult {
  Expr token, logprob;
};
struct Builder::DynamicQuantizeResult {
  Expr codes, scale, zero_point;
};
struct Builder::FakeQuantizeResult {
  Expr y, scale;
};

Expr operator+(Operand a, Operand b);
Expr operator-(Operand a, Operand b);
Expr operator*(Operand a, Operand b);
Expr operator/(Operand a, Operand b);
Expr operator-(Operand a);

}  // namespace rlx
