// The lower bound of the time of a kernel, and the measurement of its limits by the CPU backend.
#include <doctest/doctest.h>

#include "rlx/device/registry.h"
#include "rlx/ir/op_def.h"

namespace rlx {
namespace {

TEST_CASE("the floor is arithmetic at peak or bytes at the bandwidth of a buffer that holds them") {
  const MachineLimits limits{100, {{1000, 50}, {10000, 10}}};
  CHECK(limits.floor_ns(Cost{2000, 100, 100}) == 20);  // 2000 flops at 100 per ns; 200 bytes would take 4
  CHECK(limits.floor_ns(Cost{0, 100, 100}) == 4);      // below the smallest buffer: the bandwidth of that buffer
  CHECK(limits.floor_ns(Cost{0, 5000, 4000}) == 180);  // between two: the faster, so it is a bound
  CHECK(limits.floor_ns(Cost{0, 15000, 5000}) == 2000);
  CHECK(MachineLimits{}.floor_ns(Cost{10, 10, 10}) == 0);  // no limits known
}

TEST_CASE("the cpu measures its limits, the reference backend has none") {
  const auto limits = backend_for(Device::Cpu)->measure_limits({});
  REQUIRE(limits);
  CHECK(limits->gflops > 0);  // no speed is asserted, because this test runs under emulators too
  REQUIRE(limits->bandwidth.size() > 2);
  for (std::size_t i = 0; i < limits->bandwidth.size(); ++i) {
    CHECK(limits->bandwidth[i].gb_per_s > 0);
    if (i > 0) CHECK(limits->bandwidth[i].bytes > limits->bandwidth[i - 1].bytes);
  }
  CHECK_FALSE(backend_by_name("reference")->measure_limits({}));
}

}  // namespace
}  // namespace rlx
