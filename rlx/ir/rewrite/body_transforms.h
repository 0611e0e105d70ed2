// Transforms of closed bodies, for the rules of the ops that hold them: dependence, derivatives, batching.
//
// They are declared here and defined in transforms/body.cpp, next to the walkers, because rules of ops may not include
// transforms. Inputs and outputs of bodies are given by position. The errors are those of the walkers.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// One flag for each input, or for each output.
using Mask = std::vector<bool>;

/// Which outputs of `body` depend on the marked inputs; with `inexact_only`, through floating and complex values only.
Mask body_depends(const Graph& body, const Mask& inputs, bool inexact_only);

/// Forward mode. Inputs: those of `body`, then tangents of the `moving` ones. Outputs: those of `body`, then tangents
/// of the `wanted` ones (zeros without dependence).
Graph body_jvp(const Graph& body, const Mask& moving, const Mask& wanted);

/// The body with a leading batch axis on the inputs of `batched` and on the outputs of `lifted`. Another output that
/// depends on a batched input is an error.
Graph body_vmap(const Graph& body, const Mask& batched, const Dim& batch, const Mask& lifted);

/// The request for reverse mode of a body.
struct BodyReverseRequest {
  Mask wanted;  // inputs whose cotangents are requested
  Mask seeded;  // outputs that have a cotangent
  CallSave save = CallSave::All;
  Mask kept_inputs;   // inputs that the backward body may take directly, at no cost
  Mask kept_outputs;  // outputs that it may take directly
  Mask invariant;     // loop-invariant inputs: values that depend on them alone are not stored
};
/// Reverse mode of a body as a forward and a backward body.
struct BodyReverse {
  Graph forward;  // inputs: those of the body; outputs: those of the body, then new residuals
  Graph
      backward;  // inputs: `inputs`, `residuals`, cotangents of the seeded outputs; outputs: those of the wanted inputs
  std::vector<std::uint32_t> inputs;     // inputs of the body that `backward` takes
  std::vector<std::uint32_t> residuals;  // outputs of `forward` that it takes
};
BodyReverse body_vjp(const Graph& body, const BodyReverseRequest& request);

}  // namespace rlx
