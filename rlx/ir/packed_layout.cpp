// The text of packed layouts, and the layout of a value.
#include "rlx/ir/packed_layout.h"

#include <charconv>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/lir.h"

namespace rlx {

std::string_view matmul_precision_name(MatmulPrecision precision) {
  switch (precision) {
    case MatmulPrecision::Exact: return "exact";
    case MatmulPrecision::BF16: return "bf16";
    case MatmulPrecision::Int8: return "int8";
  }
  detail::throw_no_enumerator("MatmulPrecision", static_cast<std::int64_t>(precision));
}

std::string packed_layout_text(const PackedLayout& layout) {
  if (layout.empty()) return {};
  std::string out = layout.id + "(";
  for (std::size_t i = 0; i < layout.params.size(); ++i) out += concat_text(i > 0 ? "," : "", layout.params[i]);
  out += concat_text(");", layout.bytes);
  if (layout.count != 1) out += concat_text(";count ", layout.count);
  if (!layout.lossless) out += ";lossy";
  return out;
}

PackedLayout parse_packed_layout(std::string_view text) {
  PackedLayout layout;
  if (text.empty()) return layout;
  const auto malformed = [&] {
    PackedLayout bad;
    bad.id = std::string(text);
    bad.bytes = -1;
    return bad;
  };
  const auto take = [&](std::string_view word) {
    if (text.substr(0, word.size()) != word) return false;
    text.remove_prefix(word.size());
    return true;
  };
  const auto number = [&](std::int64_t& to) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  const std::string_view whole = text;
  const std::size_t open = text.find('(');
  if (open == 0 || open == std::string_view::npos) return malformed();
  layout.id = std::string(text.substr(0, open));
  text.remove_prefix(open + 1);
  while (!take(")")) {
    if (!layout.params.empty() && !take(",")) return text = whole, malformed();
    if (!number(layout.params.emplace_back())) return text = whole, malformed();
  }
  if (!take(";") || !number(layout.bytes)) return text = whole, malformed();
  if (take(";count ") && !number(layout.count)) return text = whole, malformed();
  layout.lossless = !take(";lossy");
  if (!text.empty() || layout.bytes < 0 || layout.count < 1) return text = whole, malformed();
  return layout;
}

PackedLayout stacked(const PackedLayout& one, std::int64_t count) {
  PackedLayout all = one;
  if (count < 1 || __builtin_mul_overflow(all.bytes, count, &all.bytes) ||
      __builtin_mul_overflow(all.count, count, &all.count))
    throw Error(ErrorCode::InvalidArgument, concat_text("the packed layout '", packed_layout_text(one),
                                                        "' cannot be repeated for ", count, " matrices"));
  return all;
}

PackedLayout layout_of_one_matrix(const PackedLayout& layout) {
  PackedLayout one = layout;
  if (one.count < 1 || one.bytes % one.count != 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the packed layout '", packed_layout_text(layout), "' is not made of whole matrices"));
  one.bytes /= layout.count, one.count = 1;
  return one;
}

const PackedLayout& form_of(const Graph& g, Value v) { return packed_layout_of(g, v); }

const PackedLayout& packed_layout_of(const Graph& g, Value v) {
  static const PackedLayout none;
  const OpBox& op = g.node(v.node).op;
  if (const auto* p = op.get_if<ops::Param>()) return *p->form;
  if (const auto* i = op.get_if<ops::Input>()) return *i->form;
  if (const auto* r = op.get_if<ops::Relayout>()) return r->form;
  return none;
}

std::size_t stored_bytes(const Graph& g, Value v) {
  const PackedLayout& layout = packed_layout_of(g, v);
  return layout.empty() ? g.shape(v).size_bytes() : static_cast<std::size_t>(layout.bytes);
}

}  // namespace rlx
