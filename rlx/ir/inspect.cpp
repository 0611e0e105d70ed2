// Readable dumps.
#include "rlx/ir/inspect.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "rlx/ir/op_def.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/text.h"

namespace rlx {
namespace {

std::string count_text(std::size_t n, std::string_view what) { return concat_text(n, " ", what, n == 1 ? "" : "s"); }

std::map<std::string, int> histogram(const Graph& g) {
  std::map<std::string, int> out;
  for (const Node& n : g.nodes()) ++out[op_text_name(n.op)];
  return out;
}

// "matmul=4, add=2": most frequent first, then by name.
std::string histogram_text(const Graph& g) {
  std::map<std::string, int> counts = histogram(g);
  std::vector<std::pair<std::string, int>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  for (const auto& [name, n] : rows) out += concat_text(out.empty() ? "" : ", ", name, "=", n);
  return out;
}

std::string header(const Graph& g, std::string_view what) {
  std::size_t bytes = 0, symbolic = 0;
  for (const Node& n : g.nodes())
    for (const Shape& s : n.shapes) {
      if (s.is_static())
        bytes += s.size_bytes();
      else
        ++symbolic;
    }
  std::string out = concat_text(what, " @", g.name(), " (", count_text(g.num_nodes(), "node"), ", ",
                                count_text(g.outputs().size(), "output"));
  if (!g.state_updates().empty()) out += concat_text(", ", count_text(g.state_updates().size(), "state update"));
  out += concat_text(", values of ", bytes_text(bytes));
  if (symbolic) out += concat_text(" and ", count_text(symbolic, "symbolic value"));
  return out + ")\n";
}

std::string stats(const Graph& g, std::string_view what) {
  std::string out = header(g, what) + "op kinds: " + histogram_text(g) + "\n";
  for (const auto& [name, info] : g.symbols()) {
    out += concat_text("symbol ", name, ": ", info.min, " to ", info.max);
    if (info.divisor != 1) out += concat_text(", multiples of ", info.divisor);
    out += "\n";
  }
  return out;
}

void pad(std::string& s, std::size_t width) {
  if (s.size() < width) s.append(width - s.size(), ' ');
}

std::string types_text(const Node& n) {
  std::string out;
  for (const Shape& s : n.shapes) out += (out.empty() ? "" : ", ") + s.text();
  return out;
}

std::string body_text(const Graph& g) {
  struct Row {
    std::string id, call, type, notes;
  };
  std::vector<Row> rows(g.num_nodes());
  // Long rows are not aligned; aligning all rows to them would push the types off the screen.
  constexpr std::size_t kMaxCall = 72, kMaxType = 36;
  std::size_t id_width = 0, call_width = 0, type_width = 0;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    Row& row = rows[i];
    row.id = NodeId{i}.text();
    if (n.num_results() != 1) row.id += concat_text(":", n.num_results());
    row.call = op_text_name(n.op) + "(";
    for (std::size_t k = 0; k < n.inputs.size(); ++k) row.call += concat_text(k ? ", " : "", n.inputs[k]);
    row.call += ")";
    std::string attrs = print_attrs(n.op, {.bodies = false, .max_elements = 8});
    if (!attrs.empty()) row.call += " {" + attrs + "}";
    row.type = types_text(n);
    const Origin& o = n.origin;
    if (!o.label.empty()) row.notes += concat_text("  \"", o.label, "\"");
    if (o.loc.line > 0) row.notes += concat_text("  ", o.loc.file, ":", o.loc.line);
    if (!o.pass.empty()) {
      row.notes += "  by " + o.pass;
      for (std::size_t k = 0; k < o.from.size(); ++k) row.notes += (k ? ", " : " <- ") + o.from[k];
    }
    id_width = std::max(id_width, row.id.size());
    if (row.call.size() <= kMaxCall) call_width = std::max(call_width, row.call.size());
    if (row.type.size() <= kMaxType) type_width = std::max(type_width, row.type.size());
  }
  auto mark = [&](Value v, const std::string& what) {
    rows[v.node.index].notes +=
        concat_text("  <- ", what, v.result ? concat_text(" (#", v.result, ")") : std::string());
  };
  for (std::size_t i = 0; i < g.outputs().size(); ++i) mark(g.outputs()[i], concat_text("output ", i));
  for (const auto& [symbol, source] : g.symbol_sources()) mark(source, concat_text("symbol ", symbol));
  for (const auto& u : g.state_updates()) mark(u.value, concat_text("state \"", u.name, "\""));
  std::string out;
  for (Row& row : rows) {
    pad(row.id, id_width);
    pad(row.call, call_width);
    if (!row.notes.empty()) pad(row.type, type_width);
    out += "  " + row.id + " = " + row.call + " : " + row.type + row.notes + "\n";
  }
  return out;
}

std::string place_text(const LirValue& v) {
  switch (v.place) {
    case Place::Arena: return v.index == 0 ? "arena" : concat_text("arena ", v.index);
    case Place::Input: return concat_text("input ", v.index);
    case Place::Output: return concat_text("output ", v.index);
    case Place::Prepared: return concat_text("prepared ", v.index);
    case Place::Constant: return concat_text("constant %", v.index);
    case Place::State: return concat_text("state ", v.index);
    case Place::None: return "nowhere";
  }
  return "?";
}

std::string plan_header(const LirModule& m) {
  const LirBufferPlan& p = m.plan;
  if (p.opaque)
    return concat_text("buffer plan: the device plans its memory",
                       p.parts.empty() ? std::string() : concat_text(", ", count_text(p.parts.size(), "part")), "\n");
  std::string out = concat_text(
      "buffer plan: ", p.arenas.size() > 1 ? concat_text(p.arenas.size(), " arenas of ") : "arena ",
      bytes_text(p.arena_bytes), ", aligned to ", p.alignment, " B, ", count_text(p.schedule.size(), "step"), "\n");
  if (p.live_peak_bytes) {
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%.3f",
                  static_cast<double>(p.arena_bytes) / static_cast<double>(p.live_peak_bytes));
    out += concat_text("  ", ratio, " times the live peak of ", bytes_text(p.live_peak_bytes));
    if (p.unshared_bytes > p.arena_bytes)
      out += concat_text("; ", bytes_text(p.unshared_bytes - p.arena_bytes), " saved of ", bytes_text(p.unshared_bytes),
                         " without reuse");
    out += "\n";
  }
  return out;
}

// The device of each part of a program that is split into graphs.
std::string parts_text(const LirModule& m) {
  constexpr std::size_t kMost = 12;  // names per part
  std::string out;
  for (std::size_t p = 0; p < m.plan.parts.size(); ++p) {
    const LirPart& part = m.plan.parts[p];
    std::vector<NodeId> nodes;  // each once: several nodes of the part may come from one node that was decomposed
    for (std::size_t i = 0; i < part.nodes.size(); ++i)
      if (part.host_controlled || !op_def(part.modules[0].graph.nodes()[i].kind()).is_leaf())
        nodes.push_back(part.nodes[i]);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    out += concat_text("  part ", p,
                       part.host_controlled ? ", host-controlled: " : concat_text(" on device ", part.device, ": "));
    for (std::size_t i = 0; i < std::min(nodes.size(), kMost); ++i)
      out += concat_text(i ? ", " : "", nodes[i], " ", op_text_name(m.graph.node(nodes[i]).op));
    if (nodes.size() > kMost) out += concat_text(" and ", nodes.size() - kMost, " more");
    out += "\n";
  }
  return out;
}

// The steps at which the host waits during a run.
std::string waits_text(const LirModule& m) {
  std::string out;
  for (const LirStep& s : m.plan.schedule) {
    if (s.node.index >= m.graph.num_nodes()) continue;
    const OpKind kind = m.graph.node(s.node).kind();
    const LirBodies* b = m.plan.bodies_of(s.node);
    if (kind == OpKind::Transfer)
      out += concat_text("  ", s.node, " goes to another device: the host waits unless a stream reaches both\n");
    else if (b && b->host_controlled && kind != OpKind::Scan)
      out += concat_text("  a run waits at ", s.node, ": the host decides\n");
  }
  return out;
}

// The planned bodies of branches and loops: their memory besides operands and results, and why results and carries are
// not updated in place.
std::string bodies_text(const LirModule& m) {
  std::string out;
  for (const LirBodies& b : m.plan.bodies) {
    for (const LirRange& r : b.ranges)
      out += concat_text("  ", b.host_controlled ? "host-controlled " : "", "bodies of ", b.node, ": arena",
                         r.arena ? concat_text(" ", r.arena) : std::string(), " from ", r.offset, ", ",
                         bytes_text(r.bytes), "\n");
    for (const LirBodies::Shared& s : b.shared)
      if (!s.refused.empty())
        out += concat_text("  result ", s.result, " of ", b.node, " is not made in the bytes of operand ", s.operand,
                           ": ", s.refused, "\n");
    for (std::size_t c = 0; c < b.reasons.size(); ++c)
      if (!b.reasons[c].empty())
        out += concat_text("  carry ", c, " of ", b.node, " has two buffers: ", b.reasons[c], "\n");
  }
  return out;
}

}  // namespace

std::string bytes_text(std::size_t bytes) {
  constexpr const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  double v = static_cast<double>(bytes);
  std::size_t u = 0;
  while (v >= 1024 && u + 1 < std::size(units)) {
    v /= 1024;
    ++u;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, u == 0 || v >= 1000 ? "%.0f %s" : "%.1f %s", v, units[u]);
  return buffer;
}

std::string inspect_graph(const Graph& g) { return stats(g, "graph") + body_text(g); }
std::string inspect_graph_stats(const Graph& g) { return stats(g, "graph"); }

std::string inspect_graph_diff(const Graph& before, const Graph& after) {
  auto difference = static_cast<std::int64_t>(after.num_nodes()) - static_cast<std::int64_t>(before.num_nodes());
  std::string out = concat_text("@", after.name(), ": ", before.num_nodes(), " -> ", after.num_nodes(), " nodes (",
                                difference > 0 ? "+" : "", difference, ")\n");
  std::map<std::string, int> change = histogram(after);
  for (const auto& [name, n] : histogram(before)) change[name] -= n;
  bool any = false;
  for (const auto& [name, n] : change) {
    if (n == 0) continue;
    any = true;
    out += concat_text("  ", name, " ", n > 0 ? "+" : "", n, "\n");
  }
  if (!any)
    out += same_graph(before, after) ? "  no change\n" : "  the same ops, with other operands, attributes or order\n";
  return out;
}

std::string inspect_hir(const HirModule& m) { return stats(m.graph, "hir") + body_text(m.graph); }
std::string inspect_hir_stats(const HirModule& m) { return stats(m.graph, "hir"); }
std::string inspect_mir(const MirModule& m) { return stats(m.graph, "mir") + body_text(m.graph); }
std::string inspect_mir_stats(const MirModule& m) { return stats(m.graph, "mir"); }
std::string inspect_mir_diff(const MirModule& before, const MirModule& after) {
  return inspect_graph_diff(before.graph, after.graph);
}

std::string inspect_lir(const LirModule& m) {
  std::string out = stats(m.graph, "lir") + body_text(m.graph);
  if (m.prepare.num_nodes()) out += stats(m.prepare, "prepare") + body_text(m.prepare);
  return out + inspect_buffer_plan(m);
}

std::string inspect_lir_stats(const LirModule& m) {
  std::string out = stats(m.graph, "lir");
  if (m.prepare.num_nodes()) out += stats(m.prepare, "prepare");
  return out + plan_header(m);
}

std::string inspect_buffer_plan(const LirModule& m) {
  using Row = std::vector<std::string>;
  const bool several = !m.plan.opaque && m.plan.node_devices.size() == m.graph.num_nodes();
  std::vector<Row> rows{{"step", "value", "place", "offset", "bytes", "type", "waits for"}};
  if (several) rows[0].push_back("device");
  auto add_values = [&](NodeId id, const std::string& step, const std::string& waits) {
    if (id.index >= m.plan.values.size()) return;
    const auto& results = m.plan.values[id.index];
    for (std::uint32_t r = 0; r < results.size() && r < m.graph.node(id).num_results(); ++r) {
      const LirValue& v = results[r];
      std::string place = place_text(v);
      if (v.is_view) place += " (view)";
      if (!v.strides.empty()) place += " strides " + dims_text(v.strides);
      rows.push_back({r ? "" : step, Value(id, r).text(), place, std::to_string(v.offset), std::to_string(v.bytes),
                      m.graph.shape(Value(id, r)).text(), r ? "" : waits});
      if (several) rows.back().push_back(std::to_string(m.plan.node_device(id)));
    }
  };
  std::vector<bool> scheduled(m.graph.num_nodes(), false);
  for (const LirStep& s : m.plan.schedule)
    if (s.node.index < scheduled.size()) scheduled[s.node.index] = true;
  for (std::uint32_t i = 0; i < m.graph.num_nodes(); ++i)
    if (!scheduled[i]) add_values(NodeId{i}, "-", "");
  for (std::size_t s = 0; s < m.plan.schedule.size(); ++s) {
    std::string waits;
    for (std::int32_t p : m.plan.schedule[s].predecessors) waits += (waits.empty() ? "" : " ") + std::to_string(p);
    if (m.plan.schedule[s].node.index < m.graph.num_nodes())
      add_values(m.plan.schedule[s].node, std::to_string(s), waits);
  }
  std::vector<std::size_t> width(rows[0].size(), 0);
  for (const Row& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  std::string out = plan_header(m);
  if (rows.size() == 1) rows.clear();
  for (Row& row : rows) {
    std::string line = " ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      bool number = c == 3 || c == 4;  // right-aligned
      if (number)
        line += " " + std::string(width[c] - row[c].size(), ' ') + row[c] + " ";
      else {
        pad(row[c], width[c]);
        line += " " + row[c] + " ";
      }
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out + inspect_plan_notes(m);
}

std::string inspect_plan_notes(const LirModule& m) {
  std::string out = parts_text(m) + waits_text(m) + bodies_text(m);
  for (const LirOutputCopy& c : m.plan.output_copies)
    out += concat_text("  then copy ", c.value, " to output ", c.output, "\n");
  for (const auto* copies : {&m.plan.state_copies, &m.plan.remote_state_copies})
    for (const LirStateCopy& c : *copies)
      out += concat_text("  then copy ", c.value, " to state ", c.state, c.reason.empty() ? "" : ": ", c.reason, "\n");
  for (const LirUpdateCopy& c : m.plan.update_copies)
    out += concat_text("  ", c.node, " copies operand ", c.operand, " before it updates it: ", c.reason, "\n");
  for (const LirAlias& a : m.plan.aliases)
    out += concat_text("  output ", a.output,
                       a.refused.empty() ? " may be written over input " : " is apart from donated input ", a.input,
                       a.refused.empty() ? "" : ": ", a.refused, "\n");
  return out;
}

std::string inspect_copies(const LirModule& m) {
  std::string out;
  auto leaf = [&](OpKind kind, std::uint32_t index) {
    return concat_text("'", m.graph.leaf_name(m.graph.leaves(kind)[index]), "'");
  };
  for (const auto* copies : {&m.plan.state_copies, &m.plan.remote_state_copies})
    for (const LirStateCopy& c : *copies)
      out += concat_text("state ", leaf(OpKind::State, c.state), ": ", bytes_text(m.graph.shape(c.value).size_bytes()),
                         " are copied after each run: ", c.reason, "\n");
  for (const LirUpdateCopy& c : m.plan.update_copies)
    out +=
        concat_text(node_text(m.graph, c.node), ": ", bytes_text(m.graph.shape(Value(c.node, c.result)).size_bytes()),
                    " are copied before they are updated: ", c.reason, "\n");
  for (const LirAlias& a : m.plan.aliases)
    if (!a.refused.empty())
      out += concat_text("donated input ", leaf(OpKind::Input, a.input), ": output ", a.output,
                         " cannot be written over it: ", a.refused, "\n");
  return out;
}

std::string inspect_module(const GraphModule& m) {
  switch (m.stage()) {
    case GraphStage::Hir: return inspect_hir(m.hir());
    case GraphStage::Mir: return inspect_mir(m.mir());
    case GraphStage::Lir: return inspect_lir(m.lir());
  }
  return {};
}

}  // namespace rlx
