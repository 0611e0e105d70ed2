// Random bits: each element from its own counter, in any order.
#include <algorithm>
#include <type_traits>

#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/math/threefry.h"
#include "rlx/ir/ops/random.h"

namespace rlx::cpu {
namespace {

struct RngStep {
  const KernelTable* kernels = nullptr;
  const std::uint32_t* key = nullptr;
  const std::uint64_t* first = nullptr;  // null: 0
  bool one_first = false;
  std::int64_t total = 0, each = 1, per_chunk = 1;
  int bits = 32;
  void* y = nullptr;
};
// Writes `n` elements of key k from its element `at` on.
template <class T>
void fill_bits(const RngStep& s, std::int64_t k, std::int64_t at, std::int64_t n, T* y) {
  const std::uint32_t k0 = s.key[2 * k], k1 = s.key[2 * k + 1];
  const std::uint64_t first = (s.first ? s.first[s.one_first ? 0 : k] : 0) + static_cast<std::uint64_t>(at);
  if constexpr (std::is_same_v<T, std::uint32_t>) {
    s.kernels->threefry_u32(k0, k1, first, n, y);
  } else {
    for (std::int64_t i = 0; i < n; ++i)
      y[i] = static_cast<T>(threefry_bits(k0, k1, first + static_cast<std::uint64_t>(i), s.bits));
  }
}
template <class T>
void fill_keys(const RngStep& s, std::int64_t begin, std::int64_t end) {
  for (std::int64_t n = 0; begin < end; begin += n) {
    n = std::min(end - begin, s.each - begin % s.each);
    fill_bits(s, begin / s.each, begin % s.each, n, static_cast<T*>(s.y) + begin);
  }
}
void run_rng(const RngStep& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.per_chunk, end = std::min(s.total, begin + s.per_chunk);
  switch (s.bits) {
    case 8: return fill_keys<std::uint8_t>(s, begin, end);
    case 16: return fill_keys<std::uint16_t>(s, begin, end);
    case 32: return fill_keys<std::uint32_t>(s, begin, end);
    default: return fill_keys<std::uint64_t>(s, begin, end);
  }
}
void lower_rng(LowerContext& c) {
  const View key = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<RngStep>();
  s.kernels = &c.kernels();
  s.total = y.elements();
  s.each = s.total / (key.elements() / 2);
  s.bits = dtype_bits(y.dtype);
  s.per_chunk = c.grain(s.bits == 32 ? 8192 : 1024);
  c.point(s.key, key);
  if (c.num_inputs() > 1) {
    s.one_first = c.in(1).rank() == 0;
    c.point(s.first, c.in(1));
  }
  c.point(s.y, y);
  c.step<run_rng>(s, (s.total + s.per_chunk - 1) / s.per_chunk,
                  (s.bits == 32 ? 3.0 : 15.0) * static_cast<double>(s.total));
}

constexpr KernelEntry kRandomEntries[] = {{OpKind::RngBits, "threefry", never_refuses, lower_rng}};

}  // namespace

std::span<const KernelEntry> random_entries() { return kRandomEntries; }

}  // namespace rlx::cpu
