// What is behind CompiledGraph: the bound memory of one runner. Internal.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/run_memory.h"
#include "rlx/runtime/specialize.h"
#include "rlx/runtime/weights.h"

namespace rlx {

/// The weights that one code's kernels read.
struct PreparedCode {
  std::shared_ptr<const Code> code;
  std::uint64_t tables = 0;  // of the runner when they were prepared
  WeightTable weights;
};

/// A program at its extents, bound to the memory of one runner, with the tables that its runs are given.
struct BoundProgram {
  std::shared_ptr<const Specialization> spec;
  std::unique_ptr<BoundGraph> bound;
  std::uint64_t tables = 0;  // of the runner when `weights` and `states` were filled
  std::vector<BufferView> weights;
  std::vector<RunSlot> inputs, outputs, states;
  std::vector<void*> results;  // where the host wants the outputs of the next run
};

/// A state between runs: its bytes on the device, and the work that wrote them last. Runners that share it share this.
struct StateCell {
  std::shared_ptr<Buffer> buffer;
  Shape shape;
  Event last{};
  bool valid = true;
  bool good() const { return valid && !last.failed(); }
  BufferView view() const { return {*buffer, 0, shape.size_bytes()}; }
};

/// A value kept between runs: given to the input of its name by runs that do not give it, and, when its name is that of
/// an output, replaced by that output after each run.
struct Handle {
  Tensor value;
  std::vector<std::int64_t> dims;  // empty: one unknown dimension follows from the count
  std::optional<std::size_t> output;
  bool ours = false;  // the value's bytes are of a run of ours and shared with nobody
};

/// The entry called `name`, or a NotFound error that names the nearest.
std::size_t find_io(const std::vector<IoInfo>& infos, std::string_view name, std::string_view what,
                    const std::string& graph);
/// The same by the list's index.
inline std::size_t find_io(const std::vector<IoInfo>& infos, const NameIndex& index, std::string_view name,
                           std::string_view what, const std::string& graph) {
  const std::optional<std::size_t> place = index.find(name);
  return place ? *place : find_io(infos, name, what, graph);
}

struct CompiledGraph::Impl {
  std::shared_ptr<SharedCode> code;
  std::shared_ptr<OpenDevice> device;
  std::shared_ptr<Stream> stream;
  std::shared_ptr<WeightStore> weights;
  std::vector<std::shared_ptr<StateCell>> states;
  std::uint64_t tables = 1;  // counts the changes of weights and states
  std::map<std::string, Handle, std::less<>> handles;
  std::vector<std::vector<std::int64_t>> raw_dims;  // behind the views of run_raw
  std::span<const Slot> committed;                  // what sync_pending returns, once `pending` is done
  Event pending;
  std::optional<ActiveExtent> extent;
  Dim extent_rows;                       // its symbol
  std::vector<TensorView> extent_views;  // the views of a run cut to the extent
  std::vector<std::vector<std::int64_t>> extent_dims;
  RunMemory memory;
  std::list<std::unique_ptr<BoundProgram>> shapes;  // most recently used first
  std::list<PreparedCode> prepared;                 // likewise

  explicit Impl(std::shared_ptr<SharedCode> shared);
  static std::unique_ptr<Impl> make(std::shared_ptr<SharedCode> code);
  std::shared_ptr<StateCell> new_state(const Shape& shape) const;
  void reset_states();
  void write_state(StateCell& cell, const std::byte* data);  // null: zeros
  Tensor read_state(std::size_t i) const;
  std::shared_ptr<StateCell> copy_of(StateCell& cell) const;
  /// The entry of `c`; from now on a weight that is set is packed for it at once.
  PreparedCode& known(const std::shared_ptr<const Code>& c);
  /// The weights of `c`, prepared as far as they are not yet.
  const WeightTable& prepare(const std::shared_ptr<const Code>& c);
  BoundProgram& use(std::shared_ptr<const Specialization> spec);
  void bind(BoundProgram& s);
  BoundProgram& program_for(std::span<const TensorView>& views);
  /// The same for a run whose outputs go to fresh vectors of f32.
  BoundProgram& program_for_f32(std::span<const TensorView>& views, std::vector<std::vector<float>>& results);
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
  void require_device() const;  // DeviceLost once it is lost: before its states are called invalid
  /// Starts a run whose outputs lie at `s.results`, or in these buffers, once the event is waited for.
  Event start(BoundProgram& s, std::span<const TensorView> views, std::vector<StepTime>* times = nullptr,
              std::span<const std::shared_ptr<Buffer>> device_outputs = {});
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
