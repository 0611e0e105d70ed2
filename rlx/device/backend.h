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

#include "rlx/device/difference.h"
#include "rlx/device/open_device.h"
#include "rlx/device/target.h"
#include "rlx/ir/module.h"

namespace rlx {

class ChunkAudit;

/// Options of a compile that reach the backend.
struct BackendOptions {
  int threads = 0;          // 0: the machine's
  std::string isa;          // force a lower instruction set by name; empty: the best
  DeviceOptions options{};  // as the session was given them
  int ordinal = 0;          // of the device that runs the code
  // For tests:
  bool finest_grain = false;                          // every step in as many chunks as its kernel can be cut into
  std::shared_ptr<ChunkAudit> chunk_audit = nullptr;  // threads meet in every step, and who took chunks is noted
};

/// One timed step of a profiled run.
struct StepTime {
  NodeId node;  // invalid: of the whole run, where the device tells no more
  double ns = 0;
};

/// A value that a run reads or writes: an input, an output or a state.
struct RunSlot {
  BufferView view{};  // its bytes; on an opaque device unused
  /// On an opaque device the place of its buffer, else null. submit reads an input's or a state's there, puts that of
  /// an output or of a state's new value there, and lets go of a given one; the buffers need not be written when it
  /// returns, but are by its event. One that throws leaves a state's there, or none where it has given that away.
  std::shared_ptr<Buffer>* buffer_slot = nullptr;
  /// True when the run may write over the buffer in the slot or take it apart: nobody else holds it, and the input is
  /// donated (`LirBufferPlan::aliases`) or it is of a state that the run replaces. An input's slot is then emptied.
  bool donated = false;
};

/// What one run works on. The views cover their values' bytes; those of the host lie in its memory where the device
/// reaches that (`MemoryModel::Host`).
struct RunArguments {
  std::span<const RunSlot> inputs;      // in node order of the Inputs
  std::span<const RunSlot> outputs;     // in output order
  std::span<const RunSlot> states;      // in node order of the States; those on other devices are empty
  std::span<const BufferView> weights;  // by Param index of the LIR graph
  /// Counts the changes of `states` and `weights`: equal to that of the last run, they are too.
  std::uint64_t binding_generation = 0;
  /// Filled with the time of each step, run one after the other, by the time a wait for the run returns; or null.
  std::vector<StepTime>* times = nullptr;
  /// The steps to run, behind which earlier ones are done; on an opaque device always all.
  StepRange range{};
};

/// Code with its memory. One thread at a time submits.
class BoundGraph {
 public:
  virtual ~BoundGraph() = default;
  /// Starts a run behind what the stream holds; the event is that of its end. On the host it runs now, on this thread,
  /// throws what a kernel reported, and returns the empty event; it then allocates nothing, but for `times`.
  virtual Event submit(const RunArguments& arguments, Stream& stream) = 0;
};

/// Columns [begin, end) of a source of a form.
struct FormColumns {
  std::int64_t begin = 0, end = 0;
};

/// Immutable code made from an LIR, shared by all clones.
class ExecutableGraph {
 public:
  virtual ~ExecutableGraph() = default;
  virtual const LirModule& lir() const = 0;
  /// Writes columns of source `source` of relayout `node` of `lir().prepare` into the form's bytes. `values` are all of
  /// the source's elements, of any real dtype, rounded once where the form holds less. Columns do not overlap in the
  /// form. It uses the threads of a run. Of backends whose targets ask for forms.
  virtual void encode(NodeId node, std::size_t source, const FormColumns& columns, DType dtype, const std::byte* values,
                      std::byte* form) const;
  /// The way back: the elements that the source holds, into `values`, of `dtype`; the others stay.
  virtual void decode(NodeId node, std::size_t source, const std::byte* form, DType dtype, std::byte* values) const;
  /// Code for runs of `program`: `lir()`, or, where that has symbols, the same nodes, schedule and arenas with their
  /// values. `arenas` are those of its plan, for a part of a program (`LirModule::ranges`) its device's alone. Program
  /// and arenas live as long as the result.
  virtual std::unique_ptr<BoundGraph> bind(OpenDevice& device, const LirModule& program,
                                           std::span<const BufferView> arenas) const = 0;
  /// The kernel that runs a node, for reports: "gemm_f32 (avx512)".
  virtual std::string kernel_name(NodeId node) const = 0;
  /// The program's text as the device gets it; empty where that is no text.
  virtual std::string code() const { return {}; }
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
  /// True when they are software that stands for hardware: usable by name, and never the best device there is.
  bool software = false;
};

/// An option that a backend takes.
struct DeviceOptionInfo {
  std::string_view name;
  std::string_view what;  // its values and what they do
  bool at_open = false;   // else it acts at each compile
};

/// A device's entry: stateless and thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Devices of this kind that can be used now.
  virtual Presence probe(Device kind) const noexcept = 0;
  /// The same with options at open, where these decide what there is.
  virtual Presence probe_with(Device kind, const DeviceOptions& /*at_open*/) const noexcept { return probe(kind); }
  /// What can be used now, for people: "llvmpipe, Vulkan, software"; empty when there is nothing to say.
  virtual std::string describe(Device /*kind*/) const { return {}; }
  /// Where its devices' numbers are not those of the ops' rules.
  virtual std::span<const Difference> differences() const { return {}; }
  /// What `open` and compiles take.
  virtual std::span<const DeviceOptionInfo> option_infos() const { return {}; }
  /// The options of compiles that these say: keys are of `option_infos`; InvalidArgument for a value that is none.
  virtual BackendOptions compile_options(const DeviceOptions& options) const {
    BackendOptions out;
    out.options = options;
    return out;
  }
  /// Opens one of them with options that act then; `open_device` (registry.h) does so once for all who ask.
  virtual std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions& options) const = 0;
  /// What compiles with these options are made for; the device need not be there.
  virtual std::shared_ptr<const Target> target(const BackendOptions& options) const = 0;
  /// Code for `lir.ranges`: steps outside of them, which other devices run or the program itself (exec/program.h),
  /// need no kernel here. The copies behind the steps are made by the code whose last range ends with the schedule.
  virtual std::unique_ptr<const ExecutableGraph> compile_lir(LirModule lir, const BackendOptions& options) const = 0;
  /// Limits of what a timed run uses (on the CPU: one thread), measured now; none when the backend cannot tell.
  virtual std::optional<MachineLimits> measure_limits(const BackendOptions&) const { return std::nullopt; }
};

}  // namespace rlx
