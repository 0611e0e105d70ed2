// Random elementwise functions, comparisons and conversions.
#include "rlx/ir/functions.h"
#include "tests/support/random_generator.h"

namespace rlx::test {

void Generator::activation() {
  const ActivationKind fn = function(kNumActivationKinds);
  const bool of_bits = fn == ActivationKind::Popcount || fn == ActivationKind::Clz;
  Expr x = fn == ActivationKind::Not ? pick_any() : dice_.chance(90) ? pick_float() : pick_any();
  if (of_bits) x = pick([](const Expr& e) { return is_int(e.dtype()); });
  if (!x.valid()) x = g_.cast(pick_any(), dice_.of(kWhole));
  if (!of_bits && dice_.chance(15)) x = x * 0.25;
  keep(g_.activation(fn, x));
}

void Generator::binary() {
  auto fn = static_cast<BinaryKind>(dice_.chance(70) ? dice_.below(6) : dice_.below(kNumBinaryKinds));
  if (binary_row(fn).differentiable < 2) fn = BinaryKind::Hypot;  // programs may be differentiated twice
  const bool of_bits = fn >= BinaryKind::BitAnd && fn <= BinaryKind::Shr;
  const Expr x = of_bits ? pick([](const Expr& e) { return is_int(e.dtype()); }) : pick_any();
  if (!x.valid()) {
    keep(g_.cast(pick_any(), dice_.of(kWhole)));
    return;
  }
  const Operand y = partner(x);
  keep(dice_.chance(50) ? g_.binary(fn, x, y) : g_.binary(fn, y, x));
}

void Generator::compare() {
  const Expr x = pick_any();
  const Expr c = g_.compare(static_cast<CompareKind>(dice_.below(6)), x, partner(x));
  keep(c);
  const Expr a = pick([&](const Expr& e) { return broadcast_dims(e.shape().dims(), c.shape().dims()).has_value(); });
  if (a.valid()) keep(dice_.chance(50) ? g_.where(c, a, partner(a)) : g_.where(c, partner(a), a));
  if (dice_.chance(30)) keep(g_.clamp(pick_float(), -0.5, 1.5));
}

void Generator::convert() {
  const Expr x = pick_any();
  if (dice_.chance(15)) {  // through a storage type
    static constexpr DType kStored[] = {DType::F8E4M3, DType::F8E5M2, DType::F4E2M1, DType::I4, DType::U4};
    keep(g_.cast(g_.cast(x, dice_.of(kStored)), is_int(x.dtype()) ? DType::I32 : dice_.of(kFloats)));
  } else {
    keep(g_.cast(x, dice_.chance(60) ? dice_.of(kFloats) : dice_.chance(80) ? dice_.of(kWhole) : DType::Bool));
  }
}

}  // namespace rlx::test
