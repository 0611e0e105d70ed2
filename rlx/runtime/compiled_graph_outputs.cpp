// The outputs of a compiled graph: in the caller's memory or its own, at once or when the caller waits.
#include <algorithm>
#include <cstring>
#include <utility>

#include "rlx/runtime/compiled_graph_impl.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

namespace {

bool meet(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes && a_bytes != 0 && b_bytes != 0;
}

}  // namespace

// Results must not overlap inputs or each other, except an input that was donated for the result.
void CompiledGraph::Impl::check_overlap(const BoundInstance& s, std::span<const TensorView> in,
                                        std::span<const MutableTensorView> out) const {
  for (std::size_t o = 0; o < out.size(); ++o) {
    for (std::size_t p = 0; p < o; ++p)
      if (meet(out[o].data, out[o].size_bytes, out[p].data, out[p].size_bytes))
        throw Error(ErrorCode::InvalidArgument, concat_text("outputs '", code->outputs[p].name, "' and '",
                                                            code->outputs[o].name, "' are given the same memory"));
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (!meet(out[o].data, out[o].size_bytes, in[i].data, in[i].size_bytes)) continue;
      std::string_view why = "the input is not donated to this output: name the pair in CompileOptions::donate";
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

void CompiledGraph::Impl::check_inputs_stay(const BoundInstance& s, std::span<const TensorView> in,
                                            bool to_results) const {
  if (!memory.reads_inputs_in_place()) return;  // inputs are copied before anything is written
  for (std::size_t i = 0; i < in.size(); ++i) {
    const TensorView& v = in[i];
    const bool in_arenas = memory.in_arenas(v.data, v.size_bytes);
    if (!in_arenas && !memory.in_results(v.data, v.size_bytes)) continue;
    if (memory.fits(*s.spec->code) && !in_arenas) {
      if (!to_results) continue;
      // In place: a donated input is read before its output is written there.
      const std::vector<LirAlias>& aliases = s.spec->lir().plan.aliases;
      if (std::any_of(aliases.begin(), aliases.end(), [&](const LirAlias& a) {
            return a.input == i && a.refused.empty() && v.data == memory.results() + s.spec->slots[a.output].offset;
          }))
        continue;
    }
    throw Error(ErrorCode::InvalidArgument,
                concat_text("input '", code->inputs[i].name, "' of graph '", code->source.name(),
                            "' is in memory of this CompiledGraph, which the run overwrites"),
                "results of run_slots and run_raw last until the next run: copy them first, or use run_into or "
                "run_typed");
  }
}

std::vector<TensorView> CompiledGraph::Impl::run_to_views(std::span<const TensorView> views) {
  const InstanceInUse used = program_for(views);
  BoundInstance& s = *used;
  keep_results(s, views);
  std::vector<std::vector<std::int64_t>> dims;
  std::vector<TensorView> out;
  for (const Shape& shape : s.spec->outputs) dims.push_back(shape.static_dims());
  for (std::size_t i = 0; i < dims.size(); ++i)
    out.push_back({s.results[i], s.spec->outputs[i].dtype(), dims[i], s.spec->outputs[i].size_bytes()});
  run(s, views, {});
  raw_dims = std::move(dims);  // the views keep pointing to the same numbers
  committed_by = s.spec;
  committed = s.spec->slots;
  pending = {};
  return out;
}

Event CompiledGraph::Impl::start_run(const std::vector<NamedInput>& given, std::vector<std::vector<float>>& results) {
  const std::vector<TensorView> given_views = views_of(given);
  std::span<const TensorView> views = given_views;
  const InstanceInUse used = program_for_f32(views, results);
  BoundInstance& s = *used;
  return run(s, views, {.wait = false});
}

bool CompiledGraph::Impl::has_output_handles() const {
  return std::any_of(handles.begin(), handles.end(), [](const auto& h) { return h.second.output.has_value(); });
}

void CompiledGraph::Impl::commit(std::span<const TensorView> views) {
  if (has_output_handles()) return (void)run_to_views(views);  // waits: the next run may read results of handles
  const InstanceInUse used = program_for(views);
  BoundInstance& s = *used;
  keep_results(s, views);
  pending = run(s, views, {.wait = false});
  committed_by = s.spec;
  committed = s.spec->slots;
}

std::vector<TensorView> CompiledGraph::run_raw(std::initializer_list<NamedInput> given) try {
  return run_raw(std::vector<NamedInput>(given));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_raw");
}

std::vector<TensorView> CompiledGraph::run_raw(const std::vector<NamedInput>& given) try {
  const Impl::Call on(impl(), Impl::Use::Own);
  return on->run_to_views(on->views_of(given));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_raw");
}

std::vector<TensorView> CompiledGraph::run_raw(const NamedTensors& given) try {
  std::vector<std::vector<std::int64_t>> dims;
  const Impl::Call on(impl(), Impl::Use::Own);
  return on->run_to_views(on->views_of(given, dims));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_raw");
}

std::vector<std::vector<std::vector<float>>> CompiledGraph::run_pipelined(
    const std::vector<std::vector<NamedInput>>& sets) try {
  std::vector<std::vector<std::vector<float>>> out;
  out.reserve(sets.size());
  const Impl::Call on(impl(), Impl::Use::AnyInstance);
  if (on->has_output_handles()) {  // each run reads the results of the previous one
    for (const std::vector<NamedInput>& set : sets) out.push_back(on->run(set));
    return out;
  }
  Fetching fetching(*on->stream);
  Event done;
  for (const std::vector<NamedInput>& set : sets) done = on->start_run(set, out.emplace_back());
  fetching.finish(done);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_pipelined");
}

void CompiledGraph::commit_no_wait(std::initializer_list<NamedInput> given) try {
  commit_no_wait(std::vector<NamedInput>(given));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::commit_no_wait");
}
void CompiledGraph::commit_no_wait(const std::vector<NamedInput>& given) try {
  const Impl::Call on(impl(), Impl::Use::Own);
  on->commit(on->views_of(given));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::commit_no_wait");
}
void CompiledGraph::commit_no_wait(const NamedTensors& given) try {
  std::vector<std::vector<std::int64_t>> dims;
  const Impl::Call on(impl(), Impl::Use::Own);
  on->commit(on->views_of(given, dims));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::commit_no_wait");
}

std::span<const Slot> CompiledGraph::sync_pending() {
  const Impl::Call on(impl(), Impl::Use::Own);
  const std::span<const Slot> slots = std::exchange(on->committed, {});  // a failed run left none
  std::exchange(on->pending, {}).wait();
  return slots;
}

std::size_t CompiledGraph::output_index(std::string_view name) const try {
  return find_io(outputs(), impl().code->output_index, name, "output", impl().code->source.name());
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::output_index");
}

}  // namespace rlx
