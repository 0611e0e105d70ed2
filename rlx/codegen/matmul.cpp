// GEMM in tiles: accumulators are named vectors, with one statement each.
#include "rlx/codegen/matmul.h"

#include <algorithm>

#include "rlx/codegen/elements.h"
#include "rlx/codegen/fragment.h"

namespace rlx::codegen {
namespace {

using Fours = DotOperand::Fours;

std::string u(std::int64_t v) { return concat_text(v, "u"); }

Dim tiles(const Dim& extent, int size) { return floordiv(extent + Dim(size - 1), Dim(size)); }

// The start of tile `at`, its batch, and its part of K: defines the names n0, m0, b (parts and batches), batch, k_begin
// and k_end.
std::string place_of_tile(KernelBuilder& k, const Dot& dot, const KParts& parts, std::string_view at, int rows,
                          int columns) {
  const std::string across = k.size(Size(tiles(dot.n, columns))), down = k.size(Size(tiles(dot.m, rows)));
  std::string text = concat_text("let n0 = ", at, " % ", across, " * ", columns, "u;\nlet m0 = ", at, " / ", across,
                                 " % ", down, " * ", rows, "u;\nlet b = ", at, " / ", across, " / ", down, ";\n");
  const std::string depth = k.size(Size(dot.k));
  if (parts.count.is_static(1))
    return text + concat_text("let batch = b;\nlet k_begin = 0u;\nlet k_end = ", depth, ";\n");
  const std::string batches = k.size(Size(dot.batches)), length = k.size(Size(parts.length));
  return text + concat_text("let batch = b % ", batches, ";\nlet k_begin = b / ", batches, " * ", length,
                            ";\nlet k_end = min(k_begin + ", length, ", ", depth, ");\n");
}

DType parts_dtype(const Dot& dot) {
  return dot.type == "f32" ? DType::F32 : dot.type == "i32" ? DType::I32 : DType::U32;
}

}  // namespace

KParts k_parts(const Dot& dot, const Dim& groups, std::int64_t least) {
  const std::int64_t wanted = dot.node.dialect().software ? 8 : 64;
  KParts whole{1, dot.k};
  if (!groups.is_static() || !dot.k.is_static()) return whole;
  const std::int64_t depth = dot.k.value(), there = std::max<std::int64_t>(groups.value(), 1);
  const std::int64_t count = std::min((wanted + there - 1) / there, depth / least);
  if (count < 2) return whole;
  const std::int64_t length = ((depth + count - 1) / count + 15) / 16 * 16;
  return {(depth + length - 1) / length, length};
}

bool whole_groups(const KParts& parts, int group) {
  return group != 0 && (parts.count.is_static(1) || parts.length.value() % group == 0);
}

std::optional<Ref> parts_of(const Dot& dot, const KParts& parts, bool stores_result) {
  if (parts.count.is_static(1) && stores_result) return std::nullopt;
  return dot.node.scratch(parts_dtype(dot), {parts.count, dot.batches, dot.m, dot.n});
}

void write_blocks(const Dot& dot) {
  constexpr int kThreads = 16;
  const int rows = 8, columns = 8, steps = takes_four_steps(dot) ? 4 : 1;
  const Dim per_batch = tiles(dot.m, rows) * tiles(dot.n, columns);
  const KParts parts = k_parts(dot, tiles(per_batch * dot.batches, kThreads), 256);
  const Dim threads = per_batch * dot.batches * parts.count;
  const std::optional<Ref> scratch = parts_of(dot, parts, stores_fours(dot));
  KernelBuilder k(dot.node, concat_text("dot_blocks_", dtype_name(dot.accumulator)), kThreads);
  k << "let t = THREAD;\nif (t >= " << k.size(Size(threads)) << ") { return; }\n"
    << place_of_tile(k, dot, parts, "t", rows, columns);
  DotReader x(k, dot, dot.x), w(k, dot, dot.w);
  Fragment a(k, x, "x", steps, Fragment::numbers(k, x, "m0", rows, dot.m)),
      c(k, w, "w", steps, Fragment::numbers(k, w, "n0", columns, dot.n));
  k << accumulators(dot.type, rows, columns);
  const int group = steps == 4 && whole_groups(parts, w.group()) ? w.group() : 0;
  if (group)  // the scales of quantized values are read once per group
    k << concat_text("for (var g = k_begin; g < k_end; g += ", group, "u) {\n", c.scales("g"),
                     "for (var k = g; k < g + ", group, "u; k += 4u) {\n");
  else
    k << "for (var k = k_begin; k < k_end; k += " << u(steps) << ") {\n";
  k << a.loads("k") << c.loads("k") << multiplied(dot.type, a, c) << (group ? "}\n}\n" : "}\n");
  DotWriter writer = scratch ? DotWriter(k, dot, *scratch) : DotWriter(k, dot);
  k << gathered(dot.type, rows, columns)
    << concat_text("for (var i = 0u; i < ", rows * columns / 4, "u; i++) {\nlet m = m0 + i / ", columns / 4,
                   "u;\nlet n = n0 + i % ", columns / 4, "u * 4u;\nlet v = all[i];\nif (m < ")
    << k.size(Size(dot.m)) << ") " << writer.put_four("v") << "}\n";
  k.finish_threads(threads);
  if (scratch) finish_dot(dot, *scratch);
}

namespace {

constexpr int kTile = 64, kDepth = 16, kTileThreads = 64;

// Statements that copy 16 by 64 elements of one operand to shared memory, from vector `place` on.
std::string fill(DotReader& r, const std::string& name, const Dot& dot, KernelBuilder& k, std::string_view first,
                 const Dim& extent, int place, bool whole) {
  const std::string most = k.size(Size(extent)), depth = k.size(Size(dot.k)), vec = concat_text("vec4<", dot.type, ">");
  const auto kept = [&](const std::string& v, std::string_view inside) {
    return whole ? v : concat_text("select(", vec, "(), ", v, ", ", inside, ")");
  };
  const std::string base = name + "_base";
  if (r.fours() == Fours::Contract) {  // four rows of four steps, transposed
    std::string text = concat_text("{\nlet r = LOCAL / 4u;\nlet kk = k0 + LOCAL % 4u * 4u;\n");
    text += concat_text("let inner = ", base, " + ",
                        r.contract(whole ? "kk" : concat_text("min(kk, ", depth, " - 4u)")), ";\n");
    for (int e = 0; e < 4; ++e) {
      const std::string index = r.free(concat_text("min(", plus(first, e), " + r * 4u, ", most, " - 1u)"));
      text += concat_text("let v", e, " = ", kept(r.four(concat_text("inner + ", index)), "kk < k_end"), ";\n");
    }
    for (int s = 0; s < 4; ++s)
      text += concat_text("tile[", place, "u + (LOCAL % 4u * 4u + ", s, "u) * 16u + r] = ", vec, "(v0.", lane(s),
                          ", v1.", lane(s), ", v2.", lane(s), ", v3.", lane(s), ");\n");
    return text + "}\n";
  }
  std::string text = concat_text("for (var q = LOCAL; q < 256u; q += 64u) {\nlet r = ", first,
                                 " + q % 16u * 4u;\nlet kk = k0 + q / 16u;\n");
  text += concat_text("let inner = ", base, " + ", r.contract(whole ? "kk" : concat_text("min(kk, ", depth, " - 1u)")),
                      ";\n");
  std::string v;
  if (r.fours() == Fours::Free) {
    v = r.four(concat_text("inner + ", r.free(concat_text("min(r, ", most, " - 4u)"))));
  } else {
    v = vec + "(";
    for (int e = 0; e < 4; ++e)
      v += concat_text(
          e ? ", " : "",
          r.element(concat_text("inner + ", r.free(concat_text("min(", plus("r", e), ", ", most, " - 1u)")))));
    v += ")";
  }
  return text + concat_text("tile[", place, "u + q] = ", kept(v, "kk < k_end"), ";\n}\n");
}

}  // namespace

void write_tiles(const Dot& dot) {
  const Dim per_batch = tiles(dot.m, kTile) * tiles(dot.n, kTile);
  const KParts parts = k_parts(dot, per_batch * dot.batches, 256);
  const std::optional<Ref> scratch = parts_of(dot, parts, stores_fours(dot));
  KernelBuilder k(dot.node, concat_text("dot_tiles_", dtype_name(dot.accumulator)), kTileThreads);
  k.global(concat_text("var<workgroup> tile: array<vec4<", dot.type, ">, 512>;\n"));
  k << place_of_tile(k, dot, parts, "GROUP", kTile, kTile);
  DotReader x(k, dot, dot.x), w(k, dot, dot.w);
  k << "let x_base = " << x.batch("batch") << ";\nlet w_base = " << w.batch("batch")
    << ";\nlet down = LOCAL / 8u;\nlet across = LOCAL % 8u;\n"
    << accumulators(dot.type, 8, 8);
  const bool whole = divided(dot.k, kDepth).has_value();  // parts are multiples of the step too
  k << concat_text("for (var k0 = k_begin; k0 < k_end; k0 += ", kDepth, "u) {\n")
    << fill(x, "x", dot, k, "m0", dot.m, 0, whole) << fill(w, "w", dot, k, "n0", dot.n, 256, whole)
    << concat_text("workgroupBarrier();\nfor (var s = 0u; s < ", kDepth, "u; s++) {\n");
  for (int h = 0; h < 2; ++h)
    k << concat_text("let a", h, " = tile[s * 16u + down * 2u + ", h, "u];\nlet f", h,
                     " = tile[256u + s * 16u + across * 2u + ", h, "u];\n");
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 2; ++j)
      k << concat_text("c", i, "_", j, " = c", i, "_", j, " + a", i / 4, ".", lane(i), " * f", j, ";\n");
  k << "}\nworkgroupBarrier();\n}\n";
  // Half of the rows at a time go through shared memory, so that neighbouring threads store neighbouring elements.
  DotWriter writer = scratch ? DotWriter(k, dot, *scratch) : DotWriter(k, dot);
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 2; ++j)
        k << concat_text("tile[(down * 4u + ", i, "u) * 16u + across * 2u + ", j, "u] = c", 4 * h + i, "_", j, ";\n");
    k << concat_text("workgroupBarrier();\nfor (var q = LOCAL; q < 512u; q += 64u) {\nlet m = m0 + q / 64u * 8u + ",
                     4 * h, "u + q / 16u % 4u;\nlet n = n0 + q % 16u * 4u;\nlet v = tile[q];\nif (m < ")
      << k.size(Size(dot.m)) << ") " << writer.put_four("v") << "}\n";
    if (h == 0) k << "workgroupBarrier();\n";
  }
  k.finish(per_batch * dot.batches * parts.count);
  if (scratch) finish_dot(dot, *scratch);
}

void write_product(const Dot& dot) {
  if (dot.node.out().elements().is_static(0)) return;
  if (is_few(dot.m)) return write_gemv(dot, false);
  if (is_few(dot.n)) return write_gemv(dot, true);
  if (dot.node.dialect().software) return write_blocks(dot);
  write_tiles(dot);
}

}  // namespace rlx::codegen
