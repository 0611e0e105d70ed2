// Loads the plug-ins of this project: the good one runs every op sample, states and a clone; each faulty one is refused
// with its reason, and the program lives. Arguments: the good library, then those with a fault in the order below.
#include <rlx/rlx.h>

#include <rlx/device/plugin_backend.h>
#include <rlx/ir/op_def.h>
#include <rlx/testing/op_samples.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

using namespace rlx;

namespace {

int problems = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  std::printf("wrong: %s\n", what.c_str());
  ++problems;
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

void expect_told(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos, "'" + part + "' is not in: " + text);
}

double draw(std::mt19937_64& random, Fill fill, std::int64_t bound) {
  const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
  switch (fill) {
    case Fill::Normal: return 4 * unit - 2;
    case Fill::Positive: return 0.5 + 1.5 * unit;
    case Fill::Unit: return 1.8 * unit - 0.9;
    case Fill::AboveOne: return 1.25 + 1.75 * unit;
    case Fill::Index: return std::floor(unit * static_cast<double>(bound));
    case Fill::Boolean: return unit < 0.5 ? 0 : 1;
    case Fill::Small: return std::floor(unit * 7) - 3;
  }
  return 0;
}

// The sample on the plug-in beside the evaluator's result.
void check_sample(const OpDef& def, const testing::Sample& sample, std::mt19937_64& random) {
  Graph g("sample");
  std::vector<Value> operands, outputs;
  NamedTensors values;
  for (const testing::SampleInput& in : sample.inputs) {
    const std::string name = "x" + std::to_string(operands.size());
    operands.push_back(g.input(name, in.shape));
    Tensor t = Tensor::zeros(in.shape);
    for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set(i, draw(random, in.fill, in.bound));
    values.emplace(name, t);
  }
  const Expr e = g.add(sample.op, operands);
  for (std::uint32_t r = 0; r < g.node(e.value().node).num_results(); ++r) outputs.push_back(e.result(r));
  g.set_outputs(outputs);
  const std::vector<Tensor> want = evaluate(g, values);
  const std::vector<Tensor> got = Session(Device::Tpu).compile(std::move(g)).run_typed(values);
  for (std::size_t o = 0; o < want.size(); ++o)
    for (std::int64_t i = 0; i < want[o].num_elements(); ++i) {
      const double a = got[o].at(i), b = want[o].at(i);
      const bool near =
          a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-4 * std::max(1.0, std::abs(b));
      if (near) continue;
      expect(false, std::string(def.name) + ", sample '" + sample.name + "': " + std::to_string(a) + " for " +
                        std::to_string(b));
      return;
    }
}

void check_good(const std::string& path) {
  const Plugin plugin = load_plugin(path);
  expect(plugin.name == "eager" && plugin.devices == std::vector<Device>{Device::Tpu}, "the plug-in's name and device");
  int samples = 0;
  std::mt19937_64 random(1);
  for (const OpDef* def : all_op_defs()) {
    if (def->is_leaf() || def->level == Level::Lir) continue;
    for (const testing::Sample& sample : testing::op_samples(*def)) {
      check_sample(*def, sample, random);
      ++samples;
    }
  }
  Graph g("counter");
  Expr x = g.input("x", {{2}, DType::F32}), w = g.param("w", {{2}, DType::F32});
  Expr s = g.state("s", Tensor::zeros(Shape({2}, DType::F32)));
  g.set_state("s", s + x);
  g.set_outputs({s * w});
  CompiledGraph f = Session(Device::Tpu, {{"speed", "any"}}).compile(std::move(g));
  f.set_param("w", {2, 3});
  f.run({{"x", {1, 1}}});
  CompiledGraph c = f.clone();
  f.run({{"x", {1, 1}}});
  expect(f.run({{"x", {0, 0}}})[0] == std::vector<float>{4, 6}, "a state over two runs");
  expect(c.run({{"x", {0, 0}}})[0] == std::vector<float>{2, 3}, "the state of a clone");
  expect_told(error_of([] { Session(Device::Tpu, {{"sped", "1"}}); }), "did you mean 'speed'");
  std::printf("eager: %s\n", samples > 100 && problems == 0 ? "every op sample, states, a clone" : "wrong");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  // The first by the environment, as users name one.
  env_set("RLX_PLUGINS", argv[1]);
  expect(is_available(Device::Tpu), unavailable_reason(Device::Tpu));
  check_good(argv[1]);
  expect_told(error_of([&] { (void)load_plugin(argv[2]); }), "its table has version 2.0, but this rlx reads 1.x");
  expect_told(error_of([&] { (void)load_plugin(argv[3]); }), "its table has no 'compile' (null)");
  (void)load_plugin(argv[4]);
  const std::string failing = error_of([] { (void)Session(Device::Rocm); });
  expect_told(failing, "device rocm");
  expect_told(failing, std::string("the plug-in 'faulty' (") + argv[4] + "): option_infos failed: nothing works here");
  expect_told(failing, "try another day");
  expect_told(error_of([&] { (void)load_plugin(argv[5]); }), "has no function rlx_plugin_entry");
  const std::string thrown = error_of([&] { (void)load_plugin(argv[6]); });
  expect_told(thrown,
              std::string("the plug-in ") + argv[6] + ": rlx_plugin_entry failed: it threw an exception, which");
  expect_told(thrown, "the license has run out");
  check_good(argv[1]);
  std::printf("faulty: %s\n", problems == 0 ? "each is refused by name" : "wrong");
  return problems == 0 ? 0 : 1;
}
