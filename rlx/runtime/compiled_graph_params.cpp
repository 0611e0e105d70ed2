// The weights of a CompiledGraph: set individually, loaded together, prepared.
#include "rlx/runtime/compiled_graph_impl.h"

#include <algorithm>
#include <new>

#include "rlx/base/trace.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

namespace {

// The bytes of a weight for packing directly from the caller's memory. Copies them when they do not have the alignment
// that kernels need.
Tensor packable(const void* data, const Shape& shape, std::shared_ptr<const void> owner) {
  if (data == nullptr || !lies_aligned(data, shape.dtype())) return Tensor::copy_of(data, shape);
  return Tensor::borrowed(data, shape, std::move(owner));
}

// The param called `name`. The error for a state's name says that it is a state: weights that a program updates are
// states.
const IoInfo& param_of(const SharedPrograms& code, std::string_view name) {
  for (const IoInfo& s : code.states)
    if (s.name == name)
      throw Error(ErrorCode::NotFound,
                  concat_text("graph '", code.source.name(), "' has no param '", name, "': it is a state"),
                  "set it with write_state");
  return code.params[find_io(code.params, code.param_index, name, "param", code.source.name())];
}

}  // namespace

void require_on_host(std::string_view what, std::string_view name, const Tensor& value) {
  if (!value.buffer()) return;
  throw Error(ErrorCode::InvalidArgument,
              concat_text(what, " '", name, "' was given a tensor ", value.shape(), " that is on ",
                          device_text(value.device())),
              "copy it to the host: pass tensor.to_host()");
}

WeightStore& CompiledGraph::Impl::own_weights() {
  require_present();
  release_spare_weights();
  if (!sole_owner(weights)) weights = std::make_shared<WeightStore>(*weights);  // a clone reads the old one
  ++binding_generation;
  return *weights;
}

void CompiledGraph::set_param(std::string_view name, std::span<const float> values) try {
  set_param_typed(name, values.data(), values.size_bytes(), DType::F32);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_param");
}

void CompiledGraph::set_param_typed(std::string_view name, const void* data, std::size_t bytes, DType dtype) try {
  const Impl::Call on(impl(), Impl::Use::Change);
  on->set_param(param_of(*on->code, name), data, bytes, dtype);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_param_typed");
}

void CompiledGraph::Impl::set_param(const IoInfo& info, const void* data, std::size_t bytes, DType dtype) {
  const std::string& name = info.name;
  const TraceScope traced(trace());
  const TraceSpan span("weights", "set", name);
  Shape given = info.shape.with_dtype(dtype);
  if (!given.is_static())
    throw Error(ErrorCode::Unsupported, concat_text("param '", name, "' ", info.shape, " has unbound symbols"),
                "bind them with CompileOptions::dim_binding, or declare the param with numbers");
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
    throw Error(ErrorCode::InvalidArgument, concat_text("param '", name, "' is ", info.shape,
                                                        ", but the pointer to its ", bytes, " bytes is null"));
  const Tensor value = packable(data, given, nullptr);
  const WeightStore::NewValue next{info.name, value, info.shape.dtype(), nullptr};
  own_weights().set(std::span(&next, 1));
}

void CompiledGraph::set_param(std::string_view name, const Tensor& value) try {
  const Impl::Call on(impl(), Impl::Use::Change);
  on->set_param(param_of(*on->code, name), value);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_param");
}

void CompiledGraph::Impl::set_param(const IoInfo& info, const Tensor& value) {
  const std::string& name = info.name;
  const TraceScope traced(trace());
  const TraceSpan span("weights", "set", name);
  bool convertible = value.dtype() == info.shape.dtype() || (is_float(value.dtype()) && is_float(info.shape.dtype()));
  if (value.empty())
    throw Error(ErrorCode::InvalidArgument, concat_text("param '", name, "' is ", info.shape, ", got an empty tensor"),
                "the tensor was never given a value, or was moved from");
  if (!info.shape.is_static())
    throw Error(ErrorCode::Unsupported, concat_text("param '", name, "' ", info.shape, " has unbound symbols"),
                "bind them with CompileOptions::dim_binding, or declare the param with numbers");
  require_on_host("param", name, value);
  if (!convertible || !(value.shape().dims() == info.shape.dims()))
    throw Error(convertible ? ErrorCode::ShapeMismatch : ErrorCode::DTypeMismatch,
                concat_text("param '", name, "' is ", info.shape, ", got ", value.shape()));
  const WeightStore::NewValue next{info.name, value, info.shape.dtype(), nullptr};
  own_weights().set(std::span(&next, 1));
}

std::size_t CompiledGraph::load_params(std::shared_ptr<const WeightLoader> loader, LoadMode mode) try {
  const Impl::Call on(impl(), Impl::Use::Change);
  const TraceScope traced(on->trace());
  const TraceSpan span("weights", "load", on->code->source.name());
  if (!loader) throw Error(ErrorCode::InvalidArgument, "load_params: no loader was given (a null pointer)");
  if (mode == LoadMode::Strict)
    for (const std::string& name : loader->names()) (void)param_of(*on->code, name);
  std::vector<std::pair<const IoInfo*, TensorView>> found;  // all are checked before the first is set
  for (const IoInfo& info : params()) {
    auto view = loader->find(info.name);
    if (!view) {
      if (mode == LoadMode::Strict || !on->weights->has(info.name)) {
        throw Error(ErrorCode::NotFound, concat_text("the weights have no tensor '", info.name, "' ", info.shape),
                    did_you_mean(info.name, loader->names(), "load a checkpoint of this architecture"));
      }
      continue;
    }
    if (!dims_equal(info.shape, view->dims))
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text("tensor '", info.name, "' is ", dims_text(view->dims), " ", dtype_name(view->dtype),
                              " in the file, but the graph needs ", info.shape));
    if (view->dtype != info.shape.dtype() && !(is_float(view->dtype) && is_float(info.shape.dtype())))
      throw Error(ErrorCode::DTypeMismatch, concat_text("tensor '", info.name, "' is ", dtype_name(view->dtype),
                                                        " in the file, but the graph needs ", info.shape));
    const std::size_t bytes = info.shape.with_dtype(view->dtype).size_bytes();
    if (view->size_bytes != bytes || (bytes != 0 && view->data == nullptr))
      throw Error(ErrorCode::BadFile,
                  concat_text("the loader's view of '", info.name, "' ", info.shape.with_dtype(view->dtype), " has ",
                              view->data ? concat_text(view->size_bytes, " bytes") : std::string("no data"),
                              ", but needs ", bytes),
                  "fix WeightLoader::find");
    found.emplace_back(&info, *view);
  }
  std::vector<WeightStore::NewValue> values;
  values.reserve(found.size());
  for (const auto& [info, view] : found)
    values.push_back(
        {info->name, packable(view.data, info->shape.with_dtype(view.dtype), loader), info->shape.dtype(), loader});
  on->own_weights().set(values);
  return found.size();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::load_params");
}

void CompiledGraph::share_weights_from(const CompiledGraph& other) try {
  const std::string &here = impl().code->source.name(), &there = other.impl().code->source.name();
  for (const IoInfo& own : params()) {
    const IoInfo& theirs = other.params()[find_io(other.params(), own.name, "param", there)];
    if (own.shape == theirs.shape) continue;
    const bool dims = own.shape.dims() == theirs.shape.dims();
    throw Error(dims ? ErrorCode::DTypeMismatch : ErrorCode::ShapeMismatch,
                concat_text("param '", own.name, "' is ", own.shape, " in graph '", here, "' and ", theirs.shape,
                            " in graph '", there, "'"),
                "shared weights must have equal shapes and dtypes");
  }
  if (other.impl().device != impl().device)
    throw Error(
        ErrorCode::InvalidArgument,
        concat_text("graphs '", here, "' and '", there, "' run on different devices: they cannot share weights"),
        "compile both with one Session, or load the weights twice");
  if (&impl() == &other.impl()) return;
  std::shared_ptr<WeightStore> theirs;
  {
    const Impl::Call there_on(other.impl(), Impl::Use::Nothing);
    theirs = there_on->weights;
  }
  const Impl::Call on(impl(), Impl::Use::Change);
  on->require_present();
  on->release_spare_weights();
  on->weights = std::move(theirs);
  on->register_programs();
  ++on->binding_generation;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::share_weights_from");
}

std::vector<std::string> CompiledGraph::Impl::unset_params() const {
  std::vector<std::string> out;
  for (const IoInfo& info : code->params)
    if (!weights->has(info.name)) out.push_back(info.name);
  return out;
}

std::vector<std::string> CompiledGraph::unset_params() const try {
  return Impl::Call(impl(), Impl::Use::Nothing)->unset_params();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::unset_params");
}

void CompiledGraph::finalize() try {
  const Impl::Call on(impl(), Impl::Use::Own);
  const TraceScope traced(on->trace());
  const TraceSpan span("weights", "finalize", on->code->source.name());
  if (!on->shapes.empty()) return on->bind(on->last());
  if (auto common = on->code->common()) {
    (void)on->prepared(common);
    return;
  }
  if (const std::vector<std::string> unset = on->unset_params(); !unset.empty())
    throw Error(ErrorCode::NotFound,
                concat_text(unset.size(), unset.size() == 1 ? " param has" : " params have", " no value: '",
                            unset.front(), unset.size() > 1 ? "', ..." : "'"),
                "set them with set_param or load_params");
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::finalize");
}

}  // namespace rlx
