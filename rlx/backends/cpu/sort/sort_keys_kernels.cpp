// Sort keys as numbers of the sort kernels, counting and radix argsort, and moves by the resulting order.
#include "rlx/backends/cpu/sort/sort_keys_kernels.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "rlx/backends/cpu/generic/generic.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t kCountedByte = 256, kCountedPair = 65536;

// Maps an unsigned integer to the signed one of the same order, and back.
template <class W>
W turned(W v) {
  if constexpr (std::is_integral_v<W>)
    return static_cast<W>(static_cast<std::make_unsigned_t<W>>(v) ^ std::make_unsigned_t<W>{1} << (8 * sizeof(W) - 1));
  else
    return v;
}

// f(i, offset of element i). Contiguous elements have a loop of their own, which is vectorised.
template <class F>
void each_place(std::int64_t n, std::int64_t step, F f) {
  if (step == 1)
    for (std::int64_t i = 0; i < n; ++i) f(i, i);
  else
    for (std::int64_t i = 0; i < n; ++i) f(i, i * step);
}
template <class W, class E>
void load_as(const void* x, std::int64_t at, std::int64_t step, std::int64_t n, W* out) {
  const E* p = static_cast<const E*>(x) + at;
  each_place(n, step, [p, out](std::int64_t i, std::int64_t from) {
    out[i] = static_cast<W>(p[from]);
    if constexpr (sizeof(E) == sizeof(W) && std::is_unsigned_v<E>) out[i] = turned(out[i]);
  });
}
template <class W, class E>
void store_as(const W* in, std::int64_t n, void* y, std::int64_t at, std::int64_t step) {
  E* p = static_cast<E*>(y) + at;
  each_place(n, step, [p, in](std::int64_t i, std::int64_t to) {
    if constexpr (sizeof(E) == sizeof(W) && std::is_unsigned_v<E>)
      p[to] = static_cast<E>(turned(in[i]));
    else
      p[to] = static_cast<E>(in[i]);
  });
}
void load_bools(const void* x, std::int64_t at, std::int64_t step, std::int64_t n, std::int32_t* out) {
  const auto* p = static_cast<const std::uint8_t*>(x) + at;
  each_place(n, step, [p, out](std::int64_t i, std::int64_t from) { out[i] = p[from] != 0 ? 1 : 0; });
}
// F16 or BF16 as integers of the same order: -0 counts as 0, NaN is above all.
template <int kInfinity>
void load_keys_16bit(const void* x, std::int64_t at, std::int64_t step, std::int64_t n, std::int32_t* out) {
  const auto* p = static_cast<const std::int16_t*>(x) + at;
  each_place(n, step, [p, out](std::int64_t i, std::int64_t from) {
    const std::int32_t bits = p[from], magnitude = bits & 0x7fff;
    out[i] = magnitude > kInfinity ? 0x7fff : bits < 0 ? -magnitude : magnitude;
  });
}

template <class E>
void move_by(const SortedSlice& l, const void* x, void* y) {
  const std::int64_t step = l.step, mask = l.mask, n = l.n, base = l.base;
  const std::int64_t* const order = l.order;
  const E* const from = static_cast<const E*>(x) + base;
  E* const to = static_cast<E*>(y) + base;
  each_place(n, step, [=](std::int64_t i, std::int64_t at) { to[at] = from[(order[i] & mask) * step]; });
}
struct OrderedBytes16 {
  std::uint64_t a, b;
};
template <class P>
void put_places_as(const SortedSlice& l, void* y) {
  P* const to = static_cast<P*>(y) + l.base;
  const std::int64_t* const order = l.order;
  const std::int64_t mask = l.mask;
  each_place(l.n, l.step, [=](std::int64_t i, std::int64_t at) { to[at] = static_cast<P>(order[i] & mask); });
}
template <class W>
void make_integer_keys(const W* x, std::int64_t n, bool descending, W* keys) {
  const W flip = descending ? W(-1) : W(0);
  for (std::int64_t i = 0; i < n; ++i) keys[i] = x[i] ^ flip;
}

struct Range {
  std::int32_t low = 0;
  std::int64_t extent = 0;
};
Range range_of(const std::int32_t* keys, std::int64_t n) {
  std::int32_t low = std::numeric_limits<std::int32_t>::max(), high = std::numeric_limits<std::int32_t>::min();
  for (std::int64_t i = 0; i < n; ++i) low = std::min(low, keys[i]), high = std::max(high, keys[i]);
  return {low, std::int64_t{high} - low};
}
// Counting sort: put(position in the order, i) for keys with at most 256 values from `low` on.
template <class F>
void count_places(const std::int32_t* keys, std::int64_t n, std::int32_t low, F put) {
  std::int64_t at[kCountedByte] = {};
  for (std::int64_t i = 0; i < n; ++i) ++at[keys[i] - low];
  std::int64_t sum = 0;
  for (std::int64_t& count : at) sum += std::exchange(count, sum);
  for (std::int64_t i = 0; i < n; ++i) put(at[keys[i] - low]++, i);
}

// Many 4-byte keys: LSD radix sort by digits of 11 bits, whose 2048 write positions stay in the caches. An entry has
// the index and the rest of its key. Three passes over entries of 8 bytes take a third of the time of a quicksort of
// them.
constexpr std::int64_t kFewestDigits = 8192;
void order_by_digits(const std::int32_t* keys, std::int64_t n, std::int32_t low, std::int64_t range,
                     std::int64_t* order, std::int64_t* scratch) {
  constexpr int kBits = 11, kDigits = 1 << kBits;
  std::uint32_t at[3][kDigits] = {};
  const auto key = [keys, low](std::int64_t i) {
    return static_cast<std::uint32_t>(keys[i]) - static_cast<std::uint32_t>(low);
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t k = key(i);
    ++at[0][k & (kDigits - 1)];
    ++at[1][k >> kBits & (kDigits - 1)];
    ++at[2][k >> 2 * kBits];
  }
  for (auto& digit : at) {
    std::uint32_t sum = 0;
    for (std::uint32_t& count : digit) sum += std::exchange(count, sum);
  }
  const bool twice = range >> 2 * kBits == 0;
  std::int64_t *first = twice ? scratch : order, *second = twice ? order : scratch;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t k = key(i);
    first[at[0][k & (kDigits - 1)]++] = std::int64_t{k >> kBits} << 32 | i;
  }
  for (std::int64_t i = 0; i < n; ++i) second[at[1][first[i] >> 32 & (kDigits - 1)]++] = first[i];
  for (std::int64_t i = 0; i < n && !twice; ++i) order[at[2][second[i] >> (32 + kBits)]++] = second[i];
}

}  // namespace

template <class W>
KeyLine<W> key_line(DType t, Isa isa) {
  const auto of = []<class E>(E) { return KeyLine<W>{load_as<W, E>, store_as<W, E>}; };
  if constexpr (std::is_same_v<W, float>) {
    return t == DType::F32 ? of(float{}) : KeyLine<W>{nullptr, nullptr, t, &typed_reduce_kernels(isa)};
  } else if constexpr (std::is_same_v<W, double>) {
    return of(double{});
  } else if constexpr (std::is_same_v<W, std::int64_t>) {
    return t == DType::I64 ? of(std::int64_t{}) : of(std::uint64_t{});
  } else {
    switch (t) {
      case DType::Bool: return {load_bools, store_as<W, std::uint8_t>};
      case DType::F16: return {load_keys_16bit<0x7c00>};
      case DType::BF16: return {load_keys_16bit<0x7f80>};
      case DType::I8: return of(std::int8_t{});
      case DType::U8: return of(std::uint8_t{});
      case DType::I16: return of(std::int16_t{});
      case DType::U16: return of(std::uint16_t{});
      case DType::U32: return of(std::uint32_t{});
      default: return of(std::int32_t{});
    }
  }
}
template KeyLine<float> key_line(DType, Isa);
template KeyLine<double> key_line(DType, Isa);
template KeyLine<std::int32_t> key_line(DType, Isa);
template KeyLine<std::int64_t> key_line(DType, Isa);

void make_keys(const SortKernels&, const std::int32_t* x, std::int64_t n, bool descending, std::int32_t* keys) {
  make_integer_keys(x, n, descending, keys);
}
void make_keys(const SortKernels&, const std::int64_t* x, std::int64_t n, bool descending, std::int64_t* keys) {
  make_integer_keys(x, n, descending, keys);
}

std::int64_t order_keys(const SortKernels& k, const std::int32_t* keys, std::int64_t n, std::int64_t* order,
                        std::int64_t* scratch) {
  // Keys of one or two bytes use counting sort, one byte at a time from the lower one.
  const Range keyed = range_of(keys, n);
  const std::int32_t low = keyed.low;
  const std::int64_t range = keyed.extent;
  if (n >= kCountedByte && range < kCountedByte) {
    count_places(keys, n, low, [order](std::int64_t at, std::int64_t i) { order[at] = i; });
    return 0xFFFFFFFF;
  }
  if (n >= 4 * kCountedByte && range < kCountedPair) {
    std::int64_t lower[kCountedByte] = {}, upper[kCountedByte] = {}, sums[2] = {};
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int32_t key = keys[i] - low;
      ++lower[key & 255];
      ++upper[key >> 8];
    }
    for (int d = 0; d < kCountedByte; ++d) {
      sums[0] += std::exchange(lower[d], sums[0]);
      sums[1] += std::exchange(upper[d], sums[1]);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int32_t key = keys[i] - low;
      scratch[lower[key & 255]++] = std::int64_t{key >> 8} << 32 | i;
    }
    for (std::int64_t i = 0; i < n; ++i) order[upper[scratch[i] >> 32]++] = scratch[i];
    return 0xFFFFFFFF;
  }
  if (n >= kFewestDigits) {
    order_by_digits(keys, n, low, range, order, scratch);
    return 0xFFFFFFFF;
  }
  k.pack_i32(keys, n, order);
  k.sort_i64(order, n, scratch);
  return 0xFFFFFFFF;
}
// Packs as many upper bits of keys as indices leave room for. Keys with equal upper bits are then sorted among
// themselves.
std::int64_t order_keys(const SortKernels& k, const std::int64_t* keys, std::int64_t n, std::int64_t* order,
                        std::int64_t* scratch) {
  if (n == 0) return 0;
  std::int64_t low = keys[0], high = keys[0];
  for (std::int64_t i = 1; i < n; ++i) low = std::min(low, keys[i]), high = std::max(high, keys[i]);
  const std::uint64_t least = static_cast<std::uint64_t>(low), range = static_cast<std::uint64_t>(high) - least;
  const int places = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1))));
  const int lost = std::max(0, static_cast<int>(std::bit_width(range)) + places - 64);
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  for (std::int64_t i = 0; i < n; ++i)
    order[i] = static_cast<std::int64_t>(
        (((static_cast<std::uint64_t>(keys[i]) - least) >> lost) << places | static_cast<std::uint64_t>(i)) ^ kSign);
  k.sort_i64(order, n, scratch);
  const std::int64_t mask = (std::int64_t{1} << places) - 1;
  if (lost == 0) return mask;
  const auto before = [keys, mask](std::int64_t a, std::int64_t b) {
    const std::int64_t ka = keys[a & mask], kb = keys[b & mask];
    return ka != kb ? ka < kb : (a & mask) < (b & mask);
  };
  for (std::int64_t i = 0; i < n;) {
    std::int64_t end = i + 1;
    while (end < n && order[end] >> places == order[i] >> places) ++end;
    if (end - i > 1) std::sort(order + i, order + end, before);
    i = end;
  }
  return mask;
}

bool put_counted_places(const std::int32_t* keys, std::int64_t n, int bits, void* y, std::int64_t base,
                        std::int64_t step) {
  if (n < kCountedByte) return false;
  const Range range = range_of(keys, n);
  if (range.extent >= kCountedByte) return false;
  if (bits == 32) {
    auto* const to = static_cast<std::int32_t*>(y) + base;
    count_places(keys, n, range.low,
                 [to, step](std::int64_t at, std::int64_t i) { to[at * step] = static_cast<std::int32_t>(i); });
  } else {
    auto* const to = static_cast<std::int64_t*>(y) + base;
    count_places(keys, n, range.low, [to, step](std::int64_t at, std::int64_t i) { to[at * step] = i; });
  }
  return true;
}

void move_ordered(const SortedSlice& line, int bits, const void* x, void* y) {
  switch (bits) {
    case 8: return move_by<std::uint8_t>(line, x, y);
    case 16: return move_by<std::uint16_t>(line, x, y);
    case 32: return move_by<std::uint32_t>(line, x, y);
    case 64: return move_by<std::uint64_t>(line, x, y);
    case 128: return move_by<OrderedBytes16>(line, x, y);
    default: break;
  }
  for (std::int64_t i = 0; i < line.n; ++i)
    generic_move_row(bits, x, line.base + (line.order[i] & line.mask) * line.step, y, line.base + i * line.step, 1);
}
void put_places(const SortedSlice& line, int bits, void* y) {
  if (bits == 32)
    put_places_as<std::int32_t>(line, y);
  else
    put_places_as<std::int64_t>(line, y);
}

std::int64_t counted_numbers(DType t, std::int64_t n) {
  if (!is_int(t) && t != DType::Bool) return 0;
  if (dtype_bits(t) == 16) return n >= 8 * kCountedPair ? kCountedPair : 0;
  return dtype_bits(t) < 16 && n >= kCountedByte ? kCountedByte : 0;
}
// Separate counts for even and odd positions, because equal neighbours would wait for each other.
void count_numbers(std::int32_t* x, std::int64_t n, std::int64_t numbers, std::int32_t* counts) {
  std::int32_t* const odd = counts + numbers;
  std::fill_n(counts, 2 * numbers, 0);
  std::int32_t low = x[0];
  for (std::int64_t i = 1; i < n; ++i) low = std::min(low, x[i]);
  std::int64_t i = 0;
  for (; i + 1 < n; i += 2) ++counts[x[i] - low], ++odd[x[i + 1] - low];
  if (i < n) ++counts[x[i] - low];
  for (std::int64_t d = 0; d < numbers; ++d) x = std::fill_n(x, counts[d] + odd[d], low + static_cast<std::int32_t>(d));
}

}  // namespace rlx::cpu
