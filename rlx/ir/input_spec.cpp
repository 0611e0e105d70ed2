// Operands by name: lookup and placement.
#include "rlx/ir/input_spec.h"

#include <bit>

#include "rlx/ir/op_def.h"
#include "rlx/ir/text.h"

namespace rlx {
namespace {

// Bit i is set when operand i of the record is among `num_inputs` inputs.
std::uint32_t present_bits(const OpBox& op, const InputSpec& spec, int num_inputs) {
  if (spec.present) return (spec.present_in(op.data()) & spec.optional_bits) | ~spec.optional_bits;
  return num_inputs >= 32 ? ~0U : (1U << num_inputs) - 1;
}

int place_of(const InputSpec& spec, std::string_view name) {
  for (int i = 0; i < spec.count; ++i)
    if (spec.names[i] == name) return i;
  return -1;
}

// The operands that a node of `op` has, by name.
std::string present_text(const OpBox& op, const InputSpec& spec) {
  const std::uint32_t bits = present_bits(op, spec, spec.count);
  std::string out;
  for (int i = 0; i < spec.count; ++i)
    if ((bits >> i & 1U) != 0) out += concat_text(out.empty() ? "" : ", ", spec.names[i]);
  return out;
}

Diagnostic problem(const OpBox& op, std::string message, std::string hint = {}) {
  return Diagnostic{ErrorCode::InvalidArgument, concat_text(op_text_name(op), ": ", message), {}, std::move(hint)};
}

}  // namespace

std::string InputSpec::text() const {
  std::string out;
  for (int i = 0; i < count; ++i) {
    const bool may_be_absent = is_optional(i) || (variadic && i >= required);
    out += concat_text(i ? ", " : "", may_be_absent ? "[" : "", names[i], may_be_absent ? "]" : "",
                       variadic && i + 1 + trailing == count ? "..." : "");
  }
  return out;
}

std::optional<int> find_operand(const OpBox& op, int num_inputs, std::string_view name) {
  const InputSpec& spec = op_def(op).inputs;
  const int place = place_of(spec, name);
  if (place < 0)
    throw Error(ErrorCode::InvalidArgument, concat_text(op_text_name(op), " has no operand '", name.substr(0, 40), "'"),
                concat_text("its operands are (", spec.text(), ")"));
  if (spec.variadic && place + spec.trailing >= spec.count && num_inputs >= spec.count)
    return num_inputs - (spec.count - place);
  const std::uint32_t bits = present_bits(op, spec, num_inputs);
  if ((bits >> place & 1U) == 0) return std::nullopt;
  return std::popcount(bits & ((1U << place) - 1));
}

int operand_index(const OpBox& op, int num_inputs, std::string_view name) {
  const std::optional<int> i = find_operand(op, num_inputs, name);
  if (!i)
    throw Error(ErrorCode::InvalidArgument, concat_text(op_text_name(op), ": operand '", name, "' is missing"),
                "check has(name) first");
  return *i;
}

std::string_view operand_name(const OpBox& op, int num_inputs, int i) {
  const InputSpec& spec = op_def(op).inputs;
  if (spec.variadic && i + spec.trailing >= spec.count - 1) {
    const int from_end = num_inputs - i;  // operands after the repeated one are counted from the end
    return spec.names[from_end <= spec.trailing ? spec.count - from_end : spec.count - 1 - spec.trailing];
  }
  const std::uint32_t bits = present_bits(op, spec, num_inputs);
  for (int place = 0; place < spec.count; ++place)
    if ((bits >> place & 1U) != 0 && i-- == 0) return spec.names[place];
  return "operand";
}

std::optional<Diagnostic> check_operand_count(const OpBox& op, int num_inputs) {
  const InputSpec& spec = op_def(op).inputs;
  if (!spec.present) {
    if (num_inputs >= spec.required && (spec.variadic || num_inputs <= spec.count)) return std::nullopt;
    return problem(op, concat_text("got ", num_inputs, " operands, takes (", spec.text(), ")"));
  }
  const std::uint32_t said = spec.present_in(op.data());
  if ((said & ~spec.optional_bits) != 0)
    return problem(op, concat_text("the mask of optional operands is ", said, ", takes (", spec.text(), ")"),
                   "bit i stands for the optional operand at position i; place_operands sets the mask from names");
  if (num_inputs == spec.required + std::popcount(said)) return std::nullopt;
  return problem(op, concat_text("got ", num_inputs, " operands, takes (", present_text(op, spec), ")"),
                 spec.masked ? "give optional operands by name: the op has a mask of the operands that are present"
                 : spec.optional_bits ? concat_text("the attributes {", print_attrs(op),
                                                    "} say which of the operands (", spec.text(), ") are present")
                                      : std::string());
}

Result<PlacedOperands> place_operands(OpBox op, std::span<const NamedOperand> operands) {
  const OpDef& def = op_def(op);
  const InputSpec& spec = def.inputs;
  if (spec.variadic) return problem(op, concat_text("the operands (", spec.text(), ") have no names"));
  std::optional<Value> at[std::size(InputSpec{}.names)];
  std::uint32_t bits = 0;
  for (const NamedOperand& o : operands) {
    const int place = place_of(spec, o.name);
    if (place < 0) {
      const std::vector<std::string> names(spec.names, spec.names + spec.count);
      return problem(op, concat_text("there is no operand '", o.name.substr(0, 40), "', takes (", spec.text(), ")"),
                     did_you_mean(o.name, names));
    }
    if (at[place]) return problem(op, concat_text("operand '", o.name, "' is given twice"));
    at[place] = o.value;
    bits |= 1U << place;
  }
  for (const AttrField& f : def.attrs)
    if (f.type == AttrType::Operands) {
      std::shared_ptr<void> copy = copy_of(op);
      f.set(copy.get(), static_cast<std::int64_t>(bits & spec.optional_bits & ~spec.presence_bits));
      op = OpBox(op.kind(), std::move(copy));
    }
  const std::uint32_t wanted = present_bits(op, spec, std::popcount(bits));
  std::vector<Value> inputs;
  for (int place = 0; place < spec.count; ++place) {
    const bool needed = spec.present ? (wanted >> place & 1U) != 0 : !spec.is_optional(place);
    if (needed && !at[place]) return problem(op, concat_text("operand '", spec.names[place], "' is missing"));
    if (at[place] && (wanted >> place & 1U) == 0)
      return problem(op, spec.present ? concat_text("the attributes exclude the operand '", spec.names[place], "'")
                                      : concat_text("operand '", spec.names[place],
                                                    "' needs all operands before it: ", spec.text()));
    if (at[place]) inputs.push_back(*at[place]);
  }
  return PlacedOperands{std::move(op), std::move(inputs)};
}

}  // namespace rlx
