// WGSL of elementwise ops. ir/math/function_table.h and ir/math/binary_table.h define the ops.
#include "rlx/codegen/functions_wgsl.h"

#include <bit>
#include <cmath>
#include <cstdio>

#include "rlx/codegen/entry.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx::codegen {
namespace {

using Fn = ActivationKind;
using Fn2 = BinaryKind;

constexpr const char* kNoGamma = "the library of WGSL functions has no gamma functions";

bool is_half_float(DType t) { return t == DType::F16 || t == DType::BF16; }

// A call of a library function.
template <class... T>
std::string helper_call(KernelBuilder& k, std::string_view name, const T&... args) {
  k.use(name);
  std::string text(name);
  const char* before = "(";
  ((text += concat_text(before, args), before = ", "), ...);
  return text + ")";
}

std::string float_text(float x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(x));
  std::string out(text);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return x < 0 ? concat_text("(", out, "f)") : out + "f";
}
std::string float_literal(KernelBuilder& k, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const bool plain = std::isnormal(x) || bits == 0;
  return plain ? float_text(x) : helper_call(k, "f32_of", concat_text(bits, "u"));
}

// A quotient by a literal that is zero or infinite. Shader compilers would replace it by a product with a constant.
std::optional<std::string> special_quotient(KernelBuilder& k, const std::string& a, const std::string& b) {
  const auto bits = [](std::uint32_t of) { return concat_text("f32_of(", of, "u)"); };
  if (b == float_text(0)) return helper_call(k, "div_by_zero_f32", a, "0u");
  if (b == bits(0x80000000U)) return helper_call(k, "div_by_zero_f32", a, "0x80000000u");
  if (b == bits(0x7f800000U)) return helper_call(k, "div_by_inf_f32", a, "0u");
  if (b == bits(0xff800000U)) return helper_call(k, "div_by_inf_f32", a, "0x80000000u");
  return std::nullopt;
}

// A product with a literal zero, which shader compilers fold to zero. x / inf has the same sign and the same NaNs.
std::optional<std::string> zero_product(KernelBuilder& k, const std::string& a, const std::string& b) {
  if (b == float_text(0)) return helper_call(k, "div_by_inf_f32", a, "0u");
  if (b == concat_text("f32_of(", 0x80000000U, "u)")) return helper_call(k, "div_by_inf_f32", a, "0x80000000u");
  return std::nullopt;
}

// True for literals as float_text writes them.
bool is_float_literal(std::string_view text) {
  if (text.starts_with("(-")) text.remove_prefix(2);
  return !text.empty() && text[0] >= '0' && text[0] <= '9';
}

std::string float_activation(KernelBuilder& k, const ops::Activation& op, std::string_view x) {
  const FunctionParams p = function_params(op);
  switch (op.fn) {
    case Fn::Not: break;
    case Fn::Square: return concat_text("(", x, " * ", x, ")");
    case Fn::Elu: return helper_call(k, "elu_f32", x, float_literal(k, static_cast<float>(p.alpha)));
    case Fn::LeakyRelu: {
      const std::string below = p.alpha == 0 ? helper_call(k, "f32_of", "0x80000000u")
                                             : concat_text(x, " * ", float_literal(k, static_cast<float>(p.alpha)));
      return concat_text("select(", x, ", ", below, ", ", x, " < 0.0)");
    }
    case Fn::HardSigmoid: {
      if (has_own_params(op)) break;
      const auto parts = [&](double v, bool cut) {
        const float nearest = static_cast<float>(v);
        const float high = cut ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) & 0xfffff000U) : nearest;
        return concat_text(float_literal(k, high), ", ",
                           float_literal(k, static_cast<float>(v - static_cast<double>(high))));
      };
      return helper_call(k, "hard_sigmoid_of_f32", x, parts(p.alpha, true), parts(p.beta, false));
    }
    default: break;
  }
  return helper_call(k, concat_text(enum_name(op.fn), "_f32"), x);
}

std::string int_activation(ActivationKind fn, DType t, std::string_view x) {
  const bool with_sign = is_signed_int(t);
  switch (fn) {
    case Fn::Relu: return with_sign ? concat_text("max(", x, ", 0)") : std::string(x);
    case Fn::Neg:
      return with_sign ? concat_text("bitcast<i32>(0u - bitcast<u32>(", x, "))") : concat_text("(0u - ", x, ")");
    case Fn::Abs: return with_sign ? concat_text("abs(", x, ")") : std::string(x);
    case Fn::Sign: return with_sign ? concat_text("sign(", x, ")") : concat_text("min(", x, ", 1u)");
    case Fn::Not: return t == DType::Bool ? concat_text("select(0u, 1u, ", x, " == 0u)") : concat_text("(~", x, ")");
    case Fn::Popcount:
    case Fn::Clz: {
      const int bits = dtype_bits(t);
      std::string word = with_sign ? concat_text("bitcast<u32>(", x, ")") : std::string(x);
      if (with_sign && bits < 32) word = concat_text("(", word, " & ", (1 << bits) - 1, "u)");
      std::string count = fn == Fn::Popcount ? concat_text("countOneBits(", word, ")")
                                             : concat_text("(countLeadingZeros(", word, ") - ", 32 - bits, "u)");
      return with_sign ? concat_text("bitcast<i32>(", count, ")") : count;
    }
    default: return concat_text("(", x, " * ", x, ")");  // Square
  }
}

std::string float_binary(KernelBuilder& k, BinaryKind fn, const std::string& a, const std::string& b) {
  const auto infix = [&](const char* sign) { return concat_text("(", a, sign, b, ")"); };
  switch (fn) {
    case Fn2::Add: return infix(" + ");
    case Fn2::Sub: return a == b ? helper_call(k, "self_sub_f32", a) : infix(" - ");
    case Fn2::Mul:
      if (const auto zero = zero_product(k, a, b)) return *zero;
      if (const auto zero = zero_product(k, b, a)) return *zero;
      return infix(" * ");
    case Fn2::Div:
      if (a == b) return helper_call(k, "self_div_f32", a);
      if (const auto special = special_quotient(k, a, b)) return *special;
      // Shader compilers would multiply by the reciprocal of a literal, which rounds twice.
      if (is_float_literal(b)) return helper_call(k, "div_by_f32", a, concat_text("bitcast<u32>(", b, ")"));
      return infix(" / ");
    default: return helper_call(k, concat_text(enum_name(fn), "_f32"), a, b);  // Max, Pow, Hypot, ..
  }
}

std::string int_binary(KernelBuilder& k, BinaryKind fn, DType t, const std::string& a, const std::string& b) {
  const auto infix = [&](const char* sign) { return concat_text("(", a, sign, b, ")"); };
  const bool with_sign = is_signed_int(t);
  const char* const type = with_sign ? "_i32" : "_u32";
  if (t == DType::Bool) {
    if (fn == Fn2::Add || fn == Fn2::Max) return infix(" | ");
    if (fn == Fn2::Mul || fn == Fn2::Min) return infix(" & ");
  }
  switch (fn) {
    case Fn2::Add: return infix(" + ");
    case Fn2::Sub: return infix(" - ");
    case Fn2::Mul: return infix(" * ");
    case Fn2::Max: return concat_text("max(", a, ", ", b, ")");
    case Fn2::Min: return concat_text("min(", a, ", ", b, ")");
    case Fn2::BitAnd: return infix(" & ");
    case Fn2::BitOr: return infix(" | ");
    case Fn2::BitXor: return infix(" ^ ");
    case Fn2::Shl:
    case Fn2::Shr: {
      const std::string count = with_sign ? concat_text("bitcast<u32>(", b, ")") : b;
      const std::string beyond = with_sign ? (fn == Fn2::Shr ? concat_text("(", a, " >> 31u)") : "0") : "0u";
      return concat_text("select(", beyond, ", ", a, fn == Fn2::Shl ? " << " : " >> ", "(", count, " & 31u), ", count,
                         " < ", dtype_bits(t), "u)");
    }
    default: return helper_call(k, concat_text(enum_name(fn), type), a, b);  // Div, Mod, Pow, Rem
  }
}

std::string compare_text(KernelBuilder& k, CompareKind fn, DType t, const std::string& a, const std::string& b) {
  std::string holds;
  if (is_float(t)) {
    switch (fn) {
      case CompareKind::Eq: holds = helper_call(k, "eq_f32", a, b); break;
      case CompareKind::Ne: holds = "!" + helper_call(k, "eq_f32", a, b); break;
      case CompareKind::Lt: holds = helper_call(k, "lt_f32", a, b); break;
      case CompareKind::Le: holds = helper_call(k, "le_f32", a, b); break;
      case CompareKind::Gt: holds = helper_call(k, "lt_f32", b, a); break;
      case CompareKind::Ge: holds = helper_call(k, "le_f32", b, a); break;
    }
  } else {
    constexpr const char* signs[] = {" == ", " != ", " < ", " <= ", " > ", " >= "};
    holds = concat_text(a, signs[static_cast<int>(fn)], b);
  }
  return concat_text("select(0u, 1u, ", holds, ")");
}

std::string cast_text(KernelBuilder& k, const Term& x, DType to) {
  const std::string_view from = compute_type(x.dtype), type = compute_type(to);
  if (to == DType::Bool) {
    if (from == "f32") return concat_text("select(0u, 1u, (bitcast<u32>(", x.text, ") & 0x7fffffffu) != 0u)");
    return concat_text("select(0u, 1u, ", x.text, from == "i32" ? " != 0)" : " != 0u)");
  }
  if (type == "f32") {
    if (from == "f32") return x.text;
    const bool exact = dtype_bits(x.dtype) < 32;
    if (is_half_float(to) && !exact) return helper_call(k, concat_text(from, "_to_odd_f32"), x.text);
    return concat_text("f32(", x.text, ")");
  }
  if (from == "f32") {
    const int bits = dtype_bits(to);
    if (type == "i32") {
      const std::string whole = helper_call(k, "f32_to_i32", x.text);
      return bits == 32 ? whole
                        : concat_text("clamp(", whole, ", ", -(1 << (bits - 1)), ", ", (1 << (bits - 1)) - 1, ")");
    }
    const std::string whole = helper_call(k, "f32_to_u32", x.text);
    return bits == 32 ? whole : concat_text("min(", whole, ", ", (1 << bits) - 1, "u)");
  }
  return from == type ? x.text : concat_text("bitcast<", type, ">(", x.text, ")");
}

}  // namespace

const char* step_refuses(const Graph& g, const Node& n) {
  if (const char* why = refuse_node_dtypes(g, n)) return why;
  if (const auto* a = n.op.get_if<ops::Activation>()) {
    if (a->fn == Fn::Lgamma || a->fn == Fn::Digamma || a->fn == Fn::Polygamma) return kNoGamma;
  } else if (const auto* b = n.op.get_if<ops::Binary>()) {
    if (b->fn == Fn2::Igamma || b->fn == Fn2::Igammac || b->fn == Fn2::IgammaGradA) return kNoGamma;
  }
  switch (n.kind()) {
    case OpKind::Activation:
    case OpKind::Binary:
    case OpKind::Compare:
    case OpKind::Where:
    case OpKind::Cast:
    case OpKind::Clamp:
    case OpKind::StopGradient: return nullptr;
    default: return "it contains an op that has no WGSL";
  }
}

std::string step_text(KernelBuilder& k, const OpBox& op, const std::vector<Term>& in, DType out) {
  const DType t = in.at(0).dtype;
  const auto text = [&](std::size_t i) -> const std::string& { return in.at(i).text; };
  if (const auto* a = op.get_if<ops::Activation>())
    return is_float(t) ? float_activation(k, *a, text(0)) : int_activation(a->fn, t, text(0));
  if (const auto* b = op.get_if<ops::Binary>())
    return is_float(t) ? float_binary(k, b->fn, text(0), text(1)) : int_binary(k, b->fn, t, text(0), text(1));
  if (const auto* c = op.get_if<ops::Compare>()) return compare_text(k, c->fn, t, text(0), text(1));
  if (op.get_if<ops::Cast>()) return cast_text(k, in[0], out);
  if (op.get_if<ops::Where>()) return concat_text("select(", text(2), ", ", text(1), ", ", text(0), " != 0u)");
  if (op.get_if<ops::StopGradient>()) return text(0);
  check(op.get_if<ops::Clamp>() != nullptr, "an elementwise op has no WGSL");
  if (!is_float(t)) return concat_text("min(max(", text(0), ", ", text(1), "), ", text(2), ")");
  return helper_call(k, "min_f32", helper_call(k, "max_f32", text(0), text(1)), text(2));
}

std::string settled(KernelBuilder& k, DType t, std::string_view value) {
  switch (t) {
    case DType::F16: return helper_call(k, "round_f16", value);
    case DType::BF16: return helper_call(k, "round_bf16", value);
    case DType::I16: return concat_text("((", value, " << 16u) >> 16u)");
    case DType::I8: return concat_text("((", value, " << 24u) >> 24u)");
    case DType::U16: return concat_text("(", value, " & 0xffffu)");
    case DType::U8: return concat_text("(", value, " & 0xffu)");
    default: return std::string(value);
  }
}

bool is_long(const OpBox& op) {
  if (const auto* a = op.get_if<ops::Activation>())
    return a->fn == Fn::Sin || a->fn == Fn::Cos || a->fn == Fn::Tan || a->fn == Fn::Erfinv || a->fn == Fn::Asinh ||
           a->fn == Fn::Acosh || a->fn == Fn::Sinc;
  const auto* b = op.get_if<ops::Binary>();
  return b && (b->fn == Fn2::Pow || b->fn == Fn2::Mod || b->fn == Fn2::Atan2 || b->fn == Fn2::Rem ||
               b->fn == Fn2::LogAddExp);
}

std::string literal(KernelBuilder& k, DType t, double value) {
  if (is_float(t)) return float_literal(k, static_cast<float>(value));
  if (compute_type(t) == "u32") return concat_text(static_cast<std::int64_t>(value), "u");
  const auto n = static_cast<std::int64_t>(value);
  if (n == -2147483648LL) return "(-2147483647 - 1)";
  return n < 0 ? concat_text("(", n, ")") : concat_text(n);
}

std::optional<std::string> literal_of(KernelBuilder& k, const Graph& g, Value v) {
  const auto* c = g.node(v.node).op.get_if<ops::Constant>();
  if (!c || c->value.num_elements() != 1 || !computes(c->value.dtype())) return std::nullopt;
  const DType t = c->value.dtype();
  if (!is_float(t)) return literal(k, t, static_cast<double>(c->value.at_i64(0)));
  return literal(k, t, c->value.at(0));
}

}  // namespace rlx::codegen
