// What a compiled graph keeps between runs: states, sticky inputs and handles; and the runs that hand out their memory.
#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "rlx/ir/cotangent_name.h"
#include "rlx/runtime/compiled_graph_impl.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

bool dims_fit(const Shape& declared, std::span<const std::int64_t> dims) {
  if (declared.rank() != static_cast<int>(dims.size())) return false;
  for (int i = 0; i < declared.rank(); ++i) {
    const Dim& d = declared.dim(i);
    if (d.is_static() && d.value() != dims[static_cast<std::size_t>(i)]) return false;
  }
  return true;
}

}  // namespace

// -- states --

void CompiledGraph::Impl::reset_states() {
  const std::vector<NodeId> leaves = code->source.leaves(OpKind::State);
  states.resize(leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const auto& op = code->source.node(leaves[i]).op.as<ops::State>();
    const Shape& shape = code->source.shape(leaves[i]);
    if (!states[i]) states[i] = std::make_shared<StateBuffer>(StateBuffer{Tensor::uninitialized(shape), true});
    Tensor& value = states[i]->value;
    if (op.init.empty())
      std::memset(value.mutable_data(), 0, value.size_bytes());
    else if (value.size_bytes() != 0)
      std::memcpy(value.mutable_data(), op.init.data(), value.size_bytes());
    states[i]->valid = true;
  }
}

Tensor CompiledGraph::read_state(std::string_view name) const try {
  const StateBuffer& s =
      *impl().states[find_io(states(), impl().code->state_index, name, "state", impl().code->source.name())];
  if (!s.valid)
    throw Error(ErrorCode::InvalidArgument, concat_text("state '", name, "' is invalid after a failed run"),
                "call reset(), or write_state()");
  return Tensor::copy_of(s.value.data(), s.value.shape());
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::read_state");
}

void CompiledGraph::write_state(std::string_view name, const Tensor& value) try {
  StateBuffer& s =
      *impl().states[find_io(states(), impl().code->state_index, name, "state", impl().code->source.name())];
  if (value.dtype() != s.value.dtype())
    throw Error(ErrorCode::DTypeMismatch,
                concat_text("state '", name, "' is ", s.value.shape(), ", got ", value.shape()),
                "pass the declared dtype");
  if (!(value.shape() == s.value.shape()))
    throw Error(ErrorCode::ShapeMismatch,
                concat_text("state '", name, "' is ", s.value.shape(), ", got ", value.shape()));
  if (s.value.size_bytes() != 0) std::memcpy(s.value.mutable_data(), value.data(), s.value.size_bytes());
  s.valid = true;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::write_state");
}

void CompiledGraph::reset() try { impl().reset_states(); } catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::reset");
}

std::size_t CompiledGraph::share_state_from(CompiledGraph& other) try {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < states().size(); ++i)
    if (const std::optional<std::size_t> place = other.impl().code->state_index.find(states()[i].name)) {
      const std::size_t j = *place;
      const Shape &own = impl().states[i]->value.shape(), &theirs = other.impl().states[j]->value.shape();
      if (!(own == theirs))
        throw Error(ErrorCode::ShapeMismatch,
                    concat_text("state '", states()[i].name, "' is ", own, " in graph '", impl().code->source.name(),
                                "' and ", theirs, " in graph '", other.impl().code->source.name(), "'"),
                    "states that are shared have one shape");
      pairs.emplace_back(i, j);
    }
  if (pairs.empty()) {
    if (states().empty())
      throw Error(ErrorCode::NotFound, concat_text("graph '", impl().code->source.name(), "' has no states to share"));
    (void)find_io(other.states(), states()[0].name, "state", other.impl().code->source.name());  // names the nearest
  }
  for (const auto& [i, j] : pairs) impl().states[i] = other.impl().states[j];
  for (auto& s : impl().shapes) s->bound.reset();
  return pairs.size();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::share_state_from");
}

// -- sticky inputs and handles --

std::string_view CompiledGraph::Impl::input_name(std::string_view name) const {
  const std::string_view other = other_cotangent_name(name);
  if (other.empty()) return name;
  return !code->input_index.find(name) && code->input_index.find(other) ? other : name;
}

void CompiledGraph::Impl::set_handle(std::string_view name, Tensor value, std::vector<std::int64_t> dims,
                                     bool may_be_output) {
  if (value.empty())
    throw Error(ErrorCode::InvalidArgument, concat_text("'", name, "' was given an empty tensor"),
                "it was never given a value, or moved from");
  name = input_name(name);
  auto named = [&](const std::vector<IoInfo>& infos, const NameIndex& index) {
    const std::optional<std::size_t> place = index.find(name);
    return place ? infos.begin() + static_cast<std::ptrdiff_t>(*place) : infos.end();
  };
  const auto in = named(code->inputs, code->input_index), out = named(code->outputs, code->output_index);
  const bool is_output = may_be_output && out != code->outputs.end();
  if (in == code->inputs.end() && !is_output) {
    std::vector<IoInfo> all = code->inputs;
    if (may_be_output) all.insert(all.end(), code->outputs.begin(), code->outputs.end());
    (void)find_io(all, name, may_be_output ? "input or output" : "input", code->source.name());
  }
  auto check_against = [&](const IoInfo& info, std::string_view what) {
    if (value.dtype() != info.shape.dtype())
      throw Error(ErrorCode::DTypeMismatch,
                  concat_text(what, " '", name, "' is ", info.shape, ", got ", dtype_name(value.dtype()), " values"),
                  "pass a tensor of the declared dtype");
    const bool right = dims.empty() && info.shape.rank() != 0
                           ? !info.shape.is_static() || info.shape.num_elements() == value.num_elements()
                           : dims_fit(info.shape, dims);
    if (!right) {
      const std::string got = dims.empty() ? concat_text(value.num_elements(), " values") : dims_text(dims);
      throw Error(ErrorCode::ShapeMismatch, concat_text(what, " '", name, "' is ", info.shape, ", got ", got),
                  info.shape.is_static() ? concat_text("pass ", info.shape.num_elements(), " values") : std::string());
    }
  };
  if (in != code->inputs.end()) check_against(*in, "input");
  if (is_output) check_against(*out, "output");
  // An existing handle keeps its role of an output.
  Handle& h = handles[std::string(name)];
  if (is_output) h.output = static_cast<std::size_t>(out - code->outputs.begin());
  h.value = std::move(value);
  h.dims = std::move(dims);
  h.ours = false;
}

void CompiledGraph::set_input(std::string_view name, std::span<const float> values) try {
  set_input_typed(name, values.data(), values.size_bytes(), DType::F32);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_input");
}

void CompiledGraph::set_input_typed(std::string_view name, const void* data, std::size_t bytes, DType dtype) try {
  const std::size_t bits = static_cast<std::size_t>(dtype_bits(dtype));
  if (data == nullptr && bytes != 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("input '", name, "': its ", bytes, " bytes were given as a null pointer"));
  if (bits >= 8 && bytes % (bits / 8) != 0)
    throw Error(ErrorCode::ShapeMismatch, concat_text("input '", name, "': ", bytes, " bytes are no whole number of ",
                                                      dtype_name(dtype), " values"));
  impl().set_handle(name, Tensor::copy_of(data, Shape({bytes / bits * 8 + bytes % bits * 8 / bits}, dtype)), {}, false);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_input_typed");
}

void CompiledGraph::set_input(std::string_view name, const Tensor& value) try {
  impl().set_handle(name, value, value.dims(), false);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_input");
}

void CompiledGraph::bind_handle(std::string_view name, std::span<const float> values) try {
  impl().set_handle(name, Tensor::copy_of(values.data(), Shape({Dim(values.size())}, DType::F32)), {}, true);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::bind_handle");
}

void CompiledGraph::bind_handle(std::string_view name, const Tensor& value) try {
  impl().set_handle(name, value, value.dims(), true);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::bind_handle");
}

Tensor CompiledGraph::read_handle(std::string_view name) const try {
  auto it = impl().handles.find(name);
  if (it == impl().handles.end()) {
    std::vector<IoInfo> bound;
    for (const auto& [key, handle] : impl().handles) bound.push_back({key, handle.value.shape()});
    (void)find_io(bound, name, "handle", impl().code->source.name());
  }
  return Tensor::copy_of(it->second.value.data(), it->second.value.shape());
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::read_handle");
}

std::vector<TensorView> CompiledGraph::Impl::views_of(const std::vector<NamedInput>& given) const {
  std::vector<TensorView> views(code->inputs.size());
  std::vector<bool> bound(code->inputs.size(), false);
  for (const NamedInput& in : given) {
    const std::size_t i = input_index(in.name);
    if (code->inputs[i].shape.dtype() != DType::F32)
      throw Error(ErrorCode::DTypeMismatch,
                  concat_text("input '", in.name, "' is ", code->inputs[i].shape, ", got f32 values"),
                  "use run_typed, or set_input with a tensor");
    if (bound[i]) throw Error(ErrorCode::InvalidArgument, concat_text("input '", in.name, "' is given twice"));
    views[i] = {in.values.data(), DType::F32, {}, in.values.size() * sizeof(float)};
    bound[i] = true;
  }
  fill_from_handles(views, bound);
  return views;
}

std::vector<TensorView> CompiledGraph::Impl::views_of(const NamedTensors& given,
                                                      std::vector<std::vector<std::int64_t>>& dims) const {
  std::vector<TensorView> views(code->inputs.size());
  std::vector<bool> bound(code->inputs.size(), false);
  dims.resize(code->inputs.size());
  for (const auto& [name, tensor] : given) {
    const std::size_t i = input_index(name);
    dims[i] = tensor.dims();
    if (!dims_fit(code->inputs[i].shape, dims[i]))
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text("input '", name, "' is ", code->inputs[i].shape, ", got ", tensor.shape()));
    views[i] = {tensor.data(), tensor.dtype(), dims[i], tensor.size_bytes()};
    bound[i] = true;
  }
  fill_from_handles(views, bound);
  return views;
}

void CompiledGraph::Impl::fill_from_handles(std::vector<TensorView>& views, std::vector<bool>& bound) const {
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (bound[i]) continue;
    auto it = handles.find(code->inputs[i].name);
    if (it == handles.end())
      throw Error(ErrorCode::NotFound,
                  concat_text("input '", code->inputs[i].name, "' ", code->inputs[i].shape, " was not given"),
                  "pass it to the run, or once to set_input");
    const Handle& h = it->second;
    views[i] = {h.value.data(), h.value.dtype(), h.dims, h.value.size_bytes()};
  }
}

// -- padded batches --

bool CompiledGraph::set_active_extent(std::optional<ActiveExtent> extent) try {
  if (!extent) {
    impl().extent.reset();
    return true;
  }
  if (extent->actual < 1 || extent->actual > extent->upper)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("an active extent of ", extent->actual, " of ", extent->upper, " rows"),
                "1 <= actual <= upper");
  std::set<std::string> leading, elsewhere;
  for (const std::vector<IoInfo>* infos : {&inputs(), &outputs()})
    for (const IoInfo& info : *infos)
      for (int i = 0; i < info.shape.rank(); ++i)
        for (const std::string& name : info.shape.dim(i).symbols())
          (i == 0 && info.shape.dim(i) == Dim::symbol(name) ? leading : elsewhere).insert(name);
  for (const std::string& name : elsewhere) leading.erase(name);
  std::optional<Dim> rows;
  if (leading.size() == 1) rows = Dim::symbol(*leading.begin());
  const bool possible = rows && std::any_of(inputs().begin(), inputs().end(), [&](const IoInfo& i) {
                          return i.shape.rank() > 0 && i.shape.dim(0) == *rows;
                        });
  impl().extent.reset();
  if (!possible) return false;
  const auto& symbols = impl().code->source.symbols();
  if (const auto it = symbols.find(*leading.begin()); it != symbols.end() && extent->upper > it->second.max)
    throw Error(ErrorCode::InvalidArgument, concat_text("an active extent of ", extent->upper, " rows, but '",
                                                        it->first, "' is at most ", it->second.max));
  impl().extent_rows = std::move(*rows);
  impl().extent = extent;
  return true;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_active_extent");
}

std::span<const TensorView> CompiledGraph::Impl::cut_to_extent(std::span<const TensorView> views) {
  extent_views.assign(views.begin(), views.end());
  extent_dims.resize(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    const Shape& shape = code->inputs[i].shape;
    if (shape.rank() == 0 || !(shape.dim(0) == extent_rows)) continue;
    TensorView& v = extent_views[i];
    const auto upper = static_cast<std::size_t>(extent->upper), actual = static_cast<std::size_t>(extent->actual);
    std::vector<std::int64_t>& dims = extent_dims[i];
    dims.assign(v.dims.begin(), v.dims.end());
    if (dims.empty()) {  // one unknown dimension, the rows: they follow from the bytes
      std::int64_t row = 1;
      for (int a = 1; a < shape.rank(); ++a) {
        if (!shape.dim(a).is_static()) return views;
        row *= shape.dim(a).value();
      }
      if (row != 0 && extent->upper > std::numeric_limits<std::int64_t>::max() / row) return views;
      if (v.size_bytes != size_bytes(v.dtype, row * extent->upper)) return views;
      dims.push_back(extent->upper);
      for (int a = 1; a < shape.rank(); ++a) dims.push_back(shape.dim(a).value());
    }
    if (dims[0] != extent->upper || v.size_bytes % upper != 0) return views;  // a run of another row count
    dims[0] = extent->actual;
    v.dims = dims;
    v.size_bytes = v.size_bytes / upper * actual;
  }
  return extent_views;
}

// -- runs that hand out memory --

namespace {

bool meet(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes && a_bytes != 0 && b_bytes != 0;
}

}  // namespace

// Results must not land on inputs or on each other, except on an input that was donated for it.
void CompiledGraph::Impl::check_overlap(const ShapeInstance& s, std::span<const TensorView> in,
                                        std::span<const MutableTensorView> out) const {
  for (std::size_t o = 0; o < out.size(); ++o) {
    for (std::size_t p = 0; p < o; ++p)
      if (meet(out[o].data, out[o].size_bytes, out[p].data, out[p].size_bytes))
        throw Error(ErrorCode::InvalidArgument, concat_text("outputs '", code->outputs[p].name, "' and '",
                                                            code->outputs[o].name, "' are given the same memory"));
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (!meet(out[o].data, out[o].size_bytes, in[i].data, in[i].size_bytes)) continue;
      std::string_view why = "the input is not donated: name the pair in CompileOptions::donate";
      bool allowed = false;
      for (const LirAlias& a : s.spec->lir().plan.aliases) {
        if (a.input != i || a.output != o) continue;
        allowed = a.refused.empty() && out[o].data == in[i].data;
        why = a.refused.empty() ? std::string_view("a donated input and its output start at the same address")
                                : a.refused;
      }
      if (!allowed)
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("output '", code->outputs[o].name, "' would be written over input '",
                                code->inputs[i].name, "'"),
                    std::string(why));
    }
  }
}

void CompiledGraph::Impl::check_inputs_stay(const ShapeInstance& s, std::span<const TensorView> in,
                                            bool to_slots) const {
  const std::byte* const start = block.data() + arena_start();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const TensorView& v = in[i];
    if (!meet(v.data, v.size_bytes, block.data(), block.size_bytes())) continue;
    if (!block_is_short(s)) {
      if (!to_slots && !meet(v.data, v.size_bytes, start, s.spec->lir().plan.arena_bytes)) continue;
      // In place: a donated input is read before its output is written there.
      const std::vector<LirAlias>& aliases = s.spec->lir().plan.aliases;
      if (to_slots && std::any_of(aliases.begin(), aliases.end(), [&](const LirAlias& a) {
            return a.input == i && a.refused.empty() && v.data == start + s.spec->slots[a.output].offset;
          }))
        continue;
    }
    throw Error(ErrorCode::InvalidArgument,
                concat_text("input '", code->inputs[i].name, "' of graph '", code->source.name(),
                            "' lies in this object's own memory, which the run writes"),
                "results of run_slots and run_raw last until the next run: copy them first, or have run_into or "
                "run_typed write them elsewhere");
  }
}

std::vector<TensorView> CompiledGraph::Impl::run_to_views(std::span<const TensorView> views) {
  ShapeInstance& s = instance_for(views);
  outputs_to_block(s, views);
  std::vector<std::vector<std::int64_t>> dims;
  std::vector<TensorView> out;
  for (const Shape& shape : s.spec->outputs) dims.push_back(shape.static_dims());
  for (std::size_t i = 0; i < dims.size(); ++i)
    out.push_back({s.output_pointers[i], s.spec->outputs[i].dtype(), dims[i], s.spec->outputs[i].size_bytes()});
  run(s, views);
  raw_dims = std::move(dims);  // the views keep pointing at the same numbers
  committed = s.spec->slots;
  return out;
}

std::vector<TensorView> CompiledGraph::run_raw(const std::vector<NamedInput>& given) try {
  return impl().run_to_views(impl().views_of(given));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_raw");
}

std::vector<TensorView> CompiledGraph::run_raw(const NamedTensors& given) try {
  std::vector<std::vector<std::int64_t>> dims;
  return impl().run_to_views(impl().views_of(given, dims));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_raw");
}

std::vector<std::vector<std::vector<float>>> CompiledGraph::run_pipelined(
    const std::vector<std::vector<NamedInput>>& sets) try {
  std::vector<std::vector<std::vector<float>>> out;
  for (const std::vector<NamedInput>& set : sets) out.push_back(run(set));
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_pipelined");
}

void CompiledGraph::commit_no_wait(const std::vector<NamedInput>& given) try {
  (void)run_raw(given);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::commit_no_wait");
}
void CompiledGraph::commit_no_wait(const NamedTensors& given) try {
  (void)run_raw(given);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::commit_no_wait");
}

std::span<const Slot> CompiledGraph::sync_pending() { return std::exchange(impl().committed, {}); }

std::size_t CompiledGraph::output_index(std::string_view name) const try {
  return find_io(outputs(), impl().code->output_index, name, "output", impl().code->source.name());
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::output_index");
}

}  // namespace rlx
