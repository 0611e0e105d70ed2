// Sets of code points, and the byte sequences that UTF-8 writes them as.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace rlx {

struct CodePointRange {
  char32_t first = 0, last = 0;
  bool operator==(const CodePointRange&) const = default;
};
/// Ranges that are sorted, disjoint, not adjacent and hold no surrogates, once `normalized` made them so.
using CodePointSet = std::vector<CodePointRange>;

constexpr char32_t kLastCodePoint = 0x10FFFF;

/// The same code points in the form of a set; surrogates, which no text holds, are left out.
CodePointSet normalized(std::vector<CodePointRange> ranges);
/// All code points but those of `set`.
CodePointSet complement(const CodePointSet& set);
/// Code points of both.
CodePointSet intersection(const CodePointSet& a, const CodePointSet& b);

struct Utf8Range {
  std::uint8_t first = 0, last = 0;
  auto operator<=>(const Utf8Range&) const = default;
};
/// Up to four ranges of bytes; every choice of a byte from each is one character.
struct Utf8Sequence {
  std::array<Utf8Range, 4> bytes{};
  std::size_t size = 0;
};
/// The sequences that together are the characters of a set.
std::vector<Utf8Sequence> utf8_sequences(const CodePointSet& set);

}  // namespace rlx
