// Samples of ElementwiseRegion.
#include <memory>

#include "rlx/ir/ops/fused.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::ElementwiseRegion>(SampleSet& s) {
  auto region = [](Graph body, std::vector<Value> outputs) {
    body.set_outputs(std::move(outputs));
    return ops::ElementwiseRegion{std::make_shared<const Graph>(std::move(body))};
  };
  {
    Graph b("bias_gelu");
    Expr x = b.input("x", Shape({2, 3}, DType::F32)), bias = b.input("bias", Shape({3}, DType::F32));
    Expr y = b.gelu(x + bias);
    s.add("bias gelu", {Shape({2, 3}, DType::F32), Shape({3}, DType::F32)}, region(std::move(b), {y}));
  }
  {
    Graph b("two_results");
    Expr x = b.input("x", Shape({2, 2}, DType::F64)), y = b.input("y", Shape({2, 1}, DType::F64)),
         z = b.input("z", Shape({}, DType::F64));
    // One statement a node: the order of arguments is the compiler's.
    Expr sum = x * y + z, positive = b.gt(sum, 0.0), curve = b.tanh(sum), line = sum * 0.1;
    Expr picked = b.where(positive, curve, line);
    s.add("two results", {Shape({2, 2}, DType::F64), Shape({2, 1}, DType::F64), Shape({}, DType::F64)},
          region(std::move(b), {sum, picked}));
  }
  {
    Graph b("mixed_dtypes");
    Expr x = b.input("x", Shape({4}, DType::BF16)), n = b.input("n", Shape({4}, DType::I32));
    Expr left = b.cast(x, DType::F32), right = b.cast(n, DType::F32), y = left * right;
    s.add_discrete("mixed dtypes", {Shape({4}, DType::BF16), {Shape({4}, DType::I32), Fill::Small}},
                   region(std::move(b), {y}));
  }
  {
    Graph b("nothing");
    Expr x = b.input("x", Shape({0, 2}, DType::F32));
    Expr y = b.silu(x);
    s.add("no elements", {Shape({0, 2}, DType::F32)}, region(std::move(b), {y}));
  }
}

}  // namespace rlx::testing
