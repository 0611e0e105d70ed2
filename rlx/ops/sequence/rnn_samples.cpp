// Samples of Rnn.
#include "rlx/ir/ops/sequence.h"
#include "rlx/ops/recurrent_samples.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Rnn>(SampleSet& set) {
  recurrent_samples<ops::Rnn>(set, 1, 1);
  ops::Rnn op;
  op.activations = {ActivationKind::Relu};
  add_recurrent_sample(set, 1, op, {.name = "relu", .present = kHasW | kHasBias, .discrete = true});
}

}  // namespace rlx::testing
