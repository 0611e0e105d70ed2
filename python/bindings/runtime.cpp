// Sessions and compiled programs in Python.
#include "python/bindings/runtime.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "rlx/base/stop_request.h"
#include "rlx/base/trace.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/device/plugin_backend.h"
#include "rlx/device/registry.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/op_def.h"
#include "rlx/report/report.h"
#include "rlx/runtime/env.h"
#include "rlx/runtime/nan_check.h"

namespace rlx::python {

DeviceId device_from(const std::string& text) {
  if (const auto id = parse_device_id(text)) return *id;
  throw Error(no_such_device(text));
}

namespace {

Precision precision_from(const std::string& text) {
  const auto t = parse_dtype(text);
  if (text == "float32" || t == DType::F32) return Precision::F32;
  if (text == "float16" || t == DType::F16) return Precision::F16;
  if (text == "bfloat16" || t == DType::BF16) return Precision::BF16;
  raise(ErrorCode::InvalidArgument, concat_text("precision '", text, "' is not one of float32, float16 and bfloat16"));
}

MatmulPrecision matmul_precision_from(const std::string& text) {
  if (text == "exact") return MatmulPrecision::Exact;
  if (text == "bfloat16" || text == "bf16") return MatmulPrecision::BF16;
  if (text == "int8") return MatmulPrecision::Int8;
  raise(ErrorCode::InvalidArgument,
        concat_text("matmul_precision '", text, "' is not one of exact, bfloat16 and int8"));
}

}  // namespace

DeviceOptions device_options_from(nb::handle h) {
  DeviceOptions out;
  if (h.is_none()) return out;
  const nb::dict given = cast_as<nb::dict>(h, "Session: device_options");
  for (const auto [key, value] : given)
    out[cast_as<std::string>(key, "Session: a key of device_options")] = nb::cast<std::string>(nb::str(value));
  return out;
}

Session session_for(const std::string& device, int threads, const std::string& isa, const std::string& precision,
                    const std::string& products, const std::shared_ptr<Trace>& trace, const DeviceOptions& options) {
  const bool by_backend = backend_by_name(device) && !parse_device_id(device);
  if (by_backend && !options.empty())
    raise(ErrorCode::InvalidArgument, concat_text("backend '", device, "' takes no device_options"),
          "leave them out, or give a device");
  Session s = by_backend ? Session::on_backend(device) : Session(device_from(device), options);
  if (threads) s.with_threads(threads);
  if (!isa.empty()) s.with_isa(isa);
  if (!precision.empty()) s.with_precision(precision_from(precision));
  if (!products.empty()) s.with_policy(PrecisionPolicy::with_matmul_precision(matmul_precision_from(products)));
  if (trace) s.with_trace(trace);
  return s;
}

namespace {

SymbolMode mode_from(nb::handle h) {
  if (PyUnicode_Check(h.ptr())) {
    const auto text = nb::cast<std::string>(h);
    if (text == "specialise" || text == "specialize") return SymbolMode::specialise();
    if (text == "runtime") return SymbolMode::runtime();
  } else if (PyLong_Check(h.ptr())) {
    return SymbolMode::runtime(nb::cast<std::int64_t>(h));
  } else if (nb::isinstance<nb::list>(h) || nb::isinstance<nb::tuple>(h)) {
    return SymbolMode::bucket(nb::cast<std::vector<std::int64_t>>(h));
  }
  raise(ErrorCode::InvalidArgument, concat_text("the mode ", nb::repr(h).c_str(), " of a symbol is not valid"),
        "use \"specialise\", \"runtime\", the largest value of a runtime symbol, or a list of upper extents");
}

struct Option {
  const char* takes;
  void (*set)(CompileOptions&, nb::handle);
};
const std::map<std::string, Option, std::less<>>& known_options() {
  constexpr const char* kFlag = "True or False";
  static const std::map<std::string, Option, std::less<>> options = {
      {"fuse", {kFlag, [](CompileOptions& o, nb::handle v) { o.fusion.skip_fusion = !nb::cast<bool>(v); }}},
      {"constant_folding", {kFlag, [](CompileOptions& o, nb::handle v) { o.constant_folding = nb::cast<bool>(v); }}},
      {"dce", {kFlag, [](CompileOptions& o, nb::handle v) { o.dce = nb::cast<bool>(v); }}},
      {"kernels",
       {kFlag,
        [](CompileOptions& o, nb::handle v) {
          if (!nb::cast<bool>(v)) o.kernel_dispatch = KernelDispatchConfig{KernelDispatchPolicy::ForceCommon};
        }}},
      {"keep_stages", {kFlag, [](CompileOptions& o, nb::handle v) { o.keep_stages = nb::cast<bool>(v); }}},
      {"must_alias", {kFlag, [](CompileOptions& o, nb::handle v) { o.must_alias = nb::cast<bool>(v); }}},
      {"verbose", {kFlag, [](CompileOptions& o, nb::handle v) { o.verbose = nb::cast<bool>(v); }}},
      {"nan_check",
       {"True, False, or \"inf\" for infinities too",
        [](CompileOptions& o, nb::handle v) {
          if (PyUnicode_Check(v.ptr()))
            o.nan_check = parse_nan_check(nb::cast<std::string>(v), "nan_check");
          else
            o.nan_check = nb::cast<bool>(v) ? NanCheck::Nan : NanCheck::Off;
        }}},
      {"dims",
       {"{symbol: extent}",
        [](CompileOptions& o, nb::handle v) {
          SymbolBinding b;
          for (auto& [k, n] : nb::cast<std::map<std::string, std::int64_t>>(v)) b.emplace(k, n);
          o.dim_binding = b;
        }}},
      {"symbol_modes",
       {"{symbol: \"specialise\", \"runtime\", a largest value, or a list of upper extents}",
        [](CompileOptions& o, nb::handle v) {
          for (auto [name, mode] : nb::cast<nb::dict>(v))
            o.symbol_modes.emplace(nb::cast<std::string>(name), mode_from(mode));
        }}},
      {"donate",
       {"{input: number of an output}",
        [](CompileOptions& o, nb::handle v) {
          for (auto [name, output] : nb::cast<nb::dict>(v))
            o.donate.push_back({nb::cast<std::string>(name), nb::cast<std::size_t>(output)});
        }}},
      {"placement",
       {"{label: device}",
        [](CompileOptions& o, nb::handle v) {
          for (auto [label, device] : nb::cast<nb::dict>(v))
            o.placement.push_back({nb::cast<std::string>(label), device_from(nb::cast<std::string>(device))});
        }}},
      {"keep_state_on_failure",
       {"a list of names of states",
        [](CompileOptions& o, nb::handle v) {
          for (const std::string& name : nb::cast<std::vector<std::string>>(v))
            o.on_failure.emplace(name, OnFailure::Keep);
        }}},
  };
  return options;
}

nb::list io(const std::vector<IoInfo>& infos) {
  nb::list out;
  for (const IoInfo& i : infos)
    out.append(nb::make_tuple(nb::str(i.name.c_str()), dims_object(i.shape.dims()), dtype_object(i.shape.dtype())));
  return out;
}

const IoInfo* find(const std::vector<IoInfo>& infos, std::string_view name) {
  for (const IoInfo& i : infos)
    if (i.name == name) return &i;
  return nullptr;
}

// The value given for `name`. Arrays keep their dtype, and the run rejects a wrong one. Python numbers take the
// declared dtype.
Tensor value_for(const std::vector<IoInfo>& infos, const std::string& name, nb::handle h) {
  const IoInfo* info = find(infos, name);
  const bool numbers = !is_array_like(h);
  return tensor_from(h, name.c_str(), true, info && numbers ? std::optional(info->shape.dtype()) : std::nullopt);
}

NamedTensors inputs_from(const PyCompiled& c, nb::args positional, nb::kwargs named) {
  NamedTensors out;
  const auto& inputs = c.program.inputs();
  nb::object given = named;
  if (positional.size() == 1 && nb::isinstance<nb::dict>(positional[0])) {
    given = nb::borrow(positional[0]);
  } else {
    if (positional.size() > inputs.size()) {
      PyErr_SetString(PyExc_TypeError,
                      concat_text("the program has ", inputs.size(), " inputs, got ", positional.size()).c_str());
      throw nb::python_error();
    }
    for (std::size_t i = 0; i < positional.size(); ++i)
      out.emplace(inputs[i].name, value_for(inputs, inputs[i].name, positional[i]));
  }
  const nb::dict d = nb::borrow<nb::dict>(given);
  for (auto [key, value] : d) {
    const auto name = cast_as<std::string>(key, "the name of an input");
    if (!out.emplace(name, value_for(inputs, name, value)).second) {
      PyErr_SetString(PyExc_TypeError, concat_text("input '", name, "' is given twice").c_str());
      throw nb::python_error();
    }
  }
  return out;
}

// Runs `f`, a call on a program, without the GIL.
template <class F>
decltype(auto) without_gil(PyCompiled& c, F&& f) {
  const nb::gil_scoped_release free;
  const CtrlC interruptible(c.may_last);
  return f();
}

// Waits for runs of other threads, which may want the GIL.
const CompileResult& result_of(PyCompiled& c) {
  return without_gil(c, [&]() -> const CompileResult& { return c.program.compile_result(); });
}

nb::list arrays(std::vector<Tensor> tensors) {
  nb::list out;
  for (Tensor& t : tensors) out.append(array_object(std::move(t)));
  return out;
}

nb::object stage_list(const CompileResult& r) {
  nb::list out;
  for (const PipelineStage& s : r.stages)
    out.append(nb::make_tuple(nb::str(s.name.c_str()), nb::cast(PyGraph(Graph(s.graph)))));
  return out;
}

// Inputs in declaration order, for profiles.
struct OrderedInputs {
  OrderedInputs(PyCompiled& c, nb::args positional, nb::kwargs named) : values(inputs_from(c, positional, named)) {
    for (const IoInfo& i : c.program.inputs()) {
      const auto it = values.find(i.name);
      if (it == values.end()) raise(ErrorCode::NotFound, concat_text("profile: input '", i.name, "' has no value"));
      it->second = it->second.to_host();
      dims.push_back(it->second.dims());
      views.push_back(it->second.view());
    }
    for (std::size_t i = 0; i < views.size(); ++i) views[i].dims = dims[i];
  }
  NamedTensors values;
  std::vector<std::vector<std::int64_t>> dims;
  std::vector<TensorView> views;
};

nb::list profile(PyCompiled& c, nb::args positional, nb::kwargs named) {
  const OrderedInputs in(c, positional, named);
  const std::vector<NodeTime> times = without_gil(c, [&] { return c.program.profile(in.views); });
  nb::list out;
  for (const NodeTime& t : times) {
    nb::dict d;
    d["label"] = nb::str(t.label.c_str());
    d["op"] = nb::str(t.op.c_str());
    d["kernel"] = nb::str(t.kernel.c_str());
    d["ns"] = t.ns;
    d["flops"] = t.cost.flops;
    d["read_bytes"] = t.cost.read_bytes;
    d["write_bytes"] = t.cost.write_bytes;
    out.append(d);
  }
  return out;
}

// The HTML report of a compile; with inputs it has the time of each kernel beside its lower bound.
std::string report(PyCompiled& c, const std::string& title, bool timed, nb::args positional, nb::kwargs named) {
  ReportOptions options;
  options.title = title;
  if (!timed) return without_gil(c, [&] { return inspect_html(c.program, options); });
  constexpr int kRuns = 15;
  const OrderedInputs in(c, positional, named);
  return without_gil(c, [&] {
    options.times = median_profile(c.program, in.views, kRuns);
    options.times_note = concat_text("median of ", kRuns, " runs on one thread");
    BackendOptions one_thread;
    one_thread.threads = 1;
    if (const auto backend = backend_for(c.program.device()))
      options.limits = backend->measure_limits(one_thread).value_or(MachineLimits{});
    return inspect_html(c.program, options);
  });
}

double time_run(PyCompiled& c, std::int64_t runs) {
  std::vector<Tensor> held;
  std::vector<TensorView> in;
  std::vector<MutableTensorView> out;
  held.reserve(c.program.inputs().size() + c.program.outputs().size());
  for (const IoInfo& i : c.program.inputs()) {
    held.push_back(Tensor::zeros(i.shape));
    in.push_back(held.back().view());
  }
  for (const IoInfo& o : c.program.outputs()) {
    held.push_back(Tensor::zeros(o.shape));
    MutableTensorView v;
    v.data = held.back().mutable_data();
    v.dtype = o.shape.dtype();
    v.size_bytes = held.back().size_bytes();
    out.push_back(v);
  }
  const nb::gil_scoped_release free;
  c.program.run_into(in, out);
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < runs; ++i) c.program.run_into(in, out);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(runs);
}

}  // namespace

struct CtrlC::Impl {
  Impl() : request(flag, stops) {}
  // The handler of Python runs now. If it raises nothing, the run continues.
  static bool stops() {
    flag = false;
    const nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
  }
  struct sigaction before {};
  StopRequest request;
  static inline std::atomic<bool> flag{false};
  static inline struct sigaction pythons {};
};

CtrlC::CtrlC(bool wanted) {
  static const std::thread::id main_thread = std::this_thread::get_id();  // the thread that imported the module
  if (!wanted || std::this_thread::get_id() != main_thread) return;
  struct sigaction now {};
  if (sigaction(SIGINT, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0) return;
  if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return;
  impl_ = std::make_unique<Impl>();
  impl_->before = now;
  Impl::pythons = now;
  Impl::flag = false;
  struct sigaction ours = now;
  ours.sa_handler = [](int signal) {
    Impl::flag = true;
    Impl::pythons.sa_handler(signal);
  };
  sigaction(SIGINT, &ours, nullptr);
}
CtrlC::~CtrlC() {
  if (impl_) sigaction(SIGINT, &impl_->before, nullptr);
}

namespace {

// A flag with which another thread stops the runs of a call.
struct Stop {
  std::atomic<bool> flag{false};
};

// True if a run may take more than some 100 us, by what its nodes cost, or if that is unknown. The handler of ctrl-C
// takes a microsecond of each run that it can interrupt.
bool may_last(const Graph& g) {
  constexpr double kFlops = 2e6, kBytes = 1e6;
  double flops = 0, bytes = 0;
  for (const Node& n : g.nodes()) {
    const OpKind kind = n.kind();
    if (kind == OpKind::While || kind == OpKind::Scan || kind == OpKind::If || kind == OpKind::Call ||
        kind == OpKind::Custom)
      return true;
    std::vector<Shape> ins;
    for (Value v : n.inputs) ins.push_back(g.shape(v));
    const auto is_static = [](const Shape& s) { return s.is_static(); };
    if (!std::all_of(ins.begin(), ins.end(), is_static) || !std::all_of(n.shapes.begin(), n.shapes.end(), is_static))
      return true;
    const Cost c = op_def(n.op).cost(CostContext{n.op, ins, n.shapes});
    flops += c.flops;
    bytes += c.read_bytes + c.write_bytes;
  }
  return flops > kFlops || bytes > kBytes;
}

}  // namespace

PyCompiled::PyCompiled(CompiledGraph g) : program(std::move(g)) {
  on_host = program.device() == Device::Cpu;
  static_shapes = true;
  for (const auto* list : {&program.inputs(), &program.outputs()})
    for (const IoInfo& i : *list) static_shapes = static_shapes && i.shape.is_static();
  if (!static_shapes) return;
  try {
    may_last = rlx::python::may_last(program.compile_result().lir.graph);
  } catch (const Error&) {  // extents inside are known in a run only
  }
}

CompileOptions options_from(nb::dict keywords) {
  CompileOptions out;
  for (auto [key, value] : keywords) {
    const auto name = nb::cast<std::string>(key);
    const auto it = known_options().find(name);
    if (it == known_options().end()) {
      std::vector<std::string> names;
      for (const auto& [n, option] : known_options()) names.push_back(n);
      PyErr_SetString(PyExc_TypeError, concat_text("there is no compile option '", name, "'; ",
                                                   did_you_mean(name, names, quoted_names(names, 20)))
                                           .c_str());
      throw nb::python_error();
    }
    try {
      it->second.set(out, value);
    } catch (const nb::cast_error&) {
      raise(ErrorCode::DTypeMismatch,
            concat_text("the compile option ", name, " takes ", it->second.takes, ", got ", described(value)));
    }
  }
  return out;
}

void bind_runtime(nb::module_& m) {
  const CtrlC this_thread_is_main(false);
  nb::class_<Session>(m, "Session",
                      "Compiles graphs for one device. Any number of threads may use it. device: one of rlx.devices(). "
                      "threads: the number of threads, 0 for all cores. isa: the instruction set, such as \"avx2\". "
                      "precision: \"float16\" or \"bfloat16\" for mixed precision. matmul_precision: \"bfloat16\" or "
                      "\"int8\" for matmuls that read weights in fewer bits. device_options: options of the backend, "
                      "which `rlx devices --options` lists ({\"plugin\": PATH} for tpu).")
      .def(
          "__init__",
          [](Session* self, nb::handle device, nb::handle threads, nb::handle isa, nb::handle precision,
             nb::handle matmul_precision, nb::handle trace, nb::handle device_options, nb::handle products) {
            if (!products.is_none()) {
              warn_renamed("Session(products=)", "matmul_precision=");
              if (!nb::str("").equal(matmul_precision))
                raise(ErrorCode::InvalidArgument, "Session: both products and matmul_precision are given",
                      "matmul_precision is the new name of products");
              matmul_precision = products;
            }
            if (!trace.is_none() && !nb::isinstance<Trace>(trace))
              raise(ErrorCode::DTypeMismatch,
                    concat_text("Session: trace must be an rlx.Trace, got ", described(trace)),
                    "trace=rlx.Trace(\"run.json\")");
            new (self) Session(session_for(
                cast_as<std::string>(device, "Session: device"), cast_as<int>(threads, "Session: threads"),
                cast_as<std::string>(isa, "Session: isa"), cast_as<std::string>(precision, "Session: precision"),
                cast_as<std::string>(matmul_precision, "Session: matmul_precision"),
                trace.is_none() ? nullptr : nb::cast<std::shared_ptr<Trace>>(trace),
                device_options_from(device_options)));
          },
          nb::arg("device").none() = "cpu", nb::kw_only(), nb::arg("threads").none() = 0, nb::arg("isa").none() = "",
          nb::arg("precision").none() = "", nb::arg("matmul_precision").none() = "",
          nb::arg("trace").none() = nb::none(), nb::arg("device_options").none() = nb::none(),
          nb::arg("products").none() = nb::none(),
          nb::sig(
              "def __init__(self, device: str = \"cpu\", *, threads: int = 0, isa: str = \"\", precision: str = "
              "\"\", matmul_precision: str = \"\", trace: Trace | None = None, device_options: dict[str, str] | None = "
              "None, products: str | None = None) -> None"))
      .def_prop_ro(
          "device", [](const Session& s) { return device_text(s.open_device()->id()); },
          "The device that the session compiles for.")
      .def(
          "compile",
          [](const Session& s, nb::handle graph, nb::kwargs options) {
            PyGraph& g = cast_as<PyGraph&>(graph, "Session.compile: graph");
            Graph& from = g.get();
            CompileOptions o = options_from(options);
            std::unique_ptr<PyCompiled> out;
            Graph taken = std::move(from);
            g.graph.reset();
            {
              const nb::gil_scoped_release free;
              out = std::make_unique<PyCompiled>(s.compile_with(std::move(taken), std::move(o)));
            }
            return out;
          },
          nb::arg("graph").none(), nb::arg("options"),
          nb::sig("def compile(self, graph: Graph, **options: Any) -> CompiledGraph"),
          "Compiles a graph and consumes it; graph.copy() keeps one. Options: fuse, constant_folding, dce, kernels "
          "(all True), keep_stages, must_alias, verbose (all False), nan_check (False, True, \"inf\"), dims {symbol: "
          "value}, symbol_modes {symbol: "
          "\"specialise\", \"runtime\", a largest value, or a list of upper extents}, donate {input: output number}, "
          "placement {label: device}, keep_state_on_failure [names].");

  struct CheckOfThread {
    std::optional<NanCheckScope> scope;
  };
  nb::class_<CheckOfThread>(m, "NanCheckScope", "A check of the runs that this thread starts, until it is closed.")
      .def(
          "__init__",
          [](CheckOfThread* self, const std::string& kind) {
            new (self) CheckOfThread();
            self->scope.emplace(parse_nan_check(kind, "NanCheckScope"));
          },
          nb::arg("kind"))
      .def("close", [](CheckOfThread& self) { self.scope.reset(); });

  nb::class_<PyCompiled>(
      m, "CompiledGraph", nb::is_weak_referenceable(),
      "A compiled program with its weights and states. Any thread may call it. Runs proceed at once, or take turns if "
      "the program has states.")
      .def_prop_ro(
          "device", [](PyCompiled& c) { return device_text(c.program.device()); }, "The device of the program.")
      .def_prop_ro(
          "target", [](PyCompiled& c) { return c.program.target_name(); },
          "The device and the target of its kernels: \"cpu (avx512, 2 threads)\".")
      .def_prop_ro(
          "inputs", [](PyCompiled& c) { return io(c.program.inputs()); }, "(name, shape, dtype) of each input.")
      .def_prop_ro(
          "outputs", [](PyCompiled& c) { return io(c.program.outputs()); }, "(name, shape, dtype) of each output.")
      .def_prop_ro(
          "params", [](PyCompiled& c) { return io(c.program.params()); }, "(name, shape, dtype) of each weight.")
      .def_prop_ro(
          "states", [](PyCompiled& c) { return io(c.program.states()); }, "(name, shape, dtype) of each state.")
      .def(
          "run",
          [](PyCompiled& c, nb::args positional, nb::kwargs named) {
            const NamedTensors in = inputs_from(c, positional, named);
            return arrays(
                without_gil(c, [&] { return c.on_host ? c.program.run_typed(in) : c.program.run_device(in); }));
          },
          "Runs the program on inputs, by position or by name (or one dict). Returns the list of outputs.")
      .def("_report", &report, nb::arg("title"), nb::arg("timed"), nb::arg("inputs"), nb::arg("named"))
      .def("profile", &profile,
           "Runs once on one thread. Returns a dict for each step: label, op, kernel, ns, flops, read_bytes, "
           "write_bytes.")
      .def(
          "set_param",
          [](PyCompiled& c, nb::handle param, nb::handle value) {
            const auto name = cast_as<std::string>(param, "set_param: name");
            const Tensor t = value_for(c.program.params(), name, value).to_host();
            // Copies the bytes, because their owner may write to them later.
            const Tensor own = nb::isinstance<PyArray>(value) ? t : Tensor::copy_of(t.data(), t.shape());
            without_gil(c, [&] { c.program.set_param(name, own); });
          },
          nb::arg("name").none(), nb::arg("value").none(),
          nb::sig("def set_param(self, name: str, value: ArrayLike) -> None"),
          "Sets a weight. It is packed for the matmuls that read it.")
      .def(
          "unset_params", [](PyCompiled& c) { return without_gil(c, [&] { return c.program.unset_params(); }); },
          "The names of the weights that are not set. A run needs all weights.")
      .def(
          "finalize", [](PyCompiled& c) { without_gil(c, [&] { c.program.finalize(); }); },
          "Packs the weights now and not at the first run.")
      .def(
          "read_state",
          [](PyCompiled& c, const std::string& name) {
            return array_object(without_gil(c, [&] { return c.program.read_state(name); }));
          },
          nb::arg("name"), "A copy of the value of a state.")
      .def(
          "write_state",
          [](PyCompiled& c, nb::handle state, nb::handle value) {
            const auto name = cast_as<std::string>(state, "write_state: name");
            const Tensor t = value_for(c.program.states(), name, value).to_host();
            without_gil(c, [&] { c.program.write_state(name, t); });
          },
          nb::arg("name").none(), nb::arg("value").none(),
          nb::sig("def write_state(self, name: str, value: ArrayLike) -> None"),
          "Sets the value of a state, which the next run reads.")
      .def(
          "reset", [](PyCompiled& c) { without_gil(c, [&] { c.program.reset(); }); },
          "Resets every state to its initial value.")
      .def(
          "share_state_from",
          [](PyCompiled& c, PyCompiled& other) {
            if (&c == &other)
              raise(ErrorCode::InvalidArgument, "share_state_from: a program cannot share states with itself",
                    "give another program");
            const nb::gil_scoped_release free;
            return c.program.share_state_from(other.program);
          },
          nb::arg("other"), "Shares the states of equal name with another program from now on. Returns their number.")
      .def(
          "clone",
          [](PyCompiled& c) { return without_gil(c, [&] { return std::make_unique<PyCompiled>(c.program.clone()); }); },
          "Another instance of the same code. Weights are shared, states are copied.")
      .def("_time_run", &time_run, "The seconds of a run without Python, on inputs of zeros. For benchmarks.")
      .def(
          "prepare_shape",
          [](PyCompiled& c, nb::handle shapes) {
            const auto dims =
                cast_as<std::vector<std::vector<std::int64_t>>>(shapes, "prepare_shape: dims, of each input,");
            without_gil(c, [&] { c.program.prepare_shape(dims); });
          },
          nb::arg("dims").none(), nb::sig("def prepare_shape(self, dims: Sequence[Sequence[int]]) -> None"),
          "Prepares the program for inputs of these shapes, one list of extents for each input, so that the first run "
          "need not.")
      .def_prop_ro(
          "arena_bytes", [](PyCompiled& c) { return without_gil(c, [&] { return c.program.arena_bytes(); }); },
          "The bytes of the intermediate values of a run.")
      .def_prop_ro(
          "prepared_bytes", [](PyCompiled& c) { return without_gil(c, [&] { return c.program.prepared_bytes(); }); },
          "The bytes of the packed weights.")
      .def(
          "stages", [](PyCompiled& c) { return stage_list(result_of(c)); },
          "(name, graph) after each pass, if the program was compiled with keep_stages=True.")
      .def(
          "fusion_report", [](PyCompiled& c) { return result_of(c).fusion.text(); },
          "A text about fusion: what was fused, and what was not, with the reason.")
      .def(
          "dispatch_report", [](PyCompiled& c) { return result_of(c).dispatch.text(); },
          "A text about dispatch: which node runs in which kernel, by decomposition, or on the host.")
      .def(
          "plan", [](PyCompiled& c) { return inspect_devices(result_of(c).lir) + inspect_lir(result_of(c).lir); },
          "The memory plan as text: graphs, buffers, schedule.")
      .def(
          "copies", [](PyCompiled& c) { return inspect_copies(result_of(c).lir); },
          "A text about the copies of states and carries that could not be avoided, with reasons.");
  nb::class_<Stop>(m, "Stop", "Stops the runs of one call, before their next step.")
      .def(nb::init<>())
      .def("set", [](Stop& s) { s.flag = true; })
      .def("call", [](Stop& s, nb::handle f, nb::args args, nb::kwargs kwargs) {
        const StopRequest request(s.flag);
        return f(*args, **kwargs);
      });
  nb::class_<Trace>(m, "Trace", "A timeline of compiles, runs and steps, for Session and jit. Perfetto opens it.")
      .def(nb::new_([](std::optional<std::filesystem::path> path) {
             return path ? std::make_shared<Trace>(path->string()) : std::make_shared<Trace>();
           }),
           nb::arg("path").none() = nb::none())
      .def("flush", &Trace::flush, "Writes all recorded events to the file.")
      .def("json", &Trace::json, "The text that flush would write.");
  m.def(
      "devices",
      [] {
        nb::list out;
        for (Device d : registered_devices()) {
          const Presence p = probe_device(d);
          if (p.count > 0) out.append(nb::str(std::string(device_info(d).id).c_str()));
        }
        return out;
      },
      "The devices of this machine that can run programs.");
  m.def(
      "load_plugin",
      [](const std::filesystem::path& path) {
        // A name without a folder is left to the search of the loader.
        const Plugin p = load_plugin(path.has_parent_path() ? existing(path) : path.string());
        nb::list devices;
        for (Device d : p.devices) devices.append(nb::str(std::string(device_info(d).id).c_str()));
        return nb::make_tuple(nb::str(p.name.c_str()), devices);
      },
      nb::arg("path"),
      "Loads the plug-in of a backend, which serves its devices from now on. Returns (its name, the devices). "
      "rlx/device/plugin.h has the interface.");
  m.def("env_variables", [] {
    nb::list out;
    for (const EnvVariable& v : env_variables())
      out.append(nb::make_tuple(nb::str(std::string(v.name).c_str()), nb::str(std::string(v.what).c_str())));
    return out;
  });
}

}  // namespace rlx::python
