// Kernel entries of the CPU backend: which kernel runs which node, and how a node is lowered to tasks with final
// pointers.
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

/// A kernel for one kind of node (device/entry_table.h).
struct KernelEntry {
  OpKind kind;
  const char* kernel;  // "gemm_f32", for reports
  /// Null when the kernel can run this node, by dtypes, ranks and attributes; else the refusal. Dimensions may be
  /// symbolic.
  const char* (*refuses)(const Graph&, NodeId);
  /// Adds the tasks of the node.
  void (*lower)(LowerContext&);
  /// These answer the questions of Target with the same names. Null means never.
  bool (*reads_strided)(const Graph&, NodeId, int operand) = nullptr;
  bool (*in_place)(const Graph&, NodeId, int operand, int result) = nullptr;
  bool plans_bodies = false;
  std::optional<PackedLayout> (*packed_layout)(const KernelTable&, const Graph&, NodeId, int operand,
                                               const ConstantMatrix&) = nullptr;
  bool (*reads_packed)(const Graph&, NodeId, int operand, const PackedLayout&) = nullptr;
  bool (*reads_encoded)(const Graph&, NodeId, int operand) = nullptr;
  std::uint32_t skips_unread = 0;  // bit r: result r needs no place when nobody reads it (LowerContext::is_read)
};

/// The families of kernel entries, tuned kernels before generic ones: `<family>_entries()` returns those of one file.
// clang-format off
#define RLX_FOR_EACH_ENTRY_FAMILY(F) \
  F(quantized) F(interleaved) F(dot) F(conv) F(conv_column) F(matmul) F(prepack) F(attention) \
  F(norm) F(softmax_columns) F(tape) F(region_64bit) F(move) F(gather) F(put_rows) F(scatter) F(window_at) F(sort) \
  F(complex) F(fft) F(factor) F(random) F(sample) F(grouped) F(recurrent) F(reduce) F(scan_argmax) F(window) \
  F(resize) F(channel_norm) F(generic_dot) F(generic_conv) F(generic_elementwise) F(generic_reduce) \
  F(generic_window) F(custom) F(control) F(collective)
// clang-format on
#define RLX_DECLARE_ENTRIES(family) std::span<const KernelEntry> family##_entries();
RLX_FOR_EACH_ENTRY_FAMILY(RLX_DECLARE_ENTRIES)
#undef RLX_DECLARE_ENTRIES

/// All kernel entries.
const EntryTable<KernelEntry>& entry_table();
/// Whether the reference rule can run the node when no kernel entry takes it, and the entry that calls the rule.
bool runs_on_host(const Graph& g, NodeId id);
const KernelEntry& host_entry();

/// A value at bind time: its shape and the place of its elements.
struct View {
  DType dtype = DType::F32;
  std::vector<std::int64_t> dims, strides;  // strides in elements
  const LirValue* where = nullptr;

  int rank() const { return static_cast<int>(dims.size()); }
  std::int64_t elements() const;
  std::int64_t dim(int axis) const { return dims[static_cast<std::size_t>(axis < 0 ? axis + rank() : axis)]; }
  std::int64_t stride(int axis) const { return strides[static_cast<std::size_t>(axis < 0 ? axis + rank() : axis)]; }
  /// True when the elements are row-major without gaps.
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

/// Scratch memory with a separate part for each thread of a run.
struct Scratch {
  std::byte* base = nullptr;
  std::size_t stride = 0;
  /// The calling thread's part, 64-byte aligned.
  std::byte* mine() const { return base + static_cast<std::size_t>(worker_index()) * stride; }
};

/// Scratch memory that nodes use one after the other. Each node may use all of it and overwrite its contents.
struct Common {
  std::byte* base = nullptr;
};

/// How the two halves of a task's chunks divide rows. In the named operands and results, the lower half
/// (StepSchedule::lower_half) touches no row from `lower_end` on, and the upper half touches no row before
/// `upper_begin`. `rows` of 0 means that the division is not known.
struct RowTiling {
  std::int64_t rows = 0, lower_end = 0, upper_begin = 0;
  std::uint32_t operands = 0, results = 0;  // bit i: operand or result i
};

/// A kernel call of an instance: `run(ctx, chunk)` for each chunk.
struct Task {
  void (*run)(void* ctx, std::int64_t chunk) = nullptr;
  void* ctx = nullptr;
  std::int64_t chunks = 0;
  double cost_ns = 0;  // estimate for one thread
  RowTiling halves{};
  bool alone = false;   // the thread that runs the program runs it alone, when all earlier tasks are done
  bool common = false;  // the node uses the common memory: it waits for the node that used it before
};

/// A pointer field whose address is known only when a run begins: it points into a caller's buffer, a weight or a
/// state.
struct Patch {
  void* field = nullptr;  // has some object pointer type; written bytewise
  Place place = Place::Input;
  std::uint32_t index = 0;
  std::size_t offset = 0;  // bytes
};

/// An object owned by the instance.
struct Kept {
  virtual ~Kept() = default;
};
template <class T>
struct KeptValue final : Kept {
  T value;
  template <class... Args>
  explicit KeptValue(Args&&... args) : value{std::forward<Args>(args)...} {}
};

class CpuExecutable;

/// What lowering fills in: the tasks of an instance, and what they need.
struct TaskList {
  const CpuExecutable* executable = nullptr;
  std::vector<Task> tasks;
  std::vector<Patch> patches;
  std::vector<std::unique_ptr<Kept>> kept;
  std::size_t scratch_bytes = 0;  // per thread
  Scratch scratch;
  std::size_t common_bytes = 0;
  Common common;
  const void** next_weight = nullptr;      // the field of the last packed matmul that takes the next weight to prefetch
  const LirValue* first_weight = nullptr;  // the packed weight that a run reads first
};

/// The lowering of one node: its operands and results with their places, and the tasks that it adds.
class LowerContext {
 public:
  LowerContext(const LirModule& lir, NodeId id, std::span<const BufferView> arenas, const KernelTable& kernels,
               int threads, TaskList& list)
      : lir_(lir),
        id_(id),
        arenas_(arenas),
        kernels_(kernels),
        threads_(threads),
        list_(list),
        first_task_(list.tasks.size()) {}

  const Graph& graph() const { return lir_.graph; }
  NodeId id() const { return id_; }
  const Node& node() const { return lir_.graph.node(id_); }
  template <class Op>
  const Op& op() const {
    return node().op.as<Op>();
  }
  int num_inputs() const { return static_cast<int>(node().inputs.size()); }
  const KernelTable& kernels() const { return kernels_; }
  /// The number of threads that plans divide work among. kFinestTiling asks for the finest chunks possible.
  int threads() const { return threads_; }
  /// Units of work per chunk: `n`, or 1 with kFinestTiling.
  std::int64_t grain(std::int64_t n) const { return finest() ? std::min<std::int64_t>(n, 1) : n; }
  bool finest() const { return threads_ == kFinestTiling; }

  View value(Value v) const;
  View in(int i) const { return value(node().inputs[static_cast<std::size_t>(i)]); }
  /// Result r. A computed result is row-major.
  View out(int r = 0) const { return value(Value(id_, static_cast<std::uint32_t>(r))); }

  /// False for a result that nobody reads; the plan gave it no place.
  bool is_read(int r) const { return out(r).where->place != Place::None; }

  /// Makes an object that lives as long as the instance.
  template <class T, class... Args>
  T& keep(Args&&... args) {
    auto kept = std::make_unique<KeptValue<T>>(std::forward<Args>(args)...);
    T& value = kept->value;
    list_.kept.push_back(std::move(kept));
    return value;
  }
  /// Points `field` at element `element` of `v`. Pointers into an arena or a constant are final; others are relocated
  /// when a run finds the value elsewhere.
  template <class T>
  void point(T*& field, const View& v, std::int64_t element = 0) {
    void* p = resolve(&field, v, element);
    std::memcpy(&field, &p, sizeof p);
  }
  /// Adds a task: Run(ctx, chunk) for each chunk of [0, chunks), after the node's earlier tasks. `cost_ns` estimates
  /// the time of all chunks on one thread.
  template <auto Run, class T>
  void step(T& ctx, std::int64_t chunks, double cost_ns) {
    if (chunks <= 0) return;
    list_.tasks.push_back(
        {[](void* p, std::int64_t chunk) { Run(*static_cast<T*>(p), chunk); }, &ctx, chunks, cost_ns});
    list_.tasks.back().common = uses_common_;
  }
  /// Adds a task that the thread which runs the program runs alone: after all earlier tasks and before all later ones.
  template <auto Run, class T>
  void step_alone(T& ctx, double cost_ns) {
    step<Run>(ctx, 1, cost_ns);
    list_.tasks.back().alone = true;
  }
  /// For a node whose kernel entry plans bodies: the plans, a range that they use, and one body as an instance.
  const LirBodies& bodies() const { return *lir_.plan.bodies_of(id_); }
  BufferView body_range(std::uint32_t range) const {
    const LirRange& r = bodies().ranges[range];
    return {arenas_[r.arena].host + r.offset, r.bytes};
  }
  std::unique_ptr<Instance> bind_body(std::size_t body) const;
  /// Describes the rows of the task added last, for producer-consumer tiling. Each run of `chunks_per_group` chunks
  /// works on the next `group_rows` of `rows` rows and touches no other rows of the named operands and results. The
  /// leading axes of these values are the rows, or what rows are counted in, such as sequences. Halves of the task then
  /// need not wait for all halves of other tasks. It does nothing when the node has added no task.
  void tile_rows(std::int64_t rows, std::int64_t group_rows, std::int64_t chunks_per_group,
                 std::initializer_list<int> operands, std::initializer_list<int> results = {0});
  /// Scratch of at least `bytes` per thread. Its address is final when the program runs.
  const Scratch* scratch(std::size_t bytes) {
    if (bytes > list_.scratch_bytes) list_.scratch_bytes = bytes;
    return &list_.scratch;
  }
  /// At least `bytes` shared by all tasks that the node adds after this call. No other node uses the memory meanwhile.
  /// Its address is final when the program runs.
  const Common* common(std::size_t bytes) {
    if (bytes > list_.common_bytes) list_.common_bytes = bytes;
    uses_common_ = true;
    return &list_.common;
  }
  /// `bytes` of memory shared by all chunks of the node, 64-byte aligned.
  std::byte* workspace(std::size_t bytes);
  TaskList& list() { return list_; }

 private:
  void* resolve(void* field, const View& v, std::int64_t element);
  const LirModule& lir_;
  NodeId id_;
  std::span<const BufferView> arenas_;
  const KernelTable& kernels_;
  int threads_;
  TaskList& list_;
  std::size_t first_task_;  // index of the node's first task
  bool uses_common_ = false;
};

// -- helpers of kernel entries --

/// True when all operands and results have this dtype.
bool every_dtype(const Graph& g, NodeId id, DType t);
/// Refuses operands or results of a dtype other than f32.
const char* refuse_unless_f32(const Graph& g, NodeId id);
/// Refuses more axes than the generic kernels support.
const char* refuse_high_rank(const Shape& s);
/// Refuses storage-only dtypes.
inline const char* refuse_storage_only(DType t) {
  return refuse_unless(!is_storage_only(t), "no kernel computes with its dtype, which is for storage only");
}
/// The product of dims [first, last).
std::int64_t product(std::span<const std::int64_t> dims);
/// Strides of `v` broadcast to `dims` with right alignment: 0 on repeated axes.
std::vector<std::int64_t> broadcast_strides(const View& v, std::span<const std::int64_t> dims);
/// The single stride that covers axes [first, last) of `v` in row-major order; nullopt when the axes do not fold; 0
/// without axes.
std::optional<std::int64_t> fold_stride(const View& v, int first, int last);

/// A view as [rows, cols] with leading dimension `ld`.
struct RowView {
  std::int64_t rows = 1, cols = 1, ld = 0;
};
std::optional<RowView> as_rows(const View& v);
/// The kernel library's enumerator for a reduction.
cpu::ReduceKind kernel_kind(rlx::ReduceKind fn);
/// Approximate matmul speed of this instruction set in FLOP per ns, for cost estimates.
double gemm_flops_per_ns(Isa isa);

}  // namespace rlx::cpu
