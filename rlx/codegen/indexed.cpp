// Finds blocks of tables by index.
#include "rlx/codegen/indexed.h"

#include <algorithm>

#include "rlx/ir/op_def.h"

namespace rlx::codegen {

IndexedAxes::IndexedAxes(NodeKernels& node, std::vector<std::int64_t> axes, int first) : axes_(std::move(axes)) {
  for (std::size_t i = 0; i < axes_.size(); ++i) indices_.push_back(node.in(first + static_cast<int>(i)));
}

Ref IndexedAxes::target(const Ref& table, int rank) const {
  const auto first = static_cast<int>(axes_.front());
  Ref r = table;
  r.dense = false;
  r.dims = {table.extent(0, first)};
  r.strides = {Size(table.extent(first, table.rank()))};
  bool open = false;  // the last axis may absorb the next one
  for (int a = first; a < table.rank(); ++a) {
    if (a < rank && std::binary_search(axes_.begin(), axes_.end(), a)) {
      open = false;
      continue;
    }
    if (open) {
      r.dims.back() = r.dims.back() * table.dim(a);
      r.strides.back() = table.stride(a);
    } else {
      r.dims.push_back(table.dim(a));
      r.strides.push_back(table.stride(a));
    }
    open = true;
  }
  if (!open) r.dims.push_back(Dim(1)), r.strides.push_back(Size(1));
  return r;
}

Ref IndexedAxes::picked(const Ref& flat, const Ref& target) const {
  Dims dims{target.dims[0], count()};
  dims.insert(dims.end(), target.dims.begin() + 1, target.dims.end());
  return reshaped(flat, dims);
}

std::vector<Dim> IndexedAxes::strides(const Ref& table) const {
  std::vector<Dim> out;
  for (std::int64_t a : axes_) out.push_back(table.stride(static_cast<int>(a)).number().dim);
  return out;
}

Dims IndexedAxes::extents(const Ref& table) const {
  Dims out;
  for (std::int64_t a : axes_) out.push_back(table.dim(static_cast<int>(a)));
  return out;
}

IndexedAxes::Place IndexedAxes::find(KernelBuilder& k, const std::string& n, bool clamp, const Dims& extents,
                                     const std::vector<Dim>& strides) const {
  Place p;
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    const std::string extent = k.size(Size(extents[i])), at = load_index(k, indices_[i], n), name = concat_text("p", i);
    p.statements += clamp ? concat_text("let ", name, " = u32(clamp(", at, ", 0, i32(", extent, ") - 1));\n")
                          : concat_text("let ", name, " = bitcast<u32>(", at, ");\n");
    p.inside += concat_text(i ? " && " : "", name, " < ", extent);
    p.offset += concat_text(i ? " + " : "", name);
    if (!strides[i].is_static(1)) p.offset += concat_text(" * ", k.size(Size(strides[i])));
  }
  if (clamp) p.inside = "true";
  return p;
}

IndexedAxes::Place IndexedAxes::place(const Mover& m, KernelBuilder& k, const Ref& table, const std::string& n,
                                      bool clamp) const {
  std::vector<Dim> units = strides(table);
  for (Dim& d : units) d = m.in_units(d);
  return find(k, n, clamp, extents(table), units);
}

IndexedAxes::Place IndexedAxes::target_number(KernelBuilder& k, const Ref& table, const std::string& n,
                                              bool clamp) const {
  const Dims of = extents(table);
  std::vector<Dim> strides;
  for (const Size& s : dense_strides(of)) strides.push_back(s.number().dim);
  return find(k, n, clamp, of, strides);
}

IndexedAxes::Place IndexedAxes::place_of_number(Mover& m, const Ref& table, const std::string& number) const {
  const Dims of = extents(table);
  const std::vector<Dim> units = strides(table);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < of.size(); ++i) names.push_back(concat_text("p", i));
  Place p{m.k().split(number, of, names), {}, "true"};
  for (std::size_t i = 0; i < of.size(); ++i)
    p.offset += concat_text(i ? " + " : "", names[i], " * ", m.k().size(Size(m.in_units(units[i]))));
  return p;
}

std::vector<std::string> IndexedAxes::without_count(std::vector<std::string> c) {
  c.erase(c.begin() + 1);
  return c;
}

}  // namespace rlx::codegen
