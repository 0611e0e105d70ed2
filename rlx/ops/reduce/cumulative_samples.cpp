// Samples of Cumulative.
#include "rlx/ir/ops/reduce.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Cumulative>(SampleSet& s) {
  for (int i = 0; i < static_cast<int>(std::size(EnumNames<CumulativeKind>::values)); ++i) {
    const auto fn = static_cast<CumulativeKind>(i);
    const std::string name(enum_name(fn));
    // The exclusive maximum starts at -inf, which finite differences cannot handle.
    const bool ordered = fn == CumulativeKind::Max || fn == CumulativeKind::Min;
    s.add(name + " last", {Shape({2, 4}, DType::F32)}, ops::Cumulative{fn, 1, false, false});
    s.add(name + " reverse", {Shape({3, 2}, DType::F64)}, ops::Cumulative{fn, 0, false, true});
    s.add(name + " middle", {Shape({2, 3, 2}, DType::F32)}, ops::Cumulative{fn, 1, false, false});
    s.add(name + " one", {Shape({1}, DType::F32)}, ops::Cumulative{fn, 0, false, false});
    s.add(name + " half", {Shape({4}, DType::BF16)}, ops::Cumulative{fn, 0, false, false});
    if (ordered) {
      s.add_discrete(name + " exclusive", {Shape({4}, DType::F32)}, ops::Cumulative{fn, 0, true, false});
      s.add_discrete(name + " exclusive reverse", {Shape({2, 3}, DType::F32)}, ops::Cumulative{fn, 1, true, true});
      s.add_discrete(name + " bool", {SampleInput(Shape({5}, DType::Bool), Fill::Boolean)},
                     ops::Cumulative{fn, 0, true, false});
    } else {
      s.add(name + " exclusive", {Shape({4}, DType::F32)}, ops::Cumulative{fn, 0, true, false});
      s.add(name + " exclusive reverse", {Shape({2, 3}, DType::F32)}, ops::Cumulative{fn, 1, true, true});
      s.add(name + " complex", {Shape({3}, DType::C128)}, ops::Cumulative{fn, 0, false, false});
    }
    s.add_discrete(name + " empty", {Shape({2, 0}, DType::F32)}, ops::Cumulative{fn, 1, false, false});
    s.add_discrete(name + " i32", {SampleInput(Shape({5}, DType::I32), Fill::Small)},
                   ops::Cumulative{fn, 0, true, false});
  }
}

}  // namespace rlx::testing
