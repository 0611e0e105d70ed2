// Damaged binary graphs with a matching header, so that they pass the checksum and reach the decoder.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "rlx/ir/serial/serialize.h"

namespace rlx::test {

/// `bytes` with a new header for the bytes after it. `bytes` must contain a whole header.
inline std::vector<std::byte> sealed(std::vector<std::byte> bytes) {
  const std::vector<std::byte> header = graph_bytes_header(std::span(bytes).subspan(kGraphBytesHeaderSize));
  std::copy(header.begin(), header.end(), bytes.begin());
  return bytes;
}

}  // namespace rlx::test
