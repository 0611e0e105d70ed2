// Builder functions of Graph: `g.matmul(x, w)`, operators on values, scalars as operands.
//
// Every function appends nodes to the graph, infers and checks shapes immediately, and throws rlx::Error naming the
// user's line. The general functions (binary, softmax, matmul, ...) take the declared result shape as an optional last
// argument. The short names (add, gelu, sum, ...) infer it. Axes may be negative. Operands of different dtypes are cast
// by JAX's promotion table (k and v of attention too). An update written into another value takes that value's dtype. A
// scalar takes the dtype of the tensor operand; an integer that this dtype cannot hold is an error. Shapes are named
// like [B, S, H].
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "rlx/base/old_name.h"
#include "rlx/ir/index.h"
#include "rlx/ir/op_kind.h"
#include "rlx/ir/value.h"
#include "rlx/tensor/block_schemes.h"
#include "rlx/tensor/tensor.h"

namespace rlx {

/// The result shape that a caller declares as the last argument of a builder function. It is checked against the
/// inferred shape and does not change it. A ShapeMismatch names both.
class DeclaredShape {
 public:
  DeclaredShape() = default;
  DeclaredShape(Shape shape) : shape_(std::move(shape)) {}  // NOLINT(implicit)
  DeclaredShape(Dims dims, DType dtype) : shape_(Shape(std::move(dims), dtype)) {}
  /// Returns `e`. ShapeMismatch when a shape is declared and `e` has another one.
  Expr check(Expr e) const;

 private:
  std::optional<Shape> shape_;
};

/// Several values: the operands or results of a body. One value converts to a list of one.
class ExprList : public std::vector<Expr> {
 public:
  ExprList() = default;
  ExprList(Expr e) : std::vector<Expr>{std::move(e)} {}                     // NOLINT(implicit)
  ExprList(std::initializer_list<Expr> list) : std::vector<Expr>(list) {}   // NOLINT(implicit)
  ExprList(std::vector<Expr> list) : std::vector<Expr>(std::move(list)) {}  // NOLINT(implicit)
};
/// The results of one loop step: the carries for the next step, and a row of each y.
struct LoopStep {
  ExprList carries, ys;
  LoopStep(Expr carry) : carries(std::move(carry)) {}                                         // NOLINT(implicit)
  LoopStep(ExprList carry, ExprList y = {}) : carries(std::move(carry)), ys(std::move(y)) {}  // NOLINT(implicit)
};
// `trips`, `max_trips` and `cut_ys` are deprecated names of the last release: using them warns, copying the structs
// does not.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/// The last carries, the stacked ys [length, ..], and for a while loop its number of iterations (I64).
struct LoopResult {
  ExprList carries, ys;
  Expr iterations{};
  [[deprecated("now iterations")]] Expr trips{};
};
/// `auto [carries, ys, iterations] = g.while_loop(..)`.
template <std::size_t I, class Result>
  requires std::same_as<std::remove_cvref_t<Result>, LoopResult>
auto&& get(Result&& r) {
  if constexpr (I == 0)
    return std::forward<Result>(r).carries;
  else if constexpr (I == 1)
    return std::forward<Result>(r).ys;
  else
    return std::forward<Result>(r).iterations;
}
#pragma GCC diagnostic pop

/// Builds a body on graph `body`. `operands` are the Inputs of the body, one for each operand. Values of the enclosing
/// graphs may be used directly: they become operands too.
using BodyFn = std::function<ExprList(Graph& body, const ExprList& operands)>;
using BranchFn = std::function<ExprList(Graph& body)>;
using ScanFn = std::function<LoopStep(Graph& body, const ExprList& carries, const ExprList& xs)>;
using WhileFn = std::function<LoopStep(Graph& body, const ExprList& carries)>;
using ConditionFn = std::function<Expr(Graph& body, const ExprList& carries)>;

/// How a scan runs.
struct ScanOptions {
  std::optional<Dim> length{};  // required when there are no xs
  bool reverse = false;         // runs from the last row to the first
  bool checkpoint = false;      // reverse mode recomputes each step from its carries and does not store it
  std::string name = "scan";
};
/// How a while loop runs.
struct WhileOptions {
  std::optional<std::int64_t> max_iterations{};  // required for ys and for reverse mode
  bool truncate_ys = false;  // ys have only the rows of iterations that ran: their extent is a symbol
  std::string name = "while";
  OldName<std::int64_t> max_trips{};  // now max_iterations
  OldName<bool> cut_ys{};             // now truncate_ys
  /// These options with the values of deprecated names under the new names. InvalidArgument when both names of the
  /// number of iterations are set and differ.
  WhileOptions with_new_names() const {
    WhileOptions o = *this;
    if (max_trips.value() && max_iterations && *max_trips.value() != *max_iterations)
      throw Error(ErrorCode::InvalidArgument, "while_loop: max_iterations and its deprecated name max_trips differ",
                  "set max_iterations alone");
    if (max_trips.value()) o.max_iterations = max_trips.value();
    o.truncate_ys = cut_ys.value().value_or(truncate_ys);
    return o;
  }
};
/// A function with custom derivatives, each of which is optional. Only floating and complex values have tangents and
/// cotangents.
struct CustomFn {
  BodyFn body;        // operands -> results
  BodyFn forward{};   // operands -> results.., residuals..; requires `backward`
  BodyFn backward{};  // residuals (without `forward`: operands.., results..) and cotangents -> cotangents of operands
  BodyFn jvp{};       // operands.., tangents.. -> results.., tangents of the results
  std::string name = "custom_fn";
};

/// Optional operands of an attention: see ops::Attention and ops::PagedAttention (mask, sinks).
struct AttentionOptions {
  std::optional<Operand> mask{}, kv_len{}, q_len{}, sinks{};
};

/// The functions that add ops to a graph. `Graph` derives from it.
class Builder {
 public:
  // -- leaves
  /// A run-time tensor, bound by name at each run.
  Expr input(std::string name, Shape shape, SourceLoc loc = SourceLoc::current());
  /// A weight, bound by name. Frozen: set seldom, packed for its kernel. Mutable: set between runs, read as it is.
  Expr param(std::string name, Shape shape, ParamMode mode = ParamMode::Frozen, SourceLoc loc = SourceLoc::current());
  /// A value that is part of the program.
  Expr constant(Tensor value, SourceLoc loc = SourceLoc::current());
  /// A rank-0 constant from any C++ number. An integer dtype that does not hold the number is an error naming the
  /// range.
  template <class T>
    requires std::is_arithmetic_v<T>
  Expr scalar(T value, DType dtype = DType::F32, SourceLoc loc = SourceLoc::current()) {
    return scalar_constant(Operand(value, loc), dtype);
  }
  /// A persistent value that starts as `init`. `init` is in host memory, like the value of a constant.
  Expr state(std::string name, Tensor init, SourceLoc loc = SourceLoc::current());

  // -- elementwise
  /// fn(x), element by element.
  Expr activation(ActivationKind fn, Operand x, const DeclaredShape& shape = {});
  /// fn(x) with explicit parameters; see ops::Activation.
  Expr activation(ActivationKind fn, Operand x, std::optional<double> alpha, std::optional<double> beta);
  /// The natural logarithm, log.
  Expr ln(Operand x) { return activation(ActivationKind::Log, x); }

  /// fn(a, b), element by element, on broadcast operands of one dtype.
  Expr binary(BinaryKind fn, Operand a, Operand b, const DeclaredShape& shape = {});
  /// a + b; the next ones are named after what they compute.
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
  /// sqrt(a^2 + b^2) without overflow of the squares.
  Expr hypot(Operand a, Operand b) { return binary(BinaryKind::Hypot, a, b); }
  /// log(exp(a) + exp(b)) without overflow of the exponentials.
  Expr logaddexp(Operand a, Operand b) { return binary(BinaryKind::LogAddExp, a, b); }
  /// P(a, x), the regularised lower incomplete gamma function; Q = 1 - P; and dP/da: see BinaryKind.
  Expr igamma(Operand a, Operand x) { return binary(BinaryKind::Igamma, a, x); }
  Expr igammac(Operand a, Operand x) { return binary(BinaryKind::Igammac, a, x); }
  Expr igamma_grad_a(Operand a, Operand x) { return binary(BinaryKind::IgammaGradA, a, x); }

  /// fn(a, b) as Bool, element by element, on broadcast operands.
  Expr compare(CompareKind fn, Operand a, Operand b, const DeclaredShape& shape = {});
  /// a == b, and so on. With NaN all but ne are false.
  Expr eq(Operand a, Operand b) { return compare(CompareKind::Eq, a, b); }
  Expr ne(Operand a, Operand b) { return compare(CompareKind::Ne, a, b); }
  Expr lt(Operand a, Operand b) { return compare(CompareKind::Lt, a, b); }
  Expr le(Operand a, Operand b) { return compare(CompareKind::Le, a, b); }
  Expr gt(Operand a, Operand b) { return compare(CompareKind::Gt, a, b); }
  Expr ge(Operand a, Operand b) { return compare(CompareKind::Ge, a, b); }

  /// cond ? a : b. A cond of another dtype than Bool is compared with zero first.
  Expr where(Operand cond, Operand a, Operand b, const DeclaredShape& shape = {});
  /// x cast to dtype `to`; x itself when it has that dtype.
  Expr cast(Operand x, DType to, const DeclaredShape& shape = {});
  /// min(max(x, low), high).
  Expr clamp(Operand x, Operand low, Operand high, const DeclaredShape& shape = {});
  /// x, whose derivative is zero.
  Expr stop_gradient(Operand x);

  // -- shape
  /// One entry of `dims` may be -1; it is inferred.
  Expr reshape(Operand x, Dims dims, const DeclaredShape& shape = {});
  /// The axes of x in the order `perm`: axis i of the result is axis perm[i] of x.
  Expr transpose(Operand x, std::vector<std::int64_t> perm, const DeclaredShape& shape = {});
  /// The last two axes swapped.
  Expr t(Operand x);
  /// x broadcast to `dims` (NumPy rules).
  Expr expand(Operand x, Dims dims, const DeclaredShape& shape = {});
  /// x[starts : limits : strides] with an entry for each axis; see also index.
  Expr slice(Operand x, Dims starts, Dims limits, std::vector<std::int64_t> strides = {},
             const DeclaredShape& shape = {});
  /// x[start, start + len) along `axis`.
  Expr narrow(Operand x, std::int64_t axis, Dim start, Dim len, const DeclaredShape& shape = {});
  /// The values one after the other along `axis`. Other extents must agree.
  Expr concat(const std::vector<Expr>& xs, std::int64_t axis, const DeclaredShape& shape = {},
              SourceLoc loc = SourceLoc::current());
  /// x with `value` around it and, with `interior`, between its elements. Negative padding crops.
  Expr pad(Operand x, std::vector<std::int64_t> low, std::vector<std::int64_t> high, Operand value = 0,
           std::vector<std::int64_t> interior = {}, const DeclaredShape& shape = {});
  /// The elements of these axes in the opposite order.
  Expr reverse(Operand x, std::vector<std::int64_t> axes);
  /// 0, 1, 2, .. along `axis`, the same along the others.
  Expr iota(Shape shape, std::int64_t axis, SourceLoc loc = SourceLoc::current());
  /// x with a new axis of extent 1 at `axis`.
  Expr unsqueeze(Operand x, std::int64_t axis);
  /// x without an axis of extent 1.
  Expr squeeze(Operand x, std::int64_t axis);
  /// The axes `first` to `last`, both included, as one: [B, H, W, C] -> [B, H W C] with first = 1.
  Expr flatten(Operand x, std::int64_t first = 0, std::int64_t last = -1);
  /// The extent of an axis in this run, an I64 scalar.
  Expr dim_size(Operand x, std::int64_t axis);

  // -- data-dependent extents (docs/runtime.md, builder_by_value.cpp): symbols of the graph; not available in bodies
  /// A dimension whose extent in each run is `value`, an integer scalar in [min, max]: a static extent for a constant,
  /// else a new symbol. A value out of range is an error of the run. To choose the symbol's name and divisor, call
  /// Graph::symbol.
  Dim value_dim(Operand value, std::int64_t max, std::int64_t min = 0);
  /// The first `count` elements along `axis`: x[:count]. `count` is an integer scalar from 0 to the extent of the axis.
  Expr first(Operand x, Operand count, std::int64_t axis = 0);
  /// The rows of x along `axis` where mask [extent], a Bool, is true, in order; numpy.compress, ONNX Compress.
  Expr compress(Operand x, Operand mask, std::int64_t axis = 0);
  /// The indices of the nonzero elements of x in row-major order, I64 [rank, n]; ONNX NonZero.
  Expr nonzero(Operand x);

  // -- indexing
  /// The part of x that `entries` select, one for each axis, as `x[{..}]` does: see Index. InvalidArgument for more
  /// entries than axes, a position outside its axis, a step of 0, and more than one tensor among the entries.
  Expr index(Operand x, const std::vector<Index>& entries);
  /// Rows of `table` along `axis`. Indices are I32 or I64 and are clamped into range: a negative index gives the first
  /// row.
  Expr gather(Operand table, Operand indices, std::int64_t axis = 0, const DeclaredShape& shape = {});
  /// Elements along the axes of `op`, which may be negative and in any order. The index tensors broadcast.
  Expr gather(Operand table, const ExprList& indices, ops::Gather op, const DeclaredShape& shape = {});
  /// The operand with `updates` added to its rows along `axis`.
  Expr scatter_add(Operand operand, Operand indices, Operand updates, std::int64_t axis = 0,
                   const DeclaredShape& shape = {});
  /// `fn` combines the updates with rows along `axis`. Updates with indices out of range, negative ones included, are
  /// dropped.
  Expr scatter(ScatterKind fn, Operand operand, Operand indices, Operand updates, std::int64_t axis = 0,
               const DeclaredShape& shape = {});
  /// The same along several axes, as in gather.
  Expr scatter(Operand operand, const ExprList& indices, Operand updates, ops::Scatter op,
               const DeclaredShape& shape = {});
  /// numpy.take: rows along `axis`. A negative index counts from the end. `mode` says what an index out of range does.
  Expr take(Operand table, Operand indices, std::int64_t axis, IndexMode mode = IndexMode::Clamp);
  /// numpy.take_along_axis and ONNX GatherElements: one element of x for each element of `indices`. `indices` has the
  /// rank of x and, on other axes, at most its extents (or 1). Negative indices count from the end.
  Expr take_along_axis(Operand x, Operand indices, std::int64_t axis);
  /// numpy.put_along_axis and ONNX ScatterElements: `fn` combines the updates, which have the dims of `indices`.
  Expr put_along_axis(Operand x, Operand indices, Operand updates, std::int64_t axis,
                      ScatterKind fn = ScatterKind::Set);
  /// ONNX GatherND: indices [batch.., .., A] select elements of the A axes after the first `batch_dims` axes, which x
  /// and indices share. Negative indices count from the end.
  Expr gather_nd(Operand x, Operand indices, std::int64_t batch_dims = 0);
  /// ONNX ScatterND: `fn` combines the updates with the elements that indices [.., A] select along the first A axes.
  Expr scatter_nd(Operand x, Operand indices, Operand updates, ScatterKind fn = ScatterKind::Set);
  /// x sorted stably along `axis`; NaN sorts above all numbers.
  Expr sort(Operand x, std::int64_t axis = -1, bool descending = false);
  /// The keys sorted in the same way, and each of `values` in the order of the keys: {keys, values..}.
  ExprList sort(Operand keys, const ExprList& values, std::int64_t axis = -1, bool descending = false);
  /// The original positions of the sorted elements, I32.
  Expr argsort(Operand x, std::int64_t axis = -1, bool descending = false);
  /// The part of `sizes` elements that begins at `starts`, an integer vector; it is moved into range.
  Expr dynamic_slice(Operand x, Operand starts, Dims sizes);
  /// x with `update` written at `starts`, which are moved into range.
  Expr dynamic_update_slice(Operand x, Operand update, Operand starts);
  struct TopKResult;
  /// The k largest elements of the last axis: {values, indices I32}.
  TopKResult top_k(Operand x, std::int64_t k);
  /// The position of the largest element along `axis`, I32; the first one of equals.
  Expr arg_max(Operand x, std::int64_t axis, bool keep_dims = false);
  /// The position of the smallest element.
  Expr arg_min(Operand x, std::int64_t axis, bool keep_dims = false);

  // -- reductions
  /// Reduces over `axes` (all axes when empty).
  Expr reduce(ReduceKind fn, Operand x, std::vector<std::int64_t> axes, bool keep_dims = false,
              const DeclaredShape& shape = {});
  /// The sum, mean, maximum, minimum or product over `axes`, all of them when empty.
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
  /// Running results along `axis`. `exclusive` leaves the element itself out.
  Expr cumulative(CumulativeKind fn, Operand x, std::int64_t axis, bool exclusive = false, bool reverse = false,
                  const DeclaredShape& shape = {});
  /// Running sums, products, maxima and minima.
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
  /// exp(x) / sum(exp(x)) along `axis`, without overflow. sm is a short name.
  Expr softmax(Operand x, std::int64_t axis = -1, const DeclaredShape& shape = {});
  Expr sm(Operand x, std::int64_t axis = -1) { return softmax(x, axis); }
  /// log(softmax(x)).
  Expr log_softmax(Operand x, std::int64_t axis = -1, const DeclaredShape& shape = {});

  // -- linear algebra
  /// NumPy matmul. Rank-1 operands get an axis of extent 1, which the result drops.
  Expr matmul(Operand a, Operand b, const DeclaredShape& shape = {});
  /// Short for matmul.
  Expr mm(Operand a, Operand b) { return matmul(a, b); }
  /// The operands keep their dtypes when dims.out is set.
  Expr dot_general(Operand a, Operand b, ops::DotGeneral dims, const DeclaredShape& shape = {});
  /// Each row of x [M, K] times the matrix of the row's group in w [E, K, N]: [M, N]. Rows whose id in ids [M] is
  /// outside [0, E) give zeros.
  Expr grouped_dot(Operand x, Operand w, Operand ids);
  /// For each of `groups` groups, the transpose of its rows of x [M, K] times its rows of y [M, N]: [E, K, N].
  Expr grouped_dot_contract(Operand x, Operand y, Operand ids, std::int64_t groups);

  // -- random numbers (builder_random.cpp); keys are U32 [.., 2], one for each result array [.., dims] --
  /// The key of a seed, as in jax.random.key.
  Expr rng_key(std::uint64_t seed, SourceLoc loc = SourceLoc::current());
  /// Random bits in U8, U16, U32 or U64, as in jax.random.bits: see ops::RngBits.
  Expr rng_bits(Operand key, Dims dims, DType dtype = DType::U32);
  /// `count` keys [.., count, 2] from one key.
  Expr rng_split(Operand key, Dim count = 2);
  /// A key from a key and an integer, which is taken modulo 2^32.
  Expr rng_fold_in(Operand key, Operand data);
  /// low + (high - low) u, where u in [0, 1) is a random multiple of the machine epsilon of `dtype`, as in
  /// jax.random.uniform. InvalidArgument unless low < high and both are finite, DTypeMismatch for a dtype that is no
  /// float.
  Expr rng_uniform(Operand key, Dims dims, DType dtype = DType::F32, double low = 0, double high = 1);
  /// Standard normal numbers: sqrt(2) erfinv(u) of uniform u in (-1, 1), as in jax.random.normal.
  Expr rng_normal(Operand key, Dims dims, DType dtype = DType::F32);
  /// Bool, true with probability p.
  Expr rng_bernoulli(Operand key, double p, Dims dims);
  struct SampleResult;
  struct SampleSettings;
  /// One token I32 [B] from each row of logits [B, V], and its log probability: see ops::Sample.
  SampleResult sample(Operand logits, Operand key, const SampleSettings& settings);

  // -- normalisation, attention, position
  /// (x - mean) / sqrt(var + eps) * gamma + beta, with mean and variance over `axes`. gamma and beta have the dims of
  /// `axes`, in ascending order. Results 1 and 2 are the mean and 1 / sqrt(var + eps).
  Expr layer_norm(Operand x, std::optional<Operand> gamma = std::nullopt, std::optional<Operand> beta = std::nullopt,
                  double eps = 1e-5, const std::vector<std::int64_t>& axes = {-1}, const DeclaredShape& shape = {});
  /// x / sqrt(mean(x^2) + eps) * gamma + beta, with the mean over `axes`. Result 1 is 1 / sqrt(mean(x^2) + eps).
  Expr rms_norm(Operand x, std::optional<Operand> gamma = std::nullopt, std::optional<Operand> beta = std::nullopt,
                double eps = 1e-6, const std::vector<std::int64_t>& axes = {-1}, const DeclaredShape& shape = {});
  /// See ops::Attention. `mask` is the operand of MaskKind Custom and Bias. k and v keep their dtype. Result 1 of the
  /// node is the log of the softmax's sums: `y.result(1)`.
  Expr attention(Operand q, Operand k, Operand v, ops::Attention op, std::optional<Operand> mask = std::nullopt,
                 const DeclaredShape& shape = {});
  /// The same with lengths of keys and queries [B], or sinks [H]: `g.attention(q, k, v, op, {.kv_len = n})`.
  Expr attention(Operand q, Operand k, Operand v, ops::Attention op, const AttentionOptions& options,
                 const DeclaredShape& shape = {});
  /// See ops::PagedAttention. It uses mask and sinks of the options. Result 1 is the log of the softmax's sums.
  Expr paged_attention(Operand q, Operand k_pool, Operand v_pool, Operand block_table, Operand kv_len, Operand q_start,
                       ops::PagedAttention op, const AttentionOptions& options = {}, const DeclaredShape& shape = {});
  /// See ops::Rope; n_rot 0 means the whole head.
  Expr rope(Operand x, Operand cos, Operand sin, ops::Rope op, const DeclaredShape& shape = {});
  /// The same with the row of the tables for each element of a sequence, I32 [S] or [B, S].
  Expr rope(Operand x, Operand cos, Operand sin, Operand positions, ops::Rope op, const DeclaredShape& shape = {});

  // -- functions of one operand: one call for each of RLX_FOR_EACH_FUNCTION (op_kind.h), such as g.gelu(x), or g.elu(x,
  // 0.5) for functions with parameters --
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

  // -- quantized values (docs/quantisation.md); the axis of an op may be negative; without an op there is one scale --
  /// Quantized values of x, i8 without an op: see ops::Quantize.
  Expr quantize(Operand x, Operand scale);
  Expr quantize(Operand x, Operand scale, ops::Quantize op, std::optional<Operand> zero_point = std::nullopt,
                const DeclaredShape& shape = {});
  /// x quantized to blocks U8 [.., row bytes] of q8_0, q4_0, q4_1, q5_0 or q5_1.
  Expr quantize(Operand x, QuantScheme scheme, const DeclaredShape& shape = {});
  /// The numbers of affine quantized values, f32 without an op: see ops::Dequantize. An absent scale is 1.
  Expr dequantize(Operand codes, std::optional<Operand> scale);
  Expr dequantize(Operand codes, std::optional<Operand> scale, ops::Dequantize op,
                  std::optional<Operand> zero_point = std::nullopt, std::optional<Operand> global_scale = std::nullopt,
                  const DeclaredShape& shape = {});
  /// The numbers of quantized values U8 [.., row bytes] of a block scheme: [.., row elements].
  Expr dequantize(Operand codes, QuantScheme scheme, DType dtype = DType::F32, const DeclaredShape& shape = {});
  struct DynamicQuantizeResult;
  /// Quantized values with the scale and zero point computed from x, symmetric i8 without an op: see
  /// ops::DynamicQuantize.
  DynamicQuantizeResult dynamic_quantize(Operand x);
  DynamicQuantizeResult dynamic_quantize(Operand x, ops::DynamicQuantize op);
  struct FakeQuantizeResult;
  /// x quantized and dequantized, with 8 bits without an op, and the scale that was used: see ops::FakeQuantize.
  FakeQuantizeResult fake_quantize(Operand x);
  FakeQuantizeResult fake_quantize(Operand x, ops::FakeQuantize op, std::optional<Operand> scale = std::nullopt);
  /// matmul(x, dequantize(codes, ..)) for x [.., K]. Affine weights are [K, N]. Weights [N, K] of a block scheme are U8
  /// [N, row bytes], as in GGUF.
  Expr dequant_matmul(Operand x, Operand codes, std::optional<Operand> scale);
  Expr dequant_matmul(Operand x, Operand codes, std::optional<Operand> scale, ops::Dequantize op,
                      std::optional<Operand> zero_point = std::nullopt,
                      std::optional<Operand> global_scale = std::nullopt);
  Expr dequant_matmul(Operand x, Operand codes, QuantScheme scheme);

  // -- bits and complex values
  /// The bits of x as dtype `to`. When the widths differ, the last axis holds their ratio: see ops::Bitcast.
  Expr bitcast(Operand x, DType to);
  /// re + i im from floats of equal shapes: F32 gives C64, F64 gives C128.
  Expr complex(Operand re, Operand im);
  /// Real and imaginary part of complex x in its real dtype. For other dtypes, x itself and zeros.
  Expr real(Operand x);
  Expr imag(Operand x);
  /// re - i im; x itself when x is not complex.
  Expr conj(Operand x);

  // -- convolution and windows: see the structs; conv1d, pools, interpolation and more are in rlx/functions
  /// See ops::Conv.
  Expr conv(Operand x, Operand w, ops::Conv op, const DeclaredShape& shape = {});
  /// See ops::ReduceWindow.
  Expr reduce_window(Operand x, ops::ReduceWindow op, const DeclaredShape& shape = {});
  /// See ops::SelectAndScatter.
  Expr select_and_scatter(Operand x, Operand source, ops::SelectAndScatter op);
  struct ConvOptions;
  /// x [N, C, H, W] with filters w [O, C / groups, kH, kW] -> [N, O, H', W'].
  Expr conv2d(Operand x, Operand w, const ConvOptions& options);
  Expr conv2d(Operand x, Operand w);
  /// The transposed convolution, as in PyTorch: w [C, O / groups, kH, kW].
  Expr conv_transpose2d(Operand x, Operand w, const ConvOptions& options);
  /// x [N, C, H, W] normalised over C at each position; gamma, beta [C].
  Expr layer_norm2d(Operand x, Operand gamma, Operand beta, double eps = 1e-5);
  /// x [N, C, ..] normalised over each of `groups` groups of channels; gamma, beta [C].
  Expr group_norm(Operand x, std::int64_t groups, std::optional<Operand> gamma = std::nullopt,
                  std::optional<Operand> beta = std::nullopt, double eps = 1e-5);

  // -- Fourier transforms and matrix factors: see the structs; rlx/functions has numpy's fft and linalg
  /// See ops::Fft.
  Expr fft(Operand x, ops::Fft op, const DeclaredShape& shape = {});
  /// See ops::Cholesky and the other structs: factors of the last two axes.
  Expr cholesky(Operand a);
  Expr triangular_solve(Operand a, Operand b, ops::TriangularSolve op);
  ExprList lu(Operand a);
  ExprList qr(Operand a, bool full = false);
  ExprList eigh(Operand a);
  ExprList svd(Operand a, bool full = false);

  // -- recurrences, losses, quantization: see the structs; operands in the order of their records, absent ones omitted
  /// Recurrent layers over a sequence; rlx::nn has them with options.
  ExprList rnn(ops::Rnn op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  ExprList gru(ops::Gru op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  ExprList lstm(ops::Lstm op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  ExprList selective_scan(ops::SelectiveScan op, const std::vector<Expr>& operands,
                          SourceLoc loc = SourceLoc::current());
  ExprList mamba2(ops::Mamba2 op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  ExprList gated_delta_net(ops::GatedDeltaNet op, const std::vector<Expr>& operands,
                           SourceLoc loc = SourceLoc::current());
  /// -log softmax(logits)[label] for each row.
  Expr softmax_cross_entropy(Operand logits, Operand labels);
  Expr fake_quantize_lsq(Operand x, Operand scale, ops::FakeQuantizeLsq op);
  Expr q_matmul(ops::QMatMul op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  Expr q_conv(ops::QConv op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());

  // -- HIR blocks (lowered by FusionPolicy)
  /// act(x w + bias); x [.., K], w [K, N], bias [N].
  Expr linear(Operand x, Operand w, std::optional<Operand> bias = std::nullopt,
              std::optional<ActivationKind> activation = std::nullopt);
  /// linear with a bias.
  Expr linear_fused(Operand x, Operand w, Operand bias, std::optional<ActivationKind> activation = std::nullopt);
  /// x w1 and x w2, which share x.
  std::pair<Expr, Expr> shared_linear_pair(Operand x, Operand w1, Operand w2);
  /// (silu(x w_gate) * x w_up) w_down.
  Expr swiglu(Operand x, Operand w_up, Operand w_gate, Operand w_down);
  /// The norm of x + residual.
  Expr residual_rms_norm(Operand x, Operand residual, Operand gamma, Operand beta, double eps = 1e-6);
  Expr residual_layer_norm(Operand x, Operand residual, Operand gamma, Operand beta, double eps = 1e-5);
  /// Operands in the order of ops::EncoderBlock.
  Expr encoder_block(ops::EncoderBlock op, const std::vector<Expr>& operands, SourceLoc loc = SourceLoc::current());
  /// Operands in the order of ops::LlamaDecoderBlock.
  Expr llama_decoder_block(ops::LlamaDecoderBlock op, const std::vector<Expr>& operands,
                           SourceLoc loc = SourceLoc::current());

  // -- control flow (builder_control.cpp). InvalidArgument for a body that declares inputs, params or states: create
  // them on the enclosing graph and use them in the body
  /// then(operands..) when pred, a Bool scalar, is true, else otherwise(operands..). Both return values of equal types.
  ExprList cond(Operand pred, const ExprList& operands, const BodyFn& then, const BodyFn& otherwise,
                SourceLoc loc = SourceLoc::current());
  /// The same for branches that use values of the enclosing graphs instead of operands.
  ExprList cond(Operand pred, const BranchFn& then, const BranchFn& otherwise, SourceLoc loc = SourceLoc::current());
  /// cond for branches whose results have equal ranks and dtypes but may differ in extents. Each such extent is a
  /// symbol of the graph. The branch with the smaller extent uses as much memory as the other.
  ExprList cond_ragged(Operand pred, const ExprList& operands, const BodyFn& then, const BodyFn& otherwise,
                       SourceLoc loc = SourceLoc::current());
  /// body(carries, rows of xs) for each row of xs [length, ..], starting from `init`. Carries keep their types.
  LoopResult scan(const ExprList& init, const ExprList& xs, const ScanFn& body, const ScanOptions& options = {},
                  SourceLoc loc = SourceLoc::current());
  /// body(carries) as long as condition(carries), a Bool scalar, is true. Rows of ys after the last iteration are zero.
  LoopResult while_loop(const ExprList& init, const ConditionFn& condition, const WhileFn& body,
                        const WhileOptions& options = {}, SourceLoc loc = SourceLoc::current());
  /// body(operands..) as one named op, until the compiler inlines it.
  ExprList call(std::string name, const ExprList& operands, const BodyFn& body, SourceLoc loc = SourceLoc::current());
  /// The same, where reverse mode keeps only the values that `save` names and recomputes the rest.
  ExprList checkpoint(const ExprList& operands, const BodyFn& body, CallSave save = CallSave::Nothing,
                      SourceLoc loc = SourceLoc::current());
  /// fn.body(operands..) with the derivatives of `fn`. Its bodies must not use values of the enclosing graphs.
  ExprList custom_fn(const ExprList& operands, const CustomFn& fn, SourceLoc loc = SourceLoc::current());
  /// Returns the values. No pass merges or moves nodes across them.
  ExprList optimization_barrier(const ExprList& xs, SourceLoc loc = SourceLoc::current());

  // -- between ranks (ops/collectives.h): `mesh_axes` is "data" or "data,model", `ranks` the number of ranks along them
  /// The sum, mean, product, maximum or minimum over the ranks, on all ranks.
  Expr all_reduce(Operand x, ReduceKind fn, std::string mesh_axes, std::int64_t ranks);
  /// The same of several values at once.
  ExprList all_reduce_each(const ExprList& xs, ReduceKind fn, std::string mesh_axes, std::int64_t ranks,
                           SourceLoc loc = SourceLoc::current());
  /// The values of all ranks concatenated along `axis`.
  Expr all_gather(Operand x, std::int64_t axis, std::string mesh_axes, std::int64_t ranks);
  /// This rank's slice along `axis` of the sum or the mean.
  Expr reduce_scatter(Operand x, ReduceKind fn, std::int64_t axis, std::string mesh_axes, std::int64_t ranks);
  /// Sends slice s along `split` to rank s, and concatenates the received slices along `concat`.
  Expr all_to_all(Operand x, std::int64_t split, std::int64_t concat, std::string mesh_axes, std::int64_t ranks);
  /// For every {source, target}, rank target gets the value of rank source. A rank that is not a target gets zeros.
  Expr permute(Operand x, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, std::string mesh_axes,
               std::int64_t ranks);
  /// The index of this rank along the mesh axes, an I64 scalar.
  Expr axis_index(std::string mesh_axes, std::int64_t ranks, SourceLoc loc = SourceLoc::current());

 private:
  Graph& graph();
  Expr scalar_constant(const Operand& value, DType dtype);
};

/// One entry for each spatial axis; a single entry applies to all of them.
struct Builder::ConvOptions {
  std::vector<std::int64_t> strides{1}, padding{0}, dilation{1}, output_padding{0};
  std::int64_t groups = 1;
};
/// The largest elements of the last axis and their positions.
struct Builder::TopKResult {
  Expr values, indices;
};
/// Each is a number, or a value of shape [] or [B]. Unset fields have no effect.
struct Builder::SampleSettings {
  std::optional<Operand> temperature{}, top_k{}, top_p{}, min_p{};
  std::optional<Operand> mask_bits{};  // U32 [B, ceil(V / 32)]
};
/// The chosen tokens and their log probabilities.
struct Builder::SampleResult {
  Expr token, logprob;
};
/// Quantized values with what turns them into numbers.
struct Builder::DynamicQuantizeResult {
  Expr codes, scale, zero_point;
};
/// The values after quantization, and its scale.
struct Builder::FakeQuantizeResult {
  Expr y, scale;
};

Expr operator+(Operand a, Operand b);
Expr operator-(Operand a, Operand b);
Expr operator*(Operand a, Operand b);
Expr operator/(Operand a, Operand b);
Expr operator-(Operand a);
// Elementwise comparisons, as g.lt, .. do. == and != compare the identity of two Exprs; see g.eq and g.ne.
Expr operator<(Operand a, Operand b);
Expr operator<=(Operand a, Operand b);
Expr operator>(Operand a, Operand b);
Expr operator>=(Operand a, Operand b);

}  // namespace rlx

template <>
struct std::tuple_size<rlx::LoopResult> : std::integral_constant<std::size_t, 3> {};
template <std::size_t I>
struct std::tuple_element<I, rlx::LoopResult> {
  using type = std::conditional_t<I == 2, rlx::Expr, rlx::ExprList>;
};
