// Writes the tables of op samples that the command and the Python package show: op_tables SOURCE_DIR.
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/support/op_tables.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: op_tables SOURCE_DIR\n");
    return 2;
  }
  const std::string root = argv[1];
  const auto write = [&](const char* path, const std::string& text) {
    std::ofstream out(root + "/" + path, std::ios::binary);
    out << text;
    if (!out.flush()) std::fprintf(stderr, "cannot write %s/%s\n", argv[1], path);
    return static_cast<bool>(out);
  };
  const bool samples = write(rlx::test::kSamplesTable, rlx::test::op_samples_table());
  const bool examples = write(rlx::test::kExamplesTable, rlx::test::op_examples_table());
  return samples && examples ? 0 : 1;
}
