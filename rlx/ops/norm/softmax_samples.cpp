// Samples of Softmax and LogSoftmax.
#include "rlx/ir/ops/reduce.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {
namespace {

template <class Op>
void softmax_samples(SampleSet& s) {
  s.add("last", {Shape({2, 3, 4}, DType::F32)}, Op{2});
  s.add("middle", {Shape({2, 3, 2}, DType::F32)}, Op{1});
  s.add("first", {Shape({3, 2}, DType::F64)}, Op{0});
  s.add("of one", {Shape({2, 1}, DType::F32)}, Op{1});
  s.add("vector", {Shape({5}, DType::F32)}, Op{0});
  s.add("bf16", {Shape({2, 4}, DType::BF16)}, Op{1});
  s.add("f16", {Shape({2, 4}, DType::F16)}, Op{1});
  s.add_discrete("no rows", {Shape({0, 3}, DType::F32)}, Op{1});
  s.add_discrete("empty rows", {Shape({2, 0}, DType::F32)}, Op{1});
}

}  // namespace

template <>
void samples<ops::Softmax>(SampleSet& s) {
  softmax_samples<ops::Softmax>(s);
}

template <>
void samples<ops::LogSoftmax>(SampleSet& s) {
  softmax_samples<ops::LogSoftmax>(s);
}

}  // namespace rlx::testing
