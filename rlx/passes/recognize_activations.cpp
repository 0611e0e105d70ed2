// recognize-activations: finds gelu, silu, sigmoid and relu written out of simpler ops, as exporters emit them.
#include <array>
#include <cmath>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/match.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

// Coefficients of 1, x, x^2, x^3.
using Polynomial = std::array<double, 4>;

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kTanhScale = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kTanhCubic = 0.044715;

// The relative tolerance for constants, which are rounded to the dtype of the graph.
double rounding_of(DType t) {
  switch (t) {
    case DType::F16: return 0x1p-10;
    case DType::BF16: return 0x1p-7;
    case DType::F32: return 0x1p-21;
    default: return 1e-9;
  }
}

// `v` as a polynomial of `x`. None when it is not one of degree 3 or less. `budget` bounds the nodes visited.
std::optional<Polynomial> polynomial_of(const Graph& g, Value v, Value x, int& budget) {
  if (v == x) return Polynomial{0, 1, 0, 0};
  if (std::optional<double> c = constant_scalar(g, v)) return Polynomial{*c, 0, 0, 0};
  if (--budget < 0) return std::nullopt;
  auto multiplied = [](const Polynomial& a, const Polynomial& b) -> std::optional<Polynomial> {
    Polynomial out{};
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        if (a[i] == 0 || b[j] == 0) continue;
        if (i + j > 3) return std::nullopt;
        out[i + j] += a[i] * b[j];
      }
    return out;
  };
  const Node& n = g.node(v.node);
  if (const auto* act = n.op.get_if<ops::Activation>()) {
    if (act->fn != ActivationKind::Neg && act->fn != ActivationKind::Square) return std::nullopt;
    std::optional<Polynomial> a = polynomial_of(g, n.inputs[0], x, budget);
    if (!a) return std::nullopt;
    return multiplied(*a, act->fn == ActivationKind::Neg ? Polynomial{-1, 0, 0, 0} : *a);
  }
  const auto* op = n.op.get_if<ops::Binary>();
  if (!op) return std::nullopt;
  std::optional<Polynomial> a = polynomial_of(g, n.inputs[0], x, budget);
  if (!a) return std::nullopt;
  if (op->fn == BinaryKind::Pow) {
    std::optional<double> power = constant_scalar(g, n.inputs[1]);
    if (!power || (*power != 2 && *power != 3)) return std::nullopt;
    std::optional<Polynomial> square = multiplied(*a, *a);
    return square && *power == 3 ? multiplied(*square, *a) : square;
  }
  std::optional<Polynomial> b = polynomial_of(g, n.inputs[1], x, budget);
  if (!b) return std::nullopt;
  switch (op->fn) {
    case BinaryKind::Add:
    case BinaryKind::Sub:
      for (std::size_t i = 0; i < 4; ++i) (*a)[i] += op->fn == BinaryKind::Add ? (*b)[i] : -(*b)[i];
      return a;
    case BinaryKind::Mul: return multiplied(*a, *b);
    case BinaryKind::Div:
      if ((*b)[1] != 0 || (*b)[2] != 0 || (*b)[3] != 0 || (*b)[0] == 0) return std::nullopt;
      return multiplied(*a, {1 / (*b)[0], 0, 0, 0});
    default: return std::nullopt;
  }
}

bool is_polynomial(const Graph& g, Value v, Value x, const Polynomial& want) {
  int budget = 64;
  std::optional<Polynomial> p = polynomial_of(g, v, x, budget);
  if (!p) return false;
  const double tolerance = 2 * rounding_of(g.shape(v).dtype());
  for (std::size_t i = 0; i < 4; ++i)
    if (!(std::abs((*p)[i] - want[i]) <= tolerance * std::abs(want[i]))) return false;
  return true;
}

// u when v is 1 + exp(-u).
std::optional<Value> logistic_denominator(const Graph& g, Value v) {
  const Node* add = as_binary(g, v, BinaryKind::Add);
  std::optional<WithConstant> one = add ? with_constant(g, *add) : std::nullopt;
  if (!one || one->constant != 1) return std::nullopt;
  const Node* exp = as_activation(g, one->other, ActivationKind::Exp);
  if (!exp) return std::nullopt;
  const Scaled s = peel_scale(g, exp->inputs[0]);
  return s.factor == -1 ? std::optional(s.base) : std::nullopt;
}

// u when v is sigmoid(u), 1 / (1 + exp(-u)) included.
std::optional<Value> sigmoid_of(const Graph& g, Value v) {
  if (const Node* act = as_activation(g, v, ActivationKind::Sigmoid)) return act->inputs[0];
  Value sum;
  if (const Node* recip = as_activation(g, v, ActivationKind::Recip)) {
    sum = recip->inputs[0];
  } else {
    const Node* div = as_binary(g, v, BinaryKind::Div);
    if (!div || constant_scalar(g, div->inputs[0]) != 1.0) return std::nullopt;
    sum = div->inputs[1];
  }
  return logistic_denominator(g, sum);
}

// Matches the activations that can be built on one function node (erf, tanh, sigmoid, division, max). The search goes
// from the function towards its readers.
class ActivationMatcher {
 public:
  ActivationMatcher(GraphRewriter& r, const PassContext& context, NodeId function)
      : r_(r), g_(r.source()), context_(context), function_(function) {}

  void run() {
    const Value f(function_);
    if (as_activation(g_, f, ActivationKind::Erf))
      return match_times_x(ActivationKind::Gelu, 1, 0.5, {0, kSqrtHalf, 0, 0}, g_.node(function_).inputs[0]);
    if (as_activation(g_, f, ActivationKind::Tanh))
      return match_times_x(ActivationKind::GeluApprox, 1, 0.5, {0, kTanhScale, 0, kTanhScale * kTanhCubic},
                           g_.node(function_).inputs[0]);
    if (std::optional<Value> u = sigmoid_of(g_, f)) {
      match_times_x(ActivationKind::Silu, 0, 1, {0, 1, 0, 0}, *u);
      if (!replaced_ && !as_activation(g_, f, ActivationKind::Sigmoid)) emit(ActivationKind::Sigmoid, f, *u);
      return;
    }
    if (const Node* div = as_binary(g_, f, BinaryKind::Div)) {  // x / (1 + exp(-x))
      if (logistic_denominator(g_, div->inputs[1]) == div->inputs[0]) emit(ActivationKind::Silu, f, div->inputs[0]);
    } else if (const Node* max = as_binary(g_, f, BinaryKind::Max)) {  // max(x, 0), max(0, x)
      for (std::size_t i = 0; i < 2; ++i)
        if (constant_scalar(g_, max->inputs[i]) == 0.0) return emit(ActivationKind::Relu, f, max->inputs[1 - i]);
    }
  }

 private:
  // Matches x * (offset + f(inner(x))) * scale, where f is the function node and `argument` is inner(x), with the
  // constants in any order. The loop goes from f to its single reader, to the reader of that, and so on. `at` is
  // a + b * f before the multiplication by x, and x * (a + b * f) after it (`found`). Before it, a reader may add or
  // multiply a constant; after it, multiply only.
  void match_times_x(ActivationKind kind, double offset, double scale, const Polynomial& inner, Value argument) {
    double a = 0, b = 1;
    Value at(function_);
    Value x;
    bool found = false;
    std::optional<MissReason> blocked;
    while (true) {
      if (found && close(b, scale) && close(a, offset * scale)) return emit(kind, at, x);
      if (r_.uses().uses(at).empty()) break;
      if (!r_.uses().single_use(at)) {
        blocked = r_.uses().is_output(at) ? MissReason::IsOutput : MissReason::MultiConsumer;
        break;
      }
      const UseIndex::Use use = r_.uses().uses(at)[0];
      const auto* op = g_.node(use.user).op.get_if<ops::Binary>();
      if (!op) break;
      const Value other = g_.node(use.user).inputs[1 - use.operand];
      if (std::optional<double> c = constant_scalar(g_, other)) {
        const bool is_lhs = use.operand == 0;
        if (op->fn == BinaryKind::Mul) {
          a *= *c, b *= *c;
        } else if (op->fn == BinaryKind::Div && is_lhs) {
          a /= *c, b /= *c;
        } else if (op->fn == BinaryKind::Add && !found) {
          a += *c;
        } else if (op->fn == BinaryKind::Sub && !found) {
          if (!is_lhs) a = -a, b = -b;
          a += is_lhs ? -*c : *c;
        } else {
          break;
        }
      } else {
        if (op->fn != BinaryKind::Mul || found) break;
        std::optional<Scaled> s = scaled_argument(other, argument, inner);
        if (!s) break;
        found = true, x = s->base, a *= s->factor, b *= s->factor;
      }
      at = Value(use.user);
    }
    if (kind == ActivationKind::Silu) return;  // a sigmoid alone is valid
    // A miss is reported when gelu was meant: x was found, or erf(x / sqrt(2)) alone shows it.
    const bool is_gelu_argument = kind == ActivationKind::Gelu && close(peel_scale(g_, argument).factor, kSqrtHalf);
    if (blocked && (found || is_gelu_argument))
      miss(kind, *blocked,
           concat_text(at, *blocked == MissReason::IsOutput ? " is an output of the graph" : " has other readers"));
    else if (found)
      miss(kind, MissReason::NotFused,
           concat_text("the constants give x * (", a, " + ", b, " f), not x * (", offset * scale, " + ", scale, " f)"));
  }

  // `factor`, by which f is multiplied, as a constant times x, where `argument` is the polynomial `inner` of x.
  std::optional<Scaled> scaled_argument(Value factor, Value argument, const Polynomial& inner) const {
    if (is_polynomial(g_, argument, factor, inner)) return Scaled{factor, 1};
    const Scaled s = peel_scale(g_, factor);
    if (s.base != factor && is_polynomial(g_, argument, s.base, inner)) return s;
    return std::nullopt;
  }

  bool close(double a, double b) const {
    return std::abs(a - b) <= 2 * rounding_of(g_.node(function_).shape().dtype()) * std::abs(b);
  }

  void emit(ActivationKind kind, Value old, Value x) {
    if (!(g_.shape(x) == g_.shape(old)) || !is_float(g_.shape(x).dtype()) || r_.is_replaced(old)) return;
    Expr y = r_.stage().activation(kind, r_.expr(x));
    if (const char* why = context_.refuses(r_, y, old))
      return miss(kind, MissReason::NotClaimed,
                  concat_text("the target does not claim ", enum_name(kind), " of ", g_.shape(x), ": ", why));
    r_.replace(old, y);
    replaced_ = true;
    context_.fused(enum_name(kind));
  }

  void miss(ActivationKind kind, MissReason reason, std::string detail) const {
    context_.missed(enum_name(kind), g_, function_, reason, std::move(detail));
  }

  GraphRewriter& r_;
  const Graph& g_;
  const PassContext& context_;
  NodeId function_;
  bool replaced_ = false;
};

std::optional<Graph> run_recognize_activations(const Graph& g, const PassContext& context) {
  if (!context.claims->has(OpKind::Activation)) return std::nullopt;
  GraphRewriter r(g);
  for (NodeId id : r.nodes())
    if (g.node(id).kind() == OpKind::Activation || g.node(id).kind() == OpKind::Binary)
      ActivationMatcher(r, context, id).run();
  if (!r.changed()) return std::nullopt;
  return r.commit(recognize_activations.name).graph;
}

}  // namespace

const Pass recognize_activations{"recognize-activations",
                                 "Rewrites x * (1 + erf(x / sqrt 2)) / 2 as gelu, its tanh form as gelu_approx, x * "
                                 "sigmoid(x) and x / (1 + exp(-x)) as silu, 1 / (1 + exp(-x)) as sigmoid and max(x, 0) "
                                 "as relu; factors may be in any order. Legal: the constants are those of the function "
                                 "within the rounding of the dtype, and nothing else reads the function's value.",
                                 run_recognize_activations};

}  // namespace rlx
