// Runs on an opaque device that is out of memory. Whichever plug-in call fails, states that were not replaced and not
// donated are unchanged, memory of the run is released, and the program continues to work.
#include <doctest/doctest.h>

#include <cstring>
#include <tuple>

#include "rlx/device/plugin_backend.h"
#include "rlx/device/registry.h"
#include "tests/adversarial/adversarial_plugin.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"
#include "tests/support/state_programs.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::contains;
using test::error_text;
using test::f32;

// The state of the calls below; used by one thread.
struct FullDevice {
  int calls_left = -1;                 // calls until one is out of memory; negative: never
  int runs = 0;                        // accepted runs
  std::optional<std::size_t> scale{};  // the index among a run's states of the one that no run replaces
  bool strayed = false;                // true if that state was donated anyway
};
FullDevice full_device;

// Forwards a call of the adversarial test device's table, or fails it as out of memory.
template <auto kMember, class... Args>
rlx_code maybe_full(Args... args) {
  if (full_device.calls_left >= 0 && full_device.calls_left-- == 0) {
    rlx_error* const error = std::get<sizeof...(Args) - 1>(std::tuple<Args...>(args...));
    std::strcpy(error->message, "the card is full");  // NOLINT: it fits
    return RLX_PLUGIN_OUT_OF_MEMORY;
  }
  return (test::adversarial_plugin_table()->*kMember)(args...);
}
template <auto kMember, class... Args>
void count_calls(rlx_code (*&call)(Args...)) {
  call = maybe_full<kMember, Args...>;
}

rlx_code counted_run(rlx_program* program, rlx_device* device, rlx_stream* stream, rlx_run* run, rlx_event** done,
                     rlx_error* error) {
  const std::vector<rlx_slot> before(run->states, run->states + run->num_states);
  const rlx_code code = maybe_full<&rlx_plugin::run>(program, device, stream, run, done, error);
  if (code != RLX_PLUGIN_OK) return code;
  ++full_device.runs;
  if (full_device.scale && *full_device.scale < before.size() && before[*full_device.scale].given != 0)
    full_device.strayed = true;
  return code;
}

rlx_plugin full_table() {
  rlx_plugin t = *test::adversarial_plugin_table();
  count_calls<&rlx_plugin::put>(t.put);
  count_calls<&rlx_plugin::get>(t.get);
  count_calls<&rlx_plugin::stream_record>(t.stream_record);
  count_calls<&rlx_plugin::stream_wait>(t.stream_wait);
  t.run = counted_run;
  return t;
}

std::size_t bytes_in_use() {
  std::size_t sum = 0;
  for (const auto& device : opened_devices(AdversarialScope::kDevice)) {
    device->drain();
    sum += device->memory().used();
  }
  return sum;
}

// Fails each call of a run in turn. With a clone, runs get no donated buffers, so nothing may be lost before all work
// is submitted.
void expect_states_stay(const test::StateProgram& program, bool cloned) {
  INFO(program.name, std::string(cloned ? ", with a clone" : ""));
  full_device = {};
  const AdversarialScope adversary(program.mode());
  const rlx_plugin table = full_table();
  (void)register_plugin(&table);
  CompiledGraph f = program.compile();
  CHECK(f.compile_result().lir.plan.parts.empty() == program.is_one_graph());
  for (std::size_t i = 0; program.is_one_graph() && i < f.states().size(); ++i)
    if (f.states()[i].name == "scale") full_device.scale = i;
  (void)f.run_typed(program.inputs);
  const std::vector<Tensor> before = test::valid_states(f);
  const std::size_t idle = bytes_in_use();
  const auto restore = [&] {
    for (std::size_t i = 0; i < before.size(); ++i) f.write_state(f.states()[i].name, before[i]);
  };
  full_device.runs = 0;
  const std::vector<Tensor> want = f.run_typed(program.inputs), after = test::valid_states(f);
  const int all_runs = full_device.runs;
  int kept = 0;
  for (int n = 0;; ++n) {
    restore();
    std::optional<CompiledGraph> sharing;
    if (cloned) sharing.emplace(f.clone());
    CAPTURE(n);
    full_device.runs = 0;
    full_device.calls_left = n;
    const std::string text = error_text([&] {
      for (const Tensor& t : f.run_typed(program.inputs)) (void)t;
    });
    const bool ended = full_device.calls_left >= 0;
    full_device.calls_left = -1;
    if (ended) {
      CHECK(text.empty());
      break;
    }
    if (text.empty()) continue;  // the run does not need that call
    CHECK_MESSAGE(contains(text, "the card is full"), text);
    const std::vector<Tensor> now = test::valid_states(f);
    for (std::size_t i = 0; i < now.size(); ++i) {
      INFO("state ", f.states()[i].name, ", ", full_device.runs, " of ", all_runs, " runs accepted");
      const bool only_read = f.states()[i].name == "scale";
      const bool must_stay = only_read || full_device.runs == 0 || (cloned && full_device.runs < all_runs);
      if (must_stay) CHECK_FALSE(now[i].empty());
      if (now[i].empty()) continue;
      CHECK(now[i].identical(before[i]));
      ++kept;
    }
    f.reset();
    restore();
    sharing.reset();
    CHECK(bytes_in_use() == idle);
    const std::vector<Tensor> again = f.run_typed(program.inputs);
    for (std::size_t o = 0; o < want.size(); ++o) CHECK(again[o].identical(want[o]));
    const std::vector<Tensor> then = test::valid_states(f);
    for (std::size_t i = 0; i < after.size(); ++i) CHECK(then[i].identical(after[i]));
  }
  CHECK(kept > 0);
  CHECK_FALSE(full_device.strayed);
}

}  // namespace

TEST_CASE("out of memory: whichever call of an opaque device finds none, what the run did not write is as it was") {
  for (const test::StateProgram& program : test::state_programs())
    for (const bool cloned : {false, true}) expect_states_stay(program, cloned);
}

TEST_CASE("out of memory: a run that does not fit leaves its states, and writing them takes no more than before") {
  test::AdversarialOptions small = test::adversarial_modes()[1];
  small.memory_bytes = std::size_t{64} << 10;
  const AdversarialScope adversary(small);
  Graph g("large");
  const Expr x = g.input("x", f32({4096})), total = g.state("total", Tensor::zeros(f32({4096})));  // 16 KiB each
  g.set_state("total", total + x);
  g.set_outputs({g.exp(x), g.sin(x), g.cos(x)});
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(std::move(g));
  const NamedTensors in{{"x", Tensor::full(f32({4096}), 1)}};
  const Tensor fives = Tensor::full(f32({4096}), 5);
  f.write_state("total", fives);
  for (int i = 0; i < 3; ++i) {
    const std::string text = error_text([&] { f.run_typed(in); });
    CHECK_MESSAGE(contains(text, "run failed: "), text);
    CHECK(f.read_state("total").identical(fives));
    f.reset();  // needs memory besides the old value; an input kept from the run would leave too little
    f.write_state("total", Tensor::zeros(f32({4096})), {0, 4096});
    f.write_state("total", fives);
  }
}

TEST_CASE("out of memory: a state that is written keeps its value where the new one finds no room") {
  test::AdversarialOptions small = test::adversarial_modes()[1];
  small.memory_bytes = std::size_t{24} << 10;
  const AdversarialScope adversary(small);
  Graph g("alone");
  const Expr total = g.state("total", Tensor::full(f32({4096}), 3));
  g.set_state("total", total + 1.0);
  g.set_outputs({g.sum(total)});
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(std::move(g));
  const Tensor threes = f.read_state("total");
  CHECK(contains(error_text([&] { f.write_state("total", Tensor::zeros(f32({4096}))); }), "16384 bytes of states"));
  CHECK(f.read_state("total").identical(threes));
  CHECK(contains(error_text([&] { f.write_state("total", Tensor::zeros(f32({1})), {7, 1}); }), "16384 bytes"));
  CHECK(contains(error_text([&] { f.reset(); }), "16384 bytes of states"));
  CHECK(f.read_state("total").identical(threes));
  // An invalid state releases its memory for its next value.
  adversary->fail_step(0, 0, "a unit broke");
  const auto spoilt = [&] { return contains(error_text([&] { f.read_state("total"); }), "invalid"); };
  for (int i = 0; i < 20 && !spoilt(); ++i) (void)error_text([&] { f.run(); });  // it sometimes runs in place
  REQUIRE(spoilt());
  f.reset();
  CHECK(f.read_state("total").identical(threes));
}

}  // namespace rlx
