// A folder for fuzz targets that write files; it is gone when the program ends.
#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "rlx/error.h"

namespace rlx {

inline const std::filesystem::path& fuzz_folder() {
  static const std::filesystem::path path = [] {
    std::string name = (std::filesystem::temp_directory_path() / "rlx_fuzz_XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, "a temporary folder");
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(fuzz_folder(), ignored);
    });
    return std::filesystem::path(name);
  }();
  return path;
}

}  // namespace rlx
