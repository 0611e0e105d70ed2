// Calls that must be refused with an rlx::Error that names the mistake, and never with an internal error.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "rlx/tensor/dtype.h"
#include "tests/support/error_text.h"

namespace rlx::test {
inline constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
inline constexpr auto kNoDType = static_cast<DType>(77);
}  // namespace rlx::test

/// The expression must throw an rlx::Error whose text holds `part`.
#define REFUSED(part, ...)                                                                                 \
  do {                                                                                                     \
    const std::string refused_text = ::rlx::test::error_text([&] { (void)(__VA_ARGS__); });                \
    CHECK_MESSAGE(::rlx::test::contains(refused_text, part), #__VA_ARGS__ " gave: '", refused_text, "'");  \
    CHECK_MESSAGE(!::rlx::test::contains(refused_text, "please report"), #__VA_ARGS__ ": ", refused_text); \
  } while (false)
