// Samples of Activation.
#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {
namespace {

FunctionParams some_params(const FunctionRow& r) {
  if (r.order > 0) return {2, 0};
  return {r.alpha.value_or(0) * 0.75, r.beta.value_or(0) * 0.75};
}

}  // namespace

template <>
void samples<ops::Activation>(SampleSet& s) {
  for (int i = 0; i < kNumActivationKinds; ++i) {
    const FunctionRow& r = function_row(static_cast<ActivationKind>(i));
    ops::Activation op{r.fn};
    std::string name(enum_name(r.fn));
    if (r.real) {
      s.add(name + " f32", {{Shape({2, 3}, DType::F32), r.fill}}, op);
      s.add(name + " f64", {{Shape({3}, DType::F64), r.fill}}, op);
      s.add_discrete(name + " bf16", {{Shape({4}, DType::BF16), r.fill}}, op);
      s.add_discrete(name + " f16", {{Shape({4}, DType::F16), r.fill}}, op);
    }
    if (r.real_with) {
      const FunctionParams p = some_params(r);
      op.alpha = p.alpha;
      if (r.beta) op.beta = p.beta;
      s.add(name + " with parameters f32", {{Shape({2, 3}, DType::F32), r.fill}}, op);
      s.add(name + " with parameters f64", {{Shape({7}, DType::F64), r.fill}}, op);
      s.add_discrete(name + " with parameters f16", {{Shape({4}, DType::F16), r.fill}}, op);
      op = ops::Activation{r.fn};
    }
    if (r.complex)
      s.add(name + " c64", {{Shape({3}, DType::C64), r.fill == Fill::Positive ? Fill::Positive : Fill::Unit}}, op);
    if (r.signed_int) {
      s.add_discrete(name + " i8", {{Shape({5}, DType::I8), Fill::Small}}, op);
      s.add_discrete(name + " i64", {{Shape({2, 2}, DType::I64), Fill::Small}}, op);
      s.add_discrete(name + " u32", {{Shape({3}, DType::U32), Fill::Index, 7}}, op);
    }
    if (contains(r.dtypes, DType::Bool)) s.add_discrete(name + " bool", {{Shape({4}, DType::Bool), Fill::Boolean}}, op);
  }
  s.add("scalar", {Shape({}, DType::F32)}, ops::Activation{ActivationKind::Silu});
  s.add("no elements", {Shape({0, 3}, DType::F32)}, ops::Activation{ActivationKind::Gelu});
  s.add("rank 4", {Shape({2, 1, 3, 2}, DType::F32)}, ops::Activation{ActivationKind::Tanh});
}

}  // namespace rlx::testing
