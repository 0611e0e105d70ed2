// Samples of Gru.
#include "rlx/ir/ops/sequence.h"
#include "rlx/ops/recurrent_samples.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Gru>(SampleSet& set) {
  recurrent_samples<ops::Gru>(set, 3, 1);
  ops::Gru op;
  op.linear_before_reset = true;
  add_recurrent_sample(set, 3, op, {.name = "reset behind the product", .present = kHasW});
  add_recurrent_sample(set, 3, op, {.name = "projected, reset behind the product", .present = kHasBias | kHasH0});
  op.direction = RecurrentDirection::Bidirectional;
  add_recurrent_sample(set, 3, op,
                       {.name = "both directions, reset behind the product",
                        .present = kHasW | kHasBias | kHasLengths | kHasH0,
                        .dtype = DType::F64});
  add_recurrent_sample(set, 3, op,
                       {.name = "wider, reset behind the product",
                        .steps = 4,
                        .batch = 5,
                        .in = 6,
                        .hidden = 21,
                        .present = kHasW | kHasBias | kHasLengths,
                        .discrete = true});
  op.activations = {ActivationKind::HardSigmoid, ActivationKind::Relu};
  add_recurrent_sample(set, 3, op, {.name = "other functions", .present = kHasW | kHasBias, .discrete = true});
}

}  // namespace rlx::testing
