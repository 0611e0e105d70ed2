// Session: finds the backend and passes its target to the compiler.
#include "rlx/runtime/session.h"

#include <cstdio>
#include <mutex>
#include <set>

#include "rlx/base/forks.h"
#include "rlx/device/registry.h"
#include "rlx/ir/inspect.h"
#include "rlx/runtime/absent_device.h"
#include "rlx/runtime/compiled_graph_impl.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/env.h"
#include "rlx/runtime/reports.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/threads/thread_pool.h"

namespace rlx {
namespace {

// Reports ops that run slowly on the host on standard error, once for each op and device.
void note_host_fallback(const KernelDispatchReport& report, bool by_cpu) {
  static auto& mutex = *new ProcessMutex;
  static auto& noted = *new std::set<std::string>;
  for (const KindDispatch& k : report.summaries) {
    if (k.path != DispatchPath::HostFallback) continue;
    std::lock_guard lock(mutex);
    if (!noted.insert(concat_text(k.name, " on ", report.backend_name, ": ", k.why)).second) continue;
    if (by_cpu)
      std::fprintf(stderr, "note: the cpu runs %s in programs of %s, with copies to it and back: %s\n", k.name.c_str(),
                   report.backend_name.c_str(), k.why.c_str());
    else
      std::fprintf(stderr,
                   "note: %s has neither kernel nor decomposition on %s: its reference rule runs it, on one thread\n",
                   k.name.c_str(), report.backend_name.c_str());
  }
}

// Prints the reports of a compile that the environment and the options request.
void report_compile(const CompileResult& r, bool verbose) {
  note_host_fallback(r.dispatch, !r.lir.others.empty());
  maybe_log_fusion(r, verbose);
  maybe_log_dispatch(r, verbose);
  if (verbose || env_flag("RLX_VERBOSE")) std::fputs(inspect_copies(r.lir).c_str(), stderr);
  maybe_dump_pipeline(r);
}

}  // namespace

Session::Session(std::shared_ptr<const Backend> backend, DeviceId id, const DeviceOptions& options)
    : backend_(std::move(backend)),
      device_(rlx::open_device(backend_, id, options)),
      options_(backend_->compile_options(options)) {
  options_.ordinal = id.ordinal;
  // The environment applies where the options say nothing.
  if (auto threads = env_int("RLX_THREADS"); threads && !options.contains("threads"))
    options_.threads = checked_thread_count(*threads, "RLX_THREADS",
                                            "unset it to use the processors of this machine, up to that limit");
  if (auto isa = env_get("RLX_CPU_ISA"); isa && !options.contains("isa")) options_.isa = *isa;
}

namespace {
// The backend of a device, plug-ins included. The error for a missing backend names plug-ins that could not be loaded.
std::shared_ptr<const Backend> backend_of(Device kind) {
  const std::string trouble = load_listed_plugins();
  if (!trouble.empty() && !backend_for(kind))
    throw Error(ErrorCode::DeviceUnavailable,
                concat_text("device ", device_info(kind).name, " is not available: ", unavailable_reason(kind)),
                "correct RLX_PLUGINS, or pick one of rlx::available_devices()");
  return require_backend(kind);
}
}  // namespace

Session::Session(DeviceId device) try : Session(device, DeviceOptions{}) {
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Session");
}

Session::Session(DeviceId device, const DeviceOptions& options) try
    : Session(backend_of(device.kind), device, options) {
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Session");
}

Session Session::for_target(DeviceId device, const DeviceOptions& options) try {
  if (device.ordinal < 0)
    throw Error(ErrorCode::InvalidArgument, concat_text("Session::for_target: there is no ", device_text(device)),
                "ordinals count from 0");
  return Session(absent_backend(device.kind), device, options);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Session");
}

Session Session::on_backend(std::string_view name) try {
  auto backend = backend_by_name(name);
  if (!backend)
    throw Error(ErrorCode::NotFound, concat_text("this build has no backend '", name, "'"),
                "use \"cpu\" or \"reference\"");
  return Session(std::move(backend), Device::Cpu, {});
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Session::on_backend");
}

const std::shared_ptr<const Backend>& Session::backend() const {
  if (!backend_)
    throw Error(ErrorCode::InvalidArgument, "a Session was used after it was moved from",
                "use the object that it was moved to; sessions can be copied");
  return backend_;
}

const std::shared_ptr<OpenDevice>& Session::open_device() const {
  (void)backend();
  return device_;
}

Session& Session::with_threads(int threads) {
  (void)checked_thread_count(threads, "with_threads: threads");
  options_.threads = threads;  // 0 stays 0: the CPUs that this process may use are counted when a graph is compiled
  return *this;
}

Session& Session::with_isa(std::string isa) {
  // The cpu part of programs for other devices is compiled for this instruction set too.
  if (const auto cpu = backend_by_name("cpu"); cpu && !isa.empty()) (void)cpu->compile_options({{"isa", isa}});
  options_.isa = std::move(isa);
  return *this;
}

Session& Session::with_precision(Precision precision) { return with_policy(PrecisionPolicy::of_precision(precision)); }

Session& Session::with_policy(PrecisionPolicy policy) {
  for (DType t : policy.dtypes)
    if (t != DType::F32 && t != DType::F16 && t != DType::BF16)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("a precision policy chooses f32, f16 or bf16, not ", dtype_name(t)));
  (void)matmul_precision_name(policy.of_matmuls());
  policy_ = policy;
  return *this;
}

Session& Session::with_trace(std::shared_ptr<Trace> trace) {
  trace_ = std::move(trace);
  return *this;
}

namespace {
// The policy that RLX_KERNEL_DISPATCH names.
KernelDispatchConfig dispatch_from_env() {
  KernelDispatchConfig config;
  const std::string text = env_get("RLX_KERNEL_DISPATCH").value_or("");
  if (text.empty()) return config;
  const auto policy = parse_kernel_dispatch_policy(text);
  if (!policy)
    throw Error(ErrorCode::InvalidArgument, concat_text("RLX_KERNEL_DISPATCH = '", text, "' is not a dispatch policy"),
                "use native, common or prefer_native");
  config.policy = *policy;
  return config;
}
}  // namespace

std::shared_ptr<const Target> Session::target() const try {
  return backend()->target(options_);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Session::target");
}

Precision Session::precision() const {
  const DType compute = policy_.of(PrecisionCategory::Compute);
  return compute == DType::F16 ? Precision::F16 : compute == DType::BF16 ? Precision::BF16 : Precision::F32;
}

namespace {
// Calls `attempt` and returns its error as a value, even without memory for the Diagnostic.
template <class F>
auto attempt_in_little_memory(F&& f) -> Result<decltype(f())> {
  try {
    return attempt(f);
  } catch (const std::bad_alloc&) {
    return Diagnostic{ErrorCode::OutOfMemory, "none is left", {}, {}};  // too short to allocate
  }
}
}  // namespace

Result<Session> Session::try_new(DeviceId device) {
  return attempt_in_little_memory([&] { return Session(device); });
}

Result<CompiledGraph> Session::try_compile_with(Graph g, CompileOptions options) const {
  return attempt_in_little_memory([&] { return compile_with(std::move(g), std::move(options)); });
}

CompiledGraph Session::compile_with(Graph g, CompileOptions options) const try {
  return compile_module(make_module(std::move(g)), std::move(options));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Session::compile_with");
}

CompiledGraph Session::compile_hir(HirModule m, CompileOptions options) const try {
  return compile_module(GraphModule(std::move(m)), std::move(options));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Session::compile_hir");
}

CompiledGraph Session::compile_module(GraphModule m, CompileOptions options) const try {
  if (auto path = env_get("RLX_IR_DUMP"); path && !path->empty()) options.keep_stages = true;
  if (!options.trace) options.trace = trace_ ? trace_ : env_trace();
  if (!options.precision) options.precision = policy_;
  if (!options.kernel_dispatch) options.kernel_dispatch = dispatch_from_env();
  if (const auto check = env_get("RLX_NAN_CHECK"); check && !options.nan_check)
    options.nan_check = parse_nan_check(*check, "RLX_NAN_CHECK");
  (void)backend();
  if (const Graph& g = m.graph(); !g.has_set_outputs() && g.state_updates().empty() && g.ordered().empty())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("graph '", g.name(), "' has no outputs, so its program would compute nothing"),
                "call set_outputs({..}) before the graph is compiled");
  options.ordinal = device_ ? device_->id().ordinal : 0;
  if (m.stage() == GraphStage::Lir && !m.graph().is_static())  // no run makes it static, so the pipeline refuses it now
    (void)CompilePipeline(target(), options).compile_module(GraphModule(m));
  BackendOptions backend_options = options_;
  backend_options.finest_grain = options.finest_grain;
  backend_options.chunk_audit = options.chunk_audit;
  auto code = std::make_shared<SharedPrograms>(std::move(m), backend(), device_, std::move(options),
                                               std::move(backend_options));
  code->stage_hook = report_compile;
  return CompiledGraph(CompiledGraph::Impl::make(std::move(code)));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Session::compile_module");
}

}  // namespace rlx
