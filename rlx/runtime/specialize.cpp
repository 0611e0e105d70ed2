// From input dimensions to code: symbol values, the extents that code is made for, the program at the values.
#include "rlx/runtime/specialize.h"

#include <algorithm>

#include "rlx/compiler/arena.h"
#include "rlx/compiler/memory_plan.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxCodes = 32;            // compiled programs
constexpr std::size_t kMaxSpecialisations = 32;  // sets of dimensions

std::vector<IoInfo> leaf_infos(const Graph& g, OpKind kind) {
  std::vector<IoInfo> out;
  for (NodeId id : g.leaves(kind)) out.push_back({g.leaf_name(id), g.shape(id)});
  return out;
}

// First of all symbols get the values of dim_binding: inputs, params and states have these extents.
GraphModule bound(GraphModule m, CompileOptions& options) {
  if (m.stage() == GraphStage::Lir) return m;
  return GraphModule(bind_module(std::move(m), options));
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

bool Specialization::matches(const std::vector<std::vector<std::int64_t>>& dims) const {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!dims_equal(inputs[i], dims[i])) return false;
  return dims.size() == inputs.size();
}

NameIndex::NameIndex(const std::vector<IoInfo>& list) {
  places_.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) places_.try_emplace(list[i].name, i);
}

std::optional<std::size_t> NameIndex::find(std::string_view name) const {
  const auto it = places_.find(name);
  return it == places_.end() ? std::nullopt : std::optional(it->second);
}

SharedCode::SharedCode(GraphModule m, std::shared_ptr<const Backend> b, std::shared_ptr<OpenDevice> opened,
                       CompileOptions o, BackendOptions bo)
    : module(bound(std::move(m), o)),
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
                              " has a symbol, but keeps its bytes between runs of any extent"),
                  "declare the largest extent and read a slice of it, or fix the symbol with dim_binding");
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

// The symbols' values; whatever does not fit is left to solve_symbols and its errors.
SymbolBinding SharedCode::solve(const std::vector<std::vector<std::int64_t>>& dims) const {
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

std::shared_ptr<const Code> SharedCode::code_for(const SymbolBinding& extents) {
  for (auto it = codes_.begin(); it != codes_.end(); ++it)
    if ((*it)->extents == extents) {
      codes_.splice(codes_.begin(), codes_, it);
      return codes_.front();
    }
  CompileOptions local = options;
  for (const auto& [name, extent] : extents) {
    auto mode = local.symbol_modes.find(name);
    if (mode == local.symbol_modes.end() || mode->second.kind == SymbolMode::Kind::Specialise)
      local.dim_binding.emplace(name, extent);
    else
      mode->second = SymbolMode::runtime(extent);
  }
  auto code = std::make_shared<Code>();
  code->extents = extents;
  code->result = CompilePipeline(target, local).compile_module(module);
  if (stage_hook) stage_hook(code->result, options.verbose);
  code->executable = backend->compile_lir(code->result.lir, backend_options);
  code->weights = WeightPlan(code->executable);
  const LirModule& lir = code->executable->lir();
  if (!lir.graph.is_static()) code->binder.emplace(lir);
  for (NodeId id : lir.graph.leaves(OpKind::Input)) code->input_bytes.push_back(max_bytes(lir.graph, Value(id)));
  // Outputs that run_slots returns lie one behind the other, each aligned.
  const std::size_t align = std::max<std::size_t>(64, target->limits().alignment);
  std::size_t at = 0;
  for (Value v : lir.graph.outputs()) {
    code->slot_offsets.push_back(at);
    const std::size_t bytes = max_bytes(lir.graph, v);
    code->output_bytes.push_back(bytes);
    if (bytes >= kMostArenaBytes - align || at >= kMostArenaBytes - align - bytes)
      throw Error(Diagnostic{
          ErrorCode::OutOfMemory,
          concat_text("the outputs take more bytes than can be addressed; this one alone takes up to ", bytes,
                      " bytes, after ", at),
          node_where(lir.graph, v.node), "declare lower bounds of the symbols, or run it with smaller dimensions"});
    at += (bytes + align - 1) / align * align;
  }
  code->slot_bytes = at;
  remember<Code>(codes_, code, kMaxCodes);
  return code;
}

std::shared_ptr<const Specialization> SharedCode::specialize(const std::vector<std::vector<std::int64_t>>& dims) {
  std::lock_guard lock(mutex_);
  for (auto it = specializations_.begin(); it != specializations_.end(); ++it)
    if ((*it)->matches(dims)) {
      specializations_.splice(specializations_.begin(), specializations_, it);
      return specializations_.front();
    }
  const SymbolBinding values = solve(dims);
  SymbolBinding extents;
  for (const auto& [name, value] : values)
    extents.emplace(name, upper_extent(source, options.symbol_modes, name, value));
  auto spec = std::make_shared<Specialization>();
  spec->code = code_for(extents);
  if (spec->code->binder) spec->bound = spec->code->binder->bind(values);
  const Graph& run = spec->lir().graph;
  for (NodeId id : run.leaves(OpKind::Input)) spec->inputs.push_back(run.shape(id));
  for (Value v : run.outputs()) {
    spec->slots.push_back(
        {spec->code->slot_offsets[spec->outputs.size()], run.shape(v).num_elements(), run.shape(v).dtype()});
    spec->outputs.push_back(run.shape(v));
  }
  remember<Specialization>(specializations_, spec, kMaxSpecialisations);
  return spec;
}

std::shared_ptr<const Code> SharedCode::common() {
  SymbolBinding extents;
  for (const auto& [name, info] : plan_symbols(source, options.symbol_modes)) {
    auto mode = options.symbol_modes.find(name);
    if (mode == options.symbol_modes.end() || mode->second.kind != SymbolMode::Kind::Runtime) return nullptr;
    extents.emplace(name, info.max);
  }
  std::lock_guard lock(mutex_);
  return code_for(extents);
}

}  // namespace rlx
