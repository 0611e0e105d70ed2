// Eigh: eigenvalues and eigenvectors of Hermitian matrices.
#include "rlx/ops/linalg/factor_batches.h"
#include "rlx/ops/linalg/factor_rules.h"

namespace rlx {
namespace {

using namespace factors;

struct EighRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto e = check_square(c, 0, "a")) return *e;
    const Shape& a = c.input(0);
    return make_shapes(with_vector(a, a.dim(-1), real_dtype(a.dtype())), a);
  }
  static void reference(const RefArgs& a) {
    for_each_matrix(a, 0, [&]<class A>(A, std::int64_t b) {
      const Matrix<A> x = load_matrix<A>(a.in(0), b);
      Matrix<A> v(x.rows, x.rows);
      std::vector<double> w(static_cast<std::size_t>(x.rows), std::nan(""));
      if (!eigh_reference(x, w, v)) v.fill(not_a_number<A>());
      store_values(a.out(0), b, w);
      store_matrix(a.out(1), b, v);
    });
  }
  static Cost cost(const CostContext& c) {
    const double n = static_cast<double>(c.inputs[0].dim(-1).value());
    return c.with_flops(matrix_count(c.inputs[0]) * 5 * n * n * n * multiply_add(c.inputs[0].dtype()));
  }
  // 1 / (w_j - w_i), 0 on the diagonal.
  static Expr gaps(Expr w, Expr x) {
    Graph& g = w.graph();
    const Expr one = g.cast(on_diagonal(x), w.dtype());
    return 1.0 / (as_row(w) - as_column(w) + one) - one;
  }
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    Graph& g = c.graph();
    const Expr w = c.output(0), v = c.output(1);
    const Expr x = g.matmul(adjoint(v), g.matmul(hermitian_of_lower(c.tangent(0)), v));
    c.set_tangent(0, real_of(diagonal(x)));
    Expr dv = g.matmul(v, gaps(w, x) * x);
    if (is_complex(v.dtype())) dv = dv - times_i(v, anchor_rotation(v, dv));
    c.set_tangent(1, dv);
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0) || (!c.has_cotangent(0) && !c.has_cotangent(1))) return;
    Graph& g = c.graph();
    const Expr w = c.output(0), v = c.output(1);
    Expr inner;
    if (c.has_cotangent(0)) inner = as_dtype_of(diagonal_matrix(c.cotangent(0)), v);
    if (c.has_cotangent(1)) {
      Expr dv = conj_of(c.cotangent(1));
      if (is_complex(v.dtype())) dv = dv + anchor_turn_transposed(v, g.sum(imag_of(conj_of(dv) * v), {-2}, true));
      const Expr x = g.matmul(adjoint(v), dv), turned = gaps(w, x) * x;
      inner = inner.valid() ? inner + turned : turned;
    }
    const Expr s = g.matmul(v, g.matmul(inner, adjoint(v)));
    c.accumulate(0, conj_of(halved_lower(s + adjoint(s))));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
};

}  // namespace

constinit const OpDef ops::Eigh::def{
    .kind = kind,
    .name = "eigh",
    .what = "Eigenvalues, ascending, and orthonormal eigenvectors of Hermitian matrices.",
    .inputs = inputs("a"),
    .attrs = {},
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = EighRules::infer,
    .decompose = none("a primitive"),
    .vjp = EighRules::vjp,
    .jvp = EighRules::jvp,
    .batch = EighRules::batch,
    .reference = EighRules::reference,
    .cost = EighRules::cost};

}  // namespace rlx
