// Qr: orthonormal columns times an upper triangular matrix.
#include "rlx/ops/linalg/factor_batches.h"
#include "rlx/ops/linalg/factor_rules.h"

namespace rlx {
namespace {

using namespace factors;

struct QrRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto e = check_matrix(c, 0, "a")) return *e;
    const Shape& a = c.input(0);
    const Dim m = a.dim(-2);
    Dim k = m;
    if (!c.op<ops::Qr>().full) {
      auto least = least_extent(c, 0, "a");
      if (!least.ok()) return least.error();
      k = least.value();
    }
    return make_shapes(with_matrix(a, m, k), with_matrix(a, k, a.dim(-1)));
  }
  static void reference(const RefArgs& a) {
    for_each_matrix(a, 0, [&]<class A>(A, std::int64_t b) {
      Matrix<A> x = load_matrix<A>(a.in(0), b), r(a.out(1).dim(-2), a.out(1).dim(-1));
      store_matrix(a.out(0), b, qr_reference(x, a.out(0).dim(-1)));
      for (std::int64_t i = 0; i < r.rows; ++i)
        for (std::int64_t j = i; j < r.cols; ++j) r(i, j) = x(i, j);
      store_matrix(a.out(1), b, r);
    });
  }
  static Cost cost(const CostContext& c) {
    const Shape& a = c.inputs[0];
    const double m = static_cast<double>(a.dim(-2).value()), n = static_cast<double>(a.dim(-1).value());
    const double k = std::min(m, n);
    return c.with_flops(matrix_count(a) * 2 * (m * n * k - (m + n) * k * k / 2 + k * k * k / 3) *
                        multiply_add(a.dtype()));
  }
  // The number of columns of a that determine q. For the others, r = q^H a.
  static Dim deciding(const BuildContext& c) {
    const Shape& a = c.input(0).shape();
    const Dim &m = a.dim(-2), &n = a.dim(-1);
    if (m == n) return n;
    if (c.op<ops::Qr>().full && m.is_static() && n.is_static() && m.value() > n.value())
      throw Error(ErrorCode::Unsupported,
                  concat_text("qr of ", a, " with full = true has no derivative: the columns of q beyond ", n,
                              " are not unique"),
                  "use qr with full = false");
    return m.value() < n.value() ? m : n;
  }
  static Expr last_columns(Expr x, const Dim& from) {
    return x.graph().narrow(x, x.rank() - 1, from, x.shape().dim(-1) - from);
  }
  // With C = q^H da r^-1: dr r^-1 is the upper part of C's Hermitian half with a real diagonal; dq q^H is the rest.
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    Graph& g = c.graph();
    const Dim k = deciding(c);
    const Expr q = c.output(0), a = c.input(0), da = c.tangent(0);
    const Expr r = first_columns(c.output(1), k);
    const Expr b = solve_triangular(r, first_columns(da, k), {false, false});
    const Expr x = g.matmul(adjoint(q), b);
    const Expr upper = g.where(on_diagonal(x), as_dtype_of(real_of(x), x), triu(x) + adjoint(tril(x, false)));
    const Expr dq = b - g.matmul(q, upper), dr = g.matmul(upper, r);
    c.set_tangent(0, dq);
    if (k == a.shape().dim(-1)) return c.set_tangent(1, dr);
    const Expr rest = g.matmul(adjoint(dq), last_columns(a, k)) + g.matmul(adjoint(q), last_columns(da, k));
    c.set_tangent(1, g.concat({dr, rest}, -1));
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0) || (!c.has_cotangent(0) && !c.has_cotangent(1))) return;
    Graph& g = c.graph();
    const Dim k = deciding(c);
    const Expr q = c.output(0), a = c.input(0);
    const Expr r = first_columns(c.output(1), k);
    const bool wide = !(k == a.shape().dim(-1));
    Expr dq = conj_of(c.cotangent(0));
    const Expr dr = conj_of(c.cotangent(1));
    if (wide) dq = dq + g.matmul(last_columns(a, k), adjoint(last_columns(dr, k)));
    const Expr x = g.matmul(adjoint(q), dq) - g.matmul(first_columns(dr, k), adjoint(r));
    const Expr strict = triu(x, false);
    const Expr both = g.where(on_diagonal(x), as_dtype_of(real_of(x), x), strict + adjoint(strict));
    Expr da = solve_triangular(r, dq - g.matmul(q, both), {false, false, true, true});
    if (wide) da = g.concat({da, g.matmul(q, last_columns(dr, k))}, -1);
    c.accumulate(0, conj_of(da));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static constexpr AttrField attrs[] = {field<&ops::Qr::full>("full")};
};

}  // namespace

constinit const OpDef ops::Qr::def{.kind = kind,
                                   .name = "qr",
                                   .what = "Orthonormal columns times an upper triangular matrix.",
                                   .inputs = inputs("a"),
                                   .attrs = QrRules::attrs,
                                   .level = Level::Mir,
                                   .leaf = LeafKind::None,
                                   .elementwise = ElementwiseKind::No,
                                   .view = ViewKind::None,
                                   .precision = PrecisionCategory::Stated,
                                   .infer = QrRules::infer,
                                   .decompose = none("a primitive"),
                                   .vjp = QrRules::vjp,
                                   .jvp = QrRules::jvp,
                                   .batch = QrRules::batch,
                                   .reference = QrRules::reference,
                                   .cost = QrRules::cost};

}  // namespace rlx
