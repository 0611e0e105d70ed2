// Every edit of one field of a planned module: numbers, flags, and elements of lists that are dropped, doubled or
// swapped.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/module.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"

namespace rlx::test {

/// Makes one edit after the other in `module`, calls `visit(text of the edit)`, and undoes it. `visit` returns false to
/// stop.
class PlanEdits {
 public:
  using Visit = std::function<void(const std::string&)>;
  PlanEdits(LirModule& module, Visit visit) : visit_(std::move(visit)) {
    plan(module, "");
    list("others", module.others, DeviceId{Device::Cpu, 0});
    list("ranges", module.ranges, StepRange{0, 1});
    edit("symbols", module.symbols, SymbolBinding{{"n", 3}}, "n = 3");
  }

 private:
  template <class T>
  void edit(const std::string& name, T& field, T now, const std::string& text) {
    if (field == now) return;
    std::swap(field, now);
    visit_(concat_text(name, " = ", text));
    std::swap(field, now);
  }
  template <std::unsigned_integral T>
  void number(const std::string& name, T& field, std::initializer_list<std::type_identity_t<T>> more = {}) {
    constexpr T kMost = std::numeric_limits<T>::max();
    for (T now :
         {T(0), T(1), T(field + 1), T(field - 1), T(field + 64), T(field * 2), T(T(1) << (sizeof(T) * 5)), kMost})
      edit(name, field, now, concat_text(now));
    for (T now : more) edit(name, field, now, concat_text(now));
  }
  void number(const std::string& name, std::int32_t& field) {
    for (std::int32_t now : {0, -1, field + 1, field - 1, 1 << 30}) edit(name, field, now, concat_text(now));
  }
  void number(const std::string& name, std::int64_t& field) {
    for (std::int64_t now : {std::int64_t{0}, std::int64_t{-1}, field + 1, field * 2, std::int64_t{1} << 40})
      edit(name, field, now, concat_text(now));
  }
  void flag(const std::string& name, bool& field) { edit(name, field, !field, field ? "false" : "true"); }
  void value(const std::string& name, Value& v) {
    number(name + ".node", v.node.index);
    number(name + ".result", v.result);
  }
  void text(const std::string& name, std::string& field) {
    edit(name, field, field.empty() ? std::string("for no reason") : std::string(), field.empty() ? "a text" : "empty");
  }
  void optional(const std::string& name, std::optional<std::uint32_t>& field) {
    if (field) {
      number(name, *field);
      edit(name, field, {}, "none");
    } else {
      for (std::uint32_t now : {0U, 1U, 9U}) edit(name, field, std::optional(now), concat_text(now));
    }
  }
  // Drops, doubles and swaps elements; appends `more`.
  template <class T>
  void elements(const std::string& name, std::vector<T>& v) {
    for (std::size_t i = 0; i < v.size(); ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      std::vector<T> now = v;
      now.erase(now.begin() + at);
      trade(concat_text(name, " without ", i), v, now);
      now = v;
      now.insert(now.begin() + at, v[i]);
      trade(concat_text(name, " with two of ", i), v, now);
      if (i + 1 == v.size()) continue;
      now = v;
      std::swap(now[i], now[i + 1]);
      trade(concat_text(name, " with ", i, " and ", i + 1, " swapped"), v, now);
    }
  }
  template <class T>
  void trade(const std::string& what, std::vector<T>& v, std::vector<T>& now) {
    v.swap(now);
    visit_(what);
    v.swap(now);
  }
  template <class T>
  void list(const std::string& name, std::vector<T>& v, const T& more) {
    elements(name, v);
    std::vector<T> now = v;
    now.push_back(more);
    trade(name + " with one more", v, now);
  }

  void planned_value(const std::string& name, LirValue& v) {
    for (int place = 0; place <= static_cast<int>(Place::None) + 1; ++place)
      edit(name + ".place", v.place, static_cast<Place>(place), concat_text(place));
    number(name + ".index", v.index, {9});
    number(name + ".offset", v.offset, {v.offset + 4, v.offset + 4096, v.offset - 64});
    number(name + ".bytes", v.bytes, {v.bytes / 2});
    flag(name + ".is_view", v.is_view);
    for (std::size_t i = 0; i < v.strides.size(); ++i) number(concat_text(name, ".strides[", i, "]"), v.strides[i]);
    if (v.strides.empty()) {
      for (std::size_t rank : {1, 2, 3}) {
        edit(name + ".strides", v.strides, std::vector<std::int64_t>(rank, 0), concat_text(rank, " zeros"));
        edit(name + ".strides", v.strides, std::vector<std::int64_t>(rank, 1), concat_text(rank, " ones"));
      }
    } else {
      edit(name + ".strides", v.strides, {}, "none");
    }
  }

  void step(const std::string& name, LirStep& s) {
    number(name + ".node", s.node.index);
    list(name + ".predecessors", s.predecessors, 0);
    for (std::size_t i = 0; i < s.predecessors.size(); ++i)
      number(concat_text(name, ".predecessors[", i, "]"), s.predecessors[i]);
    for (std::uint32_t bit : {0U, 1U, 2U, 31U})
      edit(name + ".encoded", s.encoded, s.encoded ^ 1U << bit, concat_text("bit ", bit));
  }

  void bodies(const std::string& name, LirBodies& b) {
    number(name + ".node", b.node.index);
    for (std::size_t i = 0; i < b.modules.size(); ++i) plan(b.modules[i], concat_text(name, ".modules[", i, "]."));
    elements(name + ".modules", b.modules);
    list(name + ".ranges", b.ranges, LirRange{});
    for (std::size_t i = 0; i < b.ranges.size(); ++i) {
      const std::string range = concat_text(name, ".ranges[", i, "]");
      number(range + ".arena", b.ranges[i].arena);
      number(range + ".offset", b.ranges[i].offset);
      number(range + ".bytes", b.ranges[i].bytes);
    }
    list(name + ".arenas", b.arenas, {});
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      list(concat_text(name, ".arenas[", i, "]"), b.arenas[i], 0U);
      for (std::uint32_t& range : b.arenas[i]) number(concat_text(name, ".arenas[", i, "][..]"), range);
    }
    list(name + ".second", b.second, {});
    for (auto& range : b.second) optional(name + ".second[..]", range);
    list(name + ".reasons", b.reasons, {});
    list(name + ".shared", b.shared, {});
    for (LirBodies::Shared& s : b.shared) {
      number(name + ".shared[..].operand", s.operand);
      number(name + ".shared[..].result", s.result);
      text(name + ".shared[..].refused", s.refused);
    }
    flag(name + ".host_controlled", b.host_controlled);
    list(name + ".rows", b.rows, {});
    for (auto& range : b.rows) optional(name + ".rows[..]", range);
    optional(name + ".decision", b.decision);
  }

  void plan(LirModule& m, const std::string& in) {
    LirBufferPlan& p = m.plan;
    list(in + "arenas", p.arenas, std::size_t{4096});
    for (std::size_t i = 0; i < p.arenas.size(); ++i)
      number(concat_text(in, "arenas[", i, "]"), p.arenas[i], {p.arenas[i] - 64});
    list(in + "arena_devices", p.arena_devices, 1U);
    for (std::uint32_t& d : p.arena_devices) number(in + "arena_devices[..]", d);
    edit(in + "node_devices", p.node_devices, std::vector<std::uint32_t>(m.graph.num_nodes(), 1), "all 1");
    for (std::size_t i = 0; i < p.node_devices.size(); ++i)
      number(concat_text(in, "node_devices[", i, "]"), p.node_devices[i]);
    number(in + "arena_bytes", p.arena_bytes);
    number(in + "alignment", p.alignment);
    number(in + "live_peak_bytes", p.live_peak_bytes);
    number(in + "unshared_bytes", p.unshared_bytes);
    list(in + "values", p.values, {});
    for (std::size_t i = 0; i < p.values.size(); ++i) {
      list(concat_text(in, "values[", i, "]"), p.values[i], {});
      for (std::size_t r = 0; r < p.values[i].size(); ++r)
        planned_value(concat_text(in, "values[", i, "][", r, "]"), p.values[i][r]);
    }
    list(in + "schedule", p.schedule, LirStep{NodeId{0}, {}});
    for (std::size_t i = 0; i < p.schedule.size(); ++i) step(concat_text(in, "schedule[", i, "]"), p.schedule[i]);
    list(in + "output_copies", p.output_copies, LirOutputCopy{Value(NodeId{0}), 0});
    for (LirOutputCopy& c : p.output_copies) {
      value(in + "output_copies[..].value", c.value);
      number(in + "output_copies[..].output", c.output);
    }
    list(in + "state_copies", p.state_copies, LirStateCopy{Value(NodeId{0}), 0});
    list(in + "remote_state_copies", p.remote_state_copies, LirStateCopy{Value(NodeId{0}), 0});
    for (auto* copies : {&p.state_copies, &p.remote_state_copies})
      for (LirStateCopy& c : *copies) {
        value(in + "state_copies[..].value", c.value);
        number(in + "state_copies[..].state", c.state);
        text(in + "state_copies[..].reason", c.reason);
      }
    list(in + "update_copies", p.update_copies, LirUpdateCopy{NodeId{0}});
    for (LirUpdateCopy& c : p.update_copies) {
      number(in + "update_copies[..].node", c.node.index);
      number(in + "update_copies[..].operand", c.operand);
      number(in + "update_copies[..].result", c.result);
    }
    list(in + "aliases", p.aliases, LirAlias{});
    for (LirAlias& a : p.aliases) {
      number(in + "aliases[..].input", a.input);
      number(in + "aliases[..].output", a.output);
      text(in + "aliases[..].refused", a.refused);
    }
    for (std::size_t i = 0; i < p.bodies.size(); ++i) bodies(concat_text(in, "bodies[", i, "]"), p.bodies[i]);
    elements(in + "bodies", p.bodies);
    flag(in + "opaque", p.opaque);
    list(in + "parts", p.parts, LirPart{});
    for (std::size_t i = 0; i < p.parts.size(); ++i) part(concat_text(in, "parts[", i, "]"), p.parts[i]);
  }

  void part(const std::string& name, LirPart& p) {
    number(name + ".device", p.device);
    flag(name + ".host_controlled", p.host_controlled);
    elements(name + ".modules", p.modules);
    for (std::size_t i = 0; i < p.modules.size(); ++i) plan(p.modules[i], concat_text(name, ".modules[", i, "]."));
    elements(name + ".nodes", p.nodes);
    for (NodeId& id : p.nodes) number(name + ".nodes[..]", id.index);
    elements(name + ".inputs", p.inputs);
    for (Value& v : p.inputs) value(name + ".inputs[..]", v);
    elements(name + ".outputs", p.outputs);
    for (Value& v : p.outputs) value(name + ".outputs[..]", v);
    list(name + ".params", p.params, 0U);
    for (std::uint32_t& param : p.params) number(name + ".params[..]", param);
  }

  Visit visit_;
};

/// A planned program and what it gives.
struct Planned {
  Session session;
  LirModule lir;
  NamedTensors leaves;
  std::vector<Tensor> want;

  Planned(Session s, LirModule module, NamedTensors values)
      : session(std::move(s)), lir(std::move(module)), leaves(std::move(values)), want(run(lir)) {}

  /// The outputs of two runs of a module, and the states after them.
  std::vector<Tensor> run(LirModule module) const {
    CompiledGraph f = session.compile_module(GraphModule(std::move(module)));
    NamedTensors inputs;
    for (const IoInfo& p : f.params()) f.set_param(p.name, leaves.at(p.name));
    for (const IoInfo& i : f.inputs()) inputs.emplace(i.name, leaves.at(i.name));
    std::vector<Tensor> out = f.run_typed(inputs);
    for (Tensor& t : f.run_typed(inputs)) out.push_back(std::move(t));
    for (const IoInfo& s : f.states()) out.push_back(f.read_state(s.name));
    return out;
  }
};

struct EditCounts {
  int edits = 0, refused = 0, right = 0;
};

/// Makes every `every`-th edit of a plan, from the edit `first` on. Each is refused by an error about the module, or
/// gives the same results.
inline void try_edits(const Planned& p, std::size_t first, std::size_t every, EditCounts& counts) {
  LirModule edited = p.lir;
  std::size_t at = 0;
  PlanEdits(edited, [&](const std::string& what) {
    if (at++ % every != first % every) return;
    INFO(what);
    ++counts.edits;
    std::vector<Tensor> got;
    const std::string refused = error_text([&] { got = p.run(edited); });
    if (refused.empty()) {
      ++counts.right;
      bool same = got.size() == p.want.size();
      for (std::size_t i = 0; same && i < got.size(); ++i) same = got[i].identical(p.want[i]);
      CHECK(same);
      return;
    }
    ++counts.refused;
    CAPTURE(refused);
    CHECK(contains(refused, "the LIR module"));
    CHECK(!contains(refused, "please report"));
  });
}

}  // namespace rlx::test
