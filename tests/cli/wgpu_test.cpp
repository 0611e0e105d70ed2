// The command where wgpu-native cannot be used.
#include <doctest/doctest.h>

#include "tests/support/run_program.h"

namespace rlx {

TEST_CASE("devices: without the library wgpu-native its devices say what was tried and how to get it") {
  const test::ProgramResult r = test::run_shell("RLX_WGPU_LIB=/nowhere/wgpu.so " + test::rlx_command() + "devices");
  CHECK(r.status == 0);
  CHECK(test::contains(r.out, "vulkan    Vulkan       the library wgpu-native cannot be opened (/nowhere/wgpu.so"));
  CHECK(test::contains(r.out, "pip download --no-deps wgpu==0.32.0"));
  CHECK(test::contains(r.out, "directx   DirectX 12   this version has no DirectX 12 backend"));
}

TEST_CASE("devices: one that is asked for by name and not there is an error that says why") {
  const test::ProgramResult r = test::run_shell(
      "RLX_WGPU_LIB=/nowhere/wgpu.so " + test::rlx_command() + "bench --device vulkan -",
      "graph @g {\n  %0 = input() {name = \"x\"} : [4] f32\n  %1 = add(%0, %0) : [4] f32\n  return %1\n}\n");
  test::expect_failure(r, 1, "device Vulkan is not available: the library wgpu-native cannot be opened");
}

}  // namespace rlx
