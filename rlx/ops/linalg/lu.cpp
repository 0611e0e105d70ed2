// Lu: row-pivoted triangular factors.
#include "rlx/ops/linalg/factor_batches.h"
#include "rlx/ops/linalg/factor_rules.h"

namespace rlx {
namespace {

using namespace factors;

struct LuRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto e = check_matrix(c, 0, "a")) return *e;
    auto k = least_extent(c, 0, "a");
    if (!k.ok()) return k.error();
    const Shape& a = c.input(0);
    return make_shapes(a, with_vector(a, k.value(), DType::I32), with_vector(a, a.dim(-2), DType::I32));
  }
  static void reference(const RefArgs& a) {
    for_each_matrix(a, 0, [&]<class A>(A, std::int64_t b) {
      Matrix<A> x = load_matrix<A>(a.in(0), b);
      std::vector<std::int64_t> pivots, permutation;
      lu_reference(x, pivots, permutation);
      store_matrix(a.out(0), b, x);
      store_values(a.out(1), b, pivots);
      store_values(a.out(2), b, permutation);
    });
  }
  static Cost cost(const CostContext& c) {
    const Shape& a = c.inputs[0];
    const double m = static_cast<double>(a.dim(-2).value()), n = static_cast<double>(a.dim(-1).value());
    const double k = std::min(m, n);
    return c.with_flops(matrix_count(a) * (m * n * k - (m + n) * k * k / 2 + k * k * k / 3) * multiply_add(a.dtype()));
  }
  // l [M, M] and u [N, N], extended by the identity.
  static Expr lower(Expr lu) {
    Graph& g = lu.graph();
    const Dim &m = lu.shape().dim(-2), &n = lu.shape().dim(-1);
    Expr l = tril(lu, false);
    if (!(m == n)) l = n.value() > m.value() ? first_columns(l, m) : padded(l, l.rank() - 1, m.value() - n.value());
    return g.where(on_diagonal(l), 1, l);
  }
  static Expr upper(Expr lu) {
    Graph& g = lu.graph();
    const Dim m = lu.shape().dim(-2), n = lu.shape().dim(-1);
    Expr u = triu(lu);
    if (m == n) return u;
    if (m.value() > n.value()) return first_rows(u, n);
    u = padded(u, u.rank() - 2, n.value() - m.value());
    const Expr rows = g.iota(Shape({n, n}, DType::I32), 0);
    return g.where(
        g.cast(g.mul(g.cast(on_diagonal(u), DType::I32), g.cast(g.ge(rows, m.value()), DType::I32)), DType::Bool), 1,
        u);
  }
  static Expr padded(Expr x, int axis, std::int64_t by) {
    std::vector<std::int64_t> low(static_cast<std::size_t>(x.rank()), 0), high = low;
    high[static_cast<std::size_t>(axis)] = by;
    return x.graph().pad(x, low, high);
  }

  // Below the diagonal, l^-1 (p da) u^-1 equals l^-1 dl; the rest equals du u^-1.
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    Graph& g = c.graph();
    const Expr l = lower(c.output(0)), u = upper(c.output(0));
    const Expr half = solve_triangular(l, take_rows(c.tangent(0), c.output(2)), {true, true, false, false, true});
    const Expr x = solve_triangular(u, half, {false, false});
    c.set_tangent(0, g.matmul(l, tril(x, false)) + g.matmul(triu(x), u));
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0) || !c.has_cotangent(0)) return;
    Graph& g = c.graph();
    const Expr l = lower(c.output(0)), u = upper(c.output(0)), d = c.cotangent(0);
    const Expr x = tril(g.matmul(g.t(l), d), false) + triu(g.matmul(d, g.t(u)));
    const Expr half = solve_triangular(l, x, {true, true, true, false, true});
    const Expr da = solve_triangular(u, half, {false, false, true});
    c.accumulate(0, take_rows(da, g.argsort(c.output(2), -1)));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
};

}  // namespace

constinit const OpDef ops::Lu::def{.kind = kind,
                                   .name = "lu",
                                   .what = "Triangular factors of matrices with rows exchanged by partial pivoting.",
                                   .inputs = inputs("a"),
                                   .attrs = {},
                                   .level = Level::Mir,
                                   .leaf = LeafKind::None,
                                   .elementwise = ElementwiseKind::No,
                                   .view = ViewKind::None,
                                   .precision = PrecisionCategory::Stated,
                                   .infer = LuRules::infer,
                                   .decompose = none("a primitive"),
                                   .vjp = LuRules::vjp,
                                   .jvp = LuRules::jvp,
                                   .batch = LuRules::batch,
                                   .reference = LuRules::reference,
                                   .cost = LuRules::cost};

}  // namespace rlx
