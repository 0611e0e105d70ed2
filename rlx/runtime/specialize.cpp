// Compiles a source graph for sets of input dimensions and remembers the results.
#include "rlx/runtime/specialize.h"

#include <algorithm>

namespace rlx {
namespace {

std::vector<IoInfo> leaf_infos(const Graph& g, OpKind kind) {
  std::vector<IoInfo> out;
  for (NodeId id : g.leaves(kind)) out.push_back({g.leaf_name(id), g.shape(id)});
  return out;
}

}  // namespace

bool dims_equal(const Shape& declared, std::span<const std::int64_t> dims) {
  if (declared.rank() != static_cast<int>(dims.size())) return false;
  for (int i = 0; i < declared.rank(); ++i)
    if (!declared.dims()[static_cast<std::size_t>(i)].is_static(dims[static_cast<std::size_t>(i)])) return false;
  return true;
}

SharedCode::SharedCode(Graph g, std::shared_ptr<const Backend> b, CompileOptions o, BackendOptions bo)
    : source(std::move(g)), backend(std::move(b)), options(std::move(o)), backend_options(std::move(bo)) {
  target = backend->target(backend_options);
  inputs = leaf_infos(source, OpKind::Input);
  params = leaf_infos(source, OpKind::Param);
  states = leaf_infos(source, OpKind::State);
  for (std::size_t i = 0; i < source.outputs().size(); ++i) outputs.push_back({"out" + std::to_string(i), source.shape(source.outputs()[i])});
}

std::shared_ptr<const Specialization> SharedCode::specialize(const std::vector<std::vector<std::int64_t>>& dims) {
  std::lock_guard lock(mutex);
  for (auto it = cache.begin(); it != cache.end(); ++it)
    if ((*it)->matches(dims)) {
      cache.splice(cache.begin(), cache, it);
      return cache.front();
    }
  std::map<std::string, std::vector<std::int64_t>, std::less<>> by_name;
  for (std::size_t i = 0; i < inputs.size(); ++i) by_name.emplace(inputs[i].name, dims[i]);
  CompileOptions local = options;
  SymbolBinding binding = solve_symbols(source, by_name);
  for (const auto& [name, value] : binding) local.dim_binding.insert_or_assign(name, value);
  auto spec = std::make_shared<Specialization>();
  CompilePipeline pipeline(target, local);
  spec->result = pipeline.compile_graph(source);
  if (stage_hook) stage_hook(spec->result);
  spec->executable = backend->compile_lir(spec->result.lir, backend_options);
  spec->weights = WeightPlan(spec->executable);
  const Graph& run = spec->executable->lir().graph;
  for (NodeId id : run.leaves(OpKind::Input)) spec->inputs.push_back(run.shape(id));
  for (Value v : run.outputs()) spec->outputs.push_back(run.shape(v));
  // Outputs that run_slots returns lie behind the arena, each aligned.
  std::size_t align = std::max<std::size_t>(64, target.memory.alignment);
  std::size_t at = (spec->executable->lir().plan.arena_bytes + align - 1) / align * align;
  for (const Shape& s : spec->outputs) {
    spec->slots.push_back({at, s.num_elements(), s.dtype()});
    at += (s.size_bytes() + align - 1) / align * align;
  }
  spec->block_bytes = at;
  constexpr std::size_t kMaxSpecialisations = 32;
  cache.push_front(spec);
  if (cache.size() > kMaxSpecialisations) cache.pop_back();
  return spec;
}

bool Specialization::matches(const std::vector<std::vector<std::int64_t>>& dims) const {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!dims_equal(inputs[i], dims[i])) return false;
  return dims.size() == inputs.size();
}

}  // namespace rlx
