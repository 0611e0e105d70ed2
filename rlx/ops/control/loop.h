// What Scan and While share: their bodies carry values from one run to the next.
#pragma once

#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ops/control/control.h"

namespace rlx {

/// The inputs that change, given those that do before the first run: a carry does when a run makes it.
Mask loop_closure(const Graph& body, const LoopParts& p, Mask moving, bool inexact_only);

/// A loop that carries values and tangents in one, for the loop that `c` differentiates.
struct JointLoop {
  Subgraph body;
  std::int64_t invariants = 0, carries = 0;
  Exprs operands;
  Shapes shapes;                    // of the inputs of the body
  std::vector<std::size_t> places;  // of the inputs of the body without tangents among them
  Mask wanted;                      // results that have tangents
};
JointLoop joint_loop(const JvpContext& c, const Graph& body, const LoopParts& p);
/// Says which results of the joint loop are values and tangents of the loop.
void set_joint_results(JvpContext& c, const LoopParts& p, const JointLoop& joint, const Exprs& results);

/// Reverse mode of a loop: its body cut in two, for a loop that stacks residuals and one that runs backwards.
struct LoopReverse {
  BodyReverse body;
  Mask wanted;  // inputs of the body whose cotangents the backward loop gives
  Mask seeded;  // outputs of the body whose cotangents it takes
};
std::shared_ptr<const LoopReverse> loop_reverse(const AugmentContext& c, const Graph& body, const LoopParts& p,
                                                CallSave save);

/// The operands of the batched loop, and its results as those of `c`: `batched` tells the inputs of the body that have
/// the batch axis, `lifted` the outputs.
Exprs batched_operands(const BatchContext& c, const LoopParts& p, const Mask& batched);
void set_batched_results(BatchContext& c, const LoopParts& p, const Mask& lifted, const Exprs& results);

}  // namespace rlx
