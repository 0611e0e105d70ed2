// What a target runs: sets of op kinds, and the question of one node.
#pragma once

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "rlx/ir/op_kind.h"

namespace rlx {

class Graph;
class OpSet;
struct NodeId;

/// What an ElementwiseRegion must keep to, so that one past it is refused before it is built; 0: not known.
struct RegionLimits {
  int inputs = 0;  // operands
  int alive = 0;   // values and operands alive at once when its ops run in order
};

/// What can be asked of a target's kernels about the nodes of a graph. Passes and legalisation see no more of a target.
class Claims {
 public:
  virtual ~Claims() = default;
  /// The kinds that have a kernel for some dtypes and shapes.
  virtual const OpSet& kinds() const = 0;
  /// Null when this very node can be run; else why not: "its operands are not all f32". The text is static.
  virtual const char* refuses(const Graph& g, NodeId id) const = 0;
  /// True when a node's kind alone decides, so that nodes need not be built to be asked about.
  virtual bool by_kind() const { return false; }
  /// True for a node that is refused, but can be run by its reference rule when it has no decomposition.
  virtual bool on_host(const Graph&, NodeId) const { return false; }
  /// True for a branch or loop that is refused, but whose bodies can run as programs of their own.
  virtual bool host_controlled(const Graph&, NodeId) const { return false; }
  /// True when the node's kernel reads that operand, the result of a Dequantize, from its codes, or makes the codes of
  /// a Quantize itself.
  virtual bool reads_encoded(const Graph&, NodeId, int /*operand*/) const { return false; }
  /// True for a target that stands for several devices, on which labels place nodes.
  virtual bool places() const { return false; }
  /// The device that a label places nodes on, as a number; 0 for one that places none. Nothing is joined across them.
  virtual std::uint32_t place_of(std::string_view /*label*/) const { return 0; }
  virtual RegionLimits region_limits() const { return {}; }
  /// True where a branch is a part of the program like any other, so that what is written out may save work by one.
  virtual bool branches_freely() const { return false; }

  bool has(OpKind kind) const;
  bool claims(const Graph& g, NodeId id) const { return refuses(g, id) == nullptr; }

 protected:
  Claims() = default;
  Claims(const Claims&) = default;
  Claims& operator=(const Claims&) = default;
};

/// A set of op kinds; as claims, it takes every node of them.
class OpSet final : public Claims {
 public:
  OpSet() = default;
  OpSet(std::initializer_list<OpKind> list) {
    for (OpKind k : list) add(k);
  }
  /// Every kind.
  static const OpSet& everything();
  void add(OpKind kind) { kinds_.set(index(kind)); }
  void remove(OpKind kind) { kinds_.reset(index(kind)); }
  bool has(OpKind kind) const { return kinds_.test(index(kind)); }
  std::size_t count() const { return kinds_.count(); }
  /// The kinds that are in both.
  friend OpSet operator&(OpSet a, const OpSet& b) {
    a.kinds_ &= b.kinds_;
    return a;
  }

  const OpSet& kinds() const override { return *this; }
  const char* refuses(const Graph& g, NodeId id) const override;
  bool by_kind() const override { return true; }

 private:
  static std::size_t index(OpKind kind) {
    const auto i = static_cast<std::size_t>(kind);
    if (i >= kNumOpKinds) detail::throw_no_enumerator("OpKind", static_cast<std::int64_t>(i));
    return i;
  }
  std::bitset<kNumOpKinds> kinds_;
};

inline bool Claims::has(OpKind kind) const { return kinds().has(kind); }

}  // namespace rlx
