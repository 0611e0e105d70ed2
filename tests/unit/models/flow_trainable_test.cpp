// Flows whose weights are trained: first values, gradients, training, and the trained weights in a flow of params.
#include <doctest/doctest.h>

#include <cmath>

#include "rlx/formats/gguf_writer.h"
#include "rlx/models/flow.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

constexpr std::int64_t kRows = 32, kIn = 3, kHidden = 16;

// y = sin(x0) + x1 x2 by two layers with a norm between them.
Expr network(Flow& flow, Expr x) {
  Graph& g = flow.graph();
  x = g.tanh(flow.linear(x, "up", kHidden, true));
  x = flow.norm(x, "norm", NormKind::Layer, 1e-5, true);
  return flow.linear(x, "down", 1, true);
}

NamedTensors data() {
  std::vector<float> x, y;
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t k = 0; k < kIn; ++k) x.push_back(static_cast<float>((i * 37 + k * 61) % 101 - 50) / 50);
    const float* row = &x[static_cast<std::size_t>(i * kIn)];
    y.push_back(std::sin(row[0]) + row[1] * row[2]);
  }
  return {{"x", Tensor::of<float>({kRows, kIn}, x)}, {"y", Tensor::of<float>({kRows, 1}, y)}};
}

}  // namespace

TEST_CASE("trainable flow: a network from scratch learns, and its weights give the same in a flow of params") {
  Graph forward("net");
  Flow flow = Flow::trainable(forward, 3);
  const Expr x = forward.input("x", {{kRows, kIn}, DType::F32}), y = forward.input("y", {{kRows, 1}, DType::F32});
  forward.set_outputs({forward.mean(forward.square(network(flow, x) - y))});
  const std::vector<std::string> names = flow.names();
  CHECK(names ==
        std::vector<std::string>{"down.bias", "down.weight", "norm.bias", "norm.weight", "up.bias", "up.weight"});
  Graph g = value_and_grad(forward, std::vector<Wrt>(names.begin(), names.end())).graph;
  const std::vector<Value> results = g.outputs();
  for (std::size_t i = 0; i < names.size(); ++i)
    g.set_state(names[i], g.expr(g.find_leaf(OpKind::State, names[i])) - 0.1 * g.expr(results[i + 1]));
  g.set_outputs(std::vector<Value>{results[0]});
  CompiledGraph train = Session().compile(std::move(g));
  const double first = train.run_typed(data())[0].at(0);
  double last = first;
  for (int i = 0; i < 400; ++i) last = train.run_typed(data())[0].at(0);
  CHECK_MESSAGE(last < first / 20, first, " -> ", last);

  const ModelWeights trained = weights_in_memory(flow.trained_weights(train));
  Graph net("net");
  Flow params(net, trained);
  const Expr px = net.input("x", {{kRows, kIn}, DType::F32}), py = net.input("y", {{kRows, 1}, DType::F32});
  net.set_outputs({net.mean(net.square(network(params, px) - py))});
  params.finish("the network");
  CompiledGraph program = Session().compile(std::move(net));
  CHECK(params.load(program) == 6);
  const double deployed = program.run_typed(data())[0].at(0), next = train.run_typed(data())[0].at(0);
  CHECK(deployed == doctest::Approx(next).epsilon(1e-5));
}

TEST_CASE("trainable flow: first values depend on seed and name alone, with the stated spread") {
  const auto first = [](std::uint64_t seed, bool other_before) {
    Graph g("g");
    Flow flow = Flow::trainable(g, seed);
    const Expr x = g.input("x", {{1, 400}, DType::F32});
    if (other_before) (void)flow.linear(x, "b", 7);
    (void)flow.linear(x, "a", 300, true);
    (void)flow.norm(x, "n", NormKind::Rms, 1e-6);
    (void)flow.norm(x, "m", NormKind::Rms, 1e-6, false, 1.0);
    g.set_outputs({x});
    return flow.trained_weights(Session().compile(std::move(g)));
  };
  const auto find = [](const std::vector<NamedTensor>& all, const char* name) {
    for (const NamedTensor& t : all)
      if (t.name == name) return t.tensor;
    return Tensor();
  };
  const std::vector<NamedTensor> one = first(1, false), again = first(1, true), two = first(2, false);
  const Tensor a = find(one, "a.weight");
  double sum = 0, squares = 0;
  bool same = true, differs = false;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    sum += a.at(i);
    squares += a.at(i) * a.at(i);
    same = same && a.at(i) == find(again, "a.weight").at(i);
    if (i < 100) differs = differs || a.at(i) != find(two, "a.weight").at(i);
  }
  const double n = static_cast<double>(a.num_elements());
  CHECK(same);
  CHECK(differs);
  CHECK(std::fabs(sum / n) < 4 / std::sqrt(400 * n));  // four standard errors
  CHECK(squares / n == doctest::Approx(1.0 / 400).epsilon(0.02));
  CHECK(find(one, "a.bias").at(5) == 0);
  CHECK(find(one, "n.weight").at(0) == 1);
  CHECK(find(one, "m.weight").at(0) == 0);  // 1 with its offset
}

TEST_CASE("trainable flow: it starts with the numbers of a checkpoint, of halves and of blocks") {
  const test::TempDir dir;
  std::vector<float> values(4 * 32);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
  const Tensor exact = Tensor::of<float>({4, 32}, values);
  {
    GgufWriter w(dir.file("m.gguf"));
    const std::vector<std::int64_t> dims{4, 32};
    w.set_string("general.architecture", "none");
    w.add_tensor("w.weight", GgufType::Q8_0, dims);
    w.begin();
    const BlockLayout& layout = block_layout(QuantScheme::Q8_0);
    std::vector<std::byte> blocks(static_cast<std::size_t>(exact.num_elements() / layout.elements * layout.bytes));
    quantize_blocks(QuantScheme::Q8_0, exact.values<float>(), blocks);
    w.write(blocks);
    w.commit();
  }
  const auto start = [](const ModelWeights& weights) {
    Graph g("g");
    Flow flow = Flow::trainable(g, weights);
    g.set_outputs({flow.linear(g.input("x", {{1, 32}, DType::F32}), "w", 4)});
    flow.finish("one layer");
    return flow.trained_weights(Session().compile(std::move(g)))[0].tensor;
  };
  const Tensor halves = start(weights_in_memory({{"w.weight", exact.cast(DType::BF16)}}));
  const Tensor blocks = start(open_weights(dir.file("m.gguf")));
  const Tensor want = GgufFile::open(dir.file("m.gguf"))->decoded("w.weight");
  CHECK(halves.dtype() == DType::F32);
  for (std::int64_t i = 0; i < 128; ++i) {
    CHECK(halves.at(i) == exact.at(i));  // multiples of 1/8
    CHECK(blocks.at(i) == want.at(i));
  }
  Graph g("g");
  Flow flow = Flow::trainable(g, weights_in_memory({{"w.weight", Tensor::of<float>({2}, {1, 2})}}, "mine"));
  (void)flow.linear(g.input("x", {{1, 32}, DType::F32}), "w", 4);
  CHECK(
      test::contains(test::error_text([&] { flow.finish("one layer"); }), "mine: 'w.weight' is [2], expected [4, 32]"));
}

TEST_CASE("flow of params: its float weights have gradients") {
  Graph g("g");
  Flow flow(g, DType::F32);
  g.set_outputs({g.sum(flow.linear(g.input("x", {{2, 3}, DType::F32}), "w", 4))});
  CompiledGraph f = Session().compile(value_and_grad(g, {"w.weight"}).graph);
  f.set_param("w.weight", Tensor::zeros(Shape({4, 3}, DType::F32)));
  const Tensor grad = f.run_typed({{"x", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})}})[1];
  CHECK(grad.at(0) == 5);
  CHECK(grad.at(11) == 9);
}

}  // namespace rlx
