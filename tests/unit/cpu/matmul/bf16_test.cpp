// bf16 matmuls: the bf16 pair layout unpacks bit for bit, the error is that of rounding x, and the bits are the same
// for any number of rows and every partition.
#include "rlx/backends/cpu/matmul/bf16_kernels.h"

#include <algorithm>
#include <array>
#include <bit>

#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/tensor/half.h"
#include "rlx/tensor/visit.h"
#include "tests/unit/cpu/matmul/packed_matmul.h"

namespace rlx::cpu::test {
namespace {

// Empty on machines without bf16 matmul kernels.
std::vector<const Bf16Kernels*> bf16_sets() {
  std::vector<const Bf16Kernels*> out;
  for (const Bf16DotKind p : bf16_dot_kinds(Isa::Avx512)) out.push_back(&bf16_kernels(Isa::Avx512, p));
  return out;
}
// The kernels of this machine with the bf16 pair layout, whether they are the preferred ones or not.
KernelTable table_with_pairs() {
  KernelTable t = kernels_for(Isa::Avx512);
  t.bf16 = bf16_sets().back();
  return t;
}

float as_bf16(float v) { return static_cast<float>(BF16(v)); }

// A matrix [k, n] of bf16 numbers and its packed layout.
struct Bf16Matrix {
  std::int64_t k, n;
  std::vector<BF16> numbers;  // [n, k]
  PackedLayout layout;
  Buffer panels;
  Bf16Matrix(std::int64_t depth, std::int64_t columns, unsigned seed)
      : k(depth),
        n(columns),
        numbers(static_cast<std::size_t>(k * n)),
        layout(*bf16_pair_layout(table_with_pairs(), {k, n, DType::F32, DType::BF16, MatmulPrecision::BF16})),
        panels(layout.bytes / 4, kNan) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, 0.1F);
    for (BF16& v : numbers) v = BF16(normal(rng));
    encode();
  }
  float at(std::int64_t kk, std::int64_t j) const {
    return static_cast<float>(numbers[static_cast<std::size_t>(j * k + kk)]);
  }
  void encode() {
    const ops::Relayout op{layout, k, n, false, DType::F32, {}};
    encode_packed_b(table_with_pairs(), {op, {n, 0, 1, k}, 0, 0, n}, DType::BF16,
                    reinterpret_cast<const std::byte*>(numbers.data()), reinterpret_cast<std::byte*>(panels.data()));
    REQUIRE(panels.intact());
  }
};

// x times the matrix, with all chunks in reverse order.
void multiply(const Bf16Kernels& kernels, const Bf16Matrix& w, const Buffer& x, std::int64_t m, Buffer& c, int threads,
              const GemmEpilogue& epilogue = {}) {
  MatmulOperands p = packed_b_operands(m, w.n, w.k);
  p.a = x.data(), p.b = w.panels.data(), p.c = c.data(), p.epilogue = epilogue;
  run_packed(kernels.rounded, p, threads);
  CHECK(c.intact());
}

TEST_CASE("pairs: panels from every dtype and layout, in pieces, and back") {
  if (bf16_sets().empty()) return;
  const KernelTable t = table_with_pairs();
  for (const DType from : {DType::BF16, DType::F32, DType::F64, DType::I8})
    for (const std::int64_t n : {1, 16, 17, 100})
      for (const std::int64_t k : {1, 2, 31, 32, 33, 70, 97})
        for (const bool transposed : {false, true})
          for (const std::int64_t cut : {std::int64_t{0}, n / 3, std::min<std::int64_t>(n, 16)}) {
            CAPTURE(dtype_name(from));
            INFO(k, "x", n, " cut at ", cut);
            const PackedLayout layout = *bf16_pair_layout(t, {k, n, DType::F32, from, MatmulPrecision::BF16});
            CHECK(layout.lossless == (from == DType::BF16));
            CHECK(reads_packed_b(t, layout, k, n));
            const ops::Relayout op{layout, k, n, false, DType::F32, {}};
            const ops::PackedSource at{n, 0, transposed ? 1 : n, transposed ? k : 1};
            std::vector<std::byte> values(size_bytes(from, k * n)), back(size_bytes(DType::F32, k * n));
            Buffer panels(layout.bytes / 4, kNan);
            for (std::int64_t i = 0; i < k * n; ++i)
              store_element(values.data(), from, i, static_cast<double>(i % 251) - 120.5);
            auto* bytes = reinterpret_cast<std::byte*>(panels.data());
            for (const auto& [begin, end] : {std::pair{cut, n}, std::pair{std::int64_t{0}, cut}})
              encode_packed_b(t, {op, at, 0, begin, end}, from, values.data(), bytes);
            CHECK(panels.intact());
            decode_packed_b({op, at, 0, 0, n}, bytes, DType::F32, back.data());
            bool same = true;
            for (std::int64_t i = 0; i < k * n; ++i)
              same = same && load_element<float>(back.data(), DType::F32, i) ==
                                 as_bf16(load_element<float>(values.data(), from, i));
            CHECK(same);
            // All other bytes are zeros: no NaN is left.
            std::int64_t zeros = 0;
            const auto* words = reinterpret_cast<const BF16*>(bytes);
            for (std::int64_t i = 0; i < layout.bytes / 2; ++i) zeros += static_cast<float>(words[i]) == 0.0F;
            std::int64_t own = 0;
            for (std::int64_t i = 0; i < k * n; ++i) own += load_element<float>(back.data(), DType::F32, i) == 0.0F;
            CHECK(zeros - own == layout.bytes / 2 - k * n);
            for (const std::int64_t j : {std::int64_t{0}, n - 1}) {
              std::vector<float> column(static_cast<std::size_t>(k));
              read_panel_column(*panels_of(layout), k, n, j, bytes, column.data());
              for (std::int64_t kk = 0; kk < k; ++kk)
                CHECK(column[static_cast<std::size_t>(kk)] ==
                      load_element<float>(back.data(), DType::F32, kk * at.k_stride + j * at.n_stride));
            }
          }
}

TEST_CASE("pairs: forms are made with leave alone, and told apart") {
  const KernelTable& plain = kernels_for(best_isa());
  for (const MatmulPrecision allowed_loss : {MatmulPrecision::Exact, MatmulPrecision::Int8})
    CHECK_FALSE(bf16_pair_layout(plain, {64, 32, DType::F32, DType::BF16, allowed_loss}));
  for (const KernelTable* other : tables())
    if (other->isa != Isa::Avx512)
      CHECK_FALSE(bf16_pair_layout(*other, {64, 32, DType::F32, DType::BF16, MatmulPrecision::BF16}));
  if (bf16_sets().empty()) return;
  const KernelTable t = table_with_pairs();
  CHECK_FALSE(
      bf16_pair_layout(t, {64, 32, DType::F32, DType::F16, MatmulPrecision::BF16}));  // would lose bits of the weight
  const PackedLayout layout = *bf16_pair_layout(t, {64, 32, DType::F32, DType::BF16, MatmulPrecision::BF16});
  CHECK(reads_packed_b(t, layout, 64, 32));
  CHECK_FALSE(reads_packed_b(t, layout, 64, 33));
  CHECK_FALSE(reads_packed_b(*tables().front(), layout, 64, 32));
  for (std::size_t i = 0; i < layout.params.size(); ++i) {
    PackedLayout other = layout;
    other.params[i] += 1;
    CHECK_FALSE(reads_packed_b(t, other, 64, 32));
  }
}

TEST_CASE("pairs: products are those of x in bf16, at any size") {
  for (const Bf16Kernels* kernels : bf16_sets())
    for (const std::array<std::int64_t, 3>& extents : {std::array<std::int64_t, 3>{1, 1, 1},
                                                       {2, 48, 64},
                                                       {3, 17, 33},
                                                       {5, 33, 160},
                                                       {13, 64, 31},
                                                       {40, 50, 300},
                                                       {70, 100, 1000},
                                                       {600, 40, 520}}) {
      const std::int64_t m = extents[0], n = extents[1], k = extents[2];
      INFO(static_cast<int>(kernels->kind), " ", m, "x", n, "x", k);
      const Bf16Matrix w(k, n, 7);
      Buffer x(m * k), c(m * n, kNan);
      randomize(x, 11, -3, 3);
      multiply(*kernels, w, x, m, c, 2);
      Worst worst, of_f32;
      for (std::int64_t i = 0; i < m; i += 1 + m / 9)
        for (std::int64_t j = 0; j < n; ++j) {
          double want = 0, exact = 0, terms = 0;
          for (std::int64_t kk = 0; kk < k; ++kk) {
            const double rounded = as_bf16(x[i * k + kk]), wk = w.at(kk, j);
            want += rounded * wk, exact += static_cast<double>(x[i * k + kk]) * wk, terms += std::fabs(rounded * wk);
          }
          worst.add(c[i * n + j], want, 1e-6 * terms + 1e-30);
          of_f32.add(c[i * n + j], exact, terms / 256 + 1e-30);
        }
      CHECK(worst.value() <= 1);
      CHECK(of_f32.value() <= 1);
      if (k >= 64) CHECK(of_f32.value() > 0.005);  // x is rounded
    }
}

TEST_CASE("pairs: a row has the same bits alone and among 1 to 64, in every cut") {
  for (const Bf16Kernels* kernels : bf16_sets())
    for (const std::int64_t k : {70, 300}) {
      const std::int64_t n = 50;
      const Bf16Matrix w(k, n, 9);
      Buffer x(64 * k), all(64 * n);
      randomize(x, 3);
      multiply(*kernels, w, x, 64, all, 1);
      bool same = true;
      for (std::int64_t m = 1; m <= 64; ++m) {
        Buffer c(m * n, kNan);
        multiply(*kernels, w, x, m, c, m % 3 == 0 ? kFinestTiling : static_cast<int>(m % 3));
        same = same && std::equal(c.data(), c.data() + m * n, all.data());
      }
      CHECK(same);
    }
}

TEST_CASE("pairs: what is not finite and next to nothing in x and in the weights") {
  for (const Bf16Kernels* kernels : bf16_sets()) {
    CAPTURE(static_cast<int>(kernels->kind));
    const std::int64_t m = 7, n = 20, k = 45;
    Bf16Matrix w(k, n, 1);
    w.numbers[static_cast<std::size_t>(3 * k + 2)] = BF16(kInf);
    w.numbers[static_cast<std::size_t>(4 * k + 44)] = BF16(kNan);
    w.encode();
    Buffer x(m * k), c(m * n, 7);
    randomize(x, 2, 0.5F, 1);
    x[1 * k + 44] = kNan, x[2 * k + 1] = kInf, x[3 * k] = 3.4e38F;  // the last one rounds to infinity
    for (std::int64_t i = 0; i < k; ++i) x[4 * k + i] = i % 2 == 0 ? -0.0F : 0.0F, x[5 * k + i] *= 1e-39F;
    multiply(*kernels, w, x, m, c, 1);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        CAPTURE(i);
        CAPTURE(j);
        const float got = c[i * n + j];
        if (i == 1 || j == 4) {
          CHECK(std::isnan(got));
        } else if (j == 3 || i == 2 || i == 3) {
          CHECK_FALSE(std::isfinite(got));
        } else {
          CHECK(std::isfinite(got));
          if (i == 4 || i == 5) CHECK(got == 0);  // subnormal numbers count as zeros
        }
      }
  }
}

TEST_CASE("pairs: epilogues are those of the other products") {
  const std::int64_t m = 20, n = 37, k = 64;
  for (const Bf16Kernels* kernels : bf16_sets()) {
    CAPTURE(static_cast<int>(kernels->kind));
    const Bf16Matrix w(k, n, 4);
    Buffer x(m * k), plain(m * n), bias(n), residual(m * n), mul(m * n);
    randomize(x, 1), randomize(bias, 2), randomize(residual, 3), randomize(mul, 4);
    multiply(*kernels, w, x, m, plain, 1);
    GemmEpilogue all;
    all.alpha = 0.5F, all.act = Act::Relu, all.bias = bias.data();
    all.residual = residual.data(), all.mul = mul.data(), all.ld_residual = all.ld_mul = n;
    Buffer c(m * n, kNan);
    multiply(*kernels, w, x, m, c, 2, all);
    bool same = true;
    for (std::int64_t i = 0; i < m * n; ++i)
      same = same && c[i] == std::max(0.5F * plain[i] + bias[i % n] + residual[i], 0.0F) * mul[i];
    CHECK(same);
  }
}

TEST_CASE("pairs: what the machine has not is an error that says so") {
  for (const Isa isa : {Isa::Sse4, Isa::Avx2}) {
    CHECK(bf16_dot_kinds(isa).empty());
    CHECK_THROWS_AS((void)bf16_kernels(isa, Bf16DotKind::Dot), Error);
  }
}

}  // namespace
}  // namespace rlx::cpu::test
