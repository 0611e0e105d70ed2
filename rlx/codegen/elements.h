// Elementwise kernels. The layout of the operands decides how they are read: four elements at a time where these are
// contiguous.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// An elementwise function: `statements` over the operands' elements x0, x1, .., and an expression for each result.
/// Names of variables are local to the function.
struct ElementFunction {
  std::vector<Ref> operands;  // broadcast to the results' dims
  std::vector<Ref> results;   // dense, of equal dims
  std::string statements;
  std::vector<std::string> values;
  bool is_long = false;  // a thread computes one element only
};

/// Finishes `k` as the kernel of `f`.
void finish_elements(KernelBuilder& k, const ElementFunction& f);

/// Joins axes that are contiguous in all of `refs`, which have equal dims, and drops axes of extent 1. At least one
/// axis stays.
void join_axes(std::vector<Ref>& refs);
/// `d / by` when the division is exact for every value of the symbols.
std::optional<Dim> divided(const Dim& d, std::int64_t by);
/// True when elements 4 i to 4 i + 3 of the joined `r` are contiguous and aligned to their size, for every group i of
/// four along the last axis.
bool reads_fours(const NodeKernels& node, const Ref& r);

}  // namespace rlx::codegen
