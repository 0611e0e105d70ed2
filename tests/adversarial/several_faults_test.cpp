// Failures of programs over several devices, and shared states of programs that keep them on different devices.
#include <doctest/doctest.h>

#include <cstring>

#include "rlx/device/registry.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/session.h"
#include "tests/adversarial/adversarial_device.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/samples.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::contains;
using test::error_text;
using test::f32;

const DeviceId kSecond{AdversarialScope::kDevice, 1};

// A state that accumulates the input, under the label "c".
Graph counting() {
  Graph g("counting");
  const Expr x = g.input("x", f32({4}));
  const auto label = g.scope("c");
  const Expr next = g.state("s", Tensor::zeros(f32({4}))) + x;
  g.set_state("s", next);
  g.set_outputs({next * 2.0});
  return g;
}

// Three layers with a state each, labelled l0, l1 and l2.
Graph layers() {
  Graph g("layers");
  const Expr x = g.input("x", f32({4, 4}));
  Expr y = x;
  for (int i = 0; i < 3; ++i) {
    const auto label = g.scope(concat_text("l", i));
    const std::string name = concat_text("s", i);
    y = g.tanh(g.matmul(y, g.param(concat_text("w", i), f32({4, 4})))) + y;
    const Expr next = g.state(name, Tensor::zeros(f32({4, 4}))) + y;
    g.set_state(name, next);
    y = y + next * 0.5;
  }
  g.set_outputs({y});
  return g;
}

CompiledGraph placed(Graph g, const std::string& label, DeviceId device, bool keep = false) {
  CompileOptions options;
  if (!label.empty()) options.placement = {{label, device}};
  for (NodeId s : g.leaves(OpKind::State))
    if (keep) options.on_failure[g.leaf_name(s)] = OnFailure::Keep;
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(std::move(g), options);
  for (const IoInfo& p : f.params()) f.set_param(p.name, Tensor::full(p.shape, 0.25));
  return f;
}

NamedTensors ones(const Dims& dims) { return {{"x", Tensor::full(f32(dims), 1)}}; }

TEST_CASE("faults on several devices: programs that place a shared state differently see each other's values") {
  // The state moves back and forth, so its buffer may get the address of an older one.
  for (const test::AdversarialOptions& mode : test::adversarial_modes())
    for (const DeviceId there : {kSecond, DeviceId(Device::Cpu)})
      for (const bool read : {false, true}) {
        if (mode.opaque && there.kind == Device::Cpu) continue;
        INFO(test::mode_name(mode), ", on ", device_text(there));
        const AdversarialScope adversary(mode);
        CompiledGraph a = placed(counting(), "c", there), b = placed(counting(), "", {});
        b.share_state_from(a);
        for (int i = 0; i < 6; ++i) {
          CHECK(a.run_typed(ones({4}))[0].at(0) == 2 * (2 * i + 1));
          if (read) CHECK(a.read_state("s").at(3) == 2 * i + 1);
          CHECK(b.run_typed(ones({4}))[0].at(0) == 2 * (2 * i + 2));
          if (read) CHECK(b.read_state("s").at(3) == 2 * i + 2);
        }
      }
}

TEST_CASE("faults on several devices: a run behind another program's that failed fails too, wherever their state is") {
  for (test::AdversarialOptions mode : test::adversarial_modes())
    for (const bool apart : {false, true})
      for (const std::uint64_t seed : test::seeds(40)) {
        INFO(test::mode_name(mode), ", apart ", apart, ", seed ", seed);
        mode.seed = seed;
        const AdversarialScope adversary(mode);
        CompiledGraph a = placed(counting(), apart ? "c" : "", kSecond), b = placed(counting(), "", {});
        b.share_state_from(a);
        b.write_state("s", Tensor::full(f32({4}), 10));
        adversary->fail_step(0, 0, "boom");
        (void)error_text([&] { b.commit_no_wait(NamedTensors{{"x", Tensor::full(f32({4}), 100)}}); });
        double y = 0;
        const std::string behind = error_text([&] { y = a.run_typed(ones({4}))[0].at(0); });
        CAPTURE(y);
        CHECK(!behind.empty());
        (void)error_text([&] { b.sync_pending(); });
        for (int i = 0; i < 2; ++i)  // the first read may report an unreported failure
          for (const CompiledGraph* f : {&a, &b}) CHECK(!error_text([&] { y = f->read_state("s").at(0); }).empty());
        a.reset();
        b.reset();
        CHECK(a.run_typed(ones({4}))[0].at(0) == 2);
        CHECK(b.run_typed(ones({4}))[0].at(0) == 4);
      }
}

TEST_CASE("faults on several devices: states that are kept have the value before the run that failed") {
  test::AdversarialOptions mode;
  mode.opaque = true;  // arenas are written in place, where only the rows outside the run's are kept
  for (const std::uint64_t seed : test::seeds(12))
    for (int step : {0, 1, 3, 4}) {
      mode.seed = seed;
      CAPTURE(seed);
      CAPTURE(step);
      const AdversarialScope adversary(mode);
      CompiledGraph f = placed(layers(), "l1", kSecond, true);
      adversary->fail_step(0, step, "boom");
      const std::string why = error_text([&] { f.run_typed(ones({4, 4})); });
      if (why.empty()) continue;  // the run has fewer steps
      CAPTURE(why);
      for (const char* name : {"s0", "s1", "s2"}) CHECK(f.read_state(name).identical(Tensor::zeros(f32({4, 4}))));
    }
}

TEST_CASE("faults on several devices: a failure is told once, and after a reset the program works") {
  for (test::AdversarialOptions mode : test::adversarial_modes())
    for (int step = 0; step < 10; ++step) {
      INFO(test::mode_name(mode), ", step ", step);
      mode.seed = static_cast<std::uint64_t>(step) + 1;
      const AdversarialScope adversary(mode);
      CompiledGraph f = placed(layers(), "l1", kSecond);
      const Tensor want = f.run_typed(ones({4, 4}))[0];
      adversary->fail_step(0, step, "boom");
      bool failed = false;
      const auto fails = [&](auto&& what) { failed = !error_text(what).empty() || failed; };
      for (int i = 0; i < 3; ++i) fails([&] { f.commit_no_wait(ones({4, 4})); });
      fails([&] { f.sync_pending(); });
      CHECK(failed);
      f.reset();
      CHECK(f.run_typed(ones({4, 4}))[0].identical(want));
    }
}

TEST_CASE("faults on several devices: the loss of one device is not that of the other") {
  for (test::AdversarialOptions mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    mode.seed = 5;
    const AdversarialScope adversary(mode);
    Graph plain("plain");
    plain.set_outputs({plain.tanh(plain.input("x", f32({4})))});
    CompiledGraph f = placed(counting(), "c", kSecond),
                  h = Session(AdversarialScope::kDevice).compile(std::move(plain));
    f.run_typed(ones({4}));
    const Tensor want = h.run_typed(ones({4}))[0];
    adversary->lose(1);
    CHECK(contains(error_text([&] { f.run_typed(ones({4})); }), "was lost"));
    CHECK(h.run_typed(ones({4}))[0].identical(want));
    for (const auto& device : opened_devices(AdversarialScope::kDevice))
      CHECK(device->lost() == (device->id().ordinal == 1));
  }
}

// Two failures at once: the waiting stream has failed itself.
TEST_CASE("faults on several devices: a run that failed is over with what it waited for, on whichever device") {
  for (const bool peers : {false, true})
    for (const std::uint64_t seed : test::seeds(30)) {
      INFO("peers ", peers, ", seed ", seed);
      test::AdversarialOptions mode;
      mode.seed = seed;
      mode.peers = peers;
      const AdversarialScope adversary(mode);
      CompileOptions options;
      options.placement = {{"far", kSecond}};
      Graph g("far");
      const Expr x = g.input("x", f32({4})), w = g.param("w", f32({4}));
      {
        const auto label = g.scope("far");
        Expr next = g.state("s", Tensor::zeros(f32({4})));
        for (int i = 0; i < 80; ++i) next = next + w;
        g.set_state("s", next);
      }
      g.set_outputs({g.exp(g.exp(x))});
      CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(std::move(g), options);
      f.set_param("w", Tensor::full(f32({4}), 1));
      f.run_typed(ones({4}));
      Graph busy("busy");  // the second device has long work before the run
      Expr y = busy.input("x", f32({4}));
      for (int i = 0; i < 300; ++i) y = busy.exp(y * 0.5);
      busy.set_outputs({y});
      CompiledGraph load = Session(kSecond).compile(std::move(busy));
      load.run_typed(ones({4}));
      load.commit_no_wait(ones({4}));
      adversary->fail_step(0, 0, "boom");
      std::string told = error_text([&] { f.commit_no_wait(ones({4})); });
      f.write_state("s", Tensor::full(f32({4}), 7));
      told += error_text([&] { f.sync_pending(); });
      load.sync_pending();
      CHECK(f.read_state("s").identical(Tensor::full(f32({4}), 7)));
      CHECK_MESSAGE(contains(told, "boom"), told);
    }
}

TEST_CASE("faults on several devices: who reads a state behind a reader that failed has it before it is written anew") {
  for (const std::uint64_t seed : test::seeds(40)) {
    CAPTURE(seed);
    test::AdversarialOptions mode;
    mode.seed = seed;
    const AdversarialScope adversary(mode);
    const Session session(AdversarialScope::kDevice);
    const auto reading = [&] {
      Graph g("reading");
      const Expr x = g.input("x", f32({4})), s = g.state("s", Tensor::zeros(f32({4})));
      Expr y = s * x;
      for (int i = 0; i < 5; ++i) y = y + s;
      g.set_outputs({y});
      return session.compile(std::move(g));
    };
    Graph g("writing");
    const Expr x = g.input("x", f32({4}));
    g.set_state("s", g.state("s", Tensor::full(f32({4}), 1)) * 0.0 + x);
    g.set_outputs({x * 2.0});
    CompiledGraph writes = session.compile(std::move(g)), reads = reading(), fails = reading();
    reads.share_state_from(writes);
    fails.share_state_from(writes);
    reads.run_typed(ones({4}));
    fails.run_typed(ones({4}));
    adversary->fail_step(0, 0, "boom");
    bool submitted = false;
    std::string told = error_text([&] {
      fails.commit_no_wait(ones({4}));
      reads.commit_no_wait(ones({4}));
      submitted = true;
      fails.commit_no_wait(ones({4}));
    });
    told += error_text([&] { writes.commit_no_wait({{"x", Tensor::full(f32({4}), 50)}}); });
    if (submitted)
      told += error_text([&] {
        const std::span<const Slot> slots = reads.sync_pending();
        float first = 0;
        std::memcpy(&first, reads.arena_ptr() + slots[0].offset, sizeof first);
        CHECK(first == 6);
      });
    for (CompiledGraph* f : {&fails, &writes}) told += error_text([&] { f->sync_pending(); });
    CHECK_MESSAGE(contains(told, "boom"), told);
  }
}

}  // namespace
}  // namespace rlx
