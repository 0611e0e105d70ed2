// The n-th allocation of the host fails in a run on the adversarial test device, for every n: a state has its old bytes
// or says that it is invalid, and behind a reset the program works on. On a device of whole values the states that the
// run did not write stay valid.
#include <doctest/doctest.h>

#include <optional>

#include "rlx/device/plugin_backend.h"
#include "rlx/device/registry.h"
#include "tests/adversarial/adversarial_plugin.h"
#include "tests/allocation/failing_new.h"
#include "tests/support/state_programs.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::Promise;
using test::Shortage;
using test::Whose;

// Runs of the plug-in that were accepted.
int accepted_runs = 0;
rlx_code accepting_run(rlx_program* program, rlx_device* device, rlx_stream* stream, rlx_run* run, rlx_event** done,
                       rlx_error* error) {
  const rlx_code code = test::adversarial_plugin_table()->run(program, device, stream, run, done, error);
  accepted_runs += code == RLX_PLUGIN_OK ? 1 : 0;
  return code;
}

std::size_t bytes_on_devices() {
  std::size_t sum = 0;
  for (const auto& device : opened_devices(AdversarialScope::kDevice)) {
    device->drain();
    sum += device->memory().used();
  }
  return sum;
}

void expect_exact_states(const test::StateProgram& program, Shortage shortage, bool opaque, bool cloned) {
  INFO(std::string(opaque ? "" : "arenas: "), program.name, std::string(cloned ? ", with a clone" : ""),
       std::string(shortage == Shortage::One ? ", one" : ""));
  test::AdversarialOptions mode = program.mode();
  mode.opaque = opaque;
  const AdversarialScope adversary(mode);
  rlx_plugin table = *test::adversarial_plugin_table();
  table.run = accepting_run;
  if (opaque) (void)register_plugin(&table);
  CompiledGraph f = program.compile();
  (void)f.run_typed(program.inputs);
  const std::vector<Tensor> before = test::valid_states(f);
  const auto restore = [&] {
    for (std::size_t i = 0; i < before.size(); ++i) f.write_state(f.states()[i].name, before[i]);
  };
  accepted_runs = 0;
  const std::vector<Tensor> want = f.run_typed(program.inputs), after = test::valid_states(f);
  const int all_runs = accepted_runs;
  restore();
  const std::size_t idle = bytes_on_devices();
  std::optional<CompiledGraph> sharing;
  std::vector<Tensor> got;
  long kept = 0, lost = 0;
  const auto prepare = [&] {
    sharing.reset();
    restore();
    if (cloned) sharing.emplace(f.clone());
    accepted_runs = 0;
  };
  prepare();
  const auto same = [](const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!a[i].identical(b[i])) return false;
    return true;
  };
  test::fail_each(
      shortage, Promise::OutOfMemory,
      [&] {
        got.clear();
        got = f.run_typed(program.inputs);
      },
      [&] {
        const std::vector<Tensor> now = test::valid_states(f);
        const bool made = !got.empty();  // it did without the allocation
        for (std::size_t i = 0; i < now.size(); ++i) {
          INFO("state ", f.states()[i].name, ", ", accepted_runs, " of ", all_runs, " runs accepted");
          const bool must_stay = made || f.states()[i].name == "scale" ||
                                 (opaque && (accepted_runs == 0 || (cloned && accepted_runs < all_runs)));
          if (now[i].empty()) {
            CHECK_FALSE(must_stay);
            ++lost;
            continue;
          }
          CHECK(now[i].identical(made ? after[i] : before[i]));
          ++kept;
        }
        if (made) CHECK(same(got, want));
        f.reset();
        sharing.reset();
        restore();
        CHECK(bytes_on_devices() == idle);
        CHECK(same(f.run_typed(program.inputs), want));
        CHECK(same(test::valid_states(f), after));
        prepare();
      },
      Whose::ThisThread);
  CHECK(same(got, want));
  CHECK(kept > (opaque ? lost : 0));
  // States are written whole or not at all.
  prepare();
  for (const IoInfo& s : f.states()) {
    const Tensor fives = Tensor::full(s.shape, 5);
    const Tensor old = f.read_state(s.name);
    test::fail_each(
        shortage, Promise::OutOfMemory, [&] { f.write_state(s.name, fives); },
        [&] {
          const Result<Tensor> now = attempt([&] { return f.read_state(s.name); });
          CHECK((now.ok() || !opaque));
          if (now.ok()) CHECK((now.value().identical(old) || now.value().identical(fives)));
          f.write_state(s.name, old);
        },
        Whose::ThisThread);
    CHECK(f.read_state(s.name).identical(fives));
  }
}

TEST_CASE("runs on a device of whole values: every allocation, states that nobody wrote stay") {
  for (const test::StateProgram& program : test::state_programs())
    for (const Shortage shortage : {Shortage::One, Shortage::Lasting})
      for (const bool cloned : {false, true})
        if (!cloned || shortage == Shortage::One) expect_exact_states(program, shortage, true, cloned);
}

TEST_CASE("runs on a device with arenas: every allocation, states have their old bytes or say that they have not") {
  for (const test::StateProgram& program : test::state_programs())
    for (const Shortage shortage : {Shortage::One, Shortage::Lasting})
      expect_exact_states(program, shortage, false, false);
}

}  // namespace
}  // namespace rlx
