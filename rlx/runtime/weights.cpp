// Preparing weights: values read as they are, packed forms, and values computed once.
#include "rlx/runtime/weights.h"

#include <algorithm>
#include <set>

#include "rlx/compiler/memory_plan.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/rebuild.h"
#include "rlx/tensor/visit.h"

namespace rlx {

namespace {

// Evaluates values of a prepare graph on the device: the Params they read become inputs of a small program.
std::vector<Tensor> compute(const Graph& prepare, const std::vector<Value>& wanted, const NamedTensors& params,
                            const WeightPlace& place) {
  std::vector<bool> live(prepare.num_nodes(), false);
  for (Value v : wanted) live[v.node.index] = true;
  for (std::size_t i = live.size(); i-- > 0;)
    if (live[i])
      for (Value v : prepare.nodes()[i].inputs) live[v.node.index] = true;
  Graph g("prepare");
  ValueMap map(prepare);
  std::vector<Tensor> inputs;
  for (std::uint32_t i = 0; i < prepare.num_nodes(); ++i) {
    if (!live[i]) continue;
    const Node& n = prepare.nodes()[i];
    OpBox op = n.op;
    if (const auto* p = n.op.get_if<ops::Param>()) {
      op = ops::Input{p->name, p->dims, p->dtype};
      inputs.push_back(params.find(p->name)->second);
    }
    std::vector<Value> operands;
    for (Value v : n.inputs) operands.push_back(map(v));
    NodeId id = g.add_node(Node{std::move(op), std::move(operands), n.shapes, n.origin});
    for (std::uint32_t r = 0; r < n.num_results(); ++r) map.set(Value(NodeId{i}, r), Value(id, r));
  }
  std::vector<Value> outputs;
  for (Value v : wanted) outputs.push_back(map(v));
  g.set_outputs(outputs);
  LirModule lir;
  lir.plan = plan_memory(g, place.target);
  lir.graph = std::move(g);
  return run_once(place.device, place.stream, *place.backend.compile_lir(std::move(lir), place.options), inputs);
}

}  // namespace

WeightPlan::WeightPlan(std::shared_ptr<const ExecutableGraph> e) : executable(std::move(e)) {
  const Graph& prepare = executable->lir().prepare;
  keys = prepared_keys(prepare);
  std::vector<Value> sources;
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Value v = prepare.outputs()[i];
    const Node& n = prepare.node(v.node);
    const std::size_t before = sources.size();
    if (op_def(n.kind()).is_leaf())
      keys[i].clear();
    else if (n.op.is<ops::Relayout>())
      sources.insert(sources.end(), n.inputs.begin(), n.inputs.end());
    else
      sources.push_back(v);
    counts.push_back(sources.size() - before);
  }
  const std::vector<ParamNames> names = params_read(prepare, sources);
  auto next = names.begin();
  for (std::size_t count : counts) {
    reads.emplace_back(next, next + static_cast<std::ptrdiff_t>(count));
    next += static_cast<std::ptrdiff_t>(count);
  }
}

void WeightStore::Reading::add(const std::string& key, const Form& form) {
  for (std::size_t i = 0; i < form.sources.size(); ++i) {
    const ParamNames& reads = form.sources[i].reads;
    auto [list, fresh] = sources.try_emplace(reads);
    if (fresh)
      for (const std::string& name : *reads) lists[name].push_back(reads);
    list->second.push_back({key, i});
  }
}

WeightStore::WeightStore(const WeightStore& other) {
  std::lock_guard lock(other.mutex_);
  params_ = other.params_;
  forms_ = other.forms_;
  packed_at_ = other.packed_at_;
  reading_ = other.reading_;
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

// A copy with bytes of its own.
std::shared_ptr<WeightStore::Form> WeightStore::copy_of(const Form& form) {
  auto copy = std::make_shared<Form>(form);
  if (!copy->bytes.empty()) copy->bytes = Tensor::copy_of(copy->bytes.data(), copy->bytes.shape());
  copy->resident = {};
  return copy;
}

// A form for writing: a clone goes on reading the old bytes.
WeightStore::Form& WeightStore::own(std::shared_ptr<Form>& form) {
  if (!sole_owner(form)) form = copy_of(*form);
  form->resident = {};
  return *form;
}

// Whether some packed form takes the values of `name` as they are.
bool WeightStore::is_packed(const std::string& name) const { return packed_at_.contains(name); }

// Whether nothing else needs them.
bool WeightStore::held_packed(const std::string& name) const { return !read_raw_.contains(name) && is_packed(name); }

// Packs the values of `name`, in its declared dtype, into every form that waits for them.
void WeightStore::pack_waiting(const std::string& name, const void* values) {
  const auto packed = packed_at_.find(name);
  if (packed == packed_at_.end()) return;
  for (const PackedAt& at : packed->second) {
    std::shared_ptr<Form>& form = forms_.find(at.key)->second;
    if (form->sources[at.source].ready) continue;
    Form& f = own(form);
    f.packed_by->pack(f.node, at.source, values, f.bytes.mutable_data());
    f.sources[at.source].ready = true;
  }
}

void WeightStore::set(std::span<const NewValue> values) {
  std::lock_guard lock(mutex_);
  // First all that needs memory, beside what is there.
  struct Change {
    std::shared_ptr<Form>& form;
    std::shared_ptr<Form> instead;  // of a form that somebody else reads, or that is computed anew as a whole
    std::vector<std::size_t> old;   // the sources that change
  };
  std::vector<Change> changes;
  std::set<ParamNames> lists;  // that hold one of them
  for (const NewValue& v : values)
    if (const auto known = reading_.lists.find(v.name); known != reading_.lists.end())
      lists.insert(known->second.begin(), known->second.end());
  std::map<std::string_view, std::vector<std::size_t>> old_sources;  // by key of the form
  for (const ParamNames& list : lists)
    for (const Reading::At& at : reading_.sources.find(list)->second) old_sources[at.key].push_back(at.source);
  for (auto& [key, old] : old_sources) {
    const auto known = forms_.find(key);
    if (known == forms_.end()) continue;
    std::shared_ptr<Form>& form = known->second;
    std::shared_ptr<Form> instead;
    if (!form->packed_by) {
      instead = std::make_shared<Form>(*form);
      instead->bytes = Tensor();
      instead->resident = {};
    } else if (!sole_owner(form)) {
      instead = copy_of(*form);
    }
    changes.push_back({form, std::move(instead), std::move(old)});
  }
  std::map<std::string, Param, std::less<>> params;
  std::size_t converted_bytes = 0;
  for (const NewValue& v : values) {
    Param p{{}, v.declared};
    if (held_packed(v.name)) {
      // Packed below.
    } else if (v.loader) {
      p.raw = v.value;  // converted when it is read: a checkpoint in half precision stays in its file until then
      p.loader = v.loader;
    } else {
      p.raw = v.value.cast(v.declared);
      if (!p.raw.owned()) p.raw = Tensor::copy_of(p.raw.data(), p.raw.shape());
    }
    if (v.value.dtype() != v.declared && is_packed(v.name))
      converted_bytes = std::max(converted_bytes, size_bytes(v.declared, v.value.num_elements()));
    params.insert_or_assign(v.name, std::move(p));
  }
  Tensor converted = Tensor::uninitialized(Shape({Dim(converted_bytes)}, DType::U8));

  // From here on nothing fails.
  for (Change& c : changes) {
    if (c.instead) c.form = std::move(c.instead);
    c.form->resident = {};
    for (std::size_t i : c.old) c.form->sources[i].ready = false;
  }
  while (!params.empty()) {
    auto node = params.extract(params.begin());
    if (auto it = params_.find(node.key()); it != params_.end())
      it->second = std::move(node.mapped());
    else
      params_.insert(std::move(node));
  }
  for (const NewValue& v : values) {
    if (!is_packed(v.name)) continue;
    const std::byte* fitted = v.value.data();
    if (v.value.dtype() != v.declared) {
      std::byte* to = converted.mutable_data();
      for (std::int64_t i = 0; i < v.value.num_elements(); ++i)
        store_element(to, v.declared, i, load_element<double>(fitted, v.value.dtype(), i));
      fitted = to;
    }
    pack_waiting(v.name, fitted);
    if (v.loader && held_packed(v.name)) v.loader->drop_pages(v.name);
  }
}

// The values of a param in its declared dtype, read back from a packed form when nothing else holds them.
const Tensor& WeightStore::raw(const std::string& name) {
  Param& p = params_.find(name)->second;
  if (!p.raw.empty()) {
    if (p.raw.dtype() != p.declared) p = Param{p.raw.cast(p.declared), p.declared};
    return p.raw;
  }
  if (const auto packed = packed_at_.find(name); packed != packed_at_.end())
    for (const PackedAt& at : packed->second) {
      const Form& form = *forms_.find(at.key)->second;
      if (!form.sources[at.source].ready) continue;
      const Graph& prepare = form.packed_by->lir().prepare;
      Tensor t = Tensor::uninitialized(prepare.shape(prepare.node(form.node).inputs[at.source]));
      form.packed_by->unpack(form.node, at.source, form.bytes.data(), t.mutable_data());
      p.raw = std::move(t);
      return p.raw;
    }
  throw Error(ErrorCode::Internal, concat_text("the values of param '", name,
                                               "' were given back while no packed form holds them; please report"));
}

void WeightStore::pack_param(const std::string& name) {
  Param& p = params_.find(name)->second;
  const std::shared_ptr<const WeightLoader> loader = p.loader;
  pack_waiting(name, raw(name).data());
  if (loader) loader->drop_pages(name);
  if (held_packed(name)) p = Param{{}, p.declared};
}

void WeightStore::add(const WeightPlan& plan) {
  std::lock_guard lock(mutex_);
  add_locked(plan);
}

void WeightStore::add_locked(const WeightPlan& plan) {
  const Graph& prepare = plan.executable->lir().prepare;
  std::map<std::string, std::shared_ptr<Form>, std::less<>> made;  // known when they are whole
  std::vector<std::shared_ptr<Form>> fresh;                        // the packed ones among them in the order of use
  constexpr std::size_t kLine = 64;
  auto padded = [](std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
  std::size_t slab_bytes = 0;
  std::set<const void*> noted;  // lists of params whose names are in read_raw_
  for (std::size_t i = 0; i < plan.keys.size(); ++i) {
    Value v = prepare.outputs()[i];
    const Node& node = prepare.node(v.node);
    if (plan.keys[i].empty()) {
      if (node.kind() == OpKind::Param) read_raw_.insert(prepare.leaf_name(v.node));
      continue;
    }
    if (!node.op.is<ops::Relayout>()) {
      auto& readers = readers_[plan.keys[i]];
      if (std::none_of(readers.begin(), readers.end(), [&](const auto& r) { return r.lock() == plan.executable; }))
        readers.push_back(plan.executable);
    }
    if (forms_.contains(plan.keys[i]) || made.contains(plan.keys[i])) continue;
    auto form = std::make_shared<Form>();
    made.emplace(plan.keys[i], form);
    if (node.op.is<ops::Relayout>()) {
      form->packed_by = plan.executable;
      form->node = v.node;
      for (std::size_t s = 0; s < node.inputs.size(); ++s) {
        const NodeId from = node.inputs[s].node;
        const bool direct = prepare.node(from).kind() == OpKind::Param;
        form->sources.push_back({direct ? prepare.leaf_name(from) : std::string(), plan.reads[i][s], false});
      }
      slab_bytes += padded(static_cast<std::size_t>(node.op.as<ops::Relayout>().packed_bytes));
      fresh.push_back(form);
    } else {
      form->sources.push_back({{}, plan.reads[i][0], false});
    }
    for (const Source& s : form->sources)
      if (s.param.empty() && noted.insert(s.reads.get()).second) read_raw_.insert(s.reads->begin(), s.reads->end());
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
  // Packed weights lie one after the other, in the order of use, so that they share huge pages and one's end prefetches
  // the next's start. Nothing is touched before it is packed.
  Tensor slab;
  if (!fresh.empty()) slab = Tensor::uninitialized(Shape({Dim(slab_bytes)}, DType::U8));
  std::size_t used = 0;
  for (const std::shared_ptr<Form>& form : fresh) {
    auto bytes = static_cast<std::size_t>(prepare.node(form->node).op.as<ops::Relayout>().packed_bytes);
    form->bytes = Tensor::part_of(slab, used, Shape({Dim(bytes)}, DType::U8));
    used += padded(bytes);
  }
  if (made.empty()) return;
  auto packed_at = packed_at_;
  for (const auto& [key, form] : made)
    for (std::size_t s = 0; s < form->sources.size(); ++s)
      if (!form->sources[s].param.empty()) packed_at[form->sources[s].param].push_back({key, s});
  Reading reading;
  for (const auto* forms : {&forms_, &made})
    for (const auto& [key, form] : *forms) reading.add(key, *form);
  packed_at_.swap(packed_at);
  std::swap(reading_, reading);
  forms_.merge(made);
}

WeightTable WeightStore::prepare(const WeightPlan& plan, const WeightPlace& place) {
  std::lock_guard lock(mutex_);
  add_locked(plan);
  const Graph& prepare = plan.executable->lir().prepare;
  const std::size_t n = plan.keys.size();

  // What is not ready, and the params it takes.
  std::vector<std::string> to_pack, needed;
  std::set<std::string_view> known_pack, known_needed;
  std::vector<Value> to_compute;
  std::map<Value, std::size_t> computed_at;
  std::map<const void*, ParamNames> computed_from;  // lists of params that are computed with
  auto need = [&](const std::string& name) {
    if (known_needed.insert(name).second) needed.push_back(name);
  };
  for (std::size_t i = 0; i < n; ++i) {
    Value v = prepare.outputs()[i];
    const Node& node = prepare.node(v.node);
    if (plan.keys[i].empty()) {
      if (node.kind() == OpKind::Param) need(prepare.leaf_name(v.node));
      continue;
    }
    const Form& form = *forms_.at(plan.keys[i]);
    for (std::size_t s = 0; s < form.sources.size(); ++s) {
      const Source& source = form.sources[s];
      if (source.ready) continue;
      if (!source.param.empty()) {
        need(source.param);
        if (known_pack.insert(source.param).second) to_pack.push_back(source.param);
        continue;
      }
      if (computed_from.try_emplace(source.reads.get(), source.reads).second)
        for (const std::string& name : *source.reads) need(name);
      const Value value = form.packed_by ? node.inputs[s] : v;
      if (computed_at.try_emplace(value, to_compute.size()).second) to_compute.push_back(value);
    }
  }
  std::vector<std::string> missing;
  for (const std::string& name : needed)
    if (!params_.contains(name)) missing.push_back(name);
  if (!missing.empty())
    throw Error(ErrorCode::NotFound,
                concat_text(missing.size(), missing.size() == 1 ? " param has" : " params have",
                            " no value: ", quoted_names(missing, 8)),
                "set them with set_param or load_params before the first run");

  for (const std::string& name : to_pack) pack_param(name);
  if (!to_compute.empty()) {
    NamedTensors values;
    for (const auto& [list, names] : computed_from)
      for (const std::string& name : *names) values.try_emplace(name, raw(name));
    const std::vector<Tensor> computed = compute(prepare, to_compute, values, place);
    auto result_of = [&](Value v) { return &computed[computed_at.at(v)]; };
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

  WeightTable table;
  const auto add = [&](const Tensor& bytes, Resident& copy) {
    table.views.push_back(resident_on(place.device, place.stream, bytes, copy));
    if (copy.buffer) table.owners.push_back(copy.buffer);
  };
  for (std::size_t i = 0; i < n; ++i) {
    const NodeId id = prepare.outputs()[i].node;
    const Node& node = prepare.node(id);
    if (const auto* c = node.op.get_if<ops::Constant>()) {
      add(c->value, constants_[c->value.data()]);
    } else if (node.kind() == OpKind::Param) {
      const Tensor& values = raw(prepare.leaf_name(id));
      add(values, params_.find(prepare.leaf_name(id))->second.resident);
    } else {
      Form& form = *forms_.at(plan.keys[i]);
      add(form.bytes, form.resident);
    }
  }
  return table;
}

}  // namespace rlx
