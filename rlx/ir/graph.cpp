// Graph storage, use counts and node texts.
#include "rlx/ir/graph.h"

#include <algorithm>
#include <set>

#include "rlx/ir/build/body_scope.h"
#include "rlx/ir/build/line_of_call.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {
namespace {

constexpr std::size_t kFewLeaves = 8;  // up to this number of leaves, names are compared one by one
constexpr std::uint32_t kFreeCell = 0xffffffffu;

const std::string& name_of(const OpBox& op) {
  if (const auto* input = op.get_if<ops::Input>()) return input->name;
  if (const auto* param = op.get_if<ops::Param>()) return param->name;
  return op.as<ops::State>().name;
}

}  // namespace

const std::shared_ptr<GraphLife::Block>& GraphLife::of(Graph& graph) {
  if (!block_) block_ = std::make_shared<Block>(Block{&graph});
  return block_;
}

void GraphLife::end() noexcept {
  if (block_) block_->graph = nullptr;
  block_.reset();
}

Graph::Graph(std::string name) : name_(std::move(name)) {}
Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph&) = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

// The cell that holds the leaf, or the free cell where it belongs.
std::uint32_t& LeafIndex::cell(const std::vector<Node>& nodes, OpKind kind, std::string_view name) {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = std::hash<std::string_view>()(name) + slot(kind);; ++i) {
    std::uint32_t& at = table_[i & mask];
    if (at == kFreeCell || (nodes[at].kind() == kind && name_of(nodes[at].op) == name)) return at;
  }
}

void LeafIndex::add_last(const std::vector<Node>& nodes) {
  const OpKind kind = nodes.back().kind();
  if (!knows(kind)) return;
  const std::size_t leaves = of_kind_[0].size() + of_kind_[1].size() + of_kind_[2].size() + 1;
  const bool table = leaves > kFewLeaves, grows = table && table_.size() <= 2 * names_;
  std::vector<std::uint32_t> grown(grows ? std::max(4 * kFewLeaves, 2 * table_.size()) : 0, kFreeCell);
  of_kind_[slot(kind)].push_back(NodeId{static_cast<std::uint32_t>(nodes.size() - 1)});
  // Nothing below allocates. When memory runs out, the index stays as it was.
  if (!table) return;
  const auto enter = [&](NodeId id) {
    const Node& n = nodes[id.index];
    std::uint32_t& at = cell(nodes, n.kind(), name_of(n.op));
    if (at == kFreeCell) at = id.index, ++names_;  // of two leaves with one name, the first is found
  };
  if (!grows) return enter(of_kind_[slot(kind)].back());
  table_ = std::move(grown);
  names_ = 0;
  for (const std::vector<NodeId>& ids : of_kind_)
    for (NodeId id : ids) enter(id);
}

NodeId LeafIndex::find(const std::vector<Node>& nodes, OpKind kind, std::string_view name) const {
  if (!knows(kind)) return {};
  if (!table_.empty()) {
    const std::uint32_t at = const_cast<LeafIndex*>(this)->cell(nodes, kind, name);
    return at == kFreeCell ? NodeId{} : NodeId{at};
  }
  for (NodeId id : of(kind))
    if (name_of(nodes[id.index].op) == name) return id;
  return {};
}

Expr Graph::add(OpBox op, std::vector<Value> inputs, SourceLoc loc) {
  if (op.data() == nullptr)
    throw Error(ErrorCode::InvalidArgument, "Graph::add: the op was moved from", "create a new op for each call");
  ShapeRefs input_shapes;
  for (Value v : inputs) {
    if (v.node.index >= nodes_.size() || v.result >= node(v.node).num_results())
      throw Error(Diagnostic{ErrorCode::InvalidArgument,
                             concat_text(op_text_name(op), ": operand ", v, " does not belong to graph '", name_, "'"),
                             built_at(loc), "use values of the graph you are building"});
    input_shapes.add(shape(v));
  }
  if (LeafIndex::knows(op.kind()))
    for (OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State})
      if (find_leaf(kind, name_of(op)).valid())
        throw Error(
            Diagnostic{ErrorCode::InvalidArgument,
                       concat_text("graph '", name_, "' already has an input, param or state '", name_of(op), "'"),
                       built_at(loc), "names of inputs, params and states must be distinct"});
  Origin origin;
  origin.label = label_prefix_.empty() ? std::string() : label_prefix_.substr(0, label_prefix_.size() - 1);
  origin.loc = LineOfCall::of(loc);
  Result<Shapes> shapes = infer_shapes(op, input_shapes);
  if (!shapes) {
    Diagnostic d = shapes.error();
    std::string operands;
    for (std::size_t i = 0; i < inputs.size(); ++i) operands += concat_text(i ? ", " : "", inputs[i]);
    d.where =
        concat_text(NodeId{static_cast<std::uint32_t>(nodes_.size())}, " = ", op_text_name(op), "(", operands, ")");
    if (!origin.label.empty()) d.where += concat_text("   \"", origin.label, "\"");
    d.where += built_at(loc);
    throw Error(std::move(d));
  }
  (void)life_.of(*this);  // the Expr needs it; created first, so that a failing call adds no node
  return Expr(this, add_node(Node{std::move(op), std::move(inputs), std::move(shapes).value(), std::move(origin)}));
}

void Graph::throw_no_value(Value v) const {
  throw Error(ErrorCode::InvalidArgument,
              concat_text("graph '", name_, "' has no value ", v.node.valid() ? v.text() : std::string("(an empty id)"),
                          ": it has ", nodes_.size(), " nodes",
                          v.node.index < nodes_.size()
                              ? concat_text(", and that node has ", nodes_[v.node.index].num_results(), " results")
                              : std::string()),
              "use an id that this graph returned");
}

void Expr::throw_no_graph() const {
  if (!life_)
    throw Error(ErrorCode::InvalidArgument, "an empty Expr was used", "use a value returned by a graph builder");
  throw Error(ErrorCode::InvalidArgument,
              concat_text("the Expr ", value_, " was used after its graph was moved, compiled or destroyed"),
              "build all nodes before the graph is moved or compiled");
}

Expr Graph::add(OpBox op, std::initializer_list<Expr> inputs, SourceLoc loc) {
  std::vector<Value> values;
  values.reserve(inputs.size());
  for (const Expr& e : inputs)
    values.push_back(e.belongs_to(*this) ? e.value() : value_in(*this, e, op_text_name(op), loc).value());
  return add(std::move(op), std::move(values), loc);
}

Expr Graph::add_named(OpBox op, const std::vector<std::pair<std::string_view, Expr>>& operands, SourceLoc loc) {
  if (op.data() == nullptr)
    throw Error(ErrorCode::InvalidArgument, "Graph::add_named: the op was moved from", "create a new op for each call");
  std::vector<NamedOperand> named;
  for (const auto& [name, e] : operands)
    named.push_back({name, e.belongs_to(*this) ? e.value() : value_in(*this, e, op_text_name(op), loc).value()});
  Result<PlacedOperands> placed = place_operands(std::move(op), named);
  if (!placed) {
    Diagnostic d = placed.error();
    d.where = built_at(loc);
    throw Error(std::move(d));
  }
  return add(std::move(placed->op), std::move(placed->inputs), loc);
}

namespace {
// Calls see(dim) for the dimensions of an op that the shapes of its results need not contain, such as the start of a
// slice (the dimensions of a leaf are its shape). Calls see(body) for its bodies.
template <class F>
void see_inside(const Node& n, const F& see) {
  const OpDef& def = op_def(n.op);
  if (def.is_leaf()) return;
  for (const AttrField& f : def.attrs) {
    if (f.type != AttrType::DimList && !holds_body(f.type)) continue;
    const AttrValue value = f.get(n.op.data());
    if (const auto* dims = std::get_if<Dims>(&value))
      for (const Dim& d : *dims) see(d);
    else if (const auto& body = std::get<Subgraph>(value))
      see(*body);
  }
}

bool is_static_node(const Node& n) {
  bool fixed = std::all_of(n.shapes.begin(), n.shapes.end(), [](const Shape& s) { return s.is_static(); });
  if (fixed) see_inside(n, [&](const auto& part) { fixed = fixed && part.is_static(); });
  return fixed;
}
}  // namespace

NodeId Graph::add_node(Node node) {
  NodeId id{static_cast<std::uint32_t>(nodes_.size())};
  if (node.op.data() == nullptr)
    throw Error(ErrorCode::InvalidArgument, "Graph::add_node: the op was moved from", "create a new op for each call");
  for (Value v : node.inputs)
    if (!has(v))
      throw Error(
          ErrorCode::InvalidArgument,
          concat_text("Graph::add_node: operand ", v, " of ", op_text_name(node.op),
                      " is no result of an earlier node of graph '", name_, "', which has ", nodes_.size(), " nodes"),
          "add nodes after their operands");
  const bool ordered = is_ordered(node.op), fixed = is_static_node(node);
  if (ordered && ordered_.size() == ordered_.capacity()) ordered_.reserve(2 * ordered_.size() + 4);
  nodes_.push_back(std::move(node));
  try {
    leaves_.add_last(nodes_);
  } catch (...) {
    nodes_.pop_back();
    throw;
  }
  if (ordered) ordered_.push_back(id);
  if (!fixed) any_dynamic_ = true;
  return id;
}

void Graph::set_outputs(std::vector<Value> outputs, SourceLoc loc) {
  for (Value v : outputs)
    if (v.node.index >= nodes_.size() || v.result >= node(v.node).num_results())
      throw Error(Diagnostic{ErrorCode::InvalidArgument,
                             concat_text("output ", v, " does not belong to graph '", name_, "'"), built_at(loc),
                             "use values of the graph you are building"});
  outputs_ = std::move(outputs);
  has_set_outputs_ = true;
}

void Graph::set_outputs(std::initializer_list<Expr> outputs, SourceLoc loc) {
  set_outputs(std::vector<Expr>(outputs), loc);
}

void Graph::set_outputs(const std::vector<Expr>& outputs, SourceLoc loc) {
  std::vector<Value> values;
  for (const Expr& e : outputs) values.push_back(value_in(*this, e, "set_outputs", loc).value());
  set_outputs(std::move(values), loc);
}

void Graph::set_state(const std::string& name, Value v, SourceLoc loc) {
  NodeId id = find_leaf(OpKind::State, name);
  if (!id.valid()) {
    std::vector<std::string> names;
    for (NodeId s : leaves(OpKind::State)) names.push_back(leaf_name(s));
    throw Error(Diagnostic{ErrorCode::NotFound, concat_text("graph '", name_, "' has no state '", name, "'"),
                           built_at(loc), did_you_mean(name, names, "create it with g.state(name, init)")});
  }
  if (!(shape(v) == shape(id)))
    throw Error(Diagnostic{ErrorCode::ShapeMismatch,
                           concat_text("state '", name, "' is ", shape(id), ", but its new value is ", shape(v)),
                           built_at(loc),
                           {}});
  const std::vector<NodeId>& states = leaves_.of(OpKind::State);
  update_of_state_.resize(states.size());
  std::uint32_t& update =
      update_of_state_[static_cast<std::size_t>(std::lower_bound(states.begin(), states.end(), id) - states.begin())];
  if (update != 0) {
    state_updates_[update - 1].value = v;
    return;
  }
  state_updates_.push_back({name, v});
  update = static_cast<std::uint32_t>(state_updates_.size());
}

void Graph::set_state(const std::string& name, const Expr& v, SourceLoc loc) {
  set_state(name, value_in(*this, v, concat_text("set_state '", name, "'"), loc).value(), loc);
}

namespace {
std::string bounds_text(const SymbolInfo& info) {
  return concat_text("[", info.min, ", ", info.max, "]",
                     info.divisor == 1 ? std::string() : concat_text(" with divisor ", info.divisor));
}
}  // namespace

Dim Graph::symbol(const std::string& name) {
  Dim d = Dim::symbol(name);
  symbols_.made().try_emplace(name);
  return d;
}

Dim Graph::symbol(const std::string& name, SymbolInfo info) {
  Dim d = Dim::symbol(name);
  if (info.min < 0 || info.max < info.min || info.divisor < 1)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("symbol '", name, "': bounds [", info.min, ", ", info.max, "] with divisor ", info.divisor,
                            " are not valid: 0 <= min <= max and divisor >= 1 are needed"));
  SymbolInfo& known = symbols_.made().try_emplace(name, info).first->second;
  if (known == info) return d;
  if (known != SymbolInfo{})  // built shapes may depend on them
    throw Error(
        ErrorCode::InvalidArgument,
        concat_text("symbol '", name, "' of graph '", name_, "' is declared with bounds ", bounds_text(known),
                    ", and again with bounds ", bounds_text(info)),
        concat_text("g.symbol(\"", name,
                    "\") without bounds returns the same dimension; use another name for a different dimension"));
  known = info;
  return d;
}

Dim Graph::symbol(const std::string& name, SymbolInfo info, const Expr& source, SourceLoc loc) {
  if (life_.of(*this)->scope)
    throw Error(Diagnostic{
        ErrorCode::InvalidArgument, concat_text("symbol '", name, "': a body of control flow cannot compute extents"),
        built_at(loc), "compute the value in the outer graph, or use the largest extent and mask the rest"});
  const Value v = value_in(*this, source, concat_text("symbol '", name, "'"), loc).value();
  if (!(shape(v) == Shape({}, DType::I64)))
    throw Error(Diagnostic{ErrorCode::ShapeMismatch,
                           concat_text("symbol '", name, "' takes its value from ", v, " ", shape(v)), built_at(loc),
                           "an extent must be an I64 scalar: cast the value, or reduce it to a scalar"});
  if (symbols_->contains(name))
    throw Error(Diagnostic{ErrorCode::InvalidArgument, concat_text("symbol '", name, "' is declared already"),
                           built_at(loc), "shapes may use it already: choose another name for the computed extent"});
  Dim d = symbol(name, info);
  symbol_sources_.made().emplace(name, v);
  return d;
}

void Graph::set_symbol_source(const std::string& name, Value source) {
  if (!has(source)) throw_no_value(source);
  symbols_.made().try_emplace(name);
  symbol_sources_.made().insert_or_assign(name, source);
}

Graph::LabelScope::LabelScope(Graph& g, std::string label) : life_(g.life_.of(g)), old_size_(g.label_prefix_.size()) {
  g.label_prefix_ += label + "/";
}
Graph::LabelScope::~LabelScope() {
  if (!life_->graph) return;  // moved away or destroyed
  std::string& prefix = life_->graph->label_prefix_;
  if (prefix.size() > old_size_) prefix.resize(old_size_);
}

void Graph::set_label(NodeId id, std::string label) { origin(id).label = std::move(label); }

std::vector<NodeId> Graph::leaves(OpKind kind) const {
  return LeafIndex::knows(kind) ? leaves_.of(kind) : std::vector<NodeId>();
}

NodeId Graph::find_leaf(OpKind kind, std::string_view name) const { return leaves_.find(nodes_, kind, name); }

const std::string& Graph::leaf_name(NodeId id) const {
  const Node& n = node(id);
  if (!LeafIndex::knows(n.kind()))
    throw Error(ErrorCode::InvalidArgument,
                concat_text(node_text(*this, id), " is not an input, param or state, so it has no name"));
  return name_of(n.op);
}

SymbolRanges symbol_ranges(const Graph& g) {
  SymbolRanges out;
  for (const auto& [name, info] : g.symbols()) out.emplace(name, DimRange{info.min, info.max});
  return out;
}

std::vector<std::string> Graph::dynamic_symbols() const {
  std::set<std::string> names;
  if (is_static()) return {};
  for (const Node& n : nodes_)
    for (const Shape& s : n.shapes)
      if (!s.is_static())
        for (std::string& name : s.symbols()) names.insert(std::move(name));
  for (const Node& n : nodes_)
    see_inside(n, [&](const auto& part) {
      using Part = std::decay_t<decltype(part)>;
      if constexpr (std::is_same_v<Part, Dim>) {
        for (std::string& name : part.symbols()) names.insert(std::move(name));
      } else {
        for (std::string& name : part.dynamic_symbols()) names.insert(std::move(name));
      }
    });
  return {names.begin(), names.end()};
}

namespace {
// A copy of the op with the symbols in its Dims attributes and sub-graphs bound; the same box when it has no symbols.
OpBox bind_op(const OpBox& op, const SymbolBinding& binding) {
  const OpDef& def = op_def(op.kind());
  std::shared_ptr<void> copy;
  for (const AttrField& f : def.attrs) {
    bool dims = f.type == AttrType::DimList, body = holds_body(f.type);
    if (!dims && !body) continue;
    AttrValue value = f.get(op.data());
    if (dims) {
      auto& list = std::get<Dims>(value);
      if (std::all_of(list.begin(), list.end(), [](const Dim& d) { return d.is_static(); })) continue;
      for (Dim& d : list) d = d.bind(binding);
    } else {
      auto& graph = std::get<Subgraph>(value);
      if (!graph || graph->is_static()) continue;
      graph = std::make_shared<const Graph>(graph->bind(binding));
    }
    if (!copy) {
      copy = make_default_op(op.kind());
      for (const AttrField& other : def.attrs) other.set(copy.get(), other.get(op.data()));
    }
    f.set(copy.get(), std::move(value));
  }
  return copy ? OpBox(op.kind(), std::move(copy)) : op;
}
}  // namespace

void check_symbol_value(std::string_view symbol, const SymbolInfo& info, std::int64_t value) {
  if (value < info.min || value > info.max || value % info.divisor != 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("symbol '", symbol, "' = ", value, " is outside [", info.min, ", ", info.max, "]",
                            info.divisor > 1 ? concat_text(" or not a multiple of ", info.divisor) : std::string()));
}

Graph Graph::bind(const SymbolBinding& binding) const {
  for (const auto& [name, value] : binding)
    if (auto it = symbols_->find(name); it != symbols_->end()) check_symbol_value(name, it->second, value);
  Graph out(name_);
  out.reserve(num_nodes());
  for (const auto& [name, info] : *symbols_)
    if (!binding.contains(name)) out.symbols_.made().emplace(name, info);
  for (const Node& n : nodes_) {
    Expr e = out.add(bind_op(n.op, binding), n.inputs, n.origin.loc);
    out.nodes_[e.value().node.index].origin = n.origin;
  }
  for (const auto& [name, source] : *symbol_sources_)
    if (!binding.contains(name)) out.symbol_sources_.made().emplace(name, source);
  out.outputs_ = outputs_;
  out.has_set_outputs_ = has_set_outputs_;
  out.state_updates_ = state_updates_;
  out.update_of_state_ = update_of_state_;
  return out;
}

ValueSlots::ValueSlots(const Graph& g) {
  first_.reserve(g.num_nodes() + 1);
  first_.push_back(0);
  for (const Node& n : g.nodes()) first_.push_back(first_.back() + n.num_results());
}

void ValueSlots::throw_no_value(Value v) {
  throw Error(ErrorCode::InvalidArgument, concat_text(v.node.valid() ? v.text() : std::string("an empty id"),
                                                      " is not a value of the graph whose values were numbered"));
}

UseIndex::UseIndex(const Graph& g) : slot_(g) {
  begin_.assign(slot_.size() + 1, 0);
  for (const Node& n : g.nodes())
    for (Value v : n.inputs) ++begin_[slot_(v) + 1];
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  uses_.resize(begin_.back());
  std::vector<std::uint32_t> at(begin_.begin(), begin_.end() - 1);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    for (std::uint32_t k = 0; k < n.inputs.size(); ++k) uses_[at[slot_(n.inputs[k])]++] = {NodeId{i}, k};
  }
  output_count_.assign(slot_.size(), 0);
  auto count = [&](Value v) {
    output_count_[slot_(v)] = static_cast<std::uint8_t>(std::min(255, output_count_[slot_(v)] + 1));
  };
  for (const Root& r : roots(g))
    if (r.is_read()) count(r.value);
}

std::span<const UseIndex::Use> UseIndex::uses(Value v) const {
  std::uint32_t s = slot_(v);
  return {uses_.data() + begin_[s], begin_[s + 1] - begin_[s]};
}
int UseIndex::use_count(Value v) const { return static_cast<int>(uses(v).size()) + output_count_[slot_(v)]; }
bool UseIndex::is_output(Value v) const { return output_count_[slot_(v)] != 0; }

std::string node_label(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (!n.origin.label.empty()) return n.origin.label;
  if (is_named_leaf(n.kind())) return g.leaf_name(id);
  return id.text();
}

namespace {
thread_local const SourceLoc* line_of_call = nullptr;

std::string line_text(SourceLoc loc) {
  return loc.line > 0 ? concat_text("   built at ", loc.file, ":", loc.line) : std::string();
}
}  // namespace

LineOfCall::LineOfCall(SourceLoc loc) : loc_(loc), outermost_(line_of_call == nullptr) {
  if (outermost_) line_of_call = &loc_;
}
LineOfCall::~LineOfCall() {
  if (outermost_) line_of_call = nullptr;
}
SourceLoc LineOfCall::of(SourceLoc loc) { return line_of_call != nullptr ? *line_of_call : loc; }

std::string built_at(SourceLoc loc) { return line_text(LineOfCall::of(loc)); }

std::string node_where(const Graph& g, NodeId id) {
  const Origin& origin = g.node(id).origin;
  std::string out = node_text(g, id);
  if (!origin.label.empty()) out += concat_text("   \"", origin.label, "\"");
  out += line_text(origin.loc);
  if (!origin.from.empty()) {
    out += concat_text("\n  came from: ", origin.pass, " <- ");
    for (std::size_t i = 0; i < origin.from.size(); ++i) out += (i ? ", " : "") + origin.from[i];
  }
  return out;
}

}  // namespace rlx
