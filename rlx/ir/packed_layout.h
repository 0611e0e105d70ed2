// Forms: how kernels want the bytes of a value whose shape stays what it is.
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

/// What is lost when a product reads its weights in a form: nothing, what BF16 does not hold, or what one of 255 steps
/// for each column does not; of weights in blocks Int8 rounds the other operand, and BF16 may round both (precision.h
/// has the numbers). Loss needs leave (PrecisionPolicy::matmul).
enum class MatmulPrecision : std::uint8_t { Exact, BF16, Int8 };
/// "exact", "bf16", "int8".
std::string_view matmul_precision_name(MatmulPrecision products);

/// How kernels want a value. Only the rows that asked for it understand `id` and `params`; the empty form is row-major.
struct PackedLayout {
  std::string id{};                    // "panels"
  std::vector<std::int64_t> params{};  // all that the bytes depend on: widths, dtypes, the version of the encoder
  std::int64_t bytes = 0;
  std::int64_t count = 1;  // matrices, one after the other
  bool lossless = true;    // the values can be read back bit for bit

  bool empty() const { return id.empty(); }
  friend bool operator==(const PackedLayout&, const PackedLayout&) = default;
};

/// "panels(48,1);589824", with ";count 4" and ";lossy" where they are; "" for the empty form.
std::string packed_layout_text(const PackedLayout& form);
/// The way back; a text that `packed_layout_text` does not write gives a form of negative bytes, which no op accepts.
PackedLayout parse_packed_layout(std::string_view text);

/// `one`, the form of a matrix, as that of `count` of them, one after the other; InvalidArgument for less than one and
/// for more bytes than can be counted.
PackedLayout stacked(const PackedLayout& one, std::int64_t count);
/// The form of each matrix of a form of several; InvalidArgument when its bytes do not divide.
PackedLayout layout_of_one_matrix(const PackedLayout& form);

/// The form of a value: of a prepared Param, an Input of a body that takes one, or a Relayout; the empty one of others.
const PackedLayout& packed_layout_of(const Graph& g, Value v);
/// Bytes that a value of a graph without symbols takes: those of its form, or of its shape.
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
[[deprecated("now matmul_precision_name")]] inline constexpr auto& products_name = matmul_precision_name;
[[deprecated("now packed_layout_text")]] inline constexpr auto& form_text = packed_layout_text;
[[deprecated("now parse_packed_layout")]] inline constexpr auto& parse_form = parse_packed_layout;
[[deprecated("now layout_of_one_matrix")]] inline constexpr auto& matrix_form = layout_of_one_matrix;
[[deprecated("now packed_layout_of")]] inline constexpr auto& form_of = packed_layout_of;

}  // namespace rlx
