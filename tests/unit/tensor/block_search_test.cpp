// The search for quantized blocks of least error: never worse than plain quantization, importance weights, refusals.
#include "rlx/tensor/block_search.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/error_text.h"

using namespace rlx;

namespace {

constexpr int kSearchedRow = 512;

// Normal numbers, every 50th ten times as large.
std::vector<float> with_outliers(int n, float size) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::uint32_t s = 7;
  int i = 0;
  for (float& v : x) {
    float sum = 0;
    for (int k = 0; k < 6; ++k) s = s * 1664525U + 1013904223U, sum += static_cast<float>(s >> 8) / 16777216.0F - 0.5F;
    v = sum * size * (++i % 50 == 0 ? 10.0F : 1.0F);
  }
  return x;
}

double weighted_error(QuantScheme scheme, const std::vector<float>& x, const std::vector<std::byte>& blocks,
                      const std::vector<float>& w) {
  std::vector<float> y(x.size());
  dequantize_blocks(scheme, blocks, y);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(y[i]) - static_cast<double>(x[i]);
    REQUIRE(std::isfinite(d));
    sum += d * d * static_cast<double>(w[i % w.size()]);
  }
  return sum;
}
std::vector<std::byte> room_for(QuantScheme scheme, std::size_t elements) {
  const BlockLayout& l = block_layout(scheme);
  return std::vector<std::byte>(elements / static_cast<std::size_t>(l.elements) * static_cast<std::size_t>(l.bytes));
}

}  // namespace

TEST_CASE("block search: less error than blocks by rule, and less again where weights say what counts") {
  // The error is 0.71 to 0.99 of llama.cpp's on the same numbers (build of 2026-11, tests/parity/gguf_quantise.cpp).
  std::vector<float> ones(kSearchedRow, 1), w(kSearchedRow);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = i % 7 == 0 ? 20.0F : 0.25F;
  for (int i = 1; i < kNumQuantSchemes; ++i) {
    const auto scheme = static_cast<QuantScheme>(i);
    if (!makes_blocks(scheme)) continue;
    INFO(quant_scheme_name(scheme));
    for (const float size : {1.0F, 0.02F, 300.0F}) {
      const std::vector<float> x = with_outliers(8 * kSearchedRow, size);
      std::vector<std::byte> ruled = room_for(scheme, x.size()), plain = ruled, weighted = ruled;
      quantize_blocks(scheme, x, ruled);
      search_blocks(scheme, x, {}, plain);
      search_blocks(scheme, x, w, weighted);
      const double by_rule = weighted_error(scheme, x, ruled, ones), searched = weighted_error(scheme, x, plain, ones);
      CHECK(searched < by_rule);
      CHECK(weighted_error(scheme, x, weighted, w) < 0.95 * weighted_error(scheme, x, plain, w));
    }
  }
}

TEST_CASE("block search: zeros, equal numbers, extremes") {
  for (int i = 1; i < kNumQuantSchemes; ++i) {
    const auto scheme = static_cast<QuantScheme>(i);
    if (!makes_blocks(scheme)) continue;
    INFO(quant_scheme_name(scheme));
    const auto n = static_cast<std::size_t>(block_layout(scheme).elements);
    std::vector<std::byte> out = room_for(scheme, n);
    std::vector<float> y(n), none(n, 0);
    search_blocks(scheme, none, {}, out);
    dequantize_blocks(scheme, out, y);
    for (const float v : y) CHECK(v == 0);
    search_blocks(scheme, std::vector<float>(n, -0.75F), none, out);  // weights that say nothing
    dequantize_blocks(scheme, out, y);
    for (const float v : y) CHECK(std::fabs(v + 0.75F) < 0.002F);
    for (const float extreme :
         {1e-30F, 1e30F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(n, 1);
      x[5] = extreme;
      search_blocks(scheme, x, {}, out);
      dequantize_blocks(scheme, out, y);
      for (const float v : y) CHECK(std::isfinite(v));
    }
  }
}

TEST_CASE("block search: what it refuses") {
  using test::contains;
  using test::error_text;
  std::vector<float> x(64), w(32, 1);
  std::vector<std::byte> out(36);
  const auto search = [&](QuantScheme s) { return error_text([&] { search_blocks(s, x, w, out); }); };
  CHECK(search(QuantScheme::Q4_0).empty());
  CHECK(contains(search(QuantScheme::Q8_0), "36 bytes do not hold 64 elements"));
  CHECK(contains(search(QuantScheme::Affine), "affine has no blocks"));
  CHECK(contains(search(QuantScheme::IQ4_NL), "blocks of iq4_nl can be decoded, but not encoded"));
  w.resize(48, 1);
  CHECK(contains(search(QuantScheme::Q4_0), "48 importance weights do not match 64 elements"));
  w.assign(32, 1);
  w[3] = -1;
  CHECK(contains(search(QuantScheme::Q4_0), "a weight is -1, expected a finite number of at least 0"));
  w[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(contains(search(QuantScheme::Q4_0), "a weight is nan"));
}
