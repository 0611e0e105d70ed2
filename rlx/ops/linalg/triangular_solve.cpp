// TriangularSolve: linear systems with triangular matrices.
#include "rlx/ops/linalg/factor_batches.h"
#include "rlx/ops/linalg/factor_rules.h"

namespace rlx {
namespace {

using namespace factors;
using ops::TriangularSolve;

struct TriangularSolveRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto e = check_square(c, 0, "a")) return *e;
    if (auto e = check_matrix(c, 1, "b")) return *e;
    if (auto e = c.check_same_dtype(0, 2)) return *e;
    const Shape &a = c.input(0), &b = c.input(1);
    bool same = a.rank() == b.rank();
    for (int i = 0; same && i + 2 < a.rank(); ++i) same = a.dim(i) == b.dim(i);
    if (!same) return c.error("a ", a, " and b ", b, " must have the same leading axes");
    const bool left = c.op<TriangularSolve>().left;
    if (!(b.dim(left ? -2 : -1) == a.dim(-1)))
      return c.error("b ", b, " has ", b.dim(left ? -2 : -1), left ? " rows" : " columns", ", but a ", a, " has order ",
                     a.dim(-1));
    return make_shapes(b);
  }
  static void reference(const RefArgs& args) {
    const auto& op = args.op<TriangularSolve>();
    for_each_matrix(args, 1, [&]<class A>(A, std::int64_t i) {
      const Matrix<A> a = load_matrix<A>(args.in(0), i);
      Matrix<A> b = load_matrix<A>(args.in(1), i);
      // x op(a) = b is equivalent to op(a)^T x^T = b^T.
      const bool transpose = op.transpose == op.left;
      const auto at = [&](std::int64_t r, std::int64_t k) {
        const A v = transpose ? a(k, r) : a(r, k);
        return op.conjugate ? conjugate(v) : v;
      };
      const bool lower = op.lower != transpose;
      if (op.left) {
        solve_reference(at, lower, op.unit_diagonal, b);
      } else {
        Matrix<A> turned(b.cols, b.rows);
        for (std::int64_t r = 0; r < b.rows; ++r)
          for (std::int64_t k = 0; k < b.cols; ++k) turned(k, r) = b(r, k);
        solve_reference(at, lower, op.unit_diagonal, turned);
        for (std::int64_t r = 0; r < b.rows; ++r)
          for (std::int64_t k = 0; k < b.cols; ++k) b(r, k) = turned(k, r);
      }
      store_matrix(args.out(), i, b);
    });
  }
  static Cost cost(const CostContext& c) {
    const double n = static_cast<double>(c.inputs[0].dim(-1).value());
    return c.with_flops(c.elements() * n / 2 * multiply_add(c.inputs[0].dtype()));
  }
  static Expr triangle(const TriangularSolve& op, Expr x) {
    return op.lower ? tril(x, !op.unit_diagonal) : triu(x, !op.unit_diagonal);
  }
  static Expr applied(const TriangularSolve& op, Expr a) {
    if (op.conjugate) a = conj_of(a);
    return op.transpose ? a.graph().t(a) : a;
  }
  static void jvp(JvpContext& c) {
    const auto& op = c.op<TriangularSolve>();
    Graph& g = c.graph();
    if (c.has_tangent(1)) c.set_tangent(solve_triangular(c.input(0), c.tangent(1), op));
    if (c.has_tangent(0)) {
      const Expr x = c.output(0), da = applied(op, triangle(op, c.tangent(0)));
      const Expr moved = op.left ? g.matmul(da, x) : g.matmul(x, da);
      c.add_tangent(0, -solve_triangular(c.input(0), moved, op));
    }
  }
  static void vjp(VjpContext& c) {
    if (!c.has_cotangent(0)) return;
    const auto& op = c.op<TriangularSolve>();
    Graph& g = c.graph();
    TriangularSolve back = op;
    back.transpose = !op.transpose;
    const Expr db = solve_triangular(c.input(0), c.cotangent(0), back), x = c.output(0);
    c.accumulate(1, db);
    const Expr da = -(op.left ? g.matmul(db, g.t(x)) : g.matmul(g.t(x), db));  // the cotangent of op(a)
    c.accumulate(0, triangle(op, applied(op, da)));
  }
  // When the whole batch has one matrix, its columns (rows) are concatenated.
  static void batch(BatchContext& c) {
    if (c.is_batched(0)) return c.emit_lifted(c.box());
    Graph& g = c.graph();
    const Expr a = c.input(0), b = c.input(1);  // b: [B, .., rows, columns]
    const bool left = c.op<TriangularSolve>().left;
    const int rank = a.rank(), behind = left ? rank - 1 : rank - 2;  // the new position of the batch axis
    std::vector<std::int64_t> perm;
    for (int i = 1; i <= rank; ++i) {
      if (static_cast<int>(perm.size()) == behind) perm.push_back(0);
      perm.push_back(i);
    }
    const Expr moved = g.transpose(b, perm);
    Dims joined = moved.shape().dims();
    const auto at = static_cast<std::size_t>(behind);
    joined[at] = joined[at] * joined[at + 1];
    joined.erase(joined.begin() + behind + 1);
    const Expr x = g.add(c.box(), {a, g.reshape(moved, joined)});
    c.set_result(g.transpose(g.reshape(x, moved.shape().dims()), inverse_perm(perm)));
  }
  static constexpr AttrField attrs[] = {field<&TriangularSolve::left>("left"), field<&TriangularSolve::lower>("lower"),
                                        field<&TriangularSolve::transpose>("transpose"),
                                        field<&TriangularSolve::conjugate>("conjugate"),
                                        field<&TriangularSolve::unit_diagonal>("unit_diagonal")};
};

}  // namespace

constinit const OpDef ops::TriangularSolve::def{
    .kind = kind,
    .name = "triangular_solve",
    .what = "Solves a x = b or x a = b with triangular matrices a, transposed or not.",
    .inputs = inputs("a", "b"),
    .attrs = TriangularSolveRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = TriangularSolveRules::infer,
    .decompose = none("a primitive"),
    .vjp = TriangularSolveRules::vjp,
    .jvp = TriangularSolveRules::jvp,
    .batch = TriangularSolveRules::batch,
    .reference = TriangularSolveRules::reference,
    .cost = TriangularSolveRules::cost};

}  // namespace rlx
