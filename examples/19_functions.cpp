// Functions composed of ops: convolutions, recurrent layers, spectra, linear algebra, random numbers, and a loop that
// the host controls.
#include <rlx/functions/functions.h>
#include <rlx/rlx.h>
#include <rlx/runtime/subgraph_cache.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

std::vector<float> waves(int count, float step) {
  std::vector<float> out;
  for (int i = 0; i < count; ++i) out.push_back(std::sin(step * static_cast<float>(i)));
  return out;
}

// The loss of a small network on images x [2, 3, 8, 8] with classes y, and its gradients.
void pictures() {
  rlx::Graph g("pictures");
  auto x = g.input("x", {{2, 3, 8, 8}, rlx::DType::F32});
  auto y = g.input("y", {{2}, rlx::DType::I32});
  auto filters = g.param("filters", {{4, 3, 3, 3}, rlx::DType::F32});
  auto head = g.param("head", {{4, 5}, rlx::DType::F32});
  auto h = rlx::nn::conv2d(x, filters, {.strides = {2}, .padding = rlx::nn::ConvPadding::of({1})});
  h = g.relu(rlx::nn::batch_norm_training(h).y);
  h = g.mean(rlx::nn::max_pool(h, {.window = {2}}), {2, 3});
  g.set_outputs({rlx::nn::cross_entropy(g.matmul(h, head), y, {.label_smoothing = 0.1})});
  auto f = rlx::Session().compile(rlx::value_and_grad(g, {"filters", "head"}).graph);
  f.set_param("filters", waves(4 * 3 * 3 * 3, 0.7F));
  f.set_param("head", waves(4 * 5, 1.3F));
  const auto out = f.run_typed({{"x", rlx::Tensor::of<float>({2, 3, 8, 8}, waves(2 * 3 * 8 * 8, 0.3F))},
                                {"y", rlx::Tensor::of<std::int32_t>({2}, {1, 4})}});
  std::printf("pictures: loss %.3f, gradients %s and %s\n", out[0].at(0), out[1].shape().text().c_str(),
              out[2].shape().text().c_str());
}

// PyTorch's LSTM over a batch of sequences of different lengths, up to 64 steps.
void sequences() {
  rlx::Graph g("sequences");
  auto steps = g.symbol("steps", {.min = 1, .max = 64});
  auto x = g.input("x", {{steps, 2, 3}, rlx::DType::F32});
  auto lengths = g.input("lengths", {{2}, rlx::DType::I32});
  auto w_ih = g.param("w_ih", {{16, 3}, rlx::DType::F32}), w_hh = g.param("w_hh", {{16, 4}, rlx::DType::F32});
  auto r = rlx::nn::lstm(x, {{w_ih, w_hh}}, {.lengths = lengths});
  g.set_outputs({r.y, r.h});
  auto f = rlx::Session().compile(std::move(g));
  f.set_param("w_ih", waves(16 * 3, 0.9F));
  f.set_param("w_hh", waves(16 * 4, 1.1F));
  const auto out = f.run_typed({{"x", rlx::Tensor::of<float>({5, 2, 3}, waves(5 * 2 * 3, 0.4F))},
                                {"lengths", rlx::Tensor::of<std::int32_t>({2}, {5, 2})}});
  std::printf("sequences: y %s, its row 4 of the short one starts with %g\n", out[0].shape().text().c_str(),
              out[0].at((4 * 2 + 1) * 4));
}

// The short-time spectrum of a tone, and its inverse.
void tone() {
  rlx::Graph g("tone");
  auto x = g.input("x", {{800}, rlx::DType::F32});
  const rlx::fft::StftOptions form{.n_fft = 64, .hop = 16, .window = g.constant(rlx::fft::hann_window(64))};
  auto spectrum = rlx::fft::stft(x, form);
  auto loudest = g.arg_max(g.mean(rlx::fft::complex_norm_sq(spectrum), {1}), 0);
  auto error = g.reduce_max(g.abs(rlx::fft::istft(spectrum, form, 800) - x));
  g.set_outputs({loudest, g.cast(g.lt(error, 1e-5), rlx::DType::I32)});
  const auto out = rlx::Session()
                       .compile(std::move(g))
                       .run_typed({{"x", rlx::Tensor::of<float>({800}, waves(800, 2 * 3.14159265F * 10 / 64))}});
  std::printf("tone: frequency %g of 64, comes back: %s\n", out[0].at(0), out[1].at(0) != 0 ? "yes" : "no");
}

// A line fitted to noisy points, by least squares and by the normal equations.
void line() {
  rlx::Graph g("line");
  auto key = g.rng_key(0);
  auto t = g.iota({{50, 1}, rlx::DType::F64}, 0) * 0.1;
  auto a = g.concat({t, t * 0.0 + 1.0}, 1);
  auto b = g.squeeze(t, 1) * 3.0 + 0.5 + g.rng_normal(key, {50}, rlx::DType::F64) * 0.01;
  auto at = g.transpose(a, {1, 0});
  auto l = g.cholesky(g.matmul(at, a));
  auto normal = rlx::linalg::cholesky_solve(l, rlx::einsum("nk,n->k", {a, b}));
  g.set_outputs({rlx::linalg::lstsq(a, b).x, normal});
  const auto out = rlx::Session().compile(std::move(g)).run_typed({});
  std::printf("line: %.2f t + %.2f, and %.2f t + %.2f\n", out[0].at(0), out[0].at(1), out[1].at(0), out[1].at(1));
}

// Newton's method, whose condition the host checks. Each graph is compiled once and kept under its name.
void square_root() {
  rlx::Graph go_on("go_on"), step("step");
  auto x = go_on.input("x", {{}, rlx::DType::F32});
  go_on.set_outputs({go_on.gt(go_on.abs(x * x - 2.0), 1e-5)});
  auto y = step.input("x", {{}, rlx::DType::F32});
  step.set_outputs({(y + 2.0 / y) * 0.5});
  rlx::SubgraphCache programs;
  const rlx::Session session;
  const auto r = rlx::run_while(programs, session, go_on, step, {rlx::Tensor::scalar(rlx::DType::F32, 1)}, {"x"}, 50);
  std::printf("square root: %.4f after %d steps\n", r.state[0].at(0), static_cast<int>(r.iterations));
}

}  // namespace

int main() {
  pictures();
  sequences();
  tone();
  line();
  square_root();
}
