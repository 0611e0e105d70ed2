// Chains of scales and shifts of the channels of a convolution or matmul of weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/rewrite.h"
#include "rlx/passes/passes.h"

namespace rlx {

enum class ScaleKind : std::uint8_t { Add, Sub, SubFrom, Mul, Div, Norm };

/// One op of the chain after the root: a scale, a shift or a batch norm by one number for each channel, or by one
/// number.
struct ScaleStep {
  ScaleKind kind = ScaleKind::Add;
  NodeId node;
  Value operand;          // of all kinds but Norm
  bool constant = false;  // the operand is a constant number
  int axis = -1;          // of the value that it reads; -1: the operand is one number
  bool scales() const { return kind == ScaleKind::Mul || kind == ScaleKind::Div || kind == ScaleKind::Norm; }
};

/// Why a chain is not folded.
struct FoldRefusal {
  MissReason reason = MissReason::NotFused;
  std::string detail, hint;
  bool only_norms = false;  // reported for a batch norm alone
};

/// A convolution or product with the chain after it.
struct ScaleChain {
  NodeId root;
  Value tip;                     // the value that is replaced
  std::vector<ScaleStep> steps;  // scales and shifts
  std::vector<NodeId> layout;    // reshapes and transposes among them, in order
  int root_axis = -1;            // the channels in the result of the root
  std::size_t operand = 1;       // the root's operand that is scaled
  int tip_axis = -1;             // the channels in the tip; -1: not one axis
  Value weight;                  // that operand without an expand
  int weight_axis = -1;          // its channels
};

/// A batch norm whose mean and variance are given.
bool is_inference_norm(const Node& n);
/// The values that a step reads beside the chain.
std::vector<Value> operands_of(const Graph& g, const ScaleStep& s);
/// The name of the chain in reports.
std::string_view scale_pattern(const Graph& g, const ScaleChain& c);

struct FoundScales {
  std::vector<ScaleChain> chains;  // with at least one scale
  std::vector<bool> norm_seen;     // by node: norms in a chain, and norms whose miss is recorded
};
/// The chains of a graph whose scales, shifts and weights are computed when weights are set. Records the chains that
/// end for another reason.
FoundScales find_scales(const GraphRewriter& r, const PassContext& context);

}  // namespace rlx
