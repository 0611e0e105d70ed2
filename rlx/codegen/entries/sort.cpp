// Kernel entries: sorting, and the largest elements.
#include <algorithm>

#include "rlx/codegen/entry.h"
#include "rlx/codegen/moves.h"
#include "rlx/codegen/sorting.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::codegen {
namespace {

// Adds a kernel that gathers elements in sorted order: in the result [outer, n, inner], the elements along n are those
// of `x` at sorted.places of row (outer, inner).
void move_sorted(NodeKernels& node, const Ref& out, const Ref& x, int axis, const SortedRows& sorted) {
  const auto lines = [&](const Ref& r) {
    Ref words = as_words(reshaped(r, {r.extent(0, axis), r.dim(axis), r.extent(axis + 1, r.rank())}));
    if (words.rank() == 3) words.dims.push_back(Dim(1)), words.strides.push_back(Size(1));
    return words;
  };
  const Ref from = lines(x), made = lines(out);
  Mover m(node, "move_sorted", {made, from});
  const Ref to = m.in_units(made), source = m.in_units(from);
  KernelBuilder& k = m.k();
  std::string text = m.split(to);
  text += InOrder{"let row = c0 * ", k.size(Size(from.dims[2])), " + c2;\nlet place = ",
                  k.load(sorted.places, concat_text("row * ", k.size(Size(sorted.stride)), " + c1")), ";\n"};
  m.finish(to, text, m.load(source, k.at(source, {"c0", "place", "c2", "c3"})));
}

const char* sort_refuses(const Graph& g, NodeId id) {
  if (!computes(in_shape(g, id, 0).dtype())) return "WGSL has no type for the dtype of the keys";
  bool whole = true;
  for (Value v : g.node(id).inputs) whole = whole && dtype_bits(g.shape(v).dtype()) >= 8;
  return refuse_unless(whole, "kernels do not move single elements of 4 bits");
}

void write_sort(NodeKernels& node) {
  const auto& op = node.op<ops::Sort>();
  const Ref keys = node.in(0);
  if (keys.elements().is_static(0)) return;
  const int axis = static_cast<int>(op.axis);
  const Ref lines = reshaped(keys, {keys.extent(0, axis), keys.dim(axis), keys.extent(axis + 1, keys.rank())});
  const KeyText key = [&](KernelBuilder& k, const std::string& row, const std::string& j) {
    const std::string inner = k.size(Size(lines.dims[2]));
    const std::string index =
        k.at(lines, {concat_text("(", row, " / ", inner, ")"), j, concat_text("(", row, " % ", inner, ")")});
    return sort_key(k, keys.dtype, k.load(keys, index), op.descending);
  };
  const SortedRows sorted = sorted_rows(node, lines.dims[0] * lines.dims[2], lines.dims[1], key);
  for (int i = 0; i < node.num_inputs(); ++i) move_sorted(node, node.out(i), node.in(i), axis, sorted);
}

void write_topk(NodeKernels& node) {
  const Ref x = node.in(0);
  const std::int64_t count = node.op<ops::TopK>().k;
  if (node.out().elements().is_static(0)) return;
  const int axis = x.rank() - 1;
  const Dim rows = x.extent(0, axis), n = x.dim(axis);
  const KeyText key = [&](KernelBuilder& k, const std::string& row, const std::string& j) {
    return sort_key(k, x.dtype, k.load(x, concat_text(row, " * ", k.size(Size(n)), " + ", j)), true);
  };
  const SortedRows sorted = first_of_rows(node, rows, n, count, key);
  move_sorted(node, node.out(0), x, axis, sorted);
  KernelBuilder k(node, "topk_places");
  const Ref places = node.out(1);
  finish_map(
      k, {places},
      concat_text("let row = i / ", count, "u;\nlet y = ",
                  k.load(sorted.places, concat_text("row * ", k.size(Size(sorted.stride)), " + i % ", count, "u")),
                  ";\n"),
      {"bitcast<i32>(y)"});
}

ScratchBytes sorted_along(const Shape& x, std::int64_t axis) {
  if (!x.is_static() || x.num_elements() == 0) return {};
  const std::int64_t n = x.dim(static_cast<int>(axis)).value();
  return sorted_bytes(x.num_elements() / n, n);
}
ScratchBytes sort_scratch(const Graph& g, NodeId id) {
  return sorted_along(in_shape(g, id, 0), g.node(id).op.as<ops::Sort>().axis);
}
ScratchBytes topk_scratch(const Graph& g, NodeId id) {
  const std::int64_t k = g.node(id).op.as<ops::TopK>().k;
  return k > kFewOfBlocks ? sorted_along(in_shape(g, id, 0), -1) : ScratchBytes{};
}

constexpr KernelEntry kSortEntries[] = {
    {OpKind::Sort, "sort", sort_refuses, write_sort, nullptr, nullptr, nullptr, 0, sort_scratch},
    {OpKind::TopK, "topk", refuse_dtypes, write_topk, nullptr, nullptr, nullptr, 0, topk_scratch},
};

}  // namespace

std::span<const KernelEntry> sort_entries() { return kSortEntries; }

}  // namespace rlx::codegen
