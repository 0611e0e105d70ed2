// Expressions: value numbering, evaluation and statements of a language.
#include "rlx/elementwise/expression.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "rlx/error.h"

namespace rlx::elementwise {
namespace {

constexpr std::size_t kMostText = 60;  // longer operands are named

template <class S, class Bits>
double without_low_bits(double x, int count) {
  return static_cast<double>(std::bit_cast<S>(std::bit_cast<Bits>(static_cast<S>(x)) & (~Bits{0} << count)));
}

double applied(const Node& n, double a, double b, double c) {
  switch (n.op) {
    case Op::Input:
    case Op::Number: return n.number;
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Div: return a / b;
    case Op::Fma: return c;  // see evaluate
    case Op::Neg: return -a;
    case Op::Abs: return std::fabs(a);
    case Op::Sqrt: return std::sqrt(a);
    case Op::Min: return a < b ? a : b;
    case Op::Max: return a > b ? a : b;
    case Op::CopySign: return std::copysign(a, b);
    case Op::Round: return std::nearbyint(a);
    case Op::Floor: return std::floor(a);
    case Op::Ceil: return std::ceil(a);
    case Op::Trunc: return std::trunc(a);
    case Op::Scale: return std::isnan(b) ? b : std::ldexp(a, static_cast<int>(b));
    case Op::Mantissa:
    case Op::Exponent: {
      int e = 0;
      double m = std::frexp(a, &e) * 2;  // [1, 2)
      e -= 1;
      if (m > 1.4142135623730951) m *= 0.5, e += 1;
      return n.op == Op::Mantissa ? m : e;
    }
    case Op::WithoutLowBits: {
      const int count = static_cast<int>(n.number);
      return n.type == Type::F32 ? without_low_bits<float, std::uint32_t>(a, count)
                                 : without_low_bits<double, std::uint64_t>(a, count);
    }
    case Op::Less: return a < b;
    case Op::LessEqual: return a <= b;
    case Op::Equal: return a == b;
    case Op::IsNan: return a != a;
    case Op::And: return a != 0 && b != 0;
    case Op::Or: return a != 0 || b != 0;
    case Op::Select: return a != 0 ? b : c;
    case Op::Rounded:
    case Op::ToF32:
    case Op::ToF64: return a;
    case Op::Exp: return std::exp(a);
    case Op::Log: return std::log(a);
    case Op::Log1p: return std::log1p(a);
    case Op::Erf: return std::erf(a);
  }
  return 0;
}

}  // namespace

int arity(Op op) {
  switch (op) {
    case Op::Input:
    case Op::Number: return 0;
    case Op::Fma:
    case Op::Select: return 3;
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Div:
    case Op::Min:
    case Op::Max:
    case Op::CopySign:
    case Op::Scale:
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal:
    case Op::And:
    case Op::Or: return 2;
    default: return 1;
  }
}

std::uint32_t Expression::add(const Node& n) {
  const auto same = [&](const Node& o) {
    return o.op == n.op && o.type == n.type && std::ranges::equal(o.operands, n.operands) &&
           std::bit_cast<std::uint64_t>(o.number) == std::bit_cast<std::uint64_t>(n.number);
  };
  const auto at = std::ranges::find_if(nodes_, same);
  if (at == nodes_.end()) {
    nodes_.push_back(n);
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  return static_cast<std::uint32_t>(at - nodes_.begin());
}

std::vector<int> Expression::uses() const {
  std::vector<int> out(nodes_.size());
  out[result_] = 1;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (out[i] == 0) continue;
    for (int k = 0; k < arity(nodes_[i].op); ++k) ++out[nodes_[i].operands[k]];
  }
  return out;
}

double Expression::evaluate(std::span<const double> inputs) const {
  std::vector<double> values(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& n = nodes_[i];
    const auto rounded = [&](double x) { return n.type == Type::F32 ? static_cast<double>(static_cast<float>(x)) : x; };
    const double a = values[n.operands[0]], b = values[n.operands[1]], c = values[n.operands[2]];
    if (n.op == Op::Input)
      values[i] = inputs[static_cast<std::size_t>(n.number)];
    else
      values[i] = rounded(n.op == Op::Fma ? rounded(a * b) + c : applied(n, a, b, c));
  }
  return values[result_];
}

std::string statements(const Expression& e, Language& language, std::span<const std::string_view> inputs,
                       std::string& result) {
  const std::vector<int> uses = e.uses();
  std::vector<std::string> texts(e.nodes().size());
  std::string out;
  for (std::size_t i = 0; i < e.nodes().size(); ++i) {
    const Node& n = e.nodes()[i];
    if (uses[i] == 0) continue;
    if (n.op == Op::Input) {
      texts[i] = inputs[static_cast<std::size_t>(n.number)];
      continue;
    }
    if (n.op == Op::Number) {
      texts[i] = language.number(n.type, n.number);
      continue;
    }
    std::string operands[3];
    const auto count = static_cast<std::size_t>(arity(n.op));
    for (std::size_t k = 0; k < count; ++k) operands[k] = texts[n.operands[k]];
    std::string text = language.apply(n, e, {operands, count});
    if ((uses[i] > 1 || text.size() > kMostText) && i != e.result()) {
      const std::string name = concat_text("v", i);
      out += language.define(n.type, name, text);
      text = name;
    }
    texts[i] = std::move(text);
  }
  result = texts[e.result()];
  return out;
}

}  // namespace rlx::elementwise
