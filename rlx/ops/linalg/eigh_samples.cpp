// Samples of Eigh.
#include "rlx/ir/ops/linalg.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Eigh>(SampleSet& s) {
  s.add("f32", {Shape({4, 4}, DType::F32)}, ops::Eigh{});
  s.add("batch", {Shape({2, 2, 3, 3}, DType::F64)}, ops::Eigh{});
  s.add("five", {Shape({5, 5}, DType::F64)}, ops::Eigh{});
  s.add("complex", {Shape({3, 3}, DType::C64)}, ops::Eigh{});
  s.add("c128", {Shape({2, 4, 4}, DType::C128)}, ops::Eigh{});
  s.add("one", {Shape({1, 1}, DType::F32)}, ops::Eigh{});
  s.add_discrete("nothing", {Shape({2, 0, 0}, DType::F32)}, ops::Eigh{});
  s.add_discrete("no matrices", {Shape({0, 3, 3}, DType::C64)}, ops::Eigh{});
}

}  // namespace rlx::testing
