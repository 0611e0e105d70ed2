// Samples of OptimizationBarrier.
#include "rlx/ir/ops/control.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::OptimizationBarrier>(SampleSet& s) {
  s.add("two values", {Shape({2, 3}, DType::F32), {Shape({2}, DType::I32), Fill::Small}}, ops::OptimizationBarrier{});
}

}  // namespace rlx::testing
