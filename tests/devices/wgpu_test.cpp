// What the devices of wgpu promise beyond results: faults are told and survived, launches of any number of groups,
// values without bytes, submissions, times.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "rlx/backends/wgpu/device.h"
#include "rlx/device/device.h"
#include "rlx/device/registry.h"
#include "rlx/models/encoder/bert.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/dlpack.h"
#include "rlx/runtime/run_memory.h"
#include "rlx/runtime/session.h"
#include "tests/devices/allocations.h"
#include "tests/devices/test_device.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::f32;
using test::test_device;

bool wgpu_here() { return test::device_here() && backend_for(test_device())->name() == "wgpu"; }

wgpu::WgpuDevice& wgpu_device(const Session& s) { return dynamic_cast<wgpu::WgpuDevice&>(*s.open_device()); }

// x + w, x * x
Graph pair_graph() {
  Graph g("small");
  Expr x = g.input("x", f32({3, 5})), w = g.param("w", f32({5}));
  g.set_outputs({x + w, x * x});
  return g;
}

CompiledGraph pair_program(const Session& s) {
  CompiledGraph f = s.compile(pair_graph());
  f.set_param("w", {1, 2, 3, 4, 5});
  return f;
}

void expect_pair(CompiledGraph& f, float x) {
  const std::vector<std::vector<float>> out = f.run({{"x", std::vector<float>(15, x)}});
  for (std::size_t i = 0; i < 15; ++i) {
    CHECK(out[0][i] == x + static_cast<float>(i % 5 + 1));
    CHECK(out[1][i] == x * x);
  }
}

}  // namespace

TEST_CASE("wgpu: a run is one submission, and one more brings its results") {
  if (!wgpu_here()) return;
  const Session s(test_device());
  CompiledGraph f = pair_program(s);
  expect_pair(f, 2);
  const std::uint64_t before = wgpu_device(s).gpu()->submissions();
  expect_pair(f, 3);
  CHECK(wgpu_device(s).gpu()->submissions() - before == 2);
}

TEST_CASE("wgpu: a run that a driver may lose patience with is cut, and its results are the same") {
  if (!wgpu_here()) return;
  const Session s(test_device());
  Graph g("steps");
  Expr x = g.input("x", f32({4, 6}));
  for (int i = 0; i < 6; ++i) x = g.cumsum(x, i % 2);
  g.set_outputs({x});
  CompiledGraph f = s.compile(std::move(g));
  REQUIRE(test::host_part(f).empty());
  const auto run = [&] { return f.run({{"x", std::vector<float>(24, 1)}})[0]; };
  const std::vector<float> whole = run();
  wgpu::Gpu& gpu = *wgpu_device(s).gpu();
  const double before = gpu.longest_submission;
  gpu.longest_submission = 1e-3;
  const std::uint64_t submissions = gpu.submissions();
  CHECK(run() == whole);
  CHECK(gpu.submissions() - submissions >= 7);
  gpu.longest_submission = before;
}

TEST_CASE("wgpu: software is taken by name alone, and says that it is software") {
  if (!wgpu_here()) return;
  const std::shared_ptr<const Backend> backend = backend_for(test_device());
  const bool software = backend->probe(test_device()).software;
  CHECK(software == contains(backend->describe(test_device()), "software"));
  if (software) CHECK(fastest_device() != test_device());
}

TEST_CASE("wgpu: a lost device fails all that is there, the process lives, and a new session has a new one") {
  if (!wgpu_here()) return;
  Session s(test_device());
  CompiledGraph f = pair_program(s);
  expect_pair(f, 2);
  const Tensor there = to(Tensor::full(f32({3, 5}), 1), test_device());
  wgpu_device(s).gpu()->destroy();
  for (int i = 0; i < 2; ++i) {
    const std::string text = error_text([&] { (void)f.run({{"x", std::vector<float>(15, 1)}}); });
    CHECK(contains(text, "device lost"));
    CHECK(contains(text, "was lost"));
    CHECK(contains(text, "make a new session"));
  }
  CHECK(wgpu_device(s).lost());
  CHECK(contains(error_text([&] { (void)there.to_host(); }), "was lost"));
  Session fresh(test_device());
  CHECK_FALSE(wgpu_device(fresh).lost());
  CompiledGraph again = pair_program(fresh);
  expect_pair(again, 4);
  CHECK(contains(error_text([&] { (void)again.run_device({{"x", there}}); }), "lost"));
}

TEST_CASE("wgpu: a device that is lost while a run is under way fails the wait") {
  if (!wgpu_here()) return;
  Session s(test_device());
  CompiledGraph f = pair_program(s);
  expect_pair(f, 2);
  f.commit_no_wait({{"x", std::vector<float>(15, 1)}});
  wgpu_device(s).gpu()->destroy();
  // The work may have been done by then; what comes next fails in any case.
  (void)error_text([&] { (void)f.sync_pending(); });
  CHECK(contains(error_text([&] { (void)f.run({{"x", std::vector<float>(15, 1)}}); }), "was lost"));
}

TEST_CASE("wgpu: memory beyond the limit names the device, what is wanted, what is in use; the session goes on") {
  if (!wgpu_here()) return;
  const Session s(test_device(), {{"memory", "400000"}});
  CompiledGraph f = pair_program(s);
  expect_pair(f, 2);
  Graph g("large");
  g.set_outputs({g.input("x", f32({200000})) * 2.0});
  CompiledGraph large = s.compile(std::move(g));
  const std::string text = error_text([&] { (void)large.run({{"x", std::vector<float>(200000, 1)}}); });
  CHECK(contains(text, "out of memory"));
  CHECK(contains(text, concat_text("device ", test::test_device_name(), " has no memory for 800000 bytes")));
  CHECK(contains(text, "the limit is 400000"));
  CHECK(contains(text, "for weights"));
  expect_pair(f, 3);
  // More than any buffer may have.
  OpenDevice& device = *s.open_device();
  CHECK(contains(error_text([&] { (void)device.allocate(std::size_t{1} << 50, BufferUse::Values); }), "the limit is"));
}

TEST_CASE("wgpu: the option of memory is checked") {
  if (!wgpu_here()) return;
  CHECK(contains(error_text([&] { Session s(test_device(), {{"memory", "lots"}}); }), "it is not a number of bytes"));
  CHECK(contains(error_text([&] { Session s(test_device(), {{"memry", "1"}}); }), "did you mean 'memory'"));
}

TEST_CASE("wgpu: more groups than one dimension of a launch has") {
  if (!wgpu_here()) return;
  constexpr std::int64_t n = 17 * 1024 * 1024 + 3;
  Graph g("tall");
  g.set_outputs({g.input("x", Shape({n}, DType::F32)) + 1.0});
  CompiledGraph f = Session(test_device()).compile(std::move(g));
  REQUIRE(test::host_part(f).empty());
  const auto code = backend_for(test_device())->compile_lir(f.compile_result().lir, {});
  CHECK(contains(code->code(), "num_workgroups"));  // it asks for both dimensions
  std::vector<float> x(n), y(n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1024);
  const TensorView in{x.data(), DType::F32, {}, x.size() * 4};
  const MutableTensorView out{y.data(), DType::F32, {}, y.size() * 4};
  f.run_into({&in, 1}, {&out, 1});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) wrong += y[i] != x[i] + 1;
  CHECK(wrong == 0);
}

TEST_CASE("wgpu: a value that no kernel can be given goes to the host, by name") {
  if (!wgpu_here()) return;
  const Session s(test_device());
  const std::size_t most = s.target()->limits().max_buffer_bytes;
  if (most > std::size_t{1} << 28) return;  // nothing is built that large here
  const auto n = static_cast<std::int64_t>(most / 4 + 64);
  Graph g("wide");
  Expr x = g.input("x", Shape({n}, DType::F32));
  g.set_outputs({g.narrow(x, 0, n - 3, 3) + 1.0, g.sum(x, {0})});
  CompiledGraph f = s.compile(std::move(g));
  CHECK(contains(test::host_part(f), "more bytes than a kernel of the device can bind"));
  std::vector<float> values(static_cast<std::size_t>(n), 0);
  values[values.size() - 2] = 5;
  const TensorView in{values.data(), DType::F32, {}, values.size() * 4};
  std::vector<float> end(3), sum(1);
  const MutableTensorView out[] = {{end.data(), DType::F32, {}, 12}, {sum.data(), DType::F32, {}, 4}};
  f.run_into({&in, 1}, out);
  CHECK(end == std::vector<float>{1, 6, 1});
  CHECK(sum[0] == 5);
}

TEST_CASE("wgpu: values without bytes, of one byte, and off the granule") {
  if (!wgpu_here()) return;
  for (std::int64_t n : {0, 1, 2, 3, 5, 7}) {
    Graph g("bytes");
    Expr x = g.input("x", f32({n})), b = g.input("b", Shape({n}, DType::Bool));
    g.set_outputs({x + x, b, g.abs(x)});
    CompiledGraph f = Session(test_device()).compile(std::move(g));
    const std::vector<Tensor> out =
        f.run_typed({{"x", Tensor::full(f32({n}), -2)}, {"b", Tensor::full(Shape({n}, DType::Bool), 1)}});
    for (std::int64_t i = 0; i < n; ++i) {
      CHECK(out[0].at(static_cast<std::size_t>(i)) == -4);
      CHECK(out[1].at(static_cast<std::size_t>(i)) == 1);
      CHECK(out[2].at(static_cast<std::size_t>(i)) == 2);
    }
  }
}

TEST_CASE("wgpu: device tensors go from run to run and to the host; those of others are refused by name") {
  if (!wgpu_here()) return;
  const Session s(test_device());
  Graph g("next");
  g.set_outputs({g.input("x", f32({6})) * 2.0});
  CompiledGraph f = s.compile(std::move(g));
  Tensor y = Tensor::full(f32({6}), 1);
  for (int i = 0; i < 5; ++i) y = f.run_device({{"x", y}})[0];
  CHECK(y.device() == DeviceId(test_device()));
  CHECK(y.to_host().to_f32() == std::vector<float>(6, 32));
  CHECK(contains(error_text([&] { (void)to_dlpack(y); }), test::test_device_name()));
  const Session limited(test_device(), {{"memory", "100000000"}});
  const Tensor other = value_on(*limited.open_device(), Tensor::full(f32({6}), 1));
  CHECK(contains(error_text([&] { (void)f.run_device({{"x", other}}); }), "opened"));
}

TEST_CASE("wgpu: one tensor for two inputs of a launch, and a donated one that a launch reads and writes") {
  if (!wgpu_here()) return;
  const Session s(test_device());
  const auto there = [](float v) { return to(Tensor::full(f32({6}), v), test_device()); };
  Graph g("twice");
  const Expr x = g.input("x", f32({6})), y = g.input("y", f32({6}));
  g.set_outputs({x * y + x, g.sum(x - y, {0})});
  CompileOptions options;
  options.donate = {{"x", 0}};
  CompiledGraph f = s.compile_with(std::move(g), options);
  const Tensor three = there(3), five = there(5);
  for (int i = 0; i < 2; ++i) {
    CHECK(f.run_device({{"x", three}, {"y", three}})[0].to_host().to_f32() == std::vector<float>(6, 12));
    CHECK(f.run_device({{"x", three}, {"y", five}})[1].to_host().to_f32() == std::vector<float>{-12});
    NamedTensors given{{"x", there(2)}, {"y", five}};
    CHECK(f.run_device(std::move(given))[0].to_host().to_f32() == std::vector<float>(6, 12));
    CHECK(three.to_host().to_f32() == std::vector<float>(6, 3));
  }
}

TEST_CASE("wgpu: thousands of runs whose results nobody waits for, then somebody for the last") {
  if (!wgpu_here()) return;
  Graph g("count");
  const Expr n = g.state("n", Tensor::zeros(f32({2})));
  g.set_state("n", n + g.input("x", f32({2})));
  g.set_outputs({n});
  CompiledGraph f = Session(test_device()).compile(std::move(g));
  constexpr int kRuns = 5000;
  for (int i = 0; i < kRuns; ++i) f.commit_no_wait({{"x", {1, 2}}});
  const std::span<const Slot> slots = f.sync_pending();
  std::vector<float> last(2);
  std::memcpy(last.data(), f.arena_ptr() + slots[0].offset, 8);
  CHECK(last == std::vector<float>{kRuns - 1, 2 * (kRuns - 1)});
  CHECK(f.read_state("n").to_f32() == std::vector<float>{kRuns, 2 * kRuns});
}

TEST_CASE("wgpu: profiles have a time for every step") {
  if (!wgpu_here()) return;
  CompiledGraph f = pair_program(Session(test_device()));
  const std::vector<float> x(15, 2);
  const TensorView in{x.data(), DType::F32, {}, 60};
  const std::vector<NodeTime> times = f.profile({&in, 1});
  CHECK(times.size() == f.compile_result().lir.plan.schedule.size());
  expect_pair(f, 2);
}

TEST_CASE("wgpu: threads and sessions share one device") {
  if (!wgpu_here()) return;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      try {
        CompiledGraph f = pair_program(Session(test_device()));
        for (int i = 0; i < 50; ++i) {
          const auto x = static_cast<float>(t * 100 + i);
          const auto out = f.run({{"x", std::vector<float>(15, x)}});
          for (std::size_t k = 0; k < 15; ++k)
            wrong += out[0][k] != x + static_cast<float>(k % 5 + 1) || out[1][k] != x * x;
        }
      } catch (const Error&) {
        ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("wgpu: a kernel that does not compile is told with its text and node") {
  if (!wgpu_here()) return;
  const Session s(test_device());
  wgpu::Pipelines& pipelines = wgpu_device(s).pipelines();
  const wgpu::KernelText bad[] = {{"bad", "@compute @workgroup_size(1) fn main() { nonsense(); }", "node %3", 0}};
  for (int i = 0; i < 2; ++i) {
    const std::string text = error_text([&] { (void)pipelines.get(bad); });
    CHECK(contains(text, "kernel bad does not compile"));
    CHECK(contains(text, "nonsense"));
    CHECK(contains(text, "node %3"));
  }
  CompiledGraph f = pair_program(s);
  expect_pair(f, 2);
}

// Of MiniLM's shapes, with two of its six layers and fewer words: all that differs of the others is how often.
TEST_CASE("device: a sentence encoder, 8 by 32: runs allocate nothing, and each is one submission") {
  if (!test::generated_kernels_here()) return;
  BertConfig config;
  config.vocab_size = 1000, config.hidden_size = 384, config.num_layers = 2, config.num_heads = 12;
  config.intermediate_size = 1536, config.max_positions = 512, config.type_vocab_size = 2;
  config.layer_norm_eps = 1e-12;
  BertGraphOptions options;
  options.batch = 8, options.sequence = 32;
  options.pooling = Pooling::Mean, options.normalize = true;
  const Session session(test::test_device());
  CompiledGraph f = session.compile(build_sentence_encoder(config, options));
  REQUIRE(test::host_part(f).empty());
  for (const IoInfo& p : f.params()) f.set_param(p.name, Tensor::full(p.shape, 0.01));
  std::vector<std::int32_t> ids(8 * 32, 7);
  std::vector<float> mask(ids.size(), 1), out(8 * 384);
  const TensorView views[] = {{ids.data(), DType::I32, {}, ids.size() * 4},
                              {mask.data(), DType::F32, {}, mask.size() * 4}};
  const MutableTensorView outs[] = {{out.data(), DType::F32, {}, out.size() * 4}};
  const wgpu::Gpu& gpu = *dynamic_cast<wgpu::WgpuDevice&>(*session.open_device()).gpu();
  for (int i = 0; i < 2; ++i) f.run_into(views, outs);
  const long before = test::num_allocations();
  const std::uint64_t submissions = gpu.submissions();
  for (int i = 0; i < 3; ++i) f.run_into(views, outs);
  CHECK(test::num_allocations() - before == 0);
  CHECK(gpu.submissions() - submissions == 3 * 2);  // the run, and what brings its results
  float square = 0;
  for (int i = 0; i < 384; ++i) square += out[static_cast<std::size_t>(i)] * out[static_cast<std::size_t>(i)];
  CHECK(square == doctest::Approx(1));
  NamedTensors there;
  for (const IoInfo& in : f.inputs()) there.emplace(in.name, to(Tensor::full(in.shape, 1), test::test_device()));
  f.run_device(there);
  const std::uint64_t alone = gpu.submissions();
  const std::vector<Tensor> kept = f.run_device(there);
  CHECK(gpu.submissions() - alone == 1);
}

}  // namespace rlx
