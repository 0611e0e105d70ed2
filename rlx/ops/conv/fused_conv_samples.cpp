// Samples of FusedConv.
#include "rlx/ir/ops/conv.h"
#include "rlx/ops/body_samples.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::FusedConv>(SampleSet& s) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  const auto fused = [](ops::Conv conv, const Shape& acc, const std::vector<Shape>& operands, auto&& build) {
    ops::FusedConv op;
    static_cast<ops::Conv&>(op) = std::move(conv);
    op.epilogue = sample_epilogue(acc, operands, build);
    return op;
  };
  ops::Conv same, last;
  same.low = same.high = {1, 1};
  last = same;
  last.lhs_spec = last.out_spec = {0, 3, 1, 2}, last.rhs_spec = {3, 2, 0, 1};
  const auto groups = [](ops::Conv op, std::int64_t n) {
    op.groups = n;
    return op;
  };
  const Shape x = f32({1, 2, 4, 5}), w = f32({3, 2, 3, 3}), y = f32({1, 3, 4, 5}), bias = f32({3, 1, 1});
  const Shape x_last = f32({1, 4, 5, 2}), w_last = f32({3, 3, 2, 3}), y_last = f32({1, 4, 5, 3}), row = f32({3});
  s.add("bias", {x, w, bias}, fused(same, y, {bias}, [](Graph&, auto& in) { return in[0] + in[1]; }));
  s.add("bias, channels last", {x_last, w_last, row},
        fused(last, y_last, {row}, [](Graph&, auto& in) { return in[0] + in[1]; }));
  s.add("bias silu", {x, w, bias}, fused(same, y, {bias}, [](Graph& g, auto& in) { return g.silu(in[0] + in[1]); }));
  s.add("bias residual, channels last", {x_last, w_last, row, y_last},
        fused(last, y_last, {row, y_last}, [](Graph&, auto& in) { return in[0] + in[1] + in[2]; }));
  s.add("scale, depthwise", {x, f32({2, 1, 3, 3})},
        fused(groups(same, 2), x, {}, [](Graph&, auto& in) { return in[0] * 0.5; }));
  s.add("no batch", {f32({0, 2, 4, 5}), w, bias},
        fused(same, f32({0, 3, 4, 5}), {bias}, [](Graph&, auto& in) { return in[0] + in[1]; }));
  s.add("f64, multiply by a scalar operand",
        {Shape({1, 2, 4, 5}, DType::F64), Shape({3, 2, 3, 3}, DType::F64), Shape({}, DType::F64)},
        fused(same, Shape({1, 3, 4, 5}, DType::F64), {Shape({}, DType::F64)},
              [](Graph&, auto& in) { return in[0] * in[1]; }));
  // Large enough for the tiled and row kernels. relu and clip have points without a derivative.
  const Shape wide = f32({2, 24, 9, 19}), wide_last = f32({2, 9, 19, 24}), long_row = f32({24});
  s.add_discrete(
      "tiles, bias residual relu", {wide, f32({24, 24, 3, 3}), f32({24, 1, 1}), wide},
      fused(same, wide, {f32({24, 1, 1}), wide}, [](Graph& g, auto& in) { return g.relu(in[0] + in[1] + in[2]); }));
  s.add_discrete(
      "tiles, bias gelu multiply, channels last", {wide_last, f32({3, 3, 24, 24}), long_row, wide_last},
      fused(last, wide_last, {long_row, wide_last}, [](Graph& g, auto& in) { return g.gelu(in[0] + in[1]) * in[2]; }));
  s.add_discrete("depthwise, bias clipped", {wide, f32({24, 1, 3, 3}), f32({24, 1, 1})},
                 fused(groups(same, 24), wide, {f32({24, 1, 1})},
                       [](Graph& g, auto& in) { return g.min(g.max(in[0] + in[1], 0.0), 6.0); }));
  s.add_discrete(
      "depthwise, bias relu, channels last", {wide_last, f32({3, 3, 1, 24}), long_row},
      fused(groups(last, 24), wide_last, {long_row}, [](Graph& g, auto& in) { return g.relu(in[0] + in[1]); }));
  s.add_discrete("cast", {x, w}, fused(same, y, {}, [](Graph& g, auto& in) { return g.cast(in[0], DType::BF16); }));
}

}  // namespace rlx::testing
