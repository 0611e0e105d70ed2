// Runs that are checked for NaN: what they read, and the error that names where a NaN begins.
#include <algorithm>
#include <set>
#include <utility>

#include "rlx/exec/fetching.h"
#include "rlx/runtime/compiled_graph_impl.h"
#include "rlx/runtime/nan_search.h"

namespace rlx {

/// Copies of what a run reads, because the run may write over its inputs and states.
struct CompiledGraph::Impl::CheckedRun {
  NanCheck check = NanCheck::Nan;
  NamedTensors inputs, states;
};

namespace {
thread_local std::optional<NanCheck> scoped_check;

}  // namespace

/// A result of a run, with the first element that the check looks for.
struct CompiledGraph::Impl::FoundResult {
  std::string name;  // "output 'out0'"
  Value value;       // in the source graph
  Shape shape;
  std::vector<std::int64_t> element;
  std::string text;
};

NanCheckScope::NanCheckScope(NanCheck check) : before_(std::exchange(scoped_check, check)) { ++open_; }
NanCheckScope::~NanCheckScope() {
  scoped_check = before_;
  --open_;
}
std::optional<NanCheck> NanCheckScope::current() { return scoped_check; }

NanCheck parse_nan_check(std::string_view text, std::string_view what) {
  for (std::string_view off : {"", "0", "off", "false", "no"})
    if (text == off) return NanCheck::Off;
  for (std::string_view nan : {"1", "on", "true", "yes", "nan"})
    if (text == nan) return NanCheck::Nan;
  if (text == "inf") return NanCheck::NanOrInf;
  throw Error(ErrorCode::InvalidArgument, concat_text(what, " = '", text, "' is not a check for NaN"),
              "use 1 (NaN), inf (NaN and infinities) or 0");
}

void CompiledGraph::Impl::remember_run(const BoundInstance& s, std::span<const TensorView> views) {
  auto run = std::make_shared<CheckedRun>();
  run->check = nan_check();
  for (std::size_t i = 0; i < views.size(); ++i) {
    const Shape& shape = s.spec->inputs[i];
    Tensor value;
    if (views[i].buffer) {
      value = Tensor::uninitialized(shape);
      views[i].buffer->read({value.mutable_data(), value.size_bytes()});
    } else {
      value = Tensor::copy_of(views[i].data, shape);
    }
    run->inputs.emplace(code->inputs[i].name, std::move(value));
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Shape& shape = states[i]->shape;
    run->states.emplace(code->states[i].name, read_state(i, {0, shape.rank() == 0 ? 0 : shape.dim(0).value()}));
  }
  checked = std::move(run);
}

void CompiledGraph::Impl::check_results(const BoundInstance& s, const DeviceRun* on_device) {
  const std::shared_ptr<const CheckedRun> run = std::exchange(checked, nullptr);
  std::vector<FoundResult> found;
  const auto search = [&](const Tensor& t, std::string name, Value value) {
    if (const auto at = first_not_finite(t, run->check))
      found.push_back({std::move(name), value, t.shape(), position_of(t.shape(), *at), not_finite_text(t, *at)});
  };
  for (std::size_t o = 0; o < s.spec->outputs.size(); ++o) {
    const Shape& shape = s.spec->outputs[o];
    if (!may_be_nan(shape.dtype()) || shape.num_elements() == 0) continue;
    search(on_device ? on_device->outputs[o].to_host() : Tensor::borrowed(s.results[o], shape, nullptr),
           concat_text("output '", code->outputs[o].name, "'"), code->source.outputs()[o]);
  }
  for (const Graph::StateUpdate& u : code->source.state_updates()) {
    const std::size_t i = find_io(code->states, code->state_index, u.name, "state", code->source.name());
    const Shape& shape = states[i]->shape;
    if (may_be_nan(shape.dtype()))
      search(read_state(i, {0, shape.rank() == 0 ? 0 : shape.dim(0).value()}), concat_text("state '", u.name, "'"),
             u.value);
  }
  if (found.empty()) return;
  for (std::size_t i = 0; i < states.size(); ++i)
    write_state(*states[i], run->states.at(code->states[i].name).data(), 0, states[i]->shape.size_bytes());
  throw_not_finite(s, *run, found);
}

// Small programs for the search, on the device and with the settings of the run.
SmallProgram CompiledGraph::Impl::small_program(Graph g, const NamedTensors& params) const {
  CompileOptions options;
  options.policy = code->options.policy;
  if (!options.policy && code->module.stage() == GraphStage::Hir) options.policy = code->module.hir().policy;
  options.supported_ops = code->options.supported_ops;
  options.kernel_dispatch = code->options.kernel_dispatch;
  options.precision = code->options.precision;
  options.mesh = code->options.mesh;
  options.ordinal = code->options.ordinal;
  const std::shared_ptr<Impl> program = make(std::make_shared<SharedPrograms>(
      make_module(std::move(g)), code->backend, device, std::move(options), code->backend_options));
  for (const IoInfo& info : program->code->params) program->set_param(info, params.at(info.name));
  return [program](const std::vector<Tensor>& inputs) {
    NamedTensors named;
    for (std::size_t i = 0; i < inputs.size(); ++i) named.emplace(program->code->inputs[i].name, inputs[i]);
    return program->run_typed(named);
  };
}

void CompiledGraph::Impl::throw_not_finite(const BoundInstance& s, const CheckedRun& run,
                                           const std::vector<FoundResult>& found) {
  const FoundResult& first = found.front();
  const std::string graph = concat_text("graph '", code->source.name(), "': ");
  std::string reason, hint;
  try {
    if (code->module.stage() == GraphStage::Lir)
      throw Error(ErrorCode::Unsupported, "the program was compiled from a plan, whose ops cannot run alone");
    const bool dynamic = !code->source.is_static();
    const Graph bound = dynamic ? code->source.bind(s.spec->values) : Graph();
    SearchedRun searched{dynamic ? bound : code->source,
                         run.inputs,
                         run.states,
                         [this](const std::string& name) { return weights->value(name); },
                         [this](Graph g, const NamedTensors& params) { return small_program(std::move(g), params); },
                         run.check,
                         code->options.mesh.ranks() > 1};
    std::vector<Value> roots;
    for (const FoundResult& f : found) roots.push_back(f.value);
    const NanCheckScope unchecked(NanCheck::Off);
    if (std::optional<NanFound> at = find_nan(searched, roots)) {
      at->origin.reaches = first.name;
      Diagnostic d{ErrorCode::InvalidArgument, concat_text(graph, at->sentence, ", which reaches ", first.name),
                   std::move(at->where),
                   at->origin.op.empty() || at->origin.operands.empty()
                       ? "the check is CompileOptions::nan_check or RLX_NAN_CHECK"
                       : "its operands hold none there; the check is CompileOptions::nan_check or RLX_NAN_CHECK"};
      throw NotFinite(std::move(d), std::move(at->origin));
    }
    reason = "its ops, run one at a time, give none";
    hint =
        "rounding that depends on fusion or on packed weights makes the difference: compare with "
        "CompileOptions::fusion.skip_fusion";
  } catch (const NotFinite&) {
    throw;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::Interrupted) throw;
    reason = concat_text("the op is unknown: ", e.diagnostic().message);
    hint = e.diagnostic().hint;
  }
  NanOrigin origin;
  origin.element = first.element;
  origin.value = first.text;
  origin.reaches = first.name;
  const std::string element = concat_text(" in element ", dims_text(first.element), " of ", first.shape);
  throw NotFinite({ErrorCode::InvalidArgument,
                   concat_text(graph, first.name, " holds ", first.text, element, "; ", reason),
                   {},
                   std::move(hint)},
                  std::move(origin));
}

}  // namespace rlx
