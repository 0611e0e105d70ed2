// Shared rules of Scan and While, whose bodies carry values from one iteration to the next.
#pragma once

#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ops/control/control.h"

namespace rlx {

/// The shapes of a loop's results: its carries, which `step` ("a step") keeps, then stacks of `rows` rows of each y.
/// Errors: fewer results of the body than carries, and a carry of another shape.
Result<Shapes> loop_results(const InferContext& c, const Shapes& body_results, std::int64_t invariants,
                            std::size_t carries, const Dim& rows, std::string_view step);

/// The inputs that depend on marked ones, given the mask before the first iteration. A carry is marked when an
/// iteration makes it depend on them.
Mask loop_closure(const Graph& body, const LoopParts& p, Mask moving, bool inexact_only);

/// A loop that carries values and tangents together, for the loop that `c` differentiates.
struct JointLoop {
  Subgraph body;
  std::int64_t invariants = 0, carries = 0;
  Exprs operands;
  Shapes shapes;                    // shapes of the inputs of the body
  std::vector<std::size_t> places;  // positions of the body's inputs without tangents
  Mask wanted;                      // results that have tangents
};
JointLoop joint_loop(const JvpContext& c, const Graph& body, const LoopParts& p);
/// Sets the results and tangents of the loop from the results of the joint loop.
void set_joint_results(JvpContext& c, const LoopParts& p, const JointLoop& joint, const Exprs& results);

/// Reverse mode of a loop: its forward body, for a loop that stacks residuals, and its backward body, for a loop that
/// runs backwards.
struct LoopReverse {
  BodyReverse body;
  Mask wanted;  // inputs of the body whose cotangents the backward loop gives
  Mask seeded;  // outputs of the body whose cotangents it takes
};
std::shared_ptr<const LoopReverse> loop_reverse(const AugmentContext& c, const Graph& body, const LoopParts& p,
                                                CallSave save);

/// Adds the results of the backward loop to the cotangents of the loop's operands: of the wanted carries, the wanted
/// invariants, then the wanted xs.
void accumulate_loop(VjpContext& c, const LoopParts& p, const Mask& wanted, const Exprs& results);

/// The inputs of the body with the batch axis, and its outputs that have it.
Mask batched_inputs(const BatchContext& c, const LoopParts& p, const Graph& body);
Mask batched_outputs(const LoopParts& p, const Graph& body, const Mask& batched);
/// The operands of the batched loop. `batched` marks the inputs of the body with the batch axis.
Exprs batched_operands(const BatchContext& c, const LoopParts& p, const Mask& batched);
void set_batched_results(BatchContext& c, const LoopParts& p, const Mask& lifted, const Exprs& results);

}  // namespace rlx
