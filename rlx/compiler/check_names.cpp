// Every index, count and size of a plan against the graph that it plans.
#include <algorithm>
#include <bit>

#include "rlx/compiler/check_places.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {
namespace {

// The most that CompileOptions::arena_alignment takes.
constexpr std::size_t kMostAlignment = std::size_t{1} << 30;

class NameChecker {
 public:
  NameChecker(const Graph& g, const LirBufferPlan& plan)
      : g_(g),
        plan_(plan),
        inputs_(g.leaves(OpKind::Input).size()),
        params_(g.leaves(OpKind::Param).size()),
        states_(g.leaves(OpKind::State).size()) {}

  std::vector<std::string> run() {
    if (!std::has_single_bit(plan_.alignment) || plan_.alignment > kMostAlignment)
      problems_.add("the alignment is ", plan_.alignment, ", which is no power of two up to ", kMostAlignment);
    count(plan_.values.size(), g_.num_nodes(), "planned nodes");
    if (!plan_.node_devices.empty()) count(plan_.node_devices.size(), g_.num_nodes(), "devices of nodes");
    if (!plan_.arena_devices.empty()) count(plan_.arena_devices.size(), plan_.arenas.size(), "devices of arenas");
    if (!problems_.empty()) return std::move(problems_).take();
    std::size_t all = 0;
    for (std::size_t bytes : plan_.arenas) {
      if (bytes > ~std::size_t{0} - all) problems_.add("the arenas have more bytes together than can be addressed");
      all += bytes;
    }
    if (all != plan_.arena_bytes)
      problems_.add("arena_bytes is ", plan_.arena_bytes, ", but the arenas have ", all, " bytes");
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) check_values(NodeId{i});
    for (const LirStep& s : plan_.schedule)
      if (s.node.index >= g_.num_nodes()) problems_.add("a step runs ", s.node, ", which the graph does not have");
    for (const LirOutputCopy& c : plan_.output_copies) {
      value(c.value, "an output copy reads ");
      index(c.output, g_.outputs().size(), "an output copy writes output ");
    }
    for (const auto* copies : {&plan_.state_copies, &plan_.remote_state_copies})
      for (const LirStateCopy& c : *copies) {
        value(c.value, "a state copy reads ");
        index(c.state, states_, "a state copy writes state ");
      }
    for (const LirUpdateCopy& c : plan_.update_copies)
      if (value(Value(c.node, c.result), "an update copy names "))
        index(c.operand, g_.node(c.node).inputs.size(), "an update copy names operand ");
    for (const LirAlias& a : plan_.aliases) {
      index(a.input, inputs_, "an alias names input ");
      index(a.output, g_.outputs().size(), "an alias names output ");
    }
    for (std::size_t i = 0; i < plan_.bodies.size(); ++i) {
      if (i > 0 && !(plan_.bodies[i - 1].node < plan_.bodies[i].node))
        problems_.add("the bodies of ", plan_.bodies[i].node, " are not in the order of nodes");
      check_bodies(plan_.bodies[i]);
    }
    if (plan_.opaque) problems_.add("it says that the device plans its own memory");
    if (!plan_.parts.empty()) problems_.add("it has partitions, but plans the memory of its values too");
    return std::move(problems_).take();
  }

 private:
  // Each takes the parts of a text, which is built for a problem alone.
  template <class... What>
  bool count(std::size_t has, std::size_t wants, const What&... what) {
    if (has != wants) problems_.add("it has ", has, " ", what..., ", but needs ", wants);
    return has == wants;
  }
  template <class... What>
  bool index(std::size_t i, std::size_t of, const What&... what) {
    if (i >= of) problems_.add(what..., i, ", but there are ", of);
    return i < of;
  }
  bool value(Value v, std::string_view what) {
    const bool known = v.node.index < g_.num_nodes() && v.result < g_.node(v.node).num_results();
    if (!known) problems_.add(what, v, ", which the graph does not have");
    return known;
  }

  void check_values(NodeId id) {
    const std::vector<LirValue>& results = plan_.values[id.index];
    if (!count(results.size(), g_.node(id).num_results(), "planned results of ", id)) return;
    for (std::uint32_t r = 0; r < results.size(); ++r) {
      const LirValue& lv = results[r];
      const Value v(id, r);
      switch (lv.place) {
        case Place::Arena: index(lv.index, std::max<std::size_t>(1, plan_.arenas.size()), v, " lies in arena "); break;
        case Place::Input: index(lv.index, inputs_, v, " lies in input "); break;
        case Place::Output: index(lv.index, g_.outputs().size(), v, " lies in output "); break;
        case Place::Prepared: index(lv.index, params_, v, " lies in prepared weight "); break;
        case Place::Constant: index(lv.index, g_.num_nodes(), v, " lies in the constant of node "); break;
        case Place::State: index(lv.index, states_, v, " lies in state "); break;
        case Place::None: break;
        default: problems_.add(v, " lies in a place of number ", static_cast<int>(lv.place), ", which does not exist");
      }
      if (lv.bytes > ~std::size_t{0} - lv.offset)
        problems_.add(v, " has ", lv.bytes, " bytes at offset ", lv.offset, ", more than can be addressed");
      if (!lv.strides.empty() && lv.strides.size() != g_.shape(v).dims().size())
        problems_.add(v, " has ", lv.strides.size(), " strides, but rank ", g_.shape(v).rank());
    }
  }

  void check_bodies(const LirBodies& b) {
    if (b.node.index >= g_.num_nodes())
      return problems_.add("there are bodies of ", b.node, ", which the graph does not have");
    const Node& n = g_.node(b.node);
    const std::vector<Subgraph> graphs = body_graphs(n.op);
    if (graphs.empty()) return problems_.add("there are bodies of ", b.node, ", which has none");
    if (!count(b.modules.size(), graphs.size(), "planned bodies of ", b.node) ||
        !count(b.arenas.size(), graphs.size(), "lists of arenas of the bodies of ", b.node))
      return;
    const auto range = [&](std::uint32_t r) { index(r, b.ranges.size(), "the bodies of ", b.node, " use range "); };
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      const Graph& body = b.modules[i].graph;
      bool same = body.num_nodes() == graphs[i]->num_nodes() && body.outputs() == graphs[i]->outputs();
      for (std::uint32_t k = 0; same && k < body.num_nodes(); ++k)
        same = body.nodes()[k].kind() == graphs[i]->nodes()[k].kind() &&
               body.nodes()[k].inputs == graphs[i]->nodes()[k].inputs &&
               body.nodes()[k].num_results() == graphs[i]->nodes()[k].num_results();
      if (!same) {
        problems_.add("a planned body of ", b.node, " is another graph than the node has");
        continue;
      }
      for (const std::string& problem : check_names(body, b.modules[i].plan))
        problems_.add("a body of ", b.node, ": ", problem);
      count(b.arenas[i].size(), b.modules[i].plan.arenas.size(), "ranges for the arenas of the bodies of ", b.node);
      for (std::uint32_t r : b.arenas[i]) range(r);
    }
    for (const LirRange& r : b.ranges) {
      if (r.bytes != 0) index(r.arena, plan_.arenas.size(), "a range of the bodies of ", b.node, " lies in arena ");
      if (r.bytes > ~std::size_t{0} - r.offset)
        problems_.add("a range of the bodies of ", b.node, " ends past what can be addressed");
    }
    const LoopParts loop = loop_parts(n.op).value_or(LoopParts{});
    count(b.second.size(), loop.carries, "second buffers of the bodies of ", b.node);
    count(b.reasons.size(), loop.carries, "reasons of the bodies of ", b.node);
    for (const auto& s : b.second)
      if (s) range(*s);
    count(b.rows.size(), b.host_controlled ? loop.xs + loop.ys : 0, "buffers of rows of the bodies of ", b.node);
    for (const auto& r : b.rows)
      if (r) range(*r);
    if (b.decision) range(*b.decision);
    for (const LirBodies::Shared& s : b.shared) {
      index(s.operand, n.inputs.size(), "the bodies of ", b.node, " share operand ");
      index(s.result, n.num_results(), "the bodies of ", b.node, " share result ");
    }
  }

  const Graph& g_;
  const LirBufferPlan& plan_;
  std::size_t inputs_, params_, states_;
  PlanProblems problems_;
};

}  // namespace

std::vector<std::string> check_names(const Graph& g, const LirBufferPlan& plan) { return NameChecker(g, plan).run(); }

}  // namespace rlx
