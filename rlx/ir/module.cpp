// Stages of a program.
#include "rlx/ir/module.h"

#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/op_set.h"

namespace rlx {

bool OpSet::claims(const Graph& g, NodeId id) const {
  return has(g.node(id).kind()) && (accepts == nullptr || accepts(g, id));
}

std::string_view stage_name(GraphStage stage) {
  constexpr std::string_view names[] = {"hir", "mir", "lir"};
  return names[static_cast<std::size_t>(stage)];
}

namespace {
[[noreturn]] void wrong_stage(GraphStage have, GraphStage want) {
  throw Error(ErrorCode::InvalidArgument, concat_text("the module is at stage ", stage_name(have), ", asked for ", stage_name(want)),
              "lower the module first, or take the stage it has");
}
}  // namespace

const HirModule& GraphModule::hir() const {
  if (const auto* m = std::get_if<HirModule>(&state_)) return *m;
  wrong_stage(stage(), GraphStage::Hir);
}
const MirModule& GraphModule::mir() const {
  if (const auto* m = std::get_if<MirModule>(&state_)) return *m;
  wrong_stage(stage(), GraphStage::Mir);
}
const LirModule& GraphModule::lir() const {
  if (const auto* m = std::get_if<LirModule>(&state_)) return *m;
  wrong_stage(stage(), GraphStage::Lir);
}
const Graph& GraphModule::graph() const {
  return std::visit([](const auto& m) -> const Graph& { return m.graph; }, state_);
}
Graph GraphModule::into_graph() && {
  return std::visit([](auto& m) { return std::move(m.graph); }, state_);
}

GraphModule make_module(Graph graph) {
  bool hir = std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& n) { return op_def(n.op).level == Level::Hir; });
  if (hir) return GraphModule(HirModule{std::move(graph), true});
  return GraphModule(MirModule{std::move(graph)});
}

}  // namespace rlx
