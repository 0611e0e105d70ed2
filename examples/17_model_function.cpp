// A ModelFunction. It builds and compiles its graph at the first call, once per device, precision and size. Its weights
// come from a checkpoint and keep their dtypes.
#include <rlx/models/flow.h>
#include <rlx/rlx.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

// A checkpoint; rlx::open_weights(path) opens a folder, a GGUF file or a safetensors file.
const rlx::ModelWeights& weights() {
  static const rlx::ModelWeights stored = rlx::weights_in_memory(
      {{"norm.weight", rlx::Tensor::of<float>({4}, {1, 2, 1, 2})},
       {"up.weight", rlx::Tensor::of<float>({2, 4}, {1, 0, 1, 0, 0, 1, 0, 1}).cast(rlx::DType::BF16)}});
  return stored;
}

// At namespace scope nothing is built yet; in a header it would be `inline const`.
const rlx::ModelFunction net("net", [](rlx::Graph& g) {
  const rlx::Dim n = g.symbol("n", rlx::SymbolInfo{.min = 1, .max = 64});
  rlx::Flow flow(g, weights());
  rlx::Expr x = g.input("x", rlx::Shape({n, 4}, rlx::DType::F32));
  x = flow.norm(x, "norm", rlx::NormKind::Rms, 1e-6);
  x = g.relu(flow.linear(x, "up", 2));
  flow.finish("net");
  return std::vector<rlx::Expr>{x};
});

}  // namespace

int main() {
  net.load_params(weights().loader);
  const rlx::Tensor x = rlx::Tensor::of<float>({1, 4}, {1, 1, 1, 1});
  std::printf("%g %g\n", net({{"x", x}})[0].at(0), net({{"x", x}})[0].at(1));
  // Another precision and a fixed size: two more programs, which use the same weights.
  const rlx::ModelKey key{.precision = rlx::Precision::BF16, .dims = {{"n", 1}}};
  {
    const rlx::ModelFunction::Program program = net.compiled(key);  // held until the end of this block
    std::printf("%zu weights, %zu input\n", program->params().size(), program->inputs().size());
  }
  std::printf("%g, %zu programs\n", net({{"x", x}}, key)[0].at(0), net.num_programs());
  return 0;
}
