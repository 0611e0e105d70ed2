// Python's integers beyond 64 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rlx::jinja {

/// An integer of any size, within kMaxBits: templates are untrusted, and Python writes at most 4300 digits.
class BigInteger {
 public:
  static constexpr std::size_t kMaxBits = 14'284;  // 10^4300

  BigInteger() = default;
  explicit BigInteger(std::int64_t v);
  /// Digits of a base from 2 to 36, with an optional '-'. Nothing for more than kMaxBits.
  static std::optional<BigInteger> parse(std::string_view digits, int base);
  /// The whole part of a finite number.
  static BigInteger of_real(double v);

  bool negative() const { return negative_; }
  bool is_zero() const { return limbs_.empty(); }
  std::size_t num_limbs() const { return limbs_.size(); }
  bool too_large() const;
  std::optional<std::int64_t> as_int64() const;
  /// The nearest F64; infinity beyond its range.
  double as_real() const;
  /// Digits with '-' in front of a negative number.
  std::string text(int base = 10) const;

  BigInteger negated() const;
  BigInteger operator+(const BigInteger& b) const;
  BigInteger operator-(const BigInteger& b) const { return *this + b.negated(); }
  BigInteger operator*(const BigInteger& b) const;
  /// Python's // and %, of a divisor that is not zero.
  std::pair<BigInteger, BigInteger> divided_by(const BigInteger& b) const;
  /// -1, 0 or 1.
  static int compare(const BigInteger& a, const BigInteger& b);

 private:
  using Limbs = std::vector<std::uint32_t>;  // lowest first, the highest not 0
  static int compare_sizes(const Limbs& a, const Limbs& b);
  static Limbs sum(const Limbs& a, const Limbs& b);
  static Limbs difference(const Limbs& a, const Limbs& b);  // of a >= b
  static void drop_zeros(Limbs& limbs);
  std::uint32_t divide_small(std::uint32_t by);  // leaves the quotient of the size, returns the rest
  void multiply_add_small(std::uint32_t by, std::uint32_t more);

  bool negative_ = false;
  Limbs limbs_;
};

}  // namespace rlx::jinja
