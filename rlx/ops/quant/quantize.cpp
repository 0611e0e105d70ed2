// Quantize and DynamicQuantize: numbers to quantized values. Composites.
#include <algorithm>
#include <cmath>

#include "rlx/ir/ops/quantize.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/quant/quantize_core.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

constexpr std::uint32_t kScale = 1U << 1, kZero = 1U << 2;  // OperandMask of Quantize

// The quantized value of x: round(x / scale) + zero, saturated. Computed and rounded in the dtype of the scales.
double code_of(double x, double scale, double zero, DType computed, DType code) {
  double q = rounded_to(computed, x / scale);
  if (!is_float_quantized(code)) q = std::nearbyint(q);  // halves round to even
  return rounded_to(computed, q + zero);
}

std::optional<Diagnostic> check_code_dtype(const InferContext& c, DType t) {
  if (is_float_quantized(t) || t == DType::I4 || t == DType::U4 || t == DType::I32 ||
      (is_int(t) && dtype_bits(t) <= 16))
    return std::nullopt;
  return c.dtype_error("quantized values must be i4, u4, i8, u8, i16, u16, i32, f8 or f4, got ", dtype_name(t));
}

// The blocks of x.
Result<Shapes> infer_blocks(const InferContext& c, const ops::Quantize& op) {
  const BlockLayout& l = block_layout(op.scheme);
  const std::string_view scheme = enum_name(op.scheme);
  const Shape& x = c.input("x");
  if (!makes_blocks(op.scheme)) return c.attr_error("blocks of ", scheme, " can be decoded, but not encoded");
  if (l.scales != GroupScales::None)
    return c.attr_error("the blocks of ", scheme,
                        " can be encoded only on the host: use quantize_blocks, and pass its bytes as u8");
  for (const char* name : {"scale", "zero_point"})
    if (c.has(name)) return c.attr_error(scheme, " takes no ", name, ": its blocks have their own");
  if (op.axis || op.block)
    return c.attr_error(scheme, " has its own blocks along the last axis: axis and block must not be set");
  if (op.dtype != DType::U8) return c.dtype_error("blocks of ", scheme, " must be u8, got ", dtype_name(op.dtype));
  if (x.rank() < 1 || !x.dim(-1).is_static() || x.dim(-1).value() % l.elements != 0)
    return c.error("the last dimension of x ", x, " must be a multiple of ", l.elements, ", the block of ", scheme);
  return make_shapes(Shape(x.dims(), DType::U8).with_dim(x.rank() - 1, x.dim(-1).value() / l.elements * l.bytes));
}

struct QuantizeRules {
  using Op = ops::Quantize;
  static Result<Shapes> infer(const InferContext& c) {
    const Op& op = c.op<Op>();
    const Shape& x = c.input("x");
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (is_block_scheme(op.scheme)) return infer_blocks(c, op);
    if (!c.has("scale")) return c.attr_error("affine quantization needs a scale: give one, or use dynamic_quantize");
    const Shape& s = c.input("scale");
    if (auto e = check_code_dtype(c, op.dtype)) return *e;
    if (auto e = check_grid(c, x, scale_grid(op))) return *e;
    if (!(is_float(s.dtype()) || is_float_quantized(s.dtype())) || (s.dtype() == DType::F64 && x.dtype() != DType::F64))
      return c.dtype_error("scale must be float or f8, and at most f32, in which the quotient is computed, got ", s);
    if (auto e = check_scale_dims(c, "scale", s, x, scale_grid(op))) return *e;
    if (c.has("zero_point")) {
      const Shape& z = c.input("zero_point");
      if (op.dtype == DType::I32) return c.attr_error("i32 takes no zero_point: the sum would not be exact");
      if (z.dtype() != op.dtype)
        return c.dtype_error("zero_point must have the dtype of the quantized values, ", dtype_name(op.dtype), ", got ",
                             z);
      if (auto e = check_scale_dims(c, "zero_point", z, x, scale_grid(op))) return *e;
    }
    return make_shapes(x.with_dtype(op.dtype));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const Op& op = c.op<Op>();
    Expr x = c.input("x");
    if (is_block_scheme(op.scheme)) {
      c.set_result(encode_blocks(g, op.scheme, g.cast(x, DType::F32)));
      return;
    }
    const DType computed = scale_dtype(x.dtype());
    const auto spread = [&](const char* name) {
      return spread_scale(g, g.cast(c.input(name), computed), x.shape().dims(), scale_grid(op));
    };
    Expr q = g.cast(x, computed) / spread("scale");
    if (!is_float_quantized(op.dtype)) q = g.round(q);
    if (c.has("zero_point")) q = q + spread("zero_point");
    c.set_result(g.cast(q, op.dtype));  // the cast saturates
  }
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    Op op = c.op<Op>();
    bool scales = false;
    for (int i = 1; i < c.num_inputs(); ++i) scales = scales || c.is_batched(i);
    if (!scales && op.block == 0) {
      if (op.axis) ++*op.axis;
      c.set_result(g.add(op, std::vector<Value>(c.inputs().begin(), c.inputs().end())));
      return;
    }
    const ScaleBatch b(c, 0, scale_grid(op));
    op.axis = b.grid().axis;
    std::vector<Value> operands{b.x()};
    for (int i = 1; i < c.num_inputs(); ++i) operands.push_back(b.scale(i));
    c.set_result(b.back(g.add(op, std::move(operands))));
  }
  static void reference(const RefArgs& a) {
    const Op& op = a.op<Op>();
    const Tensor& x = a.in("x");
    if (is_block_scheme(op.scheme)) {
      const Tensor numbers = x.cast(DType::F32);
      const auto* first = reinterpret_cast<const float*>(numbers.data());
      quantize_blocks(op.scheme, {first, static_cast<std::size_t>(x.num_elements())},
                      {a.out().mutable_data(), a.out().size_bytes()});
      return;
    }
    const DType computed = scale_dtype(x.dtype());
    const ScaleIndex place(x.dims(), scale_grid(op));
    const std::vector<double> values = x.to_f64(), scale = a.in("scale").to_f64();
    std::vector<double> zero(scale.size());
    if (a.has("zero_point")) zero = a.in("zero_point").to_f64();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t s = place(static_cast<std::int64_t>(i));
      store_element(a.out().mutable_data(), op.dtype, static_cast<std::int64_t>(i),
                    code_of(values[i], scale[s], zero[s], computed, op.dtype));
    }
  }
  static constexpr AttrField attrs[] = {field<&Op::scheme>("scheme"), field<&Op::axis>("axis"),
                                        field<&Op::block>("block"), field<&Op::dtype>("dtype", AttrPlace::TypeDType),
                                        field<&Op::present>("present")};
};

struct DynamicQuantizeRules {
  using Op = ops::DynamicQuantize;
  static Result<Shapes> infer(const InferContext& c) {
    const Op& op = c.op<Op>();
    const Shape& x = c.input(0);
    if (is_block_scheme(op.scheme))
      return c.attr_error("blocks of ", enum_name(op.scheme), " have their own scales: use quantize");
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (is_float_quantized(op.dtype) || op.dtype == DType::I32)
      return c.dtype_error("quantized values must be i4, u4, i8, u8, i16 or u16, got ", dtype_name(op.dtype));
    if (auto e = check_code_dtype(c, op.dtype)) return *e;
    if (op.symmetric && quantized_range(op.dtype).low == 0)
      return c.dtype_error("symmetric quantization needs a signed dtype, got ", dtype_name(op.dtype));
    if (auto e = check_grid(c, x, scale_grid(op))) return *e;
    const Dims s = scale_dims(x.dims(), scale_grid(op));
    return make_shapes(x.with_dtype(op.dtype), Shape(s, scale_dtype(x.dtype())), Shape(s, op.dtype));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const Op& op = c.op<Op>();
    const QuantizedRange range = quantized_range(op.dtype);
    Expr x = g.cast(c.input(0), scale_dtype(c.input(0).dtype()));
    ops::Quantize quantize{QuantScheme::Affine, op.axis, op.block, op.dtype, {kScale}};
    const auto scale_of = [&](Expr width, double steps) { return g.where(g.eq(width, 0), 1, width) / steps; };
    if (op.symmetric) {
      Expr s = scale_of(g.max(reduce_to_scale(g, ReduceKind::Max, g.abs(x), scale_grid(op)), 0), range.high);
      c.set_result(0, g.add(quantize, {x, s}));
      c.set_result(1, s);
      c.set_result(2, c.zeros(c.result_shape(2)));
      return;
    }
    Expr high = g.max(reduce_to_scale(g, ReduceKind::Max, x, scale_grid(op)), 0);
    Expr low = g.min(reduce_to_scale(g, ReduceKind::Min, x, scale_grid(op)), 0);
    Expr s = scale_of(high - low, range.high - range.low);
    Expr zero = g.cast(g.round(range.low - low / s), op.dtype);
    quantize.present.bits = kScale | kZero;
    c.set_result(0, g.add(quantize, {x, s, zero}));
    c.set_result(1, s);
    c.set_result(2, zero);
  }
  static void batch(BatchContext& c) {
    Op op = c.op<Op>();
    const ScaleBatch b(c, 0, scale_grid(op));
    op.axis = b.grid().axis;
    Expr q = c.graph().add(op, {b.x()});
    c.set_result(0, b.back(q));
    c.set_result(1, b.scale_back(q.result(1)));
    c.set_result(2, b.scale_back(q.result(2)));
  }
  static void reference(const RefArgs& a) {
    const Op& op = a.op<Op>();
    const DType computed = scale_dtype(a.in(0).dtype());
    const QuantizedRange range = quantized_range(op.dtype);
    const ScaleIndex place(a.in(0).dims(), scale_grid(op));
    const std::vector<double> x = a.in(0).to_f64();
    std::vector<double> low(static_cast<std::size_t>(a.out(1).num_elements())), high = low;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t s = place(static_cast<std::int64_t>(i));
      const double v = op.symmetric ? std::fabs(x[i]) : x[i];
      if (beats(v, high[s], true)) high[s] = v;
      if (beats(v, low[s], false)) low[s] = v;
    }
    std::vector<double> scale(low.size()), zero(low.size());
    for (std::size_t s = 0; s < scale.size(); ++s) {
      const double width = op.symmetric ? high[s] : rounded_to(computed, high[s] - low[s]);
      scale[s] = rounded_to(computed, (width == 0 ? 1 : width) / (op.symmetric ? range.high : range.high - range.low));
      const double at = rounded_to(computed, range.low - rounded_to(computed, low[s] / scale[s]));
      if (!op.symmetric) zero[s] = std::isnan(at) ? 0 : std::clamp(std::nearbyint(at), range.low, range.high);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t s = place(static_cast<std::int64_t>(i));
      store_element(a.out().mutable_data(), op.dtype, static_cast<std::int64_t>(i),
                    code_of(x[i], scale[s], zero[s], computed, op.dtype));
    }
    store_all(a.out(1), scale);
    store_all(a.out(2), zero);
  }
  static constexpr AttrField attrs[] = {field<&Op::scheme>("scheme"), field<&Op::axis>("axis"),
                                        field<&Op::block>("block"), field<&Op::dtype>("dtype", AttrPlace::TypeDType),
                                        field<&Op::symmetric>("symmetric")};
};

}  // namespace

constinit const OpDef ops::Quantize::def{
    .kind = kind,
    .name = "quantize",
    .what = "Quantizes numbers: round(x / scale) + zero_point, saturated.",
    .inputs = inputs("x", maybe("scale"), maybe("zero_point")).masked_by<&ops::Quantize::present>(),
    .attrs = QuantizeRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = QuantizeRules::infer,
    .decompose = QuantizeRules::decompose,
    .vjp = none("quantized values are integers: use fake_quantize, whose derivative passes through the rounding"),
    .jvp = none("quantized values are integers: use fake_quantize, whose derivative passes through the rounding"),
    .batch = QuantizeRules::batch,
    .reference = QuantizeRules::reference,
    .cost = flops_per_element<3>};

constinit const OpDef ops::DynamicQuantize::def{
    .kind = kind,
    .name = "dynamic_quantize",
    .what = "Quantizes numbers with the scale and zero point of their own range.",
    .inputs = inputs("x"),
    .attrs = DynamicQuantizeRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = DynamicQuantizeRules::infer,
    .decompose = DynamicQuantizeRules::decompose,
    .vjp = by_decomposition,
    .jvp = by_decomposition,
    .batch = DynamicQuantizeRules::batch,
    .reference = DynamicQuantizeRules::reference,
    .cost = flops_per_element<6>};

}  // namespace rlx
