// What programs need of a device beside its ops: states that stay there, tensors that go from run to run, runs that
// nobody waits for, programs that share; a decode loop, a training step, loops and branches.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "rlx/device/device.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/dlpack.h"
#include "tests/devices/test_device.h"
#include "tests/support/adam_step.h"
#include "tests/support/control_graphs.h"
#include "tests/support/counter_program.h"
#include "tests/support/decode_loop.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::contains;
using test::device_here;
using test::error_text;
using test::f32;

}  // namespace

TEST_CASE("device: every kind of run, states between runs, weights that change, clones") {
  if (device_here()) test::check_kinds_of_runs(Session(test::test_device()));
}

TEST_CASE("device: runs that nobody waits for yet, in order, and drained") {
  if (device_here()) test::check_runs_in_flight(Session(test::test_device()));
}

TEST_CASE("device: tensors stay there from run to run, and come to the host when asked") {
  if (device_here()) test::check_device_tensors(Session(test::test_device()));
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
  if (device_here()) test::check_shared_states(Session(test::test_device()));
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
