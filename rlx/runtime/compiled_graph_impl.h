// What is behind CompiledGraph: the bound memory of one runner. Internal.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/run_memory.h"
#include "rlx/runtime/shared_programs.h"
#include "rlx/runtime/weight_store.h"

namespace rlx {

/// The weights that one code's kernels read.
struct ProgramWeights {
  std::shared_ptr<const CompiledProgram> code;
  std::uint64_t binding_generation = 0;  // of the runner when they were prepared
  WeightTable weights;
};

/// A program at its extents, bound to the memory of one runner, with the tables that its runs are given.
struct BoundProgram {
  std::shared_ptr<const ProgramAtExtents> spec;
  std::unique_ptr<BoundGraph> bound;
  std::vector<BufferView> arenas;
  std::uint64_t binding_generation = 0;  // of the runner when `weights` and `states` were filled
  std::vector<BufferView> weights;
  std::vector<RunSlot> inputs, outputs, states;
  std::vector<std::shared_ptr<Buffer>> input_buffer_slots, output_buffer_slots;  // behind the slots on an opaque device
  std::vector<std::size_t> cells;                                                // which of the runner's `states` are
  std::vector<bool> updates;                  // those of them that a run gives new values
  std::vector<std::weak_ptr<Buffer>> before;  // on an opaque device: theirs when the run under way was submitted
  std::vector<std::uint64_t> moves;           // of those cells when `states` was filled
  std::vector<void*> results;                 // where the host wants the outputs of the next run

  /// True when runs put another buffer in the place of the k-th state's.
  bool renews(std::size_t k) const { return updates[k] && states[k].buffer_slot; }
};

/// The program of a run. What the run holds of an opaque device's memory is let go of with this, however the run ends.
class ProgramInUse {
 public:
  explicit ProgramInUse(BoundProgram& p) : p_(&p) {}
  ProgramInUse(ProgramInUse&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  ProgramInUse& operator=(ProgramInUse&&) = delete;
  ~ProgramInUse() {
    if (!p_) return;
    for (auto* list : {&p_->input_buffer_slots, &p_->output_buffer_slots})
      for (std::shared_ptr<Buffer>& holder : *list) holder.reset();
  }
  BoundProgram& operator*() const { return *p_; }
  BoundProgram* operator->() const { return p_; }
  /// The run goes on with another, which has the inputs from now on.
  void go_on(BoundProgram& next) { p_ = &next; }

 private:
  BoundProgram* p_;
};

/// A state between runs: its bytes on the device, and the work on them. Runners that share it share this.
struct StateCell {
  std::shared_ptr<Buffer> buffer;
  Shape shape;
  std::shared_ptr<OpenDevice> device;  // where it is
  bool keep = false;                   // OnFailure::Keep
  Event written{};                     // the work that made the value
  Event last{};  // the work that used it last, behind that: a reader that fails takes nothing from the value
  bool valid = true;
  std::uint64_t moves = 0;  // how often it went elsewhere; the address of a buffer may come again
  bool good() const { return valid && (keep || !written.failed()); }
  /// It is what `work` has made of it.
  void set_written(const Event& work) { written = last = work; }

  /// With `keep` on an opaque device: the buffers that runs not yet known to be done replaced, the oldest first.
  struct Before {
    Event run;
    std::shared_ptr<Buffer> buffer;
    Event written;  // the work that made it
  };
  std::vector<Before> before{};
  std::weak_ptr<Stream> writer{};  // of those runs
  /// Puts back what the first failed run replaced.
  void settle();
};

/// A value kept between runs: given to the input of its name by runs that do not give it, and, when its name is that of
/// an output, replaced by that output after each run.
struct Handle {
  Tensor value;
  std::vector<std::int64_t> dims;  // empty: one unknown dimension follows from the count
  std::optional<std::size_t> output;
  bool ours = false;  // the value's bytes are of a run of ours and shared with nobody
};

/// The device and its backend, with the options that it was opened with: "cpu (backend 'reference')".
std::string place_text(const SharedPrograms& code);

/// The entry called `name`, or a NotFound error that names the nearest.
std::size_t find_io(const std::vector<IoInfo>& infos, std::string_view name, std::string_view what,
                    const std::string& graph);
/// The same by the list's index.
inline std::size_t find_io(const std::vector<IoInfo>& infos, const NameIndex& index, std::string_view name,
                           std::string_view what, const std::string& graph) {
  const std::optional<std::size_t> place = index.find(name);
  return place ? *place : find_io(infos, name, what, graph);
}

/// True where values of that dtype may lie.
bool lies_aligned(const void* data, DType dtype);
/// Kernels read and write in place what lies as its elements do; InvalidArgument names what does not.
void require_aligned(std::string_view what, std::string_view name, const void* data, DType dtype);

/// Refuses a tensor on a device where its bytes are read on the host; InvalidArgument names what it was given for.
void require_on_host(std::string_view what, std::string_view name, const Tensor& value);

// Room that `f` makes for `what` of a graph; the error of a machine without it names both.
template <class F>
auto make_room(const std::string& graph, const std::string& what, std::size_t bytes, F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {  // more than a vector can have
  } catch (const Error& e) {
    if (e.code() != ErrorCode::OutOfMemory) throw;
  }
  throw_no_room(graph, what, bytes);
}

struct CompiledGraph::Impl {
  std::shared_ptr<SharedPrograms> code;
  std::shared_ptr<OpenDevice> device;
  std::shared_ptr<Stream> stream;
  mutable std::map<std::shared_ptr<OpenDevice>, std::shared_ptr<Stream>> state_streams;  // of other devices
  std::shared_ptr<WeightStore> weights;
  std::vector<std::shared_ptr<StateCell>> states;
  std::uint64_t binding_generation = 1;  // counts the changes of weights and states
  std::map<std::string, Handle, std::less<>> handles;
  std::vector<std::vector<std::int64_t>> raw_dims;       // behind the views of run_raw
  std::span<const Slot> committed;                       // what sync_pending returns, once `pending` is done
  std::shared_ptr<const ProgramAtExtents> committed_by;  // whose slots they are
  Event pending;
  Event last_run;           // of all that was submitted
  bool run_thrown = false;  // by one behind that
  std::optional<ActiveExtent> extent;
  Dim extent_rows;                       // its symbol
  std::vector<TensorView> extent_views;  // the views of a run cut to the extent
  std::vector<std::vector<std::int64_t>> extent_dims;
  std::vector<std::int64_t> at_stop;  // the values of symbols at the last stop
  std::vector<BufferView> sources;    // and where they lie
  RunMemory memory;
  std::list<std::unique_ptr<BoundProgram>> shapes;  // most recently used first
  std::list<ProgramWeights> prepared;               // likewise

  /// What runs are called in a trace.
  struct RunNames {
    std::uint64_t serial = 0;  // of the trace
    std::uint32_t run = 0, submit = 0, device = 0;
  };
  RunNames names;

  explicit Impl(std::shared_ptr<SharedPrograms> shared);
  /// The timeline that it records into, or null.
  Trace* trace() const { return code->options.trace.get(); }
  const RunNames& run_names();
  /// True for a device that is not the calling threads.
  bool runs_apart() const { return code->target->device() != Device::Cpu; }
  static std::unique_ptr<Impl> make(std::shared_ptr<SharedPrograms> code);
  std::shared_ptr<StateCell> new_state(const IoInfo& info) const;
  /// `fresh`: they were just allocated.
  void reset_states(bool fresh = false);
  /// Writes bytes of the cell from `offset` on; null: zeros.
  void write_state(StateCell& cell, const std::byte* data, std::size_t offset, std::size_t bytes);
  Tensor read_state(std::size_t i, Rows rows) const;
  std::size_t granule() const { return code->target->limits().copy_granule; }
  std::shared_ptr<StateCell> copy_of(StateCell& cell) const;
  /// A stream of ours on a device that has a state.
  Stream& stream_on(const std::shared_ptr<OpenDevice>& there) const;
  /// Brings the states to where `c` has them; true when one of them lies elsewhere than `s` was told.
  bool place_states(const CompiledProgram& c, const BoundProgram& s);
  void move_state(StateCell& cell, const std::shared_ptr<OpenDevice>& to) const;
  /// The entry of `c`; from now on a weight that is set is packed for it at once.
  ProgramWeights& known(const std::shared_ptr<const CompiledProgram>& c);
  /// The weights of `c`, prepared as far as they are not yet.
  const WeightTable& prepare(const std::shared_ptr<const CompiledProgram>& c);
  BoundProgram& use(std::shared_ptr<const ProgramAtExtents> spec);
  void bind(BoundProgram& s);
  /// The program of the views' dimensions, and where the run computes symbols, of their values too: all before the last
  /// of them is known has then been run.
  ProgramInUse program_for(std::span<const TensorView>& views, std::vector<StepTime>* times = nullptr);
  /// The same where symbols take their values from the inputs' (symbol_values.h).
  BoundProgram& program_by_value(std::span<const TensorView> views);
  BoundProgram& first_program(std::span<const TensorView>& views);
  /// Runs up to each stop, reads the values there, and goes on with the program at these, up to the last one.
  void advance(ProgramInUse& used, std::span<const TensorView> views, std::vector<StepTime>* times);
  BoundProgram& next_program(BoundProgram& s);
  void read_sources(BoundProgram& s, const SyncPoint& cut, std::vector<StepTime>* times);
  void read_outputs(BoundProgram& s, const SyncPoint& cut, std::vector<StepTime>* times);
  /// What comes before the first step: states and inputs are looked at, memory and tables are there, inputs in place.
  void begin(BoundProgram& s, std::span<const TensorView> views);
  /// Submits steps of `s` behind the work on its states, which they write or do not.
  Event submit(BoundProgram& s, StepRange range, std::span<const RunSlot> outputs, bool writes,
               std::vector<StepTime>* times);
  void follow_submitted(BoundProgram& s);
  /// What a run of `s` that failed leaves of the states that it was to give new values; `submitted`: to its end.
  void revoke(BoundProgram& s, bool submitted);
  /// The same for a run whose outputs go to fresh vectors of f32.
  ProgramInUse program_for_f32(std::span<const TensorView>& views, std::vector<std::vector<float>>& results);
  std::span<const TensorView> cut_to_extent(std::span<const TensorView> views);
  void check_sizes(const BoundProgram& s, std::span<const TensorView> views) const;
  std::vector<std::int64_t> resolve_dims(const IoInfo& info, const TensorView& view) const;
  std::size_t input_index(std::string_view name) const {
    return find_io(code->inputs, code->input_index, input_name(name), "input", code->source.name());
  }
  /// `name`, or the other name of the same cotangent input where only that is an input's.
  std::string_view input_name(std::string_view name) const;
  void set_handle(std::string_view name, Tensor value, std::vector<std::int64_t> dims, bool may_be_output);
  std::vector<TensorView> views_of(const std::vector<NamedInput>& given) const;
  std::vector<TensorView> views_of(const NamedTensors& given, std::vector<std::vector<std::int64_t>>& dims) const;
  void fill_from_handles(std::vector<TensorView>& views, std::vector<bool>& bound) const;
  void check_overlap(const BoundProgram& s, std::span<const TensorView> in,
                     std::span<const MutableTensorView> out) const;
  /// Refuses inputs in this object's memory where the run of `s` writes it (the results only with `to_results`), and
  /// anywhere in it when the run takes more of it. Comes before bind, which replaces it then.
  void check_inputs_stay(const BoundProgram& s, std::span<const TensorView> in, bool to_results) const;
  /// The outputs of the next run of `s` go to our own results.
  void keep_results(BoundProgram& s, std::span<const TensorView> views);
  bool has_output_handles() const;
  void require_device() const;   // DeviceLost once it is lost: before its states are called invalid
  void require_present() const;  // DeviceUnavailable for a program of Session::for_target, which is a plan
  void require_states() const;
  /// What is given on a device lies in memory of the program's own as it is open now, and was made; an Error names it.
  void require_here(std::string_view what, std::string_view name, const Buffer& there) const;
  /// Outputs that stay on the device, and the inputs by name, of which those that are donated are let go of.
  struct DeviceRun {
    std::vector<Tensor> outputs;
    NamedTensors* given = nullptr;
  };
  /// Starts a run whose outputs lie at `s.results`, or in `on_device`, once the event is waited for.
  Event start(BoundProgram& s, std::span<const TensorView> views, std::vector<StepTime>* times = nullptr,
              DeviceRun* on_device = nullptr);
  std::vector<Tensor> run_device(const NamedTensors& inputs, NamedTensors* given);
  /// The same, and waits.
  void run(BoundProgram& s, std::span<const TensorView> views, std::vector<StepTime>* times = nullptr);
  std::vector<TensorView> run_to_views(std::span<const TensorView> views);
  void commit(std::span<const TensorView> views);
  /// Starts a run of f32 inputs whose outputs go to fresh vectors of f32.
  Event start_run(const std::vector<NamedInput>& given, std::vector<std::vector<float>>& results);
  BoundProgram& last() const;
  WeightStore& own_weights();
};

}  // namespace rlx
