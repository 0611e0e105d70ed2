// Offsets from numbers that index several axes, and elements read four at a time.
#include "rlx/codegen/walk.h"

#include "rlx/codegen/elements.h"
#include "rlx/ir/op_def.h"

namespace rlx::codegen {
namespace {

// True when the stride is a multiple of 4 for every value of the symbols.
bool is_multiple(const Size& stride) {
  return stride.number().kind == Number::Kind::Extent && divided(stride.number().dim, 4).has_value();
}

}  // namespace

Walk::Walk(const Ref& r, const std::vector<int>& axes) {
  ref_ = r;
  ref_.dims.clear();
  ref_.strides.clear();
  for (int a : axes) {
    ref_.dims.push_back(r.dim(a));
    ref_.strides.push_back(r.stride(a));
    extent_ = extent_ * r.dim(a);
  }
  if (axes.empty()) return;
  std::vector<Ref> refs{ref_};
  join_axes(refs);
  ref_ = refs[0];
}

std::string Walk::at(KernelBuilder& k, std::string_view name, std::string_view number) const {
  if (ref_.dims.empty()) return "0u";
  if (ref_.dims.size() == 1) return k.at(ref_, {concat_text("(", number, ")")});
  std::vector<std::string> coordinates;
  for (std::size_t a = 0; a < ref_.dims.size(); ++a) coordinates.push_back(concat_text("c", a));
  const std::string split = k.split("i", ref_.dims, coordinates);
  k.global(concat_text("fn ", name, "(i: u32) -> u32 {\n", split, "return ", k.at(ref_, coordinates), ";\n}\n"));
  return concat_text(name, "(", number, ")");
}

bool Walk::by_fours() const {
  for (std::size_t a = 0; a < ref_.dims.size(); ++a)
    if (!ref_.dims[a].is_static(1) && !is_multiple(ref_.strides[a])) return false;
  return true;
}

bool Walk::in_fours() const {
  if (!dense_last() || !divided(ref_.dims.back(), 4)) return false;
  for (std::size_t a = 0; a + 1 < ref_.dims.size(); ++a)
    if (!is_multiple(ref_.strides[a])) return false;
  return true;
}

std::string load_quad(KernelBuilder& k, const Ref& r, std::string_view name, std::string_view index) {
  const std::size_t bytes = size_bytes(r.dtype);
  if (bytes == 4) return k.load4(r, concat_text("(", index, ") >> 2u"));
  std::string lanes;
  for (int e = 0; e < 4; ++e) {
    const int lane = bytes == 2 ? e & 1 : e;
    const std::string word = bytes == 2 && e >= 2 ? "high" : "low";
    const int shift = lane * static_cast<int>(bytes) * 8;
    lanes +=
        concat_text(e ? ", " : "", k.from_bits(r.dtype, shift ? concat_text("(", word, " >> ", shift, "u)") : word));
  }
  std::string words = concat_text("let low = ", k.load_word(r, bytes == 2 ? "i >> 1u" : "i >> 2u"), ";\n");
  if (bytes == 2) words += concat_text("let high = ", k.load_word(r, "(i >> 1u) + 1u"), ";\n");
  const std::string type = concat_text("vec4<", compute_type(r.dtype), ">");
  k.global(concat_text("fn ", name, "(i: u32) -> ", type, " {\n", words, "return ", type, "(", lanes, ");\n}\n"));
  return concat_text(name, "(", index, ")");
}

std::string store_quad(KernelBuilder& k, const Ref& r, std::string_view index, std::string_view value) {
  const std::size_t bytes = size_bytes(r.dtype);
  if (bytes == 4) return k.store4(r, concat_text("(", index, ") >> 2u"), value);
  const auto bits = [&](int e) { return k.to_bits(r.dtype, concat_text(value, ".", "xyzw"[e])); };
  if (bytes == 1) {
    std::string word = bits(0);
    for (int e = 1; e < 4; ++e) word += concat_text(" | (", bits(e), " << ", 8 * e, "u)");
    return k.store_word(r, concat_text("(", index, ") >> 2u"), word);
  }
  std::string out;
  for (int w = 0; w < 2; ++w)
    out += k.store_word(r, concat_text("((", index, ") >> 1u)", w ? " + 1u" : ""),
                        concat_text(bits(2 * w), " | (", bits(2 * w + 1), " << 16u)"));
  return out;
}

}  // namespace rlx::codegen
