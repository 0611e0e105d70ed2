// Samples of Call.
#include "rlx/ir/ops/control.h"
#include "rlx/ops/control/control.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Call>(SampleSet& s) {
  const Shape a({2, 3}, DType::F64), b({3, 2}, DType::F64);
  for (CallSave save : {CallSave::All, CallSave::Dots, CallSave::Nothing}) {
    Graph g("layer");
    Expr x = g.input("x", a), w = g.input("w", b);
    Expr y = g.tanh(g.matmul(g.sin(x), w));
    ops::Call op;
    op.save = save;
    op.body = finished(g, {y, g.square(y) * y});
    s.add(concat_text("save ", enum_name(save)), {a, b}, op);
  }
  // x^2 y with custom derivatives, in both ways.
  const Shape v({3}, DType::F64);
  const auto body = [&](std::string name, bool residuals) {
    Graph g(std::move(name));
    Expr x = g.input("x", v), y = g.input("y", v);
    Exprs out{x * x * y};
    if (residuals) out.push_back(x), out.push_back(x * y);
    return finished(g, out);
  };
  ops::Call custom;
  custom.body = body("x2y", false);
  custom.forward = body("forward", true);
  {
    Graph g("backward");
    Expr x = g.input("x", v), xy = g.input("xy", v), d = g.input("d", v);
    custom.backward = finished(g, {d * xy * 2, d * x * x});
  }
  Graph g("jvp");
  Expr x = g.input("x", v), y = g.input("y", v), dx = g.input("dx", v), dy = g.input("dy", v);
  // One statement an operand: their order in a sum is the compiler's.
  Expr value = x * x * y, by_x = x * y * dx * 2, by_y = x * x * dy;
  custom.jvp = finished(g, {value, by_x + by_y});
  s.add("derivatives of its own", {v, v}, custom);
  custom.forward = custom.backward = nullptr;
  s.add("a jvp of its own", {v, v}, custom);
}

}  // namespace rlx::testing
