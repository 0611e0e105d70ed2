// The executor: runs a program of partitions, each on its device. How values reach a partition depends on the first
// device: at planned places (arena_program.cpp), or as whole values (value_program.cpp). Internal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/exec/program.h"
#include "rlx/exec/run_streams.h"
#include "rlx/ir/inspect.h"

namespace rlx {

/// Work that one device does without the host, or one node that the host runs or controls.
struct Partition {
  enum class Kind : std::uint8_t { Straight, Copy, HostControlled };
  Kind kind = Kind::Straight;
  StepRange steps{};  // of the schedule; on an opaque device a partition counts as one step
  std::uint32_t device = 0;
  bool ordered = false;  // holds an ordered op
};

/// The partitions of a program and their devices. `home` is the device of the inputs. For a body it is the device of
/// the node that holds it.
struct Partitioning {
  std::vector<Partition> partitions;
  std::vector<ProgramDevice> devices;
  std::uint32_t home = 0;
};

/// Immutable code of the partitions of a program; shared by clones.
class PartitionedExecutable : public Executable {
 public:
  explicit PartitionedExecutable(Partitioning over) : partitioning(std::move(over)) {}
  std::string code() const override;

  const Partitioning partitioning;
  std::vector<std::unique_ptr<const Executable>> by_device;             // the ranges of the schedule; null: none there
  std::vector<std::vector<std::unique_ptr<const Executable>>> modules;  // bodies in the order of the plan; on an opaque
                                                                        // device the modules of each partition
};

/// Partitions bound to memory. A run submits them in order, each on the stream of its device.
class PartitionedInstance : public Instance {
 public:
  Event submit(const RunArguments& a, Stream& stream) final;

 protected:
  /// `program`: that of the code, or its part before a host sync point.
  PartitionedInstance(const PartitionedExecutable& exe, const LirModule& program, OpenDevice& device);

  /// The parts of a run, with its arguments in `run_`.
  virtual void follow_caller() = 0;    // orders devices after the caller's earlier work
  virtual void change_bindings() = 0;  // weights or states are not those of the last run
  virtual void begin() {}
  virtual void run_partition(std::size_t p, const StepRange& steps) = 0;
  virtual void finish(const StepRange& steps) = 0;  // after the partitions of these steps
  virtual void commit() {}                          // once all work is submitted
  virtual void release() {}                         // at the end of every run, failed or not

  /// Submits a program to its device. A profile waits for it. `nodes`: for each node of that program the node of ours;
  /// empty: the same.
  void submit_to(std::uint32_t device, Instance& code, RunArguments a, std::string_view what, std::size_t number,
                 std::span<const NodeId> nodes = {});
  /// Runs `f`, the work of the host for a node. Its failures name the node. A profile waits for it.
  template <class F>
  void run_by_host(NodeId id, std::uint32_t device, F&& f) {
    std::optional<TraceSpan> span;
    if (Trace::current()) span.emplace("step", op_text_name(lir_.graph.node(id).op), node_label(lir_.graph, id));
    const auto start = Clock::now();
    try {
      f();
      if (!run_->times) return;
      streams_.of(device).record().wait();
    } catch (const Error& e) {
      Diagnostic d = e.diagnostic();
      d.where = concat_text(d.where, d.where.empty() ? "" : "\n  ", "in ", node_where(lir_.graph, id));
      throw Error(std::move(d));
    }
    run_->times->push_back({id, std::chrono::duration<double, std::nano>(Clock::now() - start).count()});
  }
  using Clock = std::chrono::steady_clock;
  const LirModule& lir_;
  const std::uint32_t home_;
  const std::size_t steps_;
  std::vector<Partition> partitions_;  // of these steps
  RunStreams streams_;
  std::vector<std::byte> staging_;     // for copies through the host
  const RunArguments* run_ = nullptr;  // of the current run

 private:
  std::uint64_t binding_generation_ = ~std::uint64_t{0};
};

/// Code for `lir`, whose values have planned places.
std::unique_ptr<const Executable> make_arena_program(LirModule lir, Partitioning over);
/// Code for `lir`, which has partitions of an opaque device (`LirBufferPlan::parts`).
std::unique_ptr<const Executable> make_value_program(LirModule lir, Partitioning over);

}  // namespace rlx
