// Weight preparation: the parts of a graph that depend on Params and Constants alone move to a prepare graph, which
// runs once and packs weights for their kernels.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/ir/module.h"

namespace rlx {

/// A program in two parts. The Params of `run` are the outputs of `prepare`, by index.
struct SplitProgram {
  Graph run;
  Graph prepare;
};

/// Moves sub-graphs of weights alone out of `g`, and gives weight matrices the packed layout that the kernels of their
/// readers ask for (`Target::packed_layout`). It is made directly from the source elements, so transposes, slices,
/// concats and widening casts on the way are never computed. A sub-graph is moved only when its result has at
/// most 1.1 times the bytes of the Params and Constants that it reads; otherwise its ops stay in `run`. Readers of a
/// mutable Param stay too. Packed layouts of weights may lose the precision that `allowed_loss` permits. A matrix that
/// the run computes or gets as an input is packed as well (by a Relayout in `run`, without loss) when matmuls of a loop
/// read it in every step.
SplitProgram split_weights(const Graph& g, const Target& target, MatmulPrecision allowed_loss = MatmulPrecision::Exact);

/// A stable key of each output of a prepare graph. Equal keys hold equal bytes for equal params, so specialisations and
/// clones share prepared weights. Linear in the size of the graph.
std::vector<std::string> prepared_keys(const Graph& prepare);

/// Names of Params, sorted. Values that read the same Params share one list.
using ParamNames = std::shared_ptr<const std::vector<std::string>>;
/// The Params from which each of `values`, values of a prepare graph, is computed.
std::vector<ParamNames> params_read(const Graph& prepare, std::span<const Value> values);

}  // namespace rlx
