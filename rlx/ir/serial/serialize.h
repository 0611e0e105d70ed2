// The canonical binary encoding of graphs, for files and fingerprints.
//
// Layout (integers are little-endian; strings and lists begin with a u32 length):
//   "RLXGRAPH", u32 version, u64 bytes that follow the header, u64 low and u64 high half of their xxh3-128, then a
//   graph: name, symbols {name, min, max, divisor}, nodes, outputs {u32 node, u32 result}, state updates {name, value}
//   node: op name, operands, attributes {name, type, value}, result shapes, origin {label, file, line, pass, from}
// Ops, attributes and enumerators are stored by name, so reordering an enum does not change files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// Version 1 had no checksum. No release wrote it, and it is refused.
inline constexpr std::uint32_t kGraphBytesVersion = 2;
/// Bytes before the graph itself: magic, version, size, checksum.
inline constexpr std::size_t kGraphBytesHeaderSize = 36;

/// Receives encoded bytes in parts.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(const void* data, std::size_t size) = 0;
};

/// The parts of a graph that an encoding holds.
enum class EncodeParts : std::uint8_t {
  All,        // everything, for files
  Content,    // without graph names and origins, for fingerprints
  Structure,  // Content without the elements of the graph's own constants; those in bodies of control flow remain
};
/// Writes the body of the encoding (no magic or version) to `sink`. Large constants are not copied.
void encode_graph(const Graph& g, EncodeParts parts, ByteSink& sink);

/// Writes the computation of node `n` without its operands: op, every attribute, result shapes.
void encode_node(const Node& n, ByteSink& sink);

/// The versioned binary form of `g`.
std::vector<std::byte> to_bytes(const Graph& g);
/// The header of the binary form for the encoded graph `body`.
std::vector<std::byte> graph_bytes_header(std::span<const std::byte> body);
/// The graph in `bytes`. Constants are copied out. Throws BadFile naming `file`, the offset and what was expected. Size
/// and checksum are compared before decoding: a changed, missing or added byte is reported as damage. Shapes are
/// checked against inference.
Graph from_bytes(std::span<const std::byte> bytes, std::string_view file = "graph bytes");

}  // namespace rlx
