// Session: the single entry from a graph to an executable program.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rlx/device/device.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

/// Compiles graphs for one device. Cheap to create. Safe to use from many threads.
class Session {
 public:
  /// Throws DeviceUnavailable naming the device, the reason and the build option.
  explicit Session(DeviceId device = {});
  /// The same with options of the device's backend; `rlx devices --options` lists them. NotFound for an option that the
  /// backend does not have; its hint is the option of the most similar name.
  Session(DeviceId device, const DeviceOptions& options);
  /// A session that compiles for a device that may be absent, with or without its backend. It uses the backend's
  /// target, else `preset_target`. Its programs are plans: runs, and setting weights or states, throw
  /// DeviceUnavailable.
  static Session for_target(DeviceId device, const DeviceOptions& options = {});
  /// The same, with the error as a value.
  static Result<Session> try_new(DeviceId device);
  /// A session on the backend called `name`. "reference" runs the reference rules.
  static Session on_backend(std::string_view name);

  /// Threads of the CPU backend, at most 64 (0: RLX_THREADS, else the processors that this process may use). May exceed
  /// the number of processors of the machine. The process's thread pool grows to the largest number requested.
  Session& with_threads(int threads);
  /// Forces a lower instruction set by name on the cpu, and on the cpu part of other devices' programs (empty:
  /// RLX_CPU_ISA, else the best). InvalidArgument for an unknown name.
  Session& with_isa(std::string isa);

  /// Computes F32 graphs in `precision` (reductions stay in F32). Each call of with_precision or with_policy replaces
  /// the setting of the one before.
  Session& with_precision(Precision precision);
  /// Chooses the float type of each category of ops. A policy in the options of a compile takes precedence.
  Session& with_policy(PrecisionPolicy policy);

  /// Records compiles from now on, and the runs of their programs, into `trace` (null: none, except for RLX_TRACE). A
  /// trace in the options of a compile takes precedence.
  Session& with_trace(std::shared_ptr<Trace> trace);

  /// The device that it compiles for.
  Device device() const { return target()->device(); }
  /// The device that executes the runs, for callers that allocate memory or create streams.
  const std::shared_ptr<OpenDevice>& open_device() const;
  /// The type in which matmuls are computed.
  Precision precision() const;
  /// The type of each category of ops, as set by with_precision or with_policy.
  const PrecisionPolicy& policy() const { return policy_; }
  /// What the compiler knows of the device.
  std::shared_ptr<const Target> target() const;

  /// Compiles a graph (HIR blocks allowed). A graph with symbolic dimensions is compiled per shape when it runs. The
  /// graph is consumed: its Exprs are invalid afterwards. InvalidArgument when set_outputs was never called, unless the
  /// graph updates a state or has ordered ops.
  CompiledGraph compile(Graph g) const { return compile_with(std::move(g), {}); }
  /// The same as compile.
  CompiledGraph compile_graph(Graph g) const { return compile(std::move(g)); }
  /// The same with options. A precision policy in the options takes precedence over the session's, even f32.
  CompiledGraph compile_with(Graph g, CompileOptions options) const;
  /// The same for a program at any stage. A planned program (Lir) must be static and planned for this session's target.
  /// It runs unchanged, whatever the options say of earlier stages.
  CompiledGraph compile_module(GraphModule m, CompileOptions options = {}) const;
  /// The same for a module of HIR blocks.
  CompiledGraph compile_hir(HirModule m, CompileOptions options = {}) const;
  /// compile and compile_with, with the error as a value.
  Result<CompiledGraph> try_compile(Graph g) const { return try_compile_with(std::move(g), {}); }
  Result<CompiledGraph> try_compile_with(Graph g, CompileOptions options) const;

 private:
  Session(std::shared_ptr<const Backend> backend, DeviceId id, const DeviceOptions& options);
  const std::shared_ptr<const Backend>& backend() const;  // throws for a moved-from session
  std::shared_ptr<const Backend> backend_;
  std::shared_ptr<OpenDevice> device_;
  BackendOptions options_;
  PrecisionPolicy policy_;
  std::shared_ptr<Trace> trace_{};
};

}  // namespace rlx
