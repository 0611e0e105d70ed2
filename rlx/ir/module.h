// The levels of a program: HIR, MIR and LIR modules, and the buffer plan that makes a graph an LIR.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

enum class GraphStage : std::uint8_t { Hir, Mir, Lir };
std::string_view stage_name(GraphStage stage);

/// A graph of MIR ops.
struct MirModule {
  Graph graph;
};
/// A graph that may hold HIR blocks, and how they are to be lowered.
struct HirModule {
  Graph graph;
  FusionPolicy policy = FusionPolicy::Direct;

  /// A module called `name` whose graph `build(graph)` fills.
  template <class F>
  static HirModule named(std::string name, F&& build) {
    HirModule m{Graph(std::move(name))};
    build(m.graph);
    return m;
  }
  /// The graph with its blocks written as MIR ops by `policy`.
  MirModule lower_to_mir() const;
  /// The same with chains of primitives, which have derivatives of any order, whatever the policy is.
  MirModule lower_for_autodiff() const;
};
/// `g` with HIR blocks written as MIR ops.
Graph lower_blocks(const Graph& g, FusionPolicy policy);
/// True when `g` holds a HIR block.
bool holds_blocks(const Graph& g);

/// Where the bytes of a value live at run time.
enum class Place : std::uint8_t {
  Arena,     // arena `index`
  Input,     // the caller's input `index`
  Output,    // the caller's output `index`
  Prepared,  // prepared weight `index`
  Constant,  // the constant of node `index`
  State,     // state `index`
};

/// The location of one LIR value: a place plus element strides (row-major unless it is a strided view).
struct LirValue {
  Place place = Place::Arena;
  std::uint32_t index = 0;
  std::size_t offset = 0;             // bytes from the start of the place
  std::size_t bytes = 0;              // extent touched, from offset
  std::vector<std::int64_t> strides;  // in elements; empty = row-major
  bool is_view = false;               // shares another value's bytes
};

/// One step of the fixed schedule.
struct LirStep {
  NodeId node;
  std::vector<std::int32_t> predecessors;  // earlier steps: producers, and steps whose memory this one reuses
};

/// A value that must be copied to an output after the steps (an input, a weight or a second use of one output).
struct LirOutputCopy {
  Value value;
  std::uint32_t output = 0;
};

/// A state whose new value was not planned in place: copied after the steps.
struct LirStateCopy {
  Value value;
  std::uint32_t state = 0;
  std::string reason{};  // why it could not be made in place
};

/// A donated input: the caller may pass the input's buffer as the output, when `refused` is empty. It says why not
/// else.
struct LirAlias {
  std::uint32_t input = 0;
  std::uint32_t output = 0;
  std::string refused{};
};

struct LirModule;

/// The bodies of a control-flow node, planned programs in a range of the arena that they use in turn: a body reads its
/// operands and writes its results as Place::Input and Place::Output.
struct LirBodies {
  NodeId node;
  std::vector<LirModule> modules;  // in the order of the op's attributes: then, otherwise; cond, body; body
  std::uint32_t arena = 0;
  std::size_t offset = 0, bytes = 0;
  /// Of a loop, for each carry: its second buffer, from `offset`, when it cannot be updated in its own bytes; and why.
  std::vector<std::optional<std::size_t>> second{};
  std::vector<std::string> reasons{};
};

/// The memory plan of a graph: a location for every value, the schedule and its ordering edges.
struct LirBufferPlan {
  std::vector<std::size_t> arenas;  // bytes of each; one where the target sets no limit to them
  std::size_t arena_bytes = 0;      // of all
  std::size_t alignment = 64;
  std::size_t live_peak_bytes = 0;            // the largest sum of live bytes: the floor of any plan
  std::size_t unshared_bytes = 0;             // sum of all buffers, had none been reused
  std::vector<std::vector<LirValue>> values;  // [node][result]
  std::vector<LirStep> schedule;
  std::vector<LirOutputCopy> output_copies;
  std::vector<LirStateCopy> state_copies;
  std::vector<LirAlias> aliases;
  std::vector<LirBodies> bodies;  // of nodes whose kernels run them as programs, in order of the nodes

  /// The bodies of a node, or null.
  const LirBodies* bodies_of(NodeId node) const;
  /// InvalidArgument for a value that the plan does not hold.
  const LirValue& at(Value v) const {
    const auto& results = values[detail::checked_index("planned node", v.node.index, values.size())];
    return results[detail::checked_index("planned result", v.result, results.size())];
  }
};

/// A planned program. `graph`'s Params are the outputs of `prepare`, by index: Param i of `graph` (in node order) reads
/// output i of `prepare`. `prepare` depends on Params and Constants alone and holds the Relayout nodes.
struct LirModule {
  Graph graph;
  LirBufferPlan plan;
  Graph prepare;
};

/// One program at exactly one stage.
class GraphModule {
 public:
  explicit GraphModule(HirModule m) : state_(std::move(m)) {}
  explicit GraphModule(MirModule m) : state_(std::move(m)) {}
  explicit GraphModule(LirModule m) : state_(std::move(m)) {}
  GraphStage stage() const { return static_cast<GraphStage>(state_.index()); }
  /// The module at that stage; throws InvalidArgument naming both stages otherwise.
  const HirModule& hir() const;
  const MirModule& mir() const;
  const LirModule& lir() const;
  const Graph& graph() const;
  /// The graph itself, whatever the stage.
  Graph into_graph() &&;
  /// The planned program; throws as lir() does.
  LirModule into_lir() &&;

 private:
  std::variant<HirModule, MirModule, LirModule> state_;
};

/// Wraps a graph: Hir when it holds HIR blocks, else Mir.
GraphModule make_module(Graph graph);

template <class F>
GraphModule Graph::define(std::string name, F&& build) {
  Graph g(std::move(name));
  build(g);
  return make_module(std::move(g));
}

}  // namespace rlx
