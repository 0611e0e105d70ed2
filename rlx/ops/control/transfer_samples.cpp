// Samples of Transfer.
#include "rlx/ir/ops/lir.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Transfer>(SampleSet& s) {
  s.add_discrete("to the second device", {Shape({3, 4}, DType::F32)}, ops::Transfer{1});
}

}  // namespace rlx::testing
