// Branches and loops that the caller runs on the host, graph by graph.
#include "rlx/runtime/subgraph_cache.h"

#include <set>
#include <utility>

#include "rlx/base/stop_request.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx {
namespace {

// The values that are inputs of `graph`.
NamedTensors taken(const Graph& graph, const NamedTensors& values) {
  NamedTensors out;
  for (NodeId id : graph.leaves(OpKind::Input)) {
    const std::string name(graph.leaf_name(id));
    const auto found = values.find(name);
    if (found == values.end())
      throw Error(ErrorCode::NotFound,
                  concat_text("graph '", graph.name(), "' has an input '", name, "' that got no value"),
                  "pass a value of that name");
    out.emplace(name, found->second);
  }
  return out;
}

bool says_yes(const Tensor& predicate, const std::string& what) {
  if (predicate.num_elements() != 1)
    throw Error(ErrorCode::InvalidArgument, concat_text(what, " must have one element, got ", predicate.shape()),
                "reduce it to one element first");
  return predicate.to_host().at(0) != 0;
}

}  // namespace

SubgraphCache::SubgraphCache(CompileOptions options) : options_(std::move(options)) {}

CompiledGraph& SubgraphCache::get(const Session& session, const Graph& graph) {
  const std::string key = concat_text(graph.name(), " on ", device_text(session.open_device()->id()));
  std::string print = fingerprint(graph).text();
  if (const auto found = programs_.find(key); found != programs_.end()) {
    if (found->second.fingerprint != print)
      throw Error(ErrorCode::InvalidArgument, concat_text("another graph called '", graph.name(), "' is in the cache"),
                  "give graphs names of their own, or clear the cache");
    return found->second.program;
  }
  Entry entry{std::move(print), session.compile_with(Graph(graph), options_)};
  return programs_.emplace(key, std::move(entry)).first->second.program;
}

std::vector<Tensor> run_if(SubgraphCache& cache, const Session& session, const Tensor& predicate, const Graph& then,
                           const Graph& otherwise, const NamedTensors& inputs) {
  const Graph& taken_branch = says_yes(predicate, "run_if: the predicate") ? then : otherwise;
  const NamedTensors own = taken(taken_branch, inputs);
  return cache.get(session, taken_branch).run_typed(own);
}

WhileRun run_while(SubgraphCache& cache, const Session& session, const Graph& cond, const Graph& body,
                   std::vector<Tensor> initial, const std::vector<std::string>& names,
                   std::optional<std::int64_t> max_iterations) {
  const auto refuse = [](std::string message) {
    throw Error(ErrorCode::InvalidArgument, concat_text("run_while: ", message));
  };
  if (initial.size() != names.size())
    refuse(concat_text("got ", initial.size(), " values for ", names.size(), " names"));
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size()) refuse("a name is given twice");
  if (body.outputs().size() != names.size())
    refuse(concat_text("the body '", body.name(), "' has ", body.outputs().size(), " outputs, but the state has ",
                       names.size(), " values"));
  if (cond.outputs().empty()) refuse(concat_text("the condition '", cond.name(), "' has no output"));
  if (max_iterations && *max_iterations < 0) refuse(concat_text("max_iterations is ", *max_iterations));
  WhileRun run{std::move(initial), 0, false};
  CompiledGraph& condition = cache.get(session, cond);
  CompiledGraph* step = nullptr;
  while (true) {
    StopRequest::check();
    NamedTensors values;
    for (std::size_t i = 0; i < names.size(); ++i) values.insert_or_assign(names[i], run.state[i]);
    if (!says_yes(condition.run_typed(taken(cond, values)).at(0), "run_while: the condition")) return run;
    if (max_iterations && run.iterations == *max_iterations) {
      run.stopped = true;
      return run;
    }
    if (!step) step = &cache.get(session, body);
    run.state = step->run_typed(taken(body, values));
    ++run.iterations;
  }
}

}  // namespace rlx
