// `rlx --version`, and what a build says of itself on a processor that lacks what it was built for.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include "rlx/runtime/build_info.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"

using namespace rlx;
using namespace rlx::test;

namespace {

const char* const kNote = "note: rlx was built for ";

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("rlx --version says what the build holds") {
  const BuildInfo& info = build_info();
  const ProgramResult r = run_rlx("--version");
  CHECK(r.status == 0);
  CHECK(r.err.empty());
  CHECK(r.out.starts_with("rlx " + std::string(info.version) + "\n"));
  std::string sets = "  cpu kernels ";
  for (const std::string_view set : info.instruction_sets) sets += " " + std::string(set);
  CHECK_MESSAGE(contains(r.out, sets + " (RLX_ISA=" + std::string(info.isa) + ")"), r.out);
  for (const char* line : {"\n  compiler     ", "\n  in use       cpu (", "\n  backends     ", "\n  devices      CPU",
                           "\n  models       yes\n"})
    CHECK_MESSAGE(contains(r.out, line), r.out);
  // A set that is asked for by the environment, and the reason where there is none.
  const std::string baseline(info.instruction_sets.front());
  CHECK(contains(run_shell("RLX_CPU_ISA=" + baseline + " " + rlx_command() + "--version").out,
                 "in use       cpu (" + baseline));
  CHECK(contains(run_shell("RLX_CPU_ISA=none " + rlx_command() + "--version").out,
                 "in use       unknown instruction set 'none'"));
}

#if defined(__x86_64__)
TEST_CASE("an older processor: the baseline runs, and a native build says so once") {
  if (run_shell("command -v qemu-x86_64-static").status != 0) {
    MESSAGE("no qemu-x86_64-static (package qemu-user-static)");
    return;
  }
  const BuildInfo& info = build_info();
  const std::size_t notes = info.isa == "native" && info.instruction_sets.size() > 1 ? 1 : 0;
  const TempDir dir;
  const std::string graph = dir.write("g.rlx", R"(graph @g {
  %0 = input() {name = "x"} : [2, 2] f32
  %1 = matmul(%0, %0) : [2, 2] f32
  return %1
}
)");
  const std::string older = "qemu-x86_64-static -cpu Nehalem " + rlx_command();
  for (const std::string& command : {older + "--version", older + "bench '" + graph + "' --runs 1 --seconds 0.001"}) {
    const ProgramResult r = run_shell(command);
    CHECK_MESSAGE(r.status == 0, r.err);
    CHECK_MESSAGE(contains(r.out, "cpu (sse4"), r.out);
    CHECK_MESSAGE(count(r.err, kNote) == notes, r.err);
  }
}
#endif
