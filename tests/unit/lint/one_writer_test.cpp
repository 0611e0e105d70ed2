// Files are written by rlx/base/output_file.cpp alone, so that none is left half written and none is written through a
// link by surprise.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;

// What opens, makes or renames a file for writing, in C++ and in Python.
bool writes_a_file(const std::string& line, bool python) {
  static const std::regex kCpp(
      R"(\bofstream\b|std::fstream\b|\bO_(WRONLY|RDWR|CREAT|APPEND|TRUNC)\b|\bmko?stemps?\b|\brename\(|\bcreat\()"
      R"(|\b(fopen|freopen|fdopen|filebuf)\b.*"[^"]*[wa+][^"]*"\s*\)|\bfopen\(.*\?|\bcopy_file\(|\bgzopen\()");
  static const std::regex kPython(
      R"(\bopen\(.*["'][rbt]*[wax+][rbt+]*["']|\.write_(text|bytes)\(|\bos\.(open|rename|replace)\()"
      R"(|\bnp\.savez?\((file|path)\b|\.tofile\(|\bshutil\.|\btempfile\.)");
  return std::regex_search(line, python ? kPython : kCpp);
}

}  // namespace

TEST_CASE("files are written by the one writer (rlx/base/output_file.cpp)") {
  CHECK(writes_a_file("  std::ofstream file(path);", false));
  CHECK(writes_a_file("std::FILE* f = std::fopen(path.c_str(), \"w\");", false));
  CHECK(writes_a_file("std::FILE* f = std::fopen(path.c_str(), \"r+b\");", false));
  CHECK(writes_a_file("std::FILE* f = std::fopen(path.c_str(), append ? a : w);", false));
  CHECK(writes_a_file("::open(p, O_RDONLY | O_CREAT, 0666)", false));
  CHECK(writes_a_file("std::filesystem::rename(a, b);", false));
  CHECK_FALSE(writes_a_file("std::fopen(path.c_str(), \"rb\")", false));
  CHECK_FALSE(writes_a_file("std::ifstream file(\"/proc/cpuinfo\");", false));
  CHECK(writes_a_file("with open(path, \"wb\") as f:", true));
  CHECK(writes_a_file("pathlib.Path(path).write_text(text)", true));
  CHECK(writes_a_file("with open(path, mode='a') as f:", true));
  CHECK_FALSE(writes_a_file("with open(path, \"rb\") as f:", true));
  int files = 0;
  for (const char* folder : {"rlx", "cli", "python/bindings", "python/rlx"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(rlx::test::source_path(folder))) {
      const std::string path = entry.path().string(), ending = entry.path().extension().string();
      const bool python = ending == ".py";
      if (!entry.is_regular_file() || !(python || ending == ".cpp" || ending == ".h")) continue;
      ++files;
      if (path.ends_with("rlx/base/output_file.cpp")) continue;
      const std::string text = rlx::test::read_file(path);
      // The expressions are slow, so only lines with one of their words are searched.
      std::set<std::size_t> lines;  // where they begin
      for (const char* word :
           {"fstream", "O_", "mkstemp", "mkostemp", "rename(", "creat(", "open", "copy_file", "write_text",
            "write_bytes", "np.save", "tofile", "shutil", "tempfile", "filebuf", "os.replace"})
        for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
          lines.insert(text.rfind('\n', at) + 1);
      for (const std::size_t begin : lines) {
        const std::string here = text.substr(begin, text.find('\n', begin) - begin);
        if (writes_a_file(here.substr(0, here.find("// ")), python))
          FAIL_CHECK(path << ":"
                          << std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1
                          << ": " << here << "\nwrite it with OutputFile, replace_file or append_to_file");
      }
    }
  CHECK(files > 300);
}
