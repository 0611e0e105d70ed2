// The command where wgpu-native cannot be used.
#include <doctest/doctest.h>

#include "tests/support/paths.h"
#include "tests/support/run_program.h"

namespace rlx {

TEST_CASE("devices: without the library wgpu-native its devices say what was tried and how to get it") {
  const test::ProgramResult r = test::run_shell("RLX_WGPU_LIB=/nowhere/wgpu.so " + test::rlx_command() + "devices");
  CHECK(r.status == 0);
  CHECK(test::contains(r.out, "vulkan    Vulkan       the library wgpu-native cannot be opened (/nowhere/wgpu.so"));
  CHECK(test::contains(r.out, "pip download --no-deps wgpu==0.32.0"));
  CHECK(test::contains(r.out, "directx   DirectX 12   this version has no DirectX 12 backend"));
}

TEST_CASE("devices: a library of another version, and one that finds no adapter") {
  const auto with = [](const std::string& library, const std::string& args, const char* empty = "") {
    return test::run_shell("RLX_WGPU_LIB=" + test::build_path("tests/" + library) + " " + empty + test::rlx_command() +
                           args);
  };
  const test::ProgramResult other = with("libfalse_wgpu_28.so", "devices");
  CHECK(other.status == 0);
  CHECK(test::contains(other.out, "libfalse_wgpu_28.so is wgpu-native 28.0.2.7, but rlx needs version 29"));
  CHECK(test::contains(other.out, "pip download --no-deps wgpu==0.32.0"));
  const test::ProgramResult none = with("libwgpu_stand_in.so", "devices", "RLX_STAND_IN_EMPTY=1 ");
  CHECK(none.status == 0);
  CHECK(test::contains(none.out, "vulkan    Vulkan       no Vulkan driver was found (Debian: libvulkan1"));
  CHECK(test::contains(none.out, "no OpenGL 4.3 or OpenGL ES 3.1 driver was found through EGL"));
  const test::ProgramResult one = with("libwgpu_stand_in.so", "devices");
  CHECK(test::contains(one.out, "stand-in, Vulkan, a driver, values of up to 1024 MiB"));
}

TEST_CASE("devices: one that is asked for by name and not there is an error that says why") {
  const test::ProgramResult r = test::run_shell(
      "RLX_WGPU_LIB=/nowhere/wgpu.so " + test::rlx_command() + "bench --device vulkan -",
      "graph @g {\n  %0 = input() {name = \"x\"} : [4] f32\n  %1 = add(%0, %0) : [4] f32\n  return %1\n}\n");
  test::expect_failure(r, 1, "device Vulkan is not available: the library wgpu-native cannot be opened");
  const test::ProgramResult other =
      test::run_shell(test::rlx_command() + "bench --device directx -", "graph @g {\n}\n");
  test::expect_failure(other, 1, "device DirectX 12 is not available: this version has no DirectX 12 backend");
}

}  // namespace rlx
