// Cuts the wanted values out of a prepare graph, and compiles them for one device.
#include "rlx/compiler/prepare_executable.h"

#include <utility>
#include <vector>

#include "rlx/compiler/legalize.h"
#include "rlx/compiler/memory_plan.h"
#include "rlx/exec/program.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/rebuild.h"

namespace rlx {
namespace {

// True when the device runs all of `g`. An opaque device must run it as one partition.
bool runs_all(const Graph& g, const Target& target) {
  if (!target.opaque()) return legalize_for_backend(g, target).empty();
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (!op_def(g.nodes()[i].kind()).is_leaf() && target.refuses(g, NodeId{i})) return false;
  return true;
}

}  // namespace

Graph program_of_prepared(const Graph& prepare, std::span<const Value> wanted) {
  std::vector<bool> live(prepare.num_nodes(), false);
  for (Value v : wanted) live[v.node.index] = true;
  for (std::size_t i = live.size(); i-- > 0;)
    if (live[i])
      for (Value v : prepare.nodes()[i].inputs) live[v.node.index] = true;
  Graph g("prepare");
  ValueMap map(prepare);
  for (std::uint32_t i = 0; i < prepare.num_nodes(); ++i) {
    if (!live[i]) continue;
    const Node& n = prepare.nodes()[i];
    OpBox op = n.op;
    if (const auto* p = n.op.get_if<ops::Param>()) op = ops::Input{p->name, p->dims, p->dtype};
    std::vector<Value> operands;
    for (Value v : n.inputs) operands.push_back(map(v));
    const NodeId id = g.add_node(Node{std::move(op), std::move(operands), n.shapes, n.origin});
    for (std::uint32_t r = 0; r < n.num_results(); ++r) map.set(Value(NodeId{i}, r), Value(id, r));
  }
  std::vector<Value> outputs;
  for (Value v : wanted) outputs.push_back(map(v));
  g.set_outputs(outputs);
  return g;
}

std::unique_ptr<const Executable> compile_prepared(const Graph& program, const Backend& backend, const Target& target,
                                                   const BackendOptions& options) {
  if (!runs_all(program, target)) return nullptr;
  LirModule lir;
  lir.plan = plan_memory(program, target);
  lir.graph = program;
  const ProgramDevice only[] = {{&backend, options, nullptr}};
  return compile_program(std::move(lir), only);
}

}  // namespace rlx
