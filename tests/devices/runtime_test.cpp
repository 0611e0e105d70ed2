// What programs need of a device beside its ops: states that stay there, tensors that go from run to run, runs that
// nobody waits for, programs that share; a decode loop, a training step, loops and branches.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "rlx/driver/device.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/dlpack.h"
#include "tests/devices/test_device.h"
#include "tests/support/adam_step.h"
#include "tests/support/control_graphs.h"
#include "tests/support/decode_loop.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::contains;
using test::device_here;
using test::error_text;
using test::f32;

// count += 1; total += x; out: total before, x * w
CompiledGraph counter() {
  Graph g("counter");
  Expr x = g.input("x", f32({4})), w = g.param("w", f32({4}));
  Expr total = g.state("total", Tensor::zeros(f32({4}))), count = g.state("count", Tensor::zeros(f32({})));
  g.set_state("count", count + 1.0);
  g.set_state("total", total + x);
  g.set_outputs({total, x * w});
  CompiledGraph f = Session(test::test_device()).compile(std::move(g));
  f.set_param("w", std::vector<float>(4, 2));
  return f;
}

const std::vector<float> kOnes(4, 1), kTwos(4, 2);

std::vector<float> at(const CompiledGraph& f, const Slot& s) {
  std::vector<float> out(static_cast<std::size_t>(s.count));
  std::memcpy(out.data(), f.arena_ptr() + s.offset, out.size() * sizeof(float));
  return out;
}

}  // namespace

TEST_CASE("device: every kind of run, states between runs, weights that change, clones") {
  if (!device_here()) return;
  CompiledGraph f = counter();
  CHECK(f.device() == test::test_device());
  CHECK(f.run({{"x", kOnes}}) == std::vector<std::vector<float>>{{0, 0, 0, 0}, kTwos});
  const TensorView x{kTwos.data(), DType::F32, {}, 16};
  const std::span<const Slot> slots = f.run_slots({&x, 1});
  CHECK(at(f, slots[0]) == kOnes);
  CHECK(at(f, slots[1]) == std::vector<float>(4, 4));
  std::vector<float> a(4), b(4);
  const MutableTensorView out[] = {{a.data(), DType::F32, {}, 16}, {b.data(), DType::F32, {}, 16}};
  f.run_into({&x, 1}, out);
  CHECK(a == std::vector<float>(4, 3));
  const std::vector<NodeTime> times = f.profile({&x, 1});
  REQUIRE(!times.empty());
  CHECK(times[0].ns > 0);
  CHECK(f.read_state("count").at(0) == 4);
  CompiledGraph c = f.clone();
  f.set_param("w", {1, 2, 3, 4});
  CHECK(f.run({{"x", kTwos}})[1] == std::vector<float>{2, 4, 6, 8});
  CHECK(c.run({{"x", kTwos}})[1] == std::vector<float>(4, 4));
  CHECK(f.read_state("total").to_f32() == std::vector<float>(4, 9));
  f.write_state("total", Tensor::full(f32({4}), 7));
  CHECK(f.run({{"x", kOnes}})[0] == std::vector<float>(4, 7));
  f.reset();
  CHECK(f.run({{"x", kOnes}})[0] == std::vector<float>(4, 0));
  CHECK(c.read_state("count").at(0) == 5);
}

TEST_CASE("device: runs that nobody waits for yet, in order, and drained") {
  if (!device_here()) return;
  CompiledGraph f = counter();
  for (int i = 0; i < 20; ++i) f.commit_no_wait({{"x", kOnes}});
  const std::span<const Slot> slots = f.sync_pending();
  REQUIRE(slots.size() == 2);
  CHECK(at(f, slots[0]) == std::vector<float>(4, 19));
  f.commit_no_wait({{"x", kTwos}});
  drain_device(test::test_device());
  CHECK(at(f, f.sync_pending()[0]) == std::vector<float>(4, 20));
  const auto all = f.run_pipelined({{{"x", kOnes}}, {{"x", kTwos}}, {{"x", kOnes}}});
  REQUIRE(all.size() == 3);
  CHECK(all[2][0] == std::vector<float>(4, 25));
  f.commit_no_wait({{"x", kOnes}});
  { const CompiledGraph gone = std::move(f); }
  drain_device(test::test_device());
}

TEST_CASE("device: tensors stay there from run to run, and come to the host when asked") {
  if (!device_here()) return;
  CompiledGraph f = counter();
  std::vector<Tensor> out = f.run_device({{"x", Tensor::full(f32({4}), 3)}});
  CHECK(out[1].device() == DeviceId(test::test_device()));
  for (int i = 0; i < 3; ++i) out = f.run_device({{"x", out[1]}});  // doubles it
  CHECK(out[1].to_host().to_f32() == std::vector<float>(4, 48));
  CHECK(out[0].reshaped({2, 2}).to_host().to_f32() == std::vector<float>(4, 3 + 6 + 12));
  CHECK(f.run_typed({{"x", out[1]}})[1].to_f32() == std::vector<float>(4, 96));
  CHECK(to(out[1], Device::Cpu).to_f32() == std::vector<float>(4, 48));
  CompiledGraph host = Session().compile([] {
    Graph g("host");
    g.set_outputs({g.input("x", f32({4})) * 2.0});
    return g;
  }());
  CHECK(contains(error_text([&] { host.run_typed({{"x", out[1]}}); }), "copy it there with rlx::to"));
  f.set_input("x", out[1]);
  CHECK(f.run()[1] == std::vector<float>(4, 96));
}

TEST_CASE("device: values of every dtype arrive as they left") {
  if (!device_here()) return;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    CAPTURE(std::string(dtype_name(dtype)));
    for (const Dims& dims : {Dims{}, Dims{6}, Dims{2, 3, 4}, Dims{3, 0}}) {
      const Shape shape(dims, dtype);
      Tensor value = Tensor::zeros(shape);
      for (std::size_t b = 0; b < value.size_bytes(); ++b)
        value.mutable_data()[b] = static_cast<std::byte>(dtype == DType::Bool ? b % 2 : 37 * b + 11);
      const Tensor back = to(value, test::test_device()).to_host();
      CHECK(back.shape() == shape);
      CHECK((value.size_bytes() == 0 || std::memcmp(back.data(), value.data(), value.size_bytes()) == 0));
    }
  }
}

TEST_CASE("device: two programs that share states are ordered, each on its stream") {
  if (!device_here()) return;
  CompiledGraph a = counter(), b = counter();
  CHECK(b.share_state_from(a) == 2);
  for (int i = 0; i < 30; ++i) {
    a.commit_no_wait({{"x", kOnes}});
    b.commit_no_wait({{"x", kTwos}});
  }
  CHECK(a.read_state("total").to_f32() == std::vector<float>(4, 90));
  CHECK(b.read_state("count").at(0) == 60);
  b.reset();
  CHECK(a.run({{"x", kOnes}})[0] == std::vector<float>(4, 0));
  a.write_state("total", Tensor::full(f32({4}), 7));
  CHECK(b.run({{"x", kOnes}})[0] == std::vector<float>(4, 7));
}

TEST_CASE("device: a donated tensor that somebody holds stays, another may go") {
  if (!device_here()) return;
  Graph g("adds");
  const Expr x = g.input("x", f32({4}));
  g.set_outputs({x + x});
  CompileOptions options;
  options.donate = {{"x", 0}};
  CompiledGraph f = Session(test::test_device()).compile_with(std::move(g), options);
  for (int i = 0; i < 3; ++i) {
    NamedTensors in{{"x", to(Tensor::full(f32({4}), 3), test::test_device())}};
    const Tensor kept = in.at("x");
    CHECK(f.run_device(std::move(in))[0].to_host().to_f32() == std::vector<float>(4, 6));
    CHECK(kept.to_host().to_f32() == std::vector<float>(4, 3));
    NamedTensors given{{"x", to(Tensor::full(f32({4}), 5), test::test_device())}};
    CHECK(f.run_device(std::move(given))[0].to_host().to_f32() == std::vector<float>(4, 10));
  }
}

TEST_CASE("device: a decode loop over a cache of full extent, by kv_len") {
  if (!device_here()) return;
  using test::DecodeLoop;
  CompiledGraph f = Session(test::test_device()).compile(DecodeLoop::graph());
  CHECK(test::host_part(f).empty());
  CHECK(f.compile_result().lir.plan.state_copies.empty());
  for (std::int64_t position = 0; position < 12; ++position) {
    const NamedTensors in{
        {"token", Tensor::of<float>({DecodeLoop::kBatch, 1, DecodeLoop::kWidth}, DecodeLoop::token(position))},
        {"position", Tensor::scalar(DType::I32, static_cast<double>(position))}};
    const Tensor y = f.run_typed(in)[0];
    const std::vector<double> want = DecodeLoop::expected(position);
    REQUIRE(y.num_elements() == static_cast<std::int64_t>(want.size()));
    double worst = 0;
    for (std::int64_t i = 0; i < y.num_elements(); ++i) {
      const double gap = std::fabs(y.at(i) - want[static_cast<std::size_t>(i)]);
      worst = gap <= worst ? worst : gap;  // NaN is worst of all
    }
    CHECK_MESSAGE(worst <= 1e-5, "position ", position, ": ", worst);
  }
}

TEST_CASE("device: training steps with states, as the reference makes them") {
  if (!device_here()) return;
  CompiledGraph truth = Session::on_backend("reference").compile(test::adam_step(64));
  CompiledGraph f = Session(test::test_device()).compile(test::adam_step(64));
  CHECK(test::host_part(f).empty());
  const NamedTensors values = test::adam_inputs();
  double before = 0;
  for (int step = 0; step < 4; ++step) {
    const double want = truth.run_typed(values)[0].at(0), got = f.run_typed(values)[0].at(0);
    CHECK(got == doctest::Approx(want).epsilon(1e-4));
    if (step != 0) CHECK(got < before);
    before = got;
  }
  for (const std::string& name : test::adam_states()) {
    CAPTURE(name);
    const Tensor got = f.read_state(name), want = truth.read_state(name);
    std::int64_t wrong = 0;
    for (std::int64_t k = 0; k < want.num_elements(); ++k)
      wrong += !(std::fabs(got.at(k) - want.at(k)) <= 1e-3 * std::fabs(want.at(k)) + 1e-3);
    CHECK(wrong == 0);
  }
}

TEST_CASE("device: a Scan, a While with a branch and a loop in it, carries that change places") {
  if (!device_here()) return;
  const Session session(test::test_device());
  for (const bool reverse : {false, true}) {
    const Graph g = test::cell(6, 3, 8, reverse);
    CompiledGraph f = session.compile(Graph(g));
    test::check_runs(f, g, test::drawn(g));
  }
  const Graph places = test::changing_places();
  CompiledGraph f = session.compile(Graph(places));
  test::check_runs(f, places, test::drawn(places));
  const Graph nested = test::nested();
  CompiledGraph loops = session.compile(Graph(nested));
  CHECK(test::host_part(loops).empty());
  for (const double trips : {0.0, 1.0, 5.0, 9.0}) {
    CAPTURE(trips);
    NamedTensors values = test::drawn(nested);
    values.at("n") = Tensor::scalar(DType::I32, trips);
    test::check_runs(loops, nested, values);
  }
}

TEST_CASE("device: what DLPack has no name for goes by the host") {
  if (!device_here()) return;
  const Tensor there = to(Tensor::full(f32({4}), 3), test::test_device());
  try {
    const Tensor back = adopt(to_dlpack(there));
    CHECK(back.to_host().to_f32() == std::vector<float>(4, 3));
  } catch (const Error& e) {
    CHECK_MESSAGE(contains(e.what(), "copy it to the host first"), e.what());
  }
  const Tensor host = adopt(to_dlpack(there.to_host()));
  CHECK(to(host, test::test_device()).to_host().to_f32() == std::vector<float>(4, 3));
}

}  // namespace rlx
