// Samples of Input, Param, Constant and State.
#include "rlx/ir/ops/leaves.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Input>(SampleSet& s) {
  s.add_discrete("plain", {}, ops::Input{"x", {2, 3}, DType::F32});
}

template <>
void samples<ops::Param>(SampleSet& s) {
  s.add_discrete("plain", {}, ops::Param{"w", {3, 2}, DType::BF16});
  s.add_discrete("mutable", {}, ops::Param{"w", {2}, DType::F32, ParamMode::Mutable});
}

template <>
void samples<ops::Constant>(SampleSet& s) {
  s.add_discrete("vector", {}, ops::Constant{Tensor::of<float>({3}, std::vector<float>{1, -2.5f, 3e-8f})});
  s.add_discrete("i64 matrix", {},
                 ops::Constant{Tensor::of<std::int64_t>({2, 1}, std::vector<std::int64_t>{-1, 1LL << 40})});
  s.add_discrete("not finite", {}, ops::Constant{Tensor::full(Shape({2}, DType::F64), -1.0 / 0.0)});
}

template <>
void samples<ops::State>(SampleSet& s) {
  s.add_discrete("zeros", {}, ops::State{"s", {2}, DType::F32, Tensor::zeros(Shape({2}, DType::F32))});
}

}  // namespace rlx::testing
