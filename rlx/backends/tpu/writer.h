// A writer of StableHLO text: values with their types, constants, regions. Kernel entries decide what is computed; the
// writer knows the MLIR syntax.
//
// 4-bit values have an 8-bit element type inside a program: I4 is I8, U4 is U8, and F4E2M1 is U8 with its bit pattern.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/tensor/tensor.h"

namespace rlx::tpu {

using Extents = std::vector<std::int64_t>;

/// A value of the text: its name and type. `dtype` is the element dtype in the text.
struct Hlo {
  std::uint32_t id = 0;
  std::int32_t result = -1;  // the result's index, for an op with several results
  DType dtype = DType::F32;
  Extents dims{};
  bool token = false;  // an effect-ordering token instead of a tensor

  int rank() const { return static_cast<int>(dims.size()); }
  std::int64_t extent(std::int64_t axis) const { return dims[static_cast<std::size_t>(axis)]; }
  std::int64_t elements() const;
};
using Hlos = std::vector<Hlo>;

/// An element type with extents, or a token.
struct HloType {
  DType dtype = DType::F32;
  Extents dims{};
  bool token = false;
};
inline HloType type_of(const Hlo& v) { return {v.dtype, v.dims, v.token}; }
inline HloType token_type() { return {DType::Bool, {}, true}; }

/// The dtype in the text of values of dtype `t`.
constexpr DType kept_as(DType t) {
  return t == DType::I4 ? DType::I8 : t == DType::U4 || t == DType::F4E2M1 ? DType::U8 : t;
}
/// The dtype in which arithmetic on floats and complex numbers of dtype `t` is done.
constexpr DType computed_in(DType t) { return t == DType::BF16 || t == DType::F16 ? DType::F32 : t; }

class Writer {
 public:
  explicit Writer(std::size_t reserve) { text_.reserve(reserve); }

  // -- ops with one result; operands of elementwise ops have equal dims --

  /// `stablehlo.NAME` with operands and result of one type.
  Hlo op(std::string_view name, std::initializer_list<const Hlo*> operands) {
    return op(name, operands, type_of(**operands.begin()));
  }
  Hlo op(std::string_view name, const Hlo& a) { return op(name, {&a}); }
  Hlo op(std::string_view name, const Hlo& a, const Hlo& b) { return op(name, {&a, &b}); }
  /// An op with a result of another type, and attributes as written in braces: "dim = 1 : i64".
  Hlo op(std::string_view name, std::initializer_list<const Hlo*> operands, HloType result,
         std::string_view attributes = {});
  /// The same with any number of operands.
  Hlo op_of(std::string_view name, std::span<const Hlo> operands, HloType result, std::string_view attributes = {});
  /// An op with several results.
  Hlos ops(std::string_view name, std::span<const Hlo> operands, std::span<const HloType> results,
           std::string_view attributes = {});

  Hlo add(const Hlo& a, const Hlo& b) { return op("add", a, b); }
  Hlo sub(const Hlo& a, const Hlo& b) { return op("subtract", a, b); }
  Hlo mul(const Hlo& a, const Hlo& b) { return op("multiply", a, b); }
  Hlo div(const Hlo& a, const Hlo& b) { return op("divide", a, b); }
  Hlo max(const Hlo& a, const Hlo& b) { return op("maximum", a, b); }
  Hlo min(const Hlo& a, const Hlo& b) { return op("minimum", a, b); }
  Hlo neg(const Hlo& a) { return op("negate", a); }
  Hlo abs(const Hlo& a) { return op("abs", a); }
  Hlo both(const Hlo& a, const Hlo& b) { return op("and", a, b); }
  Hlo either(const Hlo& a, const Hlo& b) { return op("or", a, b); }
  // The same with a number, in the other operand's type.
  Hlo add(const Hlo& a, double b) { return add(a, full_like(a, b)); }
  Hlo sub(const Hlo& a, double b) { return sub(a, full_like(a, b)); }
  Hlo sub(double a, const Hlo& b) { return sub(full_like(b, a), b); }
  Hlo mul(const Hlo& a, double b) { return mul(a, full_like(a, b)); }
  Hlo div(double a, const Hlo& b) { return div(full_like(b, a), b); }
  Hlo max(const Hlo& a, double b) { return max(a, full_like(a, b)); }
  Hlo min(const Hlo& a, double b) { return min(a, full_like(a, b)); }
  /// A Bool value. `direction` is EQ, NE, LT, LE, GT or GE; complex numbers allow only EQ and NE.
  Hlo compare(std::string_view direction, const Hlo& a, const Hlo& b);
  Hlo compare(std::string_view direction, const Hlo& a, double b) { return compare(direction, a, full_like(a, b)); }
  Hlo is_nan(const Hlo& a) { return compare("NE", a, a); }
  Hlo select(const Hlo& cond, const Hlo& a, const Hlo& b) { return op("select", {&cond, &a, &b}, type_of(a)); }
  Hlo select(const Hlo& cond, double a, const Hlo& b) { return select(cond, full_like(b, a), b); }
  Hlo select(const Hlo& cond, const Hlo& a, double b) { return select(cond, a, full_like(a, b)); }
  /// The elements converted by XLA; `a` itself if the dtype is unchanged.
  Hlo convert(const Hlo& a, DType to);
  Hlo bitcast(const Hlo& a, DType to) { return op("bitcast_convert", {&a}, {to, a.dims}); }
  Hlo complex(const Hlo& re, const Hlo& im);
  Hlo real(const Hlo& a) { return op("real", {&a}, {real_dtype(a.dtype), a.dims}); }
  Hlo imag(const Hlo& a) { return op("imag", {&a}, {real_dtype(a.dtype), a.dims}); }

  // -- moves --

  Hlo reshape(const Hlo& a, const Extents& dims);
  Hlo transpose(const Hlo& a, std::span<const std::int64_t> perm);
  /// Axis i of `a` is axis `axes[i]` of the result; axes of extent 1 stretch.
  Hlo broadcast(const Hlo& a, const Extents& dims, std::span<const std::int64_t> axes);
  /// Broadcasts by NumPy's rule; `a` itself if the dims are unchanged.
  Hlo broadcast(const Hlo& a, const Extents& dims);
  Hlo slice(const Hlo& a, std::span<const std::int64_t> starts, std::span<const std::int64_t> limits,
            std::span<const std::int64_t> strides);
  Hlo pad(const Hlo& a, const Hlo& value, std::span<const std::int64_t> low, std::span<const std::int64_t> high,
          std::span<const std::int64_t> interior);
  Hlo concat(std::span<const Hlo> parts, std::int64_t axis);
  Hlo iota(DType t, const Extents& dims, std::int64_t axis);
  Hlo dynamic_slice(const Hlo& a, std::span<const Hlo> starts, const Extents& sizes);
  Hlo dynamic_update_slice(const Hlo& a, const Hlo& update, std::span<const Hlo> starts);

  // -- constants --

  /// A scalar of dtype `t` (complex: with a zero imaginary part; 4-bit and 8-bit floats: the nearest value). Each
  /// number is written once per region. Integers must be exact in double; `scalar_bits` takes any.
  Hlo scalar(DType t, double value);
  /// A scalar of an integer or Bool dtype from the low bits of `bits`.
  Hlo scalar_bits(DType t, std::uint64_t bits);
  Hlo full(DType t, double value, const Extents& dims) { return broadcast(scalar(t, value), dims, {}); }
  Hlo full_like(const Hlo& a, double value) { return full(a.dtype, value, a.dims); }
  /// The elements of `t`, exactly.
  Hlo constant(const Tensor& t);

  // -- regions --

  /// The body of a region: it gets the region's arguments and returns its results.
  using Body = std::function<Hlos(const Hlos&)>;
  /// An op with regions; its attributes follow the regions.
  Hlos with_regions(std::string_view name, std::span<const Hlo> operands, std::span<const HloType> results,
                    std::initializer_list<std::pair<std::span<const HloType>, Body>> regions,
                    std::string_view attributes = {});
  /// The reduction over `axes` by a binary op on scalars: "add", "maximum", ..
  Hlo reduce(std::string_view name, const Hlo& a, const Hlo& init, std::span<const std::int64_t> axes);

  // -- order --

  /// The values, ordered after all values that were put in order before, and before all later ones.
  Hlos in_order(std::span<const Hlo> values);
  /// The token of the ordered values so far. A region that orders values takes the outer token and returns its last
  /// one.
  Hlo order();
  void set_order(Hlo token) { order_ = std::move(token); }
  bool has_order() const { return order_.has_value(); }

  // -- functions --

  /// `func.func public @main(`, its arguments with attributes, and their values.
  Hlos begin_main(std::span<const HloType> arguments, std::span<const std::string> attributes,
                  std::span<const HloType> results);
  void end_main(std::span<const Hlo> results);
  std::string take() { return std::move(text_); }

 private:
  struct Scalar {
    DType dtype;
    std::uint64_t bits;
    std::uint32_t id;
  };
  std::uint32_t begin_result(std::size_t results);
  void name(const Hlo& v);
  void type(const HloType& t) { type(t.dtype, t.dims, t.token); }
  void type(const Hlo& v) { type(v.dtype, v.dims, v.token); }
  void type(DType t, const Extents& dims, bool token = false);
  void types(std::span<const HloType> list);
  void indent() { text_.append(2 * regions_.size(), ' '); }
  Hlo scalar_text(DType t, std::uint64_t bits, std::string_view text);
  void values(std::span<const Hlo> list);
  void number(std::uint64_t n);

  std::string text_;
  std::uint32_t next_ = 0;
  std::vector<std::vector<Scalar>> regions_;  // the scalars of @main and of each open region
  std::optional<Hlo> order_;
};

/// "array<i64: 1, 2>".
std::string i64_array(std::span<const std::int64_t> list);
/// "[1, 2]".
std::string i64_list(std::span<const std::int64_t> list);

}  // namespace rlx::tpu
