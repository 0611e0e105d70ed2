// Content identity of graphs: a 128-bit fingerprint and exact structural equality.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

struct LirModule;

/// xxh3-128 of a canonical encoding; the same on every run, compiler and machine.
struct Fingerprint {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
  /// 32 lower-case hexadecimal digits.
  std::string text() const;
};

/// Fingerprint of everything that decides what `g` computes: ops with every attribute, constants, sub-graphs, shapes,
/// symbols, leaf names, outputs and state updates. The graph's name, labels and origins do not count.
Fingerprint fingerprint(const Graph& g);
/// Of each node of `g`, what it computes from the leaves: its op with every attribute, its shapes and the fingerprints
/// of its operands. Nodes with equal ones, of one graph or of two, have equal results wherever leaves of one name do.
std::vector<Fingerprint> node_fingerprints(const Graph& g);
/// Of a planned program: both graphs and the whole buffer plan.
Fingerprint fingerprint(const LirModule& lir);
using LirFingerprint = Fingerprint;
/// Of raw bytes.
Fingerprint fingerprint_bytes(const void* data, std::size_t size);

/// Exactly the equality that `fingerprint` approximates: the same nodes in the same order.
bool same_graph(const Graph& a, const Graph& b);

}  // namespace rlx
