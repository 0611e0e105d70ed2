// The operands of an op: their names, which are optional, and the position of each among a node's dense inputs.
//
// A node holds only the operands that are present. The op tells which optional ones are: by a mask among its attributes
// (text: `dequantize(%0, scale=%1)`), by another attribute (`has_bias`, the kind of an attention mask), or, when only
// the last ones are optional, by their number. Rules ask by name: `c.has("scale")`, `c.input("scale")`.
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
  std::uint32_t may_lack = 0;                          // bit i: operand i is optional
  std::uint32_t (*present)(const void* op) = nullptr;  // bits of the present optional operands; null: by number
  bool masked = false;                                 // `present` reads an OperandMask of the op
  std::uint32_t told_bits = 0;                         // optional operands that `told` answers for in place of the mask
  std::uint32_t (*told)(const void* op) = nullptr;     // of those, the ones that are present
  int behind = 0;                                      // of a variadic op: named operands after those that may repeat

  constexpr bool is_optional(int place) const { return (may_lack >> place & 1U) != 0; }
  /// The last operands are optional, and their number tells which are present.
  constexpr InputSpec optional(int last) const {
    InputSpec s = *this;
    s.required = count - last;
    for (int i = s.required; i < count; ++i) s.may_lack |= 1U << i;
    return s;
  }
  /// `f` reads from the op's attributes which optional operands are present.
  constexpr InputSpec present_when(std::uint32_t (*f)(const void* op)) const {
    InputSpec s = *this;
    s.present = f;
    return s;
  }
  /// The OperandMask `Mask` of the op tells which optional operands are present: `&ops::Dequantize::present`.
  template <auto Mask>
  constexpr InputSpec masked_by() const {
    InputSpec s = present_when(&detail::FieldAccess<Mask>::mask_bits);
    s.masked = true;
    return s;
  }
  /// Beside a mask: `f` tells, as bits, whether the optional operand at `place` is present; the mask does not.
  constexpr InputSpec told_by(int place, std::uint32_t (*f)(const void* op)) const {
    InputSpec s = *this;
    s.told_bits = 1U << place;
    s.told = f;
    return s;
  }
  /// Bits of the optional operands that a node of this op has. Call it only where `present` is set.
  std::uint32_t present_in(const void* op) const {
    return told ? (present(op) & ~told_bits) | (told(op) & told_bits) : present(op);
  }
  /// The named operand before the last `last` ones may repeat.
  constexpr InputSpec more(int last = 0) const {
    InputSpec s = *this;
    s.variadic = true;
    s.behind = last;
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
constexpr bool may_lack(std::string_view) { return false; }
constexpr bool may_lack(maybe) { return true; }
}  // namespace detail

/// Operands by name: `inputs("x", "w", maybe("bias"))`. masked_by or present_when follows when some are optional.
template <class... Names>
constexpr InputSpec inputs(Names... names) {
  InputSpec s{
      {detail::operand_name(names)...}, static_cast<int>(sizeof...(names)), 0, false, 0, nullptr, false, 0, nullptr};
  int place = 0;
  ((s.may_lack |= detail::may_lack(names) ? 1U << place : 0U, ++place), ...);
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
