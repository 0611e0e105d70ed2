// States of a compiled graph: cells on its device that runs write and the host reads between them.
#include <algorithm>
#include <cstring>

#include "rlx/ir/ops/leaves.h"
#include "rlx/runtime/compiled_graph_impl.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

std::shared_ptr<StateCell> CompiledGraph::Impl::new_state(const Shape& shape) const {
  return std::make_shared<StateCell>(StateCell{device->allocate(shape.size_bytes(), BufferUse::States), shape});
}

// The cell is written behind all that was submitted for it: by whichever stream, so the host waits for that. Work that
// failed is no reason to fail here: this is how one goes on after it, and what nobody saw of it on our stream ends
// here.
void CompiledGraph::Impl::write_state(StateCell& cell, const std::byte* data) {
  require_device();
  for (const Event& e : {cell.last, stream->record()}) try {
      e.wait();
    } catch (const Error&) {
    }
  cell.valid = false;
  const std::size_t bytes = cell.shape.size_bytes();
  if (data) {
    if (bytes != 0) stream->upload({data, bytes}, cell.view());
  } else {
    static constexpr std::byte zeros[std::size_t{1} << 16]{};
    for (std::size_t at = 0; at < bytes; at += sizeof zeros) {
      const std::size_t n = std::min(sizeof zeros, bytes - at);
      stream->upload({zeros, n}, BufferView(*cell.buffer, at, n));
    }
  }
  cell.last = stream->record();
  cell.valid = true;
}

Tensor CompiledGraph::Impl::read_state(std::size_t i) const {
  require_device();
  StateCell& cell = *states[i];
  try {
    cell.last.wait();
  } catch (const Error&) {
  }
  if (!cell.good())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("state '", code->states[i].name, "' is invalid after a failed run"),
                "call reset(), or write_state()");
  Tensor value = Tensor::uninitialized(cell.shape);
  if (value.size_bytes() == 0) return value;
  Fetching fetching(*stream);
  stream->download(cell.view(), {value.mutable_data(), value.size_bytes()});
  fetching.finish(stream->record());
  return value;
}

std::shared_ptr<StateCell> CompiledGraph::Impl::copy_of(StateCell& cell) const {
  std::shared_ptr<StateCell> copy = new_state(cell.shape);
  try {
    cell.last.wait();
  } catch (const Error&) {
  }
  copy->valid = cell.good();
  if (!copy->valid || cell.shape.size_bytes() == 0) return copy;
  stream->copy(cell.view(), copy->view());
  copy->last = stream->record();
  return copy;
}

void CompiledGraph::Impl::reset_states() {
  const std::vector<NodeId> leaves = code->source.leaves(OpKind::State);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Tensor& init = code->source.node(leaves[i]).op.as<ops::State>().init;
    write_state(*states[i], init.empty() ? nullptr : init.data());
  }
}

Tensor CompiledGraph::read_state(std::string_view name) const try {
  return impl().read_state(find_io(states(), impl().code->state_index, name, "state", impl().code->source.name()));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::read_state");
}

void CompiledGraph::write_state(std::string_view name, const Tensor& value) try {
  StateCell& s = *impl().states[find_io(states(), impl().code->state_index, name, "state", impl().code->source.name())];
  if (value.dtype() != s.shape.dtype())
    throw Error(ErrorCode::DTypeMismatch, concat_text("state '", name, "' is ", s.shape, ", got ", value.shape()),
                "pass the declared dtype");
  if (!(value.shape() == s.shape))
    throw Error(ErrorCode::ShapeMismatch, concat_text("state '", name, "' is ", s.shape, ", got ", value.shape()));
  if (value.empty() && s.shape.size_bytes() != 0)
    throw Error(ErrorCode::InvalidArgument, concat_text("state '", name, "' is ", s.shape, ", got an empty tensor"));
  impl().write_state(s, value.data());
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
      const Shape &own = impl().states[i]->shape, &theirs = other.impl().states[j]->shape;
      if (!(own == theirs))
        throw Error(ErrorCode::ShapeMismatch,
                    concat_text("state '", states()[i].name, "' is ", own, " in graph '", impl().code->source.name(),
                                "' and ", theirs, " in graph '", other.impl().code->source.name(), "'"),
                    "states that are shared have one shape");
      pairs.emplace_back(i, j);
    }
  if (!pairs.empty() && other.impl().device != impl().device)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("graph '", impl().code->source.name(), "' runs on ", device_text(impl().device->id()),
                            ", graph '", other.impl().code->source.name(), "' on ",
                            device_text(other.impl().device->id()), ": they cannot share states"),
                "compile both for one device, or copy with read_state and write_state");
  if (pairs.empty()) {
    if (states().empty())
      throw Error(ErrorCode::NotFound, concat_text("graph '", impl().code->source.name(), "' has no states to share"));
    (void)find_io(other.states(), states()[0].name, "state", other.impl().code->source.name());  // names the nearest
  }
  for (const auto& [i, j] : pairs) impl().states[i] = other.impl().states[j];
  ++impl().tables;
  return pairs.size();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::share_state_from");
}

}  // namespace rlx
