// Samples of FusedResidualLN and FusedResidualRmsNorm.
#include "rlx/ir/ops/fused.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {
namespace {

template <class Op>
void fused_residual_samples(SampleSet& s) {
  const auto add = [&](const char* name, const Dims& dims, DType t, double eps, std::uint32_t present) {
    Op op;
    op.eps = eps, op.present.bits = present;
    const Shape x(dims, t);
    std::vector<SampleInput> in{x, x};
    for (int place = 2; place < 5; ++place)
      if (op.present.has(place)) in.emplace_back(Shape({dims.back()}, t));
    s.add(name, std::move(in), std::move(op));
  };
  add("plain", {2, 3}, DType::F32, 1e-5, 0b11000);
  add("bias", {2, 2, 3}, DType::F32, 1e-3, 0b11100);
  add("vector", {4}, DType::F32, 0.1, 0b11100);
  add("one element", {2, 1}, DType::F32, 0.5, 0b11000);
  add("no rows", {0, 3}, DType::F32, 1e-5, 0b11100);
  add("no gamma", {2, 3}, DType::F32, 1e-5, 0b10100);
  add("no beta", {2, 3}, DType::F32, 1e-5, 0b1000);
  add("the sum alone", {2, 3}, DType::F32, 1e-5, 0);
  add("f64", {2, 3}, DType::F64, 1e-12, 0b11100);
}

}  // namespace

template <>
void samples<ops::FusedResidualLN>(SampleSet& s) {
  fused_residual_samples<ops::FusedResidualLN>(s);
}

template <>
void samples<ops::FusedResidualRmsNorm>(SampleSet& s) {
  fused_residual_samples<ops::FusedResidualRmsNorm>(s);
}

}  // namespace rlx::testing
