// From input dimensions to code: symbol values, the extents that code is compiled for, and the program at these values.
#include "rlx/runtime/shared_programs.h"

#include <algorithm>

#include "rlx/base/sigbus_guard.h"
#include "rlx/base/trace.h"
#include "rlx/compiler/arena.h"
#include "rlx/compiler/memory_plan.h"
#include "rlx/device/registry.h"
#include "rlx/ir/rewrite/symbol_order.h"
#include "rlx/runtime/symbol_values.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxPrograms = 32;   // compiled programs
constexpr std::size_t kMaxAtExtents = 32;  // sets of input dimensions

std::vector<IoInfo> leaf_infos(const Graph& g, OpKind kind) {
  std::vector<IoInfo> out;
  for (NodeId id : g.leaves(kind)) out.push_back({g.leaf_name(id), g.shape(id)});
  return out;
}

// The symbols of dim_binding get their values first: inputs, params and states have these extents.
GraphModule bound(GraphModule m, CompileOptions& options, std::optional<SharedPrograms::SymbolProgram>& symbols) {
  if (m.stage() == GraphStage::Lir) return m;
  HirModule hir = bind_module(std::move(m), options);
  if (hir.graph.symbol_sources().empty()) return GraphModule(std::move(hir));
  if (!in_symbol_order(hir.graph)) hir.graph = sorted_by_symbols(hir.graph);
  std::set<std::string, std::less<>> host = host_symbols(hir.graph);
  if (hir.graph.is_static())  // nobody uses them
    for (const auto& [symbol, source] : hir.graph.symbol_sources()) host.insert(symbol);
  else if (!host.empty())
    symbols = symbol_program_of(hir.graph, host);
  hir.graph = without_sources(hir.graph, host);
  make_computed_runtime(hir.graph, options.symbol_modes);
  return GraphModule(std::move(hir));
}

// An opaque device runs the nodes that sources need twice, so ordered ops must not be among them.
void check_ordered_sources(const Compilation& code) {
  const LirModule& lir = code.executable->lir();
  if (!lir.plan.opaque || code.sync_points.empty()) return;
  for (NodeId id : lir.graph.ordered())
    if (id.index < code.sync_points.back().nodes)
      throw Error(Diagnostic{ErrorCode::Unsupported,
                             concat_text("computing symbol '", code.sync_points.back().symbols.front(),
                                         "' needs an ordered op, which this device would run twice"),
                             node_where(lir.graph, id), "compute the symbol without the ordered op"});
}

template <class T>
void remember(std::list<std::shared_ptr<const T>>& cache, std::shared_ptr<const T> entry, std::size_t most) {
  cache.push_front(std::move(entry));
  if (cache.size() > most) cache.pop_back();
}

}  // namespace

bool dims_equal(const Shape& declared, std::span<const std::int64_t> dims) {
  if (declared.rank() != static_cast<int>(dims.size())) return false;
  for (int i = 0; i < declared.rank(); ++i)
    if (!declared.dims()[static_cast<std::size_t>(i)].is_static(dims[static_cast<std::size_t>(i)])) return false;
  return true;
}

bool Compilation::writes_states(std::size_t from, std::size_t to) const {
  const LirModule& lir = executable->lir();
  for (std::size_t i = from; i < to; ++i) {
    const NodeId id = lir.plan.schedule[i].node;
    for (std::uint32_t r = 0; r < lir.graph.node(id).num_results(); ++r)
      if (lir.plan.at(Value(id, r)).place == Place::State) return true;
  }
  return false;
}

NameIndex::NameIndex(const std::vector<IoInfo>& list) {
  places_.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) places_.try_emplace(list[i].name, i);
}

std::optional<std::size_t> NameIndex::find(std::string_view name) const {
  const auto it = places_.find(name);
  return it == places_.end() ? std::nullopt : std::optional(it->second);
}

SharedPrograms::SharedPrograms(GraphModule m, std::shared_ptr<const Backend> b, std::shared_ptr<OpenDevice> opened,
                               CompileOptions o, BackendOptions bo)
    : module(bound(std::move(m), o, symbol_program)),
      source(module.graph()),
      backend(std::move(b)),
      device(std::move(opened)),
      options(std::move(o)),
      backend_options(std::move(bo)) {
  const LirModule* planned = module.stage() == GraphStage::Lir ? &module.lir() : nullptr;
  target = target_with_options(backend->target(backend_options), options);
  if (planned) target = with_alignment(std::move(target), planned->plan.alignment);
  inputs = leaf_infos(source, OpKind::Input);
  params = leaf_infos(planned ? planned->prepare : source, OpKind::Param);
  states = leaf_infos(source, OpKind::State);
  for (const IoInfo& s : states)
    if (!s.shape.is_static())
      throw Error(ErrorCode::Unsupported,
                  concat_text("state '", s.name, "' ", s.shape,
                              " has a symbolic shape, but a state keeps its bytes between runs of different extents"),
                  "declare the largest extent and read a slice of it, or bind the symbol with dim_binding");
  for (std::size_t i = 0; i < source.outputs().size(); ++i)
    outputs.push_back({"out" + std::to_string(i), source.shape(source.outputs()[i])});
  input_index = NameIndex(inputs), param_index = NameIndex(params);
  output_index = NameIndex(outputs), state_index = NameIndex(states);
  for (const IoInfo& info : inputs) {
    input_symbols_.emplace_back();
    for (const Dim& d : info.shape.dims()) {
      const std::vector<std::string> names = d.symbols();
      input_symbols_.back().push_back(names.empty() ? std::string() : names[0]);
      plain_inputs_ = plain_inputs_ && (names.empty() || d == Dim::symbol(names[0]));
    }
  }
}

// The values of the symbols. Dimensions that do not match are left to solve_symbols and its errors.
SymbolBinding SharedPrograms::solve(const std::vector<std::vector<std::int64_t>>& dims) const {
  SymbolBinding values;
  bool fits = plain_inputs_ && dims.size() == inputs.size();
  for (std::size_t i = 0; i < dims.size() && fits; ++i) {
    fits = dims[i].size() == input_symbols_[i].size();
    for (std::size_t a = 0; a < dims[i].size() && fits; ++a) {
      const std::string& symbol = input_symbols_[i][a];
      fits = symbol.empty() ? inputs[i].shape.dims()[a].is_static(dims[i][a])
                            : values.emplace(symbol, dims[i][a]).first->second == dims[i][a];
    }
  }
  if (fits) return values;
  std::map<std::string, std::vector<std::int64_t>, std::less<>> by_name;
  for (std::size_t i = 0; i < inputs.size(); ++i) by_name.emplace(inputs[i].name, dims[i]);
  return solve_symbols(source, by_name);
}

// The devices of a program: the one that it is compiled for, and those that its plan names.
std::vector<ProgramDevice> SharedPrograms::devices_of(const LirModule& lir) const {
  std::vector<ProgramDevice> out{{backend.get(), backend_options, device}};
  for (const DeviceId& id : lir.others) {
    const bool same = id.kind == device->id().kind;
    const std::shared_ptr<const Backend> theirs = same ? backend : require_backend(id.kind);
    BackendOptions theirs_options = same ? backend_options : theirs->compile_options({});
    theirs_options.threads = backend_options.threads;
    theirs_options.ordinal = id.ordinal;
    std::shared_ptr<OpenDevice> opened = open_device(theirs, id, theirs_options.options);
    out.push_back({theirs.get(), std::move(theirs_options), std::move(opened)});
  }
  return out;
}

std::shared_ptr<const Compilation> SharedPrograms::program_for(const SymbolBinding& extents) {
  for (auto it = programs_.begin(); it != programs_.end(); ++it)
    if ((*it)->extents == extents) {
      programs_.splice(programs_.begin(), programs_, it);
      return programs_.front();
    }
  const TraceScope traced(options.trace.get());
  CompileOptions local = options;
  for (const auto& [name, extent] : extents) {
    auto mode = local.symbol_modes.find(name);
    if (mode == local.symbol_modes.end() || mode->second.kind == SymbolMode::Kind::Specialise)
      local.dim_binding.emplace(name, extent);
    else
      mode->second = SymbolMode::runtime(extent);
  }
  auto code = std::make_shared<Compilation>();
  code->extents = extents;
  const GuardedReads reads;  // of constants in mapped files; runs check them
  code->result = CompilePipeline(target, local).compile_module(module);
  if (stage_hook) stage_hook(code->result, options.verbose);
  const std::vector<ProgramDevice> devices = devices_of(code->result.lir);
  const TraceSpan span("compile", "generate code", source.name());
  code->executable = compile_program(code->result.lir, devices);
  code->weights = WeightPlan(code->executable);
  const LirModule& lir = code->executable->lir();
  for (const ProgramDevice& d : devices) code->devices.push_back(d.device);
  code->state_devices.resize(states.size());
  for (NodeId id : lir.graph.leaves(OpKind::State))
    if (const std::optional<std::size_t> i = state_index.find(lir.graph.leaf_name(id))) {
      code->state_devices[*i] = code->devices[lir.plan.node_device(id)];
    }
  code->sync_points = sync_points(lir.graph, lir.plan.schedule);
  if (!lir.graph.is_static() || !code->sync_points.empty()) code->binder.emplace(lir);
  check_ordered_sources(*code);
  for (NodeId id : lir.graph.leaves(OpKind::Input)) code->input_bytes.push_back(max_bytes(lir.graph, Value(id)));
  // The outputs of run_slots lie one after the other, each aligned.
  const std::size_t align = std::max<std::size_t>(64, target->limits().alignment);
  std::size_t at = 0;
  for (Value v : lir.graph.outputs()) {
    code->slot_offsets.push_back(at);
    const std::size_t bytes = max_bytes(lir.graph, v);
    code->output_bytes.push_back(bytes);
    if (bytes >= kMostArenaBytes - align || at >= kMostArenaBytes - align - bytes)
      throw Error(Diagnostic{ErrorCode::OutOfMemory,
                             concat_text("the outputs need more bytes than can be addressed; this one needs up to ",
                                         bytes, " bytes at offset ", at),
                             node_where(lir.graph, v.node),
                             "declare smaller upper bounds of the symbols, or run it with smaller dimensions"});
    at += (bytes + align - 1) / align * align;
  }
  code->slot_bytes = at;
  remember<Compilation>(programs_, code, kMaxPrograms);
  return code;
}

std::shared_ptr<const Specialization> SharedPrograms::specialize(const std::vector<std::vector<std::int64_t>>& dims,
                                                                 const SymbolBinding& given) {
  if (symbol_program && given.size() != symbol_program->symbols.size())
    throw Error(ErrorCode::Unsupported,
                concat_text("symbol '", symbol_program->symbols.front(), "' of graph '", source.name(),
                            "' takes its value from the inputs' values, which are not known before a run"),
                "run the graph, or bind the symbol with dim_binding");
  std::lock_guard lock(mutex_);
  for (auto it = at_extents_.begin(); it != at_extents_.end(); ++it)
    if ((*it)->stage == 0 && (*it)->given == given && (*it)->input_dims == dims) {
      at_extents_.splice(at_extents_.begin(), at_extents_, it);
      return at_extents_.front();
    }
  auto spec = std::make_shared<Specialization>();
  spec->given = given;
  spec->values = solve(dims);
  spec->values.insert(given.begin(), given.end());
  SymbolBinding extents;
  for (const auto& [name, value] : spec->values)
    extents.emplace(name, upper_extent(source, options.symbol_modes, name, value));
  if (!source.symbol_sources().empty()) {
    const std::map<std::string, SymbolInfo> planned = plan_symbols(source, options.symbol_modes);
    for (const auto& [name, value] : source.symbol_sources()) extents.emplace(name, planned.at(name).max);
  }
  spec->code = program_for(extents);
  return finish(std::move(spec));
}

std::shared_ptr<const Specialization> SharedPrograms::specialize(const std::shared_ptr<const Specialization>& before,
                                                                 const std::vector<std::int64_t>& read) {
  std::lock_guard lock(mutex_);
  for (auto it = at_extents_.begin(); it != at_extents_.end(); ++it)
    if ((*it)->before == before && (*it)->read == read) {
      at_extents_.splice(at_extents_.begin(), at_extents_, it);
      return at_extents_.front();
    }
  auto spec = std::make_shared<Specialization>();
  spec->code = before->code;
  spec->given = before->given;
  spec->values = before->values;
  spec->stage = before->stage + 1;
  spec->before = before;
  spec->read = read;
  const std::vector<std::string>& symbols = before->code->sync_points[before->stage].symbols;
  for (std::size_t k = 0; k < symbols.size(); ++k) spec->values.emplace(symbols[k], read[k]);
  return finish(std::move(spec));
}

std::shared_ptr<const Specialization> SharedPrograms::finish(std::shared_ptr<Specialization> spec) {
  const TraceScope traced(options.trace.get());
  const TraceSpan span("bind", "bind extents", source.name());
  const Compilation& code = *spec->code;
  if (!spec->is_last())
    spec->bound = code.binder->bind_until(code.sync_points[spec->stage], spec->values);
  else if (code.binder)
    spec->bound = code.binder->bind(spec->values);
  const Graph& run = spec->lir().graph;
  for (NodeId id : run.leaves(OpKind::Input)) {
    spec->inputs.push_back(run.shape(id));
    spec->input_dims.push_back(run.shape(id).static_dims());
    spec->input_bytes.push_back(run.shape(id).size_bytes());
  }
  const Graph& whole = code.executable->lir().graph;
  for (Value v : whole.outputs()) {
    spec->outputs.push_back(whole.shape(v).bind(spec->values));
    const Shape& shape = spec->outputs.back();
    if (!spec->is_last()) continue;
    spec->output_bytes.push_back(shape.size_bytes());
    spec->slots.push_back({code.slot_offsets[spec->slots.size()], shape.num_elements(), shape.dtype()});
  }
  remember<Specialization>(at_extents_, spec, kMaxAtExtents);
  return spec;
}

std::shared_ptr<const Compilation> SharedPrograms::common() {
  SymbolBinding extents;
  for (const auto& [name, info] : plan_symbols(source, options.symbol_modes)) {
    auto mode = options.symbol_modes.find(name);
    if (mode == options.symbol_modes.end() || mode->second.kind != SymbolMode::Kind::Runtime) return nullptr;
    extents.emplace(name, info.max);
  }
  std::lock_guard lock(mutex_);
  return program_for(extents);
}

}  // namespace rlx
