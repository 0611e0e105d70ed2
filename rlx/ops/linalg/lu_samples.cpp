// Samples of Lu.
#include "rlx/ir/ops/linalg.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Lu>(SampleSet& s) {
  s.add("square", {Shape({4, 4}, DType::F32)}, ops::Lu{});
  s.add("f64", {Shape({5, 5}, DType::F64)}, ops::Lu{});
  s.add("tall batch", {Shape({2, 5, 3}, DType::F64)}, ops::Lu{});
  s.add("wide batch", {Shape({2, 3, 4}, DType::F32)}, ops::Lu{});
  s.add("complex", {Shape({3, 3}, DType::C64)}, ops::Lu{});
  s.add("c128 tall", {Shape({4, 2}, DType::C128)}, ops::Lu{});
  s.add("one", {Shape({1, 1}, DType::F32)}, ops::Lu{});
  s.add("column", {Shape({4, 1}, DType::F64)}, ops::Lu{});
  s.add_discrete("no columns", {Shape({2, 3, 0}, DType::F32)}, ops::Lu{});
  s.add_discrete("no rows", {Shape({0, 3}, DType::F32)}, ops::Lu{});
}

}  // namespace rlx::testing
