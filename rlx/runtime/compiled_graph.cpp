// CompiledGraph: its properties, and its runs by name, by position and on the device.
#include "rlx/runtime/compiled_graph.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "rlx/device/registry.h"
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

CompiledGraph::CompiledGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CompiledGraph::CompiledGraph(CompiledGraph&&) noexcept = default;
CompiledGraph& CompiledGraph::operator=(CompiledGraph&& other) noexcept {
  if (this == &other) return *this;
  Impl::retire(std::exchange(impl_, std::move(other.impl_)));
  return *this;
}
CompiledGraph::~CompiledGraph() { Impl::retire(std::move(impl_)); }

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

std::vector<std::vector<float>> CompiledGraph::run(std::initializer_list<NamedInput> given) try {
  return run(std::vector<NamedInput>(given));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run");
}

std::vector<std::vector<float>> CompiledGraph::Impl::run(const std::vector<NamedInput>& given) {
  const std::vector<TensorView> given_views = views_of(given);
  std::span<const TensorView> views = given_views;
  std::vector<std::vector<float>> results;
  const InstanceInUse used = program_for_f32(views, results);
  BoundInstance& s = *used;
  run(s, views, {});
  return results;
}

std::vector<std::vector<float>> CompiledGraph::run(const std::vector<NamedInput>& given) try {
  return Impl::Call(impl(), Impl::Use::AnyInstance)->run(given);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run");
}

std::vector<Tensor> CompiledGraph::Impl::run_typed(const NamedTensors& given) {
  std::vector<std::vector<std::int64_t>> dims;
  const std::vector<TensorView> given_views = views_of(given, dims);
  std::span<const TensorView> views = given_views;
  const InstanceInUse used = program_for(views);
  BoundInstance& s = *used;
  std::vector<Tensor> results;
  for (const Shape& shape : s.spec->outputs)
    results.push_back(make_room(code->source.name(), concat_text("output ", results.size(), ' ', shape),
                                shape.size_bytes(), [&] { return Tensor::uninitialized(shape); }));
  for (std::size_t i = 0; i < results.size(); ++i) s.results[i] = results[i].mutable_data();
  run(s, views, {});
  return results;
}

std::vector<Tensor> CompiledGraph::run_typed(const NamedTensors& given) try {
  return Impl::Call(impl(), Impl::Use::AnyInstance)->run_typed(given);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_typed");
}

std::vector<Tensor> CompiledGraph::Impl::run_device(const NamedTensors& inputs, NamedTensors* given) {
  if (has_output_handles()) {
    std::vector<Tensor> results = run_typed(inputs);
    for (Tensor& t : results) t = value_on(*device, t);
    return results;
  }
  std::vector<std::vector<std::int64_t>> dims;
  const std::vector<TensorView> given_views = views_of(inputs, dims);
  std::span<const TensorView> views = given_views;
  const InstanceInUse used = program_for(views);
  BoundInstance& s = *used;
  DeviceRun on_device{{}, given};
  (void)run(s, views, {.wait = false, .on_device = &on_device});
  return std::move(on_device.outputs);
}

std::vector<Tensor> CompiledGraph::run_device(const NamedTensors& given) try {
  return Impl::Call(impl(), Impl::Use::AnyInstance)->run_device(given, nullptr);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_device");
}

std::vector<Tensor> CompiledGraph::run_device(NamedTensors&& given) try {
  const Impl::Call on(impl(), Impl::Use::AnyInstance);
  if (on->has_output_handles()) return on->run_device(given, nullptr);
  NamedTensors ours = std::move(given);
  return on->run_device(ours, &ours);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_device");
}

void CompiledGraph::run_into(std::span<const TensorView> in, std::span<const MutableTensorView> out) try {
  const Impl::Call on(impl(), Impl::Use::AnyInstance);
  const InstanceInUse used = on->program_for(in);
  BoundInstance& s = *used;
  if (out.size() != s.spec->outputs.size())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("graph '", on->code->source.name(), "' has ", s.spec->outputs.size(),
                            " outputs, got views for ", out.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Shape& shape = s.spec->outputs[i];
    const std::size_t bytes = s.spec->output_bytes[i];
    const std::string& name = on->code->outputs[i].name;
    if (out[i].dtype != shape.dtype())
      throw Error(ErrorCode::DTypeMismatch,
                  concat_text("output '", name, "' is ", shape, ", the view is ", dtype_name(out[i].dtype)),
                  "pass a view of the declared dtype");
    const bool padded = on->extent && out[i].size_bytes > bytes;  // room for rows that are not computed
    if (out[i].size_bytes != bytes && !padded)
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text("output '", name, "' is ", shape, " (", bytes, " bytes), the view has ",
                              out[i].size_bytes, " bytes"),
                  concat_text("pass a view of ", shape.num_elements(), " values"));
    if (out[i].data == nullptr && bytes != 0)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("output '", name, "' has no memory: the pointer of the view is null"));
    require_aligned("output", name, out[i].data, out[i].dtype);
    s.results[i] = out[i].data;
  }
  on->check_overlap(s, in, out);
  on->run(s, in, {});
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_into");
}

std::span<const Slot> CompiledGraph::run_slots(std::span<const TensorView> in) try {
  const Impl::Call on(impl(), Impl::Use::Own);
  const InstanceInUse used = on->program_for(in);
  BoundInstance& s = *used;
  on->keep_results(s, in);
  on->run(s, in, {});
  return s.spec->slots;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::run_slots");
}

const std::byte* CompiledGraph::arena_ptr() const { return Impl::Call(impl(), Impl::Use::Own)->memory.results(); }

void CompiledGraph::prepare_shape(std::span<const std::vector<std::int64_t>> dims) try {
  if (dims.size() != inputs().size())
    throw Error(ErrorCode::InvalidArgument, concat_text("graph '", impl().code->source.name(), "' takes ",
                                                        inputs().size(), " inputs, got dimensions for ", dims.size()));
  const Impl::Call on(impl(), Impl::Use::Own);
  on->bind(on->use(on->code->specialize({dims.begin(), dims.end()})));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::prepare_shape");
}

namespace {
// A prepared weight is read in its packed layout, which may hold less or more bytes than its shape says. Opaque devices
// have no packed layouts, and no plan of places.
Cost cost_of(const BoundInstance& s, const Node& n) {
  const LirModule& lir = s.spec->lir();
  std::vector<Shape> ins;
  for (Value v : n.inputs) ins.push_back(lir.graph.shape(v));
  Cost cost = op_def(n.op).cost(CostContext{n.op, ins, n.shapes});
  for (std::size_t i = 0; i < ins.size() && !lir.plan.opaque; ++i) {
    const LirValue& value = lir.plan.at(n.inputs[i]);
    if (value.place == Place::Prepared)
      cost.read_bytes +=
          static_cast<double>(s.weights->views[value.index].bytes) - static_cast<double>(ins[i].size_bytes());
  }
  return cost;
}
}  // namespace

std::vector<NodeTime> CompiledGraph::profile(std::span<const TensorView> in) try {
  const Impl::Call on(impl(), Impl::Use::Own);
  std::vector<StepTime> times, late;
  const InstanceInUse used = on->program_for(in, &times);
  BoundInstance& s = *used;
  on->keep_results(s, in);
  on->run(s, in, {.times = &late});
  times.insert(times.end(), late.begin(), late.end());
  const Graph& g = s.spec->lir().graph;
  std::vector<NodeTime> out;
  for (const StepTime& t : times) {
    if (!t.node.valid()) {  // the device reports only the time of the whole run
      NodeTime whole{g.name(), "the whole graph", std::string(on->code->target->name()), t.ns, {}, {}};
      for (const Node& n : g.nodes()) {
        const Cost c = cost_of(s, n);
        whole.cost.flops += c.flops;
        whole.cost.read_bytes += c.read_bytes;
        whole.cost.write_bytes += c.write_bytes;
      }
      out.push_back(std::move(whole));
      continue;
    }
    const Node& n = g.node(t.node);
    out.push_back({node_label(g, t.node), op_text_name(n.op), s.spec->code->executable->kernel_name(t.node), t.ns,
                   cost_of(s, n), t.node});
  }
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::profile");
}

std::vector<NodeTime> median_profile(CompiledGraph& program, std::span<const TensorView> inputs, int runs) {
  if (runs < 1)
    throw Error(ErrorCode::InvalidArgument, concat_text("a profile of ", runs, " runs"), "ask for one or more runs");
  std::vector<std::vector<NodeTime>> profiles;
  for (int i = 0; i < runs; ++i) profiles.push_back(program.profile(inputs));
  std::vector<NodeTime> out = profiles[0];
  for (std::size_t n = 0; n < out.size(); ++n) {
    std::vector<double> ns;
    for (const auto& profile : profiles)
      if (n < profile.size()) ns.push_back(profile[n].ns);
    const auto middle = ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2);
    std::nth_element(ns.begin(), middle, ns.end());
    out[n].ns = *middle;
  }
  return out;
}

std::unique_ptr<CompiledGraph::Impl> CompiledGraph::Impl::copy() {
  auto copy = std::make_unique<Impl>(code);
  copy->weights = weights;
  copy->extent = extent;
  copy->extent_rows = extent_rows;
  copy->handles = handles;
  for (auto& [name, handle] : copy->handles)
    if (!handle.value.buffer())  // a device tensor with several owners is never overwritten, so it can be shared
      handle.value = Tensor::copy_of(handle.value.data(), handle.value.shape());
  for (const auto& s : states) copy->states.push_back(copy->copy_of(*s));
  for (auto it = shapes.rbegin(); it != shapes.rend(); ++it) copy->use((*it)->spec);
  copy->note_what_runs_keep();
  return copy;
}

CompiledGraph CompiledGraph::clone() const try {
  return CompiledGraph(Impl::Call(impl(), Impl::Use::AnyInstance)->copy());
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::clone");
}

const CompileResult& CompiledGraph::compile_result() const try {
  const Impl::Call on(impl(), Impl::Use::Own);
  std::shared_ptr<const Compilation> program;
  if (on->shapes.empty()) program = on->code->common();
  if (!program) program = on->last().spec->code;
  // The result stays while runs of other threads use other shapes.
  auto& shown = on->shown;
  if (std::find(shown.begin(), shown.end(), program) == shown.end()) {
    constexpr std::size_t kMaxShown = 32;
    if (shown.size() == kMaxShown) shown.erase(shown.begin());
    shown.push_back(program);
  }
  return program->result;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::compile_result");
}
std::string CompiledGraph::code() const try {
  const Impl::Call on(impl(), Impl::Use::Own);
  const auto common = on->shapes.empty() ? on->code->common() : on->last().spec->code;
  return common ? common->executable->code() : std::string();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::code");
}
std::size_t CompiledGraph::arena_bytes() const {
  const Impl::Call on(impl(), Impl::Use::Own);
  return on->shapes.empty() ? 0 : on->last().spec->code->memory_bytes();
}
std::size_t CompiledGraph::prepared_bytes() const try {
  return Impl::Call(impl(), Impl::Use::Nothing)->weights->bytes();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("CompiledGraph::prepared_bytes");
}

}  // namespace rlx
