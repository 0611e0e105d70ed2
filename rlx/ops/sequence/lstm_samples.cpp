// Samples of Lstm.
#include "rlx/ir/ops/sequence.h"
#include "rlx/ops/recurrent_samples.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Lstm>(SampleSet& set) {
  recurrent_samples<ops::Lstm>(set, 4, 2);
  ops::Lstm op;
  const std::uint32_t all = kHasW | kHasBias | kHasLengths | kHasH0 | kHasC0 | kHasPeepholes;
  add_recurrent_sample(set, 4, op, {.name = "peepholes", .present = all, .dtype = DType::F64});
  op.input_forget = true;
  add_recurrent_sample(set, 4, op, {.name = "coupled gates", .present = kHasW | kHasBias});
  op.direction = RecurrentDirection::Bidirectional;
  op.activations = {ActivationKind::HardSigmoid, ActivationKind::Softsign, ActivationKind::Tanh,
                    ActivationKind::Sigmoid,     ActivationKind::Elu,      ActivationKind::Softsign};
  op.alpha = {0.3, 0, 0, 0, 0.5, 0}, op.beta = {0.45, 0, 0, 0, 0, 0};
  add_recurrent_sample(set, 4, op, {.name = "functions of each direction", .present = all, .discrete = true});
}

}  // namespace rlx::testing
