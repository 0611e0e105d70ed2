// The identity of graphs by content: a 128-bit fingerprint, and exact structural equality.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

struct LirModule;

/// xxh3-128 of a canonical encoding. It is the same on every run, compiler and machine.
struct Fingerprint {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
  /// 32 lower-case hexadecimal digits.
  std::string text() const;
};

/// The fingerprint of all that determines the results of `g`: ops with every attribute, constants, sub-graphs, shapes,
/// symbols, leaf names, outputs and state updates. The graph's name, labels and origins are not part of it.
Fingerprint fingerprint(const Graph& g);
/// The same without the elements of the graph's own constants: graphs of one structure differ in these alone, so one
/// can be the program of all of them, with the constants as inputs.
Fingerprint structure_fingerprint(const Graph& g);
/// The fingerprint of each node's computation from the leaves: its op with every attribute, its shapes and the
/// fingerprints of its operands. Nodes with equal fingerprints, in one graph or two, have equal results when leaves of
/// the same name do.
std::vector<Fingerprint> node_fingerprints(const Graph& g);
/// The fingerprint of a planned program: both graphs and the whole buffer plan.
Fingerprint fingerprint(const LirModule& lir);
using LirFingerprint = Fingerprint;
/// The fingerprint of raw bytes.
Fingerprint fingerprint_bytes(const void* data, std::size_t size);

/// The exact equality that fingerprints approximate: the same nodes in the same order.
bool same_graph(const Graph& a, const Graph& b);

}  // namespace rlx
