// Data of fusion: targets, options, the fusions made, and the reasons for missed ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/op_set.h"

namespace rlx {

/// The families of devices that share fusion rules.
enum class FusionTarget : std::uint8_t { Cpu, Metal, Mlx, Cuda, Rocm, Wgpu, Tpu };
inline constexpr int kNumFusionTargets = 7;
std::string_view fusion_target_name(FusionTarget t);

/// Switches of the fusion passes.
struct FusionOptions {
  bool skip_fusion = false;                 // canonicalization only
  bool unfuse_elementwise_regions = false;  // expand regions back into single ops
  // The largest number of ops and operands of an elementwise region. 0: no limit; none: the target's own limit.
  std::optional<int> max_region_steps, max_region_inputs;

  /// These options, with the limits of `t` where none is set: 32 steps and 16 inputs on GPUs and TPUs, whose kernels
  /// hold every operand in registers; no limit on the CPU.
  FusionOptions for_target(FusionTarget t) const;
};

/// The condition that stopped a match.
enum class MissReason : std::uint8_t {
  MultiConsumer,                  // an intermediate has another reader
  IsOutput,                       // an intermediate is a graph output
  NonAddBiasConsumer,             // the matmul is not followed by a bias add
  BiasRankTooHigh,                // the added value is not a vector
  BiasLength,                     // the vector does not have the length of the result
  UnsupportedEpilogueActivation,  // the target has no kernel with this activation
  NotClaimed,                     // the target has no kernel for the fused op
  SharedMatmulCount,              // fewer than two matmuls share the operand
  WeightNotConstant,              // the weight is computed at run time: joining it would cost a copy per run
  SwigluNotSharedInput,           // gate and up read different values
  ShapeMismatch,                  // the operands do not have the shapes that the fused op needs
  AxisNotLast,
  RegionTooLarge,
  NotFused,
};
std::string_view miss_reason_name(MissReason r);

/// A pattern that matched in part, and the condition that failed.
struct MissedFusion {
  std::string pattern;  // "matmul_bias_act"
  NodeId node;          // in the graph that the pass ran on
  std::string label;    // of that node
  MissReason reason = MissReason::NotFused;
  std::string detail;                  // the condition with its values: "%7 has 2 readers: %9, %12"
  std::string hint;                    // a remedy, if there is one
  bool in_body = false;                // `node` is a node of a body of a branch or loop
  std::optional<std::size_t> stage{};  // index in CompileResult::stages of that graph, if stages are kept
  std::string text() const;
};

/// A record of the fusion passes, written by the passes themselves.
struct FusionReport {
  std::size_t nodes_before = 0, nodes_after = 0;
  std::map<std::string, int> before, after;  // op name -> nodes
  std::map<std::string, int> fused;          // pattern -> number of fusions
  std::vector<MissedFusion> missed;

  int fused_count(std::string_view pattern) const;
  int missed_count(std::string_view pattern) const;
  /// "nodes=210->97 fused_matmul_bias_act=24 ... missed=3".
  std::string summary_line() const;
  std::string text() const;
};

/// Op name -> number of nodes.
std::map<std::string, int> op_histogram(const Graph& g);

/// The fused kinds that a target claims by default. For built devices the backend's kernel table decides. For others
/// this list from the documentation of the vocabulary is used.
OpSet default_claims(FusionTarget target);
/// True when `set` claims `kind`.
inline bool supports_op(const OpSet& set, OpKind kind) { return set.has(kind); }

}  // namespace rlx
