// The levels of a program: HIR, MIR and LIR modules, and the buffer plan that turns a graph into an LIR.
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
/// A graph that may hold HIR blocks, and the policy that lowers them.
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
  /// The graph with its blocks lowered to MIR ops by `policy`.
  MirModule lower_to_mir() const;
  /// The same with FusionPolicy::Fusable instead: chains of primitives, which have derivatives of any order.
  MirModule lower_for_autodiff() const;
};
/// `g` with its HIR blocks lowered to MIR ops.
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
  None,      // nowhere: its readers read the operands it would be computed from, or it has no reader and its kernel
             // does not need it
};

/// The location of one LIR value: a place plus element strides (row-major unless it is a strided view).
struct LirValue {
  Place place = Place::Arena;
  std::uint32_t index = 0;
  std::size_t offset = 0;             // bytes from the start of the place
  std::size_t bytes = 0;              // from offset to the end of the last element
  std::vector<std::int64_t> strides;  // in elements; empty = row-major
  bool is_view = false;               // shares another value's bytes
};

/// Steps [begin, end) of a schedule; by default the whole schedule. The copies after the last step belong to a range
/// that ends at the end of the schedule.
struct StepRange {
  std::size_t begin = 0, end = ~std::size_t{0};
  bool holds(std::size_t step) const { return step >= begin && step < end; }
  /// The part of the range inside a schedule of `steps` steps.
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
  /// A bit for each operand. It is set when the kernel reads the quantized values that a Dequantize would decode in
  /// place of its result, or the numbers that a Quantize would encode.
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

/// A value that is copied to an output after the steps (an input, a weight or a second use of one output).
struct LirOutputCopy {
  Value value;
  std::uint32_t output = 0;
};

/// A state whose new value the plan does not compute in place. It is copied after the steps.
struct LirStateCopy {
  Value value;
  std::uint32_t state = 0;
  std::string reason{};  // why it is not computed in place
};

/// An update of a state, or of a value in its place, that does not run in the bytes of its operand. Its kernel copies
/// the whole operand first.
struct LirUpdateCopy {
  NodeId node;
  std::uint32_t operand = 0, result = 0;
  std::string reason{};
};

/// A donated input. When `refused` is empty, the caller may pass the input's buffer as the output; else `refused` is
/// the reason.
struct LirAlias {
  std::uint32_t input = 0;
  std::uint32_t output = 0;
  std::string refused{};
};

struct LirModule;

/// A range of bytes in an arena.
struct LirRange {
  std::uint32_t arena = 0;
  std::size_t offset = 0, bytes = 0;
};

/// The bodies of a control-flow node as planned programs. Their arenas are ranges of the arenas of the enclosing
/// program, and the bodies use the ranges one after the other. A body reads its operands and writes its results as
/// Place::Input and Place::Output.
struct LirBodies {
  NodeId node;
  std::vector<LirModule> modules;  // in the order of the op's attributes: then, otherwise; cond, body; body
  std::vector<LirRange> ranges{};  // all memory the node needs besides its operands and results
  std::vector<std::vector<std::uint32_t>> arenas{};  // [body][arena]: the number of its range
  /// For each carry of a loop: the range of its second buffer when it cannot be updated in place, and the reason.
  std::vector<std::optional<std::uint32_t>> second{};
  std::vector<std::string> reasons{};
  /// For a branch: a result that in one of the bodies is an operand of the node, or an update of it. When `refused` is
  /// empty, both bodies can compute it in the operand's bytes.
  struct Shared {
    std::uint32_t operand = 0, result = 0;
    std::string refused{};
  };
  std::vector<Shared> shared{};
  /// True when no kernel runs the node. The host reads the decision and submits the bodies (exec/program.h).
  bool host_controlled = false;
  /// For each of the xs and then of the ys of a host-controlled loop: the range of a buffer for one row, when the
  /// device cannot bind the rows at their own addresses.
  std::vector<std::optional<std::uint32_t>> rows{};
  /// For a host-controlled While: the range where cond writes its result.
  std::optional<std::uint32_t> decision{};
};

/// A part of a program on an opaque first device: either the graph that one device runs, or a host-controlled branch or
/// loop. Parts run one after the other. A value that crosses parts is transferred whole to the device that reads it.
struct LirPart {
  std::uint32_t device = 0;
  bool host_controlled = false;
  /// The graph, planned for its device; of a branch or loop its bodies, in the order of the op's attributes.
  std::vector<LirModule> modules;
  /// For each node of that graph, the node of the program that it copies; for an Input, the node that computes it. For
  /// a branch or loop, the node itself.
  std::vector<NodeId> nodes{};
  /// Values of the program: the sources of the graph's Inputs, and the graph's outputs. For a branch or loop, its
  /// operands and results.
  std::vector<Value> inputs{}, outputs{};
  std::vector<std::uint32_t> params{};  // params of the program, one for each Param of the graph
};

/// The memory plan of a graph: a location for every value, the schedule and its ordering edges.
struct LirBufferPlan {
  std::vector<std::size_t> arenas;             // bytes of each; one arena when the target sets no limit to its size
  std::vector<std::uint32_t> arena_devices{};  // by arena: its device (LirModule::others); empty: 0
  std::vector<std::uint32_t> node_devices{};  // by node: the device that runs it; bodies use the numbers of the program
  std::size_t arena_bytes = 0;                // sum over all arenas
  std::size_t alignment = 64;
  std::size_t live_peak_bytes = 0;            // the largest sum of live bytes: a lower bound of any plan
  std::size_t unshared_bytes = 0;             // sum of all buffers without reuse
  std::vector<std::vector<LirValue>> values;  // [node][result]
  std::vector<LirStep> schedule;
  std::vector<LirOutputCopy> output_copies;
  std::vector<LirStateCopy> state_copies;
  /// The same for states on devices other than the first. The program copies them, not the code of a backend.
  std::vector<LirStateCopy> remote_state_copies{};
  std::vector<LirUpdateCopy> update_copies;
  std::vector<LirAlias> aliases;
  std::vector<LirBodies> bodies;  // of nodes whose kernels run them as programs, in node order
  /// True for an opaque device. Then only `aliases` is filled. When the device does not run the whole graph itself,
  /// `parts` in their order and `node_devices` are filled too.
  bool opaque = false;
  std::vector<LirPart> parts{};

  /// The bodies of a node, or null.
  const LirBodies* bodies_of(NodeId node) const;
  /// The device number (LirModule::others) of an arena or node. InvalidArgument for one that the plan does not hold.
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

/// A planned program. Param i of `graph` (in node order) reads output i of `prepare`. `prepare` depends on Params and
/// Constants alone and holds the Relayout nodes.
struct LirModule {
  Graph graph;
  LirBufferPlan plan;
  Graph prepare;
  /// The devices 1, 2, .. of the plan. Device 0 is the one that the program is compiled for; it holds the inputs and
  /// outputs. A state is on the device of its node.
  std::vector<DeviceId> others{};
  /// The ranges of the schedule that the backend's device runs and compiles code for; empty: the whole schedule.
  std::vector<StepRange> ranges{};
  /// The values of the symbols that the program was bound to, if it had any.
  SymbolBinding symbols{};
};

/// A program at one stage.
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
  /// The graph of the module, for any stage.
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
