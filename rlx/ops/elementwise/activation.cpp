// Activation: elementwise functions of one operand; what each is, is its row in ir/math/function_table.h.
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

FunctionParams some_params(const FunctionRow& r) {
  if (r.order > 0) return {2, 0};
  return {r.alpha.value_or(0) * 0.75, r.beta.value_or(0) * 0.75};
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

  static void samples(SampleSet& s) {
    for (int i = 0; i < kNumActivationKinds; ++i) {
      const FunctionRow& r = function_row(static_cast<ActivationKind>(i));
      ops::Activation op{r.fn};
      std::string name(enum_name(r.fn));
      if (r.real) {
        s.add(name + " f32", {{Shape({2, 3}, DType::F32), r.fill}}, op);
        s.add(name + " f64", {{Shape({3}, DType::F64), r.fill}}, op);
        s.add_discrete(name + " bf16", {{Shape({4}, DType::BF16), r.fill}}, op);
        s.add_discrete(name + " f16", {{Shape({4}, DType::F16), r.fill}}, op);
      }
      if (r.real_with) {
        const FunctionParams p = some_params(r);
        op.alpha = p.alpha;
        if (r.beta) op.beta = p.beta;
        s.add(name + " with parameters f32", {{Shape({2, 3}, DType::F32), r.fill}}, op);
        s.add(name + " with parameters f64", {{Shape({7}, DType::F64), r.fill}}, op);
        s.add_discrete(name + " with parameters f16", {{Shape({4}, DType::F16), r.fill}}, op);
        op = ops::Activation{r.fn};
      }
      if (r.complex)
        s.add(name + " c64", {{Shape({3}, DType::C64), r.fill == Fill::Positive ? Fill::Positive : Fill::Unit}}, op);
      if (r.signed_int) {
        s.add_discrete(name + " i8", {{Shape({5}, DType::I8), Fill::Small}}, op);
        s.add_discrete(name + " i64", {{Shape({2, 2}, DType::I64), Fill::Small}}, op);
        s.add_discrete(name + " u32", {{Shape({3}, DType::U32), Fill::Index, 7}}, op);
      }
      if (contains(r.dtypes, DType::Bool))
        s.add_discrete(name + " bool", {{Shape({4}, DType::Bool), Fill::Boolean}}, op);
    }
    s.add("scalar", {Shape({}, DType::F32)}, ops::Activation{ActivationKind::Silu});
    s.add("no elements", {Shape({0, 3}, DType::F32)}, ops::Activation{ActivationKind::Gelu});
    s.add("rank 4", {Shape({2, 1, 3, 2}, DType::F32)}, ops::Activation{ActivationKind::Tanh});
  }
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
                                           .cost = ActivationRules::cost,
                                           .samples = ActivationRules::samples};

}  // namespace rlx
