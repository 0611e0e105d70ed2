// What a backend is: a probe, a device that it opens, a target that says what it can run, and a compiler from LIR to
// something that runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/driver/open_device.h"
#include "rlx/driver/target.h"
#include "rlx/ir/module.h"

namespace rlx {

class ChunkAudit;

/// Options of a compile that reach the backend.
struct BackendOptions {
  int threads = 0;  // 0: the machine's
  std::string isa;  // force a lower instruction set by name; empty: the best
  // For tests:
  bool finest_grain = false;                          // every step in as many chunks as its kernel can be cut into
  std::shared_ptr<ChunkAudit> chunk_audit = nullptr;  // threads meet in every step, and who took chunks is noted
};

/// One timed step of a profiled run.
struct StepTime {
  NodeId node;
  double ns = 0;
};

/// A place that a run reads or writes: of an input, an output or a state.
struct RunSlot {
  BufferView view;
};

/// What one run works on. The views cover their values' bytes; those of the host lie in its memory where the device
/// reaches that (`OpenDevice::host_memory`).
struct RunArguments {
  std::span<const RunSlot> inputs;      // in node order of the Inputs
  std::span<const RunSlot> outputs;     // in output order
  std::span<const RunSlot> states;      // in node order of the States
  std::span<const BufferView> weights;  // by Param index of the LIR graph
  /// Counts the changes of `states` and `weights`: equal to that of the last run, they are too.
  std::uint64_t tables = 0;
  /// Filled with the time of each step, run one after the other, by the time a wait for the run returns; or null.
  std::vector<StepTime>* times = nullptr;
};

/// Code with its memory. One thread at a time submits.
class BoundGraph {
 public:
  virtual ~BoundGraph() = default;
  /// Starts a run behind what the stream holds; the event is that of its end. On the host it runs now, on this thread,
  /// throws what a kernel reported, and returns the empty event; it then allocates nothing, but for `times`.
  virtual Event submit(const RunArguments& arguments, Stream& stream) = 0;
};

/// Immutable code made from an LIR, shared by all clones.
class ExecutableGraph {
 public:
  virtual ~ExecutableGraph() = default;
  virtual const LirModule& lir() const = 0;
  /// Bytes that relayout node `node` of `lir().prepare` packs; writes source `source` (a row-major or transposed weight
  /// of the node) into its range of `packed`, moving elements bit for bit. Ranges of different sources do not overlap.
  virtual void pack(NodeId node, std::size_t source, const void* data, std::byte* packed) const = 0;
  /// The inverse of pack: writes source `source`, dense in the source's own shape, to `data`.
  virtual void unpack(NodeId node, std::size_t source, const std::byte* packed, void* data) const = 0;
  /// Code for runs of `program`: `lir()`, or, where that has symbols, the same nodes, schedule and arenas with their
  /// values. `arenas` are those of its plan. Program and arenas live as long as the result.
  virtual std::unique_ptr<BoundGraph> bind(OpenDevice& device, const LirModule& program,
                                           std::span<const BufferView> arenas) const = 0;
  /// The kernel that runs a node, for reports: "gemm_f32 (avx512)".
  virtual std::string kernel_name(NodeId node) const = 0;
};

struct Cost;

/// What a device can do at best, measured: the floor of every kernel's time.
struct MachineLimits {
  double gflops = 0;
  struct Bandwidth {
    std::size_t bytes = 0;
    double gb_per_s = 0;
  };
  std::vector<Bandwidth> bandwidth;  // of buffers of that size, from small to large

  /// The least ns for work of that size: all arithmetic at peak, all bytes at the bandwidth of a buffer that holds
  /// them.
  double floor_ns(const Cost& cost) const;
};

/// What a probe found: how many devices can be used now, and, when none can, why.
struct Presence {
  int count = 0;
  std::string reason{};
};

/// A device's entry: stateless and thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Devices of this kind that can be used now.
  virtual Presence probe(Device kind) const noexcept = 0;
  /// Opens one of them; `open_device` (registry.h) does so once for all who ask.
  virtual std::shared_ptr<OpenDevice> open(DeviceId id) const = 0;
  /// What compiles with these options are made for; the device need not be there.
  virtual std::shared_ptr<const Target> target(const BackendOptions& options) const = 0;
  virtual std::unique_ptr<const ExecutableGraph> compile_lir(LirModule lir, const BackendOptions& options) const = 0;
  /// Limits of what a timed run uses (on the CPU: one thread), measured now; none when the backend cannot tell.
  virtual std::optional<MachineLimits> measure_limits(const BackendOptions&) const { return std::nullopt; }
};

}  // namespace rlx
