// Lifetimes of buffers, computed from the plan.
#include "rlx/report/plan_picture.h"

#include <algorithm>

#include "rlx/ir/inspect.h"
#include "rlx/ir/op_def.h"

namespace rlx {
namespace {

// How a buffer relates to others. The report's scripts use the numbers.
enum class How : int { Own = 0, InPlace = 1, View = 2 };

class PlanWriter {
 public:
  PlanWriter(JsonWriter& json, ReportRecords& records, ReportStrings& strings)
      : json_(json), records_(records), strings_(strings) {}

  void write(const LirModule& m, const std::string& name, std::int64_t body) {
    const LirBufferPlan& p = m.plan;
    json_.begin_object().member("name", name).member("body", body).member("opaque", p.opaque);
    json_.member("alignment", p.alignment).member("peak", p.live_peak_bytes).member("unshared", p.unshared_bytes);
    json_.key("arenas").begin_array();
    for (std::size_t a = 0; a < p.arenas.size(); ++a)
      json_.begin_array().value(p.arenas[a]).value(p.arena_device(a)).end_array();
    json_.end_array().key("steps").begin_array();
    for (const LirStep& s : p.schedule) json_.value(s.node.index);
    json_.end_array();
    write_devices(m);
    write_values(m);
    write_held(p);
    write_parts(m);
    json_.member("notes", inspect_plan_notes(m)).end_object();
    for (const LirBodies& b : p.bodies)
      for (std::size_t i = 0; i < b.modules.size(); ++i)
        write(b.modules[i], concat_text(name == "program" ? "" : name + " / ", "body ", i, " of ", b.node),
              records_.body(b.modules[i].graph));
    for (std::size_t part = 0; part < p.parts.size(); ++part)
      for (std::size_t i = 0; i < p.parts[part].modules.size(); ++i) {
        const LirModule& module = p.parts[part].modules[i];
        if (!module.plan.opaque || !module.plan.parts.empty())
          write(module, concat_text(name == "program" ? "" : name + " / ", "part ", part), records_.body(module.graph));
      }
  }

 private:
  void write_devices(const LirModule& m) {
    json_.key("devices").begin_array();
    std::uint32_t last = ~std::uint32_t{0};
    for (std::size_t s = 0; s < m.plan.schedule.size(); ++s) {
      const std::uint32_t device = m.plan.node_device(m.plan.schedule[s].node);
      if (device != last) json_.value(s).value(device);
      last = device;
    }
    json_.end_array();
  }

  // The value that owns the bytes of a view.
  static Value owner(const Graph& g, const LirBufferPlan& p, std::vector<std::vector<Value>>& owners, Value v) {
    const LirValue& at = p.at(v);
    Value& found = owners[v.node.index][v.result];
    found = v;
    if (!at.is_view) return found;
    for (Value in : g.node(v.node).inputs) {
      const LirValue& from = p.at(in);
      if (from.place == at.place && from.index == at.index) return found = owners[in.node.index][in.result];
    }
    return found;
  }

  void write_values(const LirModule& m) {
    const Graph& g = m.graph;
    const LirBufferPlan& p = m.plan;
    const bool planned = p.values.size() == g.num_nodes() && !p.opaque;
    const auto end = static_cast<std::int64_t>(p.schedule.size());
    const ValueSlots slot = planned ? ValueSlots(g) : ValueSlots();
    std::vector<std::int64_t> first(slot.size(), -1), last(slot.size(), -1);
    std::vector<Value> over(slot.size());
    std::vector<std::vector<Value>> owners;
    if (planned) {
      for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
        owners.emplace_back(g.nodes()[i].num_results());
        for (std::uint32_t r = 0; r < owners.back().size(); ++r) (void)owner(g, p, owners, Value(NodeId{i}, r));
      }
      const auto read = [&](Value v, std::int64_t step) {
        std::int64_t& at = last[slot(owners[v.node.index][v.result])];
        at = std::max(at, step);
      };
      for (std::int64_t s = 0; s < end; ++s) {
        const LirStep& step = p.schedule[static_cast<std::size_t>(s)];
        each_read(g, step, [&](Value v) { read(v, s); });
        for (std::uint32_t r = 0; r < g.node(step.node).num_results(); ++r) {
          first[slot(Value(step.node, r))] = s;
          read(Value(step.node, r), s);
        }
      }
      for (Value v : g.outputs()) read(v, end);
      for (const Graph::StateUpdate& u : g.state_updates()) read(u.value, end);
      find_in_place(g, p, owners, slot, last, over);
    }
    json_.key("buffers").begin_array();
    for (std::uint32_t i = 0; planned && i < g.num_nodes(); ++i)
      for (std::uint32_t r = 0; r < g.nodes()[i].num_results(); ++r) {
        const Value v(NodeId{i}, r);
        const LirValue& at = p.at(v);
        if (at.place != Place::Arena) continue;
        const std::uint32_t k = slot(owners[i][r]);  // a view extends the life of its owner
        const How how = at.is_view ? How::View : over[k].node.valid() ? How::InPlace : How::Own;
        json_.begin_array().value(i).value(r).value(at.index).value(at.offset).value(at.bytes);
        json_.value(first[k]).value(last[k]).value(static_cast<int>(how));
        if (how == How::InPlace) json_.value(over[k].node.index);
        if (how == How::View) json_.value(owners[i][r].node.index);
        json_.end_array();
      }
    json_.end_array().key("elsewhere").begin_array();
    const std::vector<NodeId> states = g.leaves(OpKind::State);
    for (std::uint32_t i = 0; planned && i < g.num_nodes(); ++i)
      for (std::uint32_t r = 0; r < g.nodes()[i].num_results(); ++r) {
        const LirValue& at = p.values[i][r];
        if (at.place == Place::Arena) continue;
        const std::uint32_t k = slot(owners[i][r]);
        json_.begin_array().value(i).value(r).value(strings_.id(place_name(g, states, at))).value(at.bytes);
        json_.value(first[k]).value(last[k]).end_array();
      }
    json_.end_array();
  }

  // Finds results written over an operand that this step reads last.
  static void find_in_place(const Graph& g, const LirBufferPlan& p, const std::vector<std::vector<Value>>& owners,
                            const ValueSlots& slot, const std::vector<std::int64_t>& last, std::vector<Value>& over) {
    for (std::size_t s = 0; s < p.schedule.size(); ++s) {
      const NodeId id = p.schedule[s].node;
      for (std::uint32_t r = 0; r < g.node(id).num_results(); ++r) {
        const LirValue& to = p.at(Value(id, r));
        if (to.is_view || to.bytes == 0) continue;
        for (Value in : g.node(id).inputs) {
          const LirValue& from = p.at(in);
          if (from.place != to.place || from.index != to.index || from.offset >= to.offset + to.bytes ||
              to.offset >= from.offset + from.bytes)
            continue;
          const Value owner = owners[in.node.index][in.result];
          if (last[slot(owner)] <= static_cast<std::int64_t>(s)) over[slot(Value(id, r))] = owner;
        }
      }
    }
  }

  static std::string place_name(const Graph& g, const std::vector<NodeId>& states, const LirValue& v) {
    switch (v.place) {
      case Place::Arena: return "arena";
      case Place::Input: return "input";
      case Place::Output: return concat_text("output ", v.index);
      case Place::Prepared: return "weight";
      case Place::Constant: return "constant";
      case Place::State:
        return concat_text("state '", v.index < states.size() ? g.leaf_name(states[v.index]) : "?", "'");
      case Place::None: return "nowhere";
    }
    return "?";
  }

  // Body memory: ranges that only the node uses while it runs.
  void write_held(const LirBufferPlan& p) {
    json_.key("held").begin_array();
    for (std::size_t s = 0; s < p.schedule.size(); ++s) {
      const LirBodies* b = p.bodies_of(p.schedule[s].node);
      if (!b) continue;
      for (const LirRange& r : b->ranges)
        json_.begin_array().value(b->node.index).value(r.arena).value(r.offset).value(r.bytes).value(s).end_array();
    }
    json_.end_array();
  }

  void write_parts(const LirModule& m) {
    json_.key("parts").begin_array();
    for (const LirPart& part : m.plan.parts) {
      json_.begin_array().value(part.device).value(part.host_controlled).begin_array();
      std::vector<NodeId> nodes;
      for (std::size_t i = 0; i < part.nodes.size(); ++i)
        if (part.host_controlled || !op_def(part.modules[0].graph.nodes()[i].kind()).is_leaf())
          nodes.push_back(part.nodes[i]);
      std::sort(nodes.begin(), nodes.end());
      nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
      for (NodeId id : nodes) json_.value(id.index);
      json_.end_array().end_array();
    }
    json_.end_array();
  }

  JsonWriter& json_;
  ReportRecords& records_;
  ReportStrings& strings_;
};

}  // namespace

void write_plans(JsonWriter& json, const LirModule& m, ReportRecords& records, ReportStrings& strings) {
  PlanWriter(json, records, strings).write(m, "program", -1);
}

}  // namespace rlx
