// Code shared by clones: the source graph, what was compiled of it, and the values it was bound to so far. Internal.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rlx/compiler/lir_binder.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/weights.h"

namespace rlx {

/// True when `declared` is static and has these dimensions.
bool dims_equal(const Shape& declared, std::span<const std::int64_t> dims);

/// One compile. It serves every set of dimensions with these values of the specialised symbols, up to these extents of
/// the others; the arena and the output slots lie where the largest extents put them.
struct Code {
  SymbolBinding extents;
  CompileResult result;
  std::shared_ptr<const ExecutableGraph> executable;
  WeightPlan weights;
  std::optional<LirBinder> binder;                     // of the executable's program, when it has symbols left
  std::vector<std::size_t> slot_offsets;               // of the outputs, in the results of a run
  std::size_t slot_bytes = 0;                          // of all of them
  std::vector<std::size_t> input_bytes, output_bytes;  // the most that each takes
  std::size_t memory_bytes() const { return executable->lir().plan.arena_bytes + slot_bytes; }
};

/// Code at one set of input dimensions.
struct Specialization {
  std::shared_ptr<const Code> code;
  std::optional<LirModule> bound;  // the program with runtime symbols bound
  std::vector<Shape> inputs, outputs;
  std::vector<Slot> slots;
  const LirModule& lir() const { return bound ? *bound : code->executable->lir(); }
  bool matches(const std::vector<std::vector<std::int64_t>>& dims) const;
};

/// Places in a list by name; of equal names the first. The list has to stay where it is.
class NameIndex {
 public:
  NameIndex() = default;
  explicit NameIndex(const std::vector<IoInfo>& list);
  std::optional<std::size_t> find(std::string_view name) const;

 private:
  std::unordered_map<std::string_view, std::size_t> places_;
};

/// What clones share: the source graph, its target, and the code and specialisations made so far (least recently used
/// goes).
struct SharedCode {
  SharedCode(GraphModule m, std::shared_ptr<const Backend> b, std::shared_ptr<OpenDevice> opened, CompileOptions o,
             BackendOptions bo);
  /// Code bound to these input dimensions: found, bound anew, or compiled, in this order of cost.
  std::shared_ptr<const Specialization> specialize(const std::vector<std::vector<std::int64_t>>& dims);
  /// The code that serves all dimensions, compiled on the first call; none when some symbol's values need their own.
  std::shared_ptr<const Code> common();

  const GraphModule module;
  const Graph& source;  // the module's graph
  std::shared_ptr<const Backend> backend;
  std::shared_ptr<OpenDevice> device;
  std::shared_ptr<const Target> target;
  CompileOptions options;
  BackendOptions backend_options;
  std::vector<IoInfo> inputs, params, outputs, states;
  NameIndex input_index, param_index, output_index, state_index;
  void (*stage_hook)(const CompileResult&, bool verbose) = nullptr;  // reports and dumps that the environment asks for

 private:
  SymbolBinding solve(const std::vector<std::vector<std::int64_t>>& dims) const;
  std::shared_ptr<const Code> code_for(const SymbolBinding& extents);

  std::vector<std::vector<std::string>> input_symbols_;  // per input dimension: its symbol, empty for a number
  bool plain_inputs_ = true;                             // every input dimension is a number or one symbol
  std::mutex mutex_;
  std::list<std::shared_ptr<const Code>> codes_;
  std::list<std::shared_ptr<const Specialization>> specializations_;
};

}  // namespace rlx
