// Roots of unity in long double, for the rules of Fourier transforms and the plans of their kernels.
#pragma once

#include <complex>
#include <cstdint>

namespace rlx {

using LongDoubleComplex = std::complex<long double>;

/// exp(-2 pi i k / n) for 0 <= k < n, within a unit of the last place; multiples of an eighth of the circle are exact.
LongDoubleComplex root_of_unity(std::int64_t k, std::int64_t n);

/// a * b for finite numbers. The operator of the standard library also checks for infinities.
inline LongDoubleComplex long_double_product(LongDoubleComplex a, LongDoubleComplex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace rlx
