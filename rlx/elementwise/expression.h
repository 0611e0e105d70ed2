// A formula as a typed expression, from which texts of other languages are printed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::elementwise {

enum class Type : std::uint8_t { F32, F64, Bool };

/// Operands are of one type, and so is the result, but for comparisons (Bool), Select (a Bool and two values) and
/// conversions.
enum class Op : std::uint8_t {
  Input,   // number: its index
  Number,  // number
  Add,
  Sub,
  Mul,
  Div,
  Fma,  // a b + c, rounded once or twice
  Neg,
  Abs,
  Sqrt,
  Min,       // a < b ? a : b; a language may treat NaN in its own way
  Max,       // a > b ? a : b
  CopySign,  // |a| with the sign of b
  Round,     // to nearest even
  Floor,
  Ceil,
  Trunc,
  Scale,           // a 2^b for integral b, with one rounding
  Mantissa,        // the m of a > 0 as m 2^n with m in [sqrt(1/2), sqrt(2))
  Exponent,        // its n
  WithoutLowBits,  // a with so many (number) low bits of its significand cleared
  Rounded,         // a, whose product is not fused with a later sum
  Less,
  LessEqual,
  Equal,
  IsNan,
  And,
  Or,
  Select,  // a ? b : c
  ToF32,
  ToF64,
  Exp,  // the language's own, in targets where it is accurate
  Log,
  Log1p,
  Erf  // of F64
};
/// The number of operands.
int arity(Op op);

struct Node {
  Op op;
  Type type;
  std::uint32_t operands[3] = {};
  double number = 0;
};

/// Nodes in an order in which operands come first. Equal nodes are one.
class Expression {
 public:
  std::uint32_t add(const Node& n);
  void finish(std::uint32_t result) { result_ = result; }
  const std::vector<Node>& nodes() const { return nodes_; }
  std::uint32_t result() const { return result_; }
  /// How often each node is an operand of one that the result needs.
  std::vector<int> uses() const;
  /// The result where inputs have these values; every F32 operation is rounded to F32.
  double evaluate(std::span<const double> inputs) const;

 private:
  std::vector<Node> nodes_;
  std::uint32_t result_ = 0;
};

/// How a language spells an expression.
class Language {
 public:
  virtual ~Language() = default;
  virtual std::string number(Type type, double value) = 0;
  /// The operation on operands that are names, literals or in parentheses; so must the result be.
  virtual std::string apply(const Node& n, const Expression& e, std::span<const std::string> operands) = 0;
  /// A statement that names a value.
  virtual std::string define(Type type, std::string_view name, std::string_view value) = 0;
};
/// The statements that compute `e` but for its result, of which `result` becomes the text. Inputs have these names.
std::string statements(const Expression& e, Language& language, std::span<const std::string_view> inputs,
                       std::string& result);

}  // namespace rlx::elementwise
