// Fusion as data: targets, options, what was fused, and why something was not.
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

/// The families of devices that fuse alike.
enum class FusionTarget : std::uint8_t { Cpu, Metal, Mlx, Cuda, Rocm, Wgpu, Tpu };
inline constexpr int kNumFusionTargets = 7;
std::string_view fusion_target_name(FusionTarget t);

/// Switches of the fusion passes.
struct FusionOptions {
  bool skip_fusion = false;                 // only canonical forms
  bool unfuse_elementwise_regions = false;  // write regions back as single ops
  // Ops and operands of an elementwise region; 0: no limit; none: the target's own limit.
  std::optional<int> max_region_steps, max_region_inputs;

  /// These options with the limits of `t` where none is set: 32 steps and 16 inputs on GPUs and TPUs, whose kernels
  /// hold every operand in registers; none on the CPU.
  FusionOptions for_target(FusionTarget t) const;
};

/// The condition that stopped a match.
enum class MissReason : std::uint8_t {
  MultiConsumer,                  // an intermediate has another reader
  IsOutput,                       // an intermediate is a graph output
  NonAddBiasConsumer,             // the product is not followed by a bias add
  BiasRankTooHigh,                // the added value is no vector
  BiasLength,                     // the vector is not as long as the result
  UnsupportedEpilogueActivation,  // the target has no kernel with this activation
  NotClaimed,                     // the target has no kernel for the fused op
  SharedMatmulCount,              // fewer than two products share the operand
  WeightNotConstant,              // the weight is computed at run time: joining it would cost a copy each run
  SwigluNotSharedInput,           // gate and up read different values
  ShapeMismatch,                  // operands do not have the form the fused op needs
  AxisNotLast,
  RegionTooLarge,
  NotFused,
};
std::string_view miss_reason_name(MissReason r);

/// A pattern that began to match and stopped.
struct MissedFusion {
  std::string pattern;  // "matmul_bias_act"
  NodeId node;          // in the graph the pass saw
  std::string label;    // of that node
  MissReason reason = MissReason::NotFused;
  std::string detail;                  // the condition with its values: "%7 has 2 readers: %9, %12"
  std::string hint;                    // the way out, when there is one
  bool in_body = false;                // of a branch or loop: `node` is one of the body
  std::optional<std::size_t> stage{};  // of CompileResult::stages, the one whose graph the pass saw, when they are kept
  std::string text() const;
};

/// What the fusion passes did, recorded by the passes themselves.
struct FusionReport {
  std::size_t nodes_before = 0, nodes_after = 0;
  std::map<std::string, int> before, after;  // op name -> nodes
  std::map<std::string, int> fused;          // pattern -> how often
  std::vector<MissedFusion> missed;

  int fused_count(std::string_view pattern) const;
  int missed_count(std::string_view pattern) const;
  /// "nodes=210->97 fused_matmul_bias_act=24 ... missed=3".
  std::string summary_line() const;
  std::string text() const;
};

/// Op name -> number of nodes.
std::map<std::string, int> op_histogram(const Graph& g);

/// The fused kinds a target claims by default: the built backend's kernel table decides for built devices; this list,
/// from the documentation of the vocabulary, serves targets that are not built.
OpSet default_claims(FusionTarget target);
/// True when `set` claims `kind`.
inline bool supports_op(const OpSet& set, OpKind kind) { return set.has(kind); }

}  // namespace rlx
