// The backend interface: a probe, a device that it opens, a target that says what it can run, and a compiler from LIR
// to executable code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/device/difference.h"
#include "rlx/device/open_device.h"
#include "rlx/device/target.h"
#include "rlx/ir/module.h"

namespace rlx {

class ChunkAudit;

/// Options of a compile that reach the backend.
struct BackendOptions {
  int threads = 0;          // 0: all of the machine's
  std::string isa;          // forces a lower instruction set by name; empty: the best
  DeviceOptions options{};  // as given to the session
  int ordinal = 0;          // of the device that runs the code
  // For tests:
  bool finest_grain = false;                          // splits every step into as many chunks as its kernel allows
  std::shared_ptr<ChunkAudit> chunk_audit = nullptr;  // every step is a barrier of the threads; records which threads
                                                      // took chunks
};

/// The time of one step of a profiled run.
struct StepTime {
  NodeId node;  // invalid: the time of the whole run, when the device reports no steps
  double ns = 0;
};

/// A value that a run reads or writes: an input, an output or a state.
struct RunSlot {
  BufferView view{};  // its bytes; unused on an opaque device
  /// On opaque devices the owned buffer slot, otherwise null. `submit` reads inputs and states from `*buffer_slot`,
  /// stores outputs and new values of states into it, and consumes donated buffers. The buffers may be written after
  /// submit returns, but are complete at its event. When submit throws, the slot of a state is unchanged, or empty if
  /// its buffer was already donated.
  std::shared_ptr<Buffer>* buffer_slot = nullptr;
  /// True when the run may write over the buffer in the slot or consume it. Nobody else holds it, and it is a donated
  /// input (`LirBufferPlan::aliases`) or a state that the run replaces. The slot of such an input is empty afterwards.
  bool donated = false;
};

/// The arguments of one run. The views cover the bytes of their values. Values of the host are in host memory if the
/// device reaches it (`MemoryModel::Host`).
struct RunArguments {
  std::span<const RunSlot> inputs;      // in node order of the Inputs
  std::span<const RunSlot> outputs;     // in output order
  std::span<const RunSlot> states;      // in node order of the States; those on other devices are empty
  std::span<const BufferView> weights;  // by Param index of the LIR graph
  /// Counts the changes of `states` and `weights`. If it equals that of the last run, they are unchanged.
  std::uint64_t binding_generation = 0;
  /// Null, or filled with the time of each step when a wait for the run returns. The steps then run one after the
  /// other.
  std::vector<StepTime>* times = nullptr;
  /// The steps to run, after earlier steps are done. On an opaque device always all steps.
  StepRange range{};
};

/// Code bound to memory, at the extents of one set of inputs. One thread at a time may submit.
class Instance {
 public:
  virtual ~Instance() = default;
  /// Starts a run after the work on the stream, and returns the event of its end. On the host the run executes at once,
  /// on this thread. It then throws what a kernel reported and returns the empty event. It allocates nothing, except
  /// for `times`.
  virtual Event submit(const RunArguments& arguments, Stream& stream) = 0;
};

/// Columns [begin, end) of a source of a packed layout.
struct ColumnRange {
  std::int64_t begin = 0, end = 0;
};
using FormColumns [[deprecated("now ColumnRange")]] = ColumnRange;

/// Immutable code compiled from an LIR, shared by all clones.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual const LirModule& lir() const = 0;
  /// Writes columns of source `source` of the relayout `node` of `lir().prepare` into the packed bytes. `values` are
  /// all elements of the source, of any real dtype. They are rounded once if the packed layout holds less precision.
  /// Columns do not overlap in the packed layout. Uses the threads of a run. For backends whose targets ask for packed
  /// layouts.
  virtual void encode(NodeId node, std::size_t source, const ColumnRange& columns, DType dtype, const std::byte* values,
                      std::byte* layout) const;
  /// The inverse: writes the elements that the source holds to `values`, of `dtype`. Other elements are unchanged.
  virtual void decode(NodeId node, std::size_t source, const std::byte* layout, DType dtype, std::byte* values) const;
  /// Code for runs of `program`: `lir()`, or, when that has symbols, the same nodes, schedule and arenas with bound
  /// extents. `arenas` are those of its plan; for a part of a program (`LirModule::ranges`) only those of its device.
  /// Program and arenas must outlive the result.
  virtual std::unique_ptr<Instance> bind(OpenDevice& device, const LirModule& program,
                                         std::span<const BufferView> arenas) const = 0;
  /// The kernel that runs a node, for reports: "gemm_f32 (avx512)".
  virtual std::string kernel_name(NodeId node) const = 0;
  /// The program's text as the device receives it. Empty when it is not text.
  virtual std::string code() const { return {}; }
};

// Names of the last release.
using ExecutableGraph [[deprecated("now Executable")]] = Executable;
using BoundGraph [[deprecated("now Instance")]] = Instance;

struct Cost;

/// Measured limits of a device. They give the lower bound of every kernel's time.
struct MachineLimits {
  double gflops = 0;
  struct Bandwidth {
    std::size_t bytes = 0;
    double gb_per_s = 0;
  };
  std::vector<Bandwidth> bandwidth;  // by buffer size, ascending

  /// The minimum ns for work of that size: all arithmetic at peak rate, and all bytes at the bandwidth of a buffer that
  /// holds them.
  double floor_ns(const Cost& cost) const;
};

/// The result of a probe: how many devices are usable now, and, when there are none, why.
struct Presence {
  int count = 0;
  std::string reason{};
  /// True for software that emulates hardware: usable by name, never the fastest device.
  bool software = false;
};

/// An option of a backend.
struct DeviceOptionInfo {
  std::string_view name;
  std::string_view what;  // its values and their effect
  bool at_open = false;   // otherwise it acts at each compile
};

/// The interface of a backend: stateless and thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// The devices of this kind that are usable now.
  virtual Presence probe(Device kind) const noexcept = 0;
  /// The same with options at open, for backends whose devices depend on them.
  virtual Presence probe_with(Device kind, const DeviceOptions& /*at_open*/) const noexcept { return probe(kind); }
  /// A description of the usable devices for people: "llvmpipe, Vulkan, software". May be empty.
  virtual std::string describe(Device /*kind*/) const { return {}; }
  /// Where results of its devices differ from the ops' rules.
  virtual std::span<const Difference> differences() const { return {}; }
  /// The options of `open` and of compiles.
  virtual std::span<const DeviceOptionInfo> option_infos() const { return {}; }
  /// Converts options of compiles. The keys are from `option_infos`. InvalidArgument for an invalid value.
  virtual BackendOptions compile_options(const DeviceOptions& options) const {
    BackendOptions out;
    out.options = options;
    return out;
  }
  /// Opens a device with the options that act at open. `open_device` (registry.h) opens it once for all callers.
  virtual std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions& options) const = 0;
  /// The target of compiles with these options. The device need not be present.
  virtual std::shared_ptr<const Target> target(const BackendOptions& options) const = 0;
  /// Code for `lir.ranges`. Steps outside these ranges run on other devices or are run by the program itself
  /// (exec/program.h), and need no kernel here. The code whose last range ends the schedule makes the copies after the
  /// steps.
  virtual std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions& options) const = 0;
  /// Measures the limits of what a timed run uses (on the CPU: one thread). None when the backend cannot tell.
  virtual std::optional<MachineLimits> measure_limits(const BackendOptions&) const { return std::nullopt; }
};

}  // namespace rlx
