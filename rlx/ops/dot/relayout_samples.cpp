// Samples of Relayout.
#include "rlx/ir/ops/lir.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Relayout>(SampleSet& s) {
  const PackedLayout layout{"panels", {16}, 192};
  s.add_discrete("one source", {Shape({3, 4}, DType::F32)},
                 ops::Relayout{layout, 3, 4, false, DType::F32, {4, 0, 4, 1}});
  s.add_discrete("two sources, one [N, K] in bf16", {Shape({3, 4}, DType::F32), Shape({2, 3}, DType::BF16)},
                 ops::Relayout{layout, 3, 6, false, DType::F32, {4, 0, 4, 1, 2, 0, 1, 3}});
  s.add_discrete("columns of a source, as [N, K]", {Shape({3, 8}, DType::F32)},
                 ops::Relayout{layout, 3, 2, true, DType::F32, {2, 5, 8, 1}});
  s.add_discrete("two matrices of a stack, the second of two sources",
                 {Shape({2, 3, 4}, DType::F32), Shape({2, 3, 2}, DType::F32), Shape({3, 2}, DType::F32)},
                 ops::Relayout{stacked(layout, 2), 3, 4, false, DType::F32, {4, 12, 4, 1, 2, 0, 2, 1, 2, 0, 2, 1}});
  s.add_discrete("rows of blocks, and some of another's", {Shape({3, 36}, DType::U8), Shape({4, 36}, DType::U8)},
                 ops::Relayout{layout, 64, 5, true, DType::F32, {3, 0, 1, 64, 2, 128, 1, 64}, QuantScheme::Q4_0});
}

}  // namespace rlx::testing
