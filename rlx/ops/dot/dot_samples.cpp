// Samples of DotGeneral and MatMul.
#include "rlx/ir/ops/linalg.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::DotGeneral>(SampleSet& s) {
  auto op = [](std::vector<std::int64_t> lc, std::vector<std::int64_t> rc, std::vector<std::int64_t> lb,
               std::vector<std::int64_t> rb) {
    return ops::DotGeneral{std::move(lc), std::move(rc), std::move(lb), std::move(rb)};
  };
  s.add("matrix", {Shape({3, 4}, DType::F32), Shape({4, 2}, DType::F32)}, op({1}, {0}, {}, {}));
  s.add("both transposed", {Shape({4, 3}, DType::F32), Shape({2, 4}, DType::F32)}, op({0}, {1}, {}, {}));
  s.add("batch in the middle", {Shape({3, 2, 4}, DType::F32), Shape({4, 3, 2}, DType::F32)}, op({2}, {0}, {1}, {2}));
  s.add("two batch axes, crossed", {Shape({2, 3, 2, 2}, DType::F32), Shape({3, 2, 2}, DType::F32)},
        op({3}, {2}, {0, 1}, {1, 0}));
  s.add("two contracting axes, crossed", {Shape({2, 3, 2}, DType::F32), Shape({3, 2, 2}, DType::F32)},
        op({0, 1}, {1, 0}, {}, {}));
  s.add("outer product", {Shape({2}, DType::F32), Shape({3}, DType::F32)}, op({}, {}, {}, {}));
  s.add("inner product", {Shape({4}, DType::F64), Shape({4}, DType::F64)}, op({0}, {0}, {}, {}));
  s.add("elementwise", {Shape({2, 3}, DType::F32), Shape({2, 3}, DType::F32)}, op({}, {}, {0, 1}, {0, 1}));
  s.add("depth 0", {Shape({2, 0}, DType::F32), Shape({0, 3}, DType::F32)}, op({1}, {0}, {}, {}));
  s.add("no rows", {Shape({0, 2}, DType::F32), Shape({2, 3}, DType::F32)}, op({1}, {0}, {}, {}));
  s.add("extents of 1", {Shape({1, 1}, DType::F32), Shape({1, 1}, DType::F32)}, op({1}, {0}, {}, {}));
  s.add("bf16", {Shape({2, 3}, DType::BF16), Shape({3, 2}, DType::BF16)}, op({1}, {0}, {}, {}));
  s.add("f16", {Shape({2, 3}, DType::F16), Shape({3, 2}, DType::F16)}, op({1}, {0}, {}, {}));
  const auto into = [](DType t) { return ops::DotGeneral{{1}, {0}, {}, {}, t}; };
  const auto bytes = [](Dims dims, DType t) {
    return SampleInput(Shape(std::move(dims), t), Fill::Index, t == DType::I8 ? 128 : 256);
  };
  s.add("bf16 to f32", {Shape({2, 3}, DType::BF16), Shape({3, 2}, DType::BF16)}, into(DType::F32));
  s.add("f16 to f32", {Shape({2, 3}, DType::F16), Shape({3, 2}, DType::F16)}, into(DType::F32));
  s.add("f32 to f32", {Shape({2, 3}, DType::F32), Shape({3, 2}, DType::F32)}, into(DType::F32));
  s.add_discrete("f8 to f32", {Shape({2, 3}, DType::F8E4M3), Shape({3, 2}, DType::F8E5M2)}, into(DType::F32));
  s.add_discrete("i8 to i32", {bytes({2, 3}, DType::I8), bytes({3, 2}, DType::I8)}, into(DType::I32));
  s.add_discrete("u8 and i8 to i32, batched", {bytes({2, 2, 3}, DType::U8), bytes({2, 4, 3}, DType::I8)},
                 ops::DotGeneral{{2}, {2}, {0}, {0}, DType::I32});
  s.add_discrete("c64", {Shape({2, 3}, DType::C64), Shape({3, 2}, DType::C64)}, op({1}, {0}, {}, {}));
  s.add_discrete(
      "i32", {SampleInput(Shape({2, 3}, DType::I32), Fill::Small), SampleInput(Shape({3, 2}, DType::I32), Fill::Small)},
      op({1}, {0}, {}, {}));
  s.add_discrete("u8",
                 {SampleInput(Shape({2, 3}, DType::U8), Fill::Index, 256),
                  SampleInput(Shape({3, 2}, DType::U8), Fill::Index, 256)},
                 op({1}, {0}, {}, {}));
}

template <>
void samples<ops::MatMul>(SampleSet& s) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  s.add("matrix", {f32({3, 4}), f32({4, 2})}, ops::MatMul{});
  s.add("shared right", {f32({2, 3, 4}), f32({4, 2})}, ops::MatMul{});
  s.add("shared left", {f32({3, 4}), f32({2, 4, 2})}, ops::MatMul{});
  s.add("batches", {f32({2, 2, 3}), f32({2, 3, 2})}, ops::MatMul{});
  s.add("broadcast left", {f32({1, 2, 3}), f32({2, 3, 2})}, ops::MatMul{});
  s.add("broadcast both", {f32({2, 1, 2, 3}), f32({3, 3, 2})}, ops::MatMul{});
  s.add("ones right", {f32({2, 2, 3}), f32({1, 3, 2})}, ops::MatMul{});
  s.add("no batches", {f32({0, 2, 3}), f32({3, 2})}, ops::MatMul{});
  s.add("depth 0", {f32({2, 0}), f32({0, 2})}, ops::MatMul{});
  s.add("row by column", {f32({1, 3}), f32({3, 1})}, ops::MatMul{});
  s.add("f64", {Shape({2, 3}, DType::F64), Shape({3, 2}, DType::F64)}, ops::MatMul{});
  s.add("bf16", {Shape({2, 3}, DType::BF16), Shape({3, 2}, DType::BF16)}, ops::MatMul{});
  s.add_discrete("c128", {Shape({2, 2}, DType::C128), Shape({2, 2}, DType::C128)}, ops::MatMul{});
  s.add_discrete(
      "i64",
      {SampleInput(Shape({2, 3}, DType::I64), Fill::Small), SampleInput(Shape({2, 3, 2}, DType::I64), Fill::Small)},
      ops::MatMul{});
}

}  // namespace rlx::testing
