// CompiledGraph: a program with its weights, states and memory, ready to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/compiler/pipeline.h"
#include "rlx/device/backend.h"
#include "rlx/ir/evaluate.h"
#include "rlx/tensor/tensor.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// One input, param, state or output: name (outputs: "out0", ...) and declared shape.
struct IoInfo {
  std::string name;
  Shape shape;
};

/// A named f32 input of `run`.
struct NamedInput {
  std::string name;
  std::vector<float> values;
};

/// The location of an output of run_slots: offset in bytes from `arena_ptr()`, elements, dtype.
struct Slot {
  std::size_t offset = 0;
  std::int64_t count = 0;
  DType dtype = DType::F32;
};

/// The valid rows of a padded batch.
struct ActiveExtent {
  std::int64_t actual = 0;
  std::int64_t upper = 0;
};

/// Rows [first, first + count) of the outermost dimension of a value.
struct Rows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// What a loader may hold.
enum class LoadMode : std::uint8_t {
  Strict,  // the loader holds every param and no other tensor
  Subset,  // extra tensors of the loader are ignored
};

/// The kernel time of one node of a profiled run, or of the whole run when the device reports no more.
struct NodeTime {
  std::string label;   // node_label
  std::string op;      // text name
  std::string kernel;  // "packed_gemm_f32 (avx512)"
  double ns = 0;
  Cost cost;
  NodeId node{};  // node of the program that ran, compile_result().lir.graph; invalid for the whole run
};

/// A compiled program. Clones share its code, and its weights until one of them is set; each has its own memory.
/// Movable. A wrong name, length or dtype is an error that names it and the nearest right one. A call of a moved-from
/// object is an error too.
///
/// Any number of threads may call it. Runs that return their results or write them to the caller's memory proceed at
/// once, each on memory of its own (kept for later runs). Where a program has states or handles of outputs, runs take
/// turns. So do the calls whose results stay in the object (run_slots, run_raw, commit_no_wait, profile). Calls that
/// set weights, sticky inputs or the active extent wait for the runs that have begun, and later runs wait for them. A
/// callback or custom kernel may call the program that runs it, unless the call would have to wait for that run: then
/// it is an error. No call may begin while the object is moved, assigned to or destroyed. Calls that have begun go on
/// after a move; assigning and destroying wait for them. A callback may assign to or destroy the program that runs it:
/// its run goes on, and its memory is freed with a later program.
///
/// Symbolic dimensions take their values from the inputs of each run, by the mode of each symbol
/// (CompileOptions::symbol_modes). *specialise*, the default: every set of values is compiled, which takes
/// milliseconds. *bucket*: one compile and one arena per upper extent of a ladder. *runtime*: one compile for all
/// values, with an arena sized for the bound (memory that a run does not touch is not used).
///
/// In *bucket* and *runtime* a new value only evaluates extents and lowers the same nodes again (on tpu the plug-in
/// compiles it, as XLA has no such extents). Runs execute at the exact extents, not at the bucket's: nothing is padded,
/// so nothing needs a mask and no work is wasted. Results equal those of *specialise*, except for values that depend on
/// extents and constants alone (a table of cosines over positions). Kernels compute these, while specialise folds them
/// with the reference rules; they may differ in the last bit.
///
/// The 32 most recently used sets of values stay bound. Memory and code of others are made again. A symbol whose value
/// is computed (Graph::symbol with a source) from more than inputs makes each run wait at a host sync point where the
/// value becomes known. Calls that start a run then return after the last sync point.
class CompiledGraph {
 public:
  CompiledGraph(CompiledGraph&&) noexcept;
  CompiledGraph& operator=(CompiledGraph&&) noexcept;
  ~CompiledGraph();

  // -- properties
  /// The device that runs the program.
  Device device() const;
  /// The target it was compiled for: "cpu (avx512, 2 threads)".
  std::string target_name() const;
  /// Names and shapes, in the order of their declaration.
  const std::vector<IoInfo>& inputs() const;
  const std::vector<IoInfo>& params() const;
  const std::vector<IoInfo>& outputs() const;
  const std::vector<IoInfo>& states() const;

  // -- weights
  /// Sets an F32 (or F16 / BF16 / F64: converted) param from f32 values in row-major order. Once a shape is compiled
  /// (from the start for a graph without symbols), weights of matmuls are packed directly from `values` and no other
  /// copy is kept. Before that, a copy is kept until the first shape is compiled. Setting one of several weights that
  /// are packed together does not require setting the others.
  void set_param(std::string_view name, std::span<const float> values);
  void set_param(std::string_view name, std::initializer_list<float> values) {
    set_param(name, std::span<const float>(values.begin(), values.size()));
  }
  void set_param(std::string_view name, const std::vector<float>& values) {
    set_param(name, std::span<const float>(values));
  }
  /// Sets a param from bytes of `dtype`. Equal dtypes are copied bit by bit, float dtypes are converted.
  void set_param_typed(std::string_view name, const void* data, std::size_t size_bytes, DType dtype);
  /// Sets a param to a host tensor. Equal dtypes share the tensor's bytes, which are never written while shared. Float
  /// dtypes are converted.
  void set_param(std::string_view name, const Tensor& value);
  /// Sets some rows of a param that has a value to a host tensor, with the same conversion, after the runs submitted so
  /// far.
  void set_param(std::string_view name, const Tensor& value, Rows rows);
  /// Binds every param that the loader holds. The loader stays alive as long as its bytes are needed. Strict: a param
  /// that the loader lacks, or a tensor that is not a param, is an error. Returns the number of params set.
  std::size_t load_params(std::shared_ptr<const WeightLoader> loader, LoadMode mode = LoadMode::Strict);
  /// Names of params that have no value yet.
  std::vector<std::string> unset_params() const;
  /// Evaluates and packs weights now instead of in the first run. A graph of unknown shapes packs when the first shape
  /// is prepared. Throws NotFound naming unset params.
  void finalize();
  /// From now on params share the values of `other`, held once for both, with the packed layouts that both read, until
  /// one side sets a weight. Errors: NotFound for a param that `other` lacks, ShapeMismatch and DTypeMismatch for a
  /// param that differs there, InvalidArgument for programs on different devices.
  void share_weights_from(const CompiledGraph& other);

  // -- running
  /// Sets a sticky input by copy, for all threads. Later runs with named inputs use it when they do not pass that
  /// input. Takes f32 values, bytes of any dtype, or a tensor, on the host or on the program's device (shared; needed
  /// when more than one dimension is unknown).
  void set_input(std::string_view name, std::span<const float> values);
  void set_input(std::string_view name, std::initializer_list<float> values) {
    set_input(name, std::span<const float>(values.begin(), values.size()));
  }
  void set_input(std::string_view name, const Tensor& value);
  void set_input_typed(std::string_view name, const void* data, std::size_t size_bytes, DType dtype);
  /// The index of an output ("out0", ...) in declaration order.
  std::size_t output_index(std::string_view name) const;
  /// Runs on f32 inputs. Returns one vector per output (F32 outputs only; use run_typed for others).
  std::vector<std::vector<float>> run(std::initializer_list<NamedInput> inputs = {});
  std::vector<std::vector<float>> run(const std::vector<NamedInput>& inputs);
  /// Runs on tensors of any dtype. Outputs keep the graph's dtypes.
  std::vector<Tensor> run_typed(const NamedTensors& inputs);
  /// The same with results on the device, which may not be complete yet when it returns. They can be inputs of later
  /// runs, or be copied to the host with Tensor::to_host. Inputs may be device tensors, here and in the two functions
  /// above.
  std::vector<Tensor> run_device(const NamedTensors& inputs);
  /// The same. On an opaque device, donated inputs that nobody else holds give their memory to the run.
  std::vector<Tensor> run_device(NamedTensors&& inputs);
  /// Runs on `inputs` and writes `outputs`, both in declaration order. Allocates nothing from the second run of a shape
  /// on. A view may leave `dims` empty when at most one of its input's dimensions is unknown. An output may be an
  /// input's own buffer when the pair was donated (CompileOptions::donate).
  void run_into(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs);
  /// The same with results in memory of this object: bytes at arena_ptr() + offset. They are valid until the next run
  /// of this thread, or the next run_slots, run_raw, commit_no_wait or profile of any thread; in programs whose runs
  /// take turns until the next run.
  std::span<const Slot> run_slots(std::span<const TensorView> inputs);
  /// The start of the memory of slots.
  const std::byte* arena_ptr() const;
  /// The same with named inputs: a view of each output with its dims, valid as long.
  std::vector<TensorView> run_raw(std::initializer_list<NamedInput> inputs = {});
  std::vector<TensorView> run_raw(const std::vector<NamedInput>& inputs);
  std::vector<TensorView> run_raw(const NamedTensors& inputs);
  /// Runs every set of inputs in order. Returns the outputs of each run: [run][output][element].
  std::vector<std::vector<std::vector<float>>> run_pipelined(const std::vector<std::vector<NamedInput>>& sets);
  /// Starts a run whose outputs stay in this object until the next run overwrites them. sync_pending waits for all runs
  /// and returns the outputs of the last one (none when nothing was committed since). On the cpu the run executes at
  /// once, and commit returns when it is done.
  void commit_no_wait(std::initializer_list<NamedInput> inputs = {});
  void commit_no_wait(const std::vector<NamedInput>& inputs);
  void commit_no_wait(const NamedTensors& inputs);
  /// Waits for the committed runs; see commit_no_wait.
  std::span<const Slot> sync_pending();
  /// A sticky hint for padded batches. Only the first `actual` rows of inputs with `upper` rows are computed, by the
  /// program at `actual` rows. Outputs then hold those rows; outputs with room for `upper` rows in run_into are filled
  /// up to `actual`. Returns true when the hint is in effect: one symbol is the leading dimension of the inputs, and
  /// appears in inputs and outputs only as the leading dimension. Otherwise nothing changes. Runs of other row counts
  /// are not affected. None ends the hint.
  bool set_active_extent(std::optional<ActiveExtent> extent);
  /// Compiles and binds for the given input dimensions, in declaration order, so that the next run of them is not the
  /// first.
  void prepare_shape(std::span<const std::vector<std::int64_t>> input_dims);
  /// Runs once on one thread and times each step.
  std::vector<NodeTime> profile(std::span<const TensorView> inputs);

  // -- state
  /// A copy of a state's value after the last run. A failed run leaves the states that it may have written invalid
  /// until they are written or reset; reading them is an error. write_state takes a host tensor of the state's dtype.
  Tensor read_state(std::string_view name) const;
  /// Sets a state.
  void write_state(std::string_view name, const Tensor& value);
  /// The same for some rows of a state. Other rows are unchanged. Acts after the runs submitted so far.
  Tensor read_state(std::string_view name, Rows rows) const;
  void write_state(std::string_view name, const Tensor& value, Rows rows);
  /// Sets every state back to its initial value.
  void reset();
  /// From now on states of equal names are shared by both objects (prefill and decode over one cache), with the values
  /// of `other`. Runs of objects that share states take turns. Returns the number of shared states; NotFound when there
  /// are none.
  std::size_t share_state_from(CompiledGraph& other);
  /// A value kept between runs under a name. If the name is an input's, the value serves runs that do not pass that
  /// input. If the name is an output's ("out0"), that output replaces the value after each run. A graph whose input is
  /// called "out0" thus carries a value from run to run. `State` does so without the copy.
  void bind_handle(std::string_view name, std::span<const float> values);
  void bind_handle(std::string_view name, std::initializer_list<float> values) {
    bind_handle(name, std::span<const float>(values.begin(), values.size()));
  }
  void bind_handle(std::string_view name, const Tensor& value);
  /// A copy, on the host, of the value bound to a handle or sticky input, or of what the last run stored there.
  Tensor read_handle(std::string_view name) const;

  /// Another instance of the same code. Prepared weights are shared until one side sets a weight. States are copied.
  CompiledGraph clone() const;

  /// The compile result for the last used shape. It is kept until 32 others were returned.
  const CompileResult& compile_result() const;
  /// The text that the devices of that program receive, for example StableHLO or WGSL. Empty for devices that receive
  /// none. Also works for a device that is absent (Session::for_target).
  std::string code() const;
  /// Bytes of arena and outputs for the last used shape; 0 before the first run, smaller again after a smaller shape.
  /// The memory itself is kept and has room for the largest shape used so far.
  std::size_t arena_bytes() const;
  /// Bytes of weights in memory: packed layouts, and values that kernels read unpacked (those in mapped files are not
  /// counted).
  std::size_t prepared_bytes() const;

 private:
  friend class Session;
  struct Impl;
  explicit CompiledGraph(std::unique_ptr<Impl> impl);
  Impl& impl() const;  // throws for a moved-from object
  std::unique_ptr<Impl> impl_;
};

/// Profiles `runs` runs (at least 1) and returns the median time of each step.
std::vector<NodeTime> median_profile(CompiledGraph& program, std::span<const TensorView> inputs, int runs = 15);

}  // namespace rlx
