// Misuse of linear algebra: empty, dead and foreign values, invalid shapes and dtypes.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "rlx/functions/linalg.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/rewrite/bodies.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

namespace {

const Shape kSquareMatrix({2, 2}, DType::F32);

struct MatrixCall {
  const char* name;
  std::function<void(Graph&, Expr)> run;
};
struct PairCall {
  const char* name;
  std::function<void(Expr, Expr)> run;
};

}  // namespace

TEST_CASE("misuse: linear algebra") {
  const std::vector<MatrixCall> of_one = {
      {"cholesky", [](Graph& g, Expr x) { g.cholesky(x); }},
      {"lu", [](Graph& g, Expr x) { g.lu(x); }},
      {"qr", [](Graph& g, Expr x) { g.qr(x); }},
      {"eigh", [](Graph& g, Expr x) { g.eigh(x); }},
      {"svd", [](Graph& g, Expr x) { g.svd(x); }},
      {"inv", [](Graph&, Expr x) { linalg::inv(x); }},
      {"lu_factor", [](Graph&, Expr x) { linalg::lu_factor(x); }},
      {"pinv", [](Graph&, Expr x) { linalg::pinv(x); }},
      {"det", [](Graph&, Expr x) { linalg::det(x); }},
      {"slogdet", [](Graph&, Expr x) { linalg::slogdet(x); }},
      {"logdet", [](Graph&, Expr x) { linalg::logdet(x); }},
      {"eigvalsh", [](Graph&, Expr x) { linalg::eigvalsh(x); }},
      {"svdvals", [](Graph&, Expr x) { linalg::svdvals(x); }},
      {"matrix_rank", [](Graph&, Expr x) { linalg::matrix_rank(x); }},
      {"matrix_norm", [](Graph&, Expr x) { linalg::matrix_norm(x, linalg::MatrixNorm::Nuclear); }},
      {"cond", [](Graph&, Expr x) { linalg::cond(x); }},
      {"matrix_power", [](Graph&, Expr x) { linalg::matrix_power(x, -1); }},
      {"expm", [](Graph&, Expr x) { linalg::expm(x); }},
  };
  const std::vector<PairCall> of_two = {
      {"triangular_solve", [](Expr x, Expr y) { x.graph().triangular_solve(x, y, {}); }},
      {"solve", [](Expr x, Expr y) { linalg::solve(x, y); }},
      {"dense_solve", [](Expr x, Expr y) { linalg::dense_solve(x, y); }},
      {"cholesky_solve", [](Expr x, Expr y) { linalg::cholesky_solve(x, y); }},
      {"solve_triangular", [](Expr x, Expr y) { linalg::solve_triangular(x, y); }},
      {"lstsq", [](Expr x, Expr y) { linalg::lstsq(x, y); }},
      {"multi_dot",
       [](Expr x, Expr y) {
         linalg::multi_dot({x, y});
       }},
      {"lu_solve",
       [](Expr x, Expr y) {
         linalg::lu_solve({x, x.graph().iota(Shape({2}, DType::I32), 0)}, y);
       }},
  };
  Graph other("other");
  const Expr foreign = other.input("q", kSquareMatrix), dead = [] {
    Graph gone;
    return gone.input("d", kSquareMatrix);
  }();
  for (const MatrixCall& call : of_one) {
    CAPTURE(call.name);
    Graph g("g");
    const Expr vector = g.input("v", Shape({2}, DType::F32)), half = g.input("h", Shape({2, 2}, DType::F16));
    REFUSED("empty Expr", call.run(g, Expr()));
    REFUSED("after its graph was moved, compiled or destroyed", call.run(g, dead));
    REFUSED("two axes", call.run(g, vector));
    REFUSED("cast it to f32", call.run(g, half));
  }
  for (const PairCall& call : of_two) {
    CAPTURE(call.name);
    Graph g("g");
    const Expr a = g.input("a", kSquareMatrix), long_one = g.input("l", Shape({3, 1}, DType::F32));
    REFUSED("empty Expr", call.run(a, Expr()));
    REFUSED("after its graph was moved, compiled or destroyed", call.run(a, dead));
    REFUSED("belongs to graph", call.run(a, foreign));
    REFUSED("shape mismatch", call.run(a, long_one));
  }
  Graph g("g");
  const Expr a = g.input("a", kSquareMatrix), wide = g.input("w", Shape({2, 3}, DType::F32)),
             batch = g.input("b", Shape({4, 2, 2}, DType::F32)), scalar = g.input("s", Shape({}, DType::F32));
  REFUSED("[B, N, N]", linalg::batched_dense_solve(a, a));
  REFUSED("[N, N]", linalg::dense_solve(batch, batch));
  REFUSED("no rows", linalg::solve(a, scalar));
  REFUSED("not square", linalg::det(wide));
  REFUSED("at least two matrices", linalg::multi_dot({a}));
  REFUSED("not a matrix", linalg::multi_dot({a, batch}));
  REFUSED("negative", linalg::expm(a, -1));
  REFUSED("NaN", linalg::vector_norm(a, std::nan("")));
  REFUSED("K <= N <= M", linalg::householder_product(wide, g.input("t", Shape({2}, DType::F32))));
}

TEST_CASE("misuse: linear algebra names the line of the call, in errors and in the nodes that it makes") {
  Graph g("g");
  const Expr a = g.input("a", kSquareMatrix), half = g.input("h", Shape({2, 2}, DType::F16));
  const auto here = [](int line) { return concat_text("linalg_misuse_test.cpp:", line); };
  REFUSED(here(__LINE__), linalg::det(half));               // refused by an op
  REFUSED(here(__LINE__), linalg::matrix_power(half, -3));  // refused by an op of another function
  REFUSED(here(__LINE__), linalg::expm(a, -1));             // refused by the function
  const std::size_t before = g.num_nodes();
  const int line = __LINE__ + 1;
  linalg::expm(linalg::inv(a));
  CHECK(g.num_nodes() > before + 20);
  std::function<void(const Graph&, std::size_t)> look = [&](const Graph& in, std::size_t first) {
    for (std::size_t i = first; i < in.num_nodes(); ++i) {
      const Node& n = in.nodes()[i];
      CHECK(n.origin.loc.line == line);
      CHECK(std::string(n.origin.loc.file).ends_with("linalg_misuse_test.cpp"));
      for (const Subgraph& body : body_graphs(n.op)) look(*body, 0);
    }
  };
  look(g, before);
  // The next op has its own line again.
  const Expr next = g.exp(a);
  CHECK(g.node(next.value().node).origin.loc.line == __LINE__ - 1);
}
