// What is behind CompiledGraph: the bound memory of one runner. Internal.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/specialize.h"
#include "rlx/runtime/weights.h"

namespace rlx {

/// What kernels read of one code's weights, by Param index.
struct PreparedCode {
  std::shared_ptr<const Code> code;
  std::uint64_t weights_version = 0;
  std::vector<const std::byte*> pointers;
};

/// A specialisation bound to the memory of one runner.
struct ShapeInstance {
  std::shared_ptr<const Specialization> spec;
  std::vector<const std::byte*> prepared;  // what `bound` reads of the weights
  std::vector<std::byte*> state_pointers;
  std::unique_ptr<BoundGraph> bound;
  std::uint64_t weights_version = 0;
  std::vector<const void*> input_pointers;
  std::vector<void*> output_pointers;
};

/// The value of a state between runs. Runners that share the state share this.
struct StateBuffer {
  Tensor value;
  bool valid = true;
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
  std::shared_ptr<WeightStore> weights;
  std::uint64_t weights_version = 1;
  std::vector<std::shared_ptr<StateBuffer>> states;
  std::map<std::string, Handle, std::less<>> handles;
  std::vector<std::vector<std::int64_t>> raw_dims;  // behind the views of run_raw
  std::span<const Slot> committed;
  std::optional<ActiveExtent> extent;
  Dim extent_rows;                       // its symbol
  std::vector<TensorView> extent_views;  // the views of a run cut to the extent
  std::vector<std::vector<std::int64_t>> extent_dims;
  Tensor block;                                      // arena and output slots of the largest shape so far
  std::list<std::unique_ptr<ShapeInstance>> shapes;  // most recently used first
  std::list<PreparedCode> prepared;                  // likewise

  static std::unique_ptr<Impl> make(std::shared_ptr<SharedCode> code);
  void reset_states();
  /// The entry of `c`; from now on a weight that is set is packed for it at once.
  PreparedCode& known(const std::shared_ptr<const Code>& c);
  /// The weights of `c`, prepared as far as they are not yet.
  const std::vector<const std::byte*>& prepare(const std::shared_ptr<const Code>& c);
  ShapeInstance& use(std::shared_ptr<const Specialization> spec);
  void bind(ShapeInstance& s);
  ShapeInstance& instance_for(std::span<const TensorView>& views);
  std::span<const TensorView> cut_to_extent(std::span<const TensorView> views);
  void check_sizes(const ShapeInstance& s, std::span<const TensorView> views) const;
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
  void check_overlap(const ShapeInstance& s, std::span<const TensorView> in,
                     std::span<const MutableTensorView> out) const;
  /// Refuses inputs in the block where the run of `s` writes it (the slots only with `to_slots`), and anywhere in it
  /// when the run takes a larger one. Comes before bind, which replaces the block.
  void check_inputs_stay(const ShapeInstance& s, std::span<const TensorView> in, bool to_slots) const;
  std::vector<TensorView> run_to_views(std::span<const TensorView> views);
  void run(ShapeInstance& s, std::span<const TensorView> views, std::vector<StepTime>* times = nullptr);
  std::byte* arena();               // the block from its first byte of the target's alignment
  std::size_t arena_start() const;  // that byte
  bool block_is_short(const ShapeInstance& s) const {
    return block.empty() || block.size_bytes() < arena_start() + s.spec->code->block_bytes;
  }
  void outputs_to_block(ShapeInstance& s, std::span<const TensorView> views);
  ShapeInstance& last() const;
  WeightStore& own_weights();
};

}  // namespace rlx
