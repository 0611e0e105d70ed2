// Samples of AllReduce, AllGather, ReduceScatter, AllToAll, Permute and AxisIndex.
#include "rlx/ir/ops/collectives.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::AllReduce>(SampleSet& s) {
  const Shape f({2, 3}, DType::F32);
  s.add("sum of two", {f, Shape({4}, DType::F64)}, ops::AllReduce{ReduceKind::Sum, "data", 1});
  s.add("mean", {f}, ops::AllReduce{ReduceKind::Mean, "data,model", 1});
  s.add("max", {f}, ops::AllReduce{ReduceKind::Max, "data", 1});
  s.add("min", {f}, ops::AllReduce{ReduceKind::Min, "data", 1});
  s.add_discrete("product", {SampleInput(Shape({2, 3}, DType::I32), Fill::Small)},
                 ops::AllReduce{ReduceKind::Prod, "data", 1});
  s.add_discrete("integers", {{Shape({5}, DType::I32), Fill::Small}}, ops::AllReduce{ReduceKind::Sum, "data", 1});
}

template <>
void samples<ops::AllGather>(SampleSet& s) {
  s.add("rows", {Shape({2, 3}, DType::F32)}, ops::AllGather{0, "data", 1});
  s.add("columns", {Shape({2, 3}, DType::F64)}, ops::AllGather{1, "data", 1});
  s.add_discrete("half bytes", {{Shape({2, 4}, DType::I4), Fill::Small}}, ops::AllGather{1, "data", 1});
}

template <>
void samples<ops::ReduceScatter>(SampleSet& s) {
  s.add("rows", {Shape({2, 3}, DType::F32)}, ops::ReduceScatter{ReduceKind::Sum, 0, "data", 1});
  s.add("mean of columns", {Shape({2, 3}, DType::F64)}, ops::ReduceScatter{ReduceKind::Mean, 1, "data", 1});
}

template <>
void samples<ops::AllToAll>(SampleSet& s) {
  s.add("rows to columns", {Shape({2, 3}, DType::F32)}, ops::AllToAll{0, 1, "data", 1});
}

template <>
void samples<ops::Permute>(SampleSet& s) {
  s.add("to itself", {Shape({2, 3}, DType::F32)}, ops::Permute{{0, 0}, "data", 1});
  s.add("to nobody", {Shape({2, 3}, DType::F64)}, ops::Permute{{}, "data", 1});
}

template <>
void samples<ops::AxisIndex>(SampleSet& s) {
  s.add_discrete("this rank", {}, ops::AxisIndex{"data", 1});
}

}  // namespace rlx::testing
