// RLX_IR_DUMP: the file that compiles write. The first compile of a process truncates it, later ones append.
#include <doctest/doctest.h>

#include "rlx/runtime/env.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

void compile(const char* name) {
  Graph g(name);
  g.set_outputs({g.relu(g.input("x", {{2}, DType::F32}))});
  (void)Session().compile(std::move(g));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_CASE("RLX_IR_DUMP: the first compile of a process starts the file anew, the next is added") {
  const test::TempDir dir;
  const std::string file = dir.write("all.txt", "what an earlier process wrote\n"),
                    old = dir.write("one.ir.txt", "old\n");
  {
    RuntimeOverrides dump("RLX_IR_DUMP", file);
    compile("one");
    const std::string text = test::read_file(file);
    CHECK(!test::contains(text, "earlier process"));
    CHECK(count(text, "==== LIR") == 1);
    compile("two");
    CHECK(count(test::read_file(file), "==== LIR") == 2);
  }
  RuntimeOverrides dump("RLX_IR_DUMP", dir.path() + "/");
  compile("one");
  compile("two");
  compile("one");
  CHECK(!test::contains(test::read_file(old), "old\n"));
  CHECK(count(test::read_file(old), "==== LIR") == 2);
  CHECK(count(test::read_file(dir.file("two.ir.txt")), "==== LIR") == 1);
}

TEST_CASE("RLX_IR_DUMP: a full disk is told with its reason") {
  RuntimeOverrides dump("RLX_IR_DUMP", "/dev/full");
  const std::string text = test::error_text([] { compile("one"); });
  CHECK_MESSAGE(test::contains(text, "cannot write \"/dev/full\": No space left on device"), text);
  CHECK_MESSAGE(test::contains(text, "hint: set RLX_IR_DUMP to a path on a disk with free space"), text);
}

}  // namespace
}  // namespace rlx
