// Samples of Reduce and ArgReduce.
#include "rlx/ir/ops/reduce.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Reduce>(SampleSet& s) {
  for (int i = 0; i < static_cast<int>(std::size(EnumNames<ReduceKind>::values)); ++i) {
    const auto fn = static_cast<ReduceKind>(i);
    const std::string name(enum_name(fn));
    s.add(name + " last", {Shape({2, 3}, DType::F32)}, ops::Reduce{fn, {1}, false});
    s.add(name + " first, kept", {Shape({2, 3}, DType::F64)}, ops::Reduce{fn, {0}, true});
    s.add(name + " outer two", {Shape({2, 3, 2}, DType::F32)}, ops::Reduce{fn, {0, 2}, false});
    s.add(name + " all", {Shape({2, 3}, DType::F32)}, ops::Reduce{fn, {0, 1}, false});
    s.add(name + " all, kept", {Shape({2, 2, 1}, DType::F32)}, ops::Reduce{fn, {0, 1, 2}, true});
    s.add(name + " of one", {Shape({2, 1}, DType::F32)}, ops::Reduce{fn, {1}, false});
    s.add(name + " no axes", {Shape({2}, DType::F32)}, ops::Reduce{fn, {}, false});
    s.add(name + " half", {Shape({4}, DType::F16)}, ops::Reduce{fn, {0}, false});
    s.add_discrete(name + " of nothing", {Shape({2, 0}, DType::F32)}, ops::Reduce{fn, {1}, false});
    s.add_discrete(name + " to nothing", {Shape({0, 2}, DType::F32)}, ops::Reduce{fn, {1}, true});
    if (fn != ReduceKind::Mean) {
      s.add_discrete(name + " i32", {SampleInput(Shape({2, 3}, DType::I32), Fill::Small)}, ops::Reduce{fn, {0}, false});
      s.add_discrete(name + " u8", {SampleInput(Shape({4}, DType::U8), Fill::Index, 200)}, ops::Reduce{fn, {0}, true});
    }
    if (fn == ReduceKind::Max || fn == ReduceKind::Min)
      s.add_discrete(name + " bool", {SampleInput(Shape({2, 3}, DType::Bool), Fill::Boolean)},
                     ops::Reduce{fn, {1}, false});
    else
      s.add(name + " complex", {Shape({2, 3}, DType::C128)}, ops::Reduce{fn, {1}, false});
  }
}

template <>
void samples<ops::ArgReduce>(SampleSet& s) {
  for (ArgReduceKind fn : {ArgReduceKind::Max, ArgReduceKind::Min}) {
    const std::string name(enum_name(fn));
    s.add_discrete(name + " last", {Shape({2, 4}, DType::F32)}, ops::ArgReduce{fn, 1, false});
    s.add_discrete(name + " first, kept", {Shape({3, 2}, DType::F64)}, ops::ArgReduce{fn, 0, true});
    s.add_discrete(name + " middle", {Shape({2, 3, 2}, DType::BF16)}, ops::ArgReduce{fn, 1, false});
    s.add_discrete(name + " ties", {SampleInput(Shape({2, 9}, DType::F32), Fill::Small)}, ops::ArgReduce{fn, 1, true});
    s.add_discrete(name + " i64", {SampleInput(Shape({5}, DType::I64), Fill::Small)}, ops::ArgReduce{fn, 0, false});
    s.add_discrete(name + " bool", {SampleInput(Shape({4}, DType::Bool), Fill::Boolean)}, ops::ArgReduce{fn, 0, false});
    s.add_discrete(name + " no rows", {Shape({0, 3}, DType::F32)}, ops::ArgReduce{fn, 1, false});
  }
}

}  // namespace rlx::testing
