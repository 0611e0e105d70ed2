// Weight preparation: what depends on Params and Constants alone is cut out, evaluated once, and packed for its kernel.
#pragma once

#include <string>

#include "rlx/driver/backend.h"
#include "rlx/ir/module.h"

namespace rlx {

/// A program in two parts: `run` reads, as its Params, the outputs of `prepare` by index.
struct SplitProgram {
  Graph run;
  Graph prepare;
};

/// Cuts weight-only sub-graphs out of `g` and gives claimed dots their packed weight. A sub-graph is cut out only when
/// its result has at most 1.1 times the bytes of the Params and Constants it reads; otherwise its ops stay in `run`.
/// What reads a mutable Param stays too.
SplitProgram split_weights(const Graph& g, const TargetInfo& target);

/// A stable key of output `i` of a prepare graph: equal keys hold equal bytes for equal params, so that specialisations
/// and clones share prepared weights.
std::string prepared_key(const Graph& prepare, std::size_t i);

}  // namespace rlx
