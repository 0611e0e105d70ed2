// State shared by clones: the source graph, the programs compiled from it, and the programs at the extents of runs.
// Internal.
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

#include "rlx/base/forks.h"
#include "rlx/compiler/lir_binder.h"
#include "rlx/compiler/sync_points.h"
#include "rlx/exec/program.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/weight_store.h"

namespace rlx {

/// True when `declared` is static and has these dimensions.
bool dims_equal(const Shape& declared, std::span<const std::int64_t> dims);

/// One compile. It serves all input dims that give the specialised symbols exactly the values in `extents` and the
/// other symbols at most those. The largest extents determine the locations in the arena and the output slots.
struct Compilation {
  SymbolBinding extents;
  CompileResult result;
  std::shared_ptr<const Executable> executable;
  WeightPlan weights;
  std::optional<LirBinder> binder;                         // of the executable's program, if it has symbols left
  std::vector<SyncPoint> sync_points;                      // sync points at which runs read symbols
  std::vector<std::size_t> slot_offsets;                   // of the outputs, in the results of a run
  std::size_t slot_bytes = 0;                              // of all outputs
  std::vector<std::size_t> input_bytes, output_bytes;      // the largest size of each
  std::vector<std::shared_ptr<OpenDevice>> devices;        // of its plan; the first is the one compiled for
  std::vector<std::shared_ptr<OpenDevice>> state_devices;  // by `SharedPrograms::states`; null: unused
  std::size_t memory_bytes() const { return executable->lir().plan.arena_bytes + slot_bytes; }
  /// True when one of these steps writes a state.
  bool writes_states(std::size_t from, std::size_t to) const;
};

/// A program at one set of input dimensions. When runs compute symbols, it is complete only up to the next sync point.
struct Specialization {
  std::shared_ptr<const Compilation> code;
  SymbolBinding given;                           // the values of symbols that inputs determine
  SymbolBinding values;                          // of all symbols known so far
  std::size_t stage = 0;                         // the number of sync points passed
  std::shared_ptr<const Specialization> before;  // the program of the run up to the last sync point
  std::vector<std::int64_t> read;                // the values that the run read there
  bool is_last() const { return stage == code->sync_points.size(); }
  std::size_t first_step() const { return stage == 0 ? 0 : code->sync_points[stage - 1].step; }
  std::optional<LirModule> bound;                     // the program with runtime symbols bound
  std::vector<Shape> inputs, outputs;                 // outputs may have symbols before the last sync point
  std::vector<std::vector<std::int64_t>> input_dims;  // of `inputs`
  std::vector<std::size_t> input_bytes, output_bytes;
  std::vector<Slot> slots;  // this and output_bytes are set after the last sync point
  const LirModule& lir() const { return bound ? *bound : code->executable->lir(); }
};

/// Finds the position of a name in a list; of equal names the first. The list must stay where it is in memory.
class NameIndex {
 public:
  NameIndex() = default;
  explicit NameIndex(const std::vector<IoInfo>& list);
  std::optional<std::size_t> find(std::string_view name) const;

 private:
  std::unordered_map<std::string_view, std::size_t> places_;
};

/// State shared by clones: the source graph, its target, and the code and specialisations made so far (the least
/// recently used one is dropped).
struct SharedPrograms {
  SharedPrograms(GraphModule m, std::shared_ptr<const Backend> b, std::shared_ptr<OpenDevice> opened, CompileOptions o,
                 BackendOptions bo);
  /// The program at these input dimensions. It is found, bound, or compiled, in this order of cost.
  std::shared_ptr<const Specialization> specialize(const std::vector<std::vector<std::int64_t>>& dims,
                                                   const SymbolBinding& given = {});
  /// The same after the next sync point of `before`, where these values were read.
  std::shared_ptr<const Specialization> specialize(const std::shared_ptr<const Specialization>& before,
                                                   const std::vector<std::int64_t>& read);
  /// The values of the symbols that inputs of these dimensions determine, for one run. Evaluated on this thread.
  SymbolBinding symbol_values(std::span<const TensorView> views,
                              const std::vector<std::vector<std::int64_t>>& dims) const;
  /// The code that serves all dimensions, compiled on the first call. None when the values of some symbol need their
  /// own code.
  std::shared_ptr<const Compilation> common();

  /// The program that computes symbols from inputs alone: one output for each of `symbols`. None when there are none.
  struct SymbolProgram {
    std::vector<std::string> symbols;
    Graph graph;
  };
  std::optional<SymbolProgram> symbol_program;  // declared before `module`, whose initialiser fills it
  const GraphModule module;
  const Graph& source;  // the graph of the module
  std::shared_ptr<const Backend> backend;
  std::shared_ptr<OpenDevice> device;
  std::shared_ptr<const Target> target;
  CompileOptions options;
  BackendOptions backend_options;
  std::vector<IoInfo> inputs, params, outputs, states;
  NameIndex input_index, param_index, output_index, state_index;
  void (*stage_hook)(const CompileResult&, bool verbose) = nullptr;  // reports and dumps that the environment requests

 private:
  SymbolBinding solve(const std::vector<std::vector<std::int64_t>>& dims) const;
  std::shared_ptr<const Compilation> program_for(const SymbolBinding& extents);
  /// Computes the remaining members from the code, the values and the number of sync points passed, and keeps the
  /// program.
  std::shared_ptr<const Specialization> finish(std::shared_ptr<Specialization> spec);
  std::vector<ProgramDevice> devices_of(const LirModule& lir) const;

  std::vector<std::vector<std::string>> input_symbols_;  // by input dimension: its symbol, empty for a number
  bool plain_inputs_ = true;                             // every input dimension is a number or one symbol
  ObjectMutex mutex_{"the compiler of a program"};
  std::list<std::shared_ptr<const Compilation>> programs_;
  std::list<std::shared_ptr<const Specialization>> at_extents_;
};

}  // namespace rlx
