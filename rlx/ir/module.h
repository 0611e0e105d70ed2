// The levels of a program: HIR, MIR and LIR modules, and the buffer plan that makes a graph an LIR.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/tensor/buffer.h"

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
  None,      // nowhere: all its readers read what it would be made from, or nobody reads it and its kernel does without
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

/// Steps [begin, end) of a schedule; all of it when nothing is said. The copies behind the steps belong to a range that
/// ends where the schedule ends.
struct StepRange {
  std::size_t begin = 0, end = ~std::size_t{0};
  bool holds(std::size_t step) const { return step >= begin && step < end; }
  /// The part of it that a schedule of `steps` steps has.
  StepRange of(std::size_t steps) const {
    const std::size_t to = end < steps ? end : steps;
    return {begin < to ? begin : to, to};
  }
  friend bool operator==(const StepRange&, const StepRange&) = default;
};

/// One step of the fixed schedule.
struct LirStep {
  NodeId node;
  std::vector<std::int32_t> predecessors;  // earlier steps: producers, and steps whose memory this one reuses
  /// Operands, by bit, of which the kernel reads the codes that a Dequantize would decode, in place of its result, or
  /// the numbers that a Quantize would encode.
  std::uint32_t encoded = 0;
};

/// Calls f(value) for each value that a step reads.
template <class F>
void each_read(const Graph& g, const LirStep& step, F&& f) {
  const Node& n = g.node(step.node);
  for (std::uint32_t i = 0; i < n.inputs.size(); ++i) {
    if (i < 32 && (step.encoded >> i & 1U) != 0) {
      for (Value v : g.node(n.inputs[i].node).inputs) f(v);
    } else {
      f(n.inputs[i]);
    }
  }
}

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

/// An update of a state, or of what stands for one, that is not made in the bytes of what it updates: its kernel copies
/// the whole operand first.
struct LirUpdateCopy {
  NodeId node;
  std::uint32_t operand = 0, result = 0;
  std::string reason{};
};

/// A donated input: the caller may pass the input's buffer as the output, when `refused` is empty. It says why not
/// else.
struct LirAlias {
  std::uint32_t input = 0;
  std::uint32_t output = 0;
  std::string refused{};
};

struct LirModule;

/// Bytes of an arena.
struct LirRange {
  std::uint32_t arena = 0;
  std::size_t offset = 0, bytes = 0;
};

/// The bodies of a control-flow node, planned programs in arenas that are ranges of those of the program which holds
/// the node. They use them in turn: a body reads its operands and writes its results as Place::Input and Place::Output.
struct LirBodies {
  NodeId node;
  std::vector<LirModule> modules;  // in the order of the op's attributes: then, otherwise; cond, body; body
  std::vector<LirRange> ranges{};  // all that the node needs beside its operands and results
  std::vector<std::vector<std::uint32_t>> arenas{};  // [body][arena]: the range that it is
  /// Of a loop, for each carry: the range of its second buffer, when it cannot be updated in its own bytes; and why.
  std::vector<std::optional<std::uint32_t>> second{};
  std::vector<std::string> reasons{};
  /// Of a branch: a result that is an operand (of the node), or an update of it, in one of the bodies. Unless it is
  /// refused, both can make it in the operand's bytes.
  struct Shared {
    std::uint32_t operand = 0, result = 0;
    std::string refused{};
  };
  std::vector<Shared> shared{};
  /// True when no kernel runs the node: the program decides, and submits the bodies (exec/program.h).
  bool host_controlled = false;
  /// Of a loop that is driven, for each of its xs and then of its ys: the range that a row passes through, where rows
  /// do not lie where the device can bind them.
  std::vector<std::optional<std::uint32_t>> rows{};
  /// Of a While that is driven: the range where cond leaves its answer.
  std::optional<std::uint32_t> decision{};
};

/// A part of a program whose first device keeps whole values: what one device runs as a graph of its own, or a branch
/// or loop that the host drives. Parts run one after the other; a value that crosses is brought to the device that
/// reads it, whole.
struct LirPart {
  std::uint32_t device = 0;
  bool host_controlled = false;
  /// What one device runs, planned for it; of a branch or loop its bodies, in the order of the op's attributes.
  std::vector<LirModule> modules;
  /// For each node of that graph the one of the program that it is a copy of, of an Input the one that makes it; of a
  /// branch or loop itself.
  std::vector<NodeId> nodes{};
  /// Values of the program: what the graph's Inputs take and its outputs make; of a branch or loop operands and
  /// results.
  std::vector<Value> inputs{}, outputs{};
  std::vector<std::uint32_t> params{};  // of the program, by Param of the graph
};

/// The memory plan of a graph: a location for every value, the schedule and its ordering edges.
struct LirBufferPlan {
  std::vector<std::size_t> arenas;             // bytes of each; one where the target sets no limit to them
  std::vector<std::uint32_t> arena_devices{};  // of each, the device it belongs to (LirModule::others); empty: 0
  std::vector<std::uint32_t> node_devices{};   // by node likewise: who runs it; of a body, in the numbers of the whole
  std::size_t arena_bytes = 0;                 // of all
  std::size_t alignment = 64;
  std::size_t live_peak_bytes = 0;            // the largest sum of live bytes: the floor of any plan
  std::size_t unshared_bytes = 0;             // sum of all buffers, had none been reused
  std::vector<std::vector<LirValue>> values;  // [node][result]
  std::vector<LirStep> schedule;
  std::vector<LirOutputCopy> output_copies;
  std::vector<LirStateCopy> state_copies;
  /// The same of states on other devices than the first, which the program copies and no backend's code.
  std::vector<LirStateCopy> remote_state_copies{};
  std::vector<LirUpdateCopy> update_copies;
  std::vector<LirAlias> aliases;
  std::vector<LirBodies> bodies;  // of nodes whose kernels run them as programs, in order of the nodes
  /// True when the device keeps whole values where it likes: only `aliases` is filled then, and, where it does not run
  /// the whole graph itself, `parts` in their order, with `node_devices`.
  bool opaque = false;
  std::vector<LirPart> parts{};

  /// The bodies of a node, or null.
  const LirBodies* bodies_of(NodeId node) const;
  /// The device of an arena or node, by number (LirModule::others); InvalidArgument for what the plan does not hold.
  std::uint32_t arena_device(std::size_t arena) const { return device_at("arena", arena_devices, arena); }
  std::uint32_t node_device(NodeId node) const { return device_at("planned node", node_devices, node.index); }
  /// InvalidArgument for a value that the plan does not hold.
  const LirValue& at(Value v) const {
    const auto& results = values[detail::checked_index("planned node", v.node.index, values.size())];
    return results[detail::checked_index("planned result", v.result, results.size())];
  }

 private:
  static std::uint32_t device_at(std::string_view what, const std::vector<std::uint32_t>& devices, std::size_t i) {
    return devices.empty() ? 0 : devices[detail::checked_index(what, static_cast<std::int64_t>(i), devices.size())];
  }
};

/// A planned program. `graph`'s Params are the outputs of `prepare`, by index: Param i of `graph` (in node order) reads
/// output i of `prepare`. `prepare` depends on Params and Constants alone and holds the Relayout nodes.
struct LirModule {
  Graph graph;
  LirBufferPlan plan;
  Graph prepare;
  /// The devices 1, 2, .. of the plan. Number 0 is the one that the program is compiled for, and has its inputs and
  /// outputs; states are on those of their nodes.
  std::vector<DeviceId> others{};
  /// What a backend makes code of: ranges of the schedule, whose steps alone its device runs; empty: all of it.
  std::vector<StepRange> ranges{};
  /// The values of symbols that the program was bound to, where it had some.
  SymbolBinding symbols{};
};

/// One program at exactly one stage.
class GraphModule {
 public:
  explicit GraphModule(HirModule m) : state_(std::move(m)) {}
  explicit GraphModule(MirModule m) : state_(std::move(m)) {}
  explicit GraphModule(LirModule m) : state_(std::move(m)) {}
  GraphModule(const GraphModule&);
  GraphModule(GraphModule&&) noexcept;
  GraphModule& operator=(const GraphModule&);
  GraphModule& operator=(GraphModule&&) noexcept;
  ~GraphModule();
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
