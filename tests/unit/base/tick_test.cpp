// The clock of timings.
#include "rlx/base/tick.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

namespace rlx {
namespace {

TEST_CASE("a tick measures what passes, in every unit") {
  const Tick start = Tick::now();
  const std::int64_t slept = time_ns([] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  CHECK(slept >= 5'000'000);
  const std::int64_t ns = start.elapsed_ns();
  CHECK(ns >= slept);
  CHECK(start.elapsed_us() >= static_cast<double>(ns) * 1e-3);
  CHECK(start.elapsed_ms() >= 5.0);
  CHECK(start.elapsed_ms() < start.elapsed_us());
  CHECK(start.elapsed_ns() >= ns);
}

}  // namespace
}  // namespace rlx
