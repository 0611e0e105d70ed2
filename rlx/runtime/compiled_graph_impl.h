// The implementation of CompiledGraph: the bound memory of one instance. Internal.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rlx/base/forks.h"
#include "rlx/runtime/call_gate.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/nan_search.h"
#include "rlx/runtime/run_memory.h"
#include "rlx/runtime/shared_programs.h"
#include "rlx/runtime/weight_store.h"

namespace rlx {

/// A program at its extents, bound to the memory of one instance, with the argument tables of its runs.
struct BoundInstance {
  std::shared_ptr<const Specialization> spec;
  std::unique_ptr<Instance> bound;
  std::vector<BufferView> arenas;
  std::uint64_t binding_generation = 0;  // binding generation of the instance when `weights` and `states` were filled
  std::shared_ptr<const WeightTable> weights;  // programs of one compilation share it
  std::vector<RunSlot> inputs, outputs, states;
  std::vector<std::shared_ptr<Buffer>> input_buffer_slots, output_buffer_slots;  // of `inputs` and `outputs`, on an
                                                                                 // opaque device
  std::vector<std::size_t> cells;             // by entry of `states`: its index in Impl::states
  std::vector<bool> updates;                  // by entry of `states`: a run writes it
  std::vector<std::weak_ptr<Buffer>> before;  // on an opaque device: the states' buffers before the current run
  std::vector<std::uint64_t> moves;           // by entry of `states`: StateCell::moves when `states` was filled
  std::vector<void*> results;                 // host addresses for the outputs of the next run

  /// True when runs replace the buffer of the k-th state.
  bool renews(std::size_t k) const { return updates[k] && states[k].buffer_slot; }
};

/// The program of a run. Its destructor releases the run's memory on an opaque device, however the run ends.
class InstanceInUse {
 public:
  explicit InstanceInUse(BoundInstance& p) : p_(&p) {}
  InstanceInUse(InstanceInUse&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  InstanceInUse& operator=(InstanceInUse&&) = delete;
  ~InstanceInUse() {
    if (!p_) return;
    for (auto* list : {&p_->input_buffer_slots, &p_->output_buffer_slots})
      for (std::shared_ptr<Buffer>& slot : *list) slot.reset();
  }
  BoundInstance& operator*() const { return *p_; }
  BoundInstance* operator->() const { return p_; }
  /// The run continues with program `next`, which now owns the inputs.
  void go_on(BoundInstance& next) { p_ = &next; }

 private:
  BoundInstance* p_;
};

/// A state between runs: its bytes on the device, and the events of the work on them. Instances that share the state
/// share the cell.
struct StateCell {
  StateCell(std::shared_ptr<Buffer> b, Shape s, std::shared_ptr<OpenDevice> d, bool keeps)
      : buffer(std::move(b)), shape(std::move(s)), device(std::move(d)), keep(keeps) {}
  ObjectMutex turn{"a state that several CompiledGraphs share"};  // of calls, when other instances share the cell
  std::shared_ptr<Buffer> buffer;
  Shape shape;
  std::shared_ptr<OpenDevice> device;  // the device that holds it
  bool keep = false;                   // OnFailure::Keep
  Event written{};                     // the work that made the value
  Event last{};  // the last work that used it, after `written`; a failed reader does not invalidate the value
  bool valid = true;
  std::uint64_t moves = 0;  // number of changes of device; a buffer address alone may be reused
  bool good() const { return valid && (keep || !written.failed()); }
  /// Records that `work` wrote the value.
  void set_written(const Event& work) { written = last = work; }

  /// With `keep` on an opaque device: the buffers that unfinished runs replaced, oldest first.
  struct Before {
    Event run;
    std::shared_ptr<Buffer> buffer;
    Event written;  // the work that made the buffer's value
  };
  std::vector<Before> before{};
  std::weak_ptr<Stream> writer{};  // the stream of those runs
  /// If a run failed: restores the buffer that the first failed run replaced.
  void settle();
};

/// A value kept between runs. It is the input of the same name in runs that are not passed that input. If an output has
/// the same name, that output replaces it after each run.
struct Handle {
  Tensor value;
  std::vector<std::int64_t> dims;  // empty: one unknown dimension follows from the count
  std::optional<std::size_t> output;
  bool ours = false;  // the bytes come from a run of this instance, and nobody else has a reference
};

/// The device and its backend, with the options it was opened with: "cpu (backend 'reference')".
std::string place_text(const SharedPrograms& code);

/// The index of the entry called `name`. NotFound suggests the most similar name.
std::size_t find_io(const std::vector<IoInfo>& infos, std::string_view name, std::string_view what,
                    const std::string& graph);
/// The same through the list's index.
inline std::size_t find_io(const std::vector<IoInfo>& infos, const NameIndex& index, std::string_view name,
                           std::string_view what, const std::string& graph) {
  const std::optional<std::size_t> place = index.find(name);
  return place ? *place : find_io(infos, name, what, graph);
}

/// An address that names the calling thread.
const void* this_thread();

/// True when the address is aligned for values of that dtype.
inline bool lies_aligned(const void* data, DType dtype) {
  return (reinterpret_cast<std::uintptr_t>(data) & (alignment_of(dtype) - 1)) == 0;  // a power of two
}
[[noreturn]] void throw_misaligned(std::string_view what, std::string_view name, DType dtype);
/// Throws InvalidArgument naming the value when `data` is not aligned to its elements. Kernels access caller memory in
/// place and need this alignment.
inline void require_aligned(std::string_view what, std::string_view name, const void* data, DType dtype) {
  if (!lies_aligned(data, dtype)) throw_misaligned(what, name, dtype);
}

/// Throws InvalidArgument for a device tensor, because the caller reads its bytes on the host. `what` and `name` say
/// which argument it is.
void require_on_host(std::string_view what, std::string_view name, const Tensor& value);

// Calls `f`, which allocates memory for `what` of a graph. An out-of-memory error names both.
template <class F>
auto make_room(const std::string& graph, const std::string& what, std::size_t bytes, F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {  // exceeds the maximum size of a vector
  } catch (const Error& e) {
    if (e.code() != ErrorCode::OutOfMemory) throw;
  }
  throw_no_room(graph, what, bytes);
}

struct CompiledGraph::Impl {
  class Call;
  using Use = CallGate::Use;
  /// Destroys `impl` (or nothing) once nobody is inside of it, as far as this thread can wait for that.
  static void retire(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> next_retired;  // in the list of `retire`
  /// Idle instances for runs that find the memory of the object in use. Only `gate`, `idle`, `changes` and `results_of`
  /// of the object itself are used, not those of a spare instance.
  CallGate gate;
  std::array<std::atomic<Impl*>, 16> idle{};
  std::uint64_t changes = 0;  // counts the calls that changed weights, sticky inputs or the active extent; for a spare
                              // instance: the count at its last run
  std::atomic<const void*> results_of{nullptr};  // the thread whose run left results in the memory of the object
  std::vector<std::shared_ptr<const Compilation>> shown;  // those that compile_result returned last
  std::vector<StateCell*> cells_in_order;                 // `states` by address

  std::shared_ptr<SharedPrograms> code;
  std::shared_ptr<OpenDevice> device;
  std::shared_ptr<Stream> stream;
  mutable std::map<std::shared_ptr<OpenDevice>, std::shared_ptr<Stream>> state_streams;  // of states' devices
  std::shared_ptr<WeightStore> weights;
  std::vector<std::shared_ptr<StateCell>> states;
  std::uint64_t binding_generation = 1;  // counts the changes of weights and states
  std::map<std::string, Handle, std::less<>> handles;
  std::vector<std::vector<std::int64_t>> raw_dims;     // referenced by the views of run_raw
  std::span<const Slot> committed;                     // the result of sync_pending, once `pending` is done
  std::shared_ptr<const Specialization> committed_by;  // the program whose slots they are
  Event pending;
  Event last_run;           // of all submitted work
  bool run_thrown = false;  // a later run threw before it was submitted
  std::optional<ActiveExtent> extent;
  Dim extent_rows;                       // its symbol
  std::vector<TensorView> extent_views;  // the views of a run, narrowed to the extent
  std::vector<std::vector<std::int64_t>> extent_dims;
  std::vector<std::int64_t> at_stop;  // the values of symbols at the last sync point
  std::vector<BufferView> sources;    // the locations of the values that the host reads there
  RunMemory memory;
  struct CheckedRun;
  std::shared_ptr<CheckedRun> checked;               // what the current run reads, if it is checked for NaN
  std::list<std::unique_ptr<BoundInstance>> shapes;  // most recently used first

  /// The names of runs in a trace.
  struct RunNames {
    std::uint64_t serial = 0;  // of the trace
    std::uint32_t run = 0, submit = 0, device = 0;
  };
  RunNames names;

  explicit Impl(std::shared_ptr<SharedPrograms> shared);
  ~Impl();
  /// An instance for one run: an idle one with the weights and inputs of today, or a new one.
  Impl* take_spare();
  void give_back(Impl* spare) noexcept;
  /// Spare instances let go of the weights, so that a change need not copy them for their sake.
  void release_spare_weights();
  /// After `states` or handles were set.
  void note_what_runs_keep();
  std::unique_ptr<Impl> copy();
  /// The trace that it records into, or null.
  Trace* trace() const { return code->options.trace.get(); }
  const RunNames& run_names();
  /// True for a device that does not run on the calling thread.
  bool runs_apart() const { return code->target->device() != Device::Cpu; }
  static std::unique_ptr<Impl> make(std::shared_ptr<SharedPrograms> code);
  std::shared_ptr<StateCell> new_state(const IoInfo& info) const;
  /// `fresh`: they were just allocated.
  void reset_states(bool fresh = false);
  /// Writes bytes of the cell from `offset` on; null `data` writes zeros.
  void write_state(StateCell& cell, const std::byte* data, std::size_t offset, std::size_t bytes);
  Tensor read_state(std::size_t i, Rows rows) const;
  std::size_t granule() const { return code->target->limits().copy_granule; }
  std::shared_ptr<StateCell> copy_of(StateCell& cell) const;
  /// Our stream on a device that holds a state.
  Stream& stream_on(const std::shared_ptr<OpenDevice>& there) const;
  /// Moves the states to the devices that the plan of `c` names. Returns true when a state lies elsewhere than the
  /// tables of `s` say.
  bool place_states(const Compilation& c, const BoundInstance& s);
  void move_state(StateCell& cell, const std::shared_ptr<OpenDevice>& to) const;
  /// From now on `weights` packs for all our programs as soon as a weight is set.
  void register_programs();
  /// The weights of `c`. Prepares those that are not prepared yet.
  std::shared_ptr<const WeightTable> prepared(const std::shared_ptr<const Compilation>& c);
  BoundInstance& use(std::shared_ptr<const Specialization> spec);
  void bind(BoundInstance& s);
  /// The program for the dimensions of the views. When the run computes symbols, this call runs all steps before the
  /// last sync point, and returns the program for the values that it reads there.
  InstanceInUse program_for(std::span<const TensorView>& views, std::vector<StepTime>* times = nullptr);
  /// The same for a graph whose symbols are values of inputs (symbol_values.h).
  BoundInstance& program_by_value(std::span<const TensorView> views);
  BoundInstance& first_program(std::span<const TensorView>& views);
  /// Runs up to each sync point, reads the values there, and continues with the program at these values, up to the last
  /// sync point.
  void advance(InstanceInUse& used, std::span<const TensorView> views, std::vector<StepTime>* times);
  BoundInstance& next_program(BoundInstance& s);
  void read_sources(BoundInstance& s, const SyncPoint& point, std::vector<StepTime>* times);
  void read_outputs(BoundInstance& s, const SyncPoint& point, std::vector<StepTime>* times);
  /// Prepares a run before its first step: checks states and inputs, allocates memory, fills the tables, and copies or
  /// points to the inputs.
  void begin(BoundInstance& s, std::span<const TensorView> views);
  /// Submits steps of `s` after the work on its states. `writes`: the steps write states.
  Event submit(BoundInstance& s, StepRange range, std::span<const RunSlot> outputs, bool writes,
               std::vector<StepTime>* times);
  void follow_submitted(BoundInstance& s);
  /// Updates the validity of states after a failed run of `s` that was to write them. `submitted`: the whole run was
  /// submitted.
  void check_files(const BoundInstance& s);
  void revoke(BoundInstance& s, bool submitted);
  /// As program_for, for a run whose outputs go to new vectors of f32.
  InstanceInUse program_for_f32(std::span<const TensorView>& views, std::vector<std::vector<float>>& results);
  std::span<const TensorView> narrowed_to_extent(std::span<const TensorView> views);
  void check_sizes(const BoundInstance& s, std::span<const TensorView> views) const;
  std::vector<std::int64_t> resolve_dims(const IoInfo& info, const TensorView& view) const;
  std::size_t input_index(std::string_view name) const {
    return find_io(code->inputs, code->input_index, input_name(name), "input", code->source.name());
  }
  /// `name`, or the other name of the same cotangent input when only that one is an input.
  std::string_view input_name(std::string_view name) const;
  void set_handle(std::string_view name, Tensor value, std::vector<std::int64_t> dims, bool may_be_output);
  std::vector<TensorView> views_of(const std::vector<NamedInput>& given) const;
  std::vector<TensorView> views_of(const NamedTensors& given, std::vector<std::vector<std::int64_t>>& dims) const;
  void fill_from_handles(std::vector<TensorView>& views, std::vector<bool>& bound) const;
  void check_overlap(const BoundInstance& s, std::span<const TensorView> in,
                     std::span<const MutableTensorView> out) const;
  /// Throws when the run of `s` would write memory of this object that holds an input. Results are such memory only
  /// with `to_results`. When the run needs more memory, no input may lie in this object's memory at all, because bind
  /// replaces it. Must be called before bind.
  void check_inputs_stay(const BoundInstance& s, std::span<const TensorView> in, bool to_results) const;
  /// The outputs of the next run of `s` go to this object's results.
  void keep_results(BoundInstance& s, std::span<const TensorView> views);
  bool has_output_handles() const;
  void require_device() const;   // throws DeviceLost for a lost device, before its states are reported invalid
  void require_present() const;  // throws DeviceUnavailable for a plan of Session::for_target
  void require_states() const;
  /// Checks that a device tensor lies in memory of the program's own open device and that its work succeeded. An Error
  /// names it.
  void require_here(std::string_view what, std::string_view name, const Buffer& there) const;
  /// A run whose outputs stay on the device. `given`: null, or the donated inputs by name, which are released once the
  /// run has taken them.
  struct DeviceRun {
    std::vector<Tensor> outputs;
    NamedTensors* given = nullptr;
  };
  struct RunOptions {
    bool wait = true;                        // for the end of the run; its results then replace the values of handles
    std::vector<StepTime>* times = nullptr;  // filled with the time of each step
    DeviceRun* on_device = nullptr;
  };
  /// Runs `s`. When the returned event is done, its outputs lie at `s.results`, or in `on_device`.
  Event run(BoundInstance& s, std::span<const TensorView> views, const RunOptions& options);
  /// The values that the results of a run of `s` give to handles, where a handle has no memory for its own.
  struct FreshValue {
    Handle& handle;
    Tensor value;
    std::vector<std::int64_t> dims;
  };
  std::vector<FreshValue> room_for_handles(const BoundInstance& s);
  void update_handles(const BoundInstance& s, std::vector<FreshValue>& fresh);
  std::vector<Tensor> run_device(const NamedTensors& inputs, NamedTensors* given);
  /// The check of runs that this thread starts now.
  NanCheck nan_check() const {
    if (NanCheckScope::any_open())
      if (const auto scoped = NanCheckScope::current()) return *scoped;
    return code->options.nan_check.value_or(NanCheck::Off);
  }
  /// Before a run that is checked: copies its inputs and the states.
  void remember_run(const BoundInstance& s, std::span<const TensorView> views);
  /// After it, when it is done: throws NotFinite, with the states as they were before the run.
  void check_results(const BoundInstance& s, const DeviceRun* on_device);
  struct FoundResult;
  [[noreturn]] void throw_not_finite(const BoundInstance& s, const CheckedRun& run,
                                     const std::vector<FoundResult>& found);
  SmallProgram small_program(Graph g, const NamedTensors& params) const;
  std::vector<TensorView> run_to_views(std::span<const TensorView> views);
  void commit(std::span<const TensorView> views);
  /// Starts a run on f32 inputs whose outputs go to new vectors of f32.
  Event start_run(const std::vector<NamedInput>& given, std::vector<std::vector<float>>& results);
  BoundInstance& last() const;
  WeightStore& own_weights();
  void set_param(const IoInfo& info, const void* data, std::size_t bytes, DType dtype);
  void set_param(const IoInfo& info, const Tensor& value);
  std::vector<std::string> unset_params() const;
  std::vector<std::vector<float>> run(const std::vector<NamedInput>& given);
  std::vector<Tensor> run_typed(const NamedTensors& given);
  Tensor read_handle(std::string_view name) const;
};

/// One call of a CompiledGraph. It waits until the call may proceed, and gives it the instance that it works on.
class CompiledGraph::Impl::Call {
 public:
  Call(Impl& object, Use use);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  Impl& operator*() const { return *at_; }
  Impl* operator->() const { return at_; }
  /// Whether this thread, or the thread whose run it works for, is inside of a call of `object`.
  static bool is_inside(const Impl& object);

 private:
  CallGate::Inside where() const;
  void lock_states();

  Impl& object_;
  Impl* at_;
  CallGate::Entry entry_{};
  bool holds_states_ = false;
  const void*& purpose_;  // of this thread: its innermost call
  const void* outer_;     // the call of this thread, or of the thread whose run it works for, that this one is part of
};

}  // namespace rlx
