// Where tests find files of the repository and of the build.
#pragma once

#include <string>

namespace rlx::test {

/// Absolute path of a file of the repository, for example "tests/golden/cse.rlx".
std::string source_path(const std::string& relative);

/// Absolute path of a file in the build folder, for example "generated/modules.txt".
std::string build_path(const std::string& relative);

/// The whole content of a file; throws rlx::Error (NotFound) naming it.
std::string read_file(const std::string& path);

}  // namespace rlx::test
