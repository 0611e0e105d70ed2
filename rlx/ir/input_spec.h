// The operands of an op: their names, which are optional, and the position of each among a node's dense inputs.
//
// A node holds only the operands that are present. Which optional operands these are follows from a mask among the
// op's attributes (text: `dequantize(%0, scale=%1)`), from another attribute (`has_bias`, the kind of an attention
// mask), or, when only the last ones are optional, from the operand count. Rules look operands up by name:
// `c.has("scale")`, `c.input("scale")`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/error.h"
#include "rlx/ir/attr.h"
#include "rlx/ir/value.h"

namespace rlx {

/// Operand names, and which of them a node may omit.
struct InputSpec {
  std::string_view names[24];
  int count = 0;     // named operands
  int required = 0;  // how many of them are required
  bool variadic = false;
  std::uint32_t optional_bits = 0;                     // bit i: operand i is optional
  std::uint32_t (*present)(const void* op) = nullptr;  // bits of the optional operands present; null: by count
  bool masked = false;                                 // `present` reads an OperandMask of the op
  std::uint32_t presence_bits = 0;  // optional operands whose bits come from `presence`, not the mask
  std::uint32_t (*presence)(const void* op) = nullptr;  // those of `presence_bits` that are present
  int trailing = 0;                                     // variadic: number of operands after the repeated one

  constexpr bool is_optional(int place) const { return (optional_bits >> place & 1U) != 0; }
  /// Makes the last `last` operands optional. The operand count of a node determines which of them are present.
  constexpr InputSpec optional(int last) const {
    InputSpec s = *this;
    s.required = count - last;
    for (int i = s.required; i < count; ++i) s.optional_bits |= 1U << i;
    return s;
  }
  /// Sets `f`, which computes the bits of the optional operands present from the op's attributes.
  constexpr InputSpec present_when(std::uint32_t (*f)(const void* op)) const {
    InputSpec s = *this;
    s.present = f;
    return s;
  }
  /// Takes the bits of the optional operands present from the op's OperandMask `Mask`: `&ops::Dequantize::present`.
  template <auto Mask>
  constexpr InputSpec masked_by() const {
    InputSpec s = present_when(&detail::FieldAccess<Mask>::mask_bits);
    s.masked = true;
    return s;
  }
  /// After masked_by: takes the bit of optional operand `place` from `f(op)` instead of the mask.
  constexpr InputSpec presence_from(int place, std::uint32_t (*f)(const void* op)) const {
    InputSpec s = *this;
    s.presence_bits = 1U << place;
    s.presence = f;
    return s;
  }
  [[deprecated("now presence_from")]] constexpr InputSpec told_by(int place, std::uint32_t (*f)(const void* op)) const {
    return presence_from(place, f);
  }
  /// Bits of the optional operands that a node of this op has. Call it only where `present` is set.
  std::uint32_t present_in(const void* op) const {
    return presence ? (present(op) & ~presence_bits) | (presence(op) & presence_bits) : present(op);
  }
  /// Makes the operand before the last `last` ones variadic.
  constexpr InputSpec more(int last = 0) const {
    InputSpec s = *this;
    s.variadic = true;
    s.trailing = last;
    return s;
  }
  /// "q, k, v, [mask]".
  std::string text() const;
};

/// The name of an optional operand, for `inputs`.
struct maybe {
  std::string_view name;
  constexpr explicit maybe(std::string_view n) : name(n) {}
};
namespace detail {
constexpr std::string_view operand_name(std::string_view name) { return name; }
constexpr std::string_view operand_name(maybe o) { return o.name; }
constexpr bool is_optional(std::string_view) { return false; }
constexpr bool is_optional(maybe) { return true; }
}  // namespace detail

/// Operands by name: `inputs("x", "w", maybe("bias"))`. masked_by or present_when follows when some are optional.
template <class... Names>
constexpr InputSpec inputs(Names... names) {
  InputSpec s{
      {detail::operand_name(names)...}, static_cast<int>(sizeof...(names)), 0, false, 0, nullptr, false, 0, nullptr};
  int place = 0;
  ((s.optional_bits |= detail::is_optional(names) ? 1U << place : 0U, ++place), ...);
  for (int i = 0; i < s.count; ++i) s.required += s.is_optional(i) ? 0 : 1;
  return s;
}
/// `required` or more operands.
constexpr InputSpec variadic_inputs(std::string_view name, int required = 1) {
  return InputSpec{{name}, 1, required, true, 0, nullptr, false, 0, nullptr};
}

/// The position of operand `name` among the `num_inputs` inputs of a node of `op`, none when it is absent.
/// InvalidArgument for a name that the record does not have.
std::optional<int> find_operand(const OpBox& op, int num_inputs, std::string_view name);
/// The same; InvalidArgument when the operand is absent.
int operand_index(const OpBox& op, int num_inputs, std::string_view name);
/// The name of input `i` of a node of `op` with `num_inputs` inputs: "scale"; of a variadic op "x".
std::string_view operand_name(const OpBox& op, int num_inputs, int i);
/// The error for a number of operands that `op` does not take; none when the number is valid.
std::optional<Diagnostic> check_operand_count(const OpBox& op, int num_inputs);

/// An operand by name.
struct NamedOperand {
  std::string_view name;
  Value value;
};
/// An op and its dense inputs, in the order of its record.
struct PlacedOperands {
  OpBox op;
  std::vector<Value> inputs;
};
/// Puts operands given by name, in any order, into the order of the record of `op`, and sets the op's mask of optional
/// operands. The error names an operand that is unknown, given twice, missing, or excluded by the other attributes.
Result<PlacedOperands> place_operands(OpBox op, std::span<const NamedOperand> operands);

}  // namespace rlx
