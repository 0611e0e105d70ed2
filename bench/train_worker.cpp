// The two training programs of bench/train: an encoder layer with the gradients of its 16 parameters, and an Adam step
// of a small classifier whose weights and moments are states.
// usage: train_worker THREADS DATA.npz
//
// DATA holds the data of the peer: mlp_x, mlp_y, mlp_p0.., enc_x, enc_p0... Requests are lines: "mlp SECONDS" and
// "encoder SECONDS" give median times as JSON, "profile PROGRAM" gives kernel times as JSON, "results FILE" writes the
// loss and gradients of the layer, and the losses of three steps and the weights after them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "rlx/formats/npy.h"
#include "rlx/rlx.h"

namespace {

using rlx::Expr;
using rlx::Graph;
using rlx::Tensor;

using Data = std::map<std::string, Tensor>;

std::string numbered(const char* stem, std::size_t i) { return stem + std::to_string(i); }

std::vector<Tensor> series(const Data& data, const char* stem) {
  std::vector<Tensor> out;
  while (data.contains(numbered(stem, out.size()))) out.push_back(data.at(numbered(stem, out.size())));
  return out;
}

/// A compiled program with its inputs and output buffers.
struct Program {
  rlx::CompiledGraph compiled;
  std::vector<Tensor> inputs, outputs;

  Program(rlx::CompiledGraph c, std::vector<Tensor> in) : compiled(std::move(c)), inputs(std::move(in)) {
    for (const rlx::IoInfo& out : compiled.outputs()) outputs.push_back(Tensor::zeros(out.shape));
    for (const Tensor& t : inputs) views_.push_back(t.view());
    for (Tensor& t : outputs) targets_.push_back({t.mutable_data(), t.dtype(), {}, t.size_bytes()});
  }
  void run() { compiled.run_into(views_, targets_); }
  std::vector<rlx::NodeTime> profile() { return compiled.profile(views_); }

 private:
  std::vector<rlx::TensorView> views_;
  std::vector<rlx::MutableTensorView> targets_;
};

/// One post-norm encoder layer with the loss mean(y^3). Outputs are the loss and its gradient by every parameter.
/// Parameters are set between runs (Mutable), so nothing is prepacked.
Program encoder(const rlx::Session& session, const Data& data) {
  constexpr std::int64_t kHeads = 12;
  const Tensor& x_value = data.at("enc_x");
  const std::vector<Tensor> values = series(data, "enc_p");
  Graph g("encoder_layer");
  const Expr x = g.input("x", x_value.shape());
  std::vector<Expr> p;
  std::vector<rlx::Wrt> wrt;
  for (std::size_t i = 0; i < values.size(); ++i) {
    p.push_back(g.param(numbered("p", i), values[i].shape(), rlx::ParamMode::Mutable));
    wrt.emplace_back(numbered("p", i));
  }
  const auto linear = [&](Expr in, std::size_t i) { return g.matmul(in, p[2 * i]) + p[2 * i + 1]; };
  rlx::ops::Attention heads;
  heads.num_heads = heads.kv_heads = kHeads;
  heads.head_dim = x_value.dim(2) / kHeads;
  const Expr a = g.attention(linear(x, 0), linear(x, 1), linear(x, 2), heads);
  const Expr h = g.layer_norm(x + linear(a, 3), p[12], p[13], 1e-12);
  const Expr y = g.layer_norm(h + linear(g.gelu(linear(h, 4)), 5), p[14], p[15], 1e-12);
  g.set_outputs({g.mean(y * y * y)});
  rlx::CompiledGraph compiled = session.compile(rlx::value_and_grad(g, wrt).graph);
  for (std::size_t i = 0; i < values.size(); ++i) compiled.set_param(numbered("p", i), values[i]);
  return {std::move(compiled), {x_value}};
}

/// One Adam step of a classifier. The parameters, both moments and the step number are states. The output is the loss.
Program mlp(const rlx::Session& session, const Data& data) {
  const Tensor &x_value = data.at("mlp_x"), &y_value = data.at("mlp_y");
  const std::vector<Tensor> values = series(data, "mlp_p");
  const std::size_t n = values.size();
  Graph g("mlp");
  const Expr x = g.input("x", x_value.shape()), y = g.input("y", y_value.shape());
  std::vector<Expr> p;
  std::vector<rlx::Wrt> wrt;
  for (std::size_t i = 0; i < n; ++i) {
    p.push_back(g.state(numbered("p", i), values[i]));
    wrt.emplace_back(numbered("p", i));
  }
  Expr h = x;
  for (std::size_t i = 0; i < n; i += 2) {
    h = g.matmul(h, p[i]) + p[i + 1];
    if (i + 2 < n) h = g.relu(h);
  }
  const rlx::Shape classes({h.dim(0), h.dim(1)}, rlx::DType::I32);
  const Expr hit = g.cast(g.eq(g.iota(classes, 1), g.reshape(y, {h.dim(0), 1})), rlx::DType::F32);
  g.set_outputs({-g.mean(g.sum(hit * g.log_softmax(h), {1}))});

  Graph joint = rlx::value_and_grad(g, wrt).graph;
  const std::vector<rlx::Value> results = joint.outputs();
  const auto state = [&](const std::string& name) {
    return joint.expr(rlx::Value(joint.find_leaf(rlx::OpKind::State, name)));
  };
  const Expr step = joint.state("t", Tensor::scalar(rlx::DType::F32, 0)) + 1.0;
  joint.set_state("t", step.value());
  // 1 - beta^t with beta^t = exp(t log beta).
  const Expr a = 1.0 - joint.exp(step * std::log(0.9)), b = 1.0 - joint.exp(step * std::log(0.999));
  for (std::size_t i = 0; i < n; ++i) {
    const Expr d = joint.expr(results[i + 1]);
    const Tensor zeros = Tensor::zeros(values[i].shape());
    const Expr m = 0.9 * joint.state(numbered("m", i), zeros) + 0.1 * d;
    const Expr v = 0.999 * joint.state(numbered("v", i), zeros) + 0.001 * d * d;
    joint.set_state(numbered("m", i), m.value());
    joint.set_state(numbered("v", i), v.value());
    const Expr next = state(numbered("p", i)) - 1e-3 * (m / a) / (joint.sqrt(v / b) + 1e-8);
    joint.set_state(numbered("p", i), next.value());
  }
  joint.set_outputs(std::vector<rlx::Value>{results[0]});
  return {session.compile(std::move(joint)), {x_value, y_value}};
}

void time_runs(Program& program, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto us_since = [](Clock::time_point t) {
    return std::chrono::duration<double, std::micro>(Clock::now() - t).count();
  };
  const auto warm = Clock::now();
  for (int i = 0; i < 3 || us_since(warm) < 0.05e6; ++i) program.run();
  std::vector<double> us;
  const std::clock_t used = std::clock();
  const auto begin = Clock::now();
  while (us_since(begin) < seconds * 1e6 || us.size() < 5) {
    const auto t = Clock::now();
    program.run();
    us.push_back(us_since(t));
  }
  const double cpus = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC / (us_since(begin) / 1e6);
  std::sort(us.begin(), us.end());
  std::printf("{\"p50_us\":%.3f,\"p10_us\":%.3f,\"n\":%zu,\"cpus\":%.3f}\n", us[us.size() / 2], us[us.size() / 10],
              us.size(), cpus);
}

/// Median kernel time of each node over 15 runs, slowest first.
void print_profile(Program& program) {
  std::map<std::string, std::vector<double>> times;
  std::vector<rlx::NodeTime> last;
  for (int i = 0; i < 15; ++i) {
    last = program.profile();
    for (std::size_t k = 0; k < last.size(); ++k) times[std::to_string(k)].push_back(last[k].ns);
  }
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t k = 0; k < last.size(); ++k) {
    auto& t = times[std::to_string(k)];
    std::nth_element(t.begin(), t.begin() + 7, t.end());
    order.emplace_back(t[7], k);
  }
  std::sort(order.rbegin(), order.rend());
  std::string lines;
  for (const auto& [ns, k] : order) {
    std::ostringstream line;
    line << (lines.empty() ? "" : ",") << "[" << ns / 1e3 << ",\"" << last[k].kernel << "\",\"" << last[k].op << "\",\""
         << last[k].label << "\"," << last[k].cost.flops << "]";
    lines += line.str();
  }
  std::printf("{\"profile\":[%s]}\n", lines.c_str());
}

/// The results that bench/train compares with the peer.
void write_results(const std::string& path, const rlx::Session& session, const Data& data) {
  std::vector<rlx::NamedTensor> out;
  Program layer = encoder(session, data);
  layer.run();
  out.push_back({"enc_loss", layer.outputs[0]});
  for (std::size_t i = 1; i < layer.outputs.size(); ++i) out.push_back({numbered("enc_g", i - 1), layer.outputs[i]});
  Program step = mlp(session, data);
  std::vector<float> losses;
  for (int i = 0; i < 3; ++i) {
    step.run();
    losses.push_back(step.outputs[0].values<float>()[0]);
  }
  out.push_back({"mlp_loss", Tensor::of<float>({3}, losses)});
  for (std::size_t i = 0; i < series(data, "mlp_p").size(); ++i)
    out.push_back({numbered("mlp_p", i), step.compiled.read_state(numbered("p", i))});
  rlx::write_npz(path, out);
  std::printf("{\"written\":true}\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 3) throw rlx::Error(rlx::ErrorCode::InvalidArgument, "usage: train_worker THREADS DATA.npz");
    Data data;
    for (rlx::NamedTensor& t : rlx::read_npz(argv[2])) data[t.name] = std::move(t.tensor);
    rlx::Session session;
    session.with_threads(std::atoi(argv[1]));
    Program layer = encoder(session, data), step = mlp(session, data);
    std::printf("{\"version\":\"rlx\"}\n");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line); std::fflush(stdout)) {
      std::istringstream words(line);
      std::string command, rest;
      words >> command >> rest;
      if (command == "results")
        write_results(rest, session, data);
      else if (command == "profile")
        print_profile(rest == "mlp" ? step : layer);
      else
        time_runs(command == "mlp" ? step : layer, std::atof(rest.c_str()));
    }
  } catch (const rlx::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
