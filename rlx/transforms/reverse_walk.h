// The reverse-mode walk itself, for whole graphs and for bodies of ops.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/transforms/walk.h"

namespace rlx::walk {

/// What the cotangent of an output is: a new Input, or the constant 1.
enum class Seed { Input, One };

/// A graph extended by its derivatives, before it is pruned.
struct Reverse {
  Prepared forward;                // the graph that was extended
  std::vector<Value> outputs;      // of the forward graph, in it
  std::vector<std::string> added;  // names of the seed inputs
  std::vector<Value> grads;        // one for each entry of wrt
};

/// Walks back from the outputs marked in `seeded`; of them those that are no floating or complex values are left out.
/// Seed inputs are called `d_output` where `single_seed`, else `d_output_<i>`.
Reverse run_reverse(const Graph& forward, const std::vector<Wrt>& wrt, const std::vector<bool>& seeded,
                    bool single_seed, Seed seed, std::string_view who);

}  // namespace rlx::walk
