// The programs of docs/cpp.md, in its order: what they print is what the page shows.
#include <rlx/functions/functions.h>
#include <rlx/models/flow.h>
#include <rlx/rlx.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

void print(const char* name, const rlx::Tensor& t) {
  std::printf("%s %s:", name, t.shape().text().c_str());
  for (std::int64_t i = 0; i < t.num_elements(); ++i) std::printf(" %g", t.at(i));
  std::printf("\n");
}

void first_program() {
  rlx::Graph g("layer");
  auto x = g.input("x", {{2, 3}, rlx::DType::F32});
  auto w = g.param("w", {{3, 2}, rlx::DType::F32});
  g.set_outputs({g.tanh(g.matmul(x, w))});

  auto f = rlx::Session().compile(std::move(g));
  f.set_param("w", {1, 0, 0, 1, 0.5f, 0.5f});
  auto y = f.run({{"x", {1, 2, 0, 0, 0, 2}}});  // one vector of floats for each output
  std::printf("%.3f %.3f / %.3f %.3f\n", y[0][0], y[0][1], y[0][2], y[0][3]);
}

void values() {
  rlx::Graph g("values");
  auto x = g.input("x", {{4}, rlx::DType::F32}), y = g.input("y", {{4}, rlx::DType::F32});
  auto z = 2.0 * x - y / 4;           // numbers take the dtype of the value beside them
  auto large = g.where(z > 3, z, 0);  // comparisons are elementwise; == and != compare identity: see g.eq, g.ne
  auto ids = g.cast(g.eq(x, y), rlx::DType::I32);
  g.set_outputs({z, large, ids});
  for (const rlx::Tensor& out : rlx::Session()
                                    .compile(std::move(g))
                                    .run_typed({{"x", rlx::Tensor::of<float>({4}, {1, 2, 3, 4})},
                                                {"y", rlx::Tensor::of<float>({4}, {4, 2, 0, 4})}}))
    print("out", out);
}

void indexing() {
  rlx::Graph g("indexing");
  auto x = g.iota({{3, 4}, rlx::DType::I32}, 1) + 10 * g.iota({{3, 4}, rlx::DType::I32}, 0);
  auto rows = g.constant(rlx::Tensor::of<std::int32_t>({2}, {-1, 0}));
  g.set_outputs({
      x[1],                                        // a row
      x[{rlx::kRest, -1}],                         // the last column
      x[{rlx::Slice{1, 3}, rlx::Slice{0, 4, 2}}],  // x[1:3, 0:4:2]
      x[{0, rlx::Slice{.step = -1}}],              // the first row, backwards
      x[rows],                                     // rows by an integer tensor
      g.flatten(x)[rlx::Slice{.stop = 3}],
  });
  for (const rlx::Tensor& out : rlx::evaluate(g)) print("x[..]", out);
}

void tensors() {
  rlx::Tensor a = rlx::Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  rlx::Tensor b = a;  // shares the bytes
  b.set(0, 10);       // and now has its own
  rlx::Tensor half = a.cast(rlx::DType::BF16);
  print("a", a);
  print("b", b);
  std::printf("%s, %zu bytes, values<float>()[3] = %g\n", half.shape().text().c_str(), half.size_bytes(),
              static_cast<double>(a.values<float>()[3]));
}

void errors() {
  rlx::Graph g("errors");
  auto x = g.input("x", {{2, 3}, rlx::DType::F32});
  try {
    (void)g.matmul(x, x);
  } catch (const rlx::Error& e) {
    std::printf("%s: %s\n", std::string(rlx::error_code_name(e.code())).c_str(), e.diagnostic().message.c_str());
  }
}

void symbols() {
  rlx::Graph g("symbols");
  auto n = g.symbol("n", {.min = 1, .max = 1024});
  auto x = g.input("x", {{n, 2}, rlx::DType::F32});
  g.set_outputs({g.mean(x, {0}), g.flatten(x)});
  std::printf("%s\n", g.shape(g.outputs()[1]).text().c_str());

  rlx::CompileOptions options;
  options.symbol_modes["n"] = rlx::SymbolMode::runtime();  // one program for all values of n
  auto f = rlx::Session().compile_with(std::move(g), options);
  for (std::int64_t rows : {1, 3}) {
    rlx::Tensor x_value = rlx::Tensor::full({{rows, 2}, rlx::DType::F32}, static_cast<double>(rows));
    print("mean", f.run_typed({{"x", x_value}})[0]);
  }
}

void derivatives() {
  rlx::Graph g("loss");
  auto x = g.input("x", {{3}, rlx::DType::F32});
  g.set_outputs({g.sum(x * x * x)});

  auto f = rlx::Session().compile(rlx::value_and_grad(g, {"x"}).graph);  // outputs: the loss, the gradient
  auto out = f.run({{"x", {1, 2, 3}}});
  std::printf("loss %g, gradient %g %g %g\n", out[0][0], out[1][0], out[1][1], out[1][2]);

  auto h = rlx::Session().compile(rlx::hessian(g, {"x"}).graph);  // [3, 3]
  std::printf("second derivatives %g %g %g\n", h.run({{"x", {1, 2, 3}}})[0][0], h.run({{"x", {1, 2, 3}}})[0][4],
              h.run({{"x", {1, 2, 3}}})[0][8]);
}

void batches() {
  rlx::Graph one("one");
  auto a = one.input("a", {{2}, rlx::DType::F32}), b = one.input("b", {{2}, rlx::DType::F32});
  one.set_outputs({one.sum(a * b)});
  // a gets a batch axis of extent 3 in front; all elements of the batch share b.
  auto f = rlx::Session().compile(rlx::vmap(one, {{"a", 0}}, 3).graph);
  auto y = f.run({{"a", {1, 2, 3, 4, 5, 6}}, {"b", {1, 10}}});
  std::printf("%g %g %g\n", y[0][0], y[0][1], y[0][2]);
}

void control_flow() {
  rlx::Graph g("control_flow");
  auto xs = g.input("xs", {{5}, rlx::DType::F32});
  auto start = g.scalar(0.0f);
  // Running sums, with values of the enclosing graph (here `limit`) used directly.
  auto limit = g.scalar(6.0f);
  auto sums = g.scan({start}, {xs}, [&](rlx::Graph& body, const rlx::ExprList& carry, const rlx::ExprList& row) {
    auto next = body.min(carry[0] + row[0], limit);
    return rlx::LoopStep{rlx::ExprList{next}, rlx::ExprList{next}};
  });
  auto doubled = g.while_loop(
      {g.scalar(1.0f)}, [](rlx::Graph&, const rlx::ExprList& c) { return c[0] < 100; },
      [](rlx::Graph&, const rlx::ExprList& c) { return rlx::LoopStep{c[0] * 2}; });
  g.set_outputs({sums.ys[0], doubled.carries[0]});
  const auto out = rlx::Session().compile(std::move(g)).run({{"xs", {1, 2, 2, 3, 4}}});
  std::printf("sums %g %g %g %g %g, doubled to %g\n", out[0][0], out[0][1], out[0][2], out[0][3], out[0][4], out[1][0]);
}

void state() {
  rlx::Graph g("counter");
  auto count = g.state("count", rlx::Tensor::scalar(rlx::DType::F32, 0)) + 1;
  g.set_state("count", count);  // the value after a run
  g.set_outputs({count});
  auto f = rlx::Session().compile(std::move(g));
  f.run();
  f.run();
  auto other = f.clone();  // the same code and weights, a state of its own
  f.reset();
  std::printf("%g %g\n", f.run()[0][0], other.run()[0][0]);
}

constexpr std::int64_t kPoints = 64;

// The network, over weights that a Flow takes by name.
rlx::Expr network(rlx::Flow& flow, rlx::Expr x) {
  rlx::Graph& g = flow.graph();
  x = g.tanh(flow.linear(x, "up", 16, true));
  return flow.linear(x, "down", 1, true);
}

rlx::NamedTensors points() {
  std::vector<float> x, y;
  for (int i = 0; i < kPoints; ++i) {
    const auto a = static_cast<float>(i % 8) / 4 - 1, b = static_cast<float>(i / 8) / 4 - 1;
    x.insert(x.end(), {a, b});
    y.push_back(a * b);
  }
  return {{"x", rlx::Tensor::of<float>({kPoints, 2}, x)}, {"y", rlx::Tensor::of<float>({kPoints, 1}, y)}};
}

void training() {
  rlx::Graph forward("train");
  auto flow = rlx::Flow::trainable(forward, 1);  // weights are states; their first values depend on this seed
  auto x = forward.input("x", {{kPoints, 2}, rlx::DType::F32});
  auto y = forward.input("y", {{kPoints, 1}, rlx::DType::F32});
  forward.set_outputs({forward.mean(forward.square(network(flow, x) - y))});

  const std::vector<std::string> names = flow.names();
  rlx::Graph step = rlx::value_and_grad(forward, {names.begin(), names.end()}).graph;
  const std::vector<rlx::Value> results = step.outputs();  // the loss, then a gradient for each name
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto weight = step.expr(step.find_leaf(rlx::OpKind::State, names[i]));
    step.set_state(names[i], weight - 0.1 * step.expr(results[i + 1]));
  }
  step.set_outputs(std::vector<rlx::Value>{results[0]});

  auto train = rlx::Session().compile(std::move(step));
  for (int i = 0; i <= 600; ++i) {
    const double loss = train.run_typed(points())[0].at(0);
    if (i % 200 == 0) std::printf("step %3d: loss %.2f\n", i, loss);
  }

  // The same network over the trained weights as params, which are packed for the kernels that read them.
  rlx::Graph g("deployed");
  rlx::Flow deployed(g, rlx::weights_in_memory(flow.trained_weights(train)));
  auto n = g.symbol("n", {.min = 1, .max = 100});
  g.set_outputs({network(deployed, g.input("x", {{n, 2}, rlx::DType::F32}))});
  deployed.finish("the network");  // names every weight that does not fit
  auto f = rlx::Session().compile(std::move(g));
  deployed.load(f);
  const double product = f.run_typed({{"x", rlx::Tensor::of<float>({1, 2}, {0.5f, -0.5f})}})[0].at(0);
  std::printf("0.5 * -0.5 is %s -0.25\n", std::fabs(product + 0.25) < 0.1 ? "about" : "not");
}

void functions() {
  rlx::Graph g("functions");
  auto a = g.constant(rlx::Tensor::of<float>({2, 2}, {2, 1, 1, 3}));
  auto b = g.constant(rlx::Tensor::of<float>({2}, {3, 5}));
  auto logits = g.constant(rlx::Tensor::of<float>({1, 3}, {1, 2, 3}));
  auto label = g.constant(rlx::Tensor::of<std::int32_t>({1}, {2}));
  auto key = g.rng_key(7);
  g.set_outputs({rlx::linalg::solve(a, b), rlx::nn::cross_entropy(logits, label), g.rng_uniform(key, {2})});
  const auto out = rlx::Session().compile(std::move(g)).run();
  std::printf("solve %.2f %.2f, cross entropy %.4f, random in [0, 1): %s\n", out[0][0], out[0][1], out[1][0],
              out[2][0] >= 0 && out[2][0] < 1 ? "yes" : "no");
}

void looking_inside() {
  rlx::Graph g("inside");
  auto x = g.input("x", {{2, 3}, rlx::DType::F32});
  auto w = g.param("w", {{3, 2}, rlx::DType::F32});
  auto b = g.param("b", {{2}, rlx::DType::F32});
  g.set_outputs({g.relu(g.matmul(x, w) + b)});
  std::printf("%s", rlx::print_text(g).c_str());
  // The reference rules run any graph op by op: an oracle for a compiled program.
  const rlx::NamedTensors values{{"x", rlx::Tensor::full({{2, 3}, rlx::DType::F32}, 1)},
                                 {"w", rlx::Tensor::full({{3, 2}, rlx::DType::F32}, 2)},
                                 {"b", rlx::Tensor::of<float>({2}, {-10, 10})}};
  print("reference", rlx::evaluate(g, values)[0]);
}

}  // namespace

int main() {
  first_program();
  values();
  indexing();
  tensors();
  errors();
  symbols();
  derivatives();
  batches();
  control_flow();
  state();
  training();
  functions();
  looking_inside();
}
