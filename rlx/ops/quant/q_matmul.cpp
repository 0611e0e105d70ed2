// QMatMul: matmuls of quantized values with a quantized result. Composite of an 8-bit matmul with I32 sums.
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ops/quant/requantize.h"

namespace rlx {
namespace {

struct QMatMulRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::QMatMul>();
    const Shape &x = c.input("x"), &w = c.input("w");
    if (x.rank() < 2 || w.rank() < 2)
      return c.error("needs matrices x [.., M, K] and w [.., K, N], got ", x, " and ", w);
    if (!(x.dim(-1) == w.dim(-2)))
      return c.error("x ", x, " has ", x.dim(-1), " columns, w ", w, " has ", w.dim(-2), " rows");
    Dims lead(x.dims().begin(), x.dims().end() - 2);
    if (w.rank() > 2 && lead != Dims(w.dims().begin(), w.dims().end() - 2))
      return c.error("the leading dimensions of x ", x, " and w ", w, " differ; w may be one matrix");
    if (auto e = check_requantize(c, op, w.dim(-1))) return *e;
    lead.push_back(x.dim(-2));
    lead.push_back(w.dim(-1));
    return make_shapes(Shape(std::move(lead), op.dtype));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::QMatMul>();
    const Expr x = c.input("x"), w = c.input("w");
    const std::int64_t rank = x.rank(), lead = w.rank() - 2;
    ops::DotGeneral dot{
        {rank - 1}, {lead}, identity_perm(static_cast<int>(lead)), identity_perm(static_cast<int>(lead)), DType::I32};
    const auto sums = [&](Expr codes, std::int64_t axis) { return g.sum(g.cast(codes, DType::I32), {axis}, true); };
    Expr sum = without_zero_points(
        g, op, g.dot_general(x, w, dot), [&] { return sums(x, rank - 1); }, [&] { return sums(w, lead); },
        op.x_zp != 0 && op.w_zp != 0 ? dim_value(g, x.dim(-1), DType::I32) : Expr());
    if (c.has("bias")) sum = sum + c.input("bias");
    c.set_result(requantized(g, op, sum, rank - 1));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::QMatMul>();
    const Tensor &x = a.in("x"), &w = a.in("w");
    const std::int64_t total = a.out().num_elements();
    if (total == 0) return;
    const std::int64_t k = x.dim(-1), n = w.dim(-1), m = x.dim(-2);
    std::vector<double> out(static_cast<std::size_t>(total));
    for (std::int64_t i = 0; i < total; ++i) {
      const std::int64_t row = i / n, column = i % n, matrix = w.rank() > 2 ? row / m * k * n : 0;
      std::uint32_t sum = a.has("bias") ? static_cast<std::uint32_t>(a.in("bias").at_i64(column)) : 0;
      for (std::int64_t j = 0; j < k; ++j)
        sum += static_cast<std::uint32_t>((x.at_i64(row * k + j) - op.x_zp) *
                                          (w.at_i64(matrix + j * n + column) - op.w_zp));
      out[static_cast<std::size_t>(i)] = requantized_code(op, static_cast<std::int32_t>(sum), column);
    }
    store_all(a.out(), out);
  }
  static Cost cost(const CostContext& c) {
    return c.with_flops(2 * static_cast<double>(c.inputs[0].dim(-1).value()) * c.elements());
  }
  static constexpr AttrField attrs[] = {
      field<&ops::QMatMul::x_zp>("x_zp"),     field<&ops::QMatMul::w_zp>("w_zp"),
      field<&ops::QMatMul::out_zp>("out_zp"), field<&ops::QMatMul::mult>("mult"),
      field<&ops::QMatMul::dtype>("dtype"),   field<&ops::QMatMul::present>("present")};
};

}  // namespace

constinit const OpDef ops::QMatMul::def{
    .kind = kind,
    .name = "q_matmul",
    .what = "A matmul of 8-bit quantized values with a quantized result: summed in I32 and rounded once.",
    .inputs = inputs("x", "w", maybe("bias")).masked_by<&ops::QMatMul::present>(),
    .attrs = QMatMulRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = QMatMulRules::infer,
    .decompose = QMatMulRules::decompose,
    .vjp = none("its result is an integer"),
    .jvp = none("its result is an integer"),
    .batch = by_decomposition,
    .reference = QMatMulRules::reference,
    .cost = QMatMulRules::cost};

}  // namespace rlx
