// Samples of TopK.
#include "rlx/ir/ops/indexing.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::TopK>(SampleSet& s) {
  s.add("best", {Shape({5}, DType::F32)}, ops::TopK{1});
  s.add("rows", {Shape({2, 5}, DType::F32)}, ops::TopK{3});
  s.add("all", {Shape({2, 1, 3}, DType::F64)}, ops::TopK{3});
  s.add_discrete("ties", {SampleInput(Shape({2, 9}, DType::F32), Fill::Small)}, ops::TopK{4});
  s.add_discrete("none", {Shape({2, 3}, DType::F32)}, ops::TopK{0});
  s.add_discrete("half", {Shape({6}, DType::F16)}, ops::TopK{2});
  s.add_discrete("i64", {SampleInput(Shape({6}, DType::I64), Fill::Small)}, ops::TopK{6});
  s.add_discrete("no rows", {Shape({0, 3}, DType::F32)}, ops::TopK{2});
}

}  // namespace rlx::testing
