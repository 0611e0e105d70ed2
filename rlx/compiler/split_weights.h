// Weight preparation: what depends on Params and Constants alone is cut out, evaluated once, and packed for its kernel.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/ir/module.h"

namespace rlx {

/// A program in two parts: `run` reads, as its Params, the outputs of `prepare` by index.
struct SplitProgram {
  Graph run;
  Graph prepare;
};

/// Cuts weight-only sub-graphs out of `g`, and gives matrices of weights the form that the kernels of their readers ask
/// for (`Target::form`): made from whatever their elements lie in, so that transposes, slices, joins and widening casts
/// on the way are never computed. A sub-graph is cut out only when its result has at most 1.1 times the bytes of the
/// Params and Constants it reads; otherwise its ops stay in `run`. What reads a mutable Param stays too. Forms of
/// weights may lose what `leave` says. A matrix that the run computes, or is given, gets a form as well (a Relayout in
/// `run`, without loss) when products of a loop read it in every step.
SplitProgram split_weights(const Graph& g, const Target& target, MatmulPrecision allowed_loss = MatmulPrecision::Exact);

/// A stable key of each output of a prepare graph: equal keys hold equal bytes for equal params, so that
/// specialisations and clones share prepared weights. Linear in the graph.
std::vector<std::string> prepared_keys(const Graph& prepare);

/// Names of Params, sorted; one list for all values that read the same ones.
using ParamNames = std::shared_ptr<const std::vector<std::string>>;
/// The Params that each of `values`, of a prepare graph, is computed from.
std::vector<ParamNames> params_read(const Graph& prepare, std::span<const Value> values);

}  // namespace rlx
