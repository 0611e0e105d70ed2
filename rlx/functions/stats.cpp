// Statistics and small functions of arrays as compositions of ops.
#include "rlx/functions/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/functions/term.h"
#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"

namespace rlx::stats {
namespace {

using functions::abs;
using functions::both;
using functions::chosen;
using functions::compared;
using functions::either;
using functions::exp;
using functions::larger;
using functions::log;
using functions::mean;
using functions::smaller;
using functions::sqrt;
using functions::square;
using functions::stopped;
using functions::sum;
using functions::Term;

[[noreturn]] void refuse(const Term& at, const std::string& message, std::string hint = {},
                         ErrorCode code = ErrorCode::InvalidArgument) {
  building::fail(at.loc(), code, message, std::move(hint));
}
std::int64_t axis_in(const Term& x, std::int64_t axis, const char* what) {
  return building::normalize_axis_at(x.loc(), axis, x.rank(), what);
}
std::int64_t extent_in(const Term& x, std::int64_t axis, const char* what) {
  const Dim& d = x.dim(static_cast<int>(axis));
  if (!d.is_static())
    refuse(x, concat_text(what, ": axis ", axis, " of ", x.shape(), " must have a known extent"),
           "bind the symbol first", ErrorCode::Unsupported);
  return d.value();
}
Term floats(const Operand& x, const char* what) {
  const Term v(x, what);
  if (is_int(v.dtype()) || v.dtype() == DType::Bool) return v.cast(DType::F32);
  if (!is_float(v.dtype()) || is_storage_only(v.dtype()))
    refuse(v, concat_text(what, " needs floats, got ", dtype_name(v.dtype())), {}, ErrorCode::DTypeMismatch);
  return v;
}
// The number of elements along `axes` (no axes: all elements), in x's dtype.
Term count_of(const Term& x, const std::vector<std::int64_t>& axes, const char* what) {
  Dims dims;
  for (std::int64_t a : axes) dims.push_back(x.dim(static_cast<int>(axis_in(x, a, what))));
  if (axes.empty()) dims = x.shape().dims();
  return x.at(dims_product(x.graph(), dims, DType::I32)).cast(x.dtype());
}
Term places(const Term& x, const Shape& shape, std::int64_t axis) { return x.at(x.graph().iota(shape, axis, x.loc())); }

// The variance, in the accumulator dtype.
Term variance(const Term& x, const std::vector<std::int64_t>& axes, double ddof, bool keep, const char* what) {
  const Term wide = x.cast(accumulator_dtype(x.dtype()));
  const Term squares = sum(square(wide - mean(wide, axes, true)), axes, keep);
  return squares / (count_of(wide, axes, what) - ddof);
}

}  // namespace

Expr var(Operand x, std::vector<std::int64_t> axes, double ddof, bool keep_dims) {
  const Term v = floats(x, "var");
  return variance(v, axes, ddof, keep_dims, "var").cast(v.dtype());
}
Expr std(Operand x, std::vector<std::int64_t> axes, double ddof, bool keep_dims) {
  const Term v = floats(x, "std");
  const Term squares = variance(v, axes, ddof, keep_dims, "std"), none = compared(CompareKind::Eq, squares, 0.0);
  // The derivative of equal elements, which does not exist, is 0.
  return chosen(none, 0.0, sqrt(chosen(none, 1.0, squares))).cast(v.dtype());
}

Expr quantile(Operand x, double q, std::int64_t axis, bool keep_dims) {
  const Term v = floats(x, "quantile");
  const std::int64_t a = axis_in(v, axis, "quantile"), n = extent_in(v, a, "quantile");
  if (!(q >= 0 && q <= 1)) refuse(v, concat_text("quantile: q must be in [0, 1], got ", q));
  if (n == 0) refuse(v, concat_text("quantile: axis ", a, " of ", v.shape(), " has no elements"));
  Graph& g = v.graph();
  const Term sorted = v.at(g.sort(v, a));
  const auto at = [&](std::int64_t i) { return v.at(g.narrow(sorted, a, Dim(i), Dim(1))); };
  const double place = q * static_cast<double>(n - 1), weight = place - std::floor(place);
  const auto low = static_cast<std::int64_t>(std::floor(place));
  const Term below = at(low), value = weight == 0 ? below : below * (1 - weight) + at(low + 1) * weight;
  const Term last = at(n - 1), result = chosen(compared(CompareKind::Ne, last, last), last, value);
  return keep_dims ? result.value() : g.squeeze(result, a);
}
Expr median(Operand x, std::int64_t axis, bool keep_dims) { return quantile(x, 0.5, axis, keep_dims); }

Expr cov(Operand x, double ddof) {
  const Term v = floats(x, "cov");
  if (v.rank() != 2) refuse(v, concat_text("cov: x must be [N, M], got ", v.shape()), {}, ErrorCode::ShapeMismatch);
  const Term apart = v - mean(v, {1}, true);
  return v.at(v.graph().matmul(apart, v.at(v.graph().t(apart)))) / (count_of(v, {1}, "cov") - ddof);
}
Expr corrcoef(Operand x) {
  const Term c = Term(cov(x), x.loc());
  const Term deviation = sqrt(c.at(diag(c))), column = c.at(c.graph().unsqueeze(deviation, 1));
  return smaller(larger(c / column / deviation, -1.0), 1.0);
}

Expr searchsorted(Operand a, Operand v, bool right) {
  const Term sorted(a, "searchsorted");
  Graph& g = sorted.graph();
  if (sorted.rank() != 1)
    refuse(sorted, concat_text("searchsorted: the sorted values must be a vector, got ", sorted.shape()), {},
           ErrorCode::ShapeMismatch);
  const Term wanted = sorted.at(building::own_at(g, v, sorted.loc()));
  const std::int64_t n = extent_in(sorted, 0, "searchsorted");
  // NaN is larger than all numbers, as in a sort.
  const auto less = [](const Term& x, const Term& y) {
    return either(compared(CompareKind::Lt, x, y),
                  both(compared(CompareKind::Ne, y, y), compared(CompareKind::Eq, x, x)));
  };
  // Binary search. `left` positions from `place` on may be the result. When the middle element goes before the wanted
  // value, the half after it remains, else the half before it. At most `left` - 1 elements come after `place`, so every
  // middle index is in range.
  Term place = wanted.at(g.expand(wanted.at(g.scalar(0, DType::I32, sorted.loc())), wanted.shape().dims()));
  for (std::int64_t left = n + 1; left > 1;) {
    const std::int64_t half = left / 2;
    // The slice starts at half - 1, so that `place` itself is the index of the middle element.
    const Term middles = sorted.at(g.narrow(sorted, 0, Dim(half - 1), Dim(n - half + 1)));
    const Term at = sorted.at(g.gather(middles, place, 0));
    const Term goes = right ? at.at(g.logical_not(less(wanted, at))) : less(at, wanted);
    place = chosen(goes, place + static_cast<double>(half), place);
    left -= half;
  }
  return place;
}

Expr bincount(Operand x, std::int64_t length) {
  const Term v(x, "bincount");
  if (!is_int(v.dtype()))
    refuse(v, concat_text("bincount: x must be integers, got ", v.shape()), {}, ErrorCode::DTypeMismatch);
  if (length < 0) refuse(v, concat_text("bincount: the length must not be negative, got ", length));
  Graph& g = v.graph();
  const Term flat = v.at(g.reshape(v, {Dim(-1)})).cast(is_index(v.dtype()) ? v.dtype() : DType::I64);
  const Term zeros = v.at(g.expand(v.at(g.scalar(0, DType::I32, v.loc())), {Dim(length)}));
  const Term ones = v.at(g.expand(v.at(g.scalar(1, DType::I32, v.loc())), flat.shape().dims()));
  return g.scatter_add(zeros, flat, ones, 0);
}
Expr histogram(Operand x, std::int64_t bins, double low, double high) {
  const Term v = floats(x, "histogram");
  if (bins < 1 || bins >= std::numeric_limits<std::int32_t>::max())
    refuse(v, concat_text("histogram: the number of bins is ", bins), "it must be at least 1 and fit in I32");
  if (!(low < high) || !std::isfinite(low) || !std::isfinite(high))
    refuse(v, concat_text("histogram: the range [", low, ", ", high, "] is empty or not finite"));
  Graph& g = v.graph();
  Tensor edges = Tensor::zeros(Shape({bins + 1}, v.dtype()));
  for (std::int64_t i = 0; i <= bins; ++i)
    edges.set(i, i == bins ? high : low + (high - low) * static_cast<double>(i) / static_cast<double>(bins));
  const Term flat = v.at(g.reshape(v, {Dim(-1)}));
  const Term at = v.at(searchsorted(v.at(g.constant(std::move(edges), v.loc())), flat, true)) - 1.0;
  const Term last = compared(CompareKind::Eq, flat, flat.number(high));
  return bincount(chosen(last, at.at(g.scalar(bins - 1, DType::I32, v.loc())), at), bins);
}

Expr one_hot(Operand x, std::int64_t classes, std::int64_t axis, DType dtype) {
  const Term v(x, "one_hot");
  if (!is_int(v.dtype()))
    refuse(v, concat_text("one_hot: x must be integers, got ", v.shape()), {}, ErrorCode::DTypeMismatch);
  if (classes < 0) refuse(v, concat_text("one_hot: the number of classes must not be negative, got ", classes));
  const std::int64_t a = building::normalize_axis_at(v.loc(), axis, v.rank() + 1, "one_hot");
  Dims dims(static_cast<std::size_t>(v.rank()) + 1, Dim(1));
  dims[static_cast<std::size_t>(a)] = Dim(classes);
  Graph& g = v.graph();
  const Term number = v.cast(is_index(v.dtype()) ? v.dtype() : DType::I64);
  return v.at(g.eq(v.at(g.unsqueeze(number, a)), places(v, Shape(dims, number.dtype()), a))).cast(dtype);
}

namespace {
// What logsumexp subtracts: the maximum of each group, 0 where that is infinite, with the gradient stopped.
Term base_of(const Term& top) { return stopped(chosen(compared(CompareKind::Eq, abs(top), HUGE_VAL), 0.0, top)); }
}  // namespace

Expr logsumexp(Operand x, std::vector<std::int64_t> axes, bool keep_dims) {
  const Term v = floats(x, "logsumexp"), wide = v.cast(accumulator_dtype(v.dtype()));
  Graph& g = v.graph();
  const Term top = v.at(g.reduce_max(wide, axes, true)), base = base_of(top);
  // A row of -inf has the derivative 0, as softmax gives 0.
  const Term none = compared(CompareKind::Eq, top, -HUGE_VAL), total = sum(exp(wide - base), axes, true);
  const Term logs = chosen(none, -HUGE_VAL, log(chosen(none, 1.0, total)) + base);
  if (keep_dims) return logs.cast(v.dtype());
  Dims dims;
  for (int i = 0; i < v.rank(); ++i) {
    const bool gone = axes.empty() || std::any_of(axes.begin(), axes.end(),
                                                  [&](std::int64_t a) { return axis_in(v, a, "logsumexp") == i; });
    if (!gone) dims.push_back(v.dim(i));
  }
  return v.at(g.reshape(logs, dims)).cast(v.dtype());
}
Expr cumulative_logsumexp(Operand x, std::int64_t axis, bool reverse) {
  const Term v = floats(x, "cumulative_logsumexp");
  const std::int64_t a = axis_in(v, axis, "cumulative_logsumexp"), n = extent_in(v, a, "cumulative_logsumexp");
  Graph& g = v.graph();
  Term out = v.cast(accumulator_dtype(v.dtype()));
  // After each step an element is the sum of 1, 2, 4, .. neighbours.
  for (std::int64_t step = 1; step < n; step *= 2) {
    Dims gap = out.shape().dims();
    gap[static_cast<std::size_t>(a)] = Dim(step);
    const Term none = v.at(g.expand(out.number(-HUGE_VAL), gap));
    const Term moved = v.at(g.narrow(out, a, Dim(reverse ? step : 0), Dim(n - step)));
    const Term other =
        v.at(reverse ? g.concat({moved, none}, a, {}, v.loc()) : g.concat({none, moved}, a, {}, v.loc()));
    const Term base = base_of(larger(out, other));
    out = log(exp(out - base) + exp(other - base)) + base;
  }
  return out.cast(v.dtype());
}
Expr standardize(Operand x, std::vector<std::int64_t> axes, double eps) {
  const Term v = floats(x, "standardize");
  const Term wide = v.cast(accumulator_dtype(v.dtype()));
  const Term scale = (variance(v, axes, 0, true, "standardize") + eps)(ActivationKind::Rsqrt);
  return ((wide - mean(wide, axes, true)) * scale).cast(v.dtype());
}

// -- arrays --

ExprList meshgrid(const ExprList& vectors, SourceLoc loc) {
  ExprList out;
  Dims dims;
  for (const Expr& e : vectors) {
    if (e.rank() != 1)
      refuse(Term(e, loc), concat_text("meshgrid: operands must be vectors, got ", e.shape()), {},
             ErrorCode::ShapeMismatch);
    dims.push_back(e.dim(0));
  }
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const Term v(vectors[i], loc);
    Dims own(dims.size(), Dim(1));
    own[i] = dims[i];
    out.push_back(v.graph().expand(v.at(v.graph().reshape(v, own)), dims));
  }
  return out;
}

Expr diag(Operand x, std::int64_t k) {
  const Term v(x, "diag");
  Graph& g = v.graph();
  if (v.rank() != 1 && v.rank() != 2)
    refuse(v, concat_text("diag: x must be a vector or a matrix, got ", v.shape()), {}, ErrorCode::ShapeMismatch);
  constexpr std::int64_t kFar = std::int64_t{1} << 30;
  if (k < -kFar || k > kFar) refuse(v, concat_text("diag: diagonal ", k));
  const std::int64_t n = extent_in(v, 0, "diag");
  if (v.rank() == 1) {
    const std::int64_t size = n + std::abs(k);
    const Term padded = v.at(g.pad(v, {0}, {std::abs(k)}));
    const Term line = v.at(g.unsqueeze(padded, k >= 0 ? 1 : 0));
    const Term rows = places(v, Shape({size, 1}, DType::I32), 0), columns = places(v, Shape({1, size}, DType::I32), 1);
    return chosen(v.at(g.eq(rows + static_cast<double>(k), columns)), line, 0.0);
  }
  const std::int64_t m = extent_in(v, 1, "diag"), down = std::max<std::int64_t>(-k, 0),
                     right = std::max<std::int64_t>(k, 0);
  const std::int64_t count = std::max<std::int64_t>(0, std::min(n - down, m - right));
  const Term flat = v.at(g.reshape(v, {Dim(n * m)}));
  if (count == 0) return g.slice(flat, {Dim(0)}, {Dim(0)});
  const std::int64_t start = down * m + right;
  return g.slice(flat, {Dim(start)}, {Dim(start + (count - 1) * (m + 1) + 1)}, {m + 1});
}

Expr outer(Operand a, Operand b) {
  const Term x(a, "outer"), y = x.at(building::own_at(x.graph(), b, x.loc()));
  Graph& g = x.graph();
  return x.at(g.reshape(x, {Dim(-1), Dim(1)})) * x.at(g.reshape(y, {Dim(1), Dim(-1)}));
}
Expr kron(Operand a, Operand b) {
  const Term x(a, "kron"), y = x.at(building::own_at(x.graph(), b, x.loc()));
  if (x.rank() != y.rank())
    refuse(x, concat_text("kron: ", x.shape(), " and ", y.shape(), " have different ranks"), "reshape one of them",
           ErrorCode::ShapeMismatch);
  Graph& g = x.graph();
  Dims left, right, joined;
  for (int i = 0; i < x.rank(); ++i) {
    left.insert(left.end(), {x.dim(i), Dim(1)});
    right.insert(right.end(), {Dim(1), y.dim(i)});
    joined.push_back(x.dim(i) * y.dim(i));
  }
  return g.reshape(x.at(g.reshape(x, left)) * x.at(g.reshape(y, right)), joined);
}

}  // namespace rlx::stats
