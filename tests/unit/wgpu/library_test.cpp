// The errors of wgpu libraries that cannot be used.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rlx/backends/wgpu/library.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"

namespace rlx {
namespace {

using test::contains;

std::string refusal(const std::vector<std::string>& paths) {
  const Result<wgpu::abi::Api> opened = wgpu::open_library(paths);
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().code == ErrorCode::DeviceUnavailable);
  return opened.error().text();
}

}  // namespace

TEST_CASE("wgpu: a library that is not there: what was tried, and how to get it") {
  const std::string text = refusal({"/nowhere/libwgpu_native.so", "libno_such_wgpu.so"});
  CHECK(contains(text, "/nowhere/libwgpu_native.so"));
  CHECK(contains(text, "libno_such_wgpu.so"));
  CHECK(contains(text, "pip download --no-deps wgpu==0.32.0"));
  CHECK(contains(text, "RLX_WGPU_LIB"));
}

TEST_CASE("wgpu: a library of another version is refused by its number, before anything of it is called") {
  const std::string text = refusal({test::build_path("tests/libfalse_wgpu_28.so")});
  CHECK(contains(text, "is wgpu-native 28.0.2.7, but rlx needs version 29"));
}

TEST_CASE("wgpu: a library that lacks a function is refused by that") {
  const std::string text = refusal({test::build_path("tests/libfalse_wgpu_29.so")});
  CHECK(contains(text, "has no function wgpuCreateInstance"));
}

TEST_CASE("wgpu: another library altogether") { CHECK(contains(refusal({"libm.so.6"}), "is not wgpu-native")); }

}  // namespace rlx
