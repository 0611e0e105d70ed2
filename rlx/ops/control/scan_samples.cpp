// Samples of Scan.
#include "rlx/ir/ops/control.h"
#include "rlx/ops/control/control.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Scan>(SampleSet& s) {
  const auto f64 = [](Dims dims) { return Shape(std::move(dims), DType::F64); };
  const auto cell = [&](bool reverse, bool checkpoint) {
    Graph b("cell");
    Expr w = b.input("w", f64({3, 3})), h = b.input("h", f64({2, 3})), x = b.input("x", f64({2, 3}));
    Expr next = b.tanh(b.matmul(h, w) + x);
    return ops::Scan{1, 1, {4}, reverse, checkpoint, finished(b, {next, next * h})};
  };
  const std::vector<SampleInput> cell_inputs{f64({3, 3}), f64({2, 3}), f64({4, 2, 3})};
  s.add("recurrent cell", cell_inputs, cell(false, false));
  s.add("backwards", cell_inputs, cell(true, false));
  s.add("checkpointed", cell_inputs, cell(false, true));
  {
    Graph b("sums");  // a carry that the others do not read, and integers
    Expr n = b.input("n", Shape({}, DType::I32)), total = b.input("total", Shape({2}, DType::F32)),
         x = b.input("x", Shape({2}, DType::F32));
    Expr sum = total + b.sin(x);
    s.add("a counter and a running sum",
          {{Shape({}, DType::I32), Fill::Small}, Shape({2}, DType::F32), Shape({3, 2}, DType::F32)},
          ops::Scan{0, 2, {3}, false, false, finished(b, {n + 1, sum, sum * b.cast(n, DType::F32)})});
  }
  {
    Graph b("map");
    Expr a = b.input("a", f64({2})), x = b.input("x", f64({2}));
    s.add("no carries", {f64({2}), f64({3, 2})}, ops::Scan{1, 0, {3}, false, false, finished(b, {b.sin(a * x)})});
  }
  {
    Graph b("powers");
    Expr x = b.input("x", f64({2}));
    s.add("no xs", {f64({2})}, ops::Scan{0, 1, {3}, false, false, finished(b, {b.sin(x), x * x})});
  }
  {
    Graph b("nothing");
    Expr h = b.input("h", f64({2})), x = b.input("x", f64({2}));
    s.add("no steps", {f64({2}), f64({0, 2})}, ops::Scan{0, 1, {0}, false, false, finished(b, {h * x, x})});
  }
  {
    Graph inner("inner"), b("outer");
    Expr u = inner.input("u", f64({})), v = inner.input("v", f64({}));
    const Subgraph body = finished(inner, {inner.sin(u * v) + u});
    Expr h = b.input("h", f64({})), x = b.input("x", f64({2}));
    Expr last = add_node(b, ops::Scan{0, 1, {2}, false, false, body}, {h, x})[0];
    s.add("a scan in a scan", {f64({}), f64({3, 2})},
          ops::Scan{0, 1, {3}, false, false, finished(b, {last, last * h})});
  }
}

}  // namespace rlx::testing
