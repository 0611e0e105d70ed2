// Sets of op kinds, and Claims: which nodes a target can run.
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

/// Limits of an ElementwiseRegion on a target. A larger region is refused before it is built. 0: not known.
struct RegionLimits {
  int inputs = 0;  // operands
  int alive = 0;   // values and operands alive at once when its ops run in order
};

/// The questions that passes and legalization ask about a target's kernels. They see no more of a target.
class Claims {
 public:
  virtual ~Claims() = default;
  /// The kinds that have a kernel for some dtypes and shapes.
  virtual const OpSet& kinds() const = 0;
  /// Null when the target can run this node, else the reason: "its operands are not all f32". The text is static.
  virtual const char* refuses(const Graph& g, NodeId id) const = 0;
  /// True when the kind of a node alone decides, so that a claim can be asked for before the node is built.
  virtual bool by_kind() const { return false; }
  /// True for a refused node that the host can run by its reference rule when it has no decomposition.
  virtual bool on_host(const Graph&, NodeId) const { return false; }
  /// True for a refused branch or loop whose bodies can run as separate programs.
  virtual bool host_controlled(const Graph&, NodeId) const { return false; }
  [[deprecated("now host_controlled")]] bool driven(const Graph& g, NodeId id) const { return host_controlled(g, id); }
  /// True when the node's kernel reads operand `operand`, the result of a Dequantize, as quantized values, or computes
  /// the quantized values of a Quantize itself.
  virtual bool reads_encoded(const Graph&, NodeId, int /*operand*/) const { return false; }
  /// True for a target of several devices, where labels place nodes.
  virtual bool places() const { return false; }
  /// The number of the device that a label places nodes on; 0 for a label that places none. Passes join no nodes of
  /// different devices.
  virtual std::uint32_t place_of(std::string_view /*label*/) const { return 0; }
  virtual RegionLimits region_limits() const { return {}; }
  /// True when a branch runs as an ordinary part of the program, so that decompositions may put rarely needed work into
  /// one.
  virtual bool branches_freely() const { return false; }

  bool has(OpKind kind) const;
  bool claims(const Graph& g, NodeId id) const { return refuses(g, id) == nullptr; }

 protected:
  Claims() = default;
  Claims(const Claims&) = default;
  Claims& operator=(const Claims&) = default;
};

/// A set of op kinds. As claims, it accepts every node of these kinds.
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
  /// The kinds that both sets hold.
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
