// States of a compiled graph: cells on its device that runs write and the host reads between runs.
#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include "rlx/device/host_device.h"
#include "rlx/exec/fetching.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/runtime/compiled_graph_impl.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

void StateCell::settle() {
  std::size_t done = 0;
  while (done < before.size() && before[done].run.ready()) {
    if (before[done].run.failed()) {
      buffer = std::move(before[done].buffer);
      written = std::move(before[done].written);
      before.clear();
      return;
    }
    ++done;
  }
  before.erase(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(done));
}

std::shared_ptr<StateCell> CompiledGraph::Impl::new_state(const IoInfo& info) const {
  const auto known = code->options.on_failure.find(info.name);
  const bool keep = known != code->options.on_failure.end() && known->second == OnFailure::Keep;
  return std::make_shared<StateCell>(state_buffer(*device, info.shape), info.shape, device, keep);
}

namespace {
struct ByteWindow {
  std::size_t offset, bytes;
};
// The byte range of rows of a value. The rows must exist, and `given`, if not null, must fill them.
ByteWindow window_of(std::string_view what, const IoInfo& info, Rows rows, const Tensor* given) {
  const std::int64_t there = info.shape.rank() == 0 ? 0 : info.shape.dim(0).value();
  if (info.shape.rank() == 0 || rows.first < 0 || rows.count < 0 || rows.first > there ||
      rows.count > there - rows.first)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(what, " '", info.name, "' ", info.shape, " has no rows [", rows.first, ", ", rows.first,
                            " + ", rows.count, ")"),
                info.shape.rank() == 0
                    ? std::string("it has no outermost dimension: read and write it whole")
                    : concat_text("its rows are 0 to ", there, ", counted along its first dimension"));
  if (given) {
    require_on_host(what, info.name, *given);
    if (given->empty() && rows.count != 0)
      throw Error(ErrorCode::InvalidArgument, concat_text(what, " '", info.name, "' ", info.shape,
                                                          ": got an empty tensor for ", rows.count, " rows"));
    Dims dims = info.shape.dims();
    dims[0] = Dim(rows.count);
    if (!(given->shape() == Shape(dims, info.shape.dtype())))
      throw Error(given->dtype() == info.shape.dtype() ? ErrorCode::ShapeMismatch : ErrorCode::DTypeMismatch,
                  concat_text(what, " '", info.name, "' ", info.shape, ": ", rows.count, " of its rows are ",
                              Shape(dims, info.shape.dtype()), ", got ", given->shape()));
  }
  const std::int64_t per_row = there == 0 ? 0 : info.shape.num_elements() / there;
  if (per_row * dtype_bits(info.shape.dtype()) % 8 != 0)
    throw Error(ErrorCode::Unsupported,
                concat_text(what, " '", info.name, "' ", info.shape, ": a row is not a whole number of bytes"),
                "read and write it whole");
  return {size_bytes(info.shape.dtype(), per_row * rows.first), size_bytes(info.shape.dtype(), per_row * rows.count)};
}

Rows all_rows(const Shape& shape) { return {0, shape.rank() == 0 ? 0 : shape.dim(0).value()}; }
}  // namespace

// Writes the cell after all work submitted for it. The work may be on any stream, so the host waits for it. A failure
// of that work is ignored, because this call is the way to recover from it; so is a failure on this program's stream
// that was not reported yet. If this call fails, the cell keeps its old value unless bytes of it were overwritten.
void CompiledGraph::Impl::write_state(StateCell& cell, const std::byte* data, std::size_t offset, std::size_t bytes) {
  require_device();
  wait_quietly(cell.last);
  Stream& on = stream_on(cell.device);
  wait_quietly(*stream);
  if (&on != stream.get()) wait_quietly(on);
  cell.settle();
  if (!cell.good()) drop_state_value(*cell.device, cell.buffer, cell.valid);
  std::shared_ptr<Buffer> buffer = cell.buffer;
  write_state_bytes(*cell.device, on, buffer, cell.shape, granule(), offset, bytes, data, cell.valid);
  const Event written = on.record();
  cell.buffer = std::move(buffer);
  cell.set_written(written);
  cell.valid = true;
}

Stream& CompiledGraph::Impl::stream_on(const std::shared_ptr<OpenDevice>& there) const {
  if (there == device) return *stream;
  std::shared_ptr<Stream>& known = state_streams[there];
  if (!known) known = there->stream();
  return *known;
}

// Programs of one graph at other extents, or programs that share the state, may have it on another device.
void CompiledGraph::Impl::move_state(StateCell& cell, const std::shared_ptr<OpenDevice>& to) const {
  wait_quietly(cell.last);
  cell.settle();
  const bool good = cell.good();
  std::shared_ptr<Buffer> there = state_buffer(*to, cell.shape);
  Event written;
  if (good) {
    Tensor value = Tensor::uninitialized(cell.shape);
    const std::size_t bytes = value.size_bytes();
    read_state_bytes(*cell.device, stream_on(cell.device), *cell.buffer, cell.shape, granule(), 0,
                     {value.mutable_data(), bytes});
    bool whole = true;
    write_state_bytes(*to, stream_on(to), there, cell.shape, granule(), 0, bytes, value.data(), whole);
    written = stream_on(to).record();
  }
  cell.valid = good;
  cell.buffer = std::move(there);
  cell.device = to;
  ++cell.moves;
  cell.set_written(written);
}

bool CompiledGraph::Impl::place_states(const Compilation& c, const BoundInstance& s) {
  for (std::size_t i = 0; i < states.size(); ++i)
    if (const auto& wanted = c.state_devices[i]; wanted && states[i]->device != wanted) move_state(*states[i], wanted);
  for (std::size_t k = 0; k < s.cells.size(); ++k)
    if (s.moves[k] != states[s.cells[k]]->moves) return true;
  return false;
}

Tensor CompiledGraph::Impl::read_state(std::size_t i, Rows rows) const {
  require_device();
  StateCell& cell = *states[i];
  wait_quietly(cell.written);
  cell.settle();
  if (!cell.good())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("state '", code->states[i].name, "' is invalid after a failed run"),
                "call reset(), or write_state()");
  const bool whole = cell.shape.rank() == 0 || rows.count == cell.shape.dim(0).value();
  Dims dims = cell.shape.dims();
  ByteWindow window{0, cell.shape.size_bytes()};
  if (!whole) {
    window = window_of("state", code->states[i], rows, nullptr);
    dims[0] = Dim(rows.count);
  }
  Tensor value = Tensor::uninitialized(Shape(std::move(dims), cell.shape.dtype()));
  read_state_bytes(*cell.device, stream_on(cell.device), *cell.buffer, cell.shape, granule(), window.offset,
                   {value.mutable_data(), window.bytes});
  return value;
}

// The copy may run late, on a stream that is not the cell's. The next writer of the cell waits for it.
std::shared_ptr<StateCell> CompiledGraph::Impl::copy_of(StateCell& cell) const {
  wait_quietly(cell.last);
  cell.settle();
  auto copy = std::make_shared<StateCell>(nullptr, cell.shape, cell.device, cell.keep);
  Stream& on = stream_on(cell.device);
  copy->valid = cell.good();
  copy->buffer =
      copy->valid ? copied_state(*cell.device, on, cell.buffer, cell.shape) : state_buffer(*cell.device, cell.shape);
  copy->set_written(on.record());
  cell.last = copy->written;
  return copy;
}

void CompiledGraph::Impl::reset_states(bool fresh) {
  const std::vector<NodeId> leaves = code->source.leaves(OpKind::State);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Tensor& init = code->source.node(leaves[i]).op.as<ops::State>().init;
    if (fresh && init.empty() && states[i]->buffer && allocated_as_zeros(*states[i]->buffer)) continue;
    write_state(*states[i], init.empty() ? nullptr : init.data(), 0, states[i]->shape.size_bytes());
  }
}

Tensor CompiledGraph::read_state(std::string_view name) const try {
  const std::size_t i = find_io(states(), impl().code->state_index, name, "state", impl().code->source.name());
  return Impl::Call(impl(), Impl::Use::Own)->read_state(i, all_rows(states()[i].shape));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::read_state");
}

Tensor CompiledGraph::read_state(std::string_view name, Rows rows) const try {
  const std::size_t i = find_io(states(), impl().code->state_index, name, "state", impl().code->source.name());
  (void)window_of("state", states()[i], rows, nullptr);
  return Impl::Call(impl(), Impl::Use::Own)->read_state(i, rows);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::read_state");
}

void CompiledGraph::write_state(std::string_view name, const Tensor& value) try {
  const Impl::Call on(impl(), Impl::Use::Own);
  StateCell& s = *on->states[find_io(states(), impl().code->state_index, name, "state", impl().code->source.name())];
  if (value.dtype() != s.shape.dtype())
    throw Error(ErrorCode::DTypeMismatch, concat_text("state '", name, "' is ", s.shape, ", got ", value.shape()),
                "pass the declared dtype");
  if (!(value.shape() == s.shape))
    throw Error(ErrorCode::ShapeMismatch, concat_text("state '", name, "' is ", s.shape, ", got ", value.shape()));
  if (value.empty() && s.shape.size_bytes() != 0)
    throw Error(ErrorCode::InvalidArgument, concat_text("state '", name, "' is ", s.shape, ", got an empty tensor"));
  require_on_host("state", name, value);
  on->require_present();
  on->write_state(s, value.data(), 0, s.shape.size_bytes());
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::write_state");
}

void CompiledGraph::write_state(std::string_view name, const Tensor& value, Rows rows) try {
  const std::size_t i = find_io(states(), impl().code->state_index, name, "state", impl().code->source.name());
  const Impl::Call on(impl(), Impl::Use::Own);
  StateCell& s = *on->states[i];
  const ByteWindow window = window_of("state", states()[i], rows, &value);
  on->require_present();
  wait_quietly(s.written);
  if (!s.good() && rows.count != s.shape.dim(0).value())
    throw Error(ErrorCode::InvalidArgument, concat_text("state '", name, "' is invalid after a failed run"),
                "write it whole, or call reset()");
  on->write_state(s, value.data(), window.offset, window.bytes);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::write_state");
}

void CompiledGraph::set_param(std::string_view name, const Tensor& value, Rows rows) try {
  const IoInfo& info = params()[find_io(params(), impl().code->param_index, name, "param", impl().code->source.name())];
  if (!info.shape.is_static())
    throw Error(ErrorCode::Unsupported, concat_text("param '", name, "' ", info.shape, " has unbound symbols"),
                "bind them with CompileOptions::dim_binding, or declare the param with numbers");
  Tensor converted;  // converted as set_param of the whole param does
  const bool converts = is_float(value.dtype()) && is_float(info.shape.dtype()) && value.dtype() != info.shape.dtype();
  if (converts && !value.empty()) {
    require_on_host("param", name, value);
    converted = value.cast(info.shape.dtype());
  }
  const Tensor& given = converted.empty() ? value : converted;
  const ByteWindow window = window_of("param", info, rows, &given);
  const Impl::Call on(impl(), Impl::Use::Change);
  if (!on->weights->has(info.name))
    throw Error(ErrorCode::NotFound, concat_text("param '", name, "' has no value yet, so its rows cannot be changed"),
                "set the whole param first");
  Tensor whole = on->weights->value(info.name);
  if (window.bytes != 0) std::memcpy(whole.mutable_data() + window.offset, given.data(), window.bytes);
  on->set_param(info, whole);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::set_param");
}

void CompiledGraph::reset() try { Impl::Call(impl(), Impl::Use::Own)->reset_states(); } catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::reset");
}

std::string place_text(const SharedPrograms& code) {
  std::string options;
  for (const auto& [key, value] : code.backend_options.options)
    options += concat_text(options.empty() ? ", " : " ", key, "=", value);
  return concat_text(device_text(code.device->id()), " (backend '", code.backend->name(), "'", options, ")");
}

std::size_t CompiledGraph::share_state_from(CompiledGraph& other) try {
  // The order is that of the addresses, so that two objects may share from each other.
  Impl* const first = std::min(&impl(), &other.impl(), std::less<>());
  Impl* const second = std::max(&impl(), &other.impl(), std::less<>());
  const Impl::Call on_first(*first, Impl::Use::Change);
  std::optional<Impl::Call> on_second;
  if (second != first) on_second.emplace(*second, Impl::Use::Change);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < states().size(); ++i)
    if (const std::optional<std::size_t> place = other.impl().code->state_index.find(states()[i].name)) {
      const std::size_t j = *place;
      const Shape &own = impl().states[i]->shape, &theirs = other.impl().states[j]->shape;
      if (!(own == theirs))
        throw Error(ErrorCode::ShapeMismatch,
                    concat_text("state '", states()[i].name, "' is ", own, " in graph '", impl().code->source.name(),
                                "' and ", theirs, " in graph '", other.impl().code->source.name(), "'"),
                    "shared states must have equal shapes");
      pairs.emplace_back(i, j);
    }
  if (!pairs.empty() && other.impl().device != impl().device) {
    const std::string here = place_text(*impl().code), there = place_text(*other.impl().code);
    throw Error(ErrorCode::InvalidArgument,
                concat_text("graph '", impl().code->source.name(), "' runs on ", here, ", graph '",
                            other.impl().code->source.name(), "' on ", there, ": they cannot share states",
                            here == there ? " because the device was reopened between them" : ""),
                "compile both with one Session, or with sessions of equal device, backend and options; or copy the "
                "states with read_state and write_state");
  }
  if (pairs.empty()) {
    if (states().empty())
      throw Error(ErrorCode::NotFound, concat_text("graph '", impl().code->source.name(), "' has no states to share"));
    (void)find_io(other.states(), states()[0].name, "state", other.impl().code->source.name());  // names the nearest
  }
  for (const auto& [i, j] : pairs) impl().states[i] = other.impl().states[j];
  ++impl().binding_generation;
  return pairs.size();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::share_state_from");
}

}  // namespace rlx
