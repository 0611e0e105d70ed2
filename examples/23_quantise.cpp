// Three ways to make a trained network smaller (docs/quantisation.md). Prints how far each is from the f32 network.
#include <rlx/models/flow.h>
#include <rlx/rlx.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace {
constexpr std::int64_t kWidth = 64;

rlx::Expr network(rlx::Flow& flow, rlx::Expr x) {
  rlx::Graph& g = flow.graph();
  return flow.linear(g.relu(flow.linear(x, "up", 4 * kWidth)), "down", kWidth);
}

rlx::Tensor numbers(const std::vector<std::int64_t>& dims, std::uint64_t seed) {
  rlx::Graph g("numbers");
  g.set_outputs({g.rng_normal(g.rng_key(seed), rlx::Dims(dims.begin(), dims.end())) / std::sqrt(kWidth)});
  return rlx::evaluate(g)[0];
}

rlx::Tensor blocks(const rlx::Tensor& w) {
  rlx::Graph g("blocks");
  g.set_outputs({g.quantize(g.constant(w), rlx::QuantScheme::Q8_0)});
  return rlx::evaluate(g)[0];  // U8 [out, row bytes]
}

// The results of the network with these weights.
rlx::Tensor run(const rlx::ModelWeights& weights, const rlx::CompileOptions& options = {}) {
  rlx::Graph g("network");
  rlx::Flow flow(g, weights);
  g.set_outputs({network(flow, g.input("x", {{8, kWidth}, rlx::DType::F32}))});
  flow.finish("the network");
  auto f = rlx::Session().compile_with(std::move(g), options);
  flow.load(f);
  return f.run_typed({{"x", numbers({8, kWidth}, 3)}})[0];
}

void print(const char* name, const rlx::Tensor& got, const rlx::Tensor& want) {
  double largest = 0;
  for (std::int64_t i = 0; i < want.num_elements(); ++i) largest = std::max(largest, std::fabs(want.at(i)));
  bool close = true;  // false for NaN too
  for (std::int64_t i = 0; i < want.num_elements(); ++i)
    close = close && std::fabs(got.at(i) - want.at(i)) < 0.02 * largest;
  std::printf("%s: %s\n", name, close ? "within 2 % of the largest result" : "too far");
}
}  // namespace

int main() {
  const rlx::Tensor up = numbers({4 * kWidth, kWidth}, 1), down = numbers({kWidth, 4 * kWidth}, 2);  // [out, in]
  const auto trained = rlx::weights_in_memory({{"up.weight", up}, {"down.weight", down}});
  const rlx::Tensor want = run(trained);

  // The same weights: matmuls may read them as int8, packed when they are set.
  rlx::CompileOptions options;
  options.precision = rlx::PrecisionPolicy().with_matmul_precision(rlx::MatmulPrecision::Int8);
  print("int8 matmuls", run(trained, options), want);

  // GGUF's blocks: the tensors hold the blocks, and `scheme` says of which kind they are.
  auto quantized = rlx::weights_in_memory({{"up.weight", blocks(up)}, {"down.weight", blocks(down)}});
  quantized.scheme = [](std::string_view) { return std::optional(rlx::QuantScheme::Q8_0); };
  print("q8_0 blocks", run(quantized), want);

  // Affine values in a graph of your own: i8 with one scale for each matrix.
  rlx::Graph g("affine");
  const auto times = [&](rlx::Expr x, const rlx::Tensor& w) {
    rlx::Graph q("quantize");
    auto made = q.dynamic_quantize(q.t(q.constant(w)));  // codes, scale, zero_point
    q.set_outputs({made.codes, made.scale});
    const auto values = rlx::evaluate(q);
    return g.dequant_matmul(x, g.constant(values[0]), g.constant(values[1]));
  };
  g.set_outputs({times(g.relu(times(g.input("x", {{8, kWidth}, rlx::DType::F32}), up)), down)});
  auto affine = rlx::Session().compile(std::move(g));
  print("affine i8", affine.run_typed({{"x", numbers({8, kWidth}, 3)}})[0], want);
}
