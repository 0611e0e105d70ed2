// One instance: the program for the views of a run, bound to its memory, and its runs.
#include "rlx/runtime/absent_device.h"
#include "rlx/runtime/compiled_graph_impl.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <unordered_set>

#include "rlx/base/json_writer.h"
#include "rlx/base/sigbus_guard.h"
#include "rlx/base/trace.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {
namespace {

// The number of elements of a view without dimensions. Several counts have the same number of bytes when an element is
// smaller than a byte. This one fills the bytes, both for a new shape and for a cached shape.
std::int64_t element_count(const TensorView& view) {
  return static_cast<std::int64_t>(view.size_bytes * 8 / static_cast<std::size_t>(dtype_bits(view.dtype)));
}

}  // namespace

void throw_misaligned(std::string_view what, std::string_view name, DType dtype) {
  throw Error(ErrorCode::InvalidArgument,
              concat_text(what, " '", name, "': its address is not a multiple of ", alignment_of(dtype),
                          ", the alignment of ", dtype_name(dtype), " values"),
              "copy the bytes to aligned memory, for example with Tensor::copy_of");
}

CompiledGraph::Impl::Impl(std::shared_ptr<SharedPrograms> shared)
    : code(std::move(shared)),
      device(code->device),
      stream(device->stream()),
      weights(std::make_shared<WeightStore>(code->options.weight_cache(), code->options.precision
                                                                              ? code->options.precision->keep_values
                                                                              : KeepValues::Yes)),
      memory(device, std::max<std::size_t>(64, code->target->limits().alignment)) {}

std::unique_ptr<CompiledGraph::Impl> CompiledGraph::Impl::make(std::shared_ptr<SharedPrograms> code) {
  auto impl = std::make_unique<Impl>(std::move(code));
  for (const auto& [name, what] : impl->code->options.on_failure)
    (void)find_io(impl->code->states, impl->code->state_index, name, "state", impl->code->source.name());
  for (const IoInfo& s : impl->code->states) impl->states.push_back(impl->new_state(s));
  impl->note_what_runs_keep();
  impl->reset_states(true);
  // A program of known shapes, or with runtime symbols alone, is compiled at once, so that its errors appear here and
  // not in the first run.
  if (impl->code->source.is_static()) {
    std::vector<std::vector<std::int64_t>> dims;
    for (const IoInfo& info : impl->code->inputs) dims.push_back(info.shape.static_dims());
    impl->use(impl->code->specialize(dims));
  } else {
    impl->register_programs();
  }
  return impl;
}

BoundInstance& CompiledGraph::Impl::use(std::shared_ptr<const Specialization> spec) {
  for (auto it = shapes.begin(); it != shapes.end(); ++it)
    if ((*it)->spec == spec) {
      shapes.splice(shapes.begin(), shapes, it);
      return *shapes.front();
    }
  auto fresh = std::make_unique<BoundInstance>();
  fresh->spec = std::move(spec);
  const auto& c = fresh->spec->code;
  if (std::none_of(shapes.begin(), shapes.end(), [&](const auto& other) { return other->spec->code == c; }))
    weights->add(c->weights);
  fresh->inputs.resize(fresh->spec->inputs.size());
  fresh->outputs.resize(fresh->spec->outputs.size());
  fresh->results.resize(fresh->spec->outputs.size());
  fresh->input_buffer_slots.resize(fresh->inputs.size());
  fresh->output_buffer_slots.resize(fresh->outputs.size());
  shapes.push_front(std::move(fresh));
  constexpr std::size_t kMaxBound = 32;
  if (shapes.size() > kMaxBound) shapes.pop_back();
  return *shapes.front();
}

void CompiledGraph::Impl::register_programs() {
  std::set<std::shared_ptr<const Compilation>> programs;
  for (const auto& s : shapes) programs.insert(s->spec->code);
  if (programs.empty())
    if (auto common = code->common()) programs.insert(std::move(common));
  for (const auto& c : programs) weights->add(c->weights);
}

std::shared_ptr<const WeightTable> CompiledGraph::Impl::prepared(const std::shared_ptr<const Compilation>& c) {
  for (const auto& s : shapes) {
    if (s->binding_generation != binding_generation)
      s->weights.reset();  // its buffers may be written when nobody else holds them
    else if (s->spec->code == c)
      return s->weights;
  }
  const TraceScope traced(trace());
  const TraceSpan span("weights", "prepare weights", code->source.name());
  return std::make_shared<const WeightTable>(
      weights->prepare(c->weights, {*code->backend, *code->target, code->backend_options, *device, *stream}));
}

// Prepares the memory, tables and code of the next run. Does nothing once they are ready.
void CompiledGraph::Impl::bind(BoundInstance& s) {
  const Compilation& c = *s.spec->code;
  if (!s.bound) require_present();
  if (!s.bound && !memory.fits(c)) {  // what is bound fits: memory that grows unbinds all
    for (auto& other : shapes) other->bound.reset();
    memory.reserve(c, code->source.name());
  }
  if (place_states(c, s)) ++binding_generation;
  if (s.binding_generation != binding_generation) {
    s.weights = prepared(s.spec->code);
    s.states.clear(), s.cells.clear(), s.updates.clear(), s.moves.clear();
    const Graph& run = s.spec->lir().graph;
    std::unordered_set<std::string_view> updated;  // by the whole program, past any sync point
    for (const Graph::StateUpdate& u : c.executable->lir().graph.state_updates()) updated.insert(u.name);
    for (NodeId id : run.leaves(OpKind::State)) {
      const std::size_t i = find_io(code->states, code->state_index, run.leaf_name(id), "state", code->source.name());
      s.states.push_back(state_slot(*states[i]->device, states[i]->buffer, states[i]->shape));
      s.cells.push_back(i);
      s.updates.push_back(updated.contains(run.leaf_name(id)));
      s.moves.push_back(states[i]->moves);
    }
    s.before.resize(s.states.size());
    s.binding_generation = binding_generation;
  }
  if (s.bound) return;
  const TraceScope traced(trace());
  const TraceSpan span("bind", "bind", code->source.name());
  s.arenas = memory.arenas(c);
  s.bound = c.executable->bind(*device, s.spec->lir(), s.arenas);
}

InstanceInUse CompiledGraph::Impl::program_for(std::span<const TensorView>& views, std::vector<StepTime>* times) {
  InstanceInUse used(first_program(views));
  checked.reset();
  if (nan_check() != NanCheck::Off) remember_run(*used, views);
  if (!used->spec->is_last()) advance(used, views, times);
  return used;
}

// Finds the specialisation for the dimensions of the views. Finding the shape of the last run allocates nothing. The
// views are narrowed to the active extent.
BoundInstance& CompiledGraph::Impl::first_program(std::span<const TensorView>& views) {
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
    // Before anything reads it, including symbols that take their values from it.
    if (views[i].buffer) require_here("input", infos[i].name, *views[i].buffer);
    // Before the cache lookup: a byte count that matches the shape of an earlier run does not prove this shape.
    if (views[i].dims.empty() &&
        std::count_if(declared.dims().begin(), declared.dims().end(), [](const Dim& d) { return !d.is_static(); }) > 1)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("input '", infos[i].name, "' ", declared, " has more than one unknown dimension"),
                  "pass the dimensions with the data (TensorView::dims, or run_typed with tensors)");
  }
  if (extent) views = narrowed_to_extent(views);
  if (code->symbol_program) return program_by_value(views);
  for (auto it = shapes.begin(); it != shapes.end(); ++it) {
    bool match = (*it)->spec->stage == 0;
    for (std::size_t i = 0; i < views.size() && match; ++i) {
      const Shape& s = (*it)->spec->inputs[i];
      match = views[i].dims.empty() && s.rank() != 0
                  ? infos[i].shape.is_static() || element_count(views[i]) == s.num_elements()
                  : std::ranges::equal((*it)->spec->input_dims[i], views[i].dims);
    }
    if (!match) continue;
    // Equal element counts do not prove equal shapes when dimensions of other views changed. Those were compared above.
    if (it != shapes.begin()) shapes.splice(shapes.begin(), shapes, it);
    check_sizes(*shapes.front(), views);
    return *shapes.front();
  }
  std::vector<std::vector<std::int64_t>> dims;
  for (std::size_t i = 0; i < views.size(); ++i) dims.push_back(resolve_dims(infos[i], views[i]));
  BoundInstance& s = use(code->specialize(dims));
  check_sizes(s, views);
  return s;
}

void CompiledGraph::Impl::check_sizes(const BoundInstance& s, std::span<const TensorView> views) const {
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::size_t bytes = s.spec->input_bytes[i];
    if (views[i].size_bytes != bytes)
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text("input '", code->inputs[i].name, "' is ", s.spec->inputs[i], " (", bytes, " bytes), got ",
                              views[i].size_bytes, " bytes"),
                  concat_text("pass ", s.spec->inputs[i].num_elements(), " values"));
    if (!views[i].buffer && views[i].data == nullptr && bytes != 0)
      throw Error(ErrorCode::InvalidArgument, concat_text("input '", code->inputs[i].name, "' has no data"));
    require_aligned("input", code->inputs[i].name, views[i].data, views[i].dtype);
  }
}

void CompiledGraph::Impl::require_here(std::string_view what, std::string_view name, const Buffer& there) const {
  if (!(there.device() == device->id()))
    throw Error(ErrorCode::InvalidArgument,
                concat_text(what, " '", name, "' is on ", device_text(there.device()), ", but graph '",
                            code->source.name(), "' runs on ", device_text(device->id())),
                "copy it there with rlx::to(tensor, device)");
  if (const OpenDevice* theirs = there.opened(); theirs && theirs != device.get()) {
    if (theirs->lost())
      throw Error(ErrorCode::DeviceLost,
                  concat_text(what, " '", name, "' is in memory of device ", device_text(there.device()),
                              " that was lost; graph '", code->source.name(), "' runs on the reopened device"),
                  "compute the value again");
    throw Error(ErrorCode::InvalidArgument,
                concat_text(what, " '", name, "' is on ", device_text(there.device()),
                            ", opened by another backend or with other options; graph '", code->source.name(),
                            "' runs on ", place_text(*code)),
                "copy it there with rlx::to(tensor, *session.open_device())");
  }
  if (there.written().failed()) {
    require_device();
    throw Error(ErrorCode::InvalidArgument, concat_text(what, " '", name, "': the computation of this tensor failed"),
                "compute the tensor again");
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

void CompiledGraph::Impl::require_present() const { rlx::require_present(*code->backend, code->source.name()); }

void CompiledGraph::Impl::require_device() const {
  if (device->lost())
    throw Error(ErrorCode::DeviceLost,
                concat_text("device ", device_text(device->id()), ", which graph '", code->source.name(),
                            "' was compiled for, was lost"),
                "make a new session, which reopens the device, and compile the graph there");
}

void CompiledGraph::Impl::require_states() const {
  for (std::size_t i = 0; i < states.size(); ++i)
    if (!states[i]->good())
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("a failed run left state '", code->states[i].name, "' invalid"),
                  "call reset(), or write_state() for each state");
}

void CompiledGraph::Impl::begin(BoundInstance& s, std::span<const TensorView> views) {
  require_device();
  for (const std::shared_ptr<StateCell>& cell : states) {
    if (cell->before.empty()) continue;
    // A run receives the buffer that the previous run will make. When that run fails, there is no buffer. Runs of one
    // stream fail together. Runs of another stream continue, so this run is submitted only once the buffer is known.
    if (cell->writer.lock() != stream) wait_quietly(cell->written);
    cell->settle();
  }
  require_states();
  check_inputs_stay(s, views, false);
  // Weights and constants that the last run waited for may not have arrived, so they are copied again.
  if (run_thrown || last_run.failed()) {
    for (auto& program : shapes) program->bound.reset();
    ++binding_generation;
    run_thrown = false;
    last_run = {};
  }
  bind(s);
  require_states();  // the work that moved a state from another device may have failed only now
  for (std::size_t i = 0; i < views.size(); ++i)
    s.inputs[i] =
        input_slot(*device, *stream, views[i], s.spec->inputs[i], memory.input_room(i), s.input_buffer_slots[i]);
}

const CompiledGraph::Impl::RunNames& CompiledGraph::Impl::run_names() {
  if (names.serial == trace()->serial()) return names;
  const std::string args = JsonWriter(kHtmlJson).member("of", code->source.name()).take();
  names = {trace()->serial(), trace()->name("run", "run", args), trace()->name("run", "submit", args)};
  if (runs_apart()) names.device = trace()->track(device_text(device->id()));
  return names;
}

Event CompiledGraph::Impl::submit(BoundInstance& s, StepRange range, std::span<const RunSlot> outputs, bool writes,
                                  std::vector<StepTime>* times) {
  for (std::size_t k = 0; k < s.cells.size(); ++k) {
    StateCell& cell = *states[s.cells[k]];
    // Kept rows that are written in place stay valid, even if that work failed.
    if (!cell.keep || s.states[k].buffer_slot)
      wait_behind(*stream, cell.written);
    else if (!cell.written.ready())
      stream->wait_order(cell.written);
    if (cell.last.point() != cell.written.point() && !cell.last.ready()) stream->wait_order(cell.last);
    if (s.renews(k) && cell.keep) cell.before.reserve(cell.before.size() + 1);
  }
  for (std::size_t k = 0; k < s.cells.size(); ++k) {
    StateCell& cell = *states[s.cells[k]];
    s.states[k].donated = false;
    if (!writes || !s.updates[k]) continue;
    if (!s.renews(k)) {
      cell.valid = cell.keep;  // written in place: the time of the write is unknown
      continue;
    }
    s.before[k] = cell.buffer;
    if (cell.keep) cell.before.push_back({{}, cell.buffer, cell.written});
    s.states[k].donated = sole_owner(cell.buffer);
  }
  Event done;
  Trace* const apart = trace() && runs_apart() ? trace() : nullptr;
  const TraceSpan span(apart, apart ? run_names().submit : 0, apart ? run_names().device : 0);
  try {
    const GuardedReads reads;
    done = s.bound->submit({s.inputs, outputs, s.states, s.weights->views, binding_generation, times, range}, *stream);
    if (any_damaged_mapping()) check_files(s);
  } catch (...) {
    run_thrown = true;
    follow_submitted(s);
    if (writes) revoke(s, false);
    throw;
  }
  last_run = done;
  if (!writes) return done;
  for (std::size_t k = 0; k < s.cells.size(); ++k) {
    StateCell& cell = *states[s.cells[k]];
    cell.last = done;
    if (!s.updates[k]) continue;
    cell.written = done;
    if (cell.keep) cell.writer = stream;
    if (s.renews(k) && cell.keep) cell.before.back().run = done;
  }
  return done;
}

namespace {
// The constants that the compile or the run may have read, those of bodies among them.
void check_constants(const Graph& g) {
  for (const Node& n : g.nodes()) {
    if (const auto* c = n.op.get_if<ops::Constant>())
      GuardedReads::check(c->value.empty() ? nullptr : c->value.data());
    else if (const auto* s = n.op.get_if<ops::State>())
      GuardedReads::check(s->init.empty() ? nullptr : s->init.data());
    else
      for (const Subgraph& body : body_graphs(n.op)) check_constants(*body);
  }
}
}  // namespace

// Whether the run has read a mapped file that lost pages.
void CompiledGraph::Impl::check_files(const BoundInstance& s) {
  weights->check_files();
  for (const RunSlot& input : s.inputs) GuardedReads::check(input.view.host);
  check_constants(code->source);
}

// Parts of the run may already be submitted. Later writers of the states wait for them.
void CompiledGraph::Impl::follow_submitted(BoundInstance& s) {
  Event so_far;
  try {
    so_far = stream->record();
  } catch (...) {  // then all of it is done; the current error says more
  }
  for (std::size_t i : s.cells) states[i]->last = so_far;
}

// After a failed run: restores kept states, and invalidates states that the run may have written. A state whose buffer
// each run replaces (`renews`) was written or donated if it has a different buffer now, or none. A state that is
// written in place is already invalid.
void CompiledGraph::Impl::revoke(BoundInstance& s, bool submitted) {
  for (std::size_t k = 0; k < s.cells.size(); ++k) {
    StateCell& cell = *states[s.cells[k]];
    if (!s.updates[k]) continue;
    const std::weak_ptr<Buffer>& before = s.before[k];
    const bool same = cell.buffer && !before.owner_before(cell.buffer) && !cell.buffer.owner_before(before);
    if (cell.keep && s.renews(k)) {
      cell.buffer = std::move(cell.before.back().buffer);
      cell.written = std::move(cell.before.back().written);
      cell.before.pop_back();
    } else if (!cell.keep && (submitted || (s.renews(k) && !same))) {
      cell.valid = false;
    }
  }
}

Event CompiledGraph::Impl::run(BoundInstance& s, std::span<const TensorView> views, const RunOptions& options) {
  DeviceRun* const on_device = options.on_device;
  std::vector<FreshValue> fresh;
  if (options.wait && !handles.empty()) fresh = room_for_handles(s);
  std::optional<Fetching> fetching;  // of outputs in the caller's memory
  if (options.wait) fetching.emplace(*stream);
  Trace* const to = trace();
  const TraceScope traced(to);
  const TraceSpan span(to, to ? run_names().run : 0);
  if (s.spec->stage == 0)
    begin(s, views);
  else
    bind(s);
  for (const LirAlias& a : s.spec->lir().plan.aliases) {
    RunSlot& slot = s.inputs[a.input];
    if (!slot.buffer_slot || !a.refused.empty()) continue;
    if (on_device && on_device->given) on_device->given->erase(code->inputs[a.input].name);
    slot.donated = sole_owner(*slot.buffer_slot);
  }
  if (on_device) on_device->outputs.resize(s.outputs.size());
  for (std::size_t o = 0; o < s.outputs.size(); ++o)
    s.outputs[o] = on_device ? value_slot(*device, s.spec->outputs[o], on_device->outputs[o], s.output_buffer_slots[o])
                             : output_slot(*device, s.results[o], s.spec->output_bytes[o], memory.output_room(o),
                                           s.output_buffer_slots[o]);
  const Event done = submit(s, {s.spec->first_step()}, s.outputs, true, options.times);
  for (std::size_t i : s.cells) states[i]->valid = true;
  Event end;
  try {
    for (std::size_t i = 0; i < views.size(); ++i)
      if (s.inputs[i].buffer_slot) s.input_buffer_slots[i].reset();
    for (std::size_t o = 0; o < s.outputs.size(); ++o) {
      const Shape& shape = s.spec->outputs[o];
      if (on_device) {
        keep_value(s.outputs[o], shape, done, on_device->outputs[o]);
        continue;
      }
      Buffer* const ours = memory.in_results(s.results[o], 1) ? memory.results_buffer() : nullptr;
      fetch_output(*device, *stream, s.outputs[o], shape, s.results[o], ours);
    }
    end = stream->record();
    if (end.point() && memory.results_buffer()) memory.results_buffer()->set_written(end);
  } catch (...) {  // the run was submitted, and nobody gets its results
    revoke(s, true);
    throw;
  }
  if (checked) {
    end.wait();
    check_results(s, on_device);
  }
  if (fetching) fetching->finish(end);
  if (options.wait && !handles.empty()) update_handles(s, fresh);
  return end;
}

// Everything that allocates runs before the states change.
std::vector<CompiledGraph::Impl::FreshValue> CompiledGraph::Impl::room_for_handles(const BoundInstance& s) {
  std::vector<FreshValue> fresh;
  for (auto& [name, handle] : handles) {
    if (!handle.output) continue;
    const Shape& shape = s.spec->outputs[*handle.output];
    if (!handle.ours || !(handle.value.shape() == shape))
      fresh.push_back({handle, Tensor::uninitialized(shape), shape.static_dims()});
  }
  return fresh;
}

void CompiledGraph::Impl::update_handles(const BoundInstance& s, std::vector<FreshValue>& fresh) {
  for (FreshValue& f : fresh) {
    f.handle.value = std::move(f.value);
    f.handle.dims = std::move(f.dims);
    f.handle.ours = true;
  }
  for (auto& [name, handle] : handles)
    if (handle.output && handle.value.size_bytes() != 0)
      std::memcpy(handle.value.mutable_data(), s.results[*handle.output], handle.value.size_bytes());
}

void CompiledGraph::Impl::keep_results(BoundInstance& s, std::span<const TensorView> views) {
  check_inputs_stay(s, views, true);
  bind(s);
  results_of.store(this_thread(), std::memory_order_relaxed);
  for (std::size_t i = 0; i < s.spec->slots.size(); ++i) s.results[i] = memory.results() + s.spec->slots[i].offset;
}

InstanceInUse CompiledGraph::Impl::program_for_f32(std::span<const TensorView>& views,
                                                   std::vector<std::vector<float>>& results) {
  for (const IoInfo& out : code->outputs)
    if (out.shape.dtype() != DType::F32)
      throw Error(ErrorCode::DTypeMismatch,
                  concat_text("output '", out.name, "' is ", out.shape, ", but run returns f32"), "use run_typed");
  InstanceInUse used = program_for(views);
  BoundInstance& s = *used;
  for (std::size_t i = 0; i < s.spec->outputs.size(); ++i) {
    const Shape& shape = s.spec->outputs[i];
    results.push_back(make_room(code->source.name(), concat_text("output ", i, ' ', shape), shape.size_bytes(),
                                [&] { return std::vector<float>(static_cast<std::size_t>(shape.num_elements())); }));
    s.results[i] = results.back().data();
  }
  return used;
}

BoundInstance& CompiledGraph::Impl::last() const {
  if (shapes.empty())
    throw Error(ErrorCode::InvalidArgument, "nothing is compiled yet: the graph's shapes are known at the first run",
                "call prepare_shape or run first");
  return *shapes.front();
}

}  // namespace rlx
