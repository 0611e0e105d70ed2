// Bounds of complex numbers and their parts, and of Fourier transforms.
#include <algorithm>
#include <cmath>

#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fft.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/tensor/visit.h"
#include "tests/support/rounding_rules.h"

namespace rlx::test::rounding {

void complex_parts(const Node& n, const Operands& in, Bounded& out) {
  if (n.kind() == OpKind::ComplexPart)
    out.slack = in[0]->slack;
  else
    out.slack = add_up(broadcast(in[0]->slack, out.value), broadcast(in[1]->slack, out.value));
}

// Every element is a sum over the whole line with factors of magnitude 1, so errors of the operand add up unchanged. A
// fast transform rounds like log n sums. Bluestein's rounds like three or more transforms of up to four times the
// length. 16 eps of the sum of magnitudes is far above both. A NaN or infinity, or a sum that may overflow, leaves the
// line undecided.
void fourier(const Node& n, const Bounded& x, Bounded& out) {
  const auto& op = n.op.as<ops::Fft>();
  ops::Reduce sum{ReduceKind::Sum, op.axes, true};
  std::sort(sum.axes.begin(), sum.axes.end());
  const DType real = real_dtype(n.shape().dtype());
  double points = 1;
  for (std::int64_t a : op.axes)
    points *= static_cast<double>((op.fn == FftKind::RealInverse ? out.value : x.value).dim(static_cast<int>(a)));
  const double scale = op.norm == FftNorm::Ortho                                        ? 1 / std::sqrt(points)
                       : op.norm == (op.inverse ? FftNorm::Backward : FftNorm::Forward) ? 1 / points
                                                                                        : 1;
  Tensor odd = like(x.value, 0);
  for (std::size_t i = 0; i < count(x.value); ++i) {
    const auto v = load_element<C>(x.value.data(), x.value.dtype(), static_cast<std::int64_t>(i));
    if (!std::isfinite(v.real()) || !std::isfinite(v.imag())) reals(odd)[i] = 1;
  }
  const Tensor size = broadcast(run1(sum, {magnitude(x.value)}), out.value);
  const Tensor carried = broadcast(run1(sum, {x.slack}), out.value);
  odd = broadcast(run1(sum, {odd}), out.value);
  const double twice = op.fn == FftKind::RealInverse ? 2 : 1;
  const double largest = float_format(real).largest;
  for (std::size_t i = 0; i < count(out.value); ++i) {
    double& e = reals(out.slack)[i];
    const double rounding = 16 * sum_epsilon(n.shape().dtype()) + 64 * epsilon_of(DType::F64);
    e = twice * scale * (reals(carried)[i] + rounding * reals(size)[i]) + 4 * points * last_place(real, 0);
    if (reals(odd)[i] > 0 || 4 * twice * reals(size)[i] > largest) e = kApart;
  }
}

}  // namespace rlx::test::rounding
