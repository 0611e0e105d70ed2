// Elementwise kernels: three ways to iterate over the elements.
#include "rlx/codegen/elements.h"

#include <algorithm>

#include "rlx/ir/op_def.h"

namespace rlx::codegen {
namespace {

bool same_number(const Size& a, const Size& b) { return a.number() == b.number(); }

// stride * extent, where both are expressions.
std::optional<Dim> walked(const Size& stride, const Dim& extent) {
  if (stride.number().kind != Number::Kind::Extent) return std::nullopt;
  return stride.number().dim * extent;
}

std::vector<std::string> coordinate_names(std::size_t rank) {
  std::vector<std::string> names;
  for (std::size_t a = 0; a < rank; ++a) names.push_back(concat_text("c", a));
  return names;
}

std::string compute_name(const Ref& r) { return std::string(compute_type(r.dtype)); }

// Four elements of an operand as expressions. `q` is the index of the group of four; `at` has the coordinates, the last
// in groups of four.
std::vector<std::string> load_four(KernelBuilder& k, const NodeKernels& node, const Ref& r, std::size_t number,
                                   const std::vector<std::string>& at) {
  const std::string name = concat_text("v", number);
  const std::size_t last = r.dims.size() - 1;
  if (r.strides[last].is(0)) {
    k << "let " << name << " = " << k.load(r, k.at(r, at)) << ";\n";
    return {name, name, name, name};
  }
  if (reads_fours(node, r)) {
    Ref quarter = r;
    for (std::size_t a = 0; a < last; ++a) quarter.strides[a] = *divided(r.strides[a].number().dim, 4);
    const std::string index = k.at(quarter, at);
    if (size_bytes(r.dtype) == 4) {
      k << "let " << name << " = " << k.load4(r, index) << ";\n";
      return {name + ".x", name + ".y", name + ".z", name + ".w"};
    }
    std::vector<std::string> out;
    const int words = size_bytes(r.dtype) == 2 ? 2 : 1, width = 8 * static_cast<int>(size_bytes(r.dtype));
    for (int w = 0; w < words; ++w) {
      const std::string word = concat_text(name, "_", w);
      k << "let " << word << " = " << k.load_word(r, words == 1 ? index : concat_text("(", index, ") * 2u + ", w, "u"))
        << ";\n";
      for (int e = 0; e < 4 / words; ++e)
        out.push_back(k.from_bits(r.dtype, e == 0 ? word : concat_text("(", word, " >> ", e * width, "u)")));
    }
    return out;
  }
  std::vector<std::string> whole = at;
  whole[last] = concat_text("(", at[last], " * 4u)");
  k << "let " << name << " = " << k.at(r, whole) << ";\n";
  std::vector<std::string> out;
  const std::string step = k.size(r.strides[last]);
  for (int e = 0; e < 4; ++e) {
    const std::string index = e == 0                  ? name
                              : r.strides[last].is(1) ? concat_text(name, " + ", e, "u")
                                                      : concat_text(name, " + ", e, "u * ", step);
    out.push_back(k.load(r, index));
  }
  return out;
}

// Stores four results; `lanes` are their values.
void store_four(KernelBuilder& k, const Ref& r, const std::vector<std::string>& lanes) {
  const auto list = [&](std::size_t first, std::size_t count, int width) {
    std::string word;
    for (std::size_t e = 0; e < count; ++e) {
      const std::string bits = k.to_bits(r.dtype, lanes[first + e]);
      word += e == 0 ? bits : concat_text(" | (", bits, " << ", static_cast<int>(e) * width, "u)");
    }
    return word;
  };
  switch (size_bytes(r.dtype)) {
    case 4:
      k << k.store4(r, "q",
                    concat_text("vec4<", compute_type(r.dtype), ">(", lanes[0], ", ", lanes[1], ", ", lanes[2], ", ",
                                lanes[3], ")"));
      return;
    case 2: k << k.store_word(r, "q * 2u", list(0, 2, 16)) << k.store_word(r, "q * 2u + 1u", list(2, 2, 16)); return;
    default: k << k.store_word(r, "q", list(0, 4, 8));
  }
}

// Defines the function of one element.
void define_lane(KernelBuilder& k, const ElementFunction& f, const std::vector<Ref>& operands) {
  std::string parameters, values, fields;
  for (std::size_t i = 0; i < operands.size(); ++i)
    parameters += concat_text(i ? ", " : "", "x", i, ": ", compute_type(operands[i].dtype));
  for (std::size_t r = 0; r < f.values.size(); ++r) {
    values += concat_text(r ? ", " : "", f.values[r]);
    fields += concat_text(r ? ", " : "", "r", r, ": ", compute_type(f.results[r].dtype));
  }
  const bool one = f.values.size() == 1;
  std::string text = one ? "" : concat_text("struct Lane { ", fields, " }\n");
  text += concat_text("fn lane(", parameters, ") -> ", one ? compute_name(f.results[0]) : "Lane", " {\n", f.statements,
                      "return ", one ? values : concat_text("Lane(", values, ")"), ";\n}\n");
  k.global(text);
}

// A thread computes four consecutive elements along the last axis.
void finish_fours(KernelBuilder& k, const NodeKernels& node, const ElementFunction& f, const std::vector<Ref>& operands,
                  const Dims& dims) {
  define_lane(k, f, operands);
  const Dim threads = *divided(f.results[0].elements(), 4);
  k << "let q = THREAD;\nif (q >= " << k.size(Size(threads)) << ") { return; }\n";
  const std::vector<std::string> at = coordinate_names(dims.size());
  Dims quarters = dims;
  quarters.back() = *divided(dims.back(), 4);
  k << k.split("q", quarters, at);
  std::vector<std::vector<std::string>> loaded;
  for (std::size_t i = 0; i < operands.size(); ++i) loaded.push_back(load_four(k, node, operands[i], i, at));
  for (int e = 0; e < 4; ++e) {
    std::string arguments;
    for (std::size_t i = 0; i < operands.size(); ++i)
      arguments += concat_text(i ? ", " : "", loaded[i][static_cast<std::size_t>(e)]);
    k << "let y" << concat_text(e) << " = lane(" << arguments << ");\n";
  }
  for (std::size_t r = 0; r < f.results.size(); ++r) {
    std::vector<std::string> lanes;
    for (int e = 0; e < 4; ++e)
      lanes.push_back(f.values.size() == 1 ? concat_text("y", e) : concat_text("y", e, ".r", r));
    store_four(k, f.results[r], lanes);
  }
  k.finish_threads(threads);
}

}  // namespace

std::optional<Dim> divided(const Dim& d, std::int64_t by) { return exact_div(d, Dim(by)); }

bool reads_fours(const NodeKernels& node, const Ref& r) {
  const std::size_t last = r.dims.size() - 1;
  if (!r.strides[last].is(1) || size_bytes(r.dtype) > 4 || !node.is_aligned(r, 4 * size_bytes(r.dtype))) return false;
  for (std::size_t a = 0; a < last; ++a)
    if (r.strides[a].number().kind != Number::Kind::Extent || !divided(r.strides[a].number().dim, 4)) return false;
  return true;
}

void join_axes(std::vector<Ref>& refs) {
  const auto drop = [&](std::size_t a) {
    const auto i = static_cast<std::ptrdiff_t>(a);
    for (Ref& r : refs) r.dims.erase(r.dims.begin() + i), r.strides.erase(r.strides.begin() + i);
  };
  const auto rank = [&] { return refs[0].dims.size(); };
  for (std::size_t a = rank(); a-- > 0;)
    if (rank() > 1 && refs[0].dims[a].is_static(1)) drop(a);
  for (std::size_t a = rank(); a-- > 1;) {
    const Dim inner = refs[0].dims[a];
    const bool joins = std::all_of(refs.begin(), refs.end(), [&](const Ref& r) {
      if (r.strides[a].is(0) && r.strides[a - 1].is(0)) return true;
      const auto whole = walked(r.strides[a], inner);
      return whole && same_number(Size(*whole), r.strides[a - 1]);
    });
    if (!joins) continue;
    for (Ref& r : refs) {
      r.dims[a] = r.dims[a] * r.dims[a - 1];
      r.dims.erase(r.dims.begin() + static_cast<std::ptrdiff_t>(a) - 1);
      r.strides.erase(r.strides.begin() + static_cast<std::ptrdiff_t>(a) - 1);
    }
  }
  for (Ref& r : refs)
    if (r.dims.empty()) r.dims = {Dim(1)}, r.strides = {Size(1)};
}

void finish_elements(KernelBuilder& k, const ElementFunction& f) {
  std::vector<Ref> refs = f.operands;
  Ref result = f.results.at(0);
  refs.push_back(result);
  join_axes(refs);
  const Dims dims = refs.back().dims;
  refs.pop_back();
  const bool fours = divided(dims.back(), 4) && !f.is_long &&
                     std::all_of(f.results.begin(), f.results.end(),
                                 [&](const Ref& r) { return k.node().is_aligned(r, 4 * size_bytes(r.dtype)); });
  if (fours) return finish_fours(k, k.node(), f, refs, dims);
  const std::vector<std::string> at = coordinate_names(dims.size());
  std::string statements = k.split("i", dims, at);
  for (std::size_t i = 0; i < refs.size(); ++i)
    statements += concat_text("let x", i, " = ", k.load(refs[i], k.at(refs[i], at)), ";\n");
  finish_map(k, f.results, statements + f.statements, f.values);
}

}  // namespace rlx::codegen
