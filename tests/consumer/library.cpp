// A shared library that holds rlx and exports one function.
#include <rlx/rlx.h>

extern "C" float doubled_plus_one(float value) {
  rlx::Graph g("doubled_plus_one");
  auto x = g.input("x", {{1}, rlx::DType::F32});
  g.set_outputs({2.0 * x + 1.0});
  return rlx::Session().compile(std::move(g)).run({{"x", {value}}})[0][0];
}
