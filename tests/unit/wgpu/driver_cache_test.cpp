// A full disk under Mesa's shader cache is detected before Mesa uses the cache.
#include "rlx/backends/wgpu/driver_cache.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>

namespace rlx {
namespace {

// Sets an environment variable and restores it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* now = std::getenv(name)) before_ = now;
    if (value)
      ::setenv(name, value, 1);
    else
      ::unsetenv(name);
  }
  ~Variable() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

std::uint64_t nothing(const std::string&) { return 4096; }
std::uint64_t plenty(const std::string&) { return std::uint64_t{1} << 30; }

}  // namespace

TEST_CASE("wgpu: a full disk under Mesa's cache, which Mesa does not survive") {
  const Variable on("MESA_SHADER_CACHE_DISABLE", nullptr), older("MESA_GLSL_CACHE_DISABLE", nullptr);
  const Variable folder("MESA_SHADER_CACHE_DIR", "/nowhere/cache");
  CHECK(wgpu::full_cache("Mesa 22.3.6", nothing) == "/nowhere/cache/mesa_shader_cache");
  CHECK(wgpu::full_cache("Mesa 22.3.6", plenty).empty());
  CHECK(wgpu::full_cache("a driver", nothing).empty());
  const Variable off("MESA_SHADER_CACHE_DISABLE", "true");
  CHECK(wgpu::full_cache("Mesa 22.3.6", nothing).empty());
}

TEST_CASE("wgpu: the disk of a folder that is not there yet is that of the one it will be in") {
  CHECK(wgpu::free_bytes("/dev/shm/none/of/these") == wgpu::free_bytes("/dev/shm"));
  CHECK(wgpu::free_bytes("/proc") == 0);
}

}  // namespace rlx
