// The reverse-mode pass, for whole graphs and for bodies of ops.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/transforms/walk.h"

namespace rlx::walk {

/// The cotangent of an output: a new Input, or the constant 1.
enum class Seed { Input, One };

/// A graph extended by its derivatives, before pruning.
struct Reverse {
  Prepared forward;                // the extended graph
  std::vector<Value> outputs;      // outputs of the forward graph, as values of the extended graph
  std::vector<std::string> added;  // names of the seed inputs
  std::vector<Value> grads;        // one for each entry of wrt
};

/// Differentiates backward from the outputs marked in `seeded`. Marked outputs that are not float or complex are
/// skipped. Seed inputs are named `d_output` when `single_seed`, else `d_output_<i>`.
Reverse run_reverse(const Graph& forward, const std::vector<Wrt>& wrt, const std::vector<bool>& seeded,
                    bool single_seed, Seed seed, std::string_view who);

}  // namespace rlx::walk
