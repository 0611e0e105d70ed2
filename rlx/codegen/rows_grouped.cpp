// Rows: products of rows with the matrix of their group, and the sums that are their derivative.
#include "rlx/codegen/elements.h"
#include "rlx/codegen/reductions.h"
#include "rlx/codegen/row.h"
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

// let group = that of row `i`, which is not below `groups` for one of none.
std::string group_of_row(KernelBuilder& k, const Ref& ids, const std::string& groups) {
  if (ids.dtype == DType::I32) return concat_text("let group = bitcast<u32>(", k.load(ids, "i"), ");\n");
  return concat_text("let group = select(", groups, ", ", k.load_word(ids, "i * 2u"), ", ",
                     k.load_word(ids, "i * 2u + 1u"), " == 0u);\n");
}

// Four neighbours n to n + 3 of a row of `r` that begins at `base`; beyond its last element that one again.
std::string neighbours(KernelBuilder& k, const Ref& r, const char* name, const std::string& base) {
  const std::string columns = k.size(Size(r.dim(-1)));
  if (divided(r.dim(-1), 4) && k.node().is_aligned(r, 4 * size_bytes(r.dtype)))
    return load_quad(k, r, name, concat_text(base, " + n"));
  std::string text = concat_text("vec4<", compute_type(r.dtype), ">(");
  for (int e = 0; e < 4; ++e)
    text += concat_text(e ? ", " : "", k.load(r, concat_text(base, " + min(n + ", e, "u, ", columns, " - 1u)")));
  return text + ")";
}

// A thread computes four neighbours of the result's last axis: `sum` adds statements that make them `c`.
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

void write_grouped(NodeKernels& node) {
  const Ref x = node.in(0), other = node.in(1), ids = node.in(2);
  if (node.op<ops::GroupedDot>().fn == GroupedKind::Rows)
    return by_quads(node, "grouped_rows", [&](KernelBuilder& k) {
      const std::string groups = k.size(Size(other.dim(0))), depth = k.size(Size(x.dim(1))),
                        columns = k.size(Size(other.dim(2)));
      k << "let i = row;\n"
        << group_of_row(k, ids, groups) << "if (group < " << groups << ") {\nlet first = group * " << depth
        << ";\nfor (var k = 0u; k < " << depth << "; k++) {\nc = c + " << k.load(x, "i * " + depth + " + k") << " * "
        << neighbours(k, other, "w_four", "(first + k) * " + columns) << ";\n}\n}\n";
    });
  by_quads(node, "grouped_sums", [&](KernelBuilder& k) {
    const std::string depth = k.size(Size(x.dim(1))), columns = k.size(Size(other.dim(1))),
                      groups = k.size(Size(node.out().dim(0)));
    k << "let own = row / " << depth << ";\nlet column = row % " << depth << ";\nfor (var i = 0u; i < "
      << k.size(Size(x.dim(0))) << "; i++) {\n"
      << group_of_row(k, ids, groups) << "if (group == own) { c = c + " << k.load(x, "i * " + depth + " + column")
      << " * " << neighbours(k, other, "y_four", "i * " + columns) << "; }\n}\n";
  });
}

constexpr Row kGroupedRows[] = {{OpKind::GroupedDot, "grouped_dot", grouped_refuses, write_grouped}};

}  // namespace

std::span<const Row> grouped_rows() { return kGroupedRows; }

}  // namespace rlx::codegen
