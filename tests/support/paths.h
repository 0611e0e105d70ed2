// Paths of files in the repository and in the build.
#pragma once

#include <string>

namespace rlx::test {

/// The absolute path of a file of the repository, for example "tests/golden/cse.rlx".
std::string source_path(const std::string& relative);

/// The absolute path of a file in the build folder, for example "generated/modules.txt".
std::string build_path(const std::string& relative);

/// The content of a file. Throws rlx::Error (NotFound) that names it.
std::string read_file(const std::string& path);

}  // namespace rlx::test
