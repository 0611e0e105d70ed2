// FusedResidualLN and FusedResidualRmsNorm: a residual sum and the norm of its last axis. Composites.
#include <cmath>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/fused.h"

namespace rlx {
namespace {

// Operands x, residual, [bias], gamma, beta: x and residual of one shape, the vectors of its last dimension.
std::optional<Diagnostic> check_residual(const InferContext& c, double eps) {
  const Shape& x = c.input(0);
  if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
  if (auto e = c.check_same_dtype(0, c.num_inputs())) return e;
  if (!(eps >= 0) || !std::isfinite(eps)) return c.attr_error("eps must be a finite number >= 0, got ", eps);
  if (x.rank() < 1) return c.error("x must have an axis to normalise, got ", x);
  if (!(c.input(1) == x)) return c.error("the residual ", c.input(1), " must have the shape of x ", x);
  for (int i = 2; i < c.num_inputs(); ++i) {
    const std::string_view name = operand_name(c.box(), c.num_inputs(), i);
    if (c.input(i).rank() != 1 || !(c.input(i).dim(0) == x.dim(-1)))
      return c.error(name, " must be [", x.dim(-1), "] (the last dimension of x ", x, "), got ", c.input(i));
  }
  return std::nullopt;
}

Expr residual_sum(DecomposeContext& c) {
  Expr sum = c.input("x") + c.input("residual");
  return c.has("bias") ? sum + c.input("bias") : sum;
}

// The place of bias among the operands.
template <class Op>
std::uint32_t bias_present(const void* op) {
  return static_cast<const Op*>(op)->has_bias ? 1U << 2 : 0;
}
template <class Op>
constexpr InputSpec kResidualInputs =
    inputs("x", "residual", maybe("bias"), "gamma", "beta").present_when(bias_present<Op>);

template <class Op>
void residual_samples(SampleSet& s) {
  auto op = [](bool has_bias, double eps) {
    Op o;
    o.has_bias = has_bias;
    o.eps = eps;
    return o;
  };
  auto in = [](const Dims& dims, DType t, bool has_bias) {
    const Shape x(dims, t), v({dims.back()}, t);
    std::vector<SampleInput> out{x, x};
    if (has_bias) out.push_back(v);
    out.push_back(v);
    out.push_back(v);
    return out;
  };
  s.add("plain", in({2, 3}, DType::F32, false), op(false, 1e-5));
  s.add("bias", in({2, 2, 3}, DType::F32, true), op(true, 1e-3));
  s.add("vector", in({4}, DType::F32, true), op(true, 0.1));
  s.add("one element", in({2, 1}, DType::F32, false), op(false, 0.5));
  s.add("no rows", in({0, 3}, DType::F32, true), op(true, 1e-5));
  s.add("f64", in({2, 3}, DType::F64, true), op(true, 1e-12));
}

struct FusedResidualLNRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::FusedResidualLN>();
    if (auto e = check_residual(c, op.eps)) return *e;
    return Shapes{c.input(0)};
  }
  static void decompose(DecomposeContext& c) {
    const auto& op = c.op<ops::FusedResidualLN>();
    c.set_result(c.graph().layer_norm(residual_sum(c), c.input("gamma"), c.input("beta"), op.eps));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static void samples(SampleSet& s) { residual_samples<ops::FusedResidualLN>(s); }
  static constexpr AttrField attrs[] = {field<&ops::FusedResidualLN::has_bias>("has_bias"),
                                        field<&ops::FusedResidualLN::eps>("eps")};
};

struct FusedResidualRmsNormRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::FusedResidualRmsNorm>();
    if (auto e = check_residual(c, op.eps)) return *e;
    return Shapes{c.input(0), c.input(0)};
  }
  static void decompose(DecomposeContext& c) {
    const auto& op = c.op<ops::FusedResidualRmsNorm>();
    Expr sum = residual_sum(c);
    c.set_result(0, c.graph().rms_norm(sum, c.input("gamma"), c.input("beta"), op.eps));
    c.set_result(1, sum);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static void samples(SampleSet& s) { residual_samples<ops::FusedResidualRmsNorm>(s); }
  static constexpr AttrField attrs[] = {field<&ops::FusedResidualRmsNorm::has_bias>("has_bias"),
                                        field<&ops::FusedResidualRmsNorm::eps>("eps")};
};

}  // namespace

constinit const OpDef ops::FusedResidualLN::def{.kind = kind,
                                                .name = "fused_residual_ln",
                                                .what = "layer_norm of x + residual [+ bias] over the last axis.",
                                                .inputs = kResidualInputs<ops::FusedResidualLN>,
                                                .attrs = FusedResidualLNRules::attrs,
                                                .level = Level::Mir,
                                                .leaf = LeafKind::None,
                                                .elementwise = ElementwiseKind::No,
                                                .view = ViewKind::None,
                                                .precision = PrecisionCategory::Reduction,
                                                .infer = FusedResidualLNRules::infer,
                                                .decompose = FusedResidualLNRules::decompose,
                                                .vjp = FusedResidualLNRules::vjp,
                                                .jvp = FusedResidualLNRules::jvp,
                                                .batch = FusedResidualLNRules::batch,
                                                .reference = by_decomposition,
                                                .cost = flops_per_element<10>,
                                                .samples = FusedResidualLNRules::samples};

constinit const OpDef ops::FusedResidualRmsNorm::def{
    .kind = kind,
    .name = "fused_residual_rms_norm",
    .what = "rms_norm of x + residual [+ bias] over the last axis, and that sum.",
    .inputs = kResidualInputs<ops::FusedResidualRmsNorm>,
    .attrs = FusedResidualRmsNormRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Reduction,
    .infer = FusedResidualRmsNormRules::infer,
    .decompose = FusedResidualRmsNormRules::decompose,
    .vjp = FusedResidualRmsNormRules::vjp,
    .jvp = FusedResidualRmsNormRules::jvp,
    .batch = FusedResidualRmsNormRules::batch,
    .reference = by_decomposition,
    .cost = flops_per_element<7>,
    .samples = FusedResidualRmsNormRules::samples};

}  // namespace rlx
