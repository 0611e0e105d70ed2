// Op structs of losses.
#pragma once

#include <cstdint>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

namespace ops {

/// The cross entropy of softmax over the last axis of logits [.., C]. With class labels I32 or I64 [..] it is
/// -log_softmax(logits)[label]. With a distribution labels [.., C] in the dtype of the logits it is -sum_c labels[c]
/// log_softmax(logits)[c], where a label of 0 adds 0. A class outside [0, C) gives NaN. Results: loss [..];
/// logsumexp(logits) [..], F32 or wider, 0 for a row of -infinity. The derivative is (softmax - onehot) d. Inputs:
/// logits, labels. Composite.
struct SoftmaxCrossEntropy { RLX_OP(SoftmaxCrossEntropy); };
/// The connectionist temporal classification loss (Graves et al., "Connectionist temporal classification", ICML 2006):
/// -log of the probability of a target, summed over its alignments with repetitions and blanks. It is the forward
/// recursion in log space. Batch element n has input_lengths[n] steps of log_probs [T, N, C] and target_lengths[n]
/// classes of targets [N, S]. A target without an alignment has loss infinity and derivative 0. Lengths below 0 or
/// beyond T and S, and targets that are the blank or no class, give NaN. Inputs: log_probs (float), targets,
/// input_lengths [N], target_lengths [N] (I32 or I64). Result: [N]. Composite.
struct CtcLoss { RLX_OP(CtcLoss); std::int64_t blank = 0; };

}  // namespace ops
}  // namespace rlx
// clang-format on
