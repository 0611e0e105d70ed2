// Bounds of sums, products, matmuls and other accumulations.
#include <algorithm>
#include <cmath>

#include "rlx/ir/math/resize.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/tensor/visit.h"
#include "tests/support/rounding_rules.h"

namespace rlx::test::rounding {
namespace {

constexpr std::int64_t kTapsOfGathers = 4;  // of a resampled element; with more, it is written as a matmul

Tensor with_slack(const Bounded& x, const Tensor& size) { return add_up(size, x.slack); }

// slack = (op over |x| + slack) - (op over |x|) + terms * eps * (op over |x|). `added` is the number of terms of a sum;
// `divisor` is that of a mean.
void add_terms(const Node& n, Bounded& out, const Tensor& with, const Tensor& without, double added,
               double divisor = 1) {
  const double terms = allowance_of(n.op).terms, drift = std::clamp(added / 2, terms, 2 * terms);
  const double own = drift * sum_epsilon(n.shape().dtype()) + 4 * epsilon_of(DType::F64);
  const double largest =
      float_format(n.shape().dtype() == DType::F64 || n.shape().dtype() == DType::C128 ? DType::F64 : DType::F32)
          .largest;
  double* e = reals(out.slack);
  for (std::size_t i = 0; i < count(out.value); ++i) {
    if (reals(without)[i] > largest / divisor) {  // a partial sum may overflow
      e[i] = kApart;
      continue;
    }
    const double carried = reals(with)[i] - reals(without)[i];
    e[i] = (carried > 0 || std::isnan(carried) ? carried : 0) + own * reals(without)[i];
  }
}

void spread(const Bounded& x, const OpBox& widest, Bounded& out) {
  out.slack = run1(widest, {x.slack});
  Tensor plus = like(x.value, 0), minus = like(x.value, 0);  // zeros
  if (stores_floats(x.value.dtype()))
    for (std::size_t i = 0; i < count(x.value); ++i)
      if (const double v = load_element<C>(x.value.data(), x.value.dtype(), static_cast<std::int64_t>(i)).real();
          v == 0)
        reals(std::signbit(v) ? minus : plus)[i] = 1;
  plus = run1(widest, {plus});
  minus = run1(widest, {minus});
  for (std::size_t i = 0; i < count(out.slack); ++i) {
    if (!(reals(out.slack)[i] >= 0)) reals(out.slack)[i] = 0;  // the maximum of no elements
    if (reals(plus)[i] > 0 && reals(minus)[i] > 0 && value_at(out.value, i) == 0) either_zero(out, i);
  }
}

// A product of at most `factors` elements in any order; `sum` adds the same elements. Each factor adds a relative
// rounding. A partial product below the normal numbers loses at most the smallest number, scaled by the factors above
// 1. The result is undecided if a partial product overflows (it may then meet a 0) or vanishes (it may meet an
// infinity). It is also undecided if a factor beside an infinity may be 0 or of the other sign.
void add_product(const Node& n, const Bounded& x, const OpBox& sum, double factors, const Tensor& with,
                 const Tensor& without, Bounded& out) {
  Tensor above = like(x.value, 0), below = like(x.value, 0), infinite = like(x.value, 0);  // powers of two
  for (std::size_t i = 0; i < count(x.value); ++i) {
    const double size = value_at(x.value, i);
    if (std::isinf(size)) reals(infinite)[i] = 1;
    if (!std::isfinite(size) || size == 0) continue;
    const double power = std::log2(size);
    (power > 0 ? reals(above) : reals(below))[i] = std::fabs(power);
  }
  above = run1(sum, {above});
  below = run1(sum, {below});
  infinite = run1(sum, {infinite});
  const Tensor open = run1(sum, {around_zero(x)});
  const DType dtype = n.shape().dtype() == DType::F64 || n.shape().dtype() == DType::C128 ? DType::F64 : DType::F32;
  const FloatFormat format = float_format(dtype);
  double* e = reals(out.slack);
  for (std::size_t i = 0; i < count(out.value); ++i) {
    const bool overflows = reals(above)[i] >= format.max_exponent;
    const bool vanishes = reals(infinite)[i] > 0 && (reals(open)[i] > 0 || reals(below)[i] >= -format.min_exponent);
    if (overflows || vanishes) {
      e[i] = kApart;
      continue;
    }
    const double carried = reals(with)[i] - reals(without)[i];
    const double lost = reals(below)[i] < -format.min_exponent ? 0 : last_place(dtype, 0) * std::exp2(reals(above)[i]);
    e[i] = (carried > 0 || std::isnan(carried) ? carried : 0) +
           factors * (sum_epsilon(n.shape().dtype()) * reals(without)[i] + lost);
  }
}

}  // namespace

void add_to_sum(const Node& n, const std::vector<const Bounded*>& in, Bounded& out) {
  if (!has_bound(out.value.dtype())) return;
  const BinaryKind fn = n.op.as<ops::Binary>().fn;
  const auto terms = [](const Bounded& b) { return b.terms.empty() ? magnitude(b.value) : b.terms; };
  const bool open = !in[0]->terms.empty() || !in[1]->terms.empty();
  if (fn == BinaryKind::Add || fn == BinaryKind::Sub) {
    out.terms = add_up(terms(*in[0]), terms(*in[1]));
    const double eps = sum_epsilon(n.shape().dtype());
    if (open)
      for (std::size_t i = 0; i < count(out.value); ++i) reals(out.slack)[i] += eps * reals(out.terms)[i];
  } else if (fn == BinaryKind::Mul && open) {
    out.terms = run1(n.op, {terms(*in[0]), terms(*in[1])});
  }
}

void reduce(const Node& n, const Bounded& x, Bounded& out) {
  auto op = n.op.as<ops::Reduce>();
  const bool ordered = op.fn == ReduceKind::Max || op.fn == ReduceKind::Min;
  if (ordered || !has_bound(x.value.dtype())) {
    op.fn = ReduceKind::Max;
    return spread(x, op, out);
  }
  const Tensor size = magnitude(x.value);
  Tensor without = run1(op, {size});
  const Tensor with = run1(op, {with_slack(x, size)});
  if (op.fn == ReduceKind::Prod) {
    const double factors =
        count(out.value) ? static_cast<double>(count(x.value)) / static_cast<double>(count(out.value)) : 0;
    op.fn = ReduceKind::Sum;
    return add_product(n, x, op, factors, with, without, out);
  }
  const double group =
      count(out.value) > 0 ? static_cast<double>(count(x.value)) / static_cast<double>(count(out.value)) : 1;
  add_terms(n, out, with, without, group, op.fn == ReduceKind::Mean ? std::max(1.0, group) : 1);
}

void windows(const Node& n, const Bounded& x, std::vector<Bounded>& out) {
  auto op = n.op.as<ops::ReduceWindow>();
  const bool ordered = op.fn == ReduceKind::Max || op.fn == ReduceKind::Min;
  if (ordered || !has_bound(x.value.dtype())) {
    op.fn = ReduceKind::Max;
    spread(x, op, out[0]);
    if (out.size() > 1)  // another element may be the largest
      for (std::size_t i = 0; i < count(out[1].value); ++i)
        if (reals(out[0].slack)[i] > 0) reals(out[1].slack)[i] = kApart;
    return;
  }
  const Tensor size = magnitude(x.value), without = run1(op, {size}), with = run1(op, {with_slack(x, size)});
  double places = 1;
  for (std::int64_t w : op.window) places *= static_cast<double>(w);
  if (op.fn != ReduceKind::Prod)
    return add_terms(n, out[0], with, without, places, op.fn == ReduceKind::Mean ? places : 1);
  op.fn = ReduceKind::Sum;
  add_product(n, x, op, places, with, without, out[0]);
}

void interpolate(const Node& n, const Bounded& x, Bounded& out) {
  // Sums weighted by the magnitudes of the weights, axis by axis.
  const auto op = n.op.as<ops::Interpolate>();
  // An axis that is written as a matmul multiplies the whole line, mostly by zeros.
  const auto is_product = [&](std::size_t i, std::int64_t extent) {
    ops::Interpolate forward = op;
    const std::int64_t from = op.transposed ? op.sizes[i] : extent;
    forward.sizes[i] = op.transposed ? extent : op.sizes[i];
    forward.transposed = false;
    const bool windows = op.fn == ResizeKind::Area && from % forward.sizes[i] == 0;
    return !windows && resize_taps(forward, i, from).widest() > kTapsOfGathers;
  };
  const auto along = [&](const Tensor& from, bool whole_lines = false) {
    std::vector<double> v = from.to_f64();
    std::vector<std::int64_t> dims = from.dims();
    for (std::size_t i = 0; i < op.axes.size(); ++i) {
      const auto axis = static_cast<std::size_t>(op.axes[i]);
      const ResizeTaps taps = resize_taps(op, i, dims[axis]);
      std::size_t outer = 1, inner = 1;
      for (std::size_t a = 0; a < dims.size(); ++a)
        (a < axis ? outer : inner) *= a == axis ? 1 : static_cast<std::size_t>(dims[a]);
      const auto from_extent = static_cast<std::size_t>(dims[axis]), to = static_cast<std::size_t>(op.sizes[i]);
      std::vector<double> sums(outer * to * inner, 0);
      const bool all = whole_lines && is_product(i, dims[axis]);
      for (std::size_t o = 0; o < outer; ++o)
        for (std::size_t j = 0; j < to; ++j) {
          for (std::size_t t = 0; all && t < from_extent; ++t)
            for (std::size_t k = 0; k < inner; ++k)
              sums[(o * to + j) * inner + k] += v[(o * from_extent + t) * inner + k];
          for (auto t = static_cast<std::size_t>(taps.begin[j]); t < static_cast<std::size_t>(taps.begin[j + 1]); ++t)
            for (std::size_t k = 0; k < inner; ++k) {
              const double e = v[(o * from_extent + static_cast<std::size_t>(taps.index[t])) * inner + k];
              if (e != 0) sums[(o * to + j) * inner + k] += e * std::fabs(taps.weight[t]);
            }
        }
      v = std::move(sums);
      dims[axis] = op.sizes[i];
    }
    Tensor t = like(out.value, 0);
    for (std::size_t i = 0; i < v.size(); ++i) reals(t)[i] = v[i];
    return t;
  };
  if (!has_bound(x.value.dtype())) {  // Nearest, for integers
    out.slack = along(x.slack);
    return;
  }
  const Tensor size = magnitude(x.value);
  add_terms(n, out, along(with_slack(x, size)), along(size), 8.0 * static_cast<double>(op.axes.size()));
  Tensor spoilt = like(x.value, 0);
  for (std::size_t i = 0; i < count(x.value); ++i)
    if (!std::isfinite(value_at(x.value, i)) || !(reals(x.slack)[i] < kApart)) reals(spoilt)[i] = 1;
  if (!any(spoilt)) return;
  bool product = false;
  for (std::size_t i = 0; i < op.axes.size(); ++i)
    product = product || is_product(i, x.value.dim(static_cast<int>(op.axes[i])));
  if (!product) return;
  const Tensor reached = along(spoilt, true);
  for (std::size_t i = 0; i < count(out.value); ++i)
    if (reals(reached)[i] != 0) reals(out.slack)[i] = kApart;
}

void cumulative(const Node& n, const Bounded& x, Bounded& out) {
  auto op = n.op.as<ops::Cumulative>();
  if (op.fn == CumulativeKind::Max || op.fn == CumulativeKind::Min || !has_bound(x.value.dtype())) {
    op.fn = CumulativeKind::Max;
    return spread(x, op, out);
  }
  const Tensor size = magnitude(x.value);
  const Tensor without = run1(op, {size}), with = run1(op, {with_slack(x, size)});
  const auto extent = static_cast<double>(x.value.dim(static_cast<int>(op.axis)));
  if (op.fn != CumulativeKind::Prod) return add_terms(n, out, with, without, extent);
  op.fn = CumulativeKind::Sum;
  add_product(n, x, op, extent, with, without, out);
}

void dot(const Node& n, const std::vector<const Bounded*>& in, Bounded& out) {
  if (!has_bound(out.value.dtype())) {
    if (any(in[0]->slack) || any(in[1]->slack)) out.slack = like(out.value, kApart);
    return;
  }
  const Tensor a = magnitude(in[0]->value), b = magnitude(in[1]->value);
  out.terms = run1(n.op, {a, b});
  // Below the normal numbers each product is rounded to a multiple of the smallest number, and equal products round
  // alike.
  const Tensor products = run1(n.op, {like(a, 1), like(b, 1)});
  // At the edges a convolution adds fewer terms.
  const double added = count(products) > 0 ? *std::max_element(reals(products), reals(products) + count(products)) : 0;
  add_terms(n, out, run1(n.op, {with_slack(*in[0], a), with_slack(*in[1], b)}), out.terms, added);
  const bool wide = n.shape().dtype() == DType::F64 || n.shape().dtype() == DType::C128;
  for (std::size_t i = 0; i < count(out.value); ++i)
    if (reals(out.slack)[i] > 0) reals(out.slack)[i] += added * last_place(wide ? DType::F64 : DType::F32, 0);
  // A factor that may vanish or change its sign beside an infinity makes a NaN or the other infinity.
  const Tensor first = run1(n.op, {around_zero(*in[0]), infinite(*in[1])});
  const Tensor second = run1(n.op, {infinite(*in[0]), around_zero(*in[1])});
  for (std::size_t i = 0; i < count(out.value); ++i)
    if (value_at(first, i) + value_at(second, i) > 0) reals(out.slack)[i] = kApart;
  // A filter that is or may be infinite or NaN may meet zeros of the padding, or be skipped there.
  if (n.kind() != OpKind::Conv) return;
  for (std::size_t i = 0; i < count(in[1]->value); ++i)
    if (!std::isfinite(value_at(in[1]->value, i)) || !(reals(in[1]->slack)[i] < kApart))
      out.slack = like(out.value, kApart);
}

void scatter(const Node& n, const std::vector<const Bounded*>& in, const std::vector<Tensor>& values,
             std::vector<Bounded>& results) {
  Bounded& out = results[0];
  const std::size_t last = in.size() - 1;
  for (std::size_t k = 1; k < last; ++k)
    if (any(in[k]->slack)) {
      out.slack = like(out.value, kApart);
      return;
    }
  const auto with = [&](const Tensor& x, const Tensor& updates) {
    std::vector<Tensor> operands = values;
    operands.front() = x;
    operands.back() = updates;
    return operands;
  };
  ops::Scatter op = n.op.as<ops::Scatter>();
  // The bound of min and max is at most the larger of the operands' bounds.
  if (op.fn == ScatterKind::Min || op.fn == ScatterKind::Max) op.fn = ScatterKind::Max;
  const bool adds = op.fn == ScatterKind::Add, rounds = adds || op.fn == ScatterKind::Mul;
  if (!rounds || !has_bound(out.value.dtype())) {
    if (op.fn == ScatterKind::Mul) op.fn = ScatterKind::Add;  // integers are exact or undecided
    out.slack = run1(op, with(in[0]->slack, in[last]->slack));
    return;
  }
  const auto updates = static_cast<double>(count(values[1]));
  if (!adds) {
    elementwise(n, in, values, results);
    for (std::size_t i = 0; i < count(out.value); ++i)
      reals(out.slack)[i] += (updates + 1) * sum_epsilon(n.shape().dtype()) * value_at(out.value, i);
    return;
  }
  const Tensor a = magnitude(in[0]->value), b = magnitude(in[last]->value);
  add_terms(n, out, run1(n.op, with(with_slack(*in[0], a), with_slack(*in[last], b))), run1(n.op, with(a, b)), updates);
}

}  // namespace rlx::test::rounding
