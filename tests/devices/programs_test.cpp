// Whole programs on a device: random ones with states, symbols and parts on the host, and loops that the host drives.
#include <doctest/doctest.h>

#include "rlx/ir/text.h"
#include "tests/devices/differences.h"
#include "tests/devices/test_device.h"
#include "tests/support/needs.h"
#include "tests/support/program_check.h"
#include "tests/support/segment_programs.h"

namespace rlx {

TEST_CASE("device: random programs, static and symbolic, with states") {
  if (!test::device_here()) return;
  const Session session(test::test_device());
  for (std::uint64_t seed = 1; seed <= test::repetitions<std::uint64_t>(250); ++seed) {
    if (!test::in_share(seed)) continue;
    std::string text;
    try {
      text = test::check_program(session, seed, test::device_subnormals());
    } catch (const Error& e) {
      text = e.what();
    }
    CHECK_MESSAGE(text.empty(), test::test_device_name(), ", seed ", seed, ": ", text, "\n",
                  print_text(test::random_program(seed).graph));
  }
}

TEST_CASE("device: random programs with parts on the cpu") {
  if (!test::device_here()) return;
  const Session session(test::test_device());
  for (std::uint64_t seed = 1; seed <= test::repetitions<std::uint64_t>(60); ++seed) {
    if (!test::in_share(seed)) continue;
    const test::RandomProgram p = test::labelled_program(seed);
    CompileOptions options;
    if (seed % 3 == 0) test::place_label(p.graph, "b", Device::Cpu, options);
    INFO("seed ", seed, "\n", print_text(p.graph));
    test::check_program(p, session, options, test::device_subnormals());
  }
}

TEST_CASE("device: programs whose loops and sorts the host may have to run") {
  if (!test::device_here()) return;
  const Session session(test::test_device());
  const auto check = [&](Graph g, const NamedTensors& values) {
    CompiledGraph f = session.compile(Graph(g));
    test::check_runs(f, g, values);
  };
  check(test::sorting(), {{"x", test::draw(test::f32({6, 9}), Fill::Unit, 1, 1)},
                          {"w", test::draw(test::f32({9, 9}), Fill::Unit, 1, 2)}});
  for (int n : {0, 1, 4, 9})
    check(test::sorting_loop(),
          {{"x", test::draw(test::f32({5, 7}), Fill::Unit, 1, 3)}, {"n", Tensor::full(Shape({}, DType::I32), n)}});
  NamedTensors values{{"x", test::draw(test::f32({8, 32}), Fill::Unit, 1, 4)}};
  for (int i = 0; i < 3; ++i)
    values.emplace(concat_text("w", i), test::draw(test::f32({32, 32}), Fill::Unit, 1, 5 + static_cast<unsigned>(i)));
  check(test::layers(), values);
}

}  // namespace rlx
