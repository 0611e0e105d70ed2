// The compile pipeline: HIR to MIR to LIR. pipeline.cpp shows the order from top to bottom.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rlx/base/old_name.h"
#include "rlx/compiler/legalize.h"
#include "rlx/compiler/mesh.h"
#include "rlx/compiler/precision.h"
#include "rlx/compiler/symbol_mode.h"
#include "rlx/device/backend.h"
#include "rlx/ir/module.h"
#include "rlx/passes/passes.h"
#include "rlx/tensor/packed_weight_cache.h"

namespace rlx {

class Trace;

/// A donated input: `output` may be written over its buffer, so `run_into` may get one pointer for both. Dims and dtype
/// are equal.
struct Donation {
  std::string input;
  std::size_t output = 0;
};

/// What a failed run leaves of a state.
enum class OnFailure : std::uint8_t {
  Invalidate,  // no value: the state must be written or reset first
  Keep,  // A value: rows that the run was not to write are unchanged, and waiting runs of other programs continue. An
         // opaque device takes a second buffer for the state, and then all of it is unchanged. There, a run of another
         // program is submitted only after the runs before it are done, so calls that start one wait for that.
};

/// What makes a run fail although it has results (runtime/nan_check.h).
enum class NanCheck : std::uint8_t {
  Off,
  Nan,       // an output or a new state holds NaN
  NanOrInf,  // or an infinity
};

/// Places nodes on another device: those whose label begins with `label` (Graph::scope), up to its end or a '/'. The
/// longest matching label decides. The body of a branch or loop is placed with it, unless nodes of the body have their
/// own label. The cpu runs a branch or loop as a whole, with everything in its bodies.
struct Placement {
  std::string label;
  DeviceId device;
};

/// Options of one compile. New options are fields here, never new entry points.
struct CompileOptions {
  std::optional<FusionPolicy> policy;  // how HIR blocks are lowered; none: the policy of their module
  FusionOptions fusion;
  bool constant_folding = true;
  bool dce = true;
  bool assert_fusion_clean = false;    // a missed fusion is an error
  std::optional<OpSet> supported_ops;  // restricts the kinds that the target claims
  std::optional<KernelDispatchConfig>
      kernel_dispatch;                       // kernel or decomposition; none: RLX_KERNEL_DISPATCH, else native first
  std::optional<PrecisionPolicy> precision;  // applied after fusion; none: the session's, else f32
  SymbolBinding dim_binding;                 // symbols fixed before anything else
  SymbolModes symbol_modes;                  // how new values of the other symbols are handled; default: specialise
  std::vector<Donation> donate;              // each input and each output at most once
  std::map<std::string, OnFailure, std::less<>> on_failure;  // by state; default: Invalidate
  std::shared_ptr<PackedWeightCache> packed_weight_cache{};  // keeps packed weights (formats/packed_weight_files.h)
  OldName<std::shared_ptr<PackedWeightCache>> form_cache{};  // now packed_weight_cache
  std::vector<Placement> placement{};          // one program over several devices; empty: all nodes on the session's
  int ordinal = 0;                             // ordinal of the device compiled for; a session sets its own
  bool must_alias = false;                     // a state or donation that is not updated in place is an error
  Mesh mesh;                                   // the ranks that run the program together; none: one rank
  bool keep_stages = false;                    // fill CompileResult::stages
  std::optional<std::size_t> arena_alignment;  // bytes, a power of two from the target's own alignment up to 2^30
  bool finest_grain = false;                   // BackendOptions::finest_grain
  std::shared_ptr<ChunkAudit> chunk_audit;     // BackendOptions::chunk_audit
  std::shared_ptr<Trace> trace{};       // records compile and runs (base/trace.h); none: the session's, RLX_TRACE
  bool verbose = false;                 // a session prints both reports of each compile to the standard error
  std::optional<NanCheck> nan_check{};  // of each run; none: RLX_NAN_CHECK, else off
  /// `packed_weight_cache`, or the value of its deprecated name.
  const std::shared_ptr<PackedWeightCache>& weight_cache() const {
    return form_cache.value() ? *form_cache.value() : packed_weight_cache;
  }
};

/// The graph at one stage of the pipeline.
struct PipelineStage {
  std::string name;  // "hir", "lower-hir", "fuse-dot-epilogue", ..., "legalize", "lir"
  Graph graph;
};

struct CompileTemplate;
struct DispatchRecord;
struct Legalized;

/// The result of a compile.
struct CompileResult {
  LirModule lir;  // has no plan while the program has dynamic dims: call `specialize` before running it
  FusionReport fusion;
  KernelDispatchReport dispatch;
  std::vector<PipelineStage> stages;              // when asked for
  std::shared_ptr<const CompileTemplate> source;  // the source for `specialize`; none when there is nothing to bind

  /// True when symbols have no value yet.
  bool has_dynamic_dims() const { return source != nullptr; }
  /// The symbols without a value, sorted.
  std::vector<std::string> dynamic_symbols() const;
  /// Compiles the program again from its source with these values, so that patterns that need static extents fuse too.
  /// Other symbols stay dynamic. NotFound for a name that is not in dynamic_symbols().
  CompileResult specialize(const SymbolBinding& binding) const;
};

/// The pipeline for one target.
class CompilePipeline {
 public:
  explicit CompilePipeline(std::shared_ptr<const Target> target, CompileOptions options = {});

  /// Lowers HIR blocks to MIR ops by the policy.
  MirModule lower_hir(HirModule m);
  /// Canonicalizes, then runs the fusion passes. `report` gets their fusions and misses.
  MirModule optimize_with_report(MirModule m, FusionReport& report);
  /// Legalizes: every node becomes an op that the target claims, or one error names all nodes that cannot.
  MirModule legalize(MirModule m, KernelDispatchReport& report);
  /// Splits off weight preparation and plans memory. The graph must be legal, and static except for runtime and bucket
  /// symbols.
  LirModule plan_lir(const MirModule& m);

  /// Runs the whole pipeline. A module at a later stage skips the earlier stages. A module at stage Lir is checked
  /// against this target, with its plan. Symbols without a value give a result to specialise.
  CompileResult compile_module(GraphModule m);
  CompileResult compile_graph(Graph g) { return compile_module(make_module(std::move(g))); }

 private:
  PassContext context(FusionReport* report) const;
  KernelDispatchConfig kernel_dispatch() const { return options_.kernel_dispatch.value_or(KernelDispatchConfig{}); }
  Legalized legalize_graph(Graph g);
  Legalized legalize_or_throw(MirModule m);
  void clean_up(Legalized& legal);
  KernelDispatchReport report_of(const DispatchRecord& record) const;
  LirModule plan_graph(const Graph& legal, DispatchRecord& record);
  bool has_extents(const Graph& g) const;
  void check_runtime_symbols(const Graph& g) const;
  void keep(std::string name, const Graph& g);
  void place_misses();
  std::vector<LirAlias> donated(const Graph& g) const;
  static void observe(void* self, const Pass& pass, const Graph& after);

  std::shared_ptr<const Target> target_;
  mutable std::shared_ptr<const Target> placed_{};  // with placements: the program target, as passes query it
  CompileOptions options_;
  std::vector<PipelineStage> stages_;
  FusionReport* report_ = nullptr;  // of the running fusion
  std::size_t placed_misses_ = 0;   // number of misses in the report whose stage is known
};

/// The source of a result with dynamic dims.
struct CompileTemplate {
  HirModule module;
  std::shared_ptr<const Target> target;
  CompileOptions options;
};

/// Verifies `m`, at stage Hir or Mir, and replaces the symbols that `options.dim_binding` names by numbers. Used
/// bindings are removed from `options`. NotFound for a name in the bindings or the symbol modes that is not a symbol of
/// `m`.
HirModule bind_module(GraphModule m, CompileOptions& options);
/// `target` with the claims and the arena alignment of `options`. Throws InvalidArgument for an alignment that is not a
/// power of two.
std::shared_ptr<const Target> target_with_options(std::shared_ptr<const Target> target, const CompileOptions& options);
/// The fusion family of a device; devices without one of their own fuse like the CPU.
FusionTarget fusion_target_for(Device d);
/// The kinds that a target claims: the kernel table of the built backend, else the documented default list.
OpSet supported_for_target(FusionTarget t);

/// The stages of one compile as text.
struct PipelineInspect {
  std::string hir;            // the input (empty when it held no HIR blocks)
  std::string mir_lowered;    // after lowering
  std::string mir_diff;       // op-count changes from the lowered to the optimised graph
  std::string mir_optimized;  // after fusion and legalization
  std::string lir;            // run graph, prepare graph and buffer plan
  std::string fusion;         // the fusion report
  std::string dispatch;       // the dispatch report
  /// All sections with banners.
  std::string text() const;
};
/// One line that names the device of each device number in a plan. Empty when one device runs the whole program.
std::string inspect_devices(const LirModule& m);
/// The texts of a result compiled with `keep_stages`.
PipelineInspect inspect_compiled(const CompileResult& result);
/// Compiles `m` for `target` and returns the texts.
PipelineInspect inspect_pipeline(GraphModule m, const std::shared_ptr<const Target>& target,
                                 CompileOptions options = {});
/// The fusion report alone.
FusionReport inspect_fusion(const Graph& g, const std::shared_ptr<const Target>& target, CompileOptions options = {});
/// The file that dump_pipeline writes: `path`, or NAME.ir.txt in the folder `path` when it ends with '/'. NAME is that
/// of the graph, with _ for characters that do not belong into the name of a file.
std::string dump_file(const CompileResult& result, const std::string& path);
/// Writes the stages of a result to dump_file(result, path) and returns that path. `append` keeps what is in the file.
std::string dump_pipeline(const CompileResult& result, const std::string& path, bool append = false);

}  // namespace rlx
