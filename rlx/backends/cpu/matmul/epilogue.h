// The epilogue of a matmul or convolution kernel, matched from the body of a FusedDot or FusedConv.
#pragma once

#include <optional>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// An operand of an epilogue: an operand of the node, or a constant of the body.
struct EpilogueOperand {
  int operand = -1;  // index among the epilogue's operands (0 = the first after the accumulator)
  const float* constant = nullptr;
  bool used() const { return operand >= 0 || constant != nullptr; }
};

/// An epilogue as GemmEpilogue describes it.
struct EpilogueMatch {
  float alpha = 1.0F;
  Act act = Act::None;
  bool residual_after_act = false;
  std::optional<float> low, high;  // for convolutions: after the activation and before later steps
  EpilogueOperand bias, residual, mul;
};

/// The epilogue of a matmul when the kernels support it. DotGeneral has an empty one.
std::optional<EpilogueMatch> match_epilogue(const Graph& g, NodeId id);
/// The same for a convolution, whose vectors lie along axis `features` of the result. Conv has an empty one.
std::optional<EpilogueMatch> match_conv_epilogue(const Graph& g, NodeId id, int features);
/// Why the kernels do not support the epilogue, for `KernelEntry::refuses`.
const char* epilogue_refuses(const Graph& g, NodeId id);
/// Whether operand `i` of a FusedDot's epilogue is the residual or the multiplier. Each of their elements is read right
/// before the result element is written.
bool read_before_written(const Graph& g, NodeId id, int i);
/// For `KernelEntry::reads_strided` and `KernelEntry::in_place` of matmuls of rows x with a packed or quantized matrix.
/// x may be a strided matrix; with more axes its rows might not fold. The result may alias the residual or the
/// multiplier, but not x, whose rows are read for every panel.
bool reads_strided_rows(const Graph& g, NodeId id, int operand);
bool lies_over_epilogue(const Graph& g, NodeId id, int operand, int result);
/// Points `field` at an epilogue operand, if there is one: a constant, or operand 2 + i of the node.
void point_epilogue_operand(LowerContext& c, const float*& field, const EpilogueOperand& operand);
/// Fills in `e`. Operand i of the epilogue is operand 2 + i of the node. Rows of results are `n` apart.
void point_epilogue(LowerContext& c, const EpilogueMatch& form, std::int64_t n, GemmEpilogue& e);

}  // namespace rlx::cpu
