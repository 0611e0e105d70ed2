// Row kernels, one workgroup per row.
#include "rlx/codegen/row_kernels.h"

#include <algorithm>

#include "rlx/codegen/elements.h"
#include "rlx/ir/op_def.h"

namespace rlx::codegen {
namespace {

std::vector<int> axes_outside(int rank, const std::vector<int>& inside) {
  std::vector<int> out;
  for (int a = 0; a < rank; ++a)
    if (std::find(inside.begin(), inside.end(), a) == inside.end()) out.push_back(a);
  return out;
}

// The threads of a workgroup: one for every few elements.
int threads_of_row(const Dialect& d, std::int64_t length) {
  if (d.software) return kRasteriserThreads;
  return length <= 256 ? 32 : length <= 2048 ? 128 : 256;
}

}  // namespace

RowKernel::RowKernel(NodeKernels& node, std::string name, const Ref& x, std::vector<int> inside,
                     const std::vector<Ref>& others)
    : outside_(axes_outside(x.rank(), inside)),
      inside_(std::move(inside)),
      threads_(threads_of_row(node.dialect(), node.upper(Walk(x, inside_).extent()))),
      k_(node, std::move(name), threads_) {
  rows_ = Walk(x, outside_).extent(), length_ = Walk(x, inside_).extent();
  const auto together = [&](const Ref& r) {
    return node.is_aligned(r, 4 * size_bytes(r.dtype)) && Walk(r, outside_).by_fours() && Walk(r, inside_).in_fours();
  };
  fours_ = together(x) && std::all_of(others.begin(), others.end(), together);
  type_ = fours_ ? "vec4<f32>" : "f32";
  k_.global(concat_text("var<workgroup> part: array<f32, ", threads_, ">;\n"));
}

std::string RowKernel::each(std::string_view body) const {
  const Dim count = fours_ ? *divided(length_, 4) : length_;
  return concat_text("for (var i = LOCAL; i < ", const_cast<KernelBuilder&>(k_).size(Size(count)), "; i += ", threads_,
                     "u) {\n", body, "}\n");
}

std::string RowKernel::load(const Ref& r, const std::string& name) {
  const std::string at = concat_text(Walk(r, outside_).at(k_, name + "_row", "GROUP"), " + ",
                                     Walk(r, inside_).at(k_, name + "_in", fours_ ? "i * 4u" : "i"));
  return fours_ ? load_quad(k_, r, name + "_load", at) : k_.load(r, at);
}

std::string RowKernel::store(const Ref& r, const std::string& name, std::string_view value) {
  const std::string at = concat_text(Walk(r, outside_).at(k_, name + "_row", "GROUP"), " + ",
                                     Walk(r, inside_).at(k_, name + "_in", fours_ ? "i * 4u" : "i"));
  return fours_ ? store_quad(k_, r, at, value) : k_.store(r, at, value);
}

std::string RowKernel::load_vector(const Ref& r, const std::string& name) {
  std::vector<int> all;
  for (int a = 0; a < r.rank(); ++a) all.push_back(a);
  const Walk walk(r, all);
  if (!fours_) return k_.load(r, walk.at(k_, name + "_in", "i"));
  if (walk.in_fours() && k_.node().is_aligned(r, 4 * size_bytes(r.dtype)))
    return load_quad(k_, r, name + "_load", walk.at(k_, name + "_in", "i * 4u"));
  std::string text = "vec4<f32>(";
  for (int e = 0; e < 4; ++e)
    text += concat_text(e ? ", " : "", k_.load(r, walk.at(k_, name + "_in", concat_text("i * 4u + ", e, "u"))));
  return text + ")";
}

std::string RowKernel::reduced(const char* name, const char* combine, std::string_view value) {
  k_.global(concat_text(
      "fn ", name, "(v: f32, local: u32) -> f32 {\npart[local] = v;\nfor (var s = ", threads_ / 2,
      "u; s > 0u; s = s >> 1u) {\nworkgroupBarrier();\nif (local < s) { let a = part[local]; let b = part[local + s]; ",
      "part[local] = ", combine,
      "; }\n}\nworkgroupBarrier();\nlet all = part[0];\nworkgroupBarrier();\nreturn all;\n}\n"));
  return concat_text(name, "(", value, ", LOCAL)");
}

std::string RowKernel::sum(std::string_view v) {
  return reduced("sum_of_row", "a + b",
                 fours_ ? concat_text("(", v, ".x + ", v, ".y) + (", v, ".z + ", v, ".w)") : std::string(v));
}
std::string RowKernel::largest(std::string_view v) {
  return reduced("largest_of_row", "max(a, b)",
                 fours_ ? concat_text("max(max(", v, ".x, ", v, ".y), max(", v, ".z, ", v, ".w))") : std::string(v));
}

std::string RowKernel::store_of_row(const Ref& r, std::string_view value) {
  return concat_text("if (LOCAL == 0u) {\n", k_.store(r, "GROUP", value), "}\n");
}

void RowKernel::finish() { k_.finish(rows_); }

}  // namespace rlx::codegen
