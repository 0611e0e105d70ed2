// Programs whose first device is opaque and does not run the whole graph. Each partition is a graph of its own, and
// whole values are copied to the devices that read them.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "rlx/exec/executor.h"
#include "rlx/exec/fetching.h"
#include "rlx/exec/host_control_values.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/tensor/sole_owner.h"

namespace rlx {
namespace {

class ValueExecutable final : public PartitionedExecutable {
 public:
  ValueExecutable(LirModule lir, Partitioning over) : PartitionedExecutable(std::move(over)), lir_(std::move(lir)) {
    const auto& [partitions, devices, home] = partitioning;
    for (const LirPart& part : lir_.plan.parts) {
      auto& made = modules.emplace_back();
      for (const LirModule& m : part.modules)  // without branches and loops of the host it is a program of one device
        made.push_back(part.host_controlled ? compile_body(m, devices, part.device)
                                            : compile_program(m, std::span(devices).subspan(part.device, 1)));
      for (std::uint32_t i = 0; i < part.nodes.size(); ++i)
        if (part.host_controlled || part.modules[0].graph.nodes()[i].kind() != OpKind::Input)
          places_.try_emplace(part.nodes[i], modules.size() - 1, i);
    }
  }

  const LirModule& lir() const override { return lir_; }
  std::unique_ptr<Instance> bind(OpenDevice& device, const LirModule& program,
                                 std::span<const BufferView> arenas) const override;
  std::string kernel_name(NodeId node) const override {
    const auto place = places_.find(node);
    if (place != places_.end()) {
      const auto [p, i] = place->second;
      const LirPart& part = lir_.plan.parts[p];
      if (part.host_controlled) return "host-controlled";
      const std::string name = modules[p][0]->kernel_name(NodeId{i});
      if (!part.modules[0].plan.opaque) return name;
      return concat_text(name, ", with its whole partition: ", part.modules[0].graph.num_nodes(), " nodes");
    }
    return "none";
  }

 private:
  LirModule lir_;
  std::map<NodeId, std::pair<std::size_t, std::uint32_t>> places_;  // node -> partition, and the node in its graph
};

class ValueInstance final : public PartitionedInstance {
 public:
  ValueInstance(const ValueExecutable& exe, OpenDevice& device, const LirModule& program)
      : PartitionedInstance(exe, program, device), sides_(streams_.count()) {
    number_ends();
    for (std::size_t p = 0; p < lir_.plan.parts.size(); ++p) {
      parts_.push_back(bind_part(lir_.plan.parts[p], exe.modules[p]));
      for (std::uint32_t v : parts_[p].inputs) values_[v].last_part = p;
    }
    for (const Root& r : roots(lir_.graph)) values_[number(r.value)].last_part = kBehindAll;
    for (std::uint32_t v : inputs_)
      if (!is_donated(values_[v].last_part, v)) values_[v].kept_on = home_;
    for (const NewState& s : new_states_)
      if (!is_donated(values_[s.old].last_part, s.old)) values_[s.old].kept_on = state_devices_[s.state];
  }

 private:
  // The caller's stream follows the last writers of their states. Other devices need no order: an order also takes over
  // failures, and a host's stream waits for it.
  void follow_caller() override {
    for (std::uint32_t d : state_devices_) streams_.order(home_, d);
  }
  void change_bindings() override {
    for (Side& s : sides_) s.weights.clear();
  }
  // Takes the buffers of inputs and states for the run.
  void begin() override {
    const auto take = [&](std::uint32_t value, std::uint32_t device, const RunSlot& slot, bool donated) {
      values_[value].held[device] = *slot.buffer_slot;
      if (donated) slot.buffer_slot->reset();
    };
    for (std::size_t i = 0; i < inputs_.size(); ++i) take(inputs_[i], home_, run_->inputs[i], run_->inputs[i].donated);
    for (std::size_t s = 0; s < states_.size(); ++s) take(states_[s], state_devices_[s], run_->states[s], false);
    for (const NewState& s : new_states_)
      if (run_->states[s.state].donated) run_->states[s.state].buffer_slot->reset();
  }
  void run_partition(std::size_t p, const StepRange&) override {
    Part& part = parts_[p];
    try {
      if (part.host_controlled)
        drive(p);
      else
        run_straight(p);
    } catch (...) {  // values that the partition did not consume are unchanged
      for (std::size_t i = 0; i < part.taken.size(); ++i)
        if (part.taken[i]) values_[part.inputs[i]].held[partitions_[p].device] = std::move(part.taken[i]);
      throw;
    }
    for (std::size_t o = 0; o < part.outputs.size(); ++o)
      values_[part.outputs[o]].held[partitions_[p].device] = std::move(part.made[o]);
    let_go_after(p);
  }
  // All new values are made before the first is replaced. States may exchange values, and a failure replaces none.
  void finish(const StepRange&) override {
    for (std::size_t o = 0; o < run_->outputs.size(); ++o) made_outputs_.push_back(brought(outputs_[o], home_));
    for (const NewState& s : new_states_) made_states_.push_back(brought(s.value, state_devices_[s.state]));
  }
  void commit() override {
    for (std::size_t o = 0; o < made_outputs_.size(); ++o) *run_->outputs[o].buffer_slot = std::move(made_outputs_[o]);
    for (std::size_t s = 0; s < made_states_.size(); ++s)
      *run_->states[new_states_[s].state].buffer_slot = std::move(made_states_[s]);
  }
  // After a failed run the buffers that no partition consumed go back to their slots.
  void release() override {
    const auto give_back = [&](const RunSlot& slot, std::uint32_t value, std::uint32_t device) {
      if (!*slot.buffer_slot) *slot.buffer_slot = values_[value].held[device];
    };
    if (!streams_.ended()) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) give_back(run_->inputs[i], inputs_[i], home_);
      for (const NewState& s : new_states_) give_back(run_->states[s.state], s.old, state_devices_[s.state]);
    }
    for (Crossing& c : values_) std::fill(c.held.begin(), c.held.end(), nullptr);
    for (Part& p : parts_) p.taken.clear(), p.made.clear();
    made_outputs_.clear(), made_states_.clear();
  }

  static constexpr std::size_t kBehindAll = ~std::size_t{0};

  struct Side {
    std::map<std::uint32_t, HeldValue> weights;  // copies of params, by number of the value; kept until the weights
                                                 // change
    std::map<std::uint32_t, HeldValue> constants;
  };
  /// A value at a boundary: an operand or result of a partition, or a leaf or root of the program.
  struct Crossing {
    Value value;
    Shape shape;
    std::optional<std::uint32_t> param;  // for a param: its number
    const Tensor* constant = nullptr;
    std::size_t last_part = 0;
    std::optional<std::uint32_t> kept_on;  // for an input or old state that no partition overwrites: its device. The
                                           // buffer is kept there during the run and restored if the run fails
    std::vector<HeldValue> held;           // by device, in this run
  };
  struct Part {
    std::unique_ptr<Instance> bound;  // null: host-controlled
    std::unique_ptr<HostControlledValues> host_controlled;
    std::vector<BufferView> arenas;
    std::vector<HeldValue> memory;                       // memory of the arenas
    std::vector<std::uint32_t> inputs, outputs, params;  // numbers of values
    std::vector<bool> donates;                           // inputs that an output may be written over
    std::vector<RunSlot> in, out;
    std::vector<HeldValue> taken, made;
    std::vector<BufferView> weights;
  };
  struct NewState {
    std::size_t state = 0;
    std::uint32_t value = 0, old = 0;
  };

  std::uint32_t number(Value v) {
    const auto [it, added] = numbers_.try_emplace(v, static_cast<std::uint32_t>(values_.size()));
    if (!added) return it->second;
    Crossing c;
    c.value = v;
    c.shape = lir_.graph.shape(v);
    if (const auto* constant = lir_.graph.node(v.node).op.get_if<ops::Constant>()) c.constant = &constant->value;
    c.held.resize(sides_.size());
    values_.push_back(std::move(c));
    return it->second;
  }

  void number_ends() {
    const Graph& g = lir_.graph;
    for (NodeId id : g.leaves(OpKind::Input)) inputs_.push_back(number(id));
    const std::vector<NodeId> states = g.leaves(OpKind::State), params = g.leaves(OpKind::Param);
    for (NodeId id : states) {
      states_.push_back(number(id));
      state_devices_.push_back(lir_.plan.node_device(id));
      streams_.open(state_devices_.back());
    }
    for (std::uint32_t p = 0; p < params.size(); ++p) {
      params_.push_back(number(params[p]));
      values_[params_.back()].param = p;
    }
    for (Value v : g.outputs()) outputs_.push_back(number(v));
    std::map<NodeId, std::size_t> index;
    for (std::size_t s = 0; s < states.size(); ++s) index.emplace(states[s], s);
    for (const Graph::StateUpdate& u : g.state_updates()) {
      const std::size_t s = index.at(g.find_leaf(OpKind::State, u.name));
      new_states_.push_back({s, number(u.value), states_[s]});
    }
  }

  Part bind_part(const LirPart& plan, const std::vector<std::unique_ptr<const Executable>>& code) {
    Part part;
    OpenDevice& device = streams_.device(plan.device);
    streams_.open(plan.device);
    for (Value v : plan.inputs) part.inputs.push_back(number(v));
    for (Value v : plan.outputs) part.outputs.push_back(number(v));
    for (std::uint32_t p : plan.params) part.params.push_back(params_[p]);
    part.donates.resize(plan.inputs.size());
    if (plan.host_controlled) {
      std::vector<std::unique_ptr<Instance>> bodies;
      for (std::size_t b = 0; b < code.size(); ++b) bodies.push_back(code[b]->bind(device, plan.modules[b], {}));
      part.host_controlled = std::make_unique<HostControlledValues>(lir_.graph, plan, std::move(bodies));
      return part;
    }
    const LirModule& m = plan.modules[0];
    for (const LirAlias& a : m.plan.aliases)
      if (a.refused.empty()) part.donates[a.input] = true;
    for (std::size_t bytes : m.plan.arenas) {
      part.memory.push_back(device.allocate(std::max<std::size_t>(64, bytes), BufferUse::Arena));
      part.arenas.emplace_back(*part.memory.back(), 0, bytes);
    }
    part.bound = code[0]->bind(device, m, part.arenas);
    return part;
  }

  HeldValue room_on_host(std::uint32_t device, const Shape& shape) {
    return streams_.device(device).allocate(std::max<std::size_t>(64, shape.size_bytes()), BufferUse::Slots);
  }
  // Lets go of the values that partition `p` is the last to read.
  void let_go_after(std::size_t p) {
    for (std::uint32_t v : parts_[p].inputs) {
      Crossing& c = values_[v];
      if (c.last_part != p) continue;
      for (std::uint32_t d = 0; d < c.held.size(); ++d)
        if (d != c.kept_on) c.held[d].reset();
    }
  }
  // True when partition `p`, the last reader of the value, may overwrite it.
  bool is_donated(std::size_t p, std::uint32_t v) const {
    if (p >= parts_.size()) return false;
    const Part& part = parts_[p];
    for (std::size_t i = 0; i < part.inputs.size(); ++i)
      if (part.inputs[i] == v && (part.host_controlled ? part.host_controlled->donates(i) : part.donates[i]))
        return true;
    return false;
  }

  // The value on a device. Copies it there if it is on another device.
  HeldValue brought(std::uint32_t v, std::uint32_t device) {
    Crossing& c = values_[v];
    HeldValue& there = c.param ? sides_[device].weights[v] : c.constant ? sides_[device].constants[v] : c.held[device];
    if (there) return there;
    if (c.param && device == home_) return there = run_->weights[*c.param].buffer->shared_from_this();
    if (c.constant) return there = put(c.shape, c.constant->data(), device);
    if (c.param) return there = copied(*brought(v, home_), home_, c.shape, device);
    for (std::uint32_t d = 0; d < c.held.size(); ++d)
      if (c.held[d]) return there = copied(*c.held[d], d, c.shape, device);
    check(false, concat_text("no partition has computed ", c.value));
    return nullptr;
  }

  HeldValue put(const Shape& shape, const std::byte* data, std::uint32_t device) {
    if (streams_.on_host(device)) {
      HeldValue to = room_on_host(device, shape);
      streams_.of(device).upload({data, shape.size_bytes()}, BufferView(*to, 0, shape.size_bytes()));
      return to;
    }
    const std::vector<std::int64_t> dims = shape.static_dims();
    return streams_.device(device).put(view_of(shape, dims, data), nullptr, BufferUse::Values, streams_.of(device));
  }

  // Copies through the host, whatever the devices are.
  HeldValue copied(Buffer& from, std::uint32_t source, const Shape& shape, std::uint32_t target) {
    if (streams_.on_host(source)) return put(shape, from.host(), target);
    HeldValue to = streams_.on_host(target) ? room_on_host(target, shape) : nullptr;
    const std::size_t bytes = shape.size_bytes();
    if (!to) staging_.resize(std::max(staging_.size(), bytes));
    std::byte* const on_way = to ? to->host() : staging_.data();
    if (bytes != 0) {
      Fetching fetching(streams_.of(source));
      const std::vector<std::int64_t> dims = shape.static_dims();
      streams_.device(source).get(from, {on_way, shape.dtype(), dims, bytes}, streams_.of(source));
      fetching.finish(streams_.of(source).record());
    }
    return to ? to : put(shape, on_way, target);
  }

  // Copies the operands of a partition to its device. An operand without a later reader is donated to the partition.
  void take_operands(std::size_t p) {
    Part& part = parts_[p];
    const std::uint32_t device = lir_.plan.parts[p].device;
    part.taken.clear();
    for (std::uint32_t v : part.inputs) part.taken.push_back(brought(v, device));
    let_go_after(p);
    part.made.assign(part.outputs.size(), nullptr);
  }

  void run_straight(std::size_t p) {
    Part& part = parts_[p];
    const LirPart& plan = lir_.plan.parts[p];
    const bool host = streams_.on_host(plan.device);
    take_operands(p);
    part.in.clear(), part.out.clear(), part.weights.clear();
    const auto view = [&](Buffer& b, std::uint32_t v) { return BufferView(b, 0, values_[v].shape.size_bytes()); };
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      if (host)
        part.in.push_back({view(*part.taken[i], part.inputs[i])});
      else
        part.in.push_back({{}, &part.taken[i], part.donates[i] && sole_owner(part.taken[i])});
    }
    for (std::size_t o = 0; o < part.outputs.size(); ++o) {
      if (host) part.made[o] = room_on_host(plan.device, values_[part.outputs[o]].shape);
      part.out.push_back(host ? RunSlot{view(*part.made[o], part.outputs[o])} : RunSlot{{}, &part.made[o]});
    }
    for (std::uint32_t v : part.params) part.weights.push_back(view(*brought(v, plan.device), v));
    RunArguments a;
    a.inputs = part.in, a.outputs = part.out, a.weights = part.weights, a.binding_generation = run_->binding_generation;
    submit_to(plan.device, *part.bound, a, "part ", p, plan.nodes);
    part.taken.clear();
  }

  void drive(std::size_t p) {
    Part& part = parts_[p];
    const std::uint32_t device = partitions_[p].device;
    run_by_host(lir_.plan.parts[p].nodes[0], device, [&] {
      take_operands(p);
      part.made = part.host_controlled->run(part.taken, streams_.device(device), streams_.of(device));
      part.taken.clear();
    });
  }

  std::vector<Side> sides_;  // by device
  std::vector<Crossing> values_;
  std::map<Value, std::uint32_t> numbers_;
  std::vector<std::uint32_t> inputs_, states_, params_, outputs_;  // numbers of values
  std::vector<std::uint32_t> state_devices_;
  std::vector<NewState> new_states_;
  std::vector<Part> parts_;
  std::vector<HeldValue> made_outputs_, made_states_;  // of the current run; the second by entry of `new_states_`
};

std::unique_ptr<Instance> ValueExecutable::bind(OpenDevice& device, const LirModule& program,
                                                std::span<const BufferView>) const {
  return std::make_unique<ValueInstance>(*this, device, program);
}

}  // namespace

std::unique_ptr<const Executable> make_value_program(LirModule lir, Partitioning over) {
  return std::make_unique<const ValueExecutable>(std::move(lir), std::move(over));
}

}  // namespace rlx
