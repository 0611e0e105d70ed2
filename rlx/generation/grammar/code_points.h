// Sets of code points, and their UTF-8 byte sequences.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace rlx {

struct CodePointRange {
  char32_t first = 0, last = 0;
  bool operator==(const CodePointRange&) const = default;
};
/// Ranges that are sorted, disjoint, not adjacent and without surrogates, after `normalized`.
using CodePointSet = std::vector<CodePointRange>;

constexpr char32_t kLastCodePoint = 0x10FFFF;

/// Normalises ranges to a set. Surrogates, which no text holds, are dropped.
CodePointSet normalized(std::vector<CodePointRange> ranges);
/// All code points but those of `set`.
CodePointSet complement(const CodePointSet& set);
/// Code points of both.
CodePointSet intersection(const CodePointSet& a, const CodePointSet& b);

struct Utf8Range {
  std::uint8_t first = 0, last = 0;
  auto operator<=>(const Utf8Range&) const = default;
};
/// Up to four byte ranges. Every choice of one byte from each range is one character.
struct Utf8Sequence {
  std::array<Utf8Range, 4> bytes{};
  std::size_t size = 0;
};
/// Byte sequences that together are exactly the characters of a set.
std::vector<Utf8Sequence> utf8_sequences(const CodePointSet& set);

}  // namespace rlx
