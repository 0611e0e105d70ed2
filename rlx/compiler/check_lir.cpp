// A planned program from outside: it is valid, was compiled for this target, and its plan is correct.
#include "rlx/compiler/check_lir.h"

#include <algorithm>
#include <set>

#include "rlx/compiler/legalize.h"
#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/partition.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/verify.h"

namespace rlx {

std::uint32_t last_device(const LirBufferPlan& plan) {
  std::uint32_t last = 0;
  for (const auto* devices : {&plan.node_devices, &plan.arena_devices})
    for (std::uint32_t d : *devices) last = std::max(last, d);
  for (const LirBodies& b : plan.bodies)
    for (const LirModule& m : b.modules) last = std::max(last, last_device(m.plan));
  for (const LirPart& p : plan.parts) {
    last = std::max(last, p.device);
    for (const LirModule& m : p.modules) last = std::max(last, last_device(m.plan));
  }
  return last;
}

namespace {

// An arena of a plan from outside ends where its last value does. A larger one would be allocated for nothing.
template <class Refuse>
void check_arenas(const LirBufferPlan& plan, const TargetLimits& limits, const Refuse& refuse) {
  std::vector<std::size_t> ends(plan.arenas.size(), 0);
  const auto note = [&](std::uint32_t arena, std::size_t offset, std::size_t bytes) {
    if (bytes != 0) ends[arena] = std::max(ends[arena], offset + bytes);
  };
  for (const std::vector<LirValue>& results : plan.values)
    for (const LirValue& v : results)
      if (v.place == Place::Arena) note(v.index, v.offset, v.bytes);
  for (const LirBodies& b : plan.bodies)
    for (const LirRange& r : b.ranges) note(r.arena, r.offset, r.bytes);
  for (std::size_t a = 0; a < ends.size(); ++a)
    if (plan.arenas[a] > ends[a] + plan.alignment)
      refuse("has an invalid plan",
             concat_text("arena ", a, " has ", plan.arenas[a], " bytes, but its values end at ", ends[a]));
  for (const std::vector<LirValue>& results : plan.values)
    for (const LirValue& v : results)
      if (v.place == Place::Arena && v.bytes > limits.max_buffer_bytes)
        refuse("has an invalid plan", concat_text("a value has ", v.bytes, " bytes, more than the target allows (",
                                                  limits.max_buffer_bytes, ")"));
}

// The planned bodies are those that the nodes hold.
template <class Refuse>
void check_bodies_of(const LirModule& lir, const Refuse& refuse) {
  for (const LirBodies& b : lir.plan.bodies) {
    const std::vector<Subgraph> graphs = body_graphs(lir.graph.node(b.node).op);
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      if (!same_graph(*graphs[i], b.modules[i].graph))
        refuse("has an invalid plan", concat_text("a planned body of ", b.node, " is another graph than the node has"));
      check_bodies_of(b.modules[i], refuse);
    }
  }
}

// What a device of whole values needs of a plan: its donations and partitions. Those that this compile would make are
// the only right ones.
template <class Refuse>
void check_partitions(const LirModule& lir, const Target& target, const Refuse& refuse) {
  const Graph& g = lir.graph;
  const std::vector<NodeId> inputs = g.leaves(OpKind::Input), states = g.leaves(OpKind::State);
  const auto wrong = [&](auto&&... text) { refuse("has an invalid plan", concat_text(text...)); };
  std::set<std::uint32_t> given, taken, kept;
  for (const LirAlias& a : lir.plan.aliases) {
    if (a.input >= inputs.size() || a.output >= g.outputs().size())
      wrong("an alias names input ", a.input, " and output ", a.output, ", which the graph does not have");
    if (!given.insert(a.input).second || !taken.insert(a.output).second)
      wrong("input ", a.input, " and output ", a.output, ": one of them is donated twice");
    if (!(g.shape(inputs[a.input]) == g.shape(g.outputs()[a.output])))
      wrong("input ", a.input, " is donated to output ", a.output, " of another shape");
  }
  for (const LirStateCopy& c : lir.plan.state_copies)
    if (c.state >= states.size() || !(c.value == Value(states[c.state])) || !kept.insert(c.state).second)
      wrong("a second buffer of state ", c.state, " belongs to ", c.value);
  LirBufferPlan whole;
  whole.opaque = true;
  whole.aliases = lir.plan.aliases;
  partition_parts(g, target, 0, whole);
  const std::vector<LirPart>& parts = lir.plan.parts;
  if (parts.empty() && !whole.parts.empty())
    refuse(concat_text("has no partitions, but ", target.name(), " cannot run its whole graph"), {});
  if (parts.size() != whole.parts.size()) wrong("it has ", parts.size(), " partitions instead of ", whole.parts.size());
  if (!parts.empty() && lir.plan.node_devices != whole.node_devices) wrong("its nodes are planned for other devices");
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const LirPart &has = parts[p], &wants = whole.parts[p];
    const auto compare = [&](bool same, std::string_view what) {
      if (!same) wrong("partition ", p, " has other ", what, " than this compile would plan");
    };
    compare(has.device == wants.device && has.host_controlled == wants.host_controlled, "devices");
    compare(has.nodes == wants.nodes, "nodes");
    compare(has.inputs == wants.inputs && has.params == wants.params, "inputs");
    compare(has.outputs == wants.outputs, "outputs");
    compare(has.modules.size() == wants.modules.size(), "graphs");
    for (std::size_t m = 0; m < has.modules.size(); ++m)
      compare(fingerprint(has.modules[m]) == fingerprint(wants.modules[m]), "graphs or memory plans");
  }
}

}  // namespace

void check_lir(const LirModule& lir, const Target& target, std::span<const DeviceId> others) {
  const Graph& g = lir.graph;
  verify_or_throw(lir.prepare, Level::Lir, "the LIR module given to compile");
  verify_or_throw(g, Level::Lir, "the LIR module given to compile");
  auto refuse = [&](std::string why, std::string where, ErrorCode code = ErrorCode::InvalidArgument) {
    throw Error(Diagnostic{code, concat_text("the LIR module '", g.name(), "' ", why), std::move(where),
                           "compile the graph, or its module at stage hir or mir"});
  };
  if (!g.is_static()) refuse("has unbound symbols", {});
  std::string foreign;
  for (const auto& [id, kind] : legalize_for_backend(g, target))
    foreign += concat_text(foreign.empty() ? "" : "\n  ", node_where(g, id));
  if (!foreign.empty())
    refuse(concat_text("was planned for a target other than ", target.name()), std::move(foreign),
           ErrorCode::Unsupported);
  if (lir.plan.opaque != target.opaque())
    refuse(target.opaque() ? "has a memory plan, but this device plans its own memory"
                           : "has no memory plan, but this device needs one",
           {});
  if (const std::uint32_t last = last_device(lir.plan); last > lir.others.size())
    refuse(concat_text("names device ", last, ", but has only ", lir.others.size() + 1, " devices"), {});
  if (lir.others.size() > others.size() || !std::equal(lir.others.begin(), lir.others.end(), others.begin()))
    refuse("was planned for other devices than those of this compile", {}, ErrorCode::Unsupported);
  if (!lir.ranges.empty()) refuse("is a partition of a program: it names ranges of the program's schedule", {});
  const std::vector<std::string> problems =
      lir.plan.opaque ? check_parts(g, lir.plan) : check_plan(g, lir.plan, {&target});
  if (!problems.empty()) refuse("has an invalid plan", problems.front());
  if (lir.plan.opaque) {
    check_partitions(lir, target, refuse);
  } else {
    check_arenas(lir.plan, target.limits(), refuse);
    check_bodies_of(lir, refuse);
  }
  if (lir.prepare.outputs().size() != g.leaves(OpKind::Param).size())
    refuse(concat_text("reads ", g.leaves(OpKind::Param).size(), " prepared weights, but its prepare graph returns ",
                       lir.prepare.outputs().size()),
           {});
  const std::vector<NodeId> params = g.leaves(OpKind::Param);
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Value param(params[i]), made = lir.prepare.outputs()[i];
    if (!(packed_layout_of(g, param) == packed_layout_of(lir.prepare, made)) ||
        !(g.shape(param) == lir.prepare.shape(made)))
      refuse(
          concat_text("reads prepared weight ", i, " as ", g.shape(param), " in packed layout '",
                      packed_layout_text(packed_layout_of(g, param)), "', but its prepare graph returns ",
                      lir.prepare.shape(made), " in '", packed_layout_text(packed_layout_of(lir.prepare, made)), "'"),
          node_where(g, params[i]));
  }
}

}  // namespace rlx
