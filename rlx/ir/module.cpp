// Program stages and the lowering of HIR blocks.
#include "rlx/ir/module.h"

#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/op_set.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/rebuild.h"

namespace rlx {

const LirBodies* LirBufferPlan::bodies_of(NodeId node) const {
  const auto it =
      std::lower_bound(bodies.begin(), bodies.end(), node, [](const LirBodies& b, NodeId id) { return b.node < id; });
  return it != bodies.end() && it->node == node ? &*it : nullptr;
}

const OpSet& OpSet::everything() {
  static const OpSet all = [] {
    OpSet s;
    s.kinds_.set();
    return s;
  }();
  return all;
}

const char* OpSet::refuses(const Graph& g, NodeId id) const {
  return has(g.node(id).kind()) ? nullptr : "the target does not list this kind of op as supported";
}

std::string_view stage_name(GraphStage stage) {
  constexpr std::string_view names[] = {"hir", "mir", "lir"};
  if (static_cast<std::size_t>(stage) >= std::size(names))
    detail::throw_no_enumerator("GraphStage", static_cast<std::int64_t>(stage));
  return names[static_cast<std::size_t>(stage)];
}

GraphModule::GraphModule(const GraphModule&) = default;
GraphModule::GraphModule(GraphModule&&) noexcept = default;
GraphModule& GraphModule::operator=(const GraphModule&) = default;
GraphModule& GraphModule::operator=(GraphModule&&) noexcept = default;
GraphModule::~GraphModule() = default;

namespace {
[[noreturn]] void wrong_stage(GraphStage have, GraphStage want) {
  throw Error(ErrorCode::InvalidArgument,
              concat_text("the module is at stage ", stage_name(have), ", but stage ", stage_name(want), " is needed"),
              "lower the module first, or use the stage that it has");
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
LirModule GraphModule::into_lir() && {
  (void)lir();
  return std::get<LirModule>(std::move(state_));
}
Graph GraphModule::into_graph() && {
  return std::visit([](auto& m) { return std::move(m.graph); }, state_);
}

namespace {
bool is_block(const Node& n) { return op_def(n.op).level == Level::Hir; }
bool has_block_node(const Graph& g) { return std::any_of(g.nodes().begin(), g.nodes().end(), is_block); }
}  // namespace

bool holds_blocks(const Graph& g) {
  return has_block_node(g) || any_body(g, [](const Graph& body) { return holds_blocks(body); });
}

Graph lower_blocks(const Graph& g, FusionPolicy policy) {
  // A block may decompose into blocks; each round removes one level of nesting.
  std::optional<Graph> bodies = change_bodies(g, [&](const Graph& body) -> std::optional<Graph> {
    if (!holds_blocks(body)) return std::nullopt;
    return lower_blocks(body, policy);
  });
  Graph current = bodies ? std::move(*bodies) : g;
  while (has_block_node(current)) {
    Rebuilder r(current, "lower-hir");
    for (std::uint32_t i = 0; i < current.num_nodes(); ++i) {
      NodeId id{i};
      const Node& n = current.node(id);
      if (is_block(n))
        r.replace(id, decompose_into(r.graph(), n.op, r.operands(id), policy));
      else
        r.copy(id);
    }
    current = std::move(r).finish();
  }
  return current;
}

MirModule HirModule::lower_to_mir() const { return MirModule{lower_blocks(graph, policy)}; }
MirModule HirModule::lower_for_autodiff() const { return MirModule{lower_blocks(graph, FusionPolicy::Fusable)}; }

GraphModule make_module(Graph graph) {
  if (holds_blocks(graph)) return GraphModule(HirModule{std::move(graph)});
  return GraphModule(MirModule{std::move(graph)});
}

GraphModule Graph::module() const { return make_module(*this); }

}  // namespace rlx
