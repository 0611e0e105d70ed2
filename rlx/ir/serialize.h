// The canonical binary encoding of graphs: files, and what fingerprints hash.
//
// Layout (all integers little-endian, strings and lists with a u32 length in front):
//   "RLXGRAPH" u32 version, then a graph:
//   name, symbols {name, min, max, divisor}, nodes, outputs {u32 node, u32 result}, state updates {name, value}
//   node: op name, operands, attributes {name, type, value}, result shapes, origin {label, file, line, pass, from}
// Ops, attributes and enumerators are stored by name, so that reordering an enum changes no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

inline constexpr std::uint32_t kGraphBytesVersion = 1;

/// Receives encoded bytes piece by piece.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(const void* data, std::size_t size) = 0;
};

/// Which parts of a graph an encoding holds.
enum class EncodeParts : std::uint8_t {
  All,      // everything, for files
  Content,  // without graph names and origins, for fingerprints
};
/// Writes the body of the encoding (no magic or version) to `sink`; big constants go through without a copy.
void encode_graph(const Graph& g, EncodeParts parts, ByteSink& sink);

/// The versioned binary form of `g`.
std::vector<std::byte> to_bytes(const Graph& g);
/// The graph in `bytes`; constants are copied out. Throws BadFile naming `file`, the offset and what was expected;
/// shapes are checked against inference.
Graph from_bytes(std::span<const std::byte> bytes, std::string_view file = "graph bytes");

}  // namespace rlx
