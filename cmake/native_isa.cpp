// Run by the configuration (cmake/isa.cmake): prints the instruction sets that RLX_ISA=native builds on this machine,
// the baseline and the best one with what extends it, with ';' between.
#include <cstdio>

#include "rlx/backends/cpu/machine_isa.h"

int main() {
  std::printf("sse4");
#if defined(__x86_64__)
  using namespace rlx::cpu;
  if (machine_has_avx512()) {
    std::printf(";avx512");
    if (machine_has_avx512vnni()) std::printf(";avx512vnni");
    if (machine_has_avx512bf16()) std::printf(";avx512bf16");
  } else if (machine_has_avx2()) {
    std::printf(";avx2");
  }
#endif
  return 0;
}
