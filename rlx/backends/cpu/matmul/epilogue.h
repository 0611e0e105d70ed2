// What follows a product or a convolution in its kernel, read from the body of a FusedDot or a FusedConv.
#pragma once

#include <optional>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// One operand of an epilogue: an operand of the node, or a constant of the body.
struct EpilogueOperand {
  int operand = -1;  // index among the epilogue's operands (0 = the first after the accumulator)
  const float* constant = nullptr;
  bool used() const { return operand >= 0 || constant != nullptr; }
};

/// An epilogue in the form GemmEpilogue has.
struct EpilogueForm {
  float alpha = 1.0F;
  Act act = Act::None;
  bool residual_after_act = false;
  std::optional<float> low, high;  // of a convolution: behind the activation, before what follows that
  EpilogueOperand bias, residual, mul;
};

/// The epilogue of a product (DotGeneral has none), when the kernels have it.
std::optional<EpilogueForm> match_epilogue(const Graph& g, NodeId id);
/// Likewise of a convolution (Conv has none), whose vectors lie along axis `features` of the result.
std::optional<EpilogueForm> match_conv_epilogue(const Graph& g, NodeId id, int features);
/// Why they have not, for `KernelEntry::refuses`.
const char* epilogue_refuses(const Graph& g, NodeId id);
/// Whether operand `i` of a FusedDot's epilogue is the residual or the multiplier, of which each element is read right
/// before the element of the result is written.
bool read_before_written(const Graph& g, NodeId id, int i);
/// For `KernelEntry::reads_strided` and `KernelEntry::in_place` of products of rows x with a matrix that lies in a form
/// or in codes: x may be a strided matrix (with more axes its rows might not fold). The result may lie over residual or
/// multiplier, not over x, whose rows are read for every panel.
bool reads_strided_rows(const Graph& g, NodeId id, int operand);
bool lies_over_epilogue(const Graph& g, NodeId id, int operand, int result);
/// Makes `field` the address of an operand, if there is one: a constant, or operand 2 + i of the node.
void point_epilogue_operand(LowerContext& c, const float*& field, const EpilogueOperand& operand);
/// Fills in `e`; operand i of the epilogue is operand 2 + i of the node, rows of results are `n` apart.
void point_epilogue(LowerContext& c, const EpilogueForm& form, std::int64_t n, GemmEpilogue& e);

}  // namespace rlx::cpu
