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
  // The factors l [M, K] and u [K, N]. Of a tall matrix l2 is what lies below the square l1, of a wide one u2 is what
  // lies right of the square u1.
  struct Parts {
    Expr l1, l2, u1, u2;
  };
  static Parts parts(Expr lu) {
    const Dim m = lu.shape().dim(-2), n = lu.shape().dim(-1);
    if (m == n) return {unit_lower(lu), {}, triu(lu), {}};
    if (m.value() > n.value()) return {unit_lower(first_rows(lu, n)), rows_from(lu, n), triu(first_rows(lu, n)), {}};
    return {unit_lower(first_columns(lu, m)), {}, triu(first_columns(lu, m)), columns_from(lu, m)};
  }
  static Expr unit_lower(Expr x) { return x.graph().where(on_diagonal(x), 1, tril(x, false)); }
  static Expr rows_from(Expr x, const Dim& n) { return x.graph().narrow(x, x.rank() - 2, n, x.shape().dim(-2) - n); }
  static Expr columns_from(Expr x, const Dim& n) { return x.graph().narrow(x, x.rank() - 1, n, x.shape().dim(-1) - n); }
  // The square block at the top left.
  static Expr square(Expr x) {
    const Dim &m = x.shape().dim(-2), &n = x.shape().dim(-1);
    return m == n ? x : m.value() > n.value() ? first_rows(x, n) : first_columns(x, m);
  }

  // With X = l1^-1 (p da)1 u1^-1: dl1 = l1 (X below the diagonal), du1 = (the rest of X) u1. The other blocks follow
  // from l2 u1 and l1 u2.
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    Graph& g = c.graph();
    const Parts f = parts(c.output(0));
    const Expr da = take_rows(c.tangent(0), c.output(2));
    const Expr half = solve_triangular(f.l1, square(da), {true, true, false, false, true});
    const Expr x = solve_triangular(f.u1, half, {false, false}), below = tril(x, false), above = triu(x);
    const Expr both = g.matmul(f.l1, below) + g.matmul(above, f.u1);
    if (f.l2.valid()) {
      const Expr beside = solve_triangular(f.u1, rows_from(da, x.shape().dim(-1)), {false, false});
      return c.set_tangent(0, g.concat({both, beside - g.matmul(f.l2, above)}, -2));
    }
    if (!f.u2.valid()) return c.set_tangent(0, both);
    const Expr beside = solve_triangular(f.l1, columns_from(da, x.shape().dim(-1)), {true, true, false, false, true});
    c.set_tangent(0, g.concat({both, beside - g.matmul(below, f.u2)}, -1));
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0) || !c.has_cotangent(0)) return;
    Graph& g = c.graph();
    const Parts f = parts(c.output(0));
    const Expr d = c.cotangent(0), d1 = square(d);
    const Dim k = d1.shape().dim(-1);
    Expr below = g.matmul(g.t(f.l1), d1), above = g.matmul(d1, g.t(f.u1)), beside;
    if (f.l2.valid()) {
      const Expr d2 = rows_from(d, k);
      above = above - g.matmul(g.t(f.l2), d2);
      beside = solve_triangular(f.u1, d2, {false, false, true});
    } else if (f.u2.valid()) {
      const Expr d2 = columns_from(d, k);
      below = below - g.matmul(d2, g.t(f.u2));
      beside = solve_triangular(f.l1, d2, {true, true, true, false, true});
    }
    const Expr half = solve_triangular(f.l1, tril(below, false) + triu(above), {true, true, true, false, true});
    Expr da = solve_triangular(f.u1, half, {false, false, true});
    if (beside.valid()) da = g.concat({da, beside}, f.l2.valid() ? -2 : -1);
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
