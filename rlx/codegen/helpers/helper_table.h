// The tables of the WGSL function library. helpers.h looks names up in them.
#pragma once

#include <span>
#include <string_view>

namespace rlx::codegen {

/// A WGSL function.
struct Helper {
  std::string_view name;
  std::string_view calls;  // other helpers, separated by ' '
  std::string_view text;
};

/// Conversions, bit tests, and arithmetic with rlx's own rules.
std::span<const Helper> number_helpers();
/// The formulas of rlx/elementwise.
std::span<const Helper> formula_helpers();
/// Exponentials, logarithms and functions made of them that are not formulas yet.
std::span<const Helper> exponential_helpers();
/// Circular functions and their inverses.
std::span<const Helper> circular_helpers();
/// Powers, roots and remainders.
std::span<const Helper> power_helpers();
/// 64-bit indices and random bits.
std::span<const Helper> word_helpers();

}  // namespace rlx::codegen
