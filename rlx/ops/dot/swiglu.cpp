// FusedSwiGLU, and the HIR block SwiGLU.
#include "rlx/ops/elementwise/elementwise.h"

#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/fused.h"

namespace rlx {
namespace {

struct FusedSwiGLURules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (x.rank() == 0) return c.error("x must have an axis to split, got ", x);
    std::optional<Dim> half = exact_div(x.dim(-1), 2);
    if (!half) return c.error("the last axis of x ", x, " cannot be split into two equal halves");
    const auto& to = c.op<ops::FusedSwiGLU>().cast_to;
    if (to && !is_float(*to)) return c.attr_error("cast_to must be a float dtype, got ", dtype_name(*to));
    const Shape y = x.with_dim(x.rank() - 1, *half);
    return make_shapes(to ? Shape(y.dims(), *to) : y);
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    Expr x = c.input(0);
    const Dim& half = c.result_shape().dim(-1);
    Expr first = g.narrow(x, -1, 0, half), second = g.narrow(x, -1, half, half);
    const Expr y = c.op<ops::FusedSwiGLU>().gate_first ? second * g.silu(first) : first * g.silu(second);
    c.set_result(g.cast(y, c.result_shape().dtype()));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static constexpr AttrField attrs[] = {field<&ops::FusedSwiGLU::gate_first>("gate_first"),
                                        field<&ops::FusedSwiGLU::cast_to>("cast_to")};
};

struct SwiGLURules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto bad = c.check_same_dtype(0, 4)) return *bad;
    const Shape &x = c.input(0), &up = c.input(1), &gate = c.input(2), &down = c.input(3);
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (x.rank() < 2) return c.error("x must be [.., K], got ", x);
    if (up.rank() != 2 || !(gate == up))
      return c.error("w_up and w_gate must be equal [K, N], got ", up, " and ", gate);
    if (!(x.dim(-1) == up.dim(0)))
      return c.error("x ", x, " has ", x.dim(-1), " columns, w_up ", up, " has ", up.dim(0), " rows");
    if (down.rank() != 2 || !(down.dim(0) == up.dim(1)))
      return c.error("w_down must be [N, M] with N = ", up.dim(1), ", the columns of w_up, got ", down);
    return make_shapes(x.with_dim(x.rank() - 1, down.dim(1)));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    Expr x = c.input(0), up = c.input(1), gate = c.input(2), down = c.input(3);
    Expr hidden;
    if (c.policy() == FusionPolicy::Direct)
      hidden = g.add(ops::FusedSwiGLU{}, {g.matmul(x, g.concat({up, gate}, 1))});
    else
      hidden = g.silu(g.matmul(x, gate)) * g.matmul(x, up);
    c.set_result(g.matmul(hidden, down));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    double rows = static_cast<double>(c.inputs[0].num_elements()) /
                  static_cast<double>(std::max<std::int64_t>(c.inputs[0].dim(-1).value(), 1));
    double k = static_cast<double>(c.inputs[1].num_elements()), m = static_cast<double>(c.inputs[3].num_elements());
    return c.with_flops(rows * (4 * k + 2 * m + 11 * static_cast<double>(c.inputs[1].dim(1).value())));
  }
};

}  // namespace

constinit const OpDef ops::FusedSwiGLU::def{
    .kind = kind,
    .name = "fused_swiglu",
    .what = "up * silu(gate) of the two halves of the last axis, with an optional cast.",
    .inputs = inputs("x"),
    .attrs = FusedSwiGLURules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Elementwise,
    .infer = FusedSwiGLURules::infer,
    .decompose = FusedSwiGLURules::decompose,
    .vjp = FusedSwiGLURules::vjp,
    .jvp = FusedSwiGLURules::jvp,
    .batch = FusedSwiGLURules::batch,
    .reference = by_decomposition,
    .cost = flops_per_element<11>};

constinit const OpDef ops::SwiGLU::def{.kind = kind,
                                       .name = "swiglu",
                                       .what = "(silu(x w_gate) * (x w_up)) w_down.",
                                       .inputs = inputs("x", "w_up", "w_gate", "w_down"),
                                       .attrs = {},
                                       .level = Level::Hir,
                                       .leaf = LeafKind::None,
                                       .elementwise = ElementwiseKind::No,
                                       .view = ViewKind::None,
                                       .precision = PrecisionCategory::Compute,
                                       .infer = SwiGLURules::infer,
                                       .decompose = SwiGLURules::decompose,
                                       .vjp = SwiGLURules::vjp,
                                       .jvp = SwiGLURules::jvp,
                                       .batch = SwiGLURules::batch,
                                       .reference = by_decomposition,
                                       .cost = SwiGLURules::cost};

}  // namespace rlx
