// Preparing weights: values read as they are, packed forms, and values computed once.
#include "rlx/runtime/weights.h"

#include <algorithm>
#include <set>

#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/weights.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rebuild.h"

namespace rlx {

namespace {

void collect_params(const Graph& g, Value v, std::set<std::string>& names) {
  const Node& n = g.node(v.node);
  if (n.kind() == OpKind::Param) names.insert(g.leaf_name(v.node));
  for (Value in : n.inputs) collect_params(g, in, names);
}

// Evaluates values of a prepare graph on the backend: the Params they read become inputs of a small program.
std::vector<Tensor> compute(const Graph& prepare, const std::vector<Value>& wanted, const NamedTensors& params,
                            const Backend& backend, TargetInfo target, const BackendOptions& options) {
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

WeightPlan::WeightPlan(std::shared_ptr<const ExecutableGraph> e) : executable(std::move(e)) {
  const Graph& prepare = executable->lir().prepare;
  for (std::size_t i = 0; i < prepare.outputs().size(); ++i) {
    bool leaf = op_def(prepare.node(prepare.outputs()[i].node).kind()).is(OpTrait::Leaf);
    keys.push_back(leaf ? std::string() : prepared_key(prepare, i));
  }
}

bool WeightStore::Form::complete() const {
  return !bytes.empty() && std::all_of(sources.begin(), sources.end(), [](const Source& s) { return s.ready; });
}

WeightStore::WeightStore(const WeightStore& other) {
  std::lock_guard lock(other.mutex_);
  params_ = other.params_;
  forms_ = other.forms_;
  readers_ = other.readers_;
  read_raw_ = other.read_raw_;
}

bool WeightStore::has(std::string_view name) const {
  std::lock_guard lock(mutex_);
  return params_.find(name) != params_.end();
}

std::size_t WeightStore::bytes() const {
  std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [key, form] : forms_)
    if (std::any_of(form->sources.begin(), form->sources.end(), [](const Source& s) { return s.ready; }))
      bytes += form->bytes.size_bytes();
  for (const auto& [name, p] : params_)
    if (!p.raw.empty() && !p.loader) bytes += p.raw.size_bytes();
  return bytes;
}

// A form for writing: a clone goes on reading the old bytes.
WeightStore::Form& WeightStore::own(std::shared_ptr<Form>& form) {
  if (!sole_owner(form)) {
    form = std::make_shared<Form>(*form);
    if (!form->bytes.empty()) form->bytes = Tensor::copy_of(form->bytes.data(), form->bytes.shape());
  }
  return *form;
}

// What was made of `name` is old.
void WeightStore::invalidate(const std::string& name) {
  for (auto& [key, form] : forms_) {
    auto reads = [&](const Source& s) { return std::find(s.reads.begin(), s.reads.end(), name) != s.reads.end(); };
    if (std::none_of(form->sources.begin(), form->sources.end(), [&](const Source& s) { return s.ready && reads(s); }))
      continue;
    if (!form->packed_by) {  // computed anew as a whole
      form = std::make_shared<Form>(*form);
      form->bytes = Tensor();
    }
    for (Source& s : own(form).sources)
      if (reads(s)) s.ready = false;
  }
}

// Packs `value` into every form that waits for it; true when the values must stay.
bool WeightStore::pack_everywhere(const std::string& name, const Tensor& value, DType declared) {
  bool held = false;
  Tensor fitted;
  for (auto& [key, form] : forms_)
    for (std::size_t i = 0; i < form->sources.size(); ++i) {
      if (!form->packed_by || form->sources[i].param != name) continue;
      held = true;
      if (form->sources[i].ready) continue;
      if (fitted.empty()) fitted = value.cast(declared);
      Form& f = own(form);
      f.packed_by->pack(f.node, i, fitted.data(), f.bytes.mutable_data());
      f.sources[i].ready = true;
    }
  return !held || read_raw_.contains(name);
}

void WeightStore::set(const std::string& name, const Tensor& value, DType declared,
                      std::shared_ptr<const WeightLoader> loader) {
  std::lock_guard lock(mutex_);
  params_.erase(name);  // should memory run out, the param has no value rather than half of one
  invalidate(name);
  Param p{{}, declared, {}};
  if (!pack_everywhere(name, value, declared)) {
    if (loader) loader->drop_pages(name);
  } else if (loader) {
    p.raw = value;  // converted when it is read: a checkpoint in half precision stays in its file until then
    p.loader = std::move(loader);
  } else {
    p.raw = value.cast(declared);
    if (!p.raw.owned()) p.raw = Tensor::copy_of(p.raw.data(), p.raw.shape());
  }
  params_.emplace(name, std::move(p));
}

// The values of a param in its declared dtype, read back from a packed form when nothing else holds them.
const Tensor& WeightStore::raw(const std::string& name) {
  Param& p = params_.find(name)->second;
  if (!p.raw.empty()) {
    if (p.raw.dtype() != p.declared) p = Param{p.raw.cast(p.declared), p.declared, {}};
    return p.raw;
  }
  for (const auto& [key, form] : forms_)
    for (std::size_t i = 0; i < form->sources.size(); ++i)
      if (form->packed_by && form->sources[i].param == name && form->sources[i].ready) {
        const Graph& prepare = form->packed_by->lir().prepare;
        Tensor t = Tensor::uninitialized(prepare.shape(prepare.node(form->node).inputs[i]));
        form->packed_by->unpack(form->node, i, form->bytes.data(), t.mutable_data());
        p.raw = std::move(t);
        return p.raw;
      }
  throw Error(ErrorCode::Internal, concat_text("the values of param '", name,
                                               "' were given back while no packed form holds them; please report"));
}

void WeightStore::pack_param(const std::string& name) {
  Param& p = params_.find(name)->second;
  const std::shared_ptr<const WeightLoader> loader = p.loader;
  const bool stays = pack_everywhere(name, raw(name), p.declared);
  if (loader) loader->drop_pages(name);
  if (!stays) p = Param{{}, p.declared, {}};
}

void WeightStore::add(const WeightPlan& plan) {
  std::lock_guard lock(mutex_);
  add_locked(plan);
}

void WeightStore::add_locked(const WeightPlan& plan) {
  const Graph& prepare = plan.executable->lir().prepare;
  auto names_of = [&](Value v) {
    std::set<std::string> names;
    collect_params(prepare, v, names);
    return std::vector<std::string>(names.begin(), names.end());
  };
  std::vector<std::shared_ptr<Form>> fresh;  // packed forms in the order of use
  constexpr std::size_t kLine = 64;
  auto padded = [](std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
  std::size_t slab_bytes = 0;
  for (std::size_t i = 0; i < plan.keys.size(); ++i) {
    Value v = prepare.outputs()[i];
    const Node& node = prepare.node(v.node);
    if (plan.keys[i].empty()) {
      if (node.kind() == OpKind::Param) read_raw_.insert(prepare.leaf_name(v.node));
      continue;
    }
    std::shared_ptr<Form>& form = forms_[plan.keys[i]];
    if (!node.op.is<ops::Relayout>()) {
      auto& readers = readers_[plan.keys[i]];
      if (std::none_of(readers.begin(), readers.end(), [&](const auto& r) { return r.lock() == plan.executable; }))
        readers.push_back(plan.executable);
    }
    if (form) continue;
    form = std::make_shared<Form>();
    if (node.op.is<ops::Relayout>()) {
      form->packed_by = plan.executable;
      form->node = v.node;
      for (Value source : node.inputs) {
        bool direct = prepare.node(source.node).kind() == OpKind::Param;
        form->sources.push_back({direct ? prepare.leaf_name(source.node) : std::string(), names_of(source), false});
      }
      slab_bytes += padded(static_cast<std::size_t>(node.op.as<ops::Relayout>().packed_bytes));
      fresh.push_back(form);
    } else {
      form->sources.push_back({{}, names_of(v), false});
    }
    for (const Source& s : form->sources)
      if (s.param.empty()) read_raw_.insert(s.reads.begin(), s.reads.end());
  }
  for (auto it = readers_.begin(); it != readers_.end();) {
    std::erase_if(it->second, [](const auto& r) { return r.expired(); });
    if (!it->second.empty()) {
      ++it;
      continue;
    }
    forms_.erase(it->first);
    it = readers_.erase(it);
  }
  if (fresh.empty()) return;
  // Packed weights lie one after the other, in the order of use, so that they share huge pages and one's end prefetches
  // the next's start. Nothing is touched before it is packed.
  Tensor slab = Tensor::uninitialized(Shape({Dim(slab_bytes)}, DType::U8));
  std::size_t used = 0;
  for (const std::shared_ptr<Form>& form : fresh) {
    auto bytes = static_cast<std::size_t>(prepare.node(form->node).op.as<ops::Relayout>().packed_bytes);
    form->bytes = Tensor::part_of(slab, used, Shape({Dim(bytes)}, DType::U8));
    used += padded(bytes);
  }
}

std::vector<const std::byte*> WeightStore::prepare(const WeightPlan& plan, const Backend& backend,
                                                   const TargetInfo& target, const BackendOptions& options) {
  std::lock_guard lock(mutex_);
  add_locked(plan);
  const Graph& prepare = plan.executable->lir().prepare;
  const std::size_t n = plan.keys.size();

  // What is not ready, and the params it takes.
  std::vector<std::string> to_pack, needed;
  std::vector<Value> to_compute;
  auto add_new = [](auto& list, const auto& item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  };
  for (std::size_t i = 0; i < n; ++i) {
    Value v = prepare.outputs()[i];
    const Node& node = prepare.node(v.node);
    if (plan.keys[i].empty()) {
      if (node.kind() == OpKind::Param) add_new(needed, prepare.leaf_name(v.node));
      continue;
    }
    const Form& form = *forms_.at(plan.keys[i]);
    for (std::size_t s = 0; s < form.sources.size(); ++s) {
      const Source& source = form.sources[s];
      if (source.ready) continue;
      for (const std::string& name : source.reads) add_new(needed, name);
      if (!source.param.empty())
        add_new(to_pack, source.param);
      else
        add_new(to_compute, form.packed_by ? node.inputs[s] : v);
    }
  }
  std::vector<std::string> missing;
  for (const std::string& name : needed)
    if (!params_.contains(name)) missing.push_back(name);
  if (!missing.empty()) {
    std::string list;
    for (std::size_t i = 0; i < missing.size() && i < 8; ++i) list += concat_text(i ? ", " : "", "'", missing[i], "'");
    throw Error(ErrorCode::NotFound,
                concat_text(missing.size(), missing.size() == 1 ? " param has" : " params have", " no value: ", list,
                            missing.size() > 8 ? ", ..." : ""),
                "set them with set_param or load_params before the first run");
  }

  for (const std::string& name : to_pack) pack_param(name);
  if (!to_compute.empty()) {
    NamedTensors values;
    for (Value v : to_compute) {
      std::set<std::string> names;
      collect_params(prepare, v, names);
      for (const std::string& name : names) values.try_emplace(name, raw(name));
    }
    const std::vector<Tensor> computed = compute(prepare, to_compute, values, backend, target, options);
    auto result_of = [&](Value v) {
      auto it = std::find(to_compute.begin(), to_compute.end(), v);
      return it == to_compute.end() ? nullptr : &computed[static_cast<std::size_t>(it - to_compute.begin())];
    };
    for (std::size_t i = 0; i < n; ++i) {
      if (plan.keys[i].empty()) continue;
      std::shared_ptr<Form>& form = forms_.at(plan.keys[i]);
      const Node& node = prepare.node(prepare.outputs()[i].node);
      for (std::size_t s = 0; s < form->sources.size(); ++s) {
        if (form->sources[s].ready) continue;
        Form& f = own(form);
        if (f.packed_by)
          f.packed_by->pack(f.node, s, result_of(node.inputs[s])->data(), f.bytes.mutable_data());
        else
          f.bytes = *result_of(prepare.outputs()[i]);
        f.sources[s].ready = true;
      }
    }
  }

  std::vector<const std::byte*> pointers(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Node& node = prepare.node(prepare.outputs()[i].node);
    if (const auto* c = node.op.get_if<ops::Constant>())
      pointers[i] = c->value.data();
    else if (node.kind() == OpKind::Param)
      pointers[i] = raw(prepare.leaf_name(prepare.outputs()[i].node)).data();
    else
      pointers[i] = forms_.at(plan.keys[i])->bytes.data();
  }
  return pointers;
}

}  // namespace rlx
