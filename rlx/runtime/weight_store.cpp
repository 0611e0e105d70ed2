// Weight preparation: values read unpacked, packed layouts, and values computed once.
#include "rlx/runtime/weight_store.h"

#include <algorithm>
#include <limits>
#include <set>

#include "rlx/base/sigbus_guard.h"
#include "rlx/base/stop_request.h"
#include "rlx/base/trace.h"
#include "rlx/compiler/prepare_executable.h"
#include "rlx/device/registry.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx {

namespace {

// Computes values of a prepare graph on the device. An opaque device would compile the program, receive all its inputs
// and return all its results, so for such a device it runs on the cpu.
std::vector<Tensor> compute(const Graph& prepare, const std::vector<Value>& wanted, const NamedTensors& params,
                            const WeightPlace& place) {
  const Graph program = program_of_prepared(prepare, wanted);
  std::vector<Tensor> inputs;
  for (NodeId id : program.leaves(OpKind::Input)) inputs.push_back(params.find(program.leaf_name(id))->second);
  if (place.target.opaque())
    if (const auto cpu = backend_for(Device::Cpu); cpu && cpu->probe(Device::Cpu).count != 0) {
      const BackendOptions options;
      const std::shared_ptr<const Target> target = cpu->target(options);
      if (const auto code = target->opaque() ? nullptr : compile_prepared(program, *cpu, *target, options)) {
        const std::shared_ptr<OpenDevice> device = open_device(cpu, Device::Cpu);
        return run_once(*device, *device->stream(), *code, inputs);
      }
    }
  if (const auto code = compile_prepared(program, place.backend, place.target, place.options))
    return run_once(place.device, place.stream, *code, inputs);
  NamedTensors values;  // nodes that the device does not run are evaluated on the host, once
  for (NodeId id : program.leaves(OpKind::Input)) values.insert_or_assign(program.leaf_name(id), inputs[values.size()]);
  return evaluate(program, values);
}

}  // namespace

WeightPlan::WeightPlan(std::shared_ptr<const Executable> e) : executable(std::move(e)) {
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

void WeightStore::Reading::add(const std::string& key, const PackedWeight& weight) {
  for (std::size_t i = 0; i < weight.sources.size(); ++i) {
    const ParamNames& reads = weight.sources[i].reads;
    auto [list, fresh] = sources.try_emplace(reads);
    if (fresh)
      for (const std::string& name : *reads) lists[name].push_back(reads);
    list->second.push_back({key, i});
  }
}

WeightStore::WeightStore(const WeightStore& other) {
  std::lock_guard lock(other.mutex_);
  params_ = other.params_;
  packed_ = other.packed_;
  packed_at_ = other.packed_at_;
  reading_ = other.reading_;
  readers_ = other.readers_;
  cache_ = other.cache_;
  keep_ = other.keep_;
  lost_ = other.lost_;
  read_raw_ = other.read_raw_;
  whole_in_packed_layouts_ = other.whole_in_packed_layouts_;
}

bool WeightStore::has(std::string_view name) const {
  std::lock_guard lock(mutex_);
  return params_.find(name) != params_.end();
}

void WeightStore::check_read(std::span<const void* const> addresses) {
  if (lost_) throw Error(*lost_);
  if (!any_damaged_mapping()) return;
  try {
    for (const void* address : addresses) GuardedReads::check(address);
  } catch (const Error& e) {
    lost_ = e;
    throw;
  }
}

void WeightStore::check_files() {
  std::lock_guard lock(mutex_);
  if (!lost_ && !any_damaged_mapping()) return;
  std::vector<const void*> addresses;
  for (const auto& [name, param] : params_)
    if (!param.raw.empty()) addresses.push_back(param.raw.data());
  for (const auto& [key, weight] : packed_)
    if (weight->mapped && !weight->bytes.empty()) addresses.push_back(weight->bytes.data());
  check_read(addresses);
}

Tensor WeightStore::value(const std::string& name) {
  std::lock_guard lock(mutex_);
  return raw(name);
}

std::size_t WeightStore::bytes() const {
  std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [key, weight] : packed_)
    if (!weight->mapped &&
        std::any_of(weight->sources.begin(), weight->sources.end(), [](const Source& s) { return s.ready; }))
      bytes += weight->bytes.size_bytes();
  for (const auto& [name, p] : params_)
    if (!p.raw.empty() && !p.loader) bytes += p.raw.size_bytes();
  return bytes;
}

// A copy with its own bytes.
std::shared_ptr<WeightStore::PackedWeight> WeightStore::copy_of(const PackedWeight& weight) {
  auto copy = std::make_shared<PackedWeight>(weight);
  copy->mapped = false;
  if (!copy->bytes.empty()) copy->bytes = Tensor::copy_of(copy->bytes.data(), copy->bytes.shape());
  copy->resident = {};
  return copy;
}

// A packed layout for writing. A clone continues to read the old bytes.
WeightStore::PackedWeight& WeightStore::own(std::shared_ptr<PackedWeight>& weight) {
  if (!sole_owner(weight) || weight->mapped) weight = copy_of(*weight);
  weight->resident = {};
  return *weight;
}

// True when some packed layout is made directly from the values of `name`.
bool WeightStore::is_packed(const std::string& name) const { return packed_at_.contains(name); }

// True when only packed layouts need the values of `name`.
bool WeightStore::held_packed(const std::string& name) const {
  return !read_raw_.contains(name) && whole_in_packed_layouts_.contains(name);
}

// Packs the values of `name` into every packed layout that waits for them.
void WeightStore::pack_waiting(const std::string& name, const Tensor& values, const WeightLoader* loader) {
  const auto packed = packed_at_.find(name);
  if (packed == packed_at_.end()) return;
  for (const PackedAt& at : packed->second) {
    std::shared_ptr<PackedWeight>& weight = packed_.find(at.key)->second;
    if (weight->sources[at.source].ready) continue;
    PackedWeight& f = own(weight);
    write_source(f, at.source, values, loader, name);
    f.sources[at.source].ready = true;
  }
}

namespace {
// The number of bytes of that many elements of a source; whole blocks for a block-quantized source.
std::int64_t source_bytes(const ops::Relayout& op, DType dtype, std::int64_t elements) {
  if (!is_block_scheme(op.scheme)) return elements * dtype_bits(dtype) / 8;
  const BlockLayout& l = block_layout(op.scheme);
  return elements / l.elements * l.bytes;
}
std::int64_t source_elements(const ops::Relayout& op, const Shape& of) {
  if (!is_block_scheme(op.scheme)) return of.num_elements();
  const BlockLayout& l = block_layout(op.scheme);
  return of.num_elements() / l.bytes * l.elements;
}
}  // namespace

// Packs a source, some columns at a time, so that little more than these columns of a mapped file is in memory.
void WeightStore::write_source(PackedWeight& f, std::size_t source, const Tensor& values, const WeightLoader* loader,
                               const std::string& name) {
  const TraceSpan span("weights", "pack", name);
  constexpr std::int64_t kSliceBytes = std::int64_t{64} << 20;
  const ops::Relayout& op = f.packed_by->lir().prepare.node(f.node).op.as<ops::Relayout>();
  const ops::PackedSource at = op.source(source);
  const auto bytes_of = [&](std::int64_t elements) { return source_bytes(op, values.dtype(), elements); };
  const std::int64_t column_bytes = std::max<std::int64_t>(1, bytes_of(op.k));
  // Columns that are not adjacent in the file share pages. So pages are released slice by slice only for adjacent
  // columns.
  const bool sliced = loader && at.n_stride >= op.k;
  const std::int64_t step =
      sliced ? std::max<std::int64_t>(1, kSliceBytes / column_bytes) : std::max<std::int64_t>(1, at.columns);
  for (std::int64_t begin = 0; begin < at.columns; begin += step) {
    StopRequest::check();
    const std::int64_t end = std::min(at.columns, begin + step);
    f.packed_by->encode(f.node, source, {begin, end}, values.dtype(), values.data(), f.bytes.mutable_data());
    if (sliced)
      loader->drop_pages(name, static_cast<std::size_t>(bytes_of(at.offset + begin * at.n_stride)),
                         static_cast<std::size_t>(bytes_of((end - begin) * at.n_stride)));
  }
  if (loader && !sliced && at.k_stride == at.columns * at.n_stride)  // whole rows: possibly one matrix of a stack
    loader->drop_pages(name, static_cast<std::size_t>(bytes_of(at.offset)),
                       static_cast<std::size_t>(bytes_of(op.k * at.k_stride)));
}

void WeightStore::set(std::span<const NewValue> values) {
  std::lock_guard lock(mutex_);
  const GuardedReads reads;
  // First everything that allocates, without changing the existing data.
  struct Change {
    std::shared_ptr<PackedWeight>& weight;
    std::shared_ptr<PackedWeight> instead;  // replaces a layout that is shared or computed anew
    std::vector<std::size_t> old;           // the sources that change
  };
  std::vector<Change> changes;
  std::set<ParamNames> lists;  // lists that contain one of the params
  for (const NewValue& v : values)
    if (const auto known = reading_.lists.find(v.name); known != reading_.lists.end())
      lists.insert(known->second.begin(), known->second.end());
  std::map<std::string_view, std::vector<std::size_t>> old_sources;  // by key of the packed layout
  for (const ParamNames& list : lists)
    for (const Reading::At& at : reading_.sources.find(list)->second) old_sources[at.key].push_back(at.source);
  for (auto& [key, old] : old_sources) {
    const auto known = packed_.find(key);
    if (known == packed_.end()) continue;
    std::shared_ptr<PackedWeight>& weight = known->second;
    std::shared_ptr<PackedWeight> instead;
    if (!weight->packed_by) {
      instead = std::make_shared<PackedWeight>(*weight);
      instead->bytes = Tensor();
      instead->resident = {};
    } else if (!sole_owner(weight) || weight->mapped) {
      instead = copy_of(*weight);
    }
    changes.push_back({weight, std::move(instead), std::move(old)});
  }
  std::map<std::string, Param, std::less<>> params;
  for (const NewValue& v : values) {
    Param p{{}, v.declared};
    if (held_packed(v.name) && !v.loader) {
      // Packed below.
    } else if (v.loader) {
      p.raw = v.value;  // converted when it is read: a checkpoint in half precision stays in its file until then
      p.loader = v.loader;
    } else {
      p.raw = v.value.cast(v.declared);
      if (!p.raw.owned()) p.raw = Tensor::copy_of(p.raw.data(), p.raw.shape());
    }
    params.insert_or_assign(v.name, std::move(p));
  }

  // Nothing below can fail, except that a file may lose pages while it is packed.
  if (values.size() >= params_.size()) lost_.reset();
  for (Change& c : changes) {
    if (c.instead) c.weight = std::move(c.instead);
    c.weight->resident = {};
    for (std::size_t i : c.old) c.weight->sources[i].ready = false;
  }
  while (!params.empty()) {
    auto node = params.extract(params.begin());
    if (auto it = params_.find(node.key()); it != params_.end())
      it->second = std::move(node.mapped());
    else
      params_.insert(std::move(node));
  }
  std::vector<std::string> of_files;
  for (const NewValue& v : values) {
    if (!is_packed(v.name)) continue;
    if (v.loader)
      of_files.push_back(v.name);
    else
      pack_waiting(v.name, v.value, nullptr);
  }
  try {
    pack_params(of_files);
  } catch (const std::bad_alloc&) {  // the values are in the file: the first run packs them, or reports the error
  } catch (const Error& e) {
    if (e.code() == ErrorCode::Interrupted) throw;
  }
  std::vector<const void*> read;
  for (const NewValue& v : values) read.push_back(v.value.data());
  check_read(read);
}

// The sources of packed layouts that hold values of `name` bit for bit, or with `with_loss` also lossy ones. With
// `ready`, only sources that are written.
std::vector<WeightStore::HeldPart> WeightStore::parts_in_packed_layouts(const std::string& name, bool ready,
                                                                        bool with_loss) const {
  std::vector<HeldPart> parts;
  const auto packed = packed_at_.find(name);
  if (packed == packed_at_.end()) return parts;
  for (const PackedAt& at : packed->second) {
    const PackedWeight& weight = *packed_.find(at.key)->second;
    if (ready && !weight.sources[at.source].ready) continue;
    const Graph& prepare = weight.packed_by->lir().prepare;
    const Node& node = prepare.node(weight.node);
    const auto& op = node.op.as<ops::Relayout>();
    if (op.form.lossless || with_loss)
      parts.push_back({&weight, at.source, prepare.shape(node.inputs[at.source]), op.k,
                       source_elements(op, prepare.shape(node.inputs[at.source])), op.source(at.source)});
  }
  return parts;
}

// True when the parts together cover the whole param: adjacent columns from the first to the last.
bool WeightStore::covers(std::vector<HeldPart>& parts) {
  constexpr std::int64_t kNoColumn = std::numeric_limits<std::int64_t>::max();
  // Counts the columns of all matrices in the param, one matrix after the other. None when a part begins inside a
  // column.
  const auto first_column = [](const HeldPart& p) -> std::int64_t {
    const ops::PackedSource& at = p.at;
    if (at.n_stride <= 0) return 0;
    if (at.k_stride <= at.n_stride) return at.offset % at.n_stride == 0 ? at.offset / at.n_stride : kNoColumn;
    const std::int64_t matrix = at.k_stride * p.k, inside = at.offset % matrix;
    if (inside >= at.k_stride || inside % at.n_stride != 0 || at.k_stride % at.n_stride != 0) return kNoColumn;
    return at.offset / matrix * (at.k_stride / at.n_stride) + inside / at.n_stride;
  };
  std::sort(parts.begin(), parts.end(),
            [&](const HeldPart& a, const HeldPart& b) { return first_column(a) < first_column(b); });
  std::int64_t columns = 0;
  for (const HeldPart& p : parts) {
    const HeldPart& like = parts.front();
    if (p.k != like.k || p.at.k_stride != like.at.k_stride || p.at.n_stride != like.at.n_stride) continue;
    if (first_column(p) > columns) return false;
    columns = std::max(columns, first_column(p) + p.at.columns);
  }
  return !parts.empty() && columns * parts.front().k == parts.front().elements;
}

// The values of a param in its declared dtype. They are read back from a packed layout when nothing else holds them.
const Tensor& WeightStore::raw(const std::string& name) {
  Param& p = params_.find(name)->second;
  if (!p.raw.empty()) {
    if (p.raw.dtype() != p.declared) p = Param{p.raw.cast(p.declared), p.declared};
    return p.raw;
  }
  std::vector<HeldPart> parts = parts_in_packed_layouts(name, true);
  if (covers(parts)) {
    Tensor t = Tensor::uninitialized(parts.front().of);
    for (const HeldPart& part : parts)
      part.weight->packed_by->decode(part.weight->node, part.source, part.weight->bytes.data(), t.dtype(),
                                     t.mutable_data());
    p.raw = std::move(t);
    return p.raw;
  }
  if (keep_ == KeepValues::No && (parts = parts_in_packed_layouts(name, true, true), covers(parts)))
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the values of param '", name, "' were freed: only a lossy packed layout remains"),
                "set it again, or compile with PrecisionPolicy::keep_values = KeepValues::Yes");
  throw Error(ErrorCode::Internal, concat_text("the values of param '", name,
                                               "' were freed, but no packed layout holds them; please report"));
}

// Packs params into every packed layout that waits for them: from the cache if it has the layout, otherwise from their
// values.
void WeightStore::pack_params(std::span<const std::string> names) {
  const std::vector<Savable> savable = savable_packed_layouts(names);
  std::vector<bool> restored;
  for (const Savable& s : savable) {
    PackedWeight& weight = **s.weight;
    Tensor bytes = cache_->find(s.key, weight.bytes.size_bytes(), s.source, [&] { return s.content(); });
    restored.push_back(!bytes.empty());
    if (!restored.back()) continue;
    auto mapped = std::make_shared<PackedWeight>(weight);
    mapped->bytes = std::move(bytes);
    mapped->mapped = true;
    mapped->resident = {};
    for (Source& source : mapped->sources) source.ready = true;
    *s.weight = std::move(mapped);
  }
  for (const std::string& name : names) {
    Param& p = params_.find(name)->second;
    const std::shared_ptr<const WeightLoader> loader = p.loader;
    pack_waiting(name, p.raw.empty() ? raw(name) : p.raw, loader.get());
    if (loader) loader->drop_all_pages(name);
    if (held_packed(name)) p = Param{{}, p.declared};
  }
  for (std::size_t i = 0; i < savable.size(); ++i) {
    const PackedWeight& weight = **savable[i].weight;
    if (!restored[i] &&
        std::all_of(weight.sources.begin(), weight.sources.end(), [](const Source& s) { return s.ready; }))
      cache_->save(savable[i].key, {weight.bytes.data(), weight.bytes.size_bytes()}, savable[i].source,
                   savable[i].content());
  }
}

// The packed layouts that wait only for params of files, some of `names` among them.
std::vector<WeightStore::Savable> WeightStore::savable_packed_layouts(std::span<const std::string> names) {
  std::vector<Savable> out;
  if (!cache_) return out;
  std::set<std::string_view> keys;
  for (const std::string& name : names)
    if (const auto packed = packed_at_.find(name); packed != packed_at_.end())
      for (const PackedAt& at : packed->second) keys.insert(at.key);
  for (std::string_view key : keys) {
    std::shared_ptr<PackedWeight>& weight = packed_.find(key)->second;
    Savable s;
    s.weight = &weight;
    s.key = concat_text(
        key, " ", packed_layout_text(weight->packed_by->lir().prepare.node(weight->node).op.as<ops::Relayout>().form));
    bool all = true;
    std::string others;  // identities of further shards of a checkpoint
    for (std::size_t i = 0; i < weight->sources.size() && all; ++i) {
      const Source& source = weight->sources[i];
      const auto param = source.param.empty() ? params_.end() : params_.find(source.param);
      all = !source.ready && param != params_.end() && param->second.loader && !param->second.raw.empty();
      const auto identity = all ? param->second.loader->identity(source.param) : std::nullopt;
      all = identity.has_value();
      if (!all) break;
      if (i == 0)
        s.source = *identity;
      else if (*identity != s.source)
        others += concat_text(identity->device, " ", identity->inode, " ", identity->size, " ", identity->mtime_ns, " ",
                              identity->header, "\n");
      s.params.push_back(param->second.raw);
      s.names.push_back(source.param);
      s.loader = param->second.loader;
    }
    if (!others.empty()) {
      others += s.source.header;
      s.source.header = fingerprint_bytes(others.data(), others.size()).text();
    }
    if (all && !s.params.empty()) out.push_back(std::move(s));
  }
  return out;
}

std::string WeightStore::Savable::content() const {
  std::string hashes;
  for (std::size_t i = 0; i < params.size(); ++i) {
    hashes += fingerprint_bytes(params[i].data(), params[i].size_bytes()).text();
    loader->drop_all_pages(names[i]);
  }
  return fingerprint_bytes(hashes.data(), hashes.size()).text();
}

void WeightStore::add(const WeightPlan& plan) {
  std::lock_guard lock(mutex_);
  add_locked(plan);
}

void WeightStore::add_locked(const WeightPlan& plan) {
  const Graph& prepare = plan.executable->lir().prepare;
  std::map<std::string, std::shared_ptr<PackedWeight>, std::less<>> made;  // added to packed_ when they are complete
  std::vector<std::shared_ptr<PackedWeight>> fresh;  // the packed ones among them, in the order of use
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
    if (packed_.contains(plan.keys[i]) || made.contains(plan.keys[i])) continue;
    auto weight = std::make_shared<PackedWeight>();
    made.emplace(plan.keys[i], weight);
    if (node.op.is<ops::Relayout>()) {
      weight->packed_by = plan.executable;
      weight->node = v.node;
      for (std::size_t s = 0; s < node.inputs.size(); ++s) {
        const NodeId from = node.inputs[s].node;
        const bool direct = prepare.node(from).kind() == OpKind::Param;
        weight->sources.push_back({direct ? prepare.leaf_name(from) : std::string(), plan.reads[i][s], false});
      }
      slab_bytes += padded(static_cast<std::size_t>(node.op.as<ops::Relayout>().form.bytes));
      fresh.push_back(weight);
    } else {
      weight->sources.push_back({{}, plan.reads[i][0], false});
    }
    for (const Source& s : weight->sources)
      if (s.param.empty() && noted.insert(s.reads.get()).second) read_raw_.insert(s.reads->begin(), s.reads->end());
  }
  for (auto it = readers_.begin(); it != readers_.end();) {
    std::erase_if(it->second, [](const auto& r) { return r.expired(); });
    if (!it->second.empty()) {
      ++it;
      continue;
    }
    packed_.erase(it->first);
    it = readers_.erase(it);
  }
  // Packed weights lie one after the other in the order of use, so that they share huge pages and the end of one
  // prefetches the start of the next. No page is touched before it is packed.
  Tensor slab;
  if (!fresh.empty()) slab = Tensor::uninitialized(Shape({Dim(slab_bytes)}, DType::U8));
  std::size_t used = 0;
  for (const std::shared_ptr<PackedWeight>& weight : fresh) {
    auto bytes = static_cast<std::size_t>(prepare.node(weight->node).op.as<ops::Relayout>().form.bytes);
    weight->bytes = Tensor::part_of(slab, used, Shape({Dim(bytes)}, DType::U8));
    used += padded(bytes);
  }
  if (made.empty()) return;
  auto packed_at = packed_at_;
  for (const auto& [key, weight] : made)
    for (std::size_t s = 0; s < weight->sources.size(); ++s)
      if (!weight->sources[s].param.empty()) packed_at[weight->sources[s].param].push_back({key, s});
  Reading reading;
  for (const auto* all_packed : {&packed_, &made})
    for (const auto& [key, weight] : *all_packed) reading.add(key, *weight);
  packed_at_.swap(packed_at);
  std::swap(reading_, reading);
  std::set<std::string, std::less<>> packed_names;
  for (const auto& [key, weight] : made)
    for (const Source& source : weight->sources)
      if (!source.param.empty()) packed_names.insert(source.param);
  packed_.merge(made);
  for (const std::string& name : packed_names) {
    std::vector<HeldPart> parts = parts_in_packed_layouts(name, false, keep_ == KeepValues::No);
    if (covers(parts)) whole_in_packed_layouts_.insert(name);
  }
}

WeightTable WeightStore::prepare(const WeightPlan& plan, const WeightPlace& place) {
  std::lock_guard lock(mutex_);
  add_locked(plan);
  const Graph& prepare = plan.executable->lir().prepare;
  const std::size_t n = plan.keys.size();

  // The layouts that are not ready, and the params that they need.
  std::vector<std::string> to_pack, needed;
  std::set<std::string_view> known_pack, known_needed;
  std::vector<Value> to_compute;
  std::map<Value, std::size_t> computed_at;
  std::map<const void*, ParamNames> computed_from;  // lists of params for computed layouts
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
    const PackedWeight& weight = *packed_.at(plan.keys[i]);
    for (std::size_t s = 0; s < weight.sources.size(); ++s) {
      const Source& source = weight.sources[s];
      if (source.ready) continue;
      if (!source.param.empty()) {
        need(source.param);
        if (known_pack.insert(source.param).second) to_pack.push_back(source.param);
        continue;
      }
      if (computed_from.try_emplace(source.reads.get(), source.reads).second)
        for (const std::string& name : *source.reads) need(name);
      const Value value = weight.packed_by ? node.inputs[s] : v;
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

  const GuardedReads reads;
  std::vector<const void*> read;
  for (const std::string& name : needed) read.push_back(params_.find(name)->second.raw.data());
  pack_params(to_pack);
  if (!to_compute.empty()) {
    NamedTensors values;
    for (const auto& [list, names] : computed_from)
      for (const std::string& name : *names) values.try_emplace(name, raw(name));
    const std::vector<Tensor> computed = compute(prepare, to_compute, values, place);
    auto result_of = [&](Value v) { return &computed[computed_at.at(v)]; };
    for (std::size_t i = 0; i < n; ++i) {
      if (plan.keys[i].empty()) continue;
      std::shared_ptr<PackedWeight>& weight = packed_.at(plan.keys[i]);
      const Node& node = prepare.node(prepare.outputs()[i].node);
      for (std::size_t s = 0; s < weight->sources.size(); ++s) {
        if (weight->sources[s].ready) continue;
        PackedWeight& f = own(weight);
        if (f.packed_by)
          write_source(f, s, *result_of(node.inputs[s]), nullptr, {});
        else
          f.bytes = *result_of(prepare.outputs()[i]);
        f.sources[s].ready = true;
      }
    }
  }

  check_read(read);

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
      PackedWeight& weight = *packed_.at(plan.keys[i]);
      add(weight.bytes, weight.resident);
    }
  }
  return table;
}

}  // namespace rlx
