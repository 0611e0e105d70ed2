// Expressions of all formulas.
#include "rlx/elementwise/functions.h"

#include "rlx/elementwise/symbol.h"

#define RLX_INLINE inline
#define RLX_UNROLL(n)
#define RLX_LANE_SPACE rlx::elementwise::symbolic

namespace rlx::elementwise::symbolic {

template <class V>
struct Lane;
template <class S, class T>
struct Lane<Symbol<S, T>> {
  using Scalar = S;
  static constexpr bool kFused = false, kExact = false, kSplitHasLimits = false;
  static constexpr bool kWider = T::kWider && sizeof(S) == 4, kNative = T::kNative;
  static constexpr int kLookup = 0;
  static constexpr S kInf = std::numeric_limits<S>::infinity(), kNan = std::numeric_limits<S>::quiet_NaN();
};
template <class V>
using ScalarOf = typename Lane<V>::Scalar;
template <class V>
V set(ScalarOf<V> x) {
  return x;
}

}  // namespace rlx::elementwise::symbolic

#include "rlx/elementwise/formulas.inc"

namespace rlx::elementwise {
namespace {

/// The expression of f(x), or f(x, parameter).
template <class V, int kOperands, class F>
Expression recorded(F f) {
  Expression e;
  const auto input = [&](double i) { return V(&e, e.add({.op = Op::Input, .type = V::kType, .number = i})); };
  V y;
  if constexpr (kOperands == 1) {
    y = f(input(0));
  } else {
    const V x = input(0);
    y = f(x, input(1));
  }
  e.finish(y.node(&e));
  return e;
}

template <class V, int kOperands, class F>
constexpr auto recorder(F) {
  return +[] { return recorded<V, kOperands>(F{}); };
}

template <int kOperands, class F>
constexpr Function row(std::string_view name, double ulp_f32, double ulp_f64, double ulp_portable, double cost_f32,
                       double cost_f64, F f) {
  return {name,
          kOperands,
          ulp_f32,
          ulp_f64,
          ulp_portable,
          cost_f32,
          cost_f64,
          recorder<Symbol<float, Portable>, kOperands>(f),
          recorder<Symbol<float, Xla>, kOperands>(f),
          recorder<Symbol<double, Xla>, kOperands>(f)};
}

constexpr Function kFunctions[] = {
#define RLX_ROW(Kind, name, ...) row<1>(#name, __VA_ARGS__, [](auto x) { return symbolic::name(x); }),
    RLX_FOR_EACH_FORMULA(RLX_ROW)
#undef RLX_ROW
#define RLX_ROW(Kind, name, ...) row<2>(#name, __VA_ARGS__, [](auto x, auto y) { return symbolic::name(x, y); }),
        RLX_FOR_EACH_FORMULA_WITH_PARAMETER(RLX_ROW)
#undef RLX_ROW
};

}  // namespace

const Function* find_function(std::string_view name) {
  for (const Function& f : kFunctions)
    if (f.name == name) return &f;
  return nullptr;
}

}  // namespace rlx::elementwise
