// Tables of kernel entries. A kernel entry says which nodes of a kind it runs, and how. The compiler learns everything
// about a backend from its kernel entries. How an entry lowers a node is up to the backend.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "rlx/device/target.h"
#include "rlx/ir/op_def.h"

namespace rlx {

/// The kernel entries of a backend by kind. A KernelEntry has at least
///   OpKind kind;
///   const char* (*refuses)(const Graph&, NodeId);  // null when the entry runs the node, else why not
/// Several entries may serve a kind. The first that accepts a node runs it.
template <class KernelEntry>
class EntryTable {
 public:
  using Families = std::initializer_list<std::span<const KernelEntry>>;
  /// Special families precede general ones. `nothing` is the refusal for a kind without an entry.
  explicit EntryTable(Families families, const char* nothing = "there is no kernel of this kind") : nothing_(nothing) {
    for (std::span<const KernelEntry> family : families)
      for (const KernelEntry& entry : family) entries_[static_cast<std::size_t>(entry.kind)].push_back(&entry);
    for (const OpDef* def : all_op_defs())
      if (def->is_leaf() || !of(def->kind).empty()) kinds_.add(def->kind);
  }

  /// The entries of a kind, in order.
  std::span<const KernelEntry* const> of(OpKind kind) const { return entries_[static_cast<std::size_t>(kind)]; }
  /// The entry that runs a node, or null.
  const KernelEntry* find(const Graph& g, NodeId id) const {
    for (const KernelEntry* entry : of(g.node(id).kind()))
      if (!entry->refuses(g, id)) return entry;
    return nullptr;
  }
  /// Null when some entry runs the node, and for a leaf. Otherwise the refusal of the most general entry.
  const char* refuses(const Graph& g, NodeId id) const {
    const OpKind kind = g.node(id).kind();
    if (op_def(kind).is_leaf()) return nullptr;
    const char* why = nothing_;
    for (const KernelEntry* entry : of(kind))
      if (why = entry->refuses(g, id); !why) break;
    return why;
  }
  /// Every kind that has an entry, and the leaves.
  const OpSet& kinds() const { return kinds_; }

 private:
  std::array<std::vector<const KernelEntry*>, kNumOpKinds> entries_;
  OpSet kinds_;
  const char* nothing_;
};

/// A target that answers from its kernel entries. In addition to what EntryTable needs, a KernelEntry has these
/// members, with the meaning that Target documents and null for never:
///   bool (*reads_strided)(const Graph&, NodeId, int operand);
///   bool (*reads_encoded)(const Graph&, NodeId, int operand);
///   bool (*in_place)(const Graph&, NodeId, int operand, int result);
///   std::uint32_t skips_unread;  // bit r: result r needs no place when nobody reads it
template <class KernelEntry>
class EntryTarget : public Target {
 public:
  explicit EntryTarget(const EntryTable<KernelEntry>& entries) : entries_(entries) {}
  const OpSet& kinds() const override { return entries_.kinds(); }
  const char* refuses(const Graph& g, NodeId id) const override { return entries_.refuses(g, id); }
  bool reads_strided(const Graph& g, NodeId id, int operand) const override {
    return asks(&KernelEntry::reads_strided, g, id, operand);
  }
  bool reads_encoded(const Graph& g, NodeId id, int operand) const override {
    return asks(&KernelEntry::reads_encoded, g, id, operand);
  }
  bool in_place(const Graph& g, NodeId id, int operand, int result) const override {
    return asks(&KernelEntry::in_place, g, id, operand, result);
  }
  bool skips_unread(const Graph& g, NodeId id, int result) const override {
    const auto bit = [&](const KernelEntry& entry) { return result < 32 && (entry.skips_unread >> result & 1U) != 0; };
    if (!any_of_kind(g, id, bit)) return false;
    const KernelEntry* entry = entries_.find(g, id);
    return entry && bit(*entry);
  }

 protected:
  const EntryTable<KernelEntry>& entries_;

 private:
  // Finding the entry of a node may take time that grows with its operands or bodies, and these questions are asked for
  // each operand and result. So a kind whose entries never promise anything is answered first.
  template <class Has>
  bool any_of_kind(const Graph& g, NodeId id, const Has& has) const {
    const auto entries = entries_.of(g.node(id).kind());
    return std::any_of(entries.begin(), entries.end(), [&](const KernelEntry* entry) { return has(*entry); });
  }
  template <class Rule, class... Which>
  bool asks(Rule KernelEntry::*rule, const Graph& g, NodeId id, Which... which) const {
    if (!any_of_kind(g, id, [&](const KernelEntry& entry) { return entry.*rule != nullptr; })) return false;
    const KernelEntry* entry = entries_.find(g, id);
    return entry && entry->*rule && (entry->*rule)(g, id, which...);
  }
};

// -- helpers of entries --

inline const Shape& in_shape(const Graph& g, NodeId id, int i) {
  return g.shape(g.node(id).inputs[static_cast<std::size_t>(i)]);
}
inline DType in_dtype(const Graph& g, NodeId id, int i) { return in_shape(g, id, i).dtype(); }
/// True when no other operand of the node is the same value. Needed by kernels that still read other operands when they
/// write.
inline bool is_sole_operand(const Graph& g, NodeId id, int i) {
  const std::vector<Value>& in = g.node(id).inputs;
  return std::count(in.begin(), in.end(), in[static_cast<std::size_t>(i)]) == 1;
}
/// Results for `refuses`.
constexpr const char* refuse_unless(bool ok, const char* why) { return ok ? nullptr : why; }
inline const char* never_refuses(const Graph&, NodeId) { return nullptr; }

}  // namespace rlx
