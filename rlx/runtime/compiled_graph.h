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

/// Where run_slots left an output: bytes from `arena_ptr()`, elements, dtype.
struct Slot {
  std::size_t offset = 0;
  std::int64_t count = 0;
  DType dtype = DType::F32;
};

/// Rows of a padded batch that count.
struct ActiveExtent {
  std::int64_t actual = 0;
  std::int64_t upper = 0;
};

/// Rows [first, first + count) of the outermost dimension of a value.
struct Rows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

enum class LoadMode : std::uint8_t {
  Strict,  // the loader holds every param and nothing else
  Subset,  // extra tensors of the loader are ignored
};

/// The kernel time of one node of a profiled run, or of all of it where the device tells no more.
struct NodeTime {
  std::string label;   // node_label
  std::string op;      // text name
  std::string kernel;  // "packed_gemm_f32 (avx512)"
  double ns = 0;
  Cost cost;
  NodeId node{};  // of the program that ran, compile_result().lir.graph; invalid for all of it
};

/// A compiled program: code shared with its clones, weights shared until one is set, memory of its own. Movable; one
/// call at a time (clone() for more). Every wrong name, length or dtype is an error that names it and the nearest right
/// one; so is every call of an object that was moved from.
///
/// Symbolic dimensions take their values from the inputs of each run, by the mode of each symbol
/// (CompileOptions::symbol_modes). *specialise*, the default: every set of values is compiled, milliseconds. *bucket*:
/// one compile and one arena per upper extent of a ladder. *runtime*: one compile for all values, its arena sized for
/// the bound (memory that a run does not touch is not used). In the latter two a new value only evaluates extents and
/// lowers the same nodes again (on tpu the plug-in compiles it, as XLA has no such extents), and runs execute at the
/// exact extents, not at the bucket's: nothing is padded, so
/// nothing needs a mask and no work is wasted. Results are those of *specialise*, but for what depends on extents and
/// constants alone (a table of cosines over positions): kernels compute it where specialise folds it with the reference
/// rules, which may differ in the last bit. The 32 sets of values used last stay bound; memory and code of others are
/// made again. A symbol whose value is computed (Graph::symbol with a source) from more than inputs stops each run
/// where the value is known; calls that start a run then return when the last one is.
class CompiledGraph {
 public:
  CompiledGraph(CompiledGraph&&) noexcept;
  CompiledGraph& operator=(CompiledGraph&&) noexcept;
  ~CompiledGraph();

  // -- what it is
  Device device() const;
  std::string target_name() const;
  const std::vector<IoInfo>& inputs() const;
  const std::vector<IoInfo>& params() const;
  const std::vector<IoInfo>& outputs() const;
  const std::vector<IoInfo>& states() const;

  // -- weights
  /// Sets an F32 (or F16 / BF16 / F64: converted) param from f32 values in row-major order. Once a shape is compiled
  /// (from the start for a graph without symbols) weights of products are packed straight from `values` and no other
  /// copy is kept; before that a copy waits for the first shape and is then given back. Setting one of several weights
  /// that are packed together needs no other.
  void set_param(std::string_view name, std::span<const float> values);
  void set_param(std::string_view name, std::initializer_list<float> values) {
    set_param(name, std::span<const float>(values.begin(), values.size()));
  }
  void set_param(std::string_view name, const std::vector<float>& values) {
    set_param(name, std::span<const float>(values));
  }
  /// Sets a param from bytes of `dtype`; equal dtypes are copied bit by bit, float dtypes are converted.
  void set_param_typed(std::string_view name, const void* data, std::size_t size_bytes, DType dtype);
  /// Sets a param to a host tensor, sharing its bytes when the dtypes are equal (a tensor's bytes are never written
  /// while shared); float dtypes are converted.
  void set_param(std::string_view name, const Tensor& value);
  /// Sets some rows of a param that has a value to a host tensor, converted alike, behind the runs submitted so far.
  void set_param(std::string_view name, const Tensor& value, Rows rows);
  /// Binds every param the loader holds; the loader stays alive as long as its bytes are needed. Strict: a param the
  /// loader lacks, or a tensor no param has, is an error. Returns the number of params set.
  std::size_t load_params(std::shared_ptr<const WeightLoader> loader, LoadMode mode = LoadMode::Strict);
  /// Names of params that have no value yet.
  std::vector<std::string> unset_params() const;
  /// Evaluates and packs weights now instead of in the first run; a graph of unknown shapes packs when the first one is
  /// prepared. Throws NotFound naming unset params.
  void finalize();
  /// From now on params have the values that `other` has of them, held once for both with the forms that both read,
  /// until one side sets a weight. Errors: NotFound for a param that `other` lacks, ShapeMismatch and DTypeMismatch for
  /// one that is another there, InvalidArgument for programs on different devices.
  void share_weights_from(const CompiledGraph& other);

  // -- running
  /// A sticky input, copied: used by later runs with named inputs that do not give it. f32 values, bytes of any dtype,
  /// or a tensor, here or on the program's device (shared; needed where more than one dimension is unknown).
  void set_input(std::string_view name, std::span<const float> values);
  void set_input(std::string_view name, std::initializer_list<float> values) {
    set_input(name, std::span<const float>(values.begin(), values.size()));
  }
  void set_input(std::string_view name, const Tensor& value);
  void set_input_typed(std::string_view name, const void* data, std::size_t size_bytes, DType dtype);
  /// The place of an output ("out0", ...) in declaration order.
  std::size_t output_index(std::string_view name) const;
  /// Runs on f32 inputs; one vector per output (F32 outputs only: use run_typed for others).
  std::vector<std::vector<float>> run(std::initializer_list<NamedInput> inputs = {});
  std::vector<std::vector<float>> run(const std::vector<NamedInput>& inputs);
  /// Runs on tensors of any dtype; outputs keep the graph's dtypes.
  std::vector<Tensor> run_typed(const NamedTensors& inputs);
  /// The same with results on the device, which need not be there yet when it returns: they go into later runs, or to
  /// the host with Tensor::to_host. Inputs may be device tensors here as in the two above.
  std::vector<Tensor> run_device(const NamedTensors& inputs);
  /// The same; where the device keeps whole values, the memory of donated inputs that nobody else holds goes to the
  /// run.
  std::vector<Tensor> run_device(NamedTensors&& inputs);
  /// Runs on `inputs` and writes `outputs`, both in declaration order. From the second run of a shape on, allocates
  /// nothing. A view may leave `dims` empty when at most one of its input's dimensions is unknown. An output may be an
  /// input's own buffer when the pair was donated (CompileOptions::donate).
  void run_into(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs);
  /// The same with results in memory of this object, valid until the next run: bytes at arena_ptr() + offset.
  std::span<const Slot> run_slots(std::span<const TensorView> inputs);
  const std::byte* arena_ptr() const;
  /// The same with named inputs: a view of each output with its dims, valid until the next run.
  std::vector<TensorView> run_raw(std::initializer_list<NamedInput> inputs = {});
  std::vector<TensorView> run_raw(const std::vector<NamedInput>& inputs);
  std::vector<TensorView> run_raw(const NamedTensors& inputs);
  /// Runs every set of inputs in order; the outputs of each run: [run][output][element].
  std::vector<std::vector<std::vector<float>>> run_pipelined(const std::vector<std::vector<NamedInput>>& sets);
  /// Starts a run whose outputs stay here, overwritten by the next; sync_pending waits for all and tells where the last
  /// one left its outputs (none when nothing was committed since). The cpu runs at once: commit returns when the run is
  /// done.
  void commit_no_wait(std::initializer_list<NamedInput> inputs = {});
  void commit_no_wait(const std::vector<NamedInput>& inputs);
  void commit_no_wait(const NamedTensors& inputs);
  std::span<const Slot> sync_pending();
  /// A sticky hint for padded batches: of inputs with `upper` rows only the first `actual` are computed, by the program
  /// at `actual` rows; outputs then hold those rows, and room for `upper` rows given to run_into is filled up to them.
  /// In effect (true) when one symbol leads the inputs and is nowhere else in inputs and outputs but in front; else
  /// nothing changes. Runs of other row counts are not touched; none ends the hint.
  bool set_active_extent(std::optional<ActiveExtent> extent);
  /// Compiles and binds for the given input dimensions, in declaration order, so that the next run of them is not the
  /// first.
  void prepare_shape(std::span<const std::vector<std::int64_t>> input_dims);
  /// Runs once on one thread and times each step.
  std::vector<NodeTime> profile(std::span<const TensorView> inputs);

  // -- state
  /// A copy of a state's value after the last run; an error after a failed run, which leaves the states it may have
  /// written invalid until they are written or reset. What is written is a host tensor of the state's dtype.
  Tensor read_state(std::string_view name) const;
  void write_state(std::string_view name, const Tensor& value);
  /// The same for some rows of a state; the others stay as they are. Behind the runs submitted so far.
  Tensor read_state(std::string_view name, Rows rows) const;
  void write_state(std::string_view name, const Tensor& value, Rows rows);
  /// Every state back to its initial value.
  void reset();
  /// From now on states of equal name are one and the same in both objects (prefill and decode over one cache); their
  /// value is that of `other`. Calls of objects that share states must not overlap. Returns how many; none is an error.
  std::size_t share_state_from(CompiledGraph& other);
  /// A value kept between runs under a name. Named like an input, it serves runs that do not give that input; named
  /// like an output ("out0"), it is replaced by that output after each run. A graph whose input is itself called "out0"
  /// thus carries a value from run to run; `State` does so without the copy.
  void bind_handle(std::string_view name, std::span<const float> values);
  void bind_handle(std::string_view name, std::initializer_list<float> values) {
    bind_handle(name, std::span<const float>(values.begin(), values.size()));
  }
  void bind_handle(std::string_view name, const Tensor& value);
  /// A copy, on the host, of the value bound to a handle or sticky input, or of what the last run put there.
  Tensor read_handle(std::string_view name) const;

  /// Another runner of the same code: prepared weights are shared until one side sets a weight; states are copied.
  CompiledGraph clone() const;

  /// What the compiler did for the last used shape.
  const CompileResult& compile_result() const;
  /// The text that the devices of that program get, StableHLO or WGSL for example; empty where they get none. Of a
  /// device that is not there (Session::for_target) likewise.
  std::string code() const;
  /// Bytes of arena and outputs that the last used shape takes, 0 before the first: smaller again after a smaller
  /// shape. The memory itself is kept: it has room for the largest shape used so far.
  std::size_t arena_bytes() const;
  /// Bytes of weights in memory: prepared forms, and values that kernels read as they are (those in mapped files not
  /// counted).
  std::size_t prepared_bytes() const;

 private:
  friend class Session;
  struct Impl;
  explicit CompiledGraph(std::unique_ptr<Impl> impl);
  Impl& impl() const;  // throws for an object that was moved from
  std::unique_ptr<Impl> impl_;
};

/// Profiles `runs` runs (at least 1), and gives each step the median of its times.
std::vector<NodeTime> median_profile(CompiledGraph& program, std::span<const TensorView> inputs, int runs = 15);

}  // namespace rlx
