// FakeQuantizeLsq: the documented name of FakeQuantize with a learned scale and a clipped identity. Composite.
#include <algorithm>
#include <cmath>

#include "rlx/ir/ops/quantize.h"
#include "rlx/ops/quant/quantize_core.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

struct FakeQuantizeLsqRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::FakeQuantizeLsq>();
    const Shape& x = c.input("x");
    const ScaleGrid grid{op.axis, 0};
    if (!is_float(x.dtype()) || is_storage_only(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (op.bits < 2 || op.bits > 8) return c.attr_error("bits must be in [2, 8], got ", op.bits);
    if (auto e = check_grid(c, x, grid)) return *e;
    if (auto e = check_scale_dims(c, "scale", c.input("scale"), x, grid)) return *e;
    if (c.input("scale").dtype() != scale_dtype(x.dtype()))
      return c.dtype_error("scale must be ", dtype_name(scale_dtype(x.dtype())), " for x ", x, ", got ",
                           c.input("scale"));
    return make_shapes(x);
  }
  static void decompose(DecomposeContext& c) {
    const auto& op = c.op<ops::FakeQuantizeLsq>();
    ops::FakeQuantize fake;
    fake.bits = op.bits, fake.axis = op.axis;
    fake.ste = StraightThrough::ClippedIdentity, fake.mode = ScaleMode::Learned;
    c.set_result(c.graph().add(fake, {c.input("x"), c.input("scale")}));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::FakeQuantizeLsq>();
    const DType computed = scale_dtype(a.in("x").dtype());
    const ScaleIndex place(a.in("x").dims(), {op.axis, 0});
    const double most = static_cast<double>((1 << (op.bits - 1)) - 1);
    const std::vector<double> scale = load_all<double>(a.in("scale"));
    std::vector<double> x = load_all<double>(a.in("x"));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double s = scale[place(static_cast<std::int64_t>(i))], q = std::nearbyint(rounded_to(computed, x[i] / s));
      x[i] = rounded_to(computed, (std::isnan(q) ? q : std::clamp(q, -most, most)) * s);
    }
    store_all(a.out(), x);
  }
  static constexpr AttrField attrs[] = {field<&ops::FakeQuantizeLsq::bits>("bits"),
                                        field<&ops::FakeQuantizeLsq::axis>("axis")};
};

}  // namespace

constinit const OpDef ops::FakeQuantizeLsq::def{
    .kind = kind,
    .name = "fake_quantize_lsq",
    .what = "Rounds numbers as quantization would, with a learned scale (LSQ).",
    .inputs = inputs("x", "scale"),
    .attrs = FakeQuantizeLsqRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = FakeQuantizeLsqRules::infer,
    .decompose = FakeQuantizeLsqRules::decompose,
    .vjp = by_decomposition,
    .jvp = by_decomposition,
    .batch = by_decomposition,
    .reference = FakeQuantizeLsqRules::reference,
    .cost = flops_per_element<6>};

}  // namespace rlx
