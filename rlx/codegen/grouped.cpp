// Grouped matmul in tiles of rows that may belong to several groups.
#include "rlx/codegen/grouped.h"

#include "rlx/codegen/fragment.h"
#include "rlx/codegen/matmul.h"

namespace rlx::codegen {
namespace {

constexpr int kTileRows = 8, kTileColumns = 8, kTileQuads = kTileColumns / 4;

// An array `name` of the variables <each>0, <each>1, .. of all rows, for dynamic indexing.
std::string by_number(const char* name, const char* each) {
  std::string text = concat_text("var ", name, " = array<u32, ", kTileRows, ">(");
  for (int i = 0; i < kTileRows; ++i) text += concat_text(i ? ", " : "", each, i);
  return text + ");\n";
}

}  // namespace

std::string group_of_row(KernelBuilder& k, const Ref& ids, std::string_view i, const std::string& groups) {
  if (ids.dtype == DType::I32) return concat_text("bitcast<u32>(", k.load(ids, i), ")");
  return concat_text("select(", groups, ", ", k.load_word(ids, concat_text(i, " * 2u")), ", ",
                     k.load_word(ids, concat_text(i, " * 2u + 1u")), " == 0u)");
}

SortedRows rows_by_group(NodeKernels& node, const Ref& ids, const Dim& groups) {
  const KeyText key = [&](KernelBuilder& k, const std::string&, const std::string& j) {
    return group_of_row(k, ids, j, k.size(Size(groups)));
  };
  return sorted_rows(node, Dim(1), ids.dim(0), key);
}

void write_grouped_gemv(NodeKernels& node) {
  Dot dot(node, dot_operand(node, 0, "x", false, {0}, {}, {1}), dot_operand(node, 1, "w", false, {0}, {2}, {1}));
  dot.groups = node.in(2);
  write_gemv(dot, false);
}

void write_grouped_tiles(NodeKernels& node) {
  Dot dot(node, dot_operand(node, 0, "x", false, {}, {0}, {1}), dot_operand(node, 1, "w", false, {0}, {2}, {1}));
  // the rows of a tile are not contiguous
  if (dot.x.fours == DotOperand::Fours::Free) dot.x.fours = DotOperand::Fours::None;
  const SortedRows sorted = rows_by_group(node, node.in(2), node.in(1).dim(0));
  const std::optional<Ref> scratch = parts_of(dot, {1, dot.k}, stores_fours(dot));
  KernelBuilder k(node, concat_text("grouped_tiles_", dtype_name(dot.accumulator)), node.dialect().software ? 16 : 64);
  const Dim across = floordiv(dot.n + Dim(kTileColumns - 1), Dim(kTileColumns)),
            threads = floordiv(dot.m + Dim(kTileRows - 1), Dim(kTileRows)) * across;
  const std::string rows = k.size(Size(dot.m)), groups = k.size(Size(node.in(1).dim(0))), wide = k.size(Size(across));
  k << "if (THREAD >= " << k.size(Size(threads)) << ") { return; }\nlet n0 = THREAD % " << wide
    << concat_text(" * ", kTileColumns, "u;\nlet first = THREAD / ") << wide << concat_text(" * ", kTileRows, "u;\n");
  std::vector<std::string> own;
  for (int i = 0; i < kTileRows; ++i) {
    own.push_back(concat_text("row", i));
    const std::string place = concat_text("place", i);
    k << concat_text("let ", place, " = min(first + ", i, "u, ", rows, " - 1u);\nlet group", i, " = ")
      << k.load(sorted.keys, place) << concat_text(";\nlet row", i, " = ") << k.load(sorted.places, place) << ";\n";
  }
  k << by_number("owner", "group") << by_number("row", "row");
  DotWriter writer = scratch ? DotWriter(k, dot, *scratch) : DotWriter(k, dot);
  // Stores each group of four of the tile whose row satisfies `whose`.
  const auto stores = [&](const std::string& whose, const std::string& value) {
    k << concat_text("for (var i = 0u; i < ", kTileRows * kTileQuads, "u; i++) {\nlet r = i / ", kTileQuads,
                     "u;\nlet b = 0u;\nlet m = row[r];\nlet n = n0 + i % ", kTileQuads, "u * 4u;\nlet v = ", value,
                     ";\nif (first + r < ", rows, " && owner[r] ", whose, ") ")
      << writer.put_four("v") << "}\n";
  };
  const int steps = takes_four_steps(dot) ? 4 : 1;
  DotReader x(k, dot, dot.x), w(k, dot, dot.w);
  Fragment a(k, x, "x", steps, own);
  // Rows of other groups are multiplied too and discarded, so an infinity in a matrix does not reach them.
  k << "var group = group0;\nwhile (group < " << groups << ") {\nlet batch = group;\n";
  Fragment c(k, w, "w", steps, Fragment::numbers(k, w, "n0", kTileColumns, dot.n));
  k << accumulators(dot.type, kTileRows, kTileColumns) << "for (var k = 0u; k < " << k.size(Size(dot.k))
    << concat_text("; k += ", steps, "u) {\n") << a.loads("k") << c.loads("k") << multiplied(dot.type, a, c) << "}\n"
    << gathered(dot.type, kTileRows, kTileColumns);
  stores("== group", "all[i]");
  k << concat_text("var next = 0xffffffffu;\nfor (var r = 0u; r < ", kTileRows,
                   "u; r++) { if (owner[r] > group) { next = min(next, owner[r]); } }\ngroup = next;\n}\n");
  stores(">= " + groups, concat_text("vec4<", dot.type, ">()"));
  k.finish_threads(threads);
  if (scratch) finish_dot(dot, *scratch);
}

}  // namespace rlx::codegen
