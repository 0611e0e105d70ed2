// Cotangent inputs are found by both of their names.
#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/error_text.h"

using namespace rlx;

TEST_CASE("vjp: d_output and d_output_0 name the cotangent of one output") {
  const Shape two({2}, DType::F32);
  Graph g("g");
  const Expr x = g.input("x", two);
  g.set_outputs({x * x});
  const Graph one = vjp(g, {"x"}).graph;
  Graph h("h");
  const Expr y = h.input("x", two);
  h.set_outputs({y * y, h.arg_max(y, 0)});  // the second output has no cotangent
  const Graph first = vjp(h, {"x"}).graph;
  const Tensor at = Tensor::of<float>({2}, std::vector<float>{3, 5}),
               ct = Tensor::of<float>({2}, std::vector<float>{1, 2});
  for (const Graph* program : {&one, &first})
    for (const char* name : {"d_output", "d_output_0"}) {
      CAPTURE(name);
      CHECK(evaluate(*program, {{"x", at}, {name, ct}}).back().to_f32() == std::vector<float>{6, 20});
      CompiledGraph f = Session().compile(*program);
      CHECK(f.run_typed({{"x", at}, {name, ct}}).back().to_f32() == std::vector<float>{6, 20});
      f.set_input(name, ct);
      CHECK(f.run_typed({{"x", at}}).back().to_f32() == std::vector<float>{6, 20});
    }
  CHECK(test::contains(test::error_text([&] {
                         (void)evaluate(one, {{"x", at}, {"d_output", ct}, {"d_output_0", ct}});
                       }),
                       "given twice"));
  CHECK(test::contains(test::error_text([&] {
                         (void)evaluate(one, {{"x", at}, {"d_output_1", ct}});
                       }),
                       "'d_output_1'"));
}
