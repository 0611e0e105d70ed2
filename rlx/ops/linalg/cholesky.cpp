// Cholesky: the lower triangular factor of positive definite matrices.
#include "rlx/ops/linalg/factor_batches.h"
#include "rlx/ops/linalg/factor_rules.h"

namespace rlx {
namespace {

using namespace factors;

struct CholeskyRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto e = check_square(c, 0, "a")) return *e;
    return make_shapes(c.input(0));
  }
  static void reference(const RefArgs& a) {
    for_each_matrix(a, 0, [&]<class A>(A, std::int64_t b) {
      Matrix<A> x = load_matrix<A>(a.in(0), b);
      cholesky_reference(x);
      store_matrix(a.out(), b, x);
    });
  }
  static Cost cost(const CostContext& c) {
    const double n = static_cast<double>(c.inputs[0].dim(-1).value());
    return c.with_flops(matrix_count(c.inputs[0]) * n * n * n / 6 * multiply_add(c.inputs[0].dtype()));
  }
  // With X = l^-1 da l^-H for Hermitian da: dl = l halved(X) (Giles, "Collected matrix derivative results").
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    const Expr l = c.output(0);
    const Expr half = solve_triangular(l, hermitian_of_lower(c.tangent(0)), {false, true, true, true});
    const Expr x = solve_triangular(l, half, {true, true});
    c.set_tangent(c.graph().matmul(l, halved_lower(x)));
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0) || !c.has_cotangent(0)) return;
    const Expr l = c.output(0);
    const Expr p = halved_lower(c.graph().matmul(adjoint(l), conj_of(c.cotangent(0))));
    const Expr half = solve_triangular(l, p, {true, true, true, true});
    const Expr s = solve_triangular(l, half, {false, true});
    c.accumulate(0, conj_of(halved_lower(s + adjoint(s))));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
};

}  // namespace

constinit const OpDef ops::Cholesky::def{.kind = kind,
                                         .name = "cholesky",
                                         .what = "The lower triangular factor of Hermitian positive definite matrices.",
                                         .inputs = inputs("a"),
                                         .attrs = {},
                                         .level = Level::Mir,
                                         .leaf = LeafKind::None,
                                         .elementwise = ElementwiseKind::No,
                                         .view = ViewKind::None,
                                         .precision = PrecisionCategory::Stated,
                                         .infer = CholeskyRules::infer,
                                         .decompose = none("a primitive"),
                                         .vjp = CholeskyRules::vjp,
                                         .jvp = CholeskyRules::jvp,
                                         .batch = CholeskyRules::batch,
                                         .reference = CholeskyRules::reference,
                                         .cost = CholeskyRules::cost};

}  // namespace rlx
