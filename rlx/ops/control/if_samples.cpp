// Samples of If.
#include "rlx/ir/ops/control.h"
#include "rlx/ops/control/control.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::If>(SampleSet& s) {
  const Shape v({3}, DType::F64), flag({}, DType::Bool);
  const auto choice = [&] {
    Graph a("then"), b("else");
    Expr x = a.input("x", v), y = a.input("y", v), u = b.input("x", v), w = b.input("y", v);
    return ops::If{finished(a, {a.sin(x) * y, x}), finished(b, {b.tanh(u * w) + w, b.square(u)})};
  };
  s.add("two ways", {{flag, Fill::Boolean}, v, v}, choice());
  Graph a("then"), b("else");
  Expr x = a.input("x", Shape({2}, DType::F32)), n = a.input("n", Shape({2}, DType::I32));
  Expr y = b.input("x", Shape({2}, DType::F32)), m = b.input("n", Shape({2}, DType::I32));
  Expr curve = a.exp(x), number = a.cast(n, DType::F32);  // in this order: that of arguments is the compiler's
  s.add("integers and a constant",
        {{flag, Fill::Boolean}, Shape({2}, DType::F32), {Shape({2}, DType::I32), Fill::Small}},
        ops::If{finished(a, {n + 1, curve * number}),
                finished(b, {m * 2, b.constant(Tensor::full(Shape({2}, DType::F32), 0.5))})});
  (void)y;
}

}  // namespace rlx::testing
