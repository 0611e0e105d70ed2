// An empty brace {} means no inputs in calls that take inputs by name, and no values in calls that take values.
#include <doctest/doctest.h>

#include <cstring>

#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

// The program: state count += 1; the output is count.
Graph counting_up() {
  Graph g("counting_up");
  const Expr next = g.state("count", Tensor::zeros(test::f32({}))) + 1.0;
  g.set_state("count", next);
  g.set_outputs({next});
  return g;
}

}  // namespace

TEST_CASE("api: every way to run takes {} as no inputs") {
  CompiledGraph f = Session().compile(counting_up());
  CHECK(f.run({})[0][0] == 1);
  CHECK(f.run()[0][0] == 2);
  CHECK(f.run_typed({})[0].at(0) == 3);
  CHECK(f.run_device({})[0].at(0) == 4);
  CHECK(*static_cast<const float*>(f.run_raw({})[0].data) == 5);
  CHECK(*static_cast<const float*>(f.run_raw()[0].data) == 6);
  const auto committed = [&] {
    const std::span<const Slot> slots = f.sync_pending();
    REQUIRE(slots.size() == 1);
    float value = 0;
    std::memcpy(&value, f.arena_ptr() + slots[0].offset, sizeof value);
    return value;
  };
  f.commit_no_wait({});
  f.commit_no_wait();
  CHECK(committed() == 8);
  CHECK(f.run_pipelined({}).empty());
  CHECK(f.run_pipelined({{}, {}})[1][0][0] == 10);
  CHECK(f.run_slots({}).size() == 1);
  float out = 0;
  const MutableTensorView room{&out, DType::F32, {}, sizeof out};
  f.run_into({}, {&room, 1});
  CHECK(out == 12);
  f.prepare_shape({});
  CHECK(f.profile({}).size() == 1);
  CHECK(evaluate(counting_up(), {})[0].at(0) == 1);
  CHECK(evaluate_with_states(counting_up(), {}).states.at("count").at(0) == 1);
  Graph nothing("nothing");
  nothing.set_outputs({});
  CHECK(nothing.outputs().empty());
}

TEST_CASE("api: values in braces, none among them, for inputs that stay") {
  Graph g("doubled");
  g.set_outputs({g.input("x", test::f32({2})) * 2.0});
  CompiledGraph f = Session().compile(std::move(g));
  f.set_input("x", {1, 2});
  CHECK(f.run({})[0] == std::vector<float>{2, 4});
  f.bind_handle("x", {3, 4});
  CHECK(f.run()[0] == std::vector<float>{6, 8});
  CHECK(test::contains(test::error_text([&] { f.set_input("x", {}); }), "'x'"));
  CHECK(test::contains(test::error_text([&] { f.bind_handle("x", {}); }), "'x'"));
  CHECK(f.run()[0] == std::vector<float>{6, 8});
  f.commit_no_wait({{"x", {5, 6}}});
  f.commit_no_wait({{"x", Tensor::full(test::f32({2}), 7)}});
  float out[2];
  std::memcpy(out, f.arena_ptr() + f.sync_pending()[0].offset, sizeof out);
  CHECK(out[1] == 14);
}

}  // namespace rlx
