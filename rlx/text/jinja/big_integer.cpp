// Schoolbook arithmetic on limbs of 32 bits.
#include "rlx/text/jinja/big_integer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "rlx/text/jinja/unicode.h"

namespace rlx::jinja {

BigInteger::BigInteger(std::int64_t v) : negative_(v < 0) {
  std::uint64_t size = v < 0 ? ~static_cast<std::uint64_t>(v) + 1 : static_cast<std::uint64_t>(v);
  for (; size != 0; size >>= 32) limbs_.push_back(static_cast<std::uint32_t>(size));
}

void BigInteger::drop_zeros(Limbs& limbs) {
  while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
}

bool BigInteger::too_large() const {
  if (limbs_.empty()) return false;
  return 32 * limbs_.size() - static_cast<std::size_t>(std::countl_zero(limbs_.back())) > kMaxBits;
}

void BigInteger::multiply_add_small(std::uint32_t by, std::uint32_t more) {
  std::uint64_t carry = more;
  for (std::uint32_t& limb : limbs_) {
    carry += std::uint64_t{limb} * by;
    limb = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
  if (carry != 0) limbs_.push_back(static_cast<std::uint32_t>(carry));
}

std::uint32_t BigInteger::divide_small(std::uint32_t by) {
  std::uint64_t rest = 0;
  for (std::size_t i = limbs_.size(); i-- > 0;) {
    rest = rest << 32 | limbs_[i];
    limbs_[i] = static_cast<std::uint32_t>(rest / by);
    rest %= by;
  }
  drop_zeros(limbs_);
  return static_cast<std::uint32_t>(rest);
}

std::optional<BigInteger> BigInteger::parse(std::string_view digits, int base) {
  BigInteger out;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  for (const char c : digits) {
    out.multiply_add_small(static_cast<std::uint32_t>(base),
                           static_cast<std::uint32_t>(digit_value(static_cast<unsigned char>(c))));
    if (out.too_large()) return std::nullopt;
  }
  out.negative_ = negative && !out.limbs_.empty();
  return out;
}

BigInteger BigInteger::of_real(double v) {
  int exponent = 0;
  const double part = std::frexp(std::fabs(std::trunc(v)), &exponent);  // in [0.5, 1)
  BigInteger out(static_cast<std::int64_t>(std::ldexp(part, 53)));
  for (int shift = exponent - 53; shift > 0; shift -= 16) out.multiply_add_small(1U << std::min(shift, 16), 0);
  for (int shift = exponent - 53; shift < 0; shift += 16) (void)out.divide_small(1U << std::min(-shift, 16));
  out.negative_ = v < 0 && !out.limbs_.empty();
  return out;
}

std::optional<std::int64_t> BigInteger::as_int64() const {
  if (limbs_.size() > 2) return std::nullopt;
  std::uint64_t size = 0;
  for (std::size_t i = limbs_.size(); i-- > 0;) size = size << 32 | limbs_[i];
  const std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) + (negative_ ? 1 : 0);
  if (size > most) return std::nullopt;
  return static_cast<std::int64_t>(negative_ ? ~size + 1 : size);
}

double BigInteger::as_real() const { return std::strtod(text().c_str(), nullptr); }

std::string BigInteger::text(int base) const {
  if (limbs_.empty()) return "0";
  BigInteger rest = *this;
  std::string out;
  while (!rest.limbs_.empty()) {
    const std::uint32_t digit = rest.divide_small(static_cast<std::uint32_t>(base));
    out += static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10);
  }
  if (negative_) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

BigInteger BigInteger::negated() const {
  BigInteger out = *this;
  out.negative_ = !negative_ && !limbs_.empty();
  return out;
}

int BigInteger::compare_sizes(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (std::size_t i = a.size(); i-- > 0;)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}
int BigInteger::compare(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ != b.negative_) return a.negative_ ? -1 : 1;
  return a.negative_ ? compare_sizes(b.limbs_, a.limbs_) : compare_sizes(a.limbs_, b.limbs_);
}

BigInteger::Limbs BigInteger::sum(const Limbs& a, const Limbs& b) {
  Limbs out;
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()) || carry != 0; ++i) {
    carry += (i < a.size() ? std::uint64_t{a[i]} : 0) + (i < b.size() ? b[i] : 0);
    out.push_back(static_cast<std::uint32_t>(carry));
    carry >>= 32;
  }
  return out;
}
BigInteger::Limbs BigInteger::difference(const Limbs& a, const Limbs& b) {
  Limbs out = a;
  std::int64_t borrow = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    borrow += std::int64_t{out[i]} - (i < b.size() ? b[i] : 0);
    out[i] = static_cast<std::uint32_t>(borrow);
    borrow >>= 32;
  }
  drop_zeros(out);
  return out;
}

BigInteger BigInteger::operator+(const BigInteger& b) const {
  BigInteger out;
  if (negative_ == b.negative_) {
    out.limbs_ = sum(limbs_, b.limbs_);
    out.negative_ = negative_;
  } else {
    const bool own = compare_sizes(limbs_, b.limbs_) >= 0;
    out.limbs_ = own ? difference(limbs_, b.limbs_) : difference(b.limbs_, limbs_);
    out.negative_ = (own ? negative_ : b.negative_) && !out.limbs_.empty();
  }
  return out;
}

BigInteger BigInteger::operator*(const BigInteger& b) const {
  BigInteger out;
  out.limbs_.assign(limbs_.size() + b.limbs_.size(), 0);
  for (std::size_t i = 0; i < limbs_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t k = 0; k < b.limbs_.size() || carry != 0; ++k) {
      carry += out.limbs_[i + k] + std::uint64_t{limbs_[i]} * (k < b.limbs_.size() ? b.limbs_[k] : 0);
      out.limbs_[i + k] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  drop_zeros(out.limbs_);
  out.negative_ = negative_ != b.negative_ && !out.limbs_.empty();
  return out;
}

std::pair<BigInteger, BigInteger> BigInteger::divided_by(const BigInteger& b) const {
  // Bit by bit: numbers are short.
  BigInteger quotient, rest;
  quotient.limbs_.assign(limbs_.size(), 0);
  for (std::size_t i = 32 * limbs_.size(); i-- > 0;) {
    rest.multiply_add_small(2, 0);
    if ((limbs_[i / 32] >> i % 32 & 1) != 0) rest.limbs_.empty() ? rest.limbs_.push_back(1) : void(rest.limbs_[0] |= 1);
    if (compare_sizes(rest.limbs_, b.limbs_) < 0) continue;
    rest.limbs_ = difference(rest.limbs_, b.limbs_);
    quotient.limbs_[i / 32] |= 1U << i % 32;
  }
  drop_zeros(quotient.limbs_);
  quotient.negative_ = negative_ != b.negative_ && !quotient.limbs_.empty();
  rest.negative_ = negative_ && !rest.limbs_.empty();
  // Towards minus infinity; the rest has the sign of the divisor.
  if (!rest.limbs_.empty() && negative_ != b.negative_) {
    quotient = quotient - BigInteger(1);
    rest = rest + b;
  }
  return {std::move(quotient), std::move(rest)};
}

}  // namespace rlx::jinja
