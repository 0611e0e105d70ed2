// Shared helpers of the samples of Rnn, Gru and Lstm.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "rlx/ops/sequence/recurrent_core.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

struct RecurrentSample {
  const char* name;
  std::int64_t steps = 3, batch = 2, in = 2, hidden = 3;
  std::uint32_t present = 0b10;  // from bit 1 on: w, bias, lengths, h0, [c0, peepholes]; bit 2 is that of r
  DType dtype = DType::F32;
  bool discrete = false;
};
/// The operands of a sample of an op with `gates` gates.
std::vector<SampleInput> recurrent_operands(const RecurrentSample& s, std::int64_t gates, std::int64_t directions,
                                            bool batch_first, bool keeps_bias);

template <class Op>
void add_recurrent_sample(SampleSet& set, std::int64_t gates, Op op, const RecurrentSample& s) {
  op.present.bits = s.present;
  const RecurrentSpec spec = recurrent_spec(op);
  auto operands = recurrent_operands(s, gates, spec.directions(), op.batch_first, spec.keeps_bias);
  if (s.discrete)
    set.add_discrete(s.name, std::move(operands), op);
  else
    set.add(s.name, std::move(operands), op);
}
inline constexpr std::uint32_t kHasW = 1U << 1, kHasBias = 1U << 3, kHasLengths = 1U << 4, kHasH0 = 1U << 5,
                               kHasC0 = 1U << 6, kHasPeepholes = 1U << 7;

/// Adds the common samples to an op whose own attributes are set; `states` is 1 or 2.
template <class Op>
void recurrent_samples(SampleSet& set, std::int64_t gates, int states) {
  const std::uint32_t first = states == 2 ? kHasH0 | kHasC0 : kHasH0;
  Op op;
  const auto add = [&](const RecurrentSample& s) { add_recurrent_sample(set, gates, op, s); };
  add({.name = "forward", .present = kHasW});
  add({.name = "bias, lengths and states",
       .steps = 4,
       .batch = 3,
       .present = kHasW | kHasBias | kHasLengths | first,
       .dtype = DType::F64});
  add({.name = "projected", .present = first});
  add({.name = "no steps", .steps = 0, .present = kHasW | kHasBias | first});
  add({.name = "no sequences", .batch = 0, .present = kHasW | kHasBias});
  add({.name = "one of everything", .steps = 1, .batch = 1, .in = 1, .hidden = 1, .present = kHasW | kHasBias});
  add({.name = "no columns", .in = 0, .present = kHasW | kHasBias});
  add({.name = "wider",
       .steps = 5,
       .batch = 7,
       .in = 9,
       .hidden = 37,
       .present = kHasW | kHasBias | kHasLengths,
       .discrete = true});
  op.direction = RecurrentDirection::Reverse;
  add({.name = "reverse", .steps = 4, .present = kHasW | kHasBias | kHasLengths});
  op.direction = RecurrentDirection::Bidirectional;
  add({.name = "both directions", .present = kHasW | kHasBias | first, .dtype = DType::F64});
  add({.name = "both directions, projected", .present = kHasLengths});
  op.batch_first = true;
  add({.name = "batch first, both directions", .present = kHasW | kHasLengths | first});
  op.direction = RecurrentDirection::Forward;
  add({.name = "batch first", .hidden = 20, .present = kHasW | kHasBias, .discrete = true});
  add({.name = "batch first, bf16", .present = kHasW | kHasBias | first, .dtype = DType::BF16, .discrete = true});
  op.batch_first = false;
  add({.name = "f16", .present = kHasW | kHasBias, .dtype = DType::F16, .discrete = true});
  op.clip = 0.4;
  add({.name = "clip", .present = kHasW | kHasBias, .discrete = true});
}

}  // namespace rlx::testing
