// The host part of a run whose shapes depend on values.
#include "rlx/runtime/symbol_values.h"

#include <algorithm>

#include "rlx/base/trace.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/rewrite/symbol_order.h"
#include "rlx/runtime/compiled_graph_impl.h"

namespace rlx {
std::set<std::string, std::less<>> host_symbols(const Graph& g) {
  std::vector<bool> on_device(g.num_nodes(), false);
  std::set<std::string, std::less<>> out;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    bool later = n.kind() == OpKind::Param || n.kind() == OpKind::State || is_ordered(n.op);
    for (Value v : n.inputs) later = later || on_device[v.node.index];
    for (const std::string& name : symbols_of(n))
      if (const auto s = g.symbol_sources().find(name); s != g.symbol_sources().end())
        later = later || on_device[s->second.node.index];
    on_device[i] = later;
  }
  for (const auto& [symbol, source] : g.symbol_sources())
    if (!on_device[source.node.index]) out.insert(symbol);
  return out;
}

SharedPrograms::SymbolProgram symbol_program_of(const Graph& g, const std::set<std::string, std::less<>>& host) {
  SharedPrograms::SymbolProgram out;
  std::vector<bool> live(g.num_nodes(), false);
  for (const std::string& symbol : host) live[g.symbol_sources().at(symbol).node.index] = true;
  for (std::uint32_t i = static_cast<std::uint32_t>(g.num_nodes()); i-- > 0;) {
    if (!live[i]) continue;
    for (Value v : g.nodes()[i].inputs) live[v.node.index] = true;
    for (const std::string& name : symbols_of(g.nodes()[i]))
      if (const auto s = g.symbol_sources().find(name); s != g.symbol_sources().end())
        live[s->second.node.index] = true;
  }
  out.graph = copy_shell(g, g.name() + ".symbols");
  std::vector<NodeId> map(g.num_nodes());
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    Node n = g.nodes()[i];
    if (!live[i]) continue;
    for (Value& v : n.inputs) v = Value(map[v.node.index], v.result);
    map[i] = out.graph.add_node(std::move(n));
  }
  std::vector<Value> outputs;
  for (const std::string& symbol : host) {
    const Value source = g.symbol_sources().at(symbol);
    outputs.emplace_back(map[source.node.index], source.result);
    out.graph.set_symbol_source(symbol, outputs.back());  // one symbol may determine extents that another one needs
    out.symbols.push_back(symbol);
  }
  out.graph.set_outputs(std::move(outputs));
  return out;
}

Graph without_sources(const Graph& g, const std::set<std::string, std::less<>>& names) {
  Graph out = copy_shell(g);
  out.reserve(g.num_nodes());
  for (const Node& n : g.nodes()) out.add_node(Node(n));
  out.set_outputs(g.outputs());
  for (const Graph::StateUpdate& u : g.state_updates()) out.set_state(u.name, u.value);
  for (const auto& [symbol, source] : g.symbol_sources())
    if (!names.contains(symbol)) out.set_symbol_source(symbol, source);
  return out;
}

void make_computed_runtime(const Graph& g, SymbolModes& modes) {
  for (const auto& [symbol, source] : g.symbol_sources()) {
    const auto [mode, fresh] = modes.try_emplace(symbol, SymbolMode::runtime());
    const auto refuse = [&, &name = symbol, &value = source](std::string_view why, std::string hint) {
      throw Error(
          Diagnostic{ErrorCode::Unsupported,
                     concat_text("symbol '", name, "' of graph '", g.name(), "' takes its value from the run ", why),
                     node_where(g, value.node), std::move(hint)});
    };
    if (mode->second.kind != SymbolMode::Kind::Runtime)
      refuse("itself, so it cannot be specialised or bucketed",
             "leave it out of symbol_modes, or give it SymbolMode::runtime(bound)");
    if (!mode->second.bound && g.symbols().at(symbol).max >= SymbolInfo{}.max)
      refuse("and has no upper bound to plan memory for", concat_text("declare a bound with g.symbol(\"", symbol,
                                                                      "\", {.max = N}, value), or pass "
                                                                      "SymbolMode::runtime(N)"));
  }
}

SymbolBinding SharedPrograms::symbol_values(std::span<const TensorView> views,
                                            const std::vector<std::vector<std::int64_t>>& dims) const {
  NamedTensors values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!symbol_program->graph.find_leaf(OpKind::Input, inputs[i].name).valid()) continue;
    const Shape shape(Dims(dims[i].begin(), dims[i].end()), inputs[i].shape.dtype());
    const TensorView& v = views[i];
    if (v.size_bytes != shape.size_bytes() || (!v.buffer && v.data == nullptr && v.size_bytes != 0))
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text("input '", inputs[i].name, "' is ", shape, " (", shape.size_bytes(), " bytes), got ",
                              v.data ? v.size_bytes : 0, " bytes"));
    if (v.buffer) {
      Tensor copy = Tensor::uninitialized(shape);
      v.buffer->read({copy.mutable_data(), copy.size_bytes()});
      values.emplace(inputs[i].name, std::move(copy));
    } else {
      values.emplace(inputs[i].name, Tensor::borrowed(v.data, shape, nullptr));
    }
  }
  const std::vector<Tensor> results = evaluate(symbol_program->graph, values);
  SymbolBinding out;
  for (std::size_t k = 0; k < results.size(); ++k) {
    out.emplace(symbol_program->symbols[k], results[k].at_i64(0));
    check_computed_symbol(symbol_program->graph, symbol_program->symbols[k], results[k].at_i64(0));
  }
  return out;
}

BoundInstance& CompiledGraph::Impl::program_by_value(std::span<const TensorView> views) {
  std::vector<std::vector<std::int64_t>> dims;
  for (std::size_t i = 0; i < views.size(); ++i) dims.push_back(resolve_dims(code->inputs[i], views[i]));
  BoundInstance& s = use(code->specialize(dims, code->symbol_values(views, dims)));
  check_sizes(s, views);
  return s;
}

// -- values that the run computes --

namespace {

// The location of a value that is read at a sync point. Constants are in host memory.
BufferView place_of(const BoundInstance& s, Value v) {
  const LirModule& lir = s.spec->lir();
  const LirValue& w = lir.plan.at(v);
  const auto part = [&](BufferView whole) {
    whole.offset += w.offset;
    if (whole.host) whole.host += w.offset;
    whole.bytes = sizeof(std::int64_t);
    return whole;
  };
  switch (w.place) {
    case Place::Arena: return part(s.arenas[w.index]);
    case Place::Input: return part(s.inputs[w.index].view);
    case Place::Prepared: return part(s.weights->views[w.index]);
    case Place::State: return part(s.states[w.index].view);
    case Place::Constant: {
      const Tensor& t = lir.graph.node(NodeId{w.index}).op.as<ops::Constant>().value;
      return {t.data() + w.offset, sizeof(std::int64_t)};
    }
    case Place::Output:
    case Place::None: break;
  }
  check(false, "the value of a symbol has no memory before its sync point");
  return {};
}

}  // namespace

void CompiledGraph::Impl::advance(InstanceInUse& used, std::span<const TensorView> views,
                                  std::vector<StepTime>* times) {
  const TraceScope traced(trace());
  const TraceSpan span("run", "compute symbols", code->source.name());
  std::vector<StepTime> part;  // of the steps up to one sync point
  while (!used->spec->is_last()) {
    BoundInstance& s = *used;
    const Compilation& c = *s.spec->code;
    const SyncPoint& point = c.sync_points[s.spec->stage];
    if (s.spec->stage == 0)
      begin(s, views);
    else
      bind(s);
    at_stop.assign(point.sources.size(), 0);
    if (s.spec->lir().plan.opaque)
      read_outputs(s, point, times ? &part : nullptr);
    else
      read_sources(s, point, times ? &part : nullptr);
    if (times) times->insert(times->end(), part.begin(), part.end());
    for (std::size_t k = 0; k < at_stop.size(); ++k)
      check_computed_symbol(c.executable->lir().graph, point.symbols[k], at_stop[k]);
    used.go_on(next_program(s));
  }
}

// The program after the sync point of `s`, for the values read into `at_stop`, with its inputs.
BoundInstance& CompiledGraph::Impl::next_program(BoundInstance& s) {
  const auto known = std::find_if(shapes.begin(), shapes.end(),
                                  [&](const auto& p) { return p->spec->before == s.spec && p->spec->read == at_stop; });
  if (known != shapes.end()) shapes.splice(shapes.begin(), shapes, known);
  // `s` was at the front until now, so it stays when a new entry evicts the last of the list.
  BoundInstance& next = known != shapes.end() ? *shapes.front() : use(code->specialize(s.spec, at_stop));
  next.inputs.swap(s.inputs);
  next.input_buffer_slots.swap(s.input_buffer_slots);
  for (std::size_t i = 0; i < next.inputs.size(); ++i)
    if (next.inputs[i].buffer_slot) next.inputs[i].buffer_slot = &next.input_buffer_slots[i];
  return next;
}

void CompiledGraph::Impl::read_sources(BoundInstance& s, const SyncPoint& point, std::vector<StepTime>* times) {
  const std::size_t from = s.spec->first_step();
  if (from != point.step) (void)submit(s, {from, point.step}, {}, s.spec->code->writes_states(from, point.step), times);
  sources.clear();
  for (Value v : point.sources) sources.push_back(place_of(s, v));
  read_scalars(*device, *stream, sources, at_stop);
}

// A device that plans its own memory has no steps. The sources are outputs of a separate program, and the run repeats
// its work.
void CompiledGraph::Impl::read_outputs(BoundInstance& s, const SyncPoint& point, std::vector<StepTime>* times) {
  std::vector<std::shared_ptr<Buffer>> slots(point.sources.size());
  std::vector<RunSlot> outputs;
  for (std::size_t k = 0; k < slots.size(); ++k)
    outputs.push_back(output_slot(*device, &at_stop[k], sizeof at_stop[k], {}, slots[k]));
  Fetching fetching(*stream);
  (void)submit(s, {}, outputs, false, times);
  for (std::size_t k = 0; k < slots.size(); ++k)
    fetch_output(*device, *stream, outputs[k], Shape({}, DType::I64), &at_stop[k], nullptr);
  fetching.finish(stream->record());
}

}  // namespace rlx
