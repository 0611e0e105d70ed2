// Blocks of quantised numbers with the least error: everything that a block stores is searched.
#pragma once

#include <cstddef>
#include <span>

#include "rlx/tensor/block_schemes.h"

namespace rlx {

/// As quantize_blocks, slower and closer: the numbers of blocks, scales of groups and codes are chosen for the least
/// sum of weight * (decoded - x)^2 that alternating least squares and a search beside it find. `x` has rows of
/// `weights.size()` elements, or any when there are no weights, which then count as 1; weights are not negative.
/// Errors: as quantize_blocks, and InvalidArgument for weights that x is no multiple of or that are negative or not
/// finite.
void search_blocks(QuantScheme scheme, std::span<const float> x, std::span<const float> weights,
                   std::span<std::byte> out);

}  // namespace rlx
