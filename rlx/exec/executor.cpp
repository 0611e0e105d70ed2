// The run of a program of partitions, and the choice of its form.
#include "rlx/exec/executor.h"

#include <algorithm>

#include "rlx/exec/fetching.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {

std::string PartitionedExecutable::code() const {
  std::string all;
  for (const auto& ranges : by_device)
    if (ranges) all += ranges->code();
  for (const auto& list : modules)
    for (const auto& module : list) all += module->code();
  return all;
}

PartitionedInstance::PartitionedInstance(const PartitionedExecutable& exe, const LirModule& program, OpenDevice& device)
    : lir_(program),
      home_(exe.partitioning.home),
      steps_(program.plan.opaque ? program.plan.parts.size() : program.plan.schedule.size()),
      streams_(exe.partitioning.devices, home_, device) {
  for (Partition p : exe.partitioning.partitions) {
    if (p.steps.begin >= steps_) break;
    p.steps = p.steps.of(steps_);
    partitions_.push_back(p);
  }
}

Event PartitionedInstance::submit(const RunArguments& a, Stream& stream) {
  struct Release {
    PartitionedInstance& of;
    ~Release() { of.release(); }
  };
  run_ = &a;
  RunStreams::Run run(streams_, stream);  // also orders our work between the partitions
  if (a.times) a.times->clear();
  follow_caller();
  if (a.binding_generation != binding_generation_) change_bindings();
  binding_generation_ = a.binding_generation;
  const Release released{*this};
  begin();
  const StepRange range = a.range.of(steps_);
  for (std::size_t p = 0; p < partitions_.size(); ++p) {
    const Partition& partition = partitions_[p];
    const StepRange steps{std::max(partition.steps.begin, range.begin), std::min(partition.steps.end, range.end)};
    if (steps.begin >= steps.end) continue;
    if (partition.ordered) streams_.keep_order(partition.device);
    run_partition(p, steps);
  }
  finish(range);
  const Event end = run.end();
  commit();
  return end;
}

void PartitionedInstance::submit_to(std::uint32_t device, Instance& code, RunArguments a, std::string_view what,
                                    std::size_t number, std::span<const NodeId> nodes) {
  const DeviceSpan span(streams_, device, what, number);
  Stream& stream = streams_.of(device);
  std::vector<StepTime> times;
  a.times = run_->times ? &times : nullptr;
  if (!run_->times) {
    (void)code.submit(a, stream);
    return;
  }
  Fetching fetching(stream);  // the device writes the times
  fetching.finish(code.submit(a, stream));
  for (const StepTime& t : times)
    run_->times->push_back({nodes.empty() ? t.node : t.node.valid() ? nodes[t.node.index] : nodes.back(), t.ns});
}

namespace {

std::vector<Partition> partitions_of(const LirModule& lir) {
  std::vector<Partition> out;
  for (const LirPart& part : lir.plan.parts) {
    const auto kind = part.host_controlled ? Partition::Kind::HostControlled : Partition::Kind::Straight;
    const bool ordered =
        std::any_of(part.nodes.begin(), part.nodes.end(), [&](NodeId id) { return is_ordered(lir.graph.node(id).op); });
    out.push_back({kind, {out.size(), out.size() + 1}, part.device, ordered});
  }
  const std::vector<LirStep>& schedule = lir.plan.schedule;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const NodeId id = schedule[i].node;
    const LirBodies* bodies = lir.plan.bodies_of(id);
    const auto kind = bodies && bodies->host_controlled               ? Partition::Kind::HostControlled
                      : lir.graph.node(id).kind() == OpKind::Transfer ? Partition::Kind::Copy
                                                                      : Partition::Kind::Straight;
    const std::uint32_t device = lir.plan.node_device(id);
    if (kind == Partition::Kind::Straight && !out.empty() && out.back().kind == kind && out.back().device == device)
      out.back().steps.end = i + 1;
    else
      out.push_back({kind, {i, i + 1}, device});
    out.back().ordered = out.back().ordered || is_ordered(lir.graph.node(id).op);
  }
  return out;
}

}  // namespace

std::unique_ptr<const Executable> compile_body(LirModule lir, std::span<const ProgramDevice> devices,
                                               std::uint32_t home) {
  std::vector<Partition> partitions = partitions_of(lir);
  const auto is_home = [&](const Partition& p) { return p.kind == Partition::Kind::Straight && p.device == home; };
  // An opaque device that takes the whole graph has no partitions.
  if (lir.plan.opaque ? partitions.empty() : std::all_of(partitions.begin(), partitions.end(), is_home))
    return devices[home].backend->compile_lir(std::move(lir), devices[home].options);
  const auto make = lir.plan.opaque ? make_value_program : make_arena_program;
  return make(std::move(lir), {std::move(partitions), {devices.begin(), devices.end()}, home});
}

std::unique_ptr<const Executable> compile_program(LirModule lir, std::span<const ProgramDevice> devices) {
  check(devices.size() == lir.others.size() + 1, "a program got a different number of devices than it is compiled for");
  return compile_body(std::move(lir), devices, 0);
}

}  // namespace rlx
