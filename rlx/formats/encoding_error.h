// How far the numbers of a GGUF type are from the numbers that were encoded.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "rlx/formats/gguf_types.h"

namespace rlx {

struct EncodingError {
  double error2 = 0, norm2 = 0;  // sums of squares: of decoded - x, and of x
  std::size_t infinite = 0;      // finite numbers that decode to infinity, which the sums leave out
  EncodingError& operator+=(const EncodingError& other);
  /// The norm of the differences over the norm of the numbers; 0 for zeros.
  double relative() const;
};

/// The error of `bytes`, an encoding of `x` as `type`. Errors: those of decode_gguf.
EncodingError encoding_error(GgufType type, std::span<const float> x, std::span<const std::byte> bytes);
/// The relative error that weights of usual magnitude stay below: 4 / 2^b for b bits a weight (18 % in Q4_0, 1.1 % in
/// Q8_0), 2^-10 in F16, 2^-7 in BF16.
double usual_encoding_error(GgufType type);
/// Says what is wrong where the error is larger than usual; "" where it is not.
std::string encoding_problem(GgufType type, const EncodingError& error);

}  // namespace rlx
