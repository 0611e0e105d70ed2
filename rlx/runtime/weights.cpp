// Preparing weights: aliases, packed forms, and values computed once.
#include "rlx/runtime/weights.h"

#include <algorithm>
#include <set>

#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/weights.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rebuild.h"

namespace rlx {

bool PreparedWeight::complete() const {
  return !bytes.empty() && std::find(ready.begin(), ready.end(), false) == ready.end();
}

WeightStore::WeightStore(const WeightStore& other) {
  std::lock_guard lock(other.mutex_);
  params_ = other.params_;
  prepared_ = other.prepared_;
  loaders_ = other.loaders_;
}

void WeightStore::keep_alive(std::shared_ptr<const WeightLoader> loader) {
  std::lock_guard lock(mutex_);
  loaders_.push_back(std::move(loader));
}

bool WeightStore::has(std::string_view name) const {
  std::lock_guard lock(mutex_);
  return params_.find(name) != params_.end();
}

void WeightStore::set(const std::string& name, Tensor value) {
  std::lock_guard lock(mutex_);
  params_.insert_or_assign(name, std::move(value));
  for (auto it = prepared_.begin(); it != prepared_.end();) {
    std::shared_ptr<Entry>& entry = it->second;
    if (std::find(entry->params.begin(), entry->params.end(), name) == entry->params.end()) {
      ++it;
      continue;
    }
    auto source = std::find(entry->source_params.begin(), entry->source_params.end(), name);
    if (source == entry->source_params.end()) {
      it = prepared_.erase(it);
      continue;
    }
    if (entry.use_count() != 1) entry = std::make_shared<Entry>(*entry);  // a clone reads the old one
    for (std::size_t s = 0; s < entry->source_params.size(); ++s)
      if (entry->source_params[s] == name) entry->weight.ready[s] = false;
    ++it;
  }
}

const Tensor& WeightStore::param(const std::string& name) const {
  auto it = params_.find(name);
  if (it == params_.end()) throw Error(ErrorCode::NotFound, concat_text("param '", name, "' has no value"), "set it with set_param or load_params");
  return it->second;
}

std::size_t WeightStore::prepared_bytes() const {
  std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [key, entry] : prepared_) bytes += entry->weight.bytes.size_bytes();
  return bytes;
}

namespace {

void collect_params(const Graph& g, Value v, std::set<std::string>& names) {
  const Node& n = g.node(v.node);
  if (n.kind() == OpKind::Param) names.insert(g.leaf_name(v.node));
  for (Value in : n.inputs) collect_params(g, in, names);
}

// Evaluates values of a prepare graph on the backend: the Params they read become inputs of a small program.
std::vector<Tensor> compute(const Graph& prepare, const std::vector<Value>& wanted, const NamedTensors& params, const Backend& backend,
                            TargetInfo target, const BackendOptions& options) {
  std::vector<bool> live(prepare.num_nodes(), false);
  for (Value v : wanted) live[v.node.index] = true;
  for (std::size_t i = live.size(); i-- > 0;)
    if (live[i])
      for (Value v : prepare.nodes()[i].inputs) live[v.node.index] = true;
  Graph g("prepare");
  ValueMap map(prepare);
  std::vector<const void*> inputs;
  for (std::uint32_t i = 0; i < prepare.num_nodes(); ++i) {
    if (!live[i]) continue;
    const Node& n = prepare.nodes()[i];
    OpBox op = n.op;
    if (const auto* p = n.op.get_if<ops::Param>()) {
      op = ops::Input{p->name, p->dims, p->dtype};
      inputs.push_back(params.find(p->name)->second.data());
    }
    std::vector<Value> operands;
    for (Value v : n.inputs) operands.push_back(map(v));
    NodeId id = g.add_node(Node{std::move(op), std::move(operands), n.shapes, n.origin});
    for (std::uint32_t r = 0; r < n.num_results(); ++r) map.set(Value(NodeId{i}, r), Value(id, r));
  }
  std::vector<Value> outputs;
  std::vector<Tensor> results;
  std::vector<void*> pointers;
  for (Value v : wanted) {
    outputs.push_back(map(v));
    results.push_back(Tensor::zeros(prepare.shape(v)));
  }
  for (Tensor& t : results) pointers.push_back(t.mutable_data());
  g.set_outputs(outputs);
  target.packing = nullptr;
  LirModule lir;
  lir.plan = plan_memory(g, target);
  lir.graph = std::move(g);
  Tensor arena = Tensor::uninitialized(Shape({Dim(lir.plan.arena_bytes)}, DType::U8));
  auto executable = backend.compile_lir(std::move(lir), options);
  auto bound = executable->bind(BindContext{arena.mutable_data(), {}, {}});
  bound->run(inputs, pointers);
  return results;
}

}  // namespace

std::vector<const std::byte*> WeightStore::prepare(const ExecutableGraph& executable, const Backend& backend, const TargetInfo& target,
                                                   const BackendOptions& options) {
  std::lock_guard lock(mutex_);
  const Graph& prepare = executable.lir().prepare;
  const std::size_t n = prepare.outputs().size();
  std::vector<std::string> keys(n);
  std::vector<std::string> missing;

  // Which values are missing, and what must be computed for them.
  std::vector<Value> to_compute;
  auto want = [&](Value v) {
    if (std::find(to_compute.begin(), to_compute.end(), v) == to_compute.end()) to_compute.push_back(v);
  };
  auto is_leaf = [&](Value v) { return op_def(prepare.node(v.node).kind()).is(OpTrait::Leaf); };
  for (std::size_t i = 0; i < n; ++i) {
    Value v = prepare.outputs()[i];
    const Node& node = prepare.node(v.node);
    std::set<std::string> names;
    if (is_leaf(v)) {
      collect_params(prepare, v, names);
    } else {
      keys[i] = prepared_key(prepare, i);
      auto it = prepared_.find(keys[i]);
      if (it != prepared_.end() && it->second->weight.complete()) continue;
      collect_params(prepare, v, names);
      if (node.op.is<ops::Relayout>()) {
        for (Value source : node.inputs)
          if (!is_leaf(source)) want(source);
      } else {
        want(v);
      }
    }
    for (const std::string& name : names)
      if (!params_.contains(name) && std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(name);
  }
  if (!missing.empty()) {
    std::string list;
    for (std::size_t i = 0; i < missing.size() && i < 8; ++i) list += concat_text(i ? ", " : "", "'", missing[i], "'");
    throw Error(ErrorCode::NotFound, concat_text(missing.size(), missing.size() == 1 ? " param has" : " params have", " no value: ", list, missing.size() > 8 ? ", ..." : ""),
                "set them with set_param or load_params before the first run");
  }

  std::vector<Tensor> computed;
  if (!to_compute.empty()) computed = compute(prepare, to_compute, params_, backend, target, options);
  auto value_of = [&](Value v) -> const Tensor& {
    const Node& node = prepare.node(v.node);
    if (const auto* p = node.op.get_if<ops::Param>()) return param(p->name);
    if (const auto* c = node.op.get_if<ops::Constant>()) return c->value;
    return computed[static_cast<std::size_t>(std::find(to_compute.begin(), to_compute.end(), v) - to_compute.begin())];
  };

  // Packed weights lie one after the other, in the order of use, so that they share huge pages and one's end prefetches the
  // next's start.
  constexpr std::size_t kLine = 64;
  auto packed_bytes = [&](std::size_t i) -> std::size_t {
    const auto* relayout = prepare.node(prepare.outputs()[i].node).op.get_if<ops::Relayout>();
    if (relayout == nullptr) return 0;
    auto it = prepared_.find(keys[i]);
    if (it != prepared_.end() && it->second && !it->second->weight.bytes.empty()) return 0;
    return (static_cast<std::size_t>(relayout->packed_bytes) + kLine - 1) / kLine * kLine;
  };
  std::size_t slab_bytes = 0, slab_used = 0;
  for (std::size_t i = 0; i < n; ++i) slab_bytes += packed_bytes(i);
  Tensor slab;
  if (slab_bytes > 0) slab = Tensor::uninitialized(Shape({Dim(slab_bytes)}, DType::U8));

  std::vector<const std::byte*> pointers(n);
  for (std::size_t i = 0; i < n; ++i) {
    Value v = prepare.outputs()[i];
    const Node& node = prepare.node(v.node);
    if (is_leaf(v)) {
      pointers[i] = value_of(v).data();
      continue;
    }
    std::shared_ptr<Entry>& entry = prepared_[keys[i]];
    if (!entry || !entry->weight.complete()) {
      if (!entry) {
        entry = std::make_shared<Entry>();
        std::set<std::string> names;
        collect_params(prepare, v, names);
        entry->params.assign(names.begin(), names.end());
      }
      PreparedWeight& weight = entry->weight;
      if (const auto* relayout = node.op.get_if<ops::Relayout>()) {
        if (weight.bytes.empty()) {
          const std::size_t bytes = packed_bytes(i);
          weight.bytes = Tensor::part_of(slab, slab_used, Shape({Dim(relayout->packed_bytes)}, DType::U8));
          slab_used += bytes;
          weight.ready.assign(node.inputs.size(), false);
          for (Value source : node.inputs)
            entry->source_params.push_back(prepare.node(source.node).kind() == OpKind::Param ? prepare.leaf_name(source.node) : std::string());
        }
        for (std::size_t s = 0; s < node.inputs.size(); ++s) {
          if (weight.ready[s]) continue;
          executable.pack(v.node, s, value_of(node.inputs[s]).data(), weight.bytes.mutable_data());
          weight.ready[s] = true;
          if (!entry->source_params[s].empty())
            for (const auto& loader : loaders_) loader->drop_pages(entry->source_params[s]);
        }
      } else {
        weight.bytes = value_of(v);
        weight.ready.assign(1, true);
      }
    }
    pointers[i] = entry->weight.bytes.data();
  }
  return pointers;
}

}  // namespace rlx
