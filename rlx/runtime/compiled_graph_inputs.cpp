// The inputs of a compiled graph: by name, sticky, kept from the last run, or narrowed to the valid rows.
#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/cotangent_name.h"
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
                "the tensor was never given a value, or was moved from");
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
  if (value.buffer()) require_here(in != code->inputs.end() ? "input" : "output", name, *value.buffer());
  // An existing handle remains an output handle.
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
                concat_text("input '", name, "': the pointer to its ", bytes, " bytes is null"));
  if (bits >= 8 && bytes % (bits / 8) != 0)
    throw Error(
        ErrorCode::ShapeMismatch,
        concat_text("input '", name, "': ", bytes, " bytes are not a whole number of ", dtype_name(dtype), " values"));
  Impl::Call(impl(), Impl::Use::Change)
      ->set_handle(name, Tensor::copy_of(data, Shape({bytes / bits * 8 + bytes % bits * 8 / bits}, dtype)), {}, false);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_input_typed");
}

void CompiledGraph::set_input(std::string_view name, const Tensor& value) try {
  Impl::Call(impl(), Impl::Use::Change)->set_handle(name, value, value.dims(), false);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_input");
}

void CompiledGraph::bind_handle(std::string_view name, std::span<const float> values) try {
  Impl::Call(impl(), Impl::Use::Change)
      ->set_handle(name, Tensor::copy_of(values.data(), Shape({Dim(values.size())}, DType::F32)), {}, true);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::bind_handle");
}

void CompiledGraph::bind_handle(std::string_view name, const Tensor& value) try {
  Impl::Call(impl(), Impl::Use::Change)->set_handle(name, value, value.dims(), true);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::bind_handle");
}

Tensor CompiledGraph::Impl::read_handle(std::string_view name) const {
  auto it = handles.find(name);
  if (it == handles.end()) {
    std::vector<IoInfo> bound;
    for (const auto& [key, handle] : handles) bound.push_back({key, handle.value.shape()});
    (void)find_io(bound, name, "handle", code->source.name());
  }
  const Tensor& value = it->second.value;
  return value.buffer() ? value.to_host() : Tensor::copy_of(value.data(), value.shape());
}

Tensor CompiledGraph::read_handle(std::string_view name) const try {
  return Impl::Call(impl(), Impl::Use::AnyInstance)->read_handle(name);
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
    views[i] = tensor.view();
    views[i].dims = dims[i];
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
    views[i] = h.value.view();
    views[i].dims = h.dims;
  }
}

// -- padded batches --

bool CompiledGraph::set_active_extent(std::optional<ActiveExtent> extent) try {
  const Impl::Call on(impl(), Impl::Use::Change);
  if (!extent) {
    on->extent.reset();
    return true;
  }
  if (extent->actual < 1 || extent->actual > extent->upper)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("invalid active extent: actual = ", extent->actual, ", upper = ", extent->upper),
                "pass values with 1 <= actual <= upper");
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
  on->extent.reset();
  if (!possible) return false;
  const auto& symbols = on->code->source.symbols();
  if (const auto it = symbols.find(*leading.begin()); it != symbols.end() && extent->upper > it->second.max)
    throw Error(ErrorCode::InvalidArgument, concat_text("an active extent of ", extent->upper, " rows, but symbol '",
                                                        it->first, "' is at most ", it->second.max));
  on->extent_rows = std::move(*rows);
  on->extent = extent;
  return true;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_active_extent");
}

std::span<const TensorView> CompiledGraph::Impl::narrowed_to_extent(std::span<const TensorView> views) {
  extent_views.assign(views.begin(), views.end());
  extent_dims.resize(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    const Shape& shape = code->inputs[i].shape;
    if (shape.rank() == 0 || !(shape.dim(0) == extent_rows)) continue;
    TensorView& v = extent_views[i];
    const auto upper = static_cast<std::size_t>(extent->upper), actual = static_cast<std::size_t>(extent->actual);
    std::vector<std::int64_t>& dims = extent_dims[i];
    dims.assign(v.dims.begin(), v.dims.end());
    if (dims.empty()) {  // the rows are the one unknown dimension; they follow from the bytes
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
    if (v.buffer && actual != upper && device->memory_model() == MemoryModel::Opaque)
      throw Error(ErrorCode::Unsupported,
                  concat_text("input '", code->inputs[i].name, "': an active extent of ", extent->actual, " of ",
                              extent->upper, " rows does not apply to a tensor on ", device_text(v.buffer->device()),
                              ", which transfers whole values only"),
                  "pass a tensor of that many rows, or a tensor on the host");
    dims[0] = extent->actual;
    v.dims = dims;
    v.size_bytes = v.size_bytes / upper * actual;
  }
  return extent_views;
}

}  // namespace rlx
