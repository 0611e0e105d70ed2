// Samples of QConv.
#include "rlx/ir/ops/quantize.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::QConv>(SampleSet& s) {
  const auto codes = [](Dims dims, DType t) {
    return SampleInput(Shape(std::move(dims), t), Fill::Index, t == DType::I8 ? 128 : 256);
  };
  const auto bias = [](std::int64_t n) { return SampleInput(Shape({n}, DType::I32), Fill::Small); };
  ops::QConv op;
  op.mult = {0.002};
  s.add_discrete("2-d", {codes({2, 3, 4, 5}, DType::I8), codes({2, 3, 2, 3}, DType::I8)}, op);
  op.low = {1, 1}, op.high = {1, 0}, op.strides = {2, 1}, op.x_zp = 5, op.w_zp = -2, op.out_zp = 1;
  op.present.bits = 1U << 2;
  s.add_discrete("pads, strides, zero points",
                 {codes({1, 2, 5, 4}, DType::I8), codes({3, 2, 3, 3}, DType::I8), bias(3)}, op);
  ops::QConv grouped;
  grouped.groups = 2, grouped.dilations = {2, 1}, grouped.x_zp = 128, grouped.dtype = DType::U8,
  grouped.mult = {0.01, 0.02, 0.001, 0.005};
  s.add_discrete("groups and dilations", {codes({1, 4, 5, 3}, DType::U8), codes({4, 2, 2, 2}, DType::I8)}, grouped);
  ops::QConv one;
  one.mult = {0.01}, one.w_zp = 100;
  s.add_discrete("1-d", {codes({2, 3, 6}, DType::I8), codes({2, 3, 1}, DType::U8)}, one);
  s.add_discrete("no images", {codes({0, 3, 6}, DType::I8), codes({2, 3, 2}, DType::U8)}, one);
}

}  // namespace rlx::testing
