// GEMV and skinny GEMM: the threads of a workgroup split the large operand, which is read once, and add their sums.
#include "rlx/codegen/elements.h"
#include "rlx/codegen/grouped.h"
#include "rlx/codegen/matmul.h"

namespace rlx::codegen {
namespace {

using Fours = DotOperand::Fours;

// The threads of a workgroup: `lanes` threads split K for each of `quads` groups of four columns (or rows) of the large
// operand.
struct Shape2 {
  int quads, lanes;
  int threads() const { return quads * lanes; }
};

Shape2 shape_of(const Dot& dot, bool along_k) {
  if (along_k) return dot.node.dialect().software ? Shape2{1, 8} : Shape2{1, 64};
  return dot.node.dialect().software ? Shape2{8, 4} : Shape2{16, 16};
}

}  // namespace

void write_gemv(const Dot& dot, bool columns) {
  const DotOperand &large = columns ? dot.x : dot.w, &small = columns ? dot.w : dot.x;
  const Dim& extent = columns ? dot.m : dot.n;
  const int few = static_cast<int>((columns ? dot.n : dot.m).value());
  // Neighbouring threads read neighbouring memory.
  const bool along_k = large.fours == Fours::Contract || (large.fours == Fours::None && large.contract.dense_last());
  const bool four_steps = large.fours == Fours::Contract && small.fours == Fours::Contract;
  const Shape2 s = shape_of(dot, along_k);
  const Dim groups = floordiv(extent + Dim(4 * s.quads - 1), Dim(4 * s.quads)) * dot.batches;
  const KParts parts = k_parts(dot, groups, 2048);
  const std::optional<Ref> scratch = parts_of(dot, parts, columns ? stores_single(dot) : stores_fours(dot));
  KernelBuilder k(dot.node, concat_text(along_k ? "gemv_rows_" : "gemv_columns_", dtype_name(dot.accumulator)),
                  s.threads());
  const std::string vec = concat_text("vec4<", dot.type, ">"), most = k.size(Size(extent));
  k.global(concat_text("var<workgroup> part: array<", vec, ", ", few * s.threads(), ">;\n"));
  const std::string across = k.size(Size(floordiv(extent + Dim(4 * s.quads - 1), Dim(4 * s.quads))));
  k << "let b = GROUP / " << across << ";\nlet first = (GROUP % " << across << " * "
    << concat_text(s.quads, "u + LOCAL % ", s.quads) << "u) * 4u;\n"
    << concat_text("let lane = LOCAL / ", s.quads, "u;\n");
  std::string k_end = k.size(Size(dot.k));
  if (parts.count.is_static(1)) {
    k << "let batch = b;\nlet k_begin = 0u;\n";
  } else {
    k << "let batch = b % " << k.size(Size(dot.batches)) << ";\nlet k_begin = b / " << k.size(Size(dot.batches))
      << " * " << k.size(Size(parts.length)) << ";\n";
    k_end = concat_text("min(k_begin + ", k.size(Size(parts.length)), ", ", k_end, ")");
  }
  std::string matrix = "batch";
  if (dot.groups) {  // a row without a group sums nothing
    const std::string count = k.size(Size(dot.w.batch.extent()));
    k << "let group = " << group_of_row(k, *dot.groups, "batch", count) << ";\n";
    k_end = concat_text("select(0u, ", k_end, ", group < ", count, ")");
    matrix = concat_text("min(group, ", count, " - 1u)");
  }
  k << "let k_end = " << k_end << ";\n";
  DotReader big(k, dot, large), little(k, dot, small);
  const bool free_fours = large.fours == Fours::Free;
  k << "let big_base = " << big.batch(columns ? "batch" : matrix)
    << ";\nlet little_base = " << little.batch(columns ? matrix : "batch") << ";\n";
  for (int e = 0; e < 4; e += free_fours ? 4 : 1)
    k << concat_text("let big", e, " = big_base + ",
                     big.free(concat_text("min(first + ", e, "u, ", most, free_fours ? " - 4u)" : " - 1u)")), ";\n");
  for (int i = 0; i < few; ++i)
    k << concat_text("let little", i, " = little_base + ", little.free(concat_text(i, "u")), ";\nvar c", i, " = ", vec,
                     "();\n");
  // Products of four steps of K; v0 to v3 are the large operand's elements.
  const auto multiply_fours = [&] {
    for (int i = 0; i < few; ++i)
      k << concat_text("{\nlet a = ", little.four(concat_text("little", i, " + other")), ";\nc", i, " = c", i, " + ",
                       vec, "(dot(a, v0), dot(a, v1), dot(a, v2), dot(a, v3));\n}\n");
  };
  const int group = four_steps ? big.group() : 0, step = four_steps ? 4 : 1;
  const bool by_groups = whole_groups(parts, group) && dot.k.is_static() && dot.k.value() >= s.lanes * group;
  if (by_groups) {  // a lane takes whole groups of K and reads their scales once
    k << concat_text("for (var g = k_begin + lane * ", group, "u; g < k_end; g += ", s.lanes * group,
                     "u) {\nlet inner = ", big.contract("g"), ";\n");
    for (int e = 0; e < 4; ++e)
      k << concat_text("let s", e, " = ", big.scale(concat_text("big", e, " + inner")), ";\n");
    k << concat_text("for (var j = 0u; j < ", group, "u; j += 4u) {\nlet other = ", little.contract("g + j"), ";\n");
    for (int e = 0; e < 4; ++e)
      k << concat_text("let v", e, " = ", big.four(concat_text("big", e, " + inner + j"), concat_text("s", e)), ";\n");
    multiply_fours();
    k << "}\n}\n";
  } else {
    k << concat_text("for (var k = k_begin + lane * ", step, "u; k < k_end; k += ", s.lanes * step,
                     "u) {\nlet inner = ", big.contract("k"), ";\nlet other = ", little.contract("k"), ";\n");
    if (four_steps) {
      for (int e = 0; e < 4; ++e)
        k << concat_text("let v", e, " = ", big.four(concat_text("big", e, " + inner")), ";\n");
      multiply_fours();
    } else {
      std::string v = vec + "(";
      for (int e = 0; e < 4 && !free_fours; ++e)
        v += concat_text(e ? ", " : "", big.element(concat_text("big", e, " + inner")));
      k << "let v = " << (free_fours ? big.four("big0 + inner") : v + ")") << ";\n";
      for (int i = 0; i < few; ++i)
        k << concat_text("c", i, " = c", i, " + ", little.element(concat_text("little", i, " + other")), " * v;\n");
    }
    k << "}\n";
  }
  for (int i = 0; i < few; ++i) k << concat_text("part[", i * s.threads(), "u + LOCAL] = c", i, ";\n");
  k << concat_text("for (var s = ", s.threads() / 2, "u; s >= ", s.quads,
                   "u; s = s >> 1u) {\nworkgroupBarrier();\nif (LOCAL < s) {\n");
  for (int i = 0; i < few; ++i) {
    const std::string at = concat_text("part[", i * s.threads(), "u + LOCAL");
    k << at << "] = " << at << "] + " << at << " + s];\n";
  }
  k << concat_text("}\n}\nif (LOCAL >= ", s.quads, "u) { return; }\n");
  DotWriter writer = scratch ? DotWriter(k, dot, *scratch) : DotWriter(k, dot);
  for (int i = 0; i < few; ++i) {
    k << concat_text("{\nlet v = part[", i * s.threads(), "u + LOCAL];\n");
    if (!columns) {
      k << concat_text("let m = ", i, "u;\nlet n = first;\n") << writer.put_four("v");
    } else {
      for (int e = 0; e < 4; ++e)
        k << concat_text("if (first + ", e, "u < ", most, ") {\nlet m = first + ", e, "u;\nlet n = ", i, "u;\n")
          << writer.put(concat_text("v.", "xyzw"[e])) << "}\n";
    }
    k << "}\n";
  }
  k.finish(groups * parts.count);
  if (scratch) finish_dot(dot, *scratch);
}

}  // namespace rlx::codegen
