// Bounds of elementwise functions and of comparisons.
#include <algorithm>
#include <cmath>

#include "rlx/ir/ops/elementwise.h"
#include "tests/support/rounding_rules.h"

namespace rlx::test::rounding {
namespace {

// For x below 0, x^y is a number only for integer y. At 0 the sign of x matters, which rounding may change. x^0 and 1^y
// are 1 even for NaN.
void power(const std::vector<const Bounded*>& in, Bounded& out) {
  const Tensor x = broadcast(in[0]->value, out.value), y = broadcast(in[1]->value, out.value);
  const Tensor x_slack = broadcast(in[0]->slack, out.value), y_slack = broadcast(in[1]->slack, out.value);
  for (std::size_t i = 0; i < count(out.value); ++i) {
    const double base = reals(x)[i], exponent = reals(y)[i], moved = reals(x_slack)[i], bent = reals(y_slack)[i];
    const bool below = base - moved <= 0 && moved + bent > 0;
    const bool to_zero = bent > 0 && std::fabs(exponent) <= bent && !std::isfinite(base);
    const bool of_one = moved > 0 && std::fabs(base - 1) <= moved && !std::isfinite(exponent);
    if (below || to_zero || of_one) reals(out.slack)[i] = kApart;
  }
}

// The angle jumps by a full turn where y changes its sign left of the origin.
void angle(const std::vector<const Bounded*>& in, Bounded& out) {
  const Tensor y = broadcast(in[0]->value, out.value), x = broadcast(in[1]->value, out.value);
  const Tensor y_slack = broadcast(in[0]->slack, out.value), x_slack = broadcast(in[1]->slack, out.value);
  for (std::size_t i = 0; i < count(out.value); ++i)
    if (reals(y_slack)[i] > 0 && std::fabs(reals(y)[i]) <= reals(y_slack)[i] && reals(x)[i] <= reals(x_slack)[i])
      reals(out.slack)[i] = std::max(reals(out.slack)[i], 6.2832);
}

// x mod y and x rem y change by e_x + |x / y| e_y, and by y where that crosses a multiple of y.
void remainder(const std::vector<const Bounded*>& in, Bounded& out) {
  const Tensor x = broadcast(in[0]->value, out.value), y = broadcast(in[1]->value, out.value);
  const Tensor x_slack = broadcast(in[0]->slack, out.value), y_slack = broadcast(in[1]->slack, out.value);
  for (std::size_t i = 0; i < count(out.value); ++i) {
    double& e = reals(out.slack)[i];
    const double moved = reals(x_slack)[i] + (std::fabs(reals(x)[i] / reals(y)[i]) + 1) * reals(y_slack)[i];
    if (moved == 0 || !std::isfinite(reals(out.value)[i])) continue;
    const double rest = std::fabs(reals(out.value)[i]);
    e = rest - moved > 0 && rest + moved < std::fabs(reals(y)[i]) ? std::max(e, moved) : kApart;
  }
}

// True where the corners do not bound the function: its interval contains a pole or an extremum.
bool undecidable(const OpBox& op, std::size_t operand, const Tensor& x, const Tensor& slack, std::size_t i) {
  const double e = reals(slack)[i];
  if (e == 0) return false;
  if (!(e < kApart)) return true;
  const double size = value_at(x, i);
  if (const auto* a = op.get_if<ops::Activation>()) {
    switch (a->fn) {
      case ActivationKind::Recip: return e >= size;
      case ActivationKind::Sin:
      case ActivationKind::Cos: return e > 0.5;
      case ActivationKind::Tan: return std::fabs(std::cos(size)) <= 2 * e;
      case ActivationKind::Sinc: return e > 0.15;
      case ActivationKind::Asin:
      case ActivationKind::Acos:
      case ActivationKind::Atanh:
      case ActivationKind::Erfinv:  // both corners may be outside [-1, 1], on different sides
        return std::fabs(reals(x)[i]) > 1 && std::fabs(reals(x)[i]) - e <= 1;
      case ActivationKind::Lgamma:
      case ActivationKind::Digamma:
      case ActivationKind::Polygamma: {  // poles, and extrema between them
        const double v = reals(x)[i];
        return v < 0.5 && std::fabs(v - std::nearbyint(v)) <= 4 * e;
      }
      default: return false;
    }
  }
  if (const auto* b = op.get_if<ops::Binary>()) return b->fn == BinaryKind::Div && operand == 1 && e >= size;
  return false;
}

}  // namespace

void elementwise(const Node& n, const std::vector<const Bounded*>& in, const std::vector<Tensor>& values,
                 std::vector<Bounded>& out) {
  bool moving = false;
  for (const Bounded* b : in) moving = moving || any(b->slack);
  if (!moving) return;
  const bool whole = !has_bound(out[0].value.dtype());
  if (whole) {  // integers are exact or undecided
    for (const Bounded* b : in)
      for (Bounded& o : out) {
        const bool fits = broadcast_dims(b->slack.shape().dims(), o.slack.shape().dims()) == o.slack.shape().dims();
        if (fits)
          o.slack = add_up(o.slack, b->slack);
        else if (any(b->slack))
          o.slack = like(o.value, kApart);
      }
    return;
  }
  const std::size_t corners = std::size_t{1} << std::min<std::size_t>(in.size(), 3);
  for (std::size_t corner = 0; corner < corners; ++corner) {
    std::vector<Tensor> moved;
    for (std::size_t k = 0; k < in.size(); ++k) {
      Tensor finite = in[k]->slack;
      for (std::size_t i = 0; i < count(finite); ++i)
        if (!(reals(finite)[i] < kApart)) reals(finite)[i] = 0;  // undecided, set below
      moved.push_back(shifted(values[k], finite, (corner >> std::min<std::size_t>(k, 2) & 1) != 0 ? 1 : -1));
    }
    const std::vector<Tensor> there = evaluate_op(n.op, moved);
    for (std::size_t r = 0; r < out.size(); ++r)
      for (std::size_t i = 0; i < count(out[r].value); ++i)
        reals(out[r].slack)[i] = std::max(reals(out[r].slack)[i], apart(there[r], out[r].value, i));
  }
  for (std::size_t k = 0; k < in.size(); ++k) {
    Tensor lost = like(values[k], 0);
    for (std::size_t i = 0; i < count(lost); ++i)
      if (undecidable(n.op, k, values[k], in[k]->slack, i)) reals(lost)[i] = kApart;
    if (!any(lost)) continue;
    for (Bounded& o : out) {  // elementwise; other ops are fully undecided
      const bool fits = broadcast_dims(lost.shape().dims(), o.slack.shape().dims()) == o.slack.shape().dims();
      o.slack = fits ? add_up(o.slack, broadcast(lost, o.slack)) : like(o.value, kApart);
    }
  }
  if (const auto* b = n.op.get_if<ops::Binary>()) {
    if (b->fn == BinaryKind::Mod || b->fn == BinaryKind::Rem) remainder(in, out[0]);
    if (b->fn == BinaryKind::Pow && !is_complex(out[0].value.dtype())) power(in, out[0]);
    if (b->fn == BinaryKind::Atan2) angle(in, out[0]);
  }
}

void vanishing_times_infinity(const std::vector<Tensor>& values, Bounded& out) {
  if (!stores_floats(out.value.dtype()) || is_complex(out.value.dtype())) return;
  const Tensor a = broadcast(values[0], out.value), b = broadcast(values[1], out.value);
  for (std::size_t i = 0; i < count(out.value); ++i)
    if (std::isnan(reals(out.value)[i]) && !std::isnan(reals(a)[i]) && !std::isnan(reals(b)[i]))
      reals(out.slack)[i] = kApart;
}

void log_sum(DType t, const std::vector<Tensor>& values, Bounded& out) {
  const Tensor a = broadcast(values[0], out.value), b = broadcast(values[1], out.value);
  for (std::size_t i = 0; i < count(out.value); ++i) {
    const double larger = std::fabs(std::max(reals(a)[i], reals(b)[i]));
    if (std::isfinite(larger) && std::isfinite(reals(out.value)[i]))
      reals(out.slack)[i] += 2 * last_place(t, std::max(larger, 0.5));
  }
}

void reflected(const Node& n, const std::vector<Tensor>& values, Bounded& out) {
  const ActivationKind fn = n.op.as<ops::Activation>().fn;
  if (fn != ActivationKind::Lgamma && fn != ActivationKind::Digamma) return;
  constexpr double kPi = 3.14159265358979323846;
  for (std::size_t i = 0; i < count(out.value); ++i) {
    const double x = reals(values[0])[i], turn = kPi * (x - std::nearbyint(x));
    if (!(x < 0) || !std::isfinite(x) || !std::isfinite(reals(out.value)[i])) continue;
    const double terms = fn == ActivationKind::Digamma
                             ? std::fabs(kPi / std::tan(turn))
                             : std::fabs(std::lgamma(1 - x)) + std::fabs(std::log(kPi / std::fabs(std::sin(turn))));
    reals(out.slack)[i] += 3e-15 * terms;  // docs/numerics.md
  }
}

void vanishing_factor(const Node& n, const std::vector<Tensor>& values, Bounded& out) {
  const ActivationKind fn = n.op.as<ops::Activation>().fn;
  if (fn != ActivationKind::Silu && fn != ActivationKind::Mish && fn != ActivationKind::Gelu) return;
  const double least = n.shape().dtype() == DType::F64 ? 0x1p-1074 : 0x1p-149;
  for (std::size_t i = 0; i < count(out.value); ++i) {
    const double x = reals(values[0])[i];
    if (x < 0 && std::isfinite(x)) reals(out.slack)[i] += -x * least;
  }
}

void choose_zero(const std::vector<Tensor>& values, Bounded& out) {
  if (!stores_floats(out.value.dtype())) return;
  const ops::Binary times{BinaryKind::Mul};  // adding 0 would lose the sign
  const Tensor one = like(out.value, 1), a = run1(times, {values[0], one}), b = run1(times, {values[1], one});
  for (std::size_t i = 0; i < count(out.value); ++i)
    if (reals(a)[i] == 0 && reals(b)[i] == 0 && std::signbit(reals(a)[i]) != std::signbit(reals(b)[i]))
      either_zero(out, i);
}

void compare(const std::vector<const Bounded*>& in, Bounded& out) {
  const Tensor e = add_up(in[0]->slack, in[1]->slack);
  for (std::size_t i = 0; i < count(out.value); ++i) {
    if (reals(e)[i] == 0) continue;
    reals(out.slack)[i] = kApart;
  }
  if (!any(out.slack) || !is_float(in[0]->value.dtype())) return;
  const Tensor a = broadcast(in[0]->value, out.value), b = broadcast(in[1]->value, out.value);
  for (std::size_t i = 0; i < count(out.value); ++i)
    if (difference(reals(a)[i], reals(b)[i]) > reals(e)[i]) reals(out.slack)[i] = 0;
}

}  // namespace rlx::test::rounding
