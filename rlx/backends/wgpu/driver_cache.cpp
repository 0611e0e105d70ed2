// Checks Mesa's cache before Mesa uses it.
#include "rlx/backends/wgpu/driver_cache.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace rlx::wgpu {
namespace {

// size of Mesa's index, which is mapped whole while its disk blocks are allocated page by page
constexpr std::uint64_t kIndexBytes = 1310728;

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

bool is_on(const char* variable) {
  const std::string v = environment(variable);
  return v == "1" || v == "true" || v == "yes" || v == "y";
}

std::string mesa_folder() {
  for (const char* variable : {"MESA_SHADER_CACHE_DIR", "MESA_GLSL_CACHE_DIR", "XDG_CACHE_HOME"})
    if (const std::string at = environment(variable); !at.empty()) return at + "/mesa_shader_cache";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/mesa_shader_cache";
}

}  // namespace

std::uint64_t free_bytes(const std::string& folder) {
  std::error_code none;
  std::filesystem::path at = folder;
  while (!std::filesystem::exists(at, none) && at.has_relative_path()) at = at.parent_path();
  struct statvfs disk {};
  if (::statvfs(at.c_str(), &disk) != 0) return ~std::uint64_t{0};
  return std::uint64_t{::geteuid() == 0 ? disk.f_bfree : disk.f_bavail} * disk.f_frsize;
}

std::string full_cache(std::string_view driver, std::uint64_t (*free)(const std::string& folder)) {
  if (driver.find("Mesa") == std::string_view::npos) return {};
  if (is_on("MESA_SHADER_CACHE_DISABLE") || is_on("MESA_GLSL_CACHE_DISABLE")) return {};
  std::string folder = mesa_folder();
  if (folder.empty()) return {};
  struct stat index {};
  std::uint64_t given = 0;
  if (::stat((folder + "/index").c_str(), &index) == 0)
    given = std::min<std::uint64_t>(static_cast<std::uint64_t>(index.st_blocks) * 512, kIndexBytes);
  return given + free(folder) < kIndexBytes ? folder : std::string();
}

}  // namespace rlx::wgpu
