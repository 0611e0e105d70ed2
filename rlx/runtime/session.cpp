// Session: finds the backend, hands its target to the compiler.
#include "rlx/runtime/session.h"

#include <cstdio>
#include <mutex>
#include <set>

#include "rlx/driver/registry.h"
#include "rlx/ir/inspect.h"
#include "rlx/runtime/compiled_graph_impl.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/env.h"
#include "rlx/runtime/reports.h"

namespace rlx {
namespace {

// What runs slowly on the host is said once for each op, on standard error.
void note_host_fallback(const KernelDispatchReport& report) {
  static std::mutex mutex;
  static std::set<std::string> noted;
  for (const KindDispatch& k : report.summaries) {
    if (k.path != DispatchPath::HostFallback) continue;
    std::lock_guard lock(mutex);
    if (noted.insert(k.name).second)
      std::fprintf(stderr, "note: %s has neither kernel nor decomposition on %s: its reference rule runs it, on one thread\n",
                   k.name.c_str(), report.backend_name.c_str());
  }
}

// What the environment and the options ask to see of each compile.
void report_compile(const CompileResult& r, bool verbose) {
  note_host_fallback(r.dispatch);
  maybe_log_fusion(r, verbose);
  maybe_log_dispatch(r, verbose);
  if (verbose || env_flag("RLX_VERBOSE")) std::fputs(inspect_copies(r.lir).c_str(), stderr);
  maybe_dump_pipeline(r);
}

}  // namespace

Session::Session(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {
  if (auto threads = env_int("RLX_THREADS")) options_.threads = *threads;
  if (auto isa = env_get("RLX_CPU_ISA")) options_.isa = *isa;
}

Session::Session(Device device) : Session(backend_for(device)) {
  std::string reason = unavailable_reason(device);
  if (!reason.empty())
    throw Error(ErrorCode::DeviceUnavailable, concat_text("device ", device_info(device).name, " is not available: ", reason),
                "pick one of rlx::available_devices()");
}

Session Session::on_backend(std::string_view name) {
  auto backend = backend_by_name(name);
  if (!backend) throw Error(ErrorCode::NotFound, concat_text("this build has no backend '", name, "'"), "use \"cpu\" or \"reference\"");
  return Session(std::move(backend));
}

Session& Session::with_threads(int threads) {
  if (threads < 0) throw Error(ErrorCode::InvalidArgument, concat_text("with_threads(", threads, "): a thread count is not negative"));
  options_.threads = threads;
  return *this;
}

Session& Session::with_isa(std::string isa) {
  options_.isa = std::move(isa);
  return *this;
}

Session& Session::with_precision(Precision precision) { return with_policy(PrecisionPolicy::of_precision(precision)); }

Session& Session::with_policy(PrecisionPolicy policy) {
  for (DType t : policy.dtypes)
    if (t != DType::F32 && t != DType::F16 && t != DType::BF16)
      throw Error(ErrorCode::InvalidArgument, concat_text("a precision policy chooses f32, f16 or bf16, not ", dtype_name(t)));
  policy_ = policy;
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
    throw Error(ErrorCode::InvalidArgument, concat_text("RLX_KERNEL_DISPATCH = '", text, "' is no dispatch policy"), "use native, common or prefer_native");
  config.policy = *policy;
  return config;
}
}  // namespace

TargetInfo Session::target() const { return backend_->target(options_); }

Precision Session::precision() const {
  const DType compute = policy_.of(PrecisionCategory::Compute);
  return compute == DType::F16 ? Precision::F16 : compute == DType::BF16 ? Precision::BF16 : Precision::F32;
}

Result<Session> Session::try_new(Device device) {
  return attempt([&] { return Session(device); });
}

Result<CompiledGraph> Session::try_compile_with(Graph g, CompileOptions options) const {
  return attempt([&] { return compile_with(std::move(g), std::move(options)); });
}

CompiledGraph Session::compile_with(Graph g, CompileOptions options) const {
  return compile_module(make_module(std::move(g)), std::move(options));
}

CompiledGraph Session::compile_hir(HirModule m, CompileOptions options) const {
  return compile_module(GraphModule(std::move(m)), std::move(options));
}

CompiledGraph Session::compile_module(GraphModule m, CompileOptions options) const {
  if (auto path = env_get("RLX_IR_DUMP"); path && !path->empty()) options.keep_stages = true;
  if (!options.precision) options.precision = policy_;
  if (!options.kernel_dispatch) options.kernel_dispatch = dispatch_from_env();
  if (m.stage() == GraphStage::Lir && !m.graph().is_static())  // no run makes it static: refused now, by the pipeline
    (void)CompilePipeline(target(), options).compile_module(GraphModule(m));
  auto code = std::make_shared<SharedCode>(std::move(m), backend_, std::move(options), options_);
  code->stage_hook = report_compile;
  return CompiledGraph(CompiledGraph::Impl::make(std::move(code)));
}

}  // namespace rlx
