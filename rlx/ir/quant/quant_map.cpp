// The map of quantized values, computed from their nodes.
#include "rlx/ir/quant/quant_map.h"

#include <algorithm>
#include <map>
#include <set>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/quantize.h"

namespace rlx {
namespace {

// The leaf whose elements `v` holds, through ops that only move them; none when the elements are computed.
std::optional<NodeId> leaf_behind(const Graph& g, Value v) {
  for (;; v = g.node(v.node).inputs[0]) {
    const OpKind kind = g.node(v.node).kind();
    if (is_named_leaf(kind)) return v.node;
    if (kind != OpKind::Reshape && kind != OpKind::Transpose && kind != OpKind::Slice && kind != OpKind::Gather)
      return std::nullopt;
  }
}

// The path of an entry before duplicates are resolved. `with_label` is the number of entries with each label.
std::string wanted_path(const Graph& g, const QuantEntry& e, const std::map<std::string_view, int>& with_label) {
  const Node& n = g.node(e.value.node);
  const std::string& label = n.origin.label;
  const std::optional<NodeId> leaf = leaf_behind(g, e.codes.value_or(n.inputs[0]));
  if (label.empty()) return e.codes && leaf == e.codes->node ? g.leaf_name(*leaf) : e.value.node.text();
  // All nodes built under Graph::scope share its label, which does not identify a value.
  const bool scope = with_label.at(label) > 1 || (leaf && g.node(*leaf).origin.label == label);
  return scope && leaf ? concat_text(label, "/", g.leaf_name(*leaf)) : label;
}

void set_paths(const Graph& g, std::vector<QuantEntry>& entries) {
  std::map<std::string_view, int> with_label;
  for (const QuantEntry& e : entries) ++with_label[g.node(e.value.node).origin.label];
  std::map<std::string, int> wanted;
  for (QuantEntry& e : entries) ++wanted[e.path = wanted_path(g, e, with_label)];
  std::set<std::string> taken;
  for (const auto& [path, times] : wanted)
    if (times == 1) taken.insert(path);
  for (QuantEntry& e : entries) {
    if (wanted.at(e.path) == 1) continue;
    std::string path = e.path;
    do path += concat_text("/", e.value.node.text());
    while (!taken.insert(path).second);
    e.path = std::move(path);
  }
}

// An operand after the first. `present` tells which positions of the record have an operand.
std::optional<Value> optional_operand(const Node& n, const OperandMask& present, int place) {
  if (!present.has(place)) return std::nullopt;
  std::size_t at = 1;
  for (int before = 1; before < place; ++before) at += present.has(before) ? 1 : 0;
  return n.inputs[at];
}

QuantEntry entry_of(const Graph& g, NodeId id, const ops::Dequantize& op) {
  const Node& n = g.node(id);
  QuantEntry e;
  e.value = id;
  e.codes = n.inputs[0];
  e.scheme = op.scheme;
  e.axis = op.axis;
  e.block = op.block;
  e.quantized_dtype = g.shape(n.inputs[0]).dtype();
  e.bits = dtype_bits(e.quantized_dtype);
  if (is_block_scheme(op.scheme)) {
    const BlockLayout& l = block_layout(op.scheme);
    e.bits = 8.0 * l.bytes / l.elements;
  }
  e.scale = optional_operand(n, op.present, 1);
  e.zero_point = optional_operand(n, op.present, 2);
  e.global_scale = optional_operand(n, op.present, 3);
  return e;
}

QuantEntry entry_of(const Graph&, NodeId id, const ops::FakeQuantize& op) {
  QuantEntry e;
  e.value = id;
  e.axis = op.axis;
  e.bits = static_cast<double>(op.bits);
  e.fake = true;
  e.scale = Value(id, 1);
  return e;
}

}  // namespace

QuantMap::QuantMap(const Graph& g) {
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const NodeId id{i};
    if (const auto* op = g.node(id).op.get_if<ops::Dequantize>()) entries_.push_back(entry_of(g, id, *op));
    if (const auto* op = g.node(id).op.get_if<ops::FakeQuantize>()) entries_.push_back(entry_of(g, id, *op));
  }
  set_paths(g, entries_);
}

const QuantEntry* QuantMap::find(Value v) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), v,
                                   [](const QuantEntry& e, const Value& wanted) { return e.value < wanted; });
  return at != entries_.end() && at->value == v ? &*at : nullptr;
}

const QuantEntry* QuantMap::find(std::string_view path) const {
  const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const QuantEntry& e) { return e.path == path; });
  return at != entries_.end() ? &*at : nullptr;
}

std::string QuantMap::text() const {
  std::string out;
  for (const QuantEntry& e : entries_) {
    out += concat_text(e.value.text(), " ", e.path, ": ", e.fake ? "fake" : quant_scheme_name(e.scheme));
    if (!e.fake && !is_block_scheme(e.scheme)) out += concat_text(" ", dtype_name(e.quantized_dtype));
    if (e.axis) out += concat_text(", axis ", *e.axis);
    if (e.block > 0) out += concat_text(", blocks of ", e.block);
    if (e.zero_point) out += ", zero points";
    out += concat_text(", ", e.bits, " bits\n");
  }
  return out;
}

}  // namespace rlx
