// Damaged index files whose checksums are right again, so that a reader meets what is behind them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/serial/fingerprint.h"

namespace rlx::test {

inline std::uint64_t index_number(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t v = 0;
  for (std::size_t i = count; i-- > 0;)
    v = v << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
  return v;
}

/// The number after `"key":` in the header; 0 without one.
inline std::uint64_t index_head_number(std::string_view head, std::string_view key) {
  const std::size_t at = head.find("\"" + std::string(key) + "\":");
  std::uint64_t v = 0;
  if (at != head.npos)
    for (std::size_t i = at + key.size() + 3; i < head.size() && head[i] >= '0' && head[i] <= '9'; ++i)
      v = v * 10 + static_cast<std::uint64_t>(head[i] - '0');
  return v;
}

/// The bytes with the checksums of tables, vectors and header that the content has. `from` in the header becomes `to`
/// before its own.
inline std::string resealed_index(const std::string& bytes, std::string_view from = {}, std::string_view to = {}) {
  constexpr std::size_t kFixed = 16, kSum = 16;
  const auto padded = [](std::size_t size) { return (size + 63) / 64 * 64; };
  const std::uint64_t old_size = index_number(bytes, 12, 4);
  if (bytes.size() < kFixed || old_size > bytes.size() - kFixed) return bytes;
  std::string head = bytes.substr(kFixed, old_size);
  if (const std::size_t place = from.empty() ? head.npos : head.find(from); place != head.npos)
    head.replace(place, from.size(), to);
  std::string out = bytes.substr(0, 12);
  for (int i = 0; i < 4; ++i) out += static_cast<char>(head.size() >> (8 * i) & 0xFF);
  out.resize(padded(kFixed + head.size() + kSum), '\0');
  const std::size_t old_start = padded(kFixed + old_size + kSum);
  if (old_start < bytes.size()) out += bytes.substr(old_start);

  const auto sum_of = [](std::string_view part) { return fingerprint_bytes(part.data(), part.size()); };
  const auto raw = [](const Fingerprint& f) {
    std::string sum;
    for (const std::uint64_t half : {f.low, f.high})
      for (int i = 0; i < 8; ++i) sum += static_cast<char>(half >> (8 * i) & 0xFF);
    return sum;
  };
  // Sections as the header describes them, as far as they are there.
  std::size_t at = kFixed + head.size() + kSum;
  const auto section = [&](std::uint64_t length) {
    at = std::min(padded(at), out.size());
    const std::size_t size = std::min<std::uint64_t>(length, out.size() - at);
    at += size;
    return raw(sum_of(std::string_view(out).substr(at - size, size)));
  };
  const std::uint64_t passages = index_head_number(head, "num_passages");
  const bool f16 = head.find("\"vectors\":\"f16\"") != head.npos;
  std::string tables = section(index_head_number(head, "num_files") * 64);
  tables += section(index_head_number(head, "num_places") * 8);
  tables += section(passages * 32);
  tables += section(index_head_number(head, "path_bytes"));
  (void)section(index_head_number(head, "text_bytes"));
  std::string vectors = section(f16 ? 0 : passages * 4);
  vectors += section(passages * index_head_number(head, "width") * (f16 ? 2 : 1));
  const auto write = [&](std::string_view key, const std::string& text) {
    const std::size_t place = head.find("\"" + std::string(key) + "\":\"");
    if (place != head.npos && place + key.size() + 4 + text.size() <= head.size())
      head.replace(place + key.size() + 4, text.size(), text);
  };
  write("tables_checksum", sum_of(tables).text());
  write("vectors_checksum", sum_of(vectors).text());
  out.replace(kFixed, head.size(), head);
  out.replace(kFixed + head.size(), kSum, raw(sum_of(std::string_view(out).substr(0, kFixed + head.size()))));
  return out;
}

}  // namespace rlx::test
