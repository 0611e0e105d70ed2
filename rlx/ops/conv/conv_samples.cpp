// Samples of Conv.
#include "rlx/ir/ops/conv.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Conv>(SampleSet& s) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  const auto square = [](std::int64_t stride, std::int64_t pad) {
    ops::Conv op;
    op.strides = {stride, stride}, op.low = op.high = {pad, pad};
    return op;
  };
  const auto with = [](ops::Conv op, auto change) {
    change(op);
    return op;
  };
  s.add("valid", {f32({2, 3, 5, 4}), f32({4, 3, 3, 2})}, ops::Conv{});
  s.add("same", {f32({1, 2, 5, 6}), f32({3, 2, 3, 3})}, square(1, 1));
  s.add("strided", {f32({1, 3, 8, 7}), f32({2, 3, 3, 3})}, square(2, 1));
  s.add("1x1", {f32({2, 3, 3, 2}), f32({4, 3, 1, 1})}, ops::Conv{});
  s.add("1x1 strided", {f32({1, 3, 5, 4}), f32({2, 3, 1, 1})}, square(2, 0));
  s.add("line", {f32({2, 3, 9}), f32({4, 3, 3})}, with(ops::Conv{}, [](auto& op) { op.rhs_dilation = {2}; }));
  s.add("volume", {f32({1, 2, 3, 4, 3}), f32({2, 2, 2, 3, 2})}, with(ops::Conv{}, [](auto& op) {
          op.low = {1, 0, 0}, op.high = {0, 1, 0};
        }));
  s.add("four axes of space", {f32({1, 2, 3, 4, 5, 6}), f32({7, 2, 1, 3, 1, 4})}, ops::Conv{});
  s.add("channels last", {f32({2, 5, 5, 3}), f32({3, 3, 3, 4})}, with(square(2, 1), [](auto& op) {
          op.lhs_spec = op.out_spec = {0, 3, 1, 2}, op.rhs_spec = {3, 2, 0, 1};
        }));
  s.add("any layout", {f32({4, 2, 3, 5}), f32({2, 3, 3, 4})}, with(ops::Conv{}, [](auto& op) {
          op.lhs_spec = {1, 2, 3, 0}, op.rhs_spec = {3, 1, 2, 0}, op.out_spec = {2, 3, 0, 1};
        }));
  s.add("transposed", {f32({1, 2, 3, 3}), f32({3, 2, 3, 3})}, with(square(1, 1), [](auto& op) {
          op.lhs_dilation = {2, 2}, op.high = {2, 2};
        }));
  s.add("dilated both ways", {f32({1, 2, 4, 5}), f32({2, 2, 2, 3})}, with(square(2, 2), [](auto& op) {
          op.lhs_dilation = {3, 2}, op.rhs_dilation = {2, 3};
        }));
  s.add("cropped", {f32({1, 2, 6, 5}), f32({2, 2, 2, 2})}, with(ops::Conv{}, [](auto& op) {
          op.low = {-1, -2}, op.high = {-2, 1};
        }));
  s.add("groups", {f32({1, 4, 4, 4}), f32({6, 2, 3, 3})}, with(square(1, 1), [](auto& op) { op.groups = 2; }));
  s.add("depthwise", {f32({2, 3, 5, 5}), f32({3, 1, 3, 3})}, with(square(1, 1), [](auto& op) { op.groups = 3; }));
  s.add("depthwise, two each", {f32({1, 5, 6, 3}), f32({3, 3, 1, 6})}, with(square(2, 1), [](auto& op) {
          op.groups = 3, op.lhs_spec = op.out_spec = {0, 3, 1, 2}, op.rhs_spec = {3, 2, 0, 1};
        }));
  s.add("batch groups", {f32({4, 3, 4, 3}), f32({6, 3, 2, 2})},
        with(ops::Conv{}, [](auto& op) { op.batch_groups = 2; }));
  s.add("batch groups, strided", {f32({3, 2, 5}), f32({3, 2, 3})},
        with(ops::Conv{}, [](auto& op) { op.batch_groups = 3, op.strides = {2}, op.low = {1}; }));
  s.add("window larger than x", {f32({1, 2, 2}), f32({2, 2, 4})}, ops::Conv{});
  s.add("no batch", {f32({0, 2, 4}), f32({3, 2, 2})}, ops::Conv{});
  s.add("no features", {f32({1, 0, 4}), f32({3, 0, 2})}, ops::Conv{});
  s.add("no filters", {f32({1, 2, 4}), f32({0, 2, 2})}, ops::Conv{});
  s.add("padding alone", {f32({1, 2, 0}), f32({2, 2, 2})}, with(ops::Conv{}, [](auto& op) { op.low = op.high = {2}; }));
  s.add("f64", {Shape({1, 2, 4, 4}, DType::F64), Shape({2, 2, 3, 3}, DType::F64)}, square(1, 1));
  s.add("bf16", {Shape({1, 2, 4}, DType::BF16), Shape({2, 2, 3}, DType::BF16)}, ops::Conv{});
  s.add("f16", {Shape({1, 2, 4}, DType::F16), Shape({2, 2, 3}, DType::F16)}, ops::Conv{});
  s.add("bf16 to f32", {Shape({1, 2, 4}, DType::BF16), Shape({2, 2, 3}, DType::BF16)},
        with(ops::Conv{}, [](auto& op) { op.out = DType::F32; }));
  const auto bytes = [](Dims dims, DType t) {
    return SampleInput(Shape(std::move(dims), t), Fill::Index, t == DType::I8 ? 128 : 256);
  };
  s.add_discrete("u8 and i8 to i32", {bytes({1, 2, 4, 3}, DType::U8), bytes({3, 2, 2, 2}, DType::I8)},
                 with(square(1, 1), [](auto& op) { op.out = DType::I32; }));
  s.add_discrete("f8 to f32", {Shape({1, 2, 4}, DType::F8E4M3), Shape({2, 2, 3}, DType::F8E5M2)},
                 with(ops::Conv{}, [](auto& op) { op.out = DType::F32; }));
  s.add_discrete("c64", {Shape({1, 2, 4}, DType::C64), Shape({2, 2, 3}, DType::C64)}, ops::Conv{});
  s.add_discrete(
      "i32",
      {SampleInput(Shape({1, 4, 4}, DType::I32), Fill::Small), SampleInput(Shape({2, 2, 3}, DType::I32), Fill::Small)},
      with(ops::Conv{}, [](auto& op) { op.groups = 2; }));
  // Large enough for the tiles of kernels.
  const auto last = [&](ops::Conv op) {
    return with(op, [](auto& o) { o.lhs_spec = o.out_spec = {0, 3, 1, 2}, o.rhs_spec = {3, 2, 0, 1}; });
  };
  s.add_discrete("tiles", {f32({2, 24, 11, 13}), f32({67, 24, 3, 3})}, square(1, 1));
  s.add_discrete("tiles, channels last", {f32({2, 11, 13, 24}), f32({3, 3, 24, 67})}, last(square(1, 1)));
  s.add_discrete("tiles, channels last, strided", {f32({1, 14, 15, 16}), f32({3, 3, 16, 48})}, last(square(2, 1)));
  s.add_discrete("tiles, transposed, channels last", {f32({1, 7, 6, 16}), f32({4, 4, 16, 33})},
                 with(last(square(1, 2)), [](auto& op) {
                   op.lhs_dilation = {2, 2};
                 }));
  s.add_discrete("few features", {f32({1, 3, 23, 21}), f32({35, 3, 7, 7})}, square(2, 3));
  s.add_discrete("few features, channels last", {f32({1, 23, 21, 3}), f32({7, 7, 3, 35})}, last(square(2, 3)));
  s.add_discrete("wide depthwise", {f32({2, 5, 14, 37}), f32({5, 1, 3, 3})},
                 with(square(1, 1), [](auto& op) { op.groups = 5; }));
  s.add_discrete("wide depthwise, channels last", {f32({2, 9, 10, 35}), f32({3, 3, 1, 35})},
                 with(last(square(2, 1)), [](auto& op) { op.groups = 35; }));
  s.add_discrete("wide groups", {f32({1, 32, 9, 10}), f32({48, 8, 3, 3})},
                 with(square(1, 1), [](auto& op) { op.groups = 4; }));
  s.add_discrete("long sums", {f32({3, 6, 40, 40}), f32({20, 6, 38, 38})}, ops::Conv{});
}

}  // namespace rlx::testing
