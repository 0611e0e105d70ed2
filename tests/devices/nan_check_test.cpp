// Runs that are checked for NaN on a device: the search runs there too.
#include <doctest/doctest.h>

#include "tests/devices/test_device.h"
#include "tests/support/nan_runs.h"

namespace rlx {

TEST_CASE("device: the check for NaN names op, element, line and iteration") {
  if (!test::device_here()) return;
  CHECK(test::check_nan_runs(Session(test::test_device()), false) > 12);
}

TEST_CASE("device: the check for NaN of values that stay there") {
  if (!test::device_here()) return;
  Graph g("stays");
  g.set_outputs({g.log(g.input("x", test::f32({3})) - 2.0)});
  CompileOptions options;
  options.nan_check = NanCheck::NanOrInf;
  CompiledGraph f = Session(test::test_device()).compile_with(std::move(g), options);
  std::vector<Tensor> there = f.run_device({{"x", Tensor::full(test::f32({3}), 5)}});  // log(3)
  std::string text = test::error_text([&] { (void)f.run_device({{"x", there[0]}}); });
  CHECK_MESSAGE(test::contains(text, "log(-0.90"), text);
  CHECK_MESSAGE(test::contains(text, "in element [0] of [3] f32, which reaches output 'out0'"), text);
  text = test::error_text([&] { (void)f.run_device({{"x", std::move(there[0])}}); });
  CHECK_MESSAGE(test::contains(text, "log(-0.90"), text);
  CHECK(f.run_device({{"x", Tensor::full(test::f32({3}), 3)}})[0].to_host().at(0) == 0);
}

}  // namespace rlx
