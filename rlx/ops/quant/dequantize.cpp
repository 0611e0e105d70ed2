// Dequantize: quantized values to numbers. Composite.
#include "rlx/ir/ops/quantize.h"
#include "rlx/ops/quant/quantize_core.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

std::optional<Diagnostic> check_result_dtype(const InferContext& c, DType t) {
  if (is_float(t)) return std::nullopt;
  return c.dtype_error("the result must be float, got ", dtype_name(t));
}

Result<Shapes> infer_blocks(const InferContext& c, const ops::Dequantize& op) {
  const BlockLayout& l = block_layout(op.scheme);
  const std::string_view scheme = enum_name(op.scheme);
  const Shape& codes = c.input("codes");
  if (codes.dtype() != DType::U8 || codes.rank() < 1)
    return c.dtype_error("codes of ", scheme, " must be u8 [.., row bytes], got ", codes);
  for (const char* name : {"scale", "zero_point", "global_scale"})
    if (c.has(name)) return c.attr_error(scheme, " takes no ", name, ": its blocks have their own");
  if (op.axis || op.block)
    return c.attr_error(scheme, " has its own blocks along the last axis: axis and block must not be set");
  if (static_cast<int>(op.dims.size()) != codes.rank())
    return c.attr_error("dims ", dims_text(op.dims), " must have the rank of the codes ", codes);
  const Dim &row = op.dims.back(), &bytes = codes.dim(-1);
  if (!row.is_static() || row.value() < 0 || row.value() % l.elements != 0)
    return c.error("the last of dims ", dims_text(op.dims), " must be a multiple of ", l.elements, ", the block of ",
                   scheme);
  if (row.value() / l.elements > (std::int64_t{1} << 40) || !bytes.is_static(row.value() / l.elements * l.bytes))
    return c.error("a row of ", row, " elements in ", scheme, " needs ", l.bytes, " bytes for each ", l.elements,
                   " elements, got codes ", codes);
  Dims want = codes.dims();
  want.back() = row;
  if (want != op.dims)
    return c.error("dims ", dims_text(op.dims), " and the codes ", codes, " differ in the number of rows");
  return make_shapes(Shape(op.dims, op.dtype));
}

struct DequantizeRules {
  static Result<Shapes> infer(const InferContext& c) {
    const ops::Dequantize& op = c.op<ops::Dequantize>();
    if (auto e = check_result_dtype(c, op.dtype)) return *e;
    if (is_block_scheme(op.scheme)) return infer_blocks(c, op);
    const Shape& codes = c.input("codes");
    if (!is_quantized_dtype(codes.dtype()))
      return c.dtype_error("codes must be integers (except u64), 4-bit integers, f8 or f4, got ", codes);
    if (!op.dims.empty())
      return c.attr_error("dims must be set only for block schemes: affine codes have the dimensions of the result");
    if (auto e = check_grid(c, codes, scale_grid(op))) return *e;
    if (c.has("scale")) {
      const Shape& s = c.input("scale");
      const bool narrow =
          is_float(s.dtype()) ? s.dtype() != DType::F64 || op.dtype == DType::F64 : is_float_quantized(s.dtype());
      if (!narrow)
        return c.dtype_error(
            "scale must be float or f8, and at most f32, in which the multiplication is computed, got ", s);
      if (auto e = check_scale_dims(c, "scale", s, codes, scale_grid(op))) return *e;
    } else if (op.axis) {
      return c.attr_error("axis ", *op.axis, " needs a scale, which is missing");
    }
    if (c.has("zero_point")) {
      const Shape& z = c.input("zero_point");
      if (z.dtype() != codes.dtype())
        return c.dtype_error("zero_point must have the dtype of codes ", codes, ", got ", z);
      if (auto e = check_scale_dims(c, "zero_point", z, codes, scale_grid(op))) return *e;
    }
    if (c.has("global_scale")) {
      const Shape& s = c.input("global_scale");
      if (!c.has("scale")) return c.attr_error("global_scale needs a scale, which is missing");
      if (s.rank() != 0 || s.dtype() != scale_dtype(op.dtype))
        return c.error("global_scale must be [] ", dtype_name(scale_dtype(op.dtype)), ", got ", s);
    }
    return make_shapes(codes.with_dtype(op.dtype));
  }

  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const ops::Dequantize& op = c.op<ops::Dequantize>();
    Expr codes = c.input("codes");
    if (is_block_scheme(op.scheme)) {
      c.set_result(g.cast(decode_blocks(g, op.scheme, codes, op.dims), op.dtype));
      return;
    }
    const Dims& x = codes.shape().dims();
    const DType computed = scale_dtype(op.dtype);
    // Integers are subtracted as integers, which is exact.
    const DType whole = is_float_quantized(codes.dtype()) ? computed
                        : dtype_bits(codes.dtype()) < 32  ? DType::I32
                                                          : DType::I64;
    Expr y = codes;
    if (c.has("zero_point"))
      y = g.cast(y, whole) - spread_scale(g, g.cast(c.input("zero_point"), whole), x, scale_grid(op));
    y = g.cast(y, computed);
    if (c.has("scale")) {
      Expr s = g.cast(c.input("scale"), computed);
      if (c.has("global_scale")) s = s * c.input("global_scale");
      y = y * spread_scale(g, s, x, scale_grid(op));
    }
    c.set_result(g.cast(y, op.dtype));
  }

  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    ops::Dequantize op = c.op<ops::Dequantize>();
    bool scales = false;
    for (int i = 1; i < c.num_inputs(); ++i) scales = scales || c.is_batched(i);
    if (!scales && op.block == 0) {  // all batch entries share the scales
      if (op.axis) ++*op.axis;
      if (!op.dims.empty()) op.dims = prepend(c.batch_size(), op.dims);
      c.set_result(g.add(op, std::vector<Value>(c.inputs().begin(), c.inputs().end())));
      return;
    }
    const ScaleBatch b(c, c.index("codes"), scale_grid(op));
    op.axis = b.grid().axis;
    std::vector<std::pair<std::string_view, Expr>> operands{{"codes", b.x()}};
    if (c.has("scale")) {
      Expr s = c.lifted(c.index("scale"));
      if (c.has("global_scale")) {  // one number for each batch entry: multiplied into the scales, with the same
                                    // rounding
        const DType computed = scale_dtype(op.dtype);
        Dims each(static_cast<std::size_t>(s.rank()), Dim(1));
        each[0] = c.batch_size();
        s = g.cast(s, computed) * g.reshape(c.lifted(c.index("global_scale")), each);
      }
      operands.emplace_back("scale", b.fold_scale(s));
    } else {  // zero points along an axis need scales
      operands.emplace_back("scale", g.expand(g.scalar(1, scale_dtype(op.dtype)), {c.batch_size()}));
    }
    if (c.has("zero_point")) operands.emplace_back("zero_point", b.scale(c.index("zero_point")));
    c.set_result(b.back(g.add_named(op, operands)));
  }

  static void reference(const RefArgs& a) {
    const ops::Dequantize& op = a.op<ops::Dequantize>();
    const Tensor& codes = a.in("codes");
    std::byte* out = a.out().mutable_data();
    const std::int64_t n = a.out().num_elements();
    if (is_block_scheme(op.scheme)) {
      std::vector<float> y(static_cast<std::size_t>(n));
      dequantize_blocks(op.scheme, {codes.data(), codes.size_bytes()}, y);
      for (std::int64_t i = 0; i < n; ++i)
        store_element(out, op.dtype, i, static_cast<double>(y[static_cast<std::size_t>(i)]));
      return;
    }
    const DType computed = scale_dtype(op.dtype);
    const ScaleIndex place(codes.dims(), scale_grid(op));
    std::vector<double> scale;
    if (a.has("scale")) scale = a.in("scale").to_f64();
    if (a.has("global_scale"))
      for (double& s : scale) s = rounded_to(computed, s * a.in("global_scale").at(0));
    const bool has_zero = a.has("zero_point");
    for (std::int64_t i = 0; i < n; ++i) {
      const std::size_t s = place(i);
      double q;
      if (is_float_quantized(codes.dtype()))
        q = rounded_to(computed, codes.at(i) - (has_zero ? a.in("zero_point").at(static_cast<std::int64_t>(s)) : 0));
      else
        q = rounded_to(computed,
                       static_cast<double>(wrapping_sub(
                           codes.at_i64(i), has_zero ? a.in("zero_point").at_i64(static_cast<std::int64_t>(s)) : 0)));
      store_element(out, op.dtype, i, scale.empty() ? q : rounded_to(computed, q * scale[s]));
    }
  }
  static std::int64_t wrapping_sub(std::int64_t x, std::int64_t y) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y));
  }

  static constexpr AttrField attrs[] = {field<&ops::Dequantize::scheme>("scheme"),
                                        field<&ops::Dequantize::axis>("axis"),
                                        field<&ops::Dequantize::block>("block"),
                                        field<&ops::Dequantize::dims>("dims"),
                                        field<&ops::Dequantize::dtype>("dtype", AttrPlace::TypeDType),
                                        field<&ops::Dequantize::present>("present")};
};

}  // namespace

constinit const OpDef ops::Dequantize::def{
    .kind = kind,
    .name = "dequantize",
    .what = "Decodes quantized values: (codes - zero_point) * scale, or blocks of GGUF.",
    .inputs = inputs("codes", maybe("scale"), maybe("zero_point"), maybe("global_scale"))
                  .masked_by<&ops::Dequantize::present>(),
    .attrs = DequantizeRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = DequantizeRules::infer,
    .decompose = DequantizeRules::decompose,
    .vjp = by_decomposition,
    .jvp = by_decomposition,
    .batch = DequantizeRules::batch,
    .reference = DequantizeRules::reference,
    .cost = flops_per_element<2>};

}  // namespace rlx
