// Kernel entries: grouped matmuls, and their gradient with respect to the weights.
#include "rlx/codegen/grouped.h"
#include "rlx/codegen/elements.h"
#include "rlx/codegen/entry.h"
#include "rlx/codegen/reductions.h"
#include "rlx/codegen/walk.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::codegen {
namespace {

const char* grouped_refuses(const Graph& g, NodeId id) {
  for (int i : {0, 1})
    if (!computes(in_shape(g, id, i).dtype())) return "WGSL has no type for the dtype of an operand or result";
  return nullptr;
}

constexpr std::int64_t kFewRows = 8;  // up to this many rows, each reads the weights by itself

bool of_rows(const Graph& g, NodeId id) { return g.node(id).op.as<ops::GroupedDot>().fn == GroupedKind::Rows; }
// The weights may be a slice of a larger value.
bool strided_weights(const Graph& g, NodeId id, int operand) { return operand == 1 && of_rows(g, id); }

// Elements n to n + 3 along the last axis of `r`; the other coordinates are names. Elements beyond the last repeat it.
std::string neighbours(KernelBuilder& k, const Ref& r, const char* name, std::vector<std::string> at) {
  at.push_back("n");
  const std::string columns = k.size(Size(r.dim(-1)));
  if (reads_fours(k.node(), r) && divided(r.dim(-1), 4)) return load_quad(k, r, name, k.at(r, at));
  std::string text = concat_text("vec4<", compute_type(r.dtype), ">(");
  for (int e = 0; e < 4; ++e) {
    at.back() = concat_text("min(n + ", e, "u, ", columns, " - 1u)");
    text += concat_text(e ? ", " : "", k.load(r, k.at(r, at)));
  }
  return text + ")";
}

// A thread computes four consecutive elements of the result's last axis: `sum` adds statements that store them in `c`.
template <class Sum>
void by_quads(NodeKernels& node, const char* name, Sum sum) {
  const Ref out = node.out();
  if (out.elements().is_static(0)) return;
  const Ref made = unpacked(node, out);
  KernelBuilder k(node, concat_text(name, "_", dtype_name(out.dtype)), 64);
  const Dim quads = floordiv(out.dim(-1) + Dim(3), Dim(4)), threads = out.extent(0, out.rank() - 1) * quads;
  const std::string columns = k.size(Size(out.dim(-1))), across = k.size(Size(quads));
  k << "if (THREAD >= " << k.size(Size(threads)) << ") { return; }\nlet n = THREAD % " << across
    << " * 4u;\nlet row = THREAD / " << across << ";\nvar c = vec4<" << std::string(compute_type(out.dtype))
    << ">();\n";
  sum(k);
  k << "let to = row * " << columns << " + n;\n";
  if (divided(out.dim(-1), 4) && node.is_aligned(made, 16)) {
    k << k.store4(made, "to >> 2u", "c");
  } else {
    for (int e = 0; e < 4; ++e)
      k << concat_text("if (n + ", e, "u < ", columns, ") {\n",
                       k.store(made, concat_text("to + ", e, "u"), concat_text("c.", "xyzw"[e])), "}\n");
  }
  k.finish_threads(threads);
  pack(node, out, made);
}

// The sum over the rows of each group. Its rows are contiguous once all rows are sorted by group.
void write_sums(NodeKernels& node) {
  const Ref x = node.in(0), y = node.in(1);
  const SortedRows sorted = rows_by_group(node, node.in(2), node.out().dim(0));
  by_quads(node, "grouped_sums", [&](KernelBuilder& k) {
    const std::string depth = k.size(Size(x.dim(1))), rows = k.size(Size(x.dim(0)));
    k << "let own = row / " << depth << ";\nlet column = row % " << depth << ";\nvar at = 0u;\nvar end = " << rows
      << ";\nwhile (at < end) {\nlet middle = (at + end) >> 1u;\nif (" << k.load(sorted.keys, "middle")
      << " < own) { at = middle + 1u; } else { end = middle; }\n}\nfor (; at < " << rows << "; at++) {\nif ("
      << k.load(sorted.keys, "at") << " != own) { break; }\nlet i = " << k.load(sorted.places, "at") << ";\nc = c + "
      << k.load(x, "i * " + depth + " + column") << " * " << neighbours(k, y, "y_four", {"i"}) << ";\n}\n";
  });
}

void write_grouped(NodeKernels& node) {
  if (node.out().elements().is_static(0)) return;
  if (!of_rows(node.graph(), node.id())) return write_sums(node);
  const bool few = node.upper(node.in(0).dim(0)) <= kFewRows;
  (few ? write_grouped_gemv : write_grouped_tiles)(node);
}

// The worst case: each row of a tile is of another group, or all rows are of one group.
Dim grouped_steps(const Graph& g, NodeId id, const Dialect&) {
  const Shape& x = in_shape(g, id, 0);
  return of_rows(g, id) ? (x.dim(1) + Dim(32)) * Dim(8) : x.dim(0) + Dim(64);
}

ScratchBytes grouped_scratch(const Graph& g, NodeId id) {
  const Dim& rows = in_shape(g, id, 0).dim(0);
  const ScratchBytes widened = widened_bytes(g, id);
  return rows.is_static() ? widened.and_also(sorted_bytes(1, rows.value())) : widened;
}

constexpr KernelEntry kGroupedEntries[] = {{OpKind::GroupedDot, "grouped_dot", grouped_refuses, write_grouped,
                                            strided_weights, nullptr, nullptr, 0, grouped_scratch, grouped_steps}};

}  // namespace

std::span<const KernelEntry> grouped_entries() { return kGroupedEntries; }

}  // namespace rlx::codegen
