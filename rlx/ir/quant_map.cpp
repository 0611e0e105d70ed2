// The view of quantised values, read from their nodes.
#include "rlx/ir/quant_map.h"

#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/quantize.h"

namespace rlx {
namespace {

std::string path_of(const Graph& g, NodeId id, std::optional<Value> codes) {
  const bool named = g.node(id).origin.label.empty() && codes && is_named_leaf(g.node(codes->node).kind());
  return node_label(g, named ? codes->node : id);
}

// The operands after the first, whose places in the record `present` tells.
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
  e.path = path_of(g, id, e.codes);
  e.scheme = op.scheme;
  e.axis = op.axis;
  e.block = op.block;
  e.code_dtype = g.shape(n.inputs[0]).dtype();
  e.bits = dtype_bits(e.code_dtype);
  if (is_block_scheme(op.scheme)) {
    const BlockLayout& l = block_layout(op.scheme);
    e.bits = 8.0 * l.bytes / l.elements;
  }
  e.scale = optional_operand(n, op.present, 1);
  e.zero_point = optional_operand(n, op.present, 2);
  e.global_scale = optional_operand(n, op.present, 3);
  return e;
}

QuantEntry entry_of(const Graph& g, NodeId id, const ops::FakeQuantize& op) {
  QuantEntry e;
  e.value = id;
  e.path = path_of(g, id, std::nullopt);
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
}

const QuantEntry* QuantMap::find(Value v) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), v,
                                   [](const QuantEntry& e, const Value& wanted) { return e.value < wanted; });
  return at != entries_.end() && at->value == v ? &*at : nullptr;
}

const QuantEntry* QuantMap::find(std::string_view path) const {
  const QuantEntry* found = nullptr;
  for (const QuantEntry& e : entries_) {
    if (e.path != path) continue;
    if (found)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("'", short_name(path), "' is the path of several quantised values, ", found->value.text(),
                              " and ", e.value.text(), " among them"),
                  "ask by value, or label the nodes");
    found = &e;
  }
  return found;
}

std::string QuantMap::text() const {
  std::string out;
  for (const QuantEntry& e : entries_) {
    out += concat_text(e.value.text(), " ", e.path, ": ", e.fake ? "fake" : quant_scheme_name(e.scheme));
    if (!e.fake && !is_block_scheme(e.scheme)) out += concat_text(" ", dtype_name(e.code_dtype));
    if (e.axis) out += concat_text(", axis ", *e.axis);
    if (e.block > 0) out += concat_text(", blocks of ", e.block);
    if (e.zero_point) out += ", zero points";
    out += concat_text(", ", e.bits, " bits\n");
  }
  return out;
}

}  // namespace rlx
