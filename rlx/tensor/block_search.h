// Quantization with the least error: searches over everything that a block stores.
#pragma once

#include <cstddef>
#include <span>

#include "rlx/tensor/block_schemes.h"

namespace rlx {

/// As quantize_blocks, slower and more accurate. It chooses the numbers of blocks, the scales of groups and the
/// quantized values for the least sum of weight * (decoded - x)^2 that alternating least squares with a search finds.
/// `x` has rows of `weights.size()` elements. Without weights, rows may have any size and all weights count as 1.
/// Weights are not negative. Errors: as quantize_blocks, and InvalidArgument unless the size of x is a multiple of
/// that of the weights, or when weights are negative or not finite.
void search_blocks(QuantScheme scheme, std::span<const float> x, std::span<const float> weights,
                   std::span<std::byte> out);

}  // namespace rlx
