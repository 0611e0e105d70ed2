// A dimension: an integer, or a canonical integer expression over named symbols.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rlx {

struct DimExpr;
/// Symbol name -> value, for `Dim::bind`.
using SymbolBinding = std::map<std::string, std::int64_t, std::less<>>;
/// Inclusive bounds of a value.
struct DimRange {
  std::int64_t min = 0, max = 0;
};
/// Symbol name -> bounds, for `Dim::range`.
using SymbolRanges = std::map<std::string, DimRange, std::less<>>;

/// An int64, or a shared immutable expression (+, -, *, floordiv, mod, min, max over symbols). Its form is canonical,
/// so equal expressions compare equal without a graph.
class Dim {
 public:
  Dim() = default;
  /// From any integer type. Throws InvalidArgument for 2^63 and above.
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Dim(T value) : value_(static_cast<std::int64_t>(value)) {  // NOLINT(implicit)
    if constexpr (std::is_unsigned_v<T>)
      if (value_ < 0) throw_too_large(value);
  }
  /// The dimension named `name` ([A-Za-z_][A-Za-z0-9_]*). Users call `graph.symbol(name)`, which also records bounds.
  static Dim symbol(std::string_view name);

  /// True for an integer, or for that integer.
  bool is_static() const { return expr_ == nullptr; }
  bool is_static(std::int64_t v) const { return expr_ == nullptr && value_ == v; }
  /// The integer. Throws Unsupported naming the expression when it is symbolic.
  std::int64_t value() const;
  /// The expression with the symbols of `binding` replaced. Other symbols stay.
  Dim bind(const SymbolBinding& binding) const;
  /// The same as an integer. Throws Unsupported naming a symbol that is not bound.
  std::int64_t evaluate(const SymbolBinding& binding) const;
  /// Bounds of the expression by interval arithmetic. No value lies outside, and bounds of sums of positive terms are
  /// tight. Throws Unsupported naming a symbol without bounds.
  DimRange range(const SymbolRanges& symbols) const;
  /// The names of all symbols, sorted and unique.
  std::vector<std::string> symbols() const;
  /// Canonical text, for example "2*batch*seq + 1". `parse_dim` reads it back.
  std::string text() const;

  friend bool operator==(const Dim& a, const Dim& b) {
    return !a.expr_ && !b.expr_ ? a.value_ == b.value_ : same_expression(a, b);
  }
  /// Arithmetic on dimensions; the result is canonical. InvalidArgument on overflow and for a divisor
  /// that is not positive.
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floordiv(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  /// `a / b` when it is exact for every value of the symbols (each coefficient divides); otherwise none.
  friend std::optional<Dim> exact_div(const Dim& a, const Dim& b);

 private:
  [[noreturn]] static void throw_too_large(std::uint64_t value);
  static bool same_expression(const Dim& a, const Dim& b);
  friend struct DimExpr;
  friend Dim dim_from_expr(DimExpr expr);
  std::int64_t value_ = 0;
  std::shared_ptr<const DimExpr> expr_;
};

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floordiv(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
std::optional<Dim> exact_div(const Dim& a, const Dim& b);

/// Parses the text of a dimension expression. None when it is malformed.
std::optional<Dim> parse_dim(std::string_view text);

using Dims = std::vector<Dim>;

}  // namespace rlx
