// A plan at other extents, and as text.
#include "rlx/compiler/cut_parts.h"
#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/plan_bodies.h"
#include "rlx/compiler/views.h"
#include "rlx/ir/form.h"
#include "rlx/ir/op_def.h"

namespace rlx {

LirBufferPlan resize_plan(const Graph& g, const LirBufferPlan& plan) {
  LirBufferPlan out = plan;
  for (LirPart& p : out.parts) p = resize_part(g, p);
  if (plan.opaque) return out;
  for (LirBodies& b : out.bodies) b = resize_bodies(g, b);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    for (std::uint32_t r = 0; r < n.num_results(); ++r) {
      LirValue& lv = out.values[i][r];
      if (lv.place == Place::None) continue;
      if (!lv.is_view) {
        lv.bytes = stored_bytes(g, Value(NodeId{i}, r));
        continue;
      }
      const LirValue& operand = out.at(n.inputs[0]);
      const std::vector<std::int64_t> dims = g.shape(n.inputs[0]).static_dims(), to = n.shape(r).static_dims();
      std::optional<ViewPlace<std::int64_t>> view =
          view_place(n, dims, operand.strides.empty() ? dense_strides(dims) : operand.strides, to);
      check(view.has_value(), "a view of symbolic extents is one for each of their values");
      const std::size_t element = size_bytes(n.shape(r).dtype());
      lv.offset = operand.offset + static_cast<std::size_t>(view->skip) * element;
      lv.bytes = static_cast<std::size_t>(touched_extent(to, view->strides)) * element;
      lv.strides.clear();
      if (!is_dense(to, view->strides)) lv.strides = std::move(view->strides);
    }
  }
  return out;
}

std::string plan_text(const Graph& g, const LirBufferPlan& plan) {
  constexpr std::string_view places[] = {"arena", "input", "output", "prepared", "constant", "state", "none"};
  std::string out = plan.opaque
                        ? std::string("the device plans its memory\n")
                        : concat_text("arena ", plan.arena_bytes, " bytes (live peak ", plan.live_peak_bytes,
                                      ", unshared ", plan.unshared_bytes, "), ", plan.schedule.size(), " steps\n");
  for (std::size_t a = 0; a < plan.arena_devices.size(); ++a)
    out += concat_text("  arena ", a, " of device ", plan.arena_devices[a], ": ", plan.arenas[a], " bytes\n");
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    const LirPart& part = plan.parts[p];
    out += concat_text("  part ", p, " on device ", part.device, ": ",
                       part.driven ? concat_text(op_text_name(g.node(part.nodes[0]).op), ", which the host drives")
                                   : concat_text(part.modules[0].graph.num_nodes(), " nodes"),
                       ", takes ", part.inputs.size(), " values and makes ", part.outputs.size(), "\n");
  }
  for (std::uint32_t i = 0; i < g.num_nodes() && !plan.opaque; ++i)
    for (std::uint32_t r = 0; r < g.nodes()[i].num_results(); ++r) {
      const LirValue& v = plan.values[i][r];
      out += concat_text("  ", Value(NodeId{i}, r), " ", places[static_cast<std::size_t>(v.place)]);
      if (v.place != Place::None && (v.place != Place::Arena || v.index != 0)) out += concat_text(" ", v.index);
      out += concat_text(" +", v.offset, " ", v.bytes, " bytes", v.is_view ? " view" : "",
                         v.strides.empty() ? "" : " strided", "  ", op_text_name(g.nodes()[i].op), "\n");
    }
  for (const LirBodies& b : plan.bodies) {
    for (const LirBodies::Shared& s : b.shared)
      out += concat_text("  ", b.node, s.refused.empty() ? " may make" : " does not make", " result ", s.result,
                         " in the bytes of operand ", s.operand, s.refused.empty() ? "" : ": ", s.refused, "\n");
    for (const LirRange& r : b.ranges)
      out += concat_text("  ", b.driven ? "driven " : "", "bodies of ", b.node, " arena",
                         r.arena ? concat_text(" ", r.arena) : std::string(), " +", r.offset, " ", r.bytes, " bytes\n");
    for (std::size_t c = 0; c < b.reasons.size(); ++c)
      if (!b.reasons[c].empty()) out += concat_text("    carry ", c, " has two buffers: ", b.reasons[c], "\n");
  }
  for (const LirStep& s : plan.schedule) {
    const LirBodies* b = plan.bodies_of(s.node);
    if (g.node(s.node).kind() == OpKind::Transfer || (b && b->driven && g.node(s.node).kind() != OpKind::Scan))
      out +=
          b ? concat_text("  a run waits at ", s.node, ": the host decides\n")
            : concat_text("  a copy to another device at ", s.node, ": the host waits unless a stream reaches both\n");
  }
  for (const LirOutputCopy& c : plan.output_copies)
    out += concat_text("  copy ", c.value, " to output ", c.output, "\n");
  for (const auto* copies : {&plan.state_copies, &plan.far_state_copies})
    for (const LirStateCopy& c : *copies)
      out += concat_text("  copy ", c.value, " to state ", c.state, ": ", c.reason, "\n");
  for (const LirUpdateCopy& c : plan.update_copies)
    out += concat_text("  ", c.node, " copies operand ", c.operand, " before it updates it: ", c.reason, "\n");
  for (const LirAlias& a : plan.aliases)
    out += concat_text("  output ", a.output,
                       a.refused.empty() ? " may be written over input " : " is apart from donated input ", a.input,
                       a.refused.empty() ? "" : ": ", a.refused, "\n");
  return out;
}

}  // namespace rlx
