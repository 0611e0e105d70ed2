// Einstein sums as dot_general, the cheapest pair of operands first.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// The sum of products that letters name: einsum("bij,bjk->bik", {a, b}), as numpy.einsum. "..." stands for axes that
/// broadcast, a letter that stands twice in one operand for its diagonal; without "->" the result has the axes of "..."
/// and the letters that stand once, in the order of the alphabet. Operands are cast to one dtype; Bool counts in I32.
/// cheapest_first: else from the left.
Expr einsum(const std::string& spec, const ExprList& operands, bool cheapest_first = true,
            SourceLoc loc = SourceLoc::current());
/// The pairs of operands in the order of multiplication; a result goes to the end of those that are left. Of one
/// operand: nothing.
std::vector<std::pair<std::size_t, std::size_t>> einsum_path(const std::string& spec, const std::vector<Dims>& dims,
                                                             SourceLoc loc = SourceLoc::current());

}  // namespace rlx
