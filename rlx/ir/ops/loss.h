// Op structs of losses.
#pragma once

#include <cstdint>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

namespace ops {

/// Cross entropy of the softmax over the last axis of logits [.., C]: -log_softmax(logits)[label] of labels I32 or I64
/// [..], or -sum_c labels[c] log_softmax(logits)[c] of labels [.., C] in the dtype of the logits, where a label of 0
/// adds 0. A label outside [0, C) gives NaN. Results: loss [..]; logsumexp(logits) [..], F32 or wider, 0 for a row of
/// -infinity. The derivative is (softmax - onehot) d. Inputs: logits, labels. Composite.
struct SoftmaxCrossEntropy { RLX_OP(SoftmaxCrossEntropy); };
/// -log of the probability that log_probs [T, N, C] give the target, summed over all ways to spell it with repetitions
/// and blanks (Graves et al., "Connectionist temporal classification", ICML 2006): the forward recursion in logarithms.
/// Of batch element n the first input_lengths[n] steps count and the first target_lengths[n] of its targets [N, S].
/// A target that has no such way has loss infinity and derivative 0; lengths beyond T and S (or below 0) and targets
/// that are no class or the blank give NaN. Inputs: log_probs (float), targets, input_lengths [N], target_lengths [N]
/// (I32 or I64). Result: [N]. Composite.
struct CtcLoss { RLX_OP(CtcLoss); std::int64_t blank = 0; };

}  // namespace ops
}  // namespace rlx
// clang-format on
