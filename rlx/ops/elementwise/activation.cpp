// Activation: elementwise functions of one operand. The row of each function is in ir/math/function_table.h.
#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ops/elementwise/elementwise.h"

namespace rlx {
namespace {

template <class T, class F>
void map_elements(const RefArgs& a, F fn) {
  std::vector<T> values = load_all<T>(a.in(0));
  for (T& v : values) v = fn(v);
  store_all(a.out(), values);
}

std::optional<Diagnostic> check_param(const InferContext& c, std::string_view name, std::optional<double> said,
                                      std::optional<double> own) {
  if (said && !own) return c.attr_error("has no parameter ", name);
  if (said && !std::isfinite(*said)) return c.attr_error(name, " must be finite, got ", *said);
  return std::nullopt;
}

struct ActivationRules {
  static const FunctionRow& row(const OpBox& op) { return function_row(op.as<ops::Activation>().fn); }

  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Activation>();
    if (static_cast<int>(op.fn) >= kNumActivationKinds) return c.attr_error("has an unknown function");
    const FunctionRow& r = function_row(op.fn);
    if (auto bad = check_param(c, "alpha", op.alpha, r.alpha)) return *bad;
    if (auto bad = check_param(c, "beta", op.beta, r.beta)) return *bad;
    if (r.order > 0 && op.alpha && (*op.alpha < 0 || *op.alpha > r.order || *op.alpha != std::floor(*op.alpha)))
      return c.attr_error("the order alpha must be a whole number from 0 to ", static_cast<int>(r.order), ", got ",
                          *op.alpha);
    const Shape& x = c.input(0);
    if (!contains(r.dtypes, x.dtype())) return c.dtype_error("needs a ", dtypes_text(r.dtypes), " operand, got ", x);
    return make_shapes(x);
  }

  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Activation>();
    const FunctionRow& r = function_row(op.fn);
    const DType dtype = a.in(0).dtype();
    if (dtype == DType::Bool) return map_elements<std::uint64_t>(a, r.boolean);
    if (is_complex(dtype)) return map_elements<std::complex<double>>(a, r.complex);
    const int bits = dtype_bits(dtype);
    if (is_signed_int(dtype))
      return map_elements<std::int64_t>(a, [&](std::int64_t x) { return r.signed_int(x, bits); });
    if (is_unsigned_int(dtype))
      return map_elements<std::uint64_t>(a, [&](std::uint64_t x) { return r.unsigned_int(x, bits); });
    if (has_own_params(op)) return map_elements<double>(a, r.real);
    const FunctionParams p = function_params(op);
    map_elements<double>(a, [&](double x) { return r.real_with(x, p.alpha, p.beta); });
  }

  static Expr slope(const BuildContext& c, Expr y, Expr ct) {
    return row(c.box()).derivative({c.graph(), c.input(0), y, ct, function_params(c.op<ops::Activation>())});
  }
  static void vjp(VjpContext& c) {
    if (row(c.box()).derivative != kFlat && c.wants(0)) c.accumulate(0, slope(c, c.output(), c.cotangent()));
  }
  static void jvp(JvpContext& c) {
    if (row(c.box()).derivative != kFlat && c.has_tangent(0)) c.set_tangent(slope(c, c.output(), c.tangent(0)));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }

  static Cost cost(const CostContext& c) { return c.with_flops(row(c.box).flops * c.elements()); }

  static constexpr AttrField attrs[] = {field<&ops::Activation::fn>("fn", AttrPlace::Mnemonic),
                                        field<&ops::Activation::alpha>("alpha"), field<&ops::Activation::beta>("beta")};
};

}  // namespace

constinit const OpDef ops::Activation::def{.kind = kind,
                                           .name = "activation",
                                           .what = "An elementwise function of one operand: gelu, relu, exp, ...",
                                           .inputs = inputs("x"),
                                           .attrs = ActivationRules::attrs,
                                           .level = Level::Mir,
                                           .leaf = LeafKind::None,
                                           .elementwise = ElementwiseKind::InBodies,
                                           .view = ViewKind::None,
                                           .precision = PrecisionCategory::Elementwise,
                                           .infer = ActivationRules::infer,
                                           .decompose = none("a primitive"),
                                           .vjp = ActivationRules::vjp,
                                           .jvp = ActivationRules::jvp,
                                           .batch = ActivationRules::batch,
                                           .reference = ActivationRules::reference,
                                           .cost = ActivationRules::cost};

}  // namespace rlx
