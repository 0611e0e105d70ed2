// Samples of FusedDot.
#include "rlx/ir/ops/fused.h"
#include "rlx/ops/body_samples.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::FusedDot>(SampleSet& s) {
  const auto body = [](const Shape& acc, const std::vector<Shape>& operands, auto&& build) {
    return sample_epilogue(acc, operands, build);
  };
  const Shape x({3, 4}, DType::F32), w({4, 2}, DType::F32), out({3, 2}, DType::F32), bias({2}, DType::F32),
      one({}, DType::F32);
  s.add("bias", {x, w, bias},
        ops::FusedDot{{1}, {0}, {}, {}, body(out, {bias}, [](Graph&, auto& in) { return in[0] + in[1]; })});
  s.add("bias gelu", {x, w, bias},
        ops::FusedDot{{1}, {0}, {}, {}, body(out, {bias}, [](Graph& g, auto& in) { return g.gelu(in[0] + in[1]); })});
  s.add(
      "bias residual", {x, w, bias, out},
      ops::FusedDot{{1}, {0}, {}, {}, body(out, {bias, out}, [](Graph&, auto& in) { return in[0] + in[1] + in[2]; })});
  s.add("scale", {x, w}, ops::FusedDot{{1}, {0}, {}, {}, body(out, {}, [](Graph&, auto& in) { return in[0] * 0.5; })});
  s.add("multiply by a scalar operand", {x, w, one},
        ops::FusedDot{{1}, {0}, {}, {}, body(out, {one}, [](Graph&, auto& in) { return in[0] * in[1]; })});
  s.add("transposed weight, silu", {x, Shape({2, 4}, DType::F32)},
        ops::FusedDot{{1}, {1}, {}, {}, body(out, {}, [](Graph& g, auto& in) { return g.silu(in[0]); })});
  s.add("batched", {Shape({2, 2, 3}, DType::F32), Shape({2, 3, 2}, DType::F32), Shape({2, 1, 2}, DType::F32)},
        ops::FusedDot{{2},
                      {1},
                      {0},
                      {0},
                      body(Shape({2, 2, 2}, DType::F32), {Shape({2, 1, 2}, DType::F32)},
                           [](Graph& g, auto& in) { return g.tanh(in[0] + in[1]); })});
  s.add("no rows", {Shape({0, 4}, DType::F32), w, bias},
        ops::FusedDot{
            {1}, {0}, {}, {}, body(Shape({0, 2}, DType::F32), {bias}, [](Graph&, auto& in) { return in[0] + in[1]; })});
  s.add("bf16 to f32, bias", {Shape({3, 4}, DType::BF16), Shape({4, 2}, DType::BF16), bias},
        ops::FusedDot{{1}, {0}, {}, {}, body(out, {bias}, [](Graph&, auto& in) { return in[0] + in[1]; }), DType::F32});
  s.add_discrete("i8 to i32, scaled",
                 {SampleInput(Shape({3, 4}, DType::I8), Fill::Small),
                  SampleInput(Shape({4, 2}, DType::U8), Fill::Index, 256), bias},
                 ops::FusedDot{{1},
                               {0},
                               {},
                               {},
                               body(Shape({3, 2}, DType::I32), {bias},
                                    [](Graph& g, auto& in) { return g.cast(in[0], DType::F32) * in[1]; }),
                               DType::I32});
  s.add_discrete(
      "cast", {x, w},
      ops::FusedDot{{1}, {0}, {}, {}, body(out, {}, [](Graph& g, auto& in) { return g.cast(in[0], DType::BF16); })});
}

}  // namespace rlx::testing
