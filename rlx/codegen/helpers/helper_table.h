// The parts of the library of WGSL functions: helpers.h looks a name up in them.
#pragma once

#include <span>
#include <string_view>

namespace rlx::codegen {

/// A WGSL function.
struct Helper {
  std::string_view name;
  std::string_view calls;  // other helpers, with ' ' between
  std::string_view text;
};

/// Conversions, tests by bits, arithmetic with rules of our own.
std::span<const Helper> number_helpers();
/// Exponentials, logarithms and what is made of them.
std::span<const Helper> exponential_helpers();
/// The error function and its family.
std::span<const Helper> error_function_helpers();
/// Circular functions and their inverses.
std::span<const Helper> circular_helpers();
/// Powers, roots and remainders.
std::span<const Helper> power_helpers();
/// 64-bit indices and random bits.
std::span<const Helper> word_helpers();

}  // namespace rlx::codegen
