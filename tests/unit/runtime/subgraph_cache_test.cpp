// Host-controlled branches and loops.
#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/runtime/subgraph_cache.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

Graph with_body(const char* name, const std::function<Expr(Graph&, Expr)>& f) {
  Graph g(name);
  const Expr x = g.input("x", Shape({2}, DType::F32));
  g.set_outputs({f(g, x)});
  return g;
}
Tensor pair(float a, float b) { return Tensor::of<float>({2}, std::vector<float>{a, b}); }
Tensor number(float v) { return Tensor::of<float>({}, std::vector<float>{v}); }

TEST_CASE("run_if runs the branch that the predicate says, each compiled once") {
  const Graph doubled = with_body("doubled", [](Graph& g, Expr x) { return g.add(x, x); });
  const Graph negated = with_body("negated", [](Graph& g, Expr x) { return g.neg(x); });
  for (const Session& session : {Session(), Session::on_backend("reference")}) {
    SubgraphCache cache;
    const NamedTensors in{{"x", pair(1, 2)}, {"not read", number(0)}};
    for (int i = 0; i < 3; ++i) {
      CHECK(run_if(cache, session, number(0.5F), doubled, negated, in)[0].at(1) == 4);
      CHECK(cache.size() == (i == 0 ? 1U : 2U));  // the other branch is compiled when it is first taken
      CHECK(run_if(cache, session, number(0), doubled, negated, in)[0].at(1) == -2);
    }
    CHECK(contains(error_text([&] { run_if(cache, session, pair(1, 1), doubled, negated, in); }),
                   "must have one element"));
    CHECK(contains(error_text([&] { run_if(cache, session, number(1), doubled, negated, {}); }), "an input 'x'"));
    const Graph other = with_body("doubled", [](Graph& g, Expr x) { return g.mul(x, 2.0); });
    CHECK(contains(error_text([&] { cache.get(session, other); }), "another graph called 'doubled'"));
    cache.clear();
    CHECK(cache.size() == 0);
    CHECK(cache.get(session, other).run_typed({{"x", pair(1, 2)}})[0].at(1) == 4);
  }
}

TEST_CASE("run_while binds the state by its names, until the condition or the limit stops it") {
  Graph cond("below"), body("step");
  cond.set_outputs({cond.lt(cond.input("n", Shape({}, DType::I32)), 5)});
  const Expr n = body.input("n", Shape({}, DType::I32)), x = body.input("x", Shape({2}, DType::F32));
  body.set_outputs({body.add(n, 1), body.mul(x, 2.0)});
  SubgraphCache cache;
  const Session session;
  const auto from = [&](std::int32_t start) { return std::vector<Tensor>{test::ints({}, {start}), pair(1, 3)}; };
  const WhileRun all = run_while(cache, session, cond, body, from(0), {"n", "x"});
  CHECK(all.iterations == 5);
  CHECK_FALSE(all.stopped);
  CHECK(all.state[0].at(0) == 5);
  CHECK(all.state[1].at(1) == 96);
  const WhileRun some = run_while(cache, session, cond, body, from(0), {"n", "x"}, 2);
  CHECK(some.stopped);
  CHECK(some.state[1].at(0) == 4);
  CHECK(run_while(cache, session, cond, body, from(9), {"n", "x"}).iterations == 0);
  CHECK(cache.size() == 2);
  const auto said = [&](std::vector<std::string> names, std::optional<std::int64_t> most = {}) {
    return error_text([&] { run_while(cache, session, cond, body, from(0), names, most); });
  };
  CHECK(contains(said({"n"}), "got 2 values for 1 names"));
  CHECK(contains(said({"n", "n"}), "a name is given twice"));
  CHECK(contains(said({"n", "y"}), "an input 'x'"));
  CHECK(contains(said({"n", "x"}, -1), "max_iterations is -1"));
  CHECK(contains(error_text([&] {
                   run_while(cache, session, cond, cond, from(0), {"n", "x"});
                 }),
                 "has 1 outputs, but the state has 2"));
}

}  // namespace
}  // namespace rlx
