// Einstein summation. It becomes dot_general ops, contracted pairwise in the cheapest order.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// Einstein summation, as numpy.einsum: einsum("bij,bjk->bik", {a, b}). "..." stands for axes that broadcast. A letter
/// that occurs twice in one operand takes its diagonal. Without "->" the result has the axes of "...", then the letters
/// that occur once, in alphabetical order. Operands are cast to their common dtype; Bool is counted in I32. With
/// cheapest_first false, operands are contracted from left to right.
Expr einsum(const std::string& spec, const ExprList& operands, bool cheapest_first = true,
            SourceLoc loc = SourceLoc::current());
/// The pairs of operands that einsum contracts, in order, as numpy.einsum_path. A pair is removed from the list of
/// operands, and its result is appended to the list. The path of one operand is empty.
std::vector<std::pair<std::size_t, std::size_t>> einsum_path(const std::string& spec, const std::vector<Dims>& dims,
                                                             SourceLoc loc = SourceLoc::current());

}  // namespace rlx
