// Block schemes: bytes with known values (by PyPI gguf 0.19.0, see tests/parity/gguf_blocks.py), and quantized blocks.
#include "rlx/tensor/block_schemes.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "rlx/tensor/half.h"
#include "tests/support/block_codes.h"
#include "tests/support/closeness.h"

using namespace rlx;

namespace {

struct Known {
  QuantScheme scheme;
  std::vector<std::pair<int, double>> values;  // some elements
  std::uint64_t sum;                           // a hash of all bits: h = h * 31 + bits
};
const Known kKnown[] = {
    {QuantScheme::Q8_0,
     {{0, 0x1.0fefp+3}, {1, 0x1.864ep+3}, {17, -0x1.5984p+2}, {31, -0x1.332p+2}},
     0x8a150a20fa44be00ull},
    {QuantScheme::Q4_0, {{0, -0x1.332p-2}, {1, 0x1.998p-3}, {17, -0x1.998p-4}, {31, 0}}, 0xe1578fb961c71800ull},
    {QuantScheme::Q4_1, {{0, 0x1.ffdp-1}, {1, -0x1.9ap-4}, {17, 0x1.664p-1}, {31, 0x1.664p-1}}, 0x493cbb9d54324800ull},
    {QuantScheme::Q5_0, {{0, 0x1.ccbp-1}, {1, -0x1.998p-3}, {17, 0}, {31, 0x1.998p-4}}, 0xf0a283e203d14c00ull},
    {QuantScheme::Q5_1, {{0, 0x1.6648p+0}, {1, 0x1.e64p+0}, {17, -0x1p-13}, {31, -0x1p-13}}, 0xa87d6a9a74a9d600ull},
    {QuantScheme::Q2_K,
     {{0, 0x1.a64cp+1}, {1, 0}, {17, 0x1.8p+0}, {63, 0x1.1ffcp+2}, {100, 0x1.3661p+3}, {255, 0x1.0cc8p+1}},
     0x2d21ec9fb6a54e80ull},
    {QuantScheme::Q3_K,
     {{0, 0x1.0323p+3}, {1, -0x1.5984p+3}, {17, 0x1.998p+3}, {63, 0x1.ffep-1}, {100, 0}, {255, 0x1.0cbcp+2}},
     0x475047c793751980ull},
    {QuantScheme::Q4_K,
     {{0, 0x1.dcbbcp+5}, {1, 0x1.98p+4}, {63, 0x1.132ep+4}, {100, 0x1.c328p+4}, {255, 0x1.8193p+4}},
     0x7f4532f15e131960ull},
    {QuantScheme::Q5_K,
     {{0, 0x1.b4b7ep+6}, {1, 0x1.98p+4}, {63, 0x1.532ap+4}, {100, 0x1.518dp+5}, {255, 0x1.e18dp+4}},
     0x97ca0e929b9affe8ull},
    {QuantScheme::Q6_K,
     {{0, -0x1.1e215p+7}, {1, 0x1.531ep+7}, {63, -0x1.cfe3p+5}, {100, 0x1.f87a1p+7}, {255, -0x1.7fe8p+2}},
     0xfd17c60989c11fe4ull},
};

void set_f16(std::vector<std::byte>& bytes, int at, std::uint16_t bits) {
  bytes[static_cast<std::size_t>(at)] = static_cast<std::byte>(bits & 255);
  bytes[static_cast<std::size_t>(at) + 1] = static_cast<std::byte>(bits >> 8);
}

std::vector<float> decoded(QuantScheme scheme, const std::vector<std::byte>& bytes) {
  const BlockLayout& l = block_layout(scheme);
  std::vector<float> out(bytes.size() / static_cast<std::size_t>(l.bytes) * static_cast<std::size_t>(l.elements));
  dequantize_blocks(scheme, bytes, out);
  return out;
}
std::vector<std::byte> coded(QuantScheme scheme, const std::vector<float>& x) {
  const BlockLayout& l = block_layout(scheme);
  std::vector<std::byte> out(x.size() / static_cast<std::size_t>(l.elements) * static_cast<std::size_t>(l.bytes));
  quantize_blocks(scheme, x, out);
  return out;
}
std::vector<float> some_values(int n, float size) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::uint32_t s = 12345;
  for (float& v : x) {
    float sum = 0;
    for (int k = 0; k < 4; ++k) s = s * 1664525U + 1013904223U, sum += static_cast<float>(s >> 8) / 16777216.0F - 0.5F;
    v = sum * size;
  }
  return x;
}

double furthest(const std::vector<float>& a, const std::vector<float>& b) {
  test::Worst worst;
  for (std::size_t i = 0; i < a.size(); ++i) worst.add(static_cast<double>(a[i]), static_cast<double>(b[i]), 1);
  return worst.value();
}

}  // namespace

TEST_CASE("block schemes: known blocks decode to known numbers, bit for bit") {
  for (const Known& k : kKnown) {
    INFO(quant_scheme_name(k.scheme));
    const BlockLayout& l = block_layout(k.scheme);
    std::vector<std::byte> bytes(static_cast<std::size_t>(l.bytes));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 37 + 11) & 255);
    set_f16(bytes, l.d_at, 0x2e66);                   // 0.1 rounded to F16
    if (l.m_at >= 0) set_f16(bytes, l.m_at, 0xb800);  // -0.5
    const std::vector<float> y = decoded(k.scheme, bytes);
    for (const auto& [i, value] : k.values) CHECK(static_cast<double>(y[static_cast<std::size_t>(i)]) == value);
    std::uint64_t sum = 0;
    for (float v : y) sum = sum * 31 + std::bit_cast<std::uint32_t>(v);
    CHECK(sum == k.sum);
  }
}

TEST_CASE("block schemes: drawn blocks of every scheme decode as the format's package decodes them") {
  // Written by tests/parity/gguf_blocks.py --sums: the hash h = h * 31 + bits of 64 blocks, with one pattern for NaN.
  const std::pair<QuantScheme, std::uint64_t> sums[] = {
      {QuantScheme::Q8_0, 0x87f2de6bef3d1840ull},    {QuantScheme::Q4_0, 0xea56911db6c22400ull},
      {QuantScheme::Q4_1, 0xa0be3c5a52b11c9bull},    {QuantScheme::Q5_0, 0x8ea2f37976fd6400ull},
      {QuantScheme::Q5_1, 0x748cd823b4182e2aull},    {QuantScheme::Q2_K, 0x2479942edf2f8556ull},
      {QuantScheme::Q3_K, 0xf68a85913e67fc00ull},    {QuantScheme::Q4_K, 0x914165ac14841c09ull},
      {QuantScheme::Q5_K, 0x0134f49ba97b8264ull},    {QuantScheme::Q6_K, 0xce470f817034b080ull},
      {QuantScheme::Q8_K, 0xe89dd5ab560bdf2bull},    {QuantScheme::Q1_0, 0x60182302fb000000ull},
      {QuantScheme::TQ1_0, 0xdfa7ddd95e7bc000ull},   {QuantScheme::TQ2_0, 0xb980ca12ac5d8000ull},
      {QuantScheme::IQ4_NL, 0x5a1b2ab9b145fa80ull},  {QuantScheme::IQ4_XS, 0x6080873ef6067352ull},
      {QuantScheme::MXFP4, 0xa7f7aa593bc00000ull},   {QuantScheme::NVFP4, 0x258ed3a6e7d80000ull},
      {QuantScheme::IQ2_XXS, 0x8fbe1e83ffb1f128ull}, {QuantScheme::IQ2_XS, 0x06fb712b38f97e4cull},
      {QuantScheme::IQ2_S, 0x3c8ff02015dc75d8ull},   {QuantScheme::IQ3_XXS, 0x2b2afd5654aced78ull},
      {QuantScheme::IQ3_S, 0xd2dde3e54dc82200ull},   {QuantScheme::IQ1_S, 0xbfbd18c24e1f4700ull},
      {QuantScheme::IQ1_M, 0x1a71efd52af8d9e0ull},
  };
  CHECK(std::size(sums) == kNumQuantSchemes - 1);
  for (const auto& one : sums) {
    INFO(quant_scheme_name(one.first));
    std::vector<std::byte> bytes(64 * static_cast<std::size_t>(block_layout(one.first).bytes));
    std::uint32_t state = 20;
    for (std::byte& b : bytes) b = test::next_byte(state);
    std::uint64_t sum = 0;
    for (const float v : decoded(one.first, bytes))
      sum = sum * 31 + (std::isnan(v) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(v));
    CHECK(sum == one.second);
  }
}

TEST_CASE("block schemes: made blocks come back, and every code is the nearest one") {
  // Half a step of the coarsest quantization, relative to the largest element: 1 / (2 steps).
  const std::pair<QuantScheme, double> allowed[] = {
      {QuantScheme::Q8_0, 0.005}, {QuantScheme::Q4_0, 0.08}, {QuantScheme::Q4_1, 0.08}, {QuantScheme::Q5_0, 0.04},
      {QuantScheme::Q5_1, 0.04},  {QuantScheme::Q2_K, 0.45}, {QuantScheme::Q3_K, 0.2},  {QuantScheme::Q4_K, 0.09},
      {QuantScheme::Q5_K, 0.05},  {QuantScheme::Q6_K, 0.04}};
  for (const auto& one : allowed) {
    const auto& [scheme, bound] = one;
    INFO(std::string(quant_scheme_name(one.first)));
    for (const float size : {1.0F, 0.05F, 100.0F}) {
      const std::vector<float> x = some_values(512, size), y = decoded(scheme, coded(scheme, x));
      double largest = 0;
      for (float v : x) {
        REQUIRE(std::isfinite(v));
        largest = std::max(largest, static_cast<double>(v < 0 ? -v : v));
      }
      const double left = furthest(x, y);
      CHECK(left <= bound * largest);
      // Quantizing dequantized values again loses nothing more.
      CHECK(furthest(decoded(scheme, coded(scheme, y)), y) <= left);
    }
  }
}

TEST_CASE("block schemes: zeros, infinities and NaN") {
  for (int i = 1; i < kNumQuantSchemes; ++i) {
    const auto scheme = static_cast<QuantScheme>(i);
    if (!makes_blocks(scheme)) continue;
    INFO(quant_scheme_name(scheme));
    const auto n = static_cast<std::size_t>(block_layout(scheme).elements);
    for (float v : decoded(scheme, coded(scheme, std::vector<float>(n)))) CHECK(v == 0);
    std::vector<float> x(n, 1.0F);
    x[3] = std::numeric_limits<float>::quiet_NaN();
    for (float v : decoded(scheme, coded(scheme, x))) CHECK(std::isfinite(v));
    x[3] = std::numeric_limits<float>::infinity();
    for (float v : decoded(scheme, coded(scheme, x))) CHECK(std::isfinite(v));
  }
  // An infinite or NaN d gives infinite or NaN values.
  std::vector<std::byte> bytes(34, std::byte{1});
  set_f16(bytes, 0, 0x7c00);
  CHECK(std::isinf(decoded(QuantScheme::Q8_0, bytes)[0]));
  set_f16(bytes, 0, 0x7e00);
  CHECK(std::isnan(decoded(QuantScheme::Q8_0, bytes)[0]));
  set_f16(bytes, 0, 0x0001);  // the least F16 number
  CHECK(decoded(QuantScheme::Q8_0, bytes)[0] == 0x1p-24F);
}

TEST_CASE("block schemes: layouts hold together") {
  for (int i = 1; i < kNumQuantSchemes; ++i) {
    const BlockLayout& l = block_layout(static_cast<QuantScheme>(i));
    INFO(quant_scheme_name(l.scheme));
    CHECK(l.scheme == static_cast<QuantScheme>(i));
    CHECK(l.elements % l.group == 0);
    CHECK(l.groups() <= 16);
    if (l.codes == BlockValues::Grid || l.codes == BlockValues::Ternary) continue;
    CHECK(l.low.bytes * 8 / l.low.width == l.elements);
    if (l.high.bytes) CHECK(l.high.bytes * 8 / l.high.width == l.elements);
    CHECK((l.codes == BlockValues::Table) == (l.values != nullptr));
  }
}
