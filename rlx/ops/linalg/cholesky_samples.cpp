// Samples of Cholesky.
#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/factor_samples.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Cholesky>(SampleSet& s) {
  s.add("one", {dominant(Shape({1, 1}, DType::F64))}, ops::Cholesky{});
  s.add("f32", {dominant(Shape({5, 5}, DType::F32))}, ops::Cholesky{});
  s.add("batch", {dominant(Shape({2, 3, 4, 4}, DType::F64))}, ops::Cholesky{});
  s.add("complex", {dominant(Shape({2, 3, 3}, DType::C64))}, ops::Cholesky{});
  s.add("c128", {dominant(Shape({4, 4}, DType::C128))}, ops::Cholesky{});
  s.add_discrete("nothing", {Shape({2, 0, 0}, DType::F32)}, ops::Cholesky{});
  s.add_discrete("no matrices", {Shape({0, 3, 3}, DType::F32)}, ops::Cholesky{});
}

}  // namespace rlx::testing
