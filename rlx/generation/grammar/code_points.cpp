// Code point sets: normalisation, complement, and the split into UTF-8 byte ranges.
#include "rlx/generation/grammar/code_points.h"

#include <algorithm>

namespace rlx {
namespace {

constexpr char32_t kBelowSurrogates = 0xD7FF, kAboveSurrogates = 0xE000;

std::array<std::uint8_t, 4> encode(char32_t c, std::size_t length) {
  static constexpr std::array<std::uint8_t, 5> kLead{0, 0, 0xC0, 0xE0, 0xF0};
  std::array<std::uint8_t, 4> bytes{};
  for (std::size_t i = length; i-- > 1; c >>= 6) bytes[i] = static_cast<std::uint8_t>(0x80 | (c & 0x3F));
  bytes[0] = static_cast<std::uint8_t>(kLead[length] | c);
  return bytes;
}

// Splits [first, last], whose characters have `length` bytes, until all bytes after the common prefix are full ranges.
void add_sequences(char32_t first, char32_t last, std::size_t length, std::vector<Utf8Sequence>& out) {
  for (std::size_t tail = 1; tail < length; ++tail) {
    const char32_t low_bits = (char32_t{1} << 6 * tail) - 1;
    if ((first & ~low_bits) == (last & ~low_bits)) break;  // they differ only in the bytes of `tail`
    if ((first & low_bits) != 0) {
      add_sequences(first, first | low_bits, length, out);
      add_sequences((first | low_bits) + 1, last, length, out);
      return;
    }
    if ((last & low_bits) != low_bits) {
      add_sequences(first, (last & ~low_bits) - 1, length, out);
      add_sequences(last & ~low_bits, last, length, out);
      return;
    }
  }
  Utf8Sequence s;
  s.size = length;
  const auto low = encode(first, length), high = encode(last, length);
  for (std::size_t i = 0; i < length; ++i) s.bytes[i] = {low[i], high[i]};
  out.push_back(s);
}

}  // namespace

CodePointSet normalized(std::vector<CodePointRange> ranges) {
  CodePointSet valid;
  for (const CodePointRange& r : ranges) {
    const char32_t last = std::min(r.last, kLastCodePoint);
    if (r.first > last) continue;
    if (r.first <= kBelowSurrogates) valid.push_back({r.first, std::min(last, kBelowSurrogates)});
    if (last >= kAboveSurrogates) valid.push_back({std::max(r.first, kAboveSurrogates), last});
  }
  std::sort(valid.begin(), valid.end(),
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  CodePointSet set;
  for (const CodePointRange& r : valid) {
    if (!set.empty() && r.first <= set.back().last + 1)
      set.back().last = std::max(set.back().last, r.last);
    else
      set.push_back(r);
  }
  return set;
}

CodePointSet complement(const CodePointSet& set) {
  std::vector<CodePointRange> gaps;
  char32_t next = 0;
  for (const CodePointRange& r : set) {
    if (r.first > next) gaps.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kLastCodePoint) gaps.push_back({next, kLastCodePoint});
  return normalized(std::move(gaps));
}

CodePointSet intersection(const CodePointSet& a, const CodePointSet& b) {
  CodePointSet both;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const char32_t first = std::max(a[i].first, b[j].first), last = std::min(a[i].last, b[j].last);
    if (first <= last) both.push_back({first, last});
    (a[i].last < b[j].last ? i : j) += 1;
  }
  return both;
}

std::vector<Utf8Sequence> utf8_sequences(const CodePointSet& set) {
  static constexpr std::array<char32_t, 5> kEnds{0, 0x7F, 0x7FF, 0xFFFF, kLastCodePoint};
  std::vector<Utf8Sequence> out;
  for (const CodePointRange& r : set)
    for (std::size_t length = 1; length <= 4; ++length) {
      const char32_t low = length == 1 ? 0 : kEnds[length - 1] + 1;
      const char32_t first = std::max(r.first, low), last = std::min(r.last, kEnds[length]);
      if (first <= last) add_sequences(first, last, length, out);
    }
  return out;
}

}  // namespace rlx
