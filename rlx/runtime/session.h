// Session: the one entry from a graph to something that runs.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rlx/device/device.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

/// Compiles graphs for one device. Cheap to make; may be used from many threads.
class Session {
 public:
  /// Throws DeviceUnavailable naming the device, the reason and the build option.
  explicit Session(DeviceId device = {});
  /// The same with options of the device's backend, `rlx devices --options` lists them; NotFound names the nearest to
  /// one that it does not take.
  Session(DeviceId device, const DeviceOptions& options);
  /// A session that compiles for a device which need not be there, nor its backend: by the backend's target, else by
  /// `preset_target`. Its programs are plans: runs, and what sets weights or states, throw DeviceUnavailable.
  static Session for_target(DeviceId device, const DeviceOptions& options = {});
  /// The same, with the error as a value.
  static Result<Session> try_new(DeviceId device);
  /// A session on the backend called `name`; "reference" runs the reference rules.
  static Session on_backend(std::string_view name);

  /// Threads of the CPU backend, at most 64 (0: RLX_THREADS, else the processors this process may use). More than the
  /// machine has processors is allowed; the pool of the process grows to the largest number asked.
  Session& with_threads(int threads);
  /// Forces a lower instruction set by name on the cpu, and on its part of other devices' programs (empty: RLX_CPU_ISA,
  /// else the best). InvalidArgument for a name that is none.
  Session& with_isa(std::string isa);

  /// Computes F32 graphs in `precision` (reductions stay in F32); the last of with_precision and with_policy counts.
  Session& with_precision(Precision precision);
  /// Chooses the float type of each category of ops. Options of a compile that carry their own policy win.
  Session& with_policy(PrecisionPolicy policy);

  /// Records what is compiled from now on, and its runs, into `trace` (null: none, but for RLX_TRACE). That of a
  /// compile's options wins.
  Session& with_trace(std::shared_ptr<Trace> trace);

  Device device() const { return target()->device(); }
  /// The device that runs take place on, for memory and streams of one's own.
  const std::shared_ptr<OpenDevice>& open_device() const;
  /// The type that matrix products are computed in.
  Precision precision() const;
  /// The type of each category of ops, as with_precision or with_policy chose it.
  const PrecisionPolicy& policy() const { return policy_; }
  std::shared_ptr<const Target> target() const;

  /// Compiles a graph (HIR blocks allowed). A graph with symbolic dimensions is compiled per shape at its runs. The
  /// graph is consumed: its Exprs are dead afterwards.
  CompiledGraph compile(Graph g) const { return compile_with(std::move(g), {}); }
  CompiledGraph compile_graph(Graph g) const { return compile(std::move(g)); }
  /// The same with options. A precision policy among them wins over the session's, f32 too.
  CompiledGraph compile_with(Graph g, CompileOptions options) const;
  /// The same for a program at any stage. A planned one (Lir) must be static and planned for this session's target; it
  /// runs as it is, whatever the options say of earlier stages.
  CompiledGraph compile_module(GraphModule m, CompileOptions options = {}) const;
  CompiledGraph compile_hir(HirModule m, CompileOptions options = {}) const;
  /// compile and compile_with, with the error as a value.
  Result<CompiledGraph> try_compile(Graph g) const { return try_compile_with(std::move(g), {}); }
  Result<CompiledGraph> try_compile_with(Graph g, CompileOptions options) const;

 private:
  Session(std::shared_ptr<const Backend> backend, DeviceId id, const DeviceOptions& options);
  const std::shared_ptr<const Backend>& backend() const;  // throws for a session that was moved from
  std::shared_ptr<const Backend> backend_;
  std::shared_ptr<OpenDevice> device_;
  BackendOptions options_;
  PrecisionPolicy policy_;
  std::shared_ptr<Trace> trace_{};
};

}  // namespace rlx
