// Samples of FusedSwiGLU and SwiGLU.
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::FusedSwiGLU>(SampleSet& s) {
  s.add("up first", {Shape({2, 6}, DType::F32)}, ops::FusedSwiGLU{});
  s.add("gate first", {Shape({2, 6}, DType::F32)}, ops::FusedSwiGLU{true, {}});
  s.add("gate first, cast", {Shape({2, 6}, DType::F32)}, ops::FusedSwiGLU{true, DType::F64});
  s.add_discrete("cast to bf16", {Shape({3, 8}, DType::F32)}, ops::FusedSwiGLU{false, DType::BF16});
  s.add("rank 3", {Shape({2, 1, 4}, DType::F64)}, ops::FusedSwiGLU{true, {}});
  s.add("vector of two", {Shape({2}, DType::F32)}, ops::FusedSwiGLU{});
  s.add("no rows", {Shape({0, 4}, DType::F32)}, ops::FusedSwiGLU{});
  s.add("no columns", {Shape({2, 0}, DType::F32)}, ops::FusedSwiGLU{});
  s.add_discrete("bf16", {Shape({2, 4}, DType::BF16)}, ops::FusedSwiGLU{});
}

template <>
void samples<ops::SwiGLU>(SampleSet& s) {
  auto f = [](Dims dims, DType t = DType::F32) { return SampleInput(Shape(std::move(dims), t), Fill::Unit); };
  s.add("matrix", {f({2, 3}), f({3, 4}), f({3, 4}), f({4, 3})}, ops::SwiGLU{});
  s.add("rank 3", {f({1, 2, 3}), f({3, 2}), f({3, 2}), f({2, 5})}, ops::SwiGLU{});
  s.add("f64", {f({2, 2}, DType::F64), f({2, 2}, DType::F64), f({2, 2}, DType::F64), f({2, 2}, DType::F64)},
        ops::SwiGLU{});
  s.add("no rows", {f({0, 3}), f({3, 4}), f({3, 4}), f({4, 3})}, ops::SwiGLU{});
}

}  // namespace rlx::testing
