// Samples of Qr.
#include "rlx/ir/ops/linalg.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Qr>(SampleSet& s) {
  s.add("square", {Shape({4, 4}, DType::F32)}, ops::Qr{});
  s.add("tall", {Shape({5, 3}, DType::F64)}, ops::Qr{});
  s.add("wide batch", {Shape({2, 3, 5}, DType::F64)}, ops::Qr{});
  s.add("tall batch", {Shape({2, 4, 2}, DType::F32)}, ops::Qr{});
  s.add("full wide", {Shape({3, 4}, DType::F64)}, ops::Qr{true});
  s.add("complex", {Shape({4, 3}, DType::C64)}, ops::Qr{});
  s.add("complex wide", {Shape({2, 2, 3}, DType::C128)}, ops::Qr{});
  s.add("one", {Shape({1, 1}, DType::F32)}, ops::Qr{});
  s.add_discrete("no columns", {Shape({2, 3, 0}, DType::F32)}, ops::Qr{});
  s.add_discrete("no rows", {Shape({0, 3}, DType::F32)}, ops::Qr{});
}

}  // namespace rlx::testing
