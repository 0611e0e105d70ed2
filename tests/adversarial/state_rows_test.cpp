// Rows of states and params, and states after a failed run, on devices with memory of their own.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "rlx/runtime/session.h"
#include "tests/adversarial/adversarial_device.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::contains;
using test::error_text;

using test::f32;

// Row `at` of a cache becomes x.
Graph cache_step() {
  Graph g("cache");
  Expr x = g.input("x", f32({1, 3})), at = g.input("at", Shape({2}, DType::I32)), w = g.param("w", f32({8, 3}));
  Expr cache = g.state("cache", Tensor::zeros(f32({8, 3})));
  Expr flags = g.state("flags", Tensor::zeros(Shape({7, 3}, DType::Bool)));
  Expr next = g.dynamic_update_slice(cache, x, at);
  g.set_state("cache", next);
  g.set_state("flags", g.logical_not(flags));
  g.set_outputs({next + w});
  return g;
}

NamedTensors step(float value, std::int32_t row) {
  const std::int32_t at[2] = {row, 0};
  return {{"x", Tensor::full(f32({1, 3}), value)}, {"at", Tensor::copy_of(at, Shape({2}, DType::I32))}};
}

// Checks for every device.
void check_rows(DeviceId id) {
  CompiledGraph f = Session(id).compile(cache_step());
  f.set_param("w", Tensor::zeros(f32({8, 3})));
  f.run_typed(step(1, 0));
  for (int i = 1; i < 4; ++i) f.commit_no_wait(step(static_cast<float>(i + 1), i));
  // Reads after the submitted runs.
  CHECK(f.read_state("cache", Rows{1, 3}).to_f32() == std::vector<float>{2, 2, 2, 3, 3, 3, 4, 4, 4});
  f.sync_pending();
  f.write_state("cache", Tensor::full(f32({2, 3}), 9), Rows{2, 2});
  CHECK(f.read_state("cache").to_f32() ==
        std::vector<float>{1, 1, 1, 2, 2, 2, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(f.read_state("cache", Rows{3, 0}).num_elements() == 0);
  f.write_state("cache", Tensor::zeros(f32({0, 3})), Rows{8, 0});
  // Rows that are not aligned to granules: their neighbours are unchanged.
  const std::uint8_t ones[21] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  f.write_state("flags", Tensor::copy_of(ones, Shape({7, 3}, DType::Bool)));
  f.write_state("flags", Tensor::zeros(Shape({2, 3}, DType::Bool)), Rows{3, 2});
  for (int i = 0; i < 21; ++i) CHECK(f.read_state("flags").at_i64(i) == (i < 9 || i >= 15));
  CHECK(f.read_state("flags", Rows{4, 2}).at_i64(2) == 0);
  CHECK(f.read_state("flags", Rows{4, 2}).at_i64(3) == 1);
  f.set_param("w", Tensor::full(f32({1, 3}), 5), Rows{7, 1});
  const std::vector<float> out = f.run_typed(step(0, 0))[0].to_f32();
  CHECK(out[20] == 0);
  CHECK(out[21] == 5);
  CHECK(contains(error_text([&] { f.read_state("cache", Rows{7, 2}); }), " has no rows [7, 7 + 2)"));
  CHECK(contains(error_text([&] { f.read_state("cache", Rows{-1, 2}); }), "has no rows"));
  CHECK(contains(error_text([&] {
                   f.write_state("cache", Tensor::zeros(f32({1, 3})), Rows{0, 2});
                 }),
                 "2 of its rows are "));
  CHECK(contains(error_text([&] { f.write_state("cach", Tensor::zeros(f32({1, 3})), Rows{0, 1}); }), "'cache'"));
  CHECK(contains(error_text([&] { f.set_param("w", Tensor(), Rows{0, 1}); }), "got an empty tensor"));
  CompiledGraph fresh = Session(id).compile(cache_step());
  CHECK(contains(error_text([&] {
                   fresh.set_param("w", Tensor::zeros(f32({1, 3})), Rows{0, 1});
                 }),
                 "set the whole param first"));
}

}  // namespace

TEST_CASE("adversarial: rows of states and params, on every kind of device") {
  check_rows(Device::Cpu);
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    AdversarialScope adversary(mode);
    check_rows(AdversarialScope::kDevice);
  }
}

TEST_CASE("adversarial: a state or param without dimensions has no rows, not even none of them") {
  const auto check = [](DeviceId id) {
    Graph g("counter");
    const Expr next = g.state("count", Tensor::zeros(f32({}))) + g.param("step", f32({}));
    g.set_state("count", next);
    g.set_outputs({next});
    CompiledGraph f = Session(id).compile(std::move(g));
    f.set_param("step", {2});
    for (const std::int64_t count : {0, 1}) {
      const auto refused = [&](const auto& what) {
        const std::string text = error_text(what);
        CHECK_MESSAGE(contains(text, concat_text(" has no rows [0, 0 + ", count, ")")), text);
        CHECK_MESSAGE(contains(text, "it has no outermost dimension: read and write it whole"), text);
      };
      const Rows rows{0, count};
      refused([&] { f.read_state("count", rows); });
      refused([&] { f.write_state("count", Tensor::zeros(f32({})), rows); });
      refused([&] { f.write_state("count", Tensor(), rows); });
      refused([&] { f.set_param("step", Tensor::zeros(f32({})), rows); });
    }
    CHECK(f.run({})[0] == std::vector<float>{2});
    CHECK(f.read_state("count").at(0) == 2);
  };
  check(Device::Cpu);
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    AdversarialScope adversary(mode);
    check(AdversarialScope::kDevice);
  }
}

TEST_CASE("adversarial: OnFailure::Keep leaves a state its rows, and others that share it go on") {
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    AdversarialScope adversary(mode);
    CompileOptions options;
    options.on_failure["cache"] = OnFailure::Keep;
    const Session session(AdversarialScope::kDevice);
    Graph g("pool");
    Expr x = g.input("x", f32({1, 3})), at = g.input("at", Shape({2}, DType::I32));
    Expr next = g.dynamic_update_slice(g.state("cache", Tensor::zeros(f32({8, 3}))), x, at);
    g.set_state("cache", next);
    g.set_outputs({g.sum(next, {0})});
    const Graph copy = g;
    CompiledGraph f = session.compile_with(std::move(g), options);
    CHECK(f.compile_result().lir.plan.state_copies.empty() == !mode.opaque);  // a second buffer is counted
    f.run_typed(step(1, 0));
    CompiledGraph other = session.compile_with(Graph(copy), options);
    other.share_state_from(f);
    adversary->fail_step(0, 0, "a unit broke");
    std::string told = error_text([&] { f.commit_no_wait(step(2, 1)); });
    const std::vector<float> row = other.run_typed(step(3, 2))[0].to_f32();  // after it, on its own stream
    told += error_text([&] { f.sync_pending(); });
    CHECK_MESSAGE(contains(told, "a unit broke"), told);
    // Row 1 was being written and may hold anything when it is written in place. The other rows are unchanged.
    const std::vector<float> cache = f.read_state("cache").to_f32();
    CHECK(cache[0] == 1);
    CHECK(cache[9] == 0);
    (void)error_text([&] { f.run_typed(step(4, 3)); });  // reports the failure if it was not reported yet
    f.run_typed(step(4, 3));
    CHECK(f.read_state("cache", Rows{3, 1}).to_f32() == std::vector<float>(3, 4));
    CHECK(f.read_state("cache", Rows{0, 1}).to_f32() == std::vector<float>(3, 1));
  }
  CompileOptions options;
  options.on_failure["cash"] = OnFailure::Keep;
  CHECK(contains(error_text([&] { Session().compile_with(cache_step(), options); }), "did you mean 'cache'"));
}

TEST_CASE("adversarial: OnFailure::Keep: what others run behind a run that failed goes on from the value before it") {
  const auto summing = [](const CompileOptions& options) {
    Graph g("summing");
    const Expr next = g.state("s", Tensor::zeros(f32({4}))) + g.input("x", f32({4}));
    g.set_state("s", next);
    g.set_outputs({next * 2.0});
    return Session(AdversarialScope::kDevice).compile_with(std::move(g), options);
  };
  const auto value = [](double x) { return NamedTensors{{"x", Tensor::full(f32({4}), x)}}; };
  CompileOptions keep;
  keep.on_failure["s"] = OnFailure::Keep;
  for (test::AdversarialOptions mode : test::adversarial_modes())
    for (std::uint64_t seed = 1; seed <= 12; ++seed)
      for (const bool both : {false, true})  // whether both programs have the option; the state is kept in either case
        for (const bool more : {false, true})  // more runs of the failing program, on the same stream
        {
          INFO(test::mode_name(mode), ", seed ", seed, ", both ", both, ", more ", more);
          mode.seed = seed;
          const AdversarialScope adversary(mode);
          CompiledGraph a = summing(keep), b = summing(both ? keep : CompileOptions{});
          b.share_state_from(a);
          a.run_typed(value(1));
          b.run_typed(value(10));
          adversary->fail_step(0, 0, "a unit broke");
          std::string told = error_text([&] { a.commit_no_wait(value(1)); });
          // After the failure was reported, a run is a new one.
          if (more && told.empty()) told += error_text([&] { a.commit_no_wait(value(1)); });
          b.commit_no_wait(value(10));
          const std::span<const Slot> slots = b.sync_pending();
          REQUIRE(slots.size() == 1);
          float out = 0;
          std::memcpy(&out, b.arena_ptr() + slots[0].offset, sizeof out);
          CHECK(out == 42);
          CHECK(b.read_state("s").at(0) == 21);
          told += error_text([&] { a.sync_pending(); });
          CHECK_MESSAGE(contains(told, "a unit broke"), told);
          (void)error_text([&] { a.read_state("s"); });  // reports the failure if it was not reported yet
          CHECK(a.read_state("s").at(3) == 21);
          CHECK(a.run_typed(value(2))[0].at(0) == 46);
          CHECK(b.run_typed(value(3))[0].at(0) == 52);
        }
}

}  // namespace rlx
