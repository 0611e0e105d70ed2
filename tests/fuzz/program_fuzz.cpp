// Differential fuzz target: a random program, run in every way there is, against its exact result within the bound of
// rounding: evaluator, cpu at one and two threads, specialised, bucket and runtime symbols, fused and unfused, folded
// and not, kernels and decompositions, lower instruction sets, the reference backend, text and binary round trip; and
// its reverse derivative against its forward one. Where the same kernels run, bits are compared.
//
// Eight bytes of input are the seed of a program, other input is hashed to one. A failure prints the seed and the
// program, cut down as far as it still fails.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/text.h"
#include "tests/support/random_checks.h"

namespace {

using namespace rlx;
using namespace rlx::test;

[[noreturn]] void report(const RandomProgram& p, const std::string& text) {
  std::fprintf(stderr, "program %" PRIu64 ": %s\n", p.seed, text.c_str());
  const std::string who = text.substr(0, text.find(':'));
  const RandomProgram small = smaller(p, who);
  std::fprintf(stderr, "cut down: %s\n%s\n", failure_of(small, who).c_str(), print_text(small.graph).c_str());
  const std::string stem = concat_text("program-", p.seed);
  if (std::FILE* file = std::fopen((stem + ".rlx").c_str(), "w")) {
    std::fprintf(file, "// %s\n%s\n// the whole program:\n%s", text.c_str(), print_text(small.graph).c_str(),
                 print_text(p.graph).c_str());
    std::fclose(file);
  }
  if (std::FILE* file = std::fopen((stem + ".seed").c_str(), "wb")) {
    std::fwrite(&p.seed, sizeof p.seed, 1, file);
    std::fclose(file);
  }
  std::fprintf(stderr, "written: %s.rlx; run it again: fuzz_program %s.seed\n", stem.c_str(), stem.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint64_t seed = 0;
  if (size == sizeof seed)
    std::memcpy(&seed, data, sizeof seed);
  else
    seed = fingerprint_bytes(data, size).low;
  ProgramOptions options;
  options.specials = seed % 8 == 7;
  options.calls = (seed >> 63) != 0 ? 50 : 0;  // small seeds, as those of the corpus, have none
  const RandomProgram p = random_program(seed, options);
  if (const std::string text = failure_of(p); !text.empty()) report(p, text);
  return 0;
}
