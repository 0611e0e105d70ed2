// Rows of the CPU backend: which kernel runs which node, and how a node becomes steps with final pointers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/device/backend.h"
#include "rlx/device/entry_table.h"
#include "rlx/ir/op_def.h"
#include "rlx/threads/thread_pool.h"

namespace rlx::cpu {

class LowerContext;

/// One kernel for one kind of node (device/entry_table.h).
struct KernelEntry {
  OpKind kind;
  const char* kernel;  // "gemm_f32", for reports
  /// Null when the kernel can run this node (dtypes, ranks, attributes), else why not; dimensions may be symbolic.
  const char* (*refuses)(const Graph&, NodeId);
  /// Adds the node's steps.
  void (*lower)(LowerContext&);
  /// See Target; null = never.
  bool (*reads_strided)(const Graph&, NodeId, int operand) = nullptr;
  bool (*in_place)(const Graph&, NodeId, int operand, int result) = nullptr;
  bool plans_bodies = false;
  std::optional<PackedLayout> (*form)(const KernelTable&, const Graph&, NodeId, int operand,
                                      const ConstantMatrix&) = nullptr;
  bool (*reads_packed)(const Graph&, NodeId, int operand, const PackedLayout&) = nullptr;
  bool (*reads_encoded)(const Graph&, NodeId, int operand) = nullptr;
  std::uint32_t skips_unread = 0;  // bit r: result r needs no place when nobody reads it (LowerContext::is_read)
};

/// The families of rows, tuned ones before generic ones.
std::span<const KernelEntry> quantized_entries();
std::span<const KernelEntry> bf16_entries();
std::span<const KernelEntry> interleaved_entries();
std::span<const KernelEntry> dot_entries();
std::span<const KernelEntry> matmul_entries();
std::span<const KernelEntry> prepack_entries();
std::span<const KernelEntry> attention_entries();
std::span<const KernelEntry> norm_entries();
std::span<const KernelEntry> norm_f64_entries();
std::span<const KernelEntry> tape_entries();
std::span<const KernelEntry> move_entries();
std::span<const KernelEntry> reduce_entries();
std::span<const KernelEntry> index_entries();
std::span<const KernelEntry> sort_entries();
std::span<const KernelEntry> factor_entries();
std::span<const KernelEntry> complex_entries();
std::span<const KernelEntry> fft_entries();
std::span<const KernelEntry> random_entries();
std::span<const KernelEntry> sample_entries();
std::span<const KernelEntry> grouped_entries();
std::span<const KernelEntry> generic_elementwise_entries();
std::span<const KernelEntry> generic_reduce_entries();
std::span<const KernelEntry> generic_dot_entries();
std::span<const KernelEntry> custom_entries();
std::span<const KernelEntry> control_entries();
std::span<const KernelEntry> collective_entries();

/// All of them.
const EntryTable<KernelEntry>& entry_table();
/// Whether the reference rule can stand in for a row; and the step that calls it.
bool runs_on_host(const Graph& g, NodeId id);
const KernelEntry& host_entry();

/// A value at bind time: its shape and where its elements lie.
struct View {
  DType dtype = DType::F32;
  std::vector<std::int64_t> dims, strides;  // strides in elements
  const LirValue* where = nullptr;

  int rank() const { return static_cast<int>(dims.size()); }
  std::int64_t elements() const;
  std::int64_t dim(int axis) const { return dims[static_cast<std::size_t>(axis < 0 ? axis + rank() : axis)]; }
  std::int64_t stride(int axis) const { return strides[static_cast<std::size_t>(axis < 0 ? axis + rank() : axis)]; }
  /// True when the elements lie row-major without gaps.
  bool dense() const;
};

/// A value as [outer, extent, inner] around one axis.
struct AxisView {
  std::int64_t outer = 1, extent = 1, inner = 1;
};
inline AxisView around(const View& v, std::int64_t axis) {
  AxisView out;
  for (int i = 0; i < v.rank(); ++i) (i < axis ? out.outer : i == axis ? out.extent : out.inner) *= v.dim(i);
  return out;
}

/// Memory that each thread of a run has for itself.
struct Scratch {
  std::byte* base = nullptr;
  std::size_t stride = 0;
  /// The calling thread's part, 64-byte aligned.
  std::byte* mine() const { return base + static_cast<std::size_t>(worker_index()) * stride; }
};

/// Memory that nodes use by turns, each of them all of it: what one leaves there the next may write over.
struct Common {
  std::byte* base = nullptr;
};

/// How the halves of a piece's chunks divide rows: the lower half (StepSchedule::lower_half) touches no row from
/// `lower_end` on, the upper half none before `upper_begin`, in the operands and results named. 0 rows: not known.
struct RowTiling {
  std::int64_t rows = 0, lower_end = 0, upper_begin = 0;
  std::uint32_t operands = 0, results = 0;  // by bit
};

/// One kernel invocation of a bound program: `run(ctx, chunk)` for each chunk.
struct Task {
  void (*run)(void* ctx, std::int64_t chunk) = nullptr;
  void* ctx = nullptr;
  std::int64_t chunks = 0;
  double cost_ns = 0;  // estimate for one thread
  RowTiling halves{};
  bool alone = false;   // run by the thread that runs the program, when all before it is done
  bool common = false;  // of a node that uses the common memory: it waits for the node that had it before
};

/// A pointer field that follows memory which is known when a run begins: a caller's buffer, a weight or a state.
struct Patch {
  void* field = nullptr;  // of some object pointer type, written bytewise
  Place place = Place::Input;
  std::uint32_t index = 0;
  std::size_t offset = 0;  // bytes
};

/// An object kept by the bound program.
struct Kept {
  virtual ~Kept() = default;
};
template <class T>
struct KeptValue final : Kept {
  T value;
  template <class... Args>
  explicit KeptValue(Args&&... args) : value{std::forward<Args>(args)...} {}
};

class Executable;

/// What lowering fills in; the bound program.
struct Program {
  const Executable* executable = nullptr;
  std::vector<Task> tasks;
  std::vector<Patch> patches;
  std::vector<std::unique_ptr<Kept>> kept;
  std::size_t scratch_bytes = 0;  // per thread
  Scratch scratch;
  std::size_t common_bytes = 0;
  Common common;
  const void** next_weight = nullptr;      // where the last packed product wants to know the next weight
  const LirValue* first_weight = nullptr;  // the packed weight a run reads first
};

/// Lowering of one node: its operands and results with their places, and the steps it becomes.
class LowerContext {
 public:
  LowerContext(const LirModule& lir, NodeId id, std::span<const BufferView> arenas, const KernelTable& kernels,
               int threads, Program& program)
      : lir_(lir),
        id_(id),
        arenas_(arenas),
        kernels_(kernels),
        threads_(threads),
        program_(program),
        first_task_(program.tasks.size()) {}

  const Graph& graph() const { return lir_.graph; }
  NodeId id() const { return id_; }
  const Node& node() const { return lir_.graph.node(id_); }
  template <class Op>
  const Op& op() const {
    return node().op.as<Op>();
  }
  int num_inputs() const { return static_cast<int>(node().inputs.size()); }
  const KernelTable& kernels() const { return kernels_; }
  /// Threads that plans share the work out to; kFinestCut when it is to be cut as finely as it can be.
  int threads() const { return threads_; }
  /// Units of work in a chunk: `n`, or one in the finest cut.
  std::int64_t grain(std::int64_t n) const { return finest() ? std::min<std::int64_t>(n, 1) : n; }
  bool finest() const { return threads_ == kFinestCut; }

  View value(Value v) const;
  View in(int i) const { return value(node().inputs[static_cast<std::size_t>(i)]); }
  /// Result r; a computed result lies row-major.
  View out(int r = 0) const { return value(Value(id_, static_cast<std::uint32_t>(r))); }

  /// False for a result that the plan gave no place, as nobody reads it.
  bool is_read(int r) const { return out(r).where->place != Place::None; }

  /// An object that lives as long as the bound program.
  template <class T, class... Args>
  T& keep(Args&&... args) {
    auto kept = std::make_unique<KeptValue<T>>(std::forward<Args>(args)...);
    T& value = kept->value;
    program_.kept.push_back(std::move(kept));
    return value;
  }
  /// Makes `field` the address of element `element` of `v`: now in an arena or a constant, else whenever a run finds
  /// the value elsewhere.
  template <class T>
  void point(T*& field, const View& v, std::int64_t element = 0) {
    void* p = resolve(&field, v, element);
    std::memcpy(&field, &p, sizeof p);
  }
  /// Adds a step: Run(ctx, chunk) for each chunk of [0, chunks), after the node's earlier steps. `cost_ns` estimates
  /// the time of all chunks on one thread.
  template <auto Run, class T>
  void step(T& ctx, std::int64_t chunks, double cost_ns) {
    if (chunks <= 0) return;
    program_.tasks.push_back(
        {[](void* p, std::int64_t chunk) { Run(*static_cast<T*>(p), chunk); }, &ctx, chunks, cost_ns});
    program_.tasks.back().common = uses_common_;
  }
  /// Adds a step that the thread which runs the program runs by itself, between what is before and what comes after.
  template <auto Run, class T>
  void step_alone(T& ctx, double cost_ns) {
    step<Run>(ctx, 1, cost_ns);
    program_.tasks.back().alone = true;
  }
  /// Of a node whose row plans bodies: their plans, a range they use, and one of them as a program of its own.
  const LirBodies& bodies() const { return *lir_.plan.bodies_of(id_); }
  BufferView body_range(std::uint32_t range) const {
    const LirRange& r = bodies().ranges[range];
    return {arenas_[r.arena].host + r.offset, r.bytes};
  }
  std::unique_ptr<BoundGraph> bind_body(std::size_t body) const;
  /// Says of the step added last that runs of `chunks_per_group` chunks work on `group_rows` of `rows` rows after each
  /// other, and touch no others of the operands and results named: those whose leading axes are the rows (or what the
  /// rows are counted in, sequences for example). Then halves of it need not wait for halves of other steps. Nothing
  /// when the node has added no step.
  void tile_rows(std::int64_t rows, std::int64_t group_rows, std::int64_t chunks_per_group,
                 std::initializer_list<int> operands, std::initializer_list<int> results = {0});
  /// Scratch of at least `bytes` per thread; its address is final when the program runs.
  const Scratch* scratch(std::size_t bytes) {
    if (bytes > program_.scratch_bytes) program_.scratch_bytes = bytes;
    return &program_.scratch;
  }
  /// At least `bytes` that the node's steps, all of those added after this call, share with each other and that no
  /// other node uses meanwhile; the address is final when the program runs.
  const Common* common(std::size_t bytes) {
    if (bytes > program_.common_bytes) program_.common_bytes = bytes;
    uses_common_ = true;
    return &program_.common;
  }
  /// `bytes` shared by all chunks of the node, 64-byte aligned.
  std::byte* workspace(std::size_t bytes);
  Program& program() { return program_; }

 private:
  void* resolve(void* field, const View& v, std::int64_t element);
  const LirModule& lir_;
  NodeId id_;
  std::span<const BufferView> arenas_;
  const KernelTable& kernels_;
  int threads_;
  Program& program_;
  std::size_t first_task_;  // the node's pieces are those from here on
  bool uses_common_ = false;
};

// -- helpers of rows --

/// Refuses operands or results of another dtype than f32.
const char* refuse_unless_f32(const Graph& g, NodeId id);
/// Refuses more axes than the generic kernels walk.
const char* refuse_high_rank(const Shape& s);
/// Refuses dtypes that are stored, not computed with.
inline const char* refuse_storage_only(DType t) {
  return refuse_unless(!is_storage_only(t), "its dtype is only stored, not computed with");
}
/// The product of dims [first, last).
std::int64_t product(std::span<const std::int64_t> dims);
/// Strides of `v` seen as `dims` by right-aligned broadcasting: 0 where it repeats.
std::vector<std::int64_t> broadcast_strides(const View& v, std::span<const std::int64_t> dims);
/// The one stride that walks axes [first, last) of `v` in row-major order; none when they do not fold. 0 axes: 0.
std::optional<std::int64_t> fold_stride(const View& v, int first, int last);

/// Rows of a [rows, cols] view whose leading axes fold; none otherwise.
struct RowView {
  std::int64_t rows = 1, cols = 1, ld = 0;
};
std::optional<RowView> as_rows(const View& v);
/// The kernels' name of a reduction.
cpu::ReduceKind kernel_kind(rlx::ReduceKind fn);
/// Rough speed of this instruction set, for cost estimates: floating-point operations per ns of a product.
double gemm_flops_per_ns(Isa isa);

}  // namespace rlx::cpu
