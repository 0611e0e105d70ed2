// Branches and loops that the calling host code controls: graphs are compiled once by name and run as their predicates
// decide. Within one program `Graph::cond` and `Graph::while_loop` do the same without returning to the host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/runtime/session.h"

namespace rlx {

/// Compiled graphs by name and device. For one thread at a time.
class SubgraphCache {
 public:
  explicit SubgraphCache(CompileOptions options = {});
  /// The program of `graph` on the session's device, compiled when its name first appears. It keeps its address until
  /// `clear`. InvalidArgument for another graph under the same name.
  CompiledGraph& get(const Session& session, const Graph& graph);
  std::size_t size() const { return programs_.size(); }
  void clear() { programs_.clear(); }

 private:
  struct Entry {
    std::string fingerprint;
    CompiledGraph program;
  };
  CompileOptions options_;
  std::map<std::string, Entry> programs_;
};

/// The outputs of `then` when `predicate`, a tensor of one element, is not zero; otherwise those of `otherwise`. Each
/// graph takes the values among `inputs` that it has Inputs for. InvalidArgument for a predicate of several elements,
/// NotFound for an Input that is not among `inputs`.
std::vector<Tensor> run_if(SubgraphCache& cache, const Session& session, const Tensor& predicate, const Graph& then,
                           const Graph& otherwise, const NamedTensors& inputs);

struct WhileRun {
  std::vector<Tensor> state;
  std::int64_t iterations = 0;
  bool stopped = false;  // by `max_iterations`, not by the condition
};
/// Runs state = body(state) while output 0 of cond(state), one element, is not zero, at most `max_iterations` times.
/// `names` are the Inputs of body and cond that take the values of the state. Output i of the body is the next value i.
/// InvalidArgument for different counts, NotFound for an Input without a name.
WhileRun run_while(SubgraphCache& cache, const Session& session, const Graph& cond, const Graph& body,
                   std::vector<Tensor> initial, const std::vector<std::string>& names,
                   std::optional<std::int64_t> max_iterations = std::nullopt);

}  // namespace rlx
