// Kernels of products of block-quantised weights, once per instruction set, with sums of bytes as one instruction too.
#include "rlx/backends/cpu/kernels/strips.h"

#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernels/families.h"
#include "rlx/error.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define RLX_KERNEL_FILE "rlx/backends/cpu/kernels/strips.inc"
#define RLX_WITH_BYTE_DOT
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
namespace {

#if defined(__x86_64__)
// Tiles are the system's to give: they make what it saves of a thread 8 KB larger. Asked for once.
bool has_tiles() {
#if defined(__linux__)
  static const bool has = [] {
    constexpr unsigned kTile = 1U << 24, kInt8 = 1U << 25;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTile) != 0 && (d & kInt8) != 0 &&
           syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return has;
#else
  return false;
#endif
}
#endif

}  // namespace

std::span<const ByteProducts> byte_products(Isa isa) {
  static constexpr ByteProducts kAll[] = {ByteProducts::Pairs, ByteProducts::Dot, ByteProducts::Tiles};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == Isa::Avx512 && isa_supported(isa) && __builtin_cpu_supports("avx512vnni") != 0)
    return std::span(kAll).first(has_tiles() ? 3 : 2);
#else
  (void)isa;
#endif
  return std::span(kAll).first(1);
}

const StripKernels& strip_kernels(Isa isa, ByteProducts products) {
  if (products > byte_products(isa).back())
    throw Error(ErrorCode::Unsupported,
                concat_text("this machine has no ", products == ByteProducts::Dot ? "dot products" : "tiles",
                            " of bytes beside ", isa_name(isa)));
#if defined(__x86_64__)
  switch (isa) {
    case Isa::Avx512:
      return products == ByteProducts::Tiles ? avx512vnni::tile_table()
             : products == ByteProducts::Dot ? avx512vnni::strip_table()
                                             : avx512::strip_table();
    case Isa::Avx2: return avx2::strip_table();
    default: return sse4::strip_table();
  }
#elif defined(__aarch64__)
  return neon::strip_table();
#else
  return generic::strip_table();
#endif
}

}  // namespace rlx::cpu
