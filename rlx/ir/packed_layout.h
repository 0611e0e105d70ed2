// Packed layouts: how the bytes of a value lie when a kernel does not read them row-major. The shape stays the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/attr.h"
#include "rlx/ir/lazy_field.h"

namespace rlx {

class Graph;
struct Value;

/// The precision that a packed layout keeps for the matmuls that read it. Exact loses nothing. BF16 rounds a weight to
/// bf16. Int8 rounds it to one of 255 steps for each column. For block-quantized weights Int8 rounds the other operand,
/// and BF16 may round both (precision.h has the numbers). Layouts that lose precision need the caller's allowed
/// precision loss (PrecisionPolicy::matmul_precision).
enum class MatmulPrecision : std::uint8_t { Exact, BF16, Int8 };
/// "exact", "bf16", "int8".
std::string_view matmul_precision_name(MatmulPrecision precision);

/// A packed layout that kernels ask for. Only the kernel entries that ask for it interpret `id` and `params`. The empty
/// layout is row-major.
struct PackedLayout {
  std::string id{};                    // "panels"
  std::vector<std::int64_t> params{};  // everything else the bytes depend on: widths, dtypes, version of the encoder
  std::int64_t bytes = 0;
  std::int64_t count = 1;  // number of matrices, stored one after the other
  bool lossless = true;    // the values can be read back bit for bit

  bool empty() const { return id.empty(); }
  friend bool operator==(const PackedLayout&, const PackedLayout&) = default;
};

/// "panels(48,1);589824", followed by ";count 4" and ";lossy" where they apply; "" for the empty layout.
std::string packed_layout_text(const PackedLayout& layout);
/// Parses such a text. A text that `packed_layout_text` does not write gives a layout of negative bytes, which no op
/// accepts.
PackedLayout parse_packed_layout(std::string_view text);

/// The layout of `count` matrices of layout `one`, stored one after the other. InvalidArgument for a count below one
/// and for a size in bytes that overflows.
PackedLayout stacked(const PackedLayout& one, std::int64_t count);
/// The inverse of `stacked`: the layout of one of the `count` matrices. InvalidArgument unless `count` divides `bytes`.
PackedLayout layout_of_one_matrix(const PackedLayout& layout);

/// The packed layout of a value. A prepared Param, an Input of a body and a Relayout can have one; it is empty for all
/// other values.
const PackedLayout& packed_layout_of(const Graph& g, Value v);
/// Bytes of a value in a graph without symbols: those of its packed layout, or of its shape.
std::size_t stored_bytes(const Graph& g, Value v);

namespace detail {
template <>
struct AttrTraits<PackedLayout> {
  static constexpr AttrType type = AttrType::String;
  static constexpr std::span<const std::string_view> names() { return {}; }
  static AttrValue get(const PackedLayout& f) { return packed_layout_text(f); }
  static void set(PackedLayout& f, AttrValue a) { f = parse_packed_layout(std::get<std::string>(a)); }
};
template <>
struct AttrTraits<LazyField<PackedLayout>> : AttrTraits<PackedLayout> {
  static AttrValue get(const LazyField<PackedLayout>& f) { return packed_layout_text(*f); }
  static void set(LazyField<PackedLayout>& f, AttrValue a) { f = parse_packed_layout(std::get<std::string>(a)); }
};
}  // namespace detail

// -- names of the last release --
using Form [[deprecated("now PackedLayout")]] = PackedLayout;
using Products [[deprecated("now MatmulPrecision")]] = MatmulPrecision;
[[deprecated("now matmul_precision_name")]] inline std::string_view products_name(MatmulPrecision precision) {
  return matmul_precision_name(precision);
}
[[deprecated("now packed_layout_text")]] inline std::string form_text(const PackedLayout& layout) {
  return packed_layout_text(layout);
}
[[deprecated("now parse_packed_layout")]] inline PackedLayout parse_form(std::string_view text) {
  return parse_packed_layout(text);
}
[[deprecated("now layout_of_one_matrix")]] inline PackedLayout matrix_form(const PackedLayout& layout) {
  return layout_of_one_matrix(layout);
}
[[deprecated("now packed_layout_of")]] const PackedLayout& form_of(const Graph& g, Value v);

}  // namespace rlx
