// WGSL functions of the formulas of rlx/elementwise, as NAME_f32, printed once.
//
// Comparisons that decide between limits are of bits, as devices flush subnormal numbers and compilers may forget
// infinities. NaN, which the formulas lose where a compiler assumes that there is none, is selected last.
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>

#include "rlx/codegen/helpers/helper_table.h"
#include "rlx/elementwise/functions.h"
#include "rlx/error.h"

namespace rlx::codegen {
namespace {

using elementwise::Expression;
using elementwise::Node;
using elementwise::Op;
using elementwise::Type;

class Wgsl final : public elementwise::Language {
 public:
  std::string calls = "is_nan";

  std::string number(Type, double value) override {
    const auto x = static_cast<float>(value);
    if (!std::isnormal(x) && std::bit_cast<std::uint32_t>(x) != 0)
      return call("f32_of", concat_text("(", std::bit_cast<std::uint32_t>(x), "u)"));
    char text[40];
    std::snprintf(text, sizeof text, x < 0 ? "(%.9gf)" : "%.9gf", static_cast<double>(x));
    return text;
  }

  std::string apply(const Node& n, const Expression& e, std::span<const std::string> in) override {
    const auto infix = [&](const char* sign) { return concat_text("(", in[0], sign, in[1], ")"); };
    const auto of = [&](const char* name) {
      return in.size() == 1 ? concat_text(name, "(", in[0], ")") : concat_text(name, "(", in[0], ", ", in[1], ")");
    };
    const auto is = [&](int operand, double value) {
      const Node& o = e.nodes()[n.operands[operand]];
      return o.op == Op::Number && o.number == value;
    };
    switch (n.op) {
      case Op::Add: return infix(" + ");
      case Op::Sub: return infix(" - ");
      case Op::Mul: return infix(" * ");
      case Op::Div: return infix(" / ");
      case Op::Fma: return concat_text("(", in[0], " * ", in[1], " + ", in[2], ")");
      case Op::Neg: return concat_text("(-", in[0], ")");
      case Op::Abs: return of("abs");
      case Op::Sqrt: return of("sqrt");
      case Op::Min: return of("min");
      case Op::Max: return of("max");
      case Op::CopySign: return call("with_sign", of(""));
      case Op::Round: return of("round");
      case Op::Floor: return of("floor");
      case Op::Ceil: return of("ceil");
      case Op::Trunc: return of("trunc");
      case Op::Scale: return call("scale2", concat_text("(", in[0], ", i32(", in[1], "))"));
      case Op::Mantissa: return call("split_f32", of("")) + ".m";
      case Op::Exponent: return call("split_f32", of("")) + ".e";
      case Op::WithoutLowBits:
        return concat_text("bitcast<f32>(bitcast<u32>(", in[0], ") & ", ~0U << static_cast<unsigned>(n.number), "u)");
      case Op::Rounded: return in[0];  // languages of floats fuse as they like; formulas for them allow it
      case Op::Less: return infix(" < ");
      case Op::LessEqual: return is(0, 0) ? concat_text("(bitcast<u32>(", in[1], ") <= 0x80000000u)") : infix(" <= ");
      case Op::Equal:
        if (is(1, 0)) return concat_text("((bitcast<u32>(", in[0], ") & 0x7fffffffu) == 0u)");
        if (is(1, HUGE_VAL)) return concat_text("(bitcast<u32>(", in[0], ") == 0x7f800000u)");
        return infix(" == ");
      case Op::IsNan: return call("is_nan", of(""));
      case Op::And: return infix(" && ");
      case Op::Or: return infix(" || ");
      case Op::Select: return concat_text("select(", in[2], ", ", in[1], ", ", in[0], ")");
      default: break;
    }
    check(false, "a formula has an operation that WGSL lacks");
    return {};
  }

  std::string define(Type, std::string_view name, std::string_view value) override {
    return concat_text("  let ", name, " = ", value, ";\n");
  }

 private:
  std::string call(std::string_view name, std::string_view operands) {
    if (calls.find(name) == std::string::npos) calls += concat_text(" ", name);
    return concat_text(name, operands);
  }
};

struct Printed {
  std::string name, calls, text;
};

Printed printed(std::string_view name) {
  const elementwise::Function& f = *elementwise::find_function(name);
  constexpr std::string_view inputs[] = {"x", "alpha"};
  Wgsl language;
  std::string y;
  const std::string body = elementwise::statements(f.portable(), language, inputs, y);
  const char* const parameters = f.operands == 1 ? "_f32(x: f32) -> f32 {\n" : "_f32(x: f32, alpha: f32) -> f32 {\n";
  return {concat_text(name, "_f32"), language.calls,
          concat_text("fn ", name, parameters, body, "  return select(", y, ", x, is_nan(x));\n}\n")};
}

}  // namespace

std::span<const Helper> formula_helpers() {
  static const auto texts = std::to_array<Printed>({
#define RLX_PRINTED(Kind, name, ...) printed(#name),
      RLX_FOR_EACH_FORMULA(RLX_PRINTED) RLX_FOR_EACH_FORMULA_WITH_PARAMETER(RLX_PRINTED)
#undef RLX_PRINTED
  });
  static const auto helpers = [] {
    std::array<Helper, std::size(texts)> out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = {texts[i].name, texts[i].calls, texts[i].text};
    return out;
  }();
  return helpers;
}

}  // namespace rlx::codegen
