// Random bits of every instruction set against the scalar code.
#include <cstdint>
#include <vector>

#include "rlx/ir/math/threefry.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

TEST_CASE("threefry: vectors of counters give the bits of each, across the wrap of the low word") {
  constexpr std::uint32_t kMark = 0xdeadbeef;
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    for (const std::uint64_t first : {0ULL, 5ULL, 0xfffffff8ULL, 0x1fffffffbULL, ~0ULL - 20})
      for (const std::int64_t n : {0, 1, 3, 4, 15, 16, 17, 40}) {
        std::vector<std::uint32_t> y(static_cast<std::size_t>(n) + 1, kMark);
        t->threefry_u32(0x13198a2eU, 0x03707344U, first, n, y.data());
        for (std::int64_t i = 0; i < n; ++i) {
          const std::uint64_t at = first + static_cast<std::uint64_t>(i);
          CHECK(y[static_cast<std::size_t>(i)] == threefry_bits(0x13198a2eU, 0x03707344U, at, 32));
        }
        CHECK(y.back() == kMark);
      }
  }
}

}  // namespace
}  // namespace rlx::cpu::test
