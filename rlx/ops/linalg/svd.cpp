// Svd: singular values and vectors.
#include <algorithm>

#include "rlx/ops/linalg/factor_batches.h"
#include "rlx/ops/linalg/factor_rules.h"

namespace rlx {
namespace {

using namespace factors;

struct SvdRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto e = check_matrix(c, 0, "a")) return *e;
    auto k = least_extent(c, 0, "a");
    if (!k.ok()) return k.error();
    const Shape& a = c.input(0);
    const bool full = c.op<ops::Svd>().full;
    const Dim m = a.dim(-2), n = a.dim(-1);
    return make_shapes(with_matrix(a, m, full ? m : k.value()), with_vector(a, k.value(), real_dtype(a.dtype())),
                       with_matrix(a, full ? n : k.value(), n));
  }
  static void reference(const RefArgs& a) {
    for_each_matrix(a, 0, [&]<class A>(A, std::int64_t b) {
      const Matrix<A> x = load_matrix<A>(a.in(0), b);
      Matrix<A> u(a.out(0).dim(-2), a.out(0).dim(-1)), v(a.out(2).dim(-1), a.out(2).dim(-2));
      std::vector<double> s(static_cast<std::size_t>(std::min(x.rows, x.cols)), std::nan(""));
      if (!svd_reference(x, u, s, v)) u.fill(not_a_number<A>()), v.fill(not_a_number<A>());
      store_matrix(a.out(0), b, u);
      store_values(a.out(1), b, s);
      store_matrix(a.out(2), b, v.adjoint());
    });
  }
  static Cost cost(const CostContext& c) {
    const Shape& a = c.inputs[0];
    const double m = static_cast<double>(a.dim(-2).value()), n = static_cast<double>(a.dim(-1).value());
    const double k = std::min(m, n);
    return c.with_flops(matrix_count(a) * (4 * m * n * k + 6 * k * k * k) * multiply_add(a.dtype()));
  }

  // The factors of the first K columns and rows, and whether derivatives of u and vh exist.
  struct Thin {
    Expr u, s, v;  // v [N, K]: the adjoint of the first K rows of vh
    bool vectors = true;
    Dim m, n, k;
  };
  template <class Context>
  static Thin thin(const Context& c) {
    const Shape& a = c.input(0).shape();
    Thin t{c.output(0), c.output(1), {}, true, a.dim(-2), a.dim(-1), c.result_shape(1).dim(-1)};
    t.u = first_columns(t.u, t.k);
    t.v = adjoint(first_rows(c.output(2), t.k));
    t.vectors = !c.template op<ops::Svd>().full || t.m == t.n;
    return t;
  }
  [[noreturn]] static void refuse(const Shape& a) {
    throw Error(
        ErrorCode::Unsupported,
        concat_text("svd of ", a,
                    " with full = true has derivatives only for the singular values: the other vectors are not unique"),
        "use svd with full = false");
  }
  // Whether a node or a result of the graph reads u or vh, and so may need their tangents.
  static bool reads_vectors(const JvpContext& c) {
    const Graph& g = c.graph();
    const NodeId own = c.output(1).value().node;
    const auto is_vectors = [&](Value v) { return v.node == own && v.result != 1; };
    const auto reads = [&](const Node& n) { return std::any_of(n.inputs.begin(), n.inputs.end(), is_vectors); };
    const auto stores = [&](const Graph::StateUpdate& u) { return is_vectors(u.value); };
    return std::any_of(g.nodes().begin(), g.nodes().end(), reads) ||
           std::any_of(g.outputs().begin(), g.outputs().end(), is_vectors) ||
           std::any_of(g.state_updates().begin(), g.state_updates().end(), stores);
  }
  // 1 / (s_j^2 - s_i^2), 0 on the diagonal.
  static Expr gaps(const Thin& t, Expr x) {
    Graph& g = x.graph();
    const Expr one = g.cast(on_diagonal(x), t.s.dtype());
    return 1.0 / ((as_row(t.s) + as_column(t.s)) * (as_row(t.s) - as_column(t.s)) + one) - one;
  }
  // 1 / s, and 0 where s is 0: the common phase of u and v is arbitrary there.
  static Expr inverse(Expr s) {
    Graph& g = s.graph();
    const Expr zero = g.cast(g.eq(s, 0), s.dtype());
    return 1.0 / (s + zero) - zero;
  }

  // With P = u^H da v and F = gaps (Townsend, "Differentiating the singular value decomposition"; JAX):
  //   ds = re diag P, du = u (F (P s + s P^H) + i im diag P / s) + (1 - u u^H) da v / s, dv = v F (s P + P^H s) + ..
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    Graph& g = c.graph();
    const bool read = reads_vectors(c);  // before the rule reads them
    const Thin t = thin(c);
    if (!t.vectors && read) refuse(c.input(0).shape());
    const Expr da = c.tangent(0), p = g.matmul(adjoint(t.u), g.matmul(da, t.v));
    c.set_tangent(1, real_of(diagonal(p)));
    if (!t.vectors) return;
    const Expr f = gaps(t, p), ps = p * as_row(t.s), sp = as_column(t.s) * p;
    Expr inner = f * (ps + adjoint(ps));
    if (is_complex(p.dtype()))
      inner = inner + as_row(inverse(t.s)) * g.where(on_diagonal(p), (p - adjoint(p)) * 0.5, 0);
    Expr du = g.matmul(t.u, inner), dv = g.matmul(t.v, f * (sp + adjoint(sp)));
    if (greater(t.m, t.n)) du = du + off(t.u, g.matmul(da, t.v)) / as_row(t.s);
    if (greater(t.n, t.m)) dv = dv + off(t.v, g.matmul(adjoint(da), t.u)) / as_row(t.s);
    if (is_complex(p.dtype())) {
      const Expr turn = anchor_rotation(t.u, du);
      du = du - times_i(t.u, turn), dv = dv - times_i(t.v, turn);
    }
    c.set_tangent(0, du);
    c.set_tangent(2, adjoint(dv));
  }
  static bool greater(const Dim& a, const Dim& b) { return !(a == b) && a.value() > b.value(); }
  // (1 - u u^H) x.
  static Expr off(Expr u, Expr x) {
    Graph& g = u.graph();
    return x - g.matmul(u, g.matmul(adjoint(u), x));
  }
  static void vjp(VjpContext& c) {
    const bool has_vectors = c.has_cotangent(0) || c.has_cotangent(2);
    if (!c.wants(0) || (!has_vectors && !c.has_cotangent(1))) return;
    Graph& g = c.graph();
    const Thin t = thin(c);
    Expr p;  // the cotangent of P
    if (c.has_cotangent(1)) p = as_dtype_of(diagonal_matrix(c.cotangent(1)), t.u);
    Expr beside;
    if (has_vectors) {
      if (!t.vectors) refuse(c.input(0).shape());
      Expr du = conj_of(c.cotangent(0));
      const Expr dv = adjoint(conj_of(c.cotangent(2)));
      if (is_complex(du.dtype()))
        du = du + anchor_turn_transposed(t.u, g.sum(imag_of(conj_of(du) * t.u), {-2}, true) +
                                                  g.sum(imag_of(conj_of(dv) * t.v), {-2}, true));
      const Expr x = g.matmul(adjoint(t.u), du), y = g.matmul(adjoint(t.v), dv), f = gaps(t, x);
      const Expr fx = f * x, fy = f * y;
      Expr inner = (fx + adjoint(fx)) * as_row(t.s) + as_column(t.s) * (fy + adjoint(fy));
      if (is_complex(x.dtype()))
        inner = inner + as_row(inverse(t.s)) * g.where(on_diagonal(x), (x - adjoint(x)) * 0.5, 0);
      p = p.valid() ? p + inner : inner;
      if (greater(t.m, t.n)) beside = g.matmul(off(t.u, du) / as_row(t.s), adjoint(t.v));
      if (greater(t.n, t.m)) beside = g.matmul(t.u, adjoint(off(t.v, dv) / as_row(t.s)));
    }
    Expr da = g.matmul(t.u, g.matmul(p, adjoint(t.v)));
    if (beside.valid()) da = da + beside;
    c.accumulate(0, conj_of(da));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static constexpr AttrField attrs[] = {field<&ops::Svd::full>("full")};
};

}  // namespace

constinit const OpDef ops::Svd::def{.kind = kind,
                                    .name = "svd",
                                    .what = "Singular values, descending, with the left and right singular vectors.",
                                    .inputs = inputs("a"),
                                    .attrs = SvdRules::attrs,
                                    .level = Level::Mir,
                                    .leaf = LeafKind::None,
                                    .elementwise = ElementwiseKind::No,
                                    .view = ViewKind::None,
                                    .precision = PrecisionCategory::Stated,
                                    .infer = SvdRules::infer,
                                    .decompose = none("a primitive"),
                                    .vjp = SvdRules::vjp,
                                    .jvp = SvdRules::jvp,
                                    .batch = SvdRules::batch,
                                    .reference = SvdRules::reference,
                                    .cost = SvdRules::cost};

}  // namespace rlx
