// Errors of search_blocks beside those of llama.cpp's quantisers, on the same numbers.
//
// The source of ggml's quantisers lies in the sdist of llama-cpp-python (PyPI; tried with 0.3.36). From the folder of
// rlx, with GGML=.../vendor/llama.cpp/ggml and FLAGS='-std=c++20 -O3 -ffp-contract=off -march=x86-64-v2 -I.':
//   cc -O2 -march=native -I$GGML/include -I$GGML/src -c $GGML/src/ggml-quants.c -o /tmp/quants.o
//   c++ $FLAGS tests/parity/gguf_quantise.cpp rlx/tensor/block_*.cpp rlx/tensor/half.cpp rlx/error.cpp /tmp/quants.o
// and a.out prints, for each type and kind of numbers, the squared error of rlx as a part of llama.cpp's, without and
// with weights of columns, and the processor time of both for an element. Exit status 0 when no part is above 1.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <span>
#include <vector>

#include "rlx/tensor/block_schemes.h"
#include "rlx/tensor/block_search.h"

extern "C" {
using Quantiser = std::size_t(const float* x, void* out, std::int64_t rows, std::int64_t columns, const float* weights);
Quantiser quantize_q8_0, quantize_q4_0, quantize_q4_1, quantize_q5_0, quantize_q5_1, quantize_q2_K, quantize_q3_K,
    quantize_q4_K, quantize_q5_K, quantize_q6_K;

// What the quantisers ask of the rest of ggml.
std::size_t ggml_row_size(int type, std::int64_t n) {
  switch (type) {
    case 2: return static_cast<std::size_t>(n / 32 * 18);
    case 3: return static_cast<std::size_t>(n / 32 * 20);
    case 6: return static_cast<std::size_t>(n / 32 * 22);
    case 7: return static_cast<std::size_t>(n / 32 * 24);
    case 8: return static_cast<std::size_t>(n / 32 * 34);
    case 10: return static_cast<std::size_t>(n / 256 * 84);
    case 11: return static_cast<std::size_t>(n / 256 * 110);
    case 12: return static_cast<std::size_t>(n / 256 * 144);
    case 13: return static_cast<std::size_t>(n / 256 * 176);
    case 14: return static_cast<std::size_t>(n / 256 * 210);
    default: std::abort();
  }
}
std::size_t ggml_type_size(int) { std::abort(); }
const char* ggml_type_name(int) { std::abort(); }
void ggml_abort(const char*, int, const char*, ...) { std::abort(); }
}

namespace {

using namespace rlx;

constexpr std::int64_t kRows = 64, kColumns = 1024;

struct Quantised {
  QuantScheme scheme;
  Quantiser* theirs;
};
const Quantised kTypes[] = {
    {QuantScheme::Q8_0, quantize_q8_0}, {QuantScheme::Q4_0, quantize_q4_0}, {QuantScheme::Q4_1, quantize_q4_1},
    {QuantScheme::Q5_0, quantize_q5_0}, {QuantScheme::Q5_1, quantize_q5_1}, {QuantScheme::Q2_K, quantize_q2_K},
    {QuantScheme::Q3_K, quantize_q3_K}, {QuantScheme::Q4_K, quantize_q4_K}, {QuantScheme::Q5_K, quantize_q5_K},
    {QuantScheme::Q6_K, quantize_q6_K},
};
const char* const kKinds[] = {"normal", "heavy tails", "outliers", "positive"};

std::vector<float> numbers(int kind, std::mt19937& rng) {
  std::normal_distribution<float> normal(0, 0.02F);
  std::student_t_distribution<float> heavy(4);
  std::uniform_real_distribution<float> unit(0, 1);
  std::vector<float> x(static_cast<std::size_t>(kRows * kColumns));
  for (float& v : x) {
    if (kind == 0) v = normal(rng);
    if (kind == 1) v = 0.02F * heavy(rng);
    if (kind == 2) v = normal(rng) * (unit(rng) < 0.01F ? 10 : 1);
    if (kind == 3) v = std::fabs(normal(rng)) + 0.01F * unit(rng);
  }
  return x;
}

double error_of(const Quantised& t, const std::vector<std::byte>& blocks, const std::vector<float>& x,
                std::span<const float> w) {
  std::vector<float> y(x.size());
  dequantize_blocks(t.scheme, blocks, y);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(y[i]) - static_cast<double>(x[i]);
    sum += d * d * (w.empty() ? 1 : static_cast<double>(w[i % w.size()]));
  }
  return sum;
}

}  // namespace

int main() {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> weights(static_cast<std::size_t>(kColumns));
  for (float& w : weights) w = std::exp(2 * normal(rng));
  bool worse = false;
  std::printf("%-12s %-6s %10s %10s %12s %12s\n", "numbers", "type", "error", "weighted", "ns ours", "ns theirs");
  for (int kind = 0; kind < 4; ++kind) {
    const std::vector<float> x = numbers(kind, rng);
    for (const Quantised& t : kTypes) {
      const BlockLayout& l = block_layout(t.scheme);
      std::vector<std::byte> ours(x.size() / static_cast<std::size_t>(l.elements) * static_cast<std::size_t>(l.bytes));
      std::vector<std::byte> theirs = ours;
      double part[2], ns[2] = {};
      for (const bool weighted : {false, true}) {
        const std::span<const float> w = weighted ? std::span<const float>(weights) : std::span<const float>();
        const std::clock_t start = std::clock();
        search_blocks(t.scheme, x, w, ours);
        const std::clock_t middle = std::clock();
        t.theirs(x.data(), theirs.data(), kRows, kColumns, weighted ? weights.data() : nullptr);
        const std::clock_t end = std::clock();
        part[weighted] = error_of(t, ours, x, w) / error_of(t, theirs, x, w);
        worse |= !(part[weighted] <= 1);
        const double scale = 1e9 / CLOCKS_PER_SEC / static_cast<double>(x.size()) / 2;
        ns[0] += static_cast<double>(middle - start) * scale;
        ns[1] += static_cast<double>(end - middle) * scale;
      }
      std::printf("%-12s %-6s %10.4f %10.4f %12.1f %12.1f\n", kKinds[kind], quant_scheme_name(t.scheme).data(), part[0],
                  part[1], ns[0], ns[1]);
    }
  }
  return worse ? 1 : 0;
}
