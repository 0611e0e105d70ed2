// Names, lengths and shapes at the boundary; specialisations, weights and memory behind it.
#include "rlx/runtime/compiled_graph.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "rlx/driver/registry.h"
#include "rlx/ir/op_def.h"
#include "rlx/runtime/compiled_graph_impl.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

std::size_t find_io(const std::vector<IoInfo>& infos, std::string_view name, std::string_view what,
                    const std::string& graph) {
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (infos[i].name == name) return i;
  std::vector<std::string> names;
  for (const IoInfo& info : infos) names.push_back(info.name);
  throw Error(ErrorCode::NotFound, concat_text("graph '", graph, "' has no ", what, " '", name, "'"),
              did_you_mean(name, names,
                           names.empty() ? concat_text("the graph has no ", what, "s")
                                         : concat_text("there is ", quoted_names(names))));
}

namespace {

// Room that `f` makes for `what` of a graph; the error of a machine without it names both.
template <class F>
auto make_room(const std::string& graph, const std::string& what, std::size_t bytes, F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {  // more than a vector can have
  } catch (const Error& e) {
    if (e.code() != ErrorCode::OutOfMemory) throw;
  }
  throw_no_room(graph, what, bytes);
}

bool aligned(const void* data, DType dtype) {
  return reinterpret_cast<std::uintptr_t>(data) % alignment_of(dtype) == 0;
}

// The bytes of a weight to be packed straight from the caller's memory, or a copy where they do not lie as kernels need
// them.
Tensor packable(const void* data, const Shape& shape, std::shared_ptr<const void> owner) {
  if (data == nullptr || !aligned(data, shape.dtype())) return Tensor::copy_of(data, shape);
  return Tensor::borrowed(data, shape, std::move(owner));
}

// What kernels read and write in place must lie as its elements do.
void require_aligned(std::string_view what, std::string_view name, const void* data, DType dtype) {
  if (aligned(data, dtype)) return;
  throw Error(ErrorCode::InvalidArgument,
              concat_text(what, " '", name, "': its bytes do not lie at a multiple of ", alignment_of(dtype), ", as ",
                          dtype_name(dtype), " values do"),
              "copy them to where they do, for example with Tensor::copy_of");
}

// The elements of a view without dimensions. Several counts have as many bytes where an element is less than a byte;
// this is the one that fills them, for a new shape and for those of earlier runs alike.
std::int64_t element_count(const TensorView& view) {
  return static_cast<std::int64_t>(view.size_bytes * 8 / static_cast<std::size_t>(dtype_bits(view.dtype)));
}

}  // namespace

// -- one runner --

CompiledGraph::Impl::Impl(std::shared_ptr<SharedCode> shared)
    : code(std::move(shared)),
      device(code->device),
      stream(device->stream()),
      weights(std::make_shared<WeightStore>()),
      memory(device, std::max<std::size_t>(64, code->target->limits().alignment)) {}

std::unique_ptr<CompiledGraph::Impl> CompiledGraph::Impl::make(std::shared_ptr<SharedCode> code) {
  auto impl = std::make_unique<Impl>(std::move(code));
  for (const IoInfo& s : impl->code->states) impl->states.push_back(impl->new_state(s.shape));
  impl->reset_states();
  // A program of known shapes, or of runtime symbols alone, is compiled at once, so that its errors appear here and not
  // in the first run.
  if (impl->code->source.is_static()) {
    std::vector<std::vector<std::int64_t>> dims;
    for (const IoInfo& info : impl->code->inputs) dims.push_back(info.shape.static_dims());
    impl->use(impl->code->specialize(dims));
  } else if (auto common = impl->code->common()) {
    impl->known(common);
  }
  return impl;
}

BoundProgram& CompiledGraph::Impl::use(std::shared_ptr<const Specialization> spec) {
  for (auto it = shapes.begin(); it != shapes.end(); ++it)
    if ((*it)->spec == spec) {
      shapes.splice(shapes.begin(), shapes, it);
      return *shapes.front();
    }
  auto fresh = std::make_unique<BoundProgram>();
  fresh->spec = std::move(spec);
  known(fresh->spec->code);
  fresh->inputs.resize(fresh->spec->inputs.size());
  fresh->outputs.resize(fresh->spec->outputs.size());
  fresh->results.resize(fresh->spec->outputs.size());
  shapes.push_front(std::move(fresh));
  constexpr std::size_t kMaxBound = 32;
  if (shapes.size() > kMaxBound) shapes.pop_back();
  return *shapes.front();
}

PreparedCode& CompiledGraph::Impl::known(const std::shared_ptr<const Code>& c) {
  auto it = std::find_if(prepared.begin(), prepared.end(), [&](const PreparedCode& p) { return p.code == c; });
  if (it != prepared.end()) {
    prepared.splice(prepared.begin(), prepared, it);
  } else {
    weights->add(c->weights);
    prepared.push_front({c, 0, {}});
    constexpr std::size_t kMaxPrepared = 32;
    if (prepared.size() > kMaxPrepared) prepared.pop_back();
  }
  return prepared.front();
}

const WeightTable& CompiledGraph::Impl::prepare(const std::shared_ptr<const Code>& c) {
  PreparedCode& p = known(c);
  if (p.tables != tables) {
    p.weights = {};  // its buffers may be written when nobody else holds them
    p.weights = weights->prepare(c->weights, {*code->backend, *code->target, code->backend_options, *device, *stream});
    p.tables = tables;
  }
  return p.weights;
}

// The memory, the tables and the code of the next run. Once they are there nothing is done.
void CompiledGraph::Impl::bind(BoundProgram& s) {
  const Code& c = *s.spec->code;
  if (!memory.fits(c)) {
    for (auto& other : shapes) other->bound.reset();
    memory.reserve(c, code->source.name());
  }
  if (s.tables != tables) {
    s.weights = prepare(s.spec->code).views;
    s.states.clear();
    const Graph& run = s.spec->lir().graph;
    for (NodeId id : run.leaves(OpKind::State)) {
      const std::size_t i = find_io(code->states, code->state_index, run.leaf_name(id), "state", code->source.name());
      s.states.push_back({states[i]->view()});
    }
    s.tables = tables;
  }
  if (!s.bound) s.bound = c.executable->bind(*device, s.spec->lir(), memory.arenas());
}

// Finds the specialisation of the views' dimensions; the shape of the last run is found without allocating. The views
// are cut to the active extent.
BoundProgram& CompiledGraph::Impl::program_for(std::span<const TensorView>& views) {
  const std::vector<IoInfo>& infos = code->inputs;
  if (views.size() != infos.size())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("graph '", code->source.name(), "' takes ", infos.size(), " inputs, got ", views.size(),
                            views.size() < infos.size() ? concat_text(": '", infos[views.size()].name, "' is missing")
                                                        : std::string()));
  for (std::size_t i = 0; i < views.size(); ++i) {
    const Shape& declared = infos[i].shape;
    if (views[i].dtype != declared.dtype())
      throw Error(
          ErrorCode::DTypeMismatch,
          concat_text("input '", infos[i].name, "' is ", declared, ", got ", dtype_name(views[i].dtype), " values"),
          "pass the declared dtype, or cast inside the graph");
    // Before the cache is asked: a byte count that fits the shape of an earlier run tells nothing about this one.
    if (views[i].dims.empty() &&
        std::count_if(declared.dims().begin(), declared.dims().end(), [](const Dim& d) { return !d.is_static(); }) > 1)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("input '", infos[i].name, "' ", declared, " has more than one unknown dimension"),
                  "pass the dimensions with the data (TensorView::dims, or run_typed with tensors)");
  }
  if (extent) views = cut_to_extent(views);
  for (auto it = shapes.begin(); it != shapes.end(); ++it) {
    bool match = true;
    for (std::size_t i = 0; i < views.size() && match; ++i) {
      const Shape& s = (*it)->spec->inputs[i];
      match = views[i].dims.empty() && s.rank() != 0
                  ? infos[i].shape.is_static() || element_count(views[i]) == s.num_elements()
                  : dims_equal(s, views[i].dims);
    }
    if (!match) continue;
    // Element counts alone do not tell shapes apart when other views carry dimensions that changed: those were
    // compared above.
    if (it != shapes.begin()) shapes.splice(shapes.begin(), shapes, it);
    check_sizes(*shapes.front(), views);
    return *shapes.front();
  }
  std::vector<std::vector<std::int64_t>> dims;
  for (std::size_t i = 0; i < views.size(); ++i) dims.push_back(resolve_dims(infos[i], views[i]));
  BoundProgram& s = use(code->specialize(dims));
  check_sizes(s, views);
  return s;
}

void CompiledGraph::Impl::check_sizes(const BoundProgram& s, std::span<const TensorView> views) const {
  for (std::size_t i = 0; i < views.size(); ++i) {
    const Shape& shape = s.spec->inputs[i];
    if (views[i].size_bytes != shape.size_bytes())
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text("input '", code->inputs[i].name, "' is ", shape, " (", shape.size_bytes(),
                              " bytes), got ", views[i].size_bytes, " bytes"),
                  concat_text("pass ", shape.num_elements(), " values"));
    if (const Buffer* there = views[i].buffer) {
      if (!(there->device() == device->id()))
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("input '", code->inputs[i].name, "' lies on ", device_text(there->device()),
                                ", graph '", code->source.name(), "' runs on ", device_text(device->id())),
                    "copy it there with rlx::to(tensor, device)");
      if (there->written().failed())
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("input '", code->inputs[i].name, "': the work that was to make this tensor failed"),
                    "run again what makes it");
    } else if (views[i].data == nullptr && shape.size_bytes() != 0)
      throw Error(ErrorCode::InvalidArgument, concat_text("input '", code->inputs[i].name, "' has no data"));
    require_aligned("input", code->inputs[i].name, views[i].data, views[i].dtype);
  }
}

std::vector<std::int64_t> CompiledGraph::Impl::resolve_dims(const IoInfo& info, const TensorView& view) const {
  if (!view.dims.empty() || info.shape.rank() == 0) return {view.dims.begin(), view.dims.end()};
  if (info.shape.is_static()) return info.shape.static_dims();
  // One unknown dimension follows from the element count.
  std::vector<std::int64_t> dims;
  std::int64_t known = 1;
  int unknown = -1;
  for (int i = 0; i < info.shape.rank(); ++i) {
    const Dim& d = info.shape.dim(i);
    dims.push_back(d.is_static() ? d.value() : 0);
    if (d.is_static())
      known *= d.value();
    else
      unknown = i;
  }
  const std::int64_t count = element_count(view);
  if (known == 0 || count % known != 0)
    throw Error(ErrorCode::ShapeMismatch, concat_text("input '", info.name, "' ", info.shape, ": ", count,
                                                      " values are not a multiple of ", known));
  dims[static_cast<std::size_t>(unknown)] = count / known;
  return dims;
}

void CompiledGraph::Impl::require_device() const {
  if (device->lost())
    throw Error(ErrorCode::DeviceLost,
                concat_text("device ", device_text(device->id()), ", which graph '", code->source.name(),
                            "' was compiled for, was lost"),
                "make a new session, which opens it anew, and compile there");
}

Event CompiledGraph::Impl::start(BoundProgram& s, std::span<const TensorView> views, std::vector<StepTime>* times,
                                 std::span<const std::shared_ptr<Buffer>> device_outputs) {
  require_device();
  for (std::size_t i = 0; i < states.size(); ++i)
    if (!states[i]->good())
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("a failed run left state '", code->states[i].name, "' invalid"),
                  "call reset(), or write_state() for each state");
  check_inputs_stay(s, views, false);
  bind(s);
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (Buffer* const there = views[i].buffer) {
      if (!there->written().ready()) stream->wait(there->written());
      s.inputs[i].view = BufferView(*there, 0, views[i].size_bytes);
    } else {
      s.inputs[i].view = input_on(*device, *stream, views[i].data, views[i].size_bytes, memory.input_room(i));
    }
  }
  for (std::size_t o = 0; o < device_outputs.size(); ++o)
    s.outputs[o].view = BufferView(*device_outputs[o], 0, s.spec->outputs[o].size_bytes());
  for (std::size_t o = 0; o < s.results.size() && device_outputs.empty(); ++o)
    s.outputs[o].view = output_on(*device, s.results[o], s.spec->outputs[o].size_bytes(), memory.output_room(o));
  for (auto& state : states) {
    if (!state->last.ready()) stream->wait(state->last);
    state->valid = false;
  }
  const Event done = s.bound->submit({s.inputs, s.outputs, s.states, s.weights, tables, times}, *stream);
  for (auto& state : states) {
    state->valid = true;
    state->last = done;
  }
  for (const auto& buffer : device_outputs) buffer->set_written(done);
  for (std::size_t o = 0; o < s.results.size() && device_outputs.empty(); ++o) {
    Buffer* const ours = memory.in_results(s.results[o], 1) ? memory.results_buffer() : nullptr;
    fetch_output(*device, *stream, s.outputs[o].view, s.results[o], ours);
  }
  return stream->record();
}

void CompiledGraph::Impl::run(BoundProgram& s, std::span<const TensorView> views, std::vector<StepTime>* times) {
  // All that needs memory comes before the states change.
  struct Fresh {
    Handle& handle;
    Tensor value;
    std::vector<std::int64_t> dims;
  };
  std::vector<Fresh> fresh;
  for (auto& [name, handle] : handles) {
    if (!handle.output) continue;
    const Shape& shape = s.spec->outputs[*handle.output];
    if (!handle.ours || !(handle.value.shape() == shape))
      fresh.push_back({handle, Tensor::uninitialized(shape), shape.static_dims()});
  }
  Fetching fetching(*stream);
  fetching.finish(start(s, views, times));
  for (Fresh& f : fresh) {
    f.handle.value = std::move(f.value);
    f.handle.dims = std::move(f.dims);
    f.handle.ours = true;
  }
  for (auto& [name, handle] : handles)
    if (handle.output && handle.value.size_bytes() != 0)
      std::memcpy(handle.value.mutable_data(), s.results[*handle.output], handle.value.size_bytes());
}

void CompiledGraph::Impl::keep_results(BoundProgram& s, std::span<const TensorView> views) {
  check_inputs_stay(s, views, true);
  bind(s);
  for (std::size_t i = 0; i < s.spec->slots.size(); ++i) s.results[i] = memory.results() + s.spec->slots[i].offset;
}

BoundProgram& CompiledGraph::Impl::program_for_f32(std::span<const TensorView>& views,
                                                   std::vector<std::vector<float>>& results) {
  for (const IoInfo& out : code->outputs)
    if (out.shape.dtype() != DType::F32)
      throw Error(ErrorCode::DTypeMismatch, concat_text("output '", out.name, "' is ", out.shape, ", run returns f32"),
                  "use run_typed");
  BoundProgram& s = program_for(views);
  for (std::size_t i = 0; i < s.spec->outputs.size(); ++i) {
    const Shape& shape = s.spec->outputs[i];
    results.push_back(make_room(code->source.name(), concat_text("output ", i, ' ', shape), shape.size_bytes(),
                                [&] { return std::vector<float>(static_cast<std::size_t>(shape.num_elements())); }));
    s.results[i] = results.back().data();
  }
  return s;
}

BoundProgram& CompiledGraph::Impl::last() const {
  if (shapes.empty())
    throw Error(ErrorCode::InvalidArgument, "nothing is compiled yet: the graph's shapes are known at the first run",
                "call prepare_shape or run first");
  return *shapes.front();
}

// -- the public object --

CompiledGraph::CompiledGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CompiledGraph::CompiledGraph(CompiledGraph&&) noexcept = default;
CompiledGraph& CompiledGraph::operator=(CompiledGraph&&) noexcept = default;
CompiledGraph::~CompiledGraph() = default;

CompiledGraph::Impl& CompiledGraph::impl() const {
  if (!impl_)
    throw Error(ErrorCode::InvalidArgument, "a CompiledGraph was used after it was moved from",
                "use the object that it was moved to; clone() makes a second one");
  return *impl_;
}

Device CompiledGraph::device() const { return impl().code->target->device(); }
std::string CompiledGraph::target_name() const try {
  return std::string(impl().code->target->name());
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::target_name");
}
const std::vector<IoInfo>& CompiledGraph::inputs() const { return impl().code->inputs; }
const std::vector<IoInfo>& CompiledGraph::params() const { return impl().code->params; }
const std::vector<IoInfo>& CompiledGraph::outputs() const { return impl().code->outputs; }
const std::vector<IoInfo>& CompiledGraph::states() const { return impl().code->states; }

WeightStore& CompiledGraph::Impl::own_weights() {
  if (!sole_owner(weights)) weights = std::make_shared<WeightStore>(*weights);  // a clone reads the old one
  ++tables;
  return *weights;
}

namespace {
// The param called `name`. A state of that name is said to be one: weights that a program updates are states.
const IoInfo& param_of(const SharedCode& code, std::string_view name) {
  for (const IoInfo& s : code.states)
    if (s.name == name)
      throw Error(ErrorCode::NotFound,
                  concat_text("graph '", code.source.name(), "' has no param '", name, "': it is a state"),
                  "write_state sets it");
  return code.params[find_io(code.params, code.param_index, name, "param", code.source.name())];
}
}  // namespace

void CompiledGraph::set_param(std::string_view name, std::span<const float> values) try {
  set_param_typed(name, values.data(), values.size_bytes(), DType::F32);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_param");
}

void CompiledGraph::set_param_typed(std::string_view name, const void* data, std::size_t bytes, DType dtype) try {
  const IoInfo& info = param_of(*impl().code, name);
  Shape given = info.shape.with_dtype(dtype);
  if (!given.is_static())
    throw Error(ErrorCode::Unsupported, concat_text("param '", name, "' ", info.shape, " has symbols without a value"),
                "fix them with CompileOptions::dim_binding, or declare the param with numbers");
  bool convertible = dtype == info.shape.dtype() || (is_float(dtype) && is_float(info.shape.dtype()));
  if (!convertible)
    throw Error(ErrorCode::DTypeMismatch,
                concat_text("param '", name, "' is ", info.shape, ", got ", dtype_name(dtype), " values"),
                "pass the declared dtype");
  if (bytes != given.size_bytes())
    throw Error(ErrorCode::ShapeMismatch,
                concat_text("param '", name, "' is ", info.shape, " (", info.shape.num_elements(), " values), got ",
                            size_bytes(dtype) ? bytes / size_bytes(dtype) : bytes));
  if (data == nullptr && bytes != 0)
    throw Error(ErrorCode::InvalidArgument, concat_text("param '", name, "' is ", info.shape, ", its ", bytes,
                                                        " bytes were given as a null pointer"));
  const Tensor value = packable(data, given, nullptr);
  const WeightStore::NewValue next{info.name, value, info.shape.dtype(), nullptr};
  impl().own_weights().set(std::span(&next, 1));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_param_typed");
}

void CompiledGraph::set_param(std::string_view name, const Tensor& value) try {
  const IoInfo& info = param_of(*impl().code, name);
  bool convertible = value.dtype() == info.shape.dtype() || (is_float(value.dtype()) && is_float(info.shape.dtype()));
  if (value.empty())
    throw Error(ErrorCode::InvalidArgument, concat_text("param '", name, "' is ", info.shape, ", got an empty tensor"),
                "it was never given a value, or moved from");
  if (!info.shape.is_static())
    throw Error(ErrorCode::Unsupported, concat_text("param '", name, "' ", info.shape, " has symbols without a value"),
                "fix them with CompileOptions::dim_binding, or declare the param with numbers");
  if (!convertible || !(value.shape().dims() == info.shape.dims()))
    throw Error(convertible ? ErrorCode::ShapeMismatch : ErrorCode::DTypeMismatch,
                concat_text("param '", name, "' is ", info.shape, ", got ", value.shape()));
  const WeightStore::NewValue next{info.name, value, info.shape.dtype(), nullptr};
  impl().own_weights().set(std::span(&next, 1));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_param");
}

std::size_t CompiledGraph::load_params(std::shared_ptr<const WeightLoader> loader, LoadMode mode) try {
  if (!loader) throw Error(ErrorCode::InvalidArgument, "load_params: no loader was given (a null pointer)");
  if (mode == LoadMode::Strict)
    for (const std::string& name : loader->names()) (void)param_of(*impl().code, name);
  std::vector<std::pair<const IoInfo*, TensorView>> found;  // all are checked before the first is set
  for (const IoInfo& info : params()) {
    auto view = loader->find(info.name);
    if (!view) {
      if (mode == LoadMode::Strict || !impl().weights->has(info.name)) {
        throw Error(ErrorCode::NotFound, concat_text("the weights have no tensor '", info.name, "' ", info.shape),
                    did_you_mean(info.name, loader->names(), "load a checkpoint of this architecture"));
      }
      continue;
    }
    if (!dims_equal(info.shape, view->dims))
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text("tensor '", info.name, "' is ", dims_text(view->dims), " ", dtype_name(view->dtype),
                              " in the file, the graph needs ", info.shape));
    if (view->dtype != info.shape.dtype() && !(is_float(view->dtype) && is_float(info.shape.dtype())))
      throw Error(ErrorCode::DTypeMismatch, concat_text("tensor '", info.name, "' is ", dtype_name(view->dtype),
                                                        " in the file, the graph needs ", info.shape));
    const std::size_t bytes = info.shape.with_dtype(view->dtype).size_bytes();
    if (view->size_bytes != bytes || (bytes != 0 && view->data == nullptr))
      throw Error(ErrorCode::BadFile,
                  concat_text("the loader's view of '", info.name, "' ", info.shape.with_dtype(view->dtype), " has ",
                              view->data ? concat_text(view->size_bytes, " bytes") : std::string("no data"),
                              ", it takes ", bytes),
                  "correct WeightLoader::find");
    found.emplace_back(&info, *view);
  }
  std::vector<WeightStore::NewValue> values;
  values.reserve(found.size());
  for (const auto& [info, view] : found)
    values.push_back(
        {info->name, packable(view.data, info->shape.with_dtype(view.dtype), loader), info->shape.dtype(), loader});
  impl().own_weights().set(values);
  return found.size();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::load_params");
}

std::vector<std::string> CompiledGraph::unset_params() const try {
  std::vector<std::string> out;
  for (const IoInfo& info : params())
    if (!impl().weights->has(info.name)) out.push_back(info.name);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::unset_params");
}

void CompiledGraph::finalize() try {
  if (!impl().shapes.empty()) return impl().bind(impl().last());
  if (auto common = impl().code->common()) {
    impl().prepare(common);
    return;
  }
  if (const std::vector<std::string> unset = unset_params(); !unset.empty())
    throw Error(ErrorCode::NotFound,
                concat_text(unset.size(), unset.size() == 1 ? " param has" : " params have", " no value: '",
                            unset.front(), unset.size() > 1 ? "', ..." : "'"),
                "set them with set_param or load_params");
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::finalize");
}

std::vector<std::vector<float>> CompiledGraph::run(std::initializer_list<NamedInput> given) try {
  return run(std::vector<NamedInput>(given));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run");
}

std::vector<std::vector<float>> CompiledGraph::run(const std::vector<NamedInput>& given) try {
  const std::vector<TensorView> given_views = impl().views_of(given);
  std::span<const TensorView> views = given_views;
  std::vector<std::vector<float>> results;
  BoundProgram& s = impl().program_for_f32(views, results);
  impl().run(s, views);
  return results;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run");
}

std::vector<Tensor> CompiledGraph::run_typed(const NamedTensors& given) try {
  std::vector<std::vector<std::int64_t>> dims;
  const std::vector<TensorView> given_views = impl().views_of(given, dims);
  std::span<const TensorView> views = given_views;
  BoundProgram& s = impl().program_for(views);
  std::vector<Tensor> results;
  for (const Shape& shape : s.spec->outputs)
    results.push_back(make_room(impl().code->source.name(), concat_text("output ", results.size(), ' ', shape),
                                shape.size_bytes(), [&] { return Tensor::uninitialized(shape); }));
  for (std::size_t i = 0; i < results.size(); ++i) s.results[i] = results[i].mutable_data();
  impl().run(s, views);
  return results;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_typed");
}

std::vector<Tensor> CompiledGraph::run_device(const NamedTensors& given) try {
  if (impl().device->host_memory() || impl().has_output_handles()) {
    std::vector<Tensor> results = run_typed(given);
    for (Tensor& t : results) t = to(t, impl().device->id());
    return results;
  }
  std::vector<std::vector<std::int64_t>> dims;
  const std::vector<TensorView> given_views = impl().views_of(given, dims);
  std::span<const TensorView> views = given_views;
  BoundProgram& s = impl().program_for(views);
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<Tensor> results;
  for (const Shape& shape : s.spec->outputs) {
    buffers.push_back(impl().device->allocate(std::max<std::size_t>(shape.size_bytes(), 1), BufferUse::Values));
    results.push_back(Tensor::on_device(buffers.back(), shape));
  }
  (void)impl().start(s, views, nullptr, buffers);
  return results;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_device");
}

void CompiledGraph::run_into(std::span<const TensorView> in, std::span<const MutableTensorView> out) try {
  BoundProgram& s = impl().program_for(in);
  if (out.size() != s.spec->outputs.size())
    throw Error(ErrorCode::InvalidArgument, concat_text("graph '", impl().code->source.name(), "' has ",
                                                        s.spec->outputs.size(), " outputs, got room for ", out.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Shape& shape = s.spec->outputs[i];
    const std::string& name = outputs()[i].name;
    if (out[i].dtype != shape.dtype())
      throw Error(ErrorCode::DTypeMismatch,
                  concat_text("output '", name, "' is ", shape, ", the view is ", dtype_name(out[i].dtype)),
                  "give room of the declared dtype");
    const bool padded = impl().extent && out[i].size_bytes > shape.size_bytes();  // room for rows that are not computed
    if (out[i].size_bytes != shape.size_bytes() && !padded)
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text("output '", name, "' is ", shape, " (", shape.size_bytes(), " bytes), the view has ",
                              out[i].size_bytes, " bytes"),
                  concat_text("give room for ", shape.num_elements(), " values"));
    if (out[i].data == nullptr && shape.size_bytes() != 0)
      throw Error(ErrorCode::InvalidArgument, concat_text("output '", name, "' has no room: the view points nowhere"));
    require_aligned("output", name, out[i].data, out[i].dtype);
    s.results[i] = out[i].data;
  }
  impl().check_overlap(s, in, out);
  impl().run(s, in);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_into");
}

std::span<const Slot> CompiledGraph::run_slots(std::span<const TensorView> in) try {
  BoundProgram& s = impl().program_for(in);
  impl().keep_results(s, in);
  impl().run(s, in);
  return s.spec->slots;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_slots");
}

const std::byte* CompiledGraph::arena_ptr() const { return impl().memory.results(); }

void CompiledGraph::prepare_shape(std::span<const std::vector<std::int64_t>> dims) try {
  if (dims.size() != inputs().size())
    throw Error(ErrorCode::InvalidArgument, concat_text("graph '", impl().code->source.name(), "' takes ",
                                                        inputs().size(), " inputs, got dimensions of ", dims.size()));
  impl().bind(impl().use(impl().code->specialize({dims.begin(), dims.end()})));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::prepare_shape");
}

std::vector<NodeTime> CompiledGraph::profile(std::span<const TensorView> in) try {
  BoundProgram& s = impl().program_for(in);
  impl().keep_results(s, in);
  std::vector<StepTime> times;
  impl().run(s, in, &times);
  const Graph& g = s.spec->lir().graph;
  std::vector<NodeTime> out;
  for (const StepTime& t : times) {
    const Node& n = g.node(t.node);
    std::vector<Shape> ins;
    for (Value v : n.inputs) ins.push_back(g.shape(v));
    out.push_back({node_label(g, t.node), op_text_name(n.op), s.spec->code->executable->kernel_name(t.node), t.ns,
                   op_def(n.op).cost(CostContext{n.op, ins, n.shapes})});
  }
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::profile");
}

CompiledGraph CompiledGraph::clone() const try {
  auto copy = std::make_unique<Impl>(impl().code);
  copy->weights = impl().weights;
  copy->extent = impl().extent;
  copy->extent_rows = impl().extent_rows;
  copy->handles = impl().handles;
  for (auto& [name, handle] : copy->handles) handle.value = Tensor::copy_of(handle.value.data(), handle.value.shape());
  for (const auto& s : impl().states) copy->states.push_back(copy->copy_of(*s));
  for (auto it = impl().shapes.rbegin(); it != impl().shapes.rend(); ++it) copy->use((*it)->spec);
  return CompiledGraph(std::move(copy));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::clone");
}

const CompileResult& CompiledGraph::compile_result() const try {
  if (impl().shapes.empty())
    if (auto common = impl().code->common()) return common->result;  // the cache keeps it
  return impl().last().spec->code->result;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::compile_result");
}
std::size_t CompiledGraph::arena_bytes() const {
  return impl().shapes.empty() ? 0 : impl().last().spec->code->memory_bytes();
}
std::size_t CompiledGraph::prepared_bytes() const try {
  return impl().weights->bytes();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::prepared_bytes");
}

}  // namespace rlx
