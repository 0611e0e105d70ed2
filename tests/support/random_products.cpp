// Random reductions, scans and matmuls.
#include "rlx/ir/math/windows.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/fft.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "tests/support/random_generator.h"

namespace rlx::test {

void Generator::reduce() {
  const Expr x = pick_any(1);
  if (x.rank() > 0 && dice_.chance(25)) {  // windows
    ops::ReduceWindow op{static_cast<ReduceKind>(dice_.below(5))};
    std::vector<WindowAxis> axes;
    Dims dims;
    for (const Dim& d : x.shape().dims()) {
      WindowAxis a;
      if (d.is_static() && dice_.chance(60))
        a = {1 + dice_.below(3), 1 + dice_.below(3), dice_.below(3),
             dice_.below(3),     1 + dice_.below(2), 1 + dice_.below(2)};
      axes.push_back(a);
      dims.push_back(a.outputs(d));
    }
    set_window_axes(op, axes);
    if (elements(dims) <= options_.max_elements) keep(g_.reduce_window(x, op));
    return;
  }
  keep(g_.reduce(static_cast<ReduceKind>(dice_.below(5)), x, axes_of(x), dice_.chance(50)));
}

void Generator::scan() {
  const Expr x = pick_any(1);
  switch (dice_.below(5)) {
    case 4: {  // a transform and its inverse; the parts of the spectrum are values between them
      const Expr y = pick([](const Expr& e) {
        return (e.dtype() == DType::F32 || e.dtype() == DType::F64) && e.rank() >= 1 && e.dim(-1).is_static() &&
               e.dim(-1).value() >= 1;
      });
      if (!y.valid()) return;
      const ops::Fft forward{FftKind::Real, {y.rank() - 1}, false, FftNorm::Ortho, {}};
      const Expr spectrum = g_.fft(y, forward);
      keep(g_.real(spectrum));
      const ops::Fft back{FftKind::RealInverse, {y.rank() - 1}, true, FftNorm::Ortho, {y.dim(-1)}};
      keep(g_.fft(dice_.chance(50) ? g_.conj(spectrum) : spectrum, back));
      return;
    }
    case 0: keep(g_.softmax(pick_float(1), -1)); return;
    case 1: {
      const Expr y = pick_float(1);
      keep(dice_.chance(50) ? g_.log_softmax(y, axis_of(y)) : g_.softmax(y, axis_of(y)));
      return;
    }
    default:
      keep(g_.cumulative(static_cast<CumulativeKind>(dice_.below(4)), x, axis_of(x), dice_.chance(50),
                         dice_.chance(50)));
  }
}

void Generator::product() {
  const Expr x = pick_float(1);
  const Dim k = x.dim(-1);
  const Dim n = 1 + dice_.below(20);
  switch (dice_.below(5)) {
    case 0: {  // a weight, often with an epilogue
      Expr y = dice_.chance(70) ? g_.matmul(x, leaf(Shape({k, n}, x.dtype())))
                                : g_.matmul(x, g_.t(leaf(Shape({n, k}, x.dtype()))));
      keep(y);
      if (dice_.chance(60)) y = keep(y + leaf(Shape({n}, x.dtype())));
      if (dice_.chance(60)) keep(g_.activation(function(6), y));
      return;
    }
    case 1: {
      const Expr y = pick(
          [&](const Expr& e) { return e.rank() >= 2 && e.dtype() == x.dtype() && (e.dim(-2) == k || e.dim(-1) == k); });
      if (y.valid()) keep(g_.matmul(x, y.dim(-2) == k ? y : g_.t(y)));
      return;
    }
    case 2:
      if (x.rank() >= 2) keep(g_.matmul(x, g_.t(x)));
      return;
    case 3: {
      if (x.rank() >= 2) keep(g_.matmul(g_.t(x), x));
      return;
    }
    default: {  // any axes in any order
      Dims dims = x.shape().dims();
      const std::int64_t contract = axis_of(x);
      ops::DotGeneral op;
      op.lhs_contract = {contract};
      Dims other;
      if (x.rank() > 1 && dice_.chance(50)) {
        const std::int64_t batch = (contract + 1) % x.rank();
        op.lhs_batch = {batch};
        op.rhs_batch = {0};
        other.push_back(dims[static_cast<std::size_t>(batch)]);
      }
      const bool first = dice_.chance(50);
      if (!first) other.emplace_back(1 + dice_.below(6));
      op.rhs_contract = {static_cast<std::int64_t>(other.size())};
      other.push_back(dims[static_cast<std::size_t>(contract)]);
      if (first) other.emplace_back(1 + dice_.below(6));
      if (elements(other) <= options_.max_elements) keep(g_.dot_general(x, leaf(Shape(other, x.dtype())), op));
    }
  }
}

void Generator::quantised() {
  const Expr x = pick([](const Expr& e) { return e.dtype() == DType::F32 && e.rank() >= 1 && e.dim(-1).is_static(); });
  if (!x.valid()) return;
  const Dim k = x.dim(-1), n = 1 + dice_.below(20);
  static constexpr DType kCodes[] = {DType::I8, DType::U8, DType::I4, DType::U4};
  const auto codes = [&] {
    const Expr whole = leaf(Shape({k, n}, DType::I8));
    const DType t = dice_.of(kCodes);
    return t == DType::I8 ? whole : g_.cast(whole, t);
  };
  const bool by_column = dice_.chance(60);
  ops::Dequantize op;
  if (by_column) op.axis = 1;
  const Expr scale = leaf(by_column ? Shape({n}, DType::F32) : Shape({}, DType::F32));
  const Expr w = g_.dequantize(codes(), Operand(scale), op);
  keep(g_.matmul(x, w));
  if (dice_.chance(20)) keep(w);
  if (dice_.chance(40) && x.rank() == 2) {
    const std::int64_t groups = 1 + dice_.below(3);
    const Expr ids = whole_leaf(Shape({x.dim(0)}, DType::I32), -1, groups + 1);
    keep(g_.grouped_dot(x, leaf(Shape({Dim(groups), k, n}, DType::F32)), ids));
  }
}

}  // namespace rlx::test
