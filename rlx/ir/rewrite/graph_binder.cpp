// Symbolic dimensions as slots of a table, and the copy of nodes that reads them.
#include "rlx/ir/rewrite/graph_binder.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {
namespace {
constexpr std::uint32_t kStatic = 0xffffffffu;
}  // namespace

struct GraphBinder::SymbolicOp {
  struct List {
    const AttrField* field;
    std::vector<std::uint32_t> slots;  // kStatic: a static dimension
  };
  struct Body {
    const AttrField* field;
    std::unique_ptr<GraphBinder> binder;
  };
  std::uint32_t node = 0;
  std::vector<List> lists;
  std::vector<Body> bodies;
};

GraphBinder::GraphBinder(GraphBinder&&) noexcept = default;
GraphBinder::~GraphBinder() = default;

// The slots of the distinct dimensions, while they are collected.
struct GraphBinder::Slots {
  std::unordered_map<std::string, std::uint32_t> of;  // by the text of a dimension
  std::uint32_t last = 0;
};

std::uint32_t GraphBinder::slot(const Dim& d, Slots& slots) {
  if (d.is_static()) return kStatic;
  // Nodes in a row often have one symbolic dimension.
  if (slots.last < distinct_.size() && distinct_[slots.last] == d) return slots.last;
  const auto [it, added] = slots.of.try_emplace(d.text(), static_cast<std::uint32_t>(distinct_.size()));
  if (added) distinct_.push_back(d);
  return slots.last = it->second;
}

GraphBinder::GraphBinder(const Graph& g) : graph_(&g), symbolic_results_(g.num_nodes(), false) {
  Slots slots;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    for (const Shape& s : n.shapes)
      for (const Dim& d : s.dims())
        if (!d.is_static()) shape_slots_.push_back(slot(d, slots)), symbolic_results_[i] = true;
    SymbolicOp op;
    op.node = i;
    for (const AttrField& f : op_def(n.kind()).attrs) {
      if (f.type != AttrType::DimList && !holds_body(f.type)) continue;
      const AttrValue value = f.get(n.op.data());
      if (const auto* dims = std::get_if<Dims>(&value)) {
        if (std::all_of(dims->begin(), dims->end(), [](const Dim& d) { return d.is_static(); })) continue;
        SymbolicOp::List list{&f, {}};
        for (const Dim& d : *dims) list.slots.push_back(slot(d, slots));
        op.lists.push_back(std::move(list));
      } else if (const auto& body = std::get<Subgraph>(value); body) {
        auto binder = std::make_unique<GraphBinder>(*body);
        if (!binder->distinct_.empty()) op.bodies.push_back({&f, std::move(binder)});
      }
    }
    if (!op.lists.empty() || !op.bodies.empty()) ops_.push_back(std::move(op));
    distinct_after_.push_back(static_cast<std::uint32_t>(distinct_.size()));
  }
}

Graph GraphBinder::bind(const SymbolBinding& values) const {
  Graph out = bind_first(static_cast<std::uint32_t>(graph_->num_nodes()), values);
  out.set_outputs(graph_->outputs());
  for (const Graph::StateUpdate& u : graph_->state_updates()) out.set_state(u.name, u.value);
  return out;
}

Graph GraphBinder::bind_first(std::uint32_t nodes, const SymbolBinding& values) const {
  std::vector<Dim> extents;
  extents.reserve(distinct_.size());
  const std::size_t known = nodes == 0 ? 0 : distinct_after_[nodes - 1];
  for (std::size_t d = 0; d < known; ++d) extents.emplace_back(distinct_[d].evaluate(values));
  Graph out(graph_->name());
  out.reserve(nodes);
  auto next_slot = shape_slots_.begin();
  auto next_op = ops_.begin();
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const Node& n = graph_->nodes()[i];
    Node bound{n.op, n.inputs, {}, {}};
    bound.origin.label = n.origin.label;
    bound.origin.loc = n.origin.loc;
    if (symbolic_results_[i]) {
      bound.shapes.reserve(n.shapes.size());
      for (const Shape& s : n.shapes) {
        Dims dims;
        dims.reserve(s.dims().size());
        for (const Dim& d : s.dims()) dims.push_back(d.is_static() ? d : extents[*next_slot++]);
        bound.shapes.emplace_back(std::move(dims), s.dtype());
      }
    } else {
      bound.shapes = n.shapes;
    }
    if (next_op != ops_.end() && next_op->node == i) {
      std::shared_ptr<void> copy = make_default_op(n.kind());
      for (const AttrField& f : op_def(n.kind()).attrs) f.set(copy.get(), f.get(n.op.data()));
      for (const SymbolicOp::List& list : next_op->lists) {
        AttrValue value = list.field->get(n.op.data());
        auto& dims = std::get<Dims>(value);
        for (std::size_t k = 0; k < dims.size(); ++k)
          if (list.slots[k] != kStatic) dims[k] = extents[list.slots[k]];
        list.field->set(copy.get(), std::move(value));
      }
      for (const SymbolicOp::Body& body : next_op->bodies)
        body.field->set(copy.get(), Subgraph(std::make_shared<const Graph>(body.binder->bind(values))));
      bound.op = OpBox(n.kind(), std::move(copy));
      ++next_op;
    }
    out.add_node(std::move(bound));
  }
  return out;
}

}  // namespace rlx
