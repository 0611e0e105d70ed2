// Paths of files for tests. Only this file is compiled with the build's paths, so compiler caches of the others stay
// valid.
#include "tests/support/paths.h"

#include <fstream>
#include <sstream>

#include "rlx/error.h"

namespace rlx::test {

std::string source_path(const std::string& relative) { return std::string(RLX_SOURCE_DIR) + "/" + relative; }

std::string build_path(const std::string& relative) { return std::string(RLX_BINARY_DIR) + "/" + relative; }

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::NotFound, "cannot open " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace rlx::test
