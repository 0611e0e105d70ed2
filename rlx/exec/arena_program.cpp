// Programs whose values have planned places: what each device compiles, and copies of values to the devices that read
// them.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "rlx/exec/executor.h"
#include "rlx/exec/fetching.h"
#include "rlx/exec/host_control.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx {
namespace {

// The copies after the last step run on the first device, whatever the device of the last step.
void drop_final_copies(LirBufferPlan& plan) { plan.output_copies.clear(), plan.state_copies.clear(); }

class ArenaExecutable final : public PartitionedExecutable {
 public:
  ArenaExecutable(LirModule lir, Partitioning over) : PartitionedExecutable(std::move(over)) {
    const auto& [partitions, devices, home] = partitioning;
    for (const LirBodies& b : lir.plan.bodies) {
      auto& made = modules.emplace_back();
      if (!b.host_controlled) continue;
      for (const LirModule& m : b.modules) made.push_back(compile_body(m, devices, lir.plan.node_device(b.node)));
    }
    by_device.resize(devices.size());
    for (std::uint32_t d = 0; d < devices.size(); ++d) {
      std::vector<StepRange> ranges;
      for (const Partition& p : partitions)
        if (p.kind == Partition::Kind::Straight && p.device == d) ranges.push_back(p.steps);
      const std::size_t steps = lir.plan.schedule.size();
      if (d == home && (ranges.empty() || ranges.back().end != steps)) ranges.push_back({steps, steps});
      if (ranges.empty()) continue;
      LirModule part;
      part.graph = lir.graph;
      part.plan = lir.plan;
      if (d == home)
        part.prepare = lir.prepare;
      else
        drop_final_copies(part.plan);
      part.others = lir.others;
      part.ranges = std::move(ranges);
      by_device[d] = devices[d].backend->compile_lir(std::move(part), devices[d].options);
    }
    granule = devices[home].backend->target(devices[home].options)->limits().copy_granule;
  }

  const LirModule& lir() const override { return by_device[partitioning.home]->lir(); }
  void encode(NodeId node, std::size_t source, const ColumnRange& columns, DType dtype, const std::byte* values,
              std::byte* layout) const override {
    by_device[partitioning.home]->encode(node, source, columns, dtype, values, layout);
  }
  void decode(NodeId node, std::size_t source, const std::byte* layout, DType dtype, std::byte* values) const override {
    by_device[partitioning.home]->decode(node, source, layout, dtype, values);
  }
  std::unique_ptr<Instance> bind(OpenDevice& device, const LirModule& program,
                                 std::span<const BufferView> arenas) const override;
  std::string kernel_name(NodeId node) const override {
    const LirBufferPlan& plan = lir().plan;
    if (const LirBodies* b = plan.bodies_of(node); b && b->host_controlled) return "host-controlled";
    if (lir().graph.node(node).kind() == OpKind::Transfer) return "copy between devices";
    const auto& code = by_device[plan.node_device(node)];
    return code ? code->kernel_name(node) : "none";
  }

  std::size_t granule = 1;  // of copies on the first device
};

class ArenaInstance final : public PartitionedInstance {
 public:
  ArenaInstance(const ArenaExecutable& exe, OpenDevice& device, const LirModule& program,
                std::span<const BufferView> arenas)
      : PartitionedInstance(exe, program, device),
        exe_(exe),
        arenas_(arenas.begin(), arenas.end()),
        sides_(streams_.count()) {
    for (std::uint32_t d = 0; d < sides_.size(); ++d)
      if (uses(d)) streams_.open(d);
    for (std::uint32_t d = 0; d < sides_.size(); ++d) {
      if (!exe.by_device[d]) continue;
      std::vector<BufferView> own;
      for (std::size_t a = 0; a < arenas_.size(); ++a)
        own.push_back(lir_.plan.arena_device(a) == d ? arenas_[a] : BufferView());
      if (d != home_ && !beside_ && !(lir_.plan.output_copies.empty() && lir_.plan.state_copies.empty())) {
        beside_.emplace(lir_);
        drop_final_copies(beside_->plan);
      }
      sides_[d].bound = exe.by_device[d]->bind(streams_.device(d), d != home_ && beside_ ? *beside_ : lir_, own);
    }
    for (std::size_t k = 0; k < lir_.plan.bodies.size(); ++k) host_controlled_.push_back(bind_host_controlled(k));
    for (const LirStep& step : lir_.plan.schedule)
      each_read(lir_.graph, step, [&](Value v) {  // a weight's view is read on the device of the view
        note_weight(v, lir_.plan.node_device(lir_.plan.at(v).is_view ? v.node : step.node));
      });
    for (NodeId id : lir_.graph.leaves(OpKind::State)) state_devices_.push_back(lir_.plan.node_device(id));
    for (const LirStateCopy& c : lir_.plan.remote_state_copies) note_weight(c.value, state_devices_[c.state]);
  }

 private:
  // The caller's stream follows the last writers of their states and the last users of their arenas.
  void follow_caller() override {
    each_open([&](std::uint32_t d) { streams_.order(home_, d); });
  }
  void change_bindings() override {
    divide_states();
    bring_weights();
  }
  void run_partition(std::size_t p, const StepRange& steps) override {
    const Partition& partition = partitions_[p];
    if (partition.kind == Partition::Kind::Straight) return run_straight(partition.device, steps);
    const NodeId id = lir_.plan.schedule[steps.begin].node;
    run_by_host(id, partition.device, [&] { partition.kind == Partition::Kind::Copy ? transfer(id) : drive(id); });
  }
  void finish(const StepRange& range) override {
    if (range.end != steps_) return;
    // The code of the first device makes the copies after the last step, with the last partition if that is its own.
    const bool copied = range.begin < steps_ && partitions_.back().kind == Partition::Kind::Straight &&
                        partitions_.back().device == home_;
    if (!copied) run_straight(home_, {steps_, steps_});
    copy_remote_states();
  }

  /// The parts of the program on one device.
  struct Side {
    std::unique_ptr<Instance> bound;
    std::vector<RunSlot> states;           // states of other devices are empty
    std::set<std::uint32_t> read_weights;  // empty for the first device
    std::vector<BufferView> weights;       // empty for the first device; copies
    std::map<std::uint32_t, std::shared_ptr<Buffer>> weight_buffers;
    std::map<std::uint32_t, BufferView> constants;  // constants that copies and bodies read, by node
    BufferView nothing;                             // for values without bytes
  };

  void note_weight(Value v, std::uint32_t device) {
    if (const LirValue& lv = lir_.plan.at(v); lv.place == Place::Prepared && device != home_)
      sides_[device].read_weights.insert(lv.index);
  }
  void divide_states() {
    for (Side& s : sides_) s.states.assign(run_->states.size(), {});
    for (std::size_t i = 0; i < run_->states.size(); ++i) sides_[state_devices_[i]].states[i] = run_->states[i];
  }

  // Copies new values of states on other devices that are not made in place. A new value that lies in a state itself is
  // copied aside first, because states may exchange values.
  void copy_remote_states() {
    std::vector<BufferView> values;
    for (std::size_t k = 0; k < lir_.plan.remote_state_copies.size(); ++k) {
      const LirStateCopy& c = lir_.plan.remote_state_copies[k];
      const std::uint32_t device = state_devices_[c.state];
      values.push_back(place(c.value, device));
      if (lir_.plan.at(c.value).place != Place::State || values.back().bytes == 0) continue;
      BufferView& aside = aside_[k];
      if (!aside.buffer) aside = take(device, values.back().bytes, BufferUse::Arena);
      streams_.of(device).copy(values.back(), aside);
      values.back() = aside;
    }
    for (std::size_t k = 0; k < values.size(); ++k) {
      const LirStateCopy& c = lir_.plan.remote_state_copies[k];
      if (values[k].bytes == 0) continue;
      Stream& stream = streams_.of(state_devices_[c.state]);
      const BufferView to = part_of(run_->states[c.state].view, 0, values[k].bytes);
      if (values[k].buffer)
        stream.copy(values[k], to);
      else  // a constant or an unchanged weight of the host
        stream.upload({values[k].host, values[k].bytes}, to);
    }
  }

  bool uses(std::uint32_t device) const {
    const auto& devices = lir_.plan.node_devices;
    return std::find(devices.begin(), devices.end(), device) != devices.end();
  }
  BufferView take(std::uint32_t device, std::size_t bytes, BufferUse use) {
    buffers_.push_back(streams_.device(device).allocate(std::max<std::size_t>(64, bytes), use));
    return {*buffers_.back(), 0, bytes};
  }

  std::unique_ptr<HostControlledNode> bind_host_controlled(std::size_t k) {
    const LirBodies& plan = lir_.plan.bodies[k];
    if (!plan.host_controlled) return nullptr;
    const std::uint32_t d = lir_.plan.node_device(plan.node);
    std::vector<BufferView> ranges;
    for (const LirRange& r : plan.ranges) ranges.push_back(part_of(arenas_[r.arena], r.offset, r.bytes));
    std::vector<std::unique_ptr<Instance>> bodies;
    for (std::size_t b = 0; b < plan.modules.size(); ++b) {
      std::vector<BufferView> arenas;
      for (std::uint32_t range : plan.arenas[b]) arenas.push_back(ranges[range]);
      bodies.push_back(exe_.modules[k][b]->bind(streams_.device(d), plan.modules[b], arenas));
    }
    return std::make_unique<HostControlledNode>(lir_.graph, plan, std::move(bodies), std::move(ranges), exe_.granule);
  }

  // The location of a value for reads by device `device`.
  BufferView place(Value v, std::uint32_t device) {
    const LirValue& lv = lir_.plan.at(v);
    if (lv.bytes == 0) return nothing(device);
    if (lv.is_view) device = lir_.plan.node_device(v.node);
    BufferView base;
    switch (lv.place) {
      case Place::Arena: base = arenas_[lv.index]; break;
      case Place::Input: base = run_->inputs[lv.index].view; break;
      case Place::Output: base = run_->outputs[lv.index].view; break;
      case Place::State: base = run_->states[lv.index].view; break;
      case Place::Prepared: base = device == home_ ? run_->weights[lv.index] : sides_[device].weights[lv.index]; break;
      case Place::Constant: base = constant(lv.index, device); break;
      case Place::None: check(false, "a dequantized value that its readers decode themselves has no buffer");
    }
    return part_of(base, lv.offset, lv.bytes);
  }

  // A location on a device for values without bytes.
  BufferView nothing(std::uint32_t device) {
    BufferView& at = sides_[device].nothing;
    if (!at.buffer) at = take(device, 0, BufferUse::Arena);
    return at;
  }

  // A constant in memory that streams and bodies can read.
  BufferView constant(std::uint32_t node, std::uint32_t device) {
    auto& known = sides_[device].constants;
    if (const auto it = known.find(node); it != known.end()) return it->second;
    const Tensor& value = lir_.graph.node(NodeId{node}).op.as<ops::Constant>().value;
    BufferView at(value.data(), value.size_bytes());
    if (!streams_.on_host(device)) {
      at = take(device, value.size_bytes(), BufferUse::Weights);
      streams_.of(device).upload({value.data(), value.size_bytes()}, at);
    }
    return known.emplace(node, at).first->second;
  }

  // Copies the weights to the other devices that read them, when the weights have changed.
  void bring_weights() {
    for (std::uint32_t d = 0; d < sides_.size(); ++d) {
      Side& s = sides_[d];
      if (s.read_weights.empty()) continue;
      s.weights.assign(run_->weights.size(), BufferView());
      for (std::uint32_t i : s.read_weights) {
        const BufferView& from = run_->weights[i];
        const bool reached = from.host && streams_.on_host(d);
        if (reached || from.bytes == 0) {
          s.weights[i] = reached ? from : nothing(d);
          continue;
        }
        std::shared_ptr<Buffer>& buffer = s.weight_buffers[i];
        if (!buffer || buffer->bytes() < from.bytes)
          buffer = streams_.device(d).allocate(std::max<std::size_t>(64, from.bytes), BufferUse::Weights);
        s.weights[i] = BufferView(*buffer, 0, from.bytes);
        copy_between(from, home_, s.weights[i], d);
      }
    }
  }

  // Copies between devices on the stream of the target if it reaches the memory of the source. Otherwise it copies
  // through the host, without a second copy when one of the two is the host.
  void copy_between(const BufferView& from, std::uint32_t source, const BufferView& to, std::uint32_t target) {
    if (to.bytes == 0) return;
    Stream &give = streams_.of(source), &get = streams_.of(target);
    if (streams_.device(target).copies_from(streams_.device(source))) {
      RunStreams::order(give, get);
      get.copy(part_of(from, 0, to.bytes), to);
      RunStreams::order(get, give);  // later work may write over the source
      return;
    }
    if (streams_.on_host(source)) return get.upload({from.host, to.bytes}, to);
    Fetching fetching(give);
    std::span<std::byte> bytes(to.host, to.bytes);
    if (!streams_.on_host(target)) {
      staging_.resize(std::max(staging_.size(), to.bytes));
      bytes = std::span(staging_).first(to.bytes);
    }
    give.download(from, bytes);
    fetching.finish(give.record());
    if (!streams_.on_host(target)) get.upload(bytes, to);
  }

  void run_straight(std::uint32_t device, const StepRange& range) {
    const Side& s = sides_[device];
    if (!s.bound) return;  // the first device, when there is nothing to copy
    RunArguments part;
    if (device == home_)
      part = *run_;
    else
      part.weights = s.weights, part.binding_generation = run_->binding_generation;
    part.states = s.states;
    part.range = range;
    submit_to(device, *s.bound, part, "from step ", range.begin);
  }

  void transfer(NodeId id) {
    const Value from = lir_.graph.node(id).inputs[0];
    const std::uint32_t source = lir_.plan.node_device(from.node), target = lir_.plan.node_device(id);
    copy_between(place(from, source), source, place(Value(id), target), target);
  }

  template <class F>
  void each_open(const F& f) {
    for (std::uint32_t d = 0; d < streams_.count(); ++d)
      if (streams_.is_open(d)) f(d);
  }

  void drive(NodeId id) {
    const Node& n = lir_.graph.node(id);
    const std::uint32_t d = lir_.plan.node_device(id);
    operands_.clear(), results_.clear();
    for (Value v : n.inputs) operands_.push_back(place(v, d));
    for (std::uint32_t r = 0; r < n.num_results(); ++r) results_.push_back(place(Value(id, r), d));
    const auto k = static_cast<std::size_t>(lir_.plan.bodies_of(id) - lir_.plan.bodies.data());
    // Its bodies use ranges of all devices, through their own streams.
    each_open([&](std::uint32_t other) { streams_.order(other, d); });
    host_controlled_[k]->run(operands_, results_, streams_.of(d));
    each_open([&](std::uint32_t other) { streams_.order(d, other); });
  }

  const ArenaExecutable& exe_;
  std::optional<LirModule> beside_;  // for the other devices, if it differs
  std::vector<BufferView> arenas_;
  std::vector<Side> sides_;                                           // by device
  std::vector<std::unique_ptr<HostControlledNode>> host_controlled_;  // in plan order; null: a kernel runs it
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::vector<std::uint32_t> state_devices_;
  std::map<std::size_t, BufferView> aside_;  // of remote state copies
  std::vector<BufferView> operands_, results_;
};

std::unique_ptr<Instance> ArenaExecutable::bind(OpenDevice& device, const LirModule& program,
                                                std::span<const BufferView> arenas) const {
  return std::make_unique<ArenaInstance>(*this, device, program, arenas);
}

}  // namespace

std::unique_ptr<const Executable> make_arena_program(LirModule lir, Partitioning over) {
  return std::make_unique<const ArenaExecutable>(std::move(lir), std::move(over));
}

}  // namespace rlx
