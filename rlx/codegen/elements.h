// Kernels that compute each element of their results from elements of operands: how operands are laid out decides how
// they are read, four at a time where they lie together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// A function of elements: `statements` over x0, x1, .., the operands' elements, and an expression for each result.
/// Names of variables are the function's own.
struct ElementFunction {
  std::vector<Ref> operands;  // broadcast to the results' dims
  std::vector<Ref> results;   // dense, of equal dims
  std::string statements;
  std::vector<std::string> values;
  bool is_long = false;  // one element is work enough for a thread
};

/// Ends `k` as the kernel of `f`.
void finish_elements(KernelBuilder& k, const ElementFunction& f);

/// Axes joined where all of `refs`, which have equal dims, walk them as one; axes of extent 1 are gone. At least one
/// axis stays.
void join_axes(std::vector<Ref>& refs);
/// `d / by` when the division is exact for every value of the symbols.
std::optional<Dim> divided(const Dim& d, std::int64_t by);
/// True when elements 4 i to 4 i + 3 of the joined `r` lie together at multiples of their size, for every i of the
/// last axis in quarters.
bool reads_fours(const NodeKernels& node, const Ref& r);

}  // namespace rlx::codegen
