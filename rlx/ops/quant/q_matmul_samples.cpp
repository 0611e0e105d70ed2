// Samples of QMatMul.
#include "rlx/ir/ops/quantize.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::QMatMul>(SampleSet& s) {
  const auto codes = [](Dims dims, DType t) {
    return SampleInput(Shape(std::move(dims), t), Fill::Index, t == DType::I8 ? 128 : 256);
  };
  const auto bias = [](std::int64_t n) { return SampleInput(Shape({n}, DType::I32), Fill::Small); };
  const auto op = [](std::int64_t x_zp, std::int64_t w_zp, std::int64_t out_zp, std::vector<double> mult, bool has_bias,
                     DType t = DType::I8) {
    ops::QMatMul q{x_zp, w_zp, out_zp, std::move(mult), t, {}};
    q.present.bits = has_bias ? 1U << 2 : 0;
    return q;
  };
  s.add_discrete("symmetric", {codes({3, 5}, DType::I8), codes({5, 2}, DType::I8)}, op(0, 0, 0, {0.003}, false));
  s.add_discrete("zero points", {codes({3, 5}, DType::I8), codes({5, 2}, DType::I8), bias(2)},
                 op(-3, 7, 11, {0.003}, true));
  s.add_discrete("u8 x", {codes({2, 4}, DType::U8), codes({4, 3}, DType::I8), bias(3)},
                 op(128, 0, 3, {0.004}, true, DType::U8));
  s.add_discrete("a column", {codes({2, 4}, DType::U8), codes({4, 2}, DType::U8)},
                 op(120, 101, -7, {0.002, 0.01}, false));
  s.add_discrete("rows of rows", {codes({2, 3, 4}, DType::I8), codes({4, 3}, DType::I8)}, op(5, -5, 0, {0.01}, false));
  s.add_discrete("matrices", {codes({2, 3, 4}, DType::I8), codes({2, 4, 3}, DType::I8), bias(3)},
                 op(1, 2, 3, {0.01}, true));
  s.add_discrete("depth 0", {codes({2, 0}, DType::I8), codes({0, 3}, DType::I8), bias(3)}, op(1, 2, 3, {0.5}, true));
  s.add_discrete("no rows", {codes({0, 2}, DType::I8), codes({2, 3}, DType::I8)}, op(0, 0, 0, {1.0}, false));
}

}  // namespace rlx::testing
