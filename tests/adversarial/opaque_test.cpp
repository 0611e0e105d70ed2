// Behaviour of opaque devices only: buffers that runs replace or consume, and no bytes of them.
#include <doctest/doctest.h>

#include "rlx/device/device.h"
#include "rlx/ir/inspect.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/session.h"
#include "tests/adversarial/adversarial_device.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::contains;
using test::error_text;

using test::f32;

test::AdversarialOptions opaque() { return test::adversarial_modes()[1]; }

// total += x. Outputs: the total before, 2 x.
Graph doubler() {
  Graph g("doubler");
  Expr x = g.input("x", f32({4}));
  Expr total = g.state("total", Tensor::zeros(f32({4})));
  g.set_state("total", total + x);
  g.set_outputs({total, x * 2.0});
  return g;
}

}  // namespace

TEST_CASE("adversarial: a donated input that nobody else holds goes to the run, another stays") {
  AdversarialScope adversary(opaque());
  CompileOptions options;
  options.donate = {{"x", 1}};
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(doubler(), options);
  CHECK(f.compile_result().lir.plan.opaque);
  // uploaded for this run, so nobody else holds it
  CHECK(f.run({{"x", {1, 2, 3, 4}}})[1] == std::vector<float>{2, 4, 6, 8});
  CHECK(adversary->counts().taken == 1);
  NamedTensors in;
  in.emplace("x", to(Tensor::full(f32({4}), 3), AdversarialScope::kDevice));
  const Tensor kept = in.at("x");
  (void)f.run_device(std::move(in));  // NOLINT(use-after-move): `kept` holds it
  CHECK(adversary->counts().taken == 1);
  CHECK(kept.to_host().to_f32() == std::vector<float>(4, 3));
  NamedTensors given;
  given.emplace("x", to(Tensor::full(f32({4}), 3), AdversarialScope::kDevice));
  CHECK(f.run_device(std::move(given))[1].to_host().to_f32() == std::vector<float>(4, 6));
  CHECK(adversary->counts().taken == 2);
}

TEST_CASE("adversarial: states of a clone are the same values until one of them runs") {
  AdversarialScope adversary(opaque());
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(doubler());
  f.run({{"x", {1, 1, 1, 1}}});
  const auto before = adversary->counts();
  CompiledGraph c = f.clone();
  CHECK(adversary->counts().uploads == before.uploads);
  f.run({{"x", {1, 1, 1, 1}}});
  CHECK(c.read_state("total").to_f32() == std::vector<float>(4, 1));
  CHECK(f.read_state("total").to_f32() == std::vector<float>(4, 2));
}

TEST_CASE("adversarial: a profile has one entry for the whole graph; reports say who plans the memory") {
  AdversarialScope adversary(opaque());
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(doubler());
  const std::vector<float> x(4, 1);
  const TensorView view{x.data(), DType::F32, {}, 16};
  const std::vector<NodeTime> times = f.profile({&view, 1});
  REQUIRE(times.size() == 1);
  CHECK(times[0].op == "the whole graph");
  CHECK(times[0].kernel == "adversarial (opaque)");
  CHECK(times[0].ns == 1);
  CHECK(times[0].cost.flops > 0);
  CHECK(contains(inspect_lir(f.compile_result().lir), "the device plans its memory"));
  CHECK(f.arena_bytes() > 0);  // the results of run_slots
}

TEST_CASE("adversarial: memory of whole values beyond the limit names device, bytes and what is in use") {
  test::AdversarialOptions small = opaque();
  small.memory_bytes = std::size_t{1} << 20;
  AdversarialScope adversary(small);
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(doubler());
  f.run({{"x", {1, 1, 1, 1}}});
  Graph g("large");
  g.set_outputs({g.exp(g.input("x", f32({1 << 19})))});
  CompiledGraph large = Session(AdversarialScope::kDevice).compile(std::move(g));
  const std::string text = error_text([&] { large.run({{"x", std::vector<float>(1 << 19)}}); });
  CHECK_MESSAGE(contains(text, "device directx has no memory for 2097152 bytes of slots"), text);
  CHECK_MESSAGE(contains(text, "plug-in 'adversarial' (a table of this program): put failed"), text);
  CHECK(f.run({{"x", {1, 1, 1, 1}}})[0] == std::vector<float>(4, 1));
}

TEST_CASE("adversarial: options at open are checked by who takes them") {
  AdversarialScope adversary(opaque());
  CHECK(contains(error_text([] {
                   Session(AdversarialScope::kDevice, {{"memori", "1"}});
                 }),
                 "takes no option 'memori'"));
  CHECK(contains(error_text([] { Session(AdversarialScope::kDevice, {{"memori", "1"}}); }), "did you mean 'memory'"));
  CHECK(contains(error_text([] {
                   Session(AdversarialScope::kDevice, {{"memory", "much"}});
                 }),
                 "option memory = 'much' is no number of bytes"));
  const Session small(AdversarialScope::kDevice, {{"memory", "4096"}}), other(AdversarialScope::kDevice);
  CHECK(small.open_device()->memory().total == 4096);
  CHECK(other.open_device() != small.open_device());
  CompiledGraph f = small.compile(doubler()), h = other.compile(doubler());
  const std::string apart = error_text([&] { f.share_state_from(h); });
  CHECK_MESSAGE(contains(apart,
                         "runs on directx (backend 'adversarial', memory=4096), graph 'doubler' on directx (backend "
                         "'adversarial'): they cannot share states"),
                apart);
  // Options that affect only compiles open no device of their own.
  CHECK(Session(AdversarialScope::kDevice, {{"mode", "fast"}}).open_device() == other.open_device());
  // The same for the cpu.
  CHECK(Session(Device::Cpu, {{"threads", "1"}}).target()->threads() == 1);
  CHECK(contains(error_text([] { Session(Device::Cpu, {{"threads", "many"}}); }), "option threads = 'many'"));
  CHECK(contains(error_text([] { Session(Device::Cpu, {{"thread", "1"}}); }), "did you mean 'threads'"));
}

// Each program has its own stream, so only events order them.
TEST_CASE("adversarial: what a run may write over it writes behind runs of other programs that read it") {
  const NamedTensors ones{{"x", Tensor::full(f32({4}), 1)}};
  const auto adds = [](const Expr& from, const Expr& each) {
    Expr sum = from;
    for (int i = 0; i < 10; ++i) sum = sum + each;
    return sum;
  };
  for (const std::uint64_t seed : test::seeds(30)) {
    CAPTURE(seed);
    test::AdversarialOptions mode = opaque();
    mode.seed = seed;
    const AdversarialScope adversary(mode);
    const Session session(AdversarialScope::kDevice);
    Graph counter("counter");
    const Expr next = adds(counter.state("s", Tensor::zeros(f32({4}))), counter.input("x", f32({4})));
    counter.set_state("s", next);
    counter.set_outputs({next});
    CompiledGraph f = session.compile(std::move(counter));
    f.run_typed(ones);
    CompiledGraph clone = f.clone();  // holds the same buffers
    f.commit_no_wait(ones);
    clone.commit_no_wait({{"x", Tensor::full(f32({4}), 2)}});
    CHECK(f.read_state("s").at(0) == 20);
    CHECK(clone.read_state("s").at(0) == 30);
    // A tensor is donated to one program while another still has to read it.
    const auto compiled = [&](bool donates) {
      Graph g("adding");
      const Expr x = g.input("x", f32({4}));
      g.set_outputs({adds(x, g.constant(Tensor::full(f32({4}), 1)))});
      CompileOptions options;
      if (donates) options.donate = {{"x", 0}};
      return session.compile_with(std::move(g), options);
    };
    CompiledGraph reads = compiled(false), takes = compiled(true);
    NamedTensors given{{"x", to(Tensor::zeros(f32({4})), AdversarialScope::kDevice)}};
    const std::vector<Tensor> read = reads.run_device(given), taken = takes.run_device(std::move(given));
    CHECK(read[0].to_host().at(1) == 10);
    CHECK(taken[0].to_host().at(1) == 10);
    CHECK(adversary->counts().taken >= 1);
  }
}

}  // namespace rlx
