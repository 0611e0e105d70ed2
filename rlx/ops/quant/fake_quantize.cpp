// FakeQuantize: quantizes and dequantizes, with a derivative that passes through the rounding. Composite.
#include <algorithm>
#include <cmath>

#include "rlx/ir/ops/quantize.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/quant/quantize_core.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

constexpr double kLeastScale = 1e-12;

ScaleGrid grid_of(const ops::FakeQuantize& op) { return {op.axis, 0}; }
double q_max(const ops::FakeQuantize& op) { return static_cast<double>((std::int64_t{1} << (op.bits - 1)) - 1); }

// The parts of a derivative: x in the dtype of the scales, and the scale.
struct FakeQuantizeParts {
  const ops::FakeQuantize& op;
  Expr x, scale;
  FakeQuantizeParts(const BuildContext& c, Expr used) : op(c.op<ops::FakeQuantize>()) {
    Graph& g = c.graph();
    x = g.cast(c.input("x"), scale_dtype(c.input("x").dtype()));
    scale = spread_scale(g, used, x.shape().dims(), grid_of(op));
  }
  // d passed through the rounding of x.
  Expr through(Expr d) const {
    Graph& g = x.graph();
    switch (op.ste) {
      case StraightThrough::Identity: return d;
      case StraightThrough::ClippedIdentity: return g.where(g.le(g.abs(x), scale * q_max(op)), d, 0);
      case StraightThrough::Tanh: return d * (1 - g.square(g.tanh(x / scale)));
      case StraightThrough::HardTanh: return d * g.max(1 - g.abs(x) / (scale * q_max(op)), 0);
    }
    return d;
  }
  // dy / dscale of every element, with z = x / scale: round(z) - z inside the range, sign(z) q_max outside.
  Expr by_scale() const {
    Graph& g = x.graph();
    Expr z = x / scale;
    return g.where(g.le(g.abs(z), q_max(op)), g.round(z) - z, g.sign(z) * q_max(op));
  }
};

struct FakeQuantizeRules {
  static std::uint32_t present(const void* op) {
    return static_cast<const ops::FakeQuantize*>(op)->mode != ScaleMode::PerBatch ? 1U << 1 : 0;
  }
  static Result<Shapes> infer(const InferContext& c) {
    const ops::FakeQuantize& op = c.op<ops::FakeQuantize>();
    const Shape& x = c.input("x");
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (op.bits < 2 || op.bits > 8) return c.attr_error("bits must be in [2, 8], got ", op.bits);
    if (!(op.decay >= 0 && op.decay <= 1)) return c.attr_error("decay must be in [0, 1], got ", op.decay);
    if (auto e = check_grid(c, x, grid_of(op))) return *e;
    const Shape s(scale_dims(x.dims(), grid_of(op)), scale_dtype(x.dtype()));
    if (c.has("scale")) {
      if (auto e = check_scale_dims(c, "scale", c.input("scale"), x, grid_of(op))) return *e;
      if (c.input("scale").dtype() != s.dtype())
        return c.dtype_error("scale must be ", dtype_name(s.dtype()), " for x ", x, ", got ", c.input("scale"));
    }
    return make_shapes(x, s);
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const ops::FakeQuantize& op = c.op<ops::FakeQuantize>();
    Expr x = g.cast(c.input("x"), scale_dtype(c.input("x").dtype()));
    Expr s;
    if (op.mode == ScaleMode::Fixed || op.mode == ScaleMode::Learned) {
      s = c.input("scale");
    } else {
      s = g.max(reduce_to_scale(g, ReduceKind::Max, g.abs(x), grid_of(op)), 0) / q_max(op);
      if (op.mode == ScaleMode::Ema) {
        Expr before = c.input("scale");
        s = g.where(g.gt(before, 0), before * op.decay + s * (1 - op.decay), s);
      }
      s = g.max(s, kLeastScale);
    }
    Expr wide = spread_scale(g, s, x.shape().dims(), grid_of(op));
    Expr y = g.clamp(g.round(x / wide), -q_max(op), q_max(op)) * wide;
    c.set_result(0, round_to(y, c.result_shape().dtype()));
    c.set_result(1, s);
  }
  // The scale is constant for the derivative in every mode except learned.
  static void vjp(VjpContext& c) {
    const ops::FakeQuantize& op = c.op<ops::FakeQuantize>();
    const bool learned = op.mode == ScaleMode::Learned;
    if (learned && c.has_cotangent(1)) c.accumulate(c.index("scale"), c.cotangent(1));
    if (!c.has_cotangent(0)) return;
    const FakeQuantizeParts p(c, c.output(1));
    Expr dy = c.graph().cast(c.cotangent(0), p.x.dtype());
    c.accumulate(0, p.through(dy));
    if (!learned) return;
    Expr ds = p.by_scale() * dy;
    c.accumulate(c.index("scale"), reduce_to_scale(c.graph(), ReduceKind::Sum, ds, grid_of(op)));
  }
  static void jvp(JvpContext& c) {
    const ops::FakeQuantize& op = c.op<ops::FakeQuantize>();
    const bool scale_moves = op.mode == ScaleMode::Learned && c.has_tangent(c.index("scale"));
    if (scale_moves) c.set_tangent(1, c.tangent(c.index("scale")));
    if (!c.has_tangent(0) && !scale_moves) return;
    const FakeQuantizeParts p(c, c.output(1));
    if (c.has_tangent(0)) c.add_tangent(0, p.through(c.graph().cast(c.tangent(0), p.x.dtype())));
    if (scale_moves)
      c.add_tangent(
          0, p.by_scale() * spread_scale(c.graph(), c.tangent(c.index("scale")), p.x.shape().dims(), grid_of(op)));
  }
  static void batch(BatchContext& c) {
    ops::FakeQuantize op = c.op<ops::FakeQuantize>();
    const ScaleBatch b(c, 0, grid_of(op));
    op.axis = b.grid().axis;
    std::vector<Value> operands{b.x()};
    if (c.has("scale")) operands.push_back(b.scale(c.index("scale")));
    Expr y = c.graph().add(op, std::move(operands));
    c.set_result(0, b.back(y));
    c.set_result(1, b.scale_back(y.result(1)));
  }
  static void reference(const RefArgs& a) {
    const ops::FakeQuantize& op = a.op<ops::FakeQuantize>();
    const DType computed = scale_dtype(a.in("x").dtype());
    const auto r = [&](double v) { return rounded_to(computed, v); };
    const ScaleIndex place(a.in("x").dims(), grid_of(op));
    const std::vector<double> x = a.in("x").to_f64();
    std::vector<double> scale(static_cast<std::size_t>(a.out(1).num_elements()));
    if (op.mode == ScaleMode::Fixed || op.mode == ScaleMode::Learned) {
      scale = a.in("scale").to_f64();
    } else {
      for (std::size_t i = 0; i < x.size(); ++i) {
        double& s = scale[place(static_cast<std::int64_t>(i))];
        if (beats(std::fabs(x[i]), s, true)) s = std::fabs(x[i]);
      }
      for (std::size_t i = 0; i < scale.size(); ++i) {
        double& s = scale[i];
        s = r(s / q_max(op));
        const double before = op.mode == ScaleMode::Ema ? a.in("scale").at(static_cast<std::int64_t>(i)) : 0;
        if (before > 0) s = r(r(before * r(op.decay)) + r(s * r(1 - op.decay)));
        if (s < r(kLeastScale)) s = r(kLeastScale);
      }
    }
    std::vector<double> y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double s = scale[place(static_cast<std::int64_t>(i))], q = std::nearbyint(r(x[i] / s));
      y[i] = r((std::isnan(q) ? q : std::clamp(q, -q_max(op), q_max(op))) * s);
    }
    store_all(a.out(0), y);
    store_all(a.out(1), scale);
  }
  static constexpr AttrField attrs[] = {field<&ops::FakeQuantize::bits>("bits"),
                                        field<&ops::FakeQuantize::axis>("axis"), field<&ops::FakeQuantize::ste>("ste"),
                                        field<&ops::FakeQuantize::mode>("mode"),
                                        field<&ops::FakeQuantize::decay>("decay")};
};

}  // namespace

constinit const OpDef ops::FakeQuantize::def{
    .kind = kind,
    .name = "fake_quantize",
    .what = "Rounds numbers as quantization to a few bits would; its derivative passes through the rounding.",
    .inputs = inputs("x", maybe("scale")).present_when(FakeQuantizeRules::present),
    .attrs = FakeQuantizeRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = FakeQuantizeRules::infer,
    .decompose = FakeQuantizeRules::decompose,
    .vjp = FakeQuantizeRules::vjp,
    .jvp = FakeQuantizeRules::jvp,
    .batch = FakeQuantizeRules::batch,
    .reference = FakeQuantizeRules::reference,
    .cost = flops_per_element<6>};

}  // namespace rlx
