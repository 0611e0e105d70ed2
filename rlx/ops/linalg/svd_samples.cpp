// Samples of Svd.
#include "rlx/ir/ops/linalg.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Svd>(SampleSet& s) {
  s.add("square", {Shape({3, 3}, DType::F32)}, ops::Svd{});
  s.add("tall", {Shape({5, 3}, DType::F64)}, ops::Svd{});
  s.add("wide batch", {Shape({2, 3, 4}, DType::F64)}, ops::Svd{});
  s.add("full square", {Shape({4, 4}, DType::F64)}, ops::Svd{true});
  s.add("complex", {Shape({3, 3}, DType::C64)}, ops::Svd{});
  s.add("complex tall", {Shape({4, 2}, DType::C128)}, ops::Svd{});
  s.add("complex wide batch", {Shape({2, 2, 3}, DType::C128)}, ops::Svd{});
  s.add("one", {Shape({1, 1}, DType::F32)}, ops::Svd{});
  s.add_discrete("no columns", {Shape({2, 3, 0}, DType::F32)}, ops::Svd{});
  s.add_discrete("no rows", {Shape({0, 3}, DType::F32)}, ops::Svd{});
}

}  // namespace rlx::testing
