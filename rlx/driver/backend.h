// What a backend is: a probe, a target that says what it can run, and a compiler from LIR to something that runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// Everything a bound program reads and writes that it does not own.
struct BindContext {
  std::byte* arena = nullptr;                  // plan.arena_bytes, aligned to plan.alignment
  std::span<const std::byte* const> prepared;  // by Param index of the LIR graph
  std::span<std::byte* const> states;          // by State index
  /// The executable's program with its symbols bound: the same nodes, schedule and arena. Null when it has no symbols;
  /// otherwise it lives as long as the bound program.
  const LirModule* lir = nullptr;
};

/// One timed step of a profiled run.
struct StepTime {
  NodeId node;
  double ns = 0;
};

/// A program bound to memory: kernels with their pointers. One run at a time.
class BoundGraph {
 public:
  virtual ~BoundGraph() = default;
  /// Runs once. `inputs` and `outputs` are in node order of the Inputs and in output order; every pointer covers its
  /// value's bytes. Allocates nothing. Throws what a kernel reported.
  virtual void run(std::span<const void* const> inputs, std::span<void* const> outputs) = 0;
  /// Runs once on the calling thread, step by step, and returns the time of each.
  virtual std::vector<StepTime> run_timed(std::span<const void* const> inputs, std::span<void* const> outputs) = 0;
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
  /// Binds kernels to memory, for the extents of `context.lir`.
  virtual std::unique_ptr<BoundGraph> bind(const BindContext& context) const = 0;
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

/// A device's entry: stateless and thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Empty when the device can be used now, else the reason why not. Never throws.
  virtual std::string unavailable_reason() const noexcept = 0;
  /// What compiles with these options are made for; the device need not be there.
  virtual std::shared_ptr<const Target> target(const BackendOptions& options) const = 0;
  virtual std::unique_ptr<const ExecutableGraph> compile_lir(LirModule lir, const BackendOptions& options) const = 0;
  /// Limits of what `BoundGraph::run_timed` uses (on the CPU: one thread), measured now; none when the backend cannot
  /// tell.
  virtual std::optional<MachineLimits> measure_limits(const BackendOptions&) const { return std::nullopt; }
};

}  // namespace rlx
