// Branches and loops that the host drives: graphs compiled once by name, run by what their predicates say. In one
// program `Graph::cond` and `Graph::while_loop` do the same without coming back to the host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/runtime/session.h"

namespace rlx {

/// Compiled graphs by name and device. Of one thread at a time.
class SubgraphCache {
 public:
  explicit SubgraphCache(CompileOptions options = {});
  /// The program of `graph` on the session's device, compiled when its name comes first; it stays where it is until
  /// `clear`. InvalidArgument for another graph under a name that is taken.
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

/// The outputs of `then` where `predicate`, a tensor of one element, is not zero, else those of `otherwise`; each takes
/// of `inputs` what it has Inputs for. InvalidArgument for a predicate of several elements, NotFound for an Input that
/// is not among them.
std::vector<Tensor> run_if(SubgraphCache& cache, const Session& session, const Tensor& predicate, const Graph& then,
                           const Graph& otherwise, const NamedTensors& inputs);

struct WhileRun {
  std::vector<Tensor> state;
  std::int64_t iterations = 0;
  bool stopped = false;  // by `max_iterations`, not by the condition
};
/// state = body(state) as long as output 0 of cond(state), one element, is not zero, at most `max_iterations` times.
/// `names` are the Inputs that the values of the state go to, of the body and of cond; output i of the body is the next
/// value i. InvalidArgument for counts that differ, NotFound for an Input without a name.
WhileRun run_while(SubgraphCache& cache, const Session& session, const Graph& cond, const Graph& body,
                   std::vector<Tensor> initial, const std::vector<std::string>& names,
                   std::optional<std::int64_t> max_iterations = std::nullopt);

}  // namespace rlx
