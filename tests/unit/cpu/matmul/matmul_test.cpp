// Matmuls of F64, F16 and BF16: every sum is the one of multiply-adds in the order of k in blocks of kSumBlock, bit for
// bit. Kernels with BF16 dot-product instructions are within a bound.
#include "rlx/backends/cpu/matmul/driver.h"

#include <array>
#include <complex>
#include <random>

#include "rlx/backends/cpu/matmul/bf16_kernels.h"

#include "rlx/tensor/half.h"
#include "tests/support/needs.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

/// Elements of one dtype, with guard elements after the last.
struct Elements {
  DType type;
  std::vector<std::byte> bytes;
  std::int64_t count;
  Elements(DType t, std::int64_t n) : type(t), bytes(size_bytes(t, n + kGuard), std::byte{0x5a}), count(n) {}
  void draw(std::mt19937& dice) {
    std::normal_distribution<double> normal;
    for (std::int64_t i = 0; i < count; ++i) set(i, normal(dice));
  }
  void set(std::int64_t i, double v) {
    if (type == DType::F64) reinterpret_cast<double*>(bytes.data())[i] = v;
    if (type == DType::F32) reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(v);
    if (type == DType::F16) reinterpret_cast<F16*>(bytes.data())[i] = F16(static_cast<float>(v));
    if (type == DType::BF16) reinterpret_cast<BF16*>(bytes.data())[i] = BF16(static_cast<float>(v));
  }
  double at(std::int64_t i) const {
    if (type == DType::F64) return reinterpret_cast<const double*>(bytes.data())[i];
    if (type == DType::F32) return static_cast<double>(reinterpret_cast<const float*>(bytes.data())[i]);
    if (type == DType::F16) return static_cast<double>(float(reinterpret_cast<const F16*>(bytes.data())[i]));
    return static_cast<double>(float(reinterpret_cast<const BF16*>(bytes.data())[i]));
  }
  bool intact() const {
    for (std::size_t i = size_bytes(type, count); i < bytes.size(); ++i)
      if (bytes[i] != std::byte{0x5a}) return false;
    return true;
  }
  static constexpr std::int64_t kGuard = 16;
};

/// The sum of the kernels: blocks of multiply-adds, with one rounding per step if the instruction set has FMA.
template <class T>
double blocked_sum(const Isa isa, const Elements& a, std::int64_t at_a, std::int64_t step_a, const Elements& b,
                   std::int64_t at_b, std::int64_t step_b, std::int64_t k) {
  T total = 0, sum = 0;
  for (std::int64_t i = 0; i < k; ++i) {
    if (i > 0 && i % kSumBlock == 0) total = i == kSumBlock ? sum : total + sum, sum = 0;
    const T x = static_cast<T>(a.at(at_a + i * step_a)), y = static_cast<T>(b.at(at_b + i * step_b));
    sum = isa == Isa::Sse4 ? x * y + sum : std::fma(x, y, sum);
  }
  return static_cast<double>(k > kSumBlock ? total + sum : sum);
}

void run_cut(const MatmulKernel& kernel, const MatmulOperands& p, int threads) {
  const MatmulPlan plan = plan_matmul(&kernel, p, threads);
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> packed(static_cast<std::size_t>(plan.pack_bytes / 64 + 1)), scratch(plan.scratch_bytes / 64 + 1);
  for (std::int64_t chunk = plan.pack_chunks - 1; chunk >= 0; --chunk)
    pack_matmul(&kernel, p, plan, chunk, packed.data());
  for (std::int64_t chunk = plan.chunks - 1; chunk >= 0; --chunk)
    run_matmul(&kernel, p, plan, chunk, packed.data(), scratch.data());
}

struct ProductCase {
  std::int64_t m, n, k;
  bool a_t, b_t;  // transposed operands
};

void check_product(Isa isa, DType t, DType y, const ProductCase& s, int threads, std::mt19937& dice) {
  CAPTURE(isa_name(isa));
  CAPTURE(dtype_name(t));
  CAPTURE(dtype_name(y));
  CAPTURE(s.m);
  CAPTURE(s.n);
  CAPTURE(s.k);
  CAPTURE(threads);
  Elements a(t, s.m * s.k), b(t, s.n * s.k), c(y, s.m * s.n);
  a.draw(dice);
  b.draw(dice);
  MatmulOperands p;
  p.m = s.m, p.n = s.n;
  p.a = a.bytes.data(), p.b = b.bytes.data(), p.c = c.bytes.data();
  p.a_type = p.b_type = t;
  p.c_type = y;
  p.a_m_stride = s.a_t ? 1 : s.k;
  p.b_n_stride = s.b_t ? s.k : 1;
  p.ldc = s.n;
  p.num_contracted = 1;
  p.contracted[0] = {s.k, s.a_t ? s.m : 1, s.b_t ? 1 : s.n, 0};
  const MatmulKernel& kernels = matmul_kernel(kernels_for(isa), matmul_sums(y));
  run_cut(kernels, p, threads);
  REQUIRE(c.intact());
  if (s.n <= kTransposedRows) {
    Elements turned(y, s.m * s.n);
    transpose_matmul(p), p.c = turned.bytes.data();
    run_cut(kernels, p, threads);
    transpose_matmul(p), p.c_transposed = false;
    CHECK(turned.bytes == c.bytes);
  }
  Elements want(y, 1);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      const std::int64_t at_a = i * p.a_m_stride, at_b = j * p.b_n_stride;
      const double sum = t == DType::F64
                             ? blocked_sum<double>(isa, a, at_a, p.contracted[0].a, b, at_b, p.contracted[0].b, s.k)
                             : blocked_sum<float>(isa, a, at_a, p.contracted[0].a, b, at_b, p.contracted[0].b, s.k);
      want.set(0, sum);
      wrong += c.at(i * s.n + j) == want.at(0) ? 0 : 1;
    }
  CHECK(wrong == 0);
}

TEST_CASE("products of f64, f32, f16 and bf16: every layout and size, cut in every way") {
  const std::pair<DType, DType> dtypes[] = {{DType::F64, DType::F64}, {DType::F32, DType::F32},
                                            {DType::F16, DType::F16}, {DType::BF16, DType::BF16},
                                            {DType::F16, DType::F32}, {DType::BF16, DType::F32}};
  std::mt19937 dice(7);
  rlx::test::Share share(2);
  for (const KernelTable* table : tables())
    for (const auto& [t, y] : dtypes)
      for (const std::int64_t m : {1, 7, 9, 70})
        for (const std::int64_t n : {1, 24, 53})
          for (const std::int64_t k : {0, 1, 33, 515}) {
            if (!share.next()) continue;
            const ProductCase s{m, n, k, dice() % 2 == 0, dice() % 2 == 0};
            constexpr int kCuts[] = {1, 3, kFinestTiling};
            check_product(table->isa, t, y, s, kCuts[dice() % 3], dice);
          }
  // Skinny GEMM reads B in place: sizes that are not a multiple of the vector, the step or the block of rows.
  for (const KernelTable* table : tables())
    for (const auto& [t, y] : dtypes)
      for (const ProductCase& s : {ProductCase{1, 64, 4, false, false},
                                   {2, 100, 37, true, false},
                                   {3, 600, 67, false, false},
                                   {4, 450, 130, true, false},
                                   {4, 79, 34, false, true},
                                   {130, 3, 67, false, true},
                                   {450, 8, 70, true, false},
                                   {33, 5, 300, false, false},
                                   // several blocks of k
                                   {1, 1, 2100, false, true},
                                   {3, 70, 1536, false, false},
                                   {2, 37, 1100, true, true},
                                   {8, 30, 1300, true, true},
                                   {13, 26, 1537, false, false}})
        for (const int threads : {1, kFinestTiling}) check_product(table->isa, t, y, s, threads, dice);
}

TEST_CASE("a row of a product has the same bits alone and among others") {
  std::mt19937 dice(3);
  const std::int64_t m = 37, n = 53, k = 700;
  for (const KernelTable* table : tables()) {
    const MatmulKernel& kernels = matmul_kernel(kernels_for(table->isa), MatmulSums::F64);
    Elements a(DType::F64, m * k), b(DType::F64, k * n), all(DType::F64, m * n), one(DType::F64, n);
    a.draw(dice);
    b.draw(dice);
    MatmulOperands p;
    p.m = m, p.n = n, p.a_m_stride = k, p.ldc = n, p.num_contracted = 1;
    p.contracted[0] = {k, 1, n, 0};
    p.a = a.bytes.data(), p.b = b.bytes.data(), p.c = all.bytes.data();
    run_cut(kernels, p, 1);
    for (std::int64_t i = 0; i < m; ++i) {
      MatmulOperands row = p;
      row.m = 1;
      row.a = a.bytes.data() + i * k * 8;
      row.c = one.bytes.data();
      run_cut(kernels, row, 2);
      for (std::int64_t j = 0; j < n; ++j) REQUIRE(one.at(j) == all.at(i * n + j));
    }
  }
}

TEST_CASE("halves are widened and rounded as Tensor::cast does it, NaN, infinities and subnormals too") {
  for (const KernelTable* table : tables()) {
    const MatmulKernel& kernel = matmul_kernel(*table, MatmulSums::F32);
    for (const DType t : {DType::F16, DType::BF16}) {
      std::vector<std::uint16_t> bits(65536), back(65536);
      for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
      std::vector<float> wide(bits.size());
      kernel.pack_a(t, bits.data(), 0, 65536, 1, 1, 65536, wide.data(), 65536);
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < bits.size(); ++i) {
        const float want = t == DType::F16 ? f16_bits_to_float(bits[i]) : bf16_bits_to_float(bits[i]);
        wrong += std::isnan(want) ? !std::isnan(wide[i]) : wide[i] != want;
      }
      const auto narrow = [&](std::int64_t n) {
        MatmulOperands p;
        p.m = 1, p.n = p.ldc = n, p.c = back.data(), p.c_type = t;
        kernel.store(p, wide.data(), 65536, 0, 1, 0, n, 0);
      };
      narrow(65536);
      for (std::size_t i = 0; i < bits.size(); ++i) {
        const bool nan = std::isnan(wide[i]);
        const float again = t == DType::F16 ? f16_bits_to_float(back[i]) : bf16_bits_to_float(back[i]);
        wrong += nan ? !std::isnan(again) : back[i] != bits[i];
      }
      std::mt19937 dice(5);
      for (float& v : wide) v = std::bit_cast<float>(static_cast<std::uint32_t>(dice()));
      narrow(65533);  // not a multiple of the vector length
      for (std::size_t i = 0; i < 65533; ++i) {
        const std::uint16_t want = t == DType::F16 ? float_to_f16_bits(wide[i]) : float_to_bf16_bits(wide[i]);
        const float again = t == DType::F16 ? f16_bits_to_float(back[i]) : bf16_bits_to_float(back[i]);
        wrong += std::isnan(wide[i]) ? !std::isnan(again) : back[i] != want;
      }
      CHECK(wrong == 0);
    }
  }
}

template <class T>
void check_integers(Isa isa, DType t, const ProductCase& s, int threads, std::mt19937_64& dice) {
  CAPTURE(isa_name(isa));
  CAPTURE(dtype_name(t));
  INFO(s.m, "x", s.n, "x", s.k, " ", s.a_t, s.b_t);
  std::vector<T> a(static_cast<std::size_t>(s.m * s.k)), b(static_cast<std::size_t>(s.k * s.n));
  std::vector<T> c(static_cast<std::size_t>(s.m * s.n + 16), T(77));
  for (auto* v : {&a, &b})
    for (T& x : *v) x = static_cast<T>(dice());
  MatmulOperands p;
  p.m = s.m, p.n = s.n, p.ldc = s.n, p.a = a.data(), p.b = b.data(), p.c = c.data();
  p.a_type = p.b_type = p.c_type = t;
  p.a_m_stride = s.a_t ? 1 : s.k, p.b_n_stride = s.b_t ? s.k : 1;
  p.num_contracted = 1;
  p.contracted[0] = {s.k, s.a_t ? s.m : 1, s.b_t ? 1 : s.n, 0};
  run_cut(matmul_kernel(kernels_for(isa), matmul_sums(t)), p, threads);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      std::uint64_t sum = 0;
      for (std::int64_t k = 0; k < s.k; ++k)
        sum += static_cast<std::uint64_t>(a[static_cast<std::size_t>(i * p.a_m_stride + k * p.contracted[0].a)]) *
               static_cast<std::uint64_t>(b[static_cast<std::size_t>(j * p.b_n_stride + k * p.contracted[0].b)]);
      wrong += c[static_cast<std::size_t>(i * s.n + j)] != static_cast<T>(sum);
    }
  for (std::size_t i = static_cast<std::size_t>(s.m * s.n); i < c.size(); ++i) wrong += c[i] != T(77);
  CHECK(wrong == 0);
}

TEST_CASE("products of integers wrap: every width, layout and size, cut in every way") {
  std::mt19937_64 dice(9);
  for (const KernelTable* table : tables())
    for (const std::int64_t m : {1, 7, 70})
      for (const std::int64_t n : {1, 17, 53})
        for (const std::int64_t k : {0, 1, 33, 270}) {
          const ProductCase s{m, n, k, dice() % 2 == 0, dice() % 2 == 0};
          constexpr int kCuts[] = {1, 3, kFinestTiling};
          check_integers<std::int8_t>(table->isa, DType::I8, s, kCuts[dice() % 3], dice);
          check_integers<std::uint8_t>(table->isa, DType::U8, s, kCuts[dice() % 3], dice);
          check_integers<std::int16_t>(table->isa, DType::I16, s, kCuts[dice() % 3], dice);
          check_integers<std::uint16_t>(table->isa, DType::U16, s, kCuts[dice() % 3], dice);
          check_integers<std::int32_t>(table->isa, DType::I32, s, kCuts[dice() % 3], dice);
          check_integers<std::uint32_t>(table->isa, DType::U32, s, kCuts[dice() % 3], dice);
          check_integers<std::int64_t>(table->isa, DType::I64, s, kCuts[dice() % 3], dice);
          check_integers<std::uint64_t>(table->isa, DType::U64, s, kCuts[dice() % 3], dice);
        }
}

template <class T>
void check_complex(Isa isa, const ProductCase& s, bool inner_axis, int threads, std::mt19937& dice) {
  CAPTURE(isa_name(isa));
  INFO(s.m, "x", s.n, "x", s.k, " ", s.a_t, s.b_t);
  std::normal_distribution<double> normal;
  std::vector<std::complex<T>> a(static_cast<std::size_t>(s.m * s.k)), b(static_cast<std::size_t>(s.k * s.n));
  std::vector<std::complex<T>> c(static_cast<std::size_t>(s.m * s.n + 4), T(77));
  for (auto* v : {&a, &b})
    for (auto& x : *v) x = {static_cast<T>(normal(dice)), static_cast<T>(normal(dice))};
  MatmulOperands p;
  p.m = s.m, p.n = s.n, p.ldc = s.n, p.a = a.data(), p.b = b.data(), p.c = c.data();
  p.a_type = p.b_type = p.c_type = sizeof(T) == 8 ? DType::C128 : DType::C64;
  p.a_m_stride = s.a_t ? 1 : s.k, p.b_n_stride = s.b_t ? s.k : 1;
  const std::int64_t step_a = s.a_t ? s.m : 1, step_b = s.b_t ? 1 : s.n;
  if (inner_axis) {  // the same contraction as two axes
    p.contracted[p.num_contracted++] = {s.k / 3, 3 * step_a, 3 * step_b, 0};
    p.contracted[p.num_contracted++] = {3, step_a, step_b, 0};
  } else {
    p.contracted[p.num_contracted++] = {s.k, step_a, step_b, 0};
  }
  as_parts(p);
  run_cut(matmul_kernel(kernels_for(isa), matmul_sums(p.c_type)), p, threads);
  double worst = 0;
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      std::complex<double> sum;
      double terms = 0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        const std::complex<double> x(a[static_cast<std::size_t>(i * (s.a_t ? 1 : s.k) + k * step_a)]);
        const std::complex<double> y(b[static_cast<std::size_t>(j * p.b_n_stride + k * step_b)]);
        sum += x * y;
        terms += std::abs(x) * std::abs(y);
      }
      const double gap = std::abs(std::complex<double>(c[static_cast<std::size_t>(i * s.n + j)]) - sum);
      worst = std::max(worst,
                       gap / (terms + (terms == 0 ? 1 : 0)) / static_cast<double>(std::numeric_limits<T>::epsilon()));
    }
  CHECK(worst <= 8);
  for (std::size_t i = static_cast<std::size_t>(s.m * s.n); i < c.size(); ++i) CHECK(c[i] == std::complex<T>(77));
}

TEST_CASE("products of complex numbers: every layout and size, cut in every way") {
  std::mt19937 dice(10);
  rlx::test::Share share(2);
  constexpr int kCuts[] = {1, 3, kFinestTiling};
  for (const KernelTable* table : tables())
    for (const std::int64_t m : {1, 7, 70})
      for (const std::int64_t n : {1, 12, 53})
        for (const std::int64_t k : {0, 1, 33, 270})
          for (const bool turned : {false, true}) {
            if (!share.next()) continue;
            const ProductCase s{m, n, k, dice() % 2 == 0, turned};
            check_complex<float>(table->isa, s, k % 3 == 0, kCuts[dice() % 3], dice);
            check_complex<double>(table->isa, s, k % 3 == 0, kCuts[dice() % 3], dice);
          }
  for (const KernelTable* table : tables())
    for (const ProductCase& s : {ProductCase{1, 32, 2, false, false},
                                 {2, 61, 35, true, false},
                                 {3, 301, 66, false, false},
                                 {4, 50, 131, true, false},
                                 {4, 45, 70, false, true}}) {
      check_complex<float>(table->isa, s, false, kCuts[dice() % 3], dice);
      check_complex<double>(table->isa, s, false, kCuts[dice() % 3], dice);
    }
}

// -- matmuls with BF16 dot-product instructions, which flush subnormal numbers to zero --

std::vector<const MatmulKernel*> bf16_pair_sets() {
  std::vector<const MatmulKernel*> out;
  for (const Bf16DotKind p : bf16_dot_kinds(Isa::Avx512)) out.push_back(&bf16_kernels(Isa::Avx512, p).exact);
  return out;
}

/// x [m, k] times w [k, n], with two contracted axes if `inner` divides k.
struct PairCase {
  std::int64_t m, n, k, inner;
  bool a_t, b_t;
  Elements a, b;
  PairCase(std::int64_t rows, std::int64_t columns, std::int64_t depth, std::int64_t last, bool a_turned, bool b_turned)
      : m(rows),
        n(columns),
        k(depth),
        inner(last),
        a_t(a_turned),
        b_t(b_turned),
        a(DType::BF16, m * k),
        b(DType::BF16, n * k) {}
  // With two axes the outer one is innermost in memory, so k has no single stride.
  std::int64_t place(std::int64_t kk) const { return inner == k ? kk : kk % inner * (k / inner) + kk / inner; }
  std::int64_t at_a(std::int64_t i, std::int64_t kk) const { return a_t ? place(kk) * m + i : i * k + place(kk); }
  std::int64_t at_b(std::int64_t kk, std::int64_t j) const { return b_t ? j * k + place(kk) : place(kk) * n + j; }
  MatmulOperands operands(Elements& c) const {
    MatmulOperands p;
    p.m = m, p.n = n, p.a = a.bytes.data(), p.b = b.bytes.data(), p.c = c.bytes.data();
    p.a_type = p.b_type = DType::BF16, p.c_type = c.type;
    p.a_m_stride = a_t ? 1 : k, p.b_n_stride = b_t ? k : 1, p.ldc = n;
    const std::int64_t step_a = a_t ? m : 1, step_b = b_t ? 1 : n;
    if (inner == k) {
      p.num_contracted = 1;
      p.contracted[0] = {k, step_a, step_b, 0};
    } else {
      p.num_contracted = 2;
      p.contracted[0] = {k / inner, step_a, step_b, 0};
      p.contracted[1] = {inner, k / inner * step_a, k / inner * step_b, 0};
    }
    return p;
  }
  /// The sum of blocks of multiply-adds, and the exact sum with the sum of the magnitudes of its terms.
  float ordered(std::int64_t i, std::int64_t j) const {
    float total = 0, sum = 0;
    for (std::int64_t kk = 0; kk < k; ++kk) {
      if (kk > 0 && kk % kSumBlock == 0) total = kk == kSumBlock ? sum : total + sum, sum = 0;
      sum = std::fma(static_cast<float>(a.at(at_a(i, kk))), static_cast<float>(b.at(at_b(kk, j))), sum);
    }
    return k > kSumBlock ? total + sum : sum;
  }
  std::pair<double, double> exact(std::int64_t i, std::int64_t j) const {
    double sum = 0, terms = 0;
    for (std::int64_t kk = 0; kk < k; ++kk) {
      const double term = a.at(at_a(i, kk)) * b.at(at_b(kk, j));
      sum += term, terms += std::abs(term);
    }
    return {sum, terms};
  }
  Elements run(const MatmulKernel& kernels, DType y, int threads) const {
    Elements c(y, m * n);
    MatmulOperands p = operands(c);
    run_cut(kernels, p, threads);
    CHECK(c.intact());
    if (n <= kTransposedRows) {
      Elements turned(y, m * n);
      transpose_matmul(p), p.c = turned.bytes.data();
      run_cut(kernels, p, threads);
      CHECK(turned.bytes == c.bytes);
    }
    return c;
  }
};

TEST_CASE("products of bf16 by pairs: every layout and size within the bound of sums, the same in every cut") {
  std::mt19937 dice(11);
  rlx::test::Share share(2);
  for (const MatmulKernel* pairs : bf16_pair_sets())
    for (const auto& sizes : {std::array<std::int64_t, 4>{1, 1, 1, 1},
                              {1, 40, 64, 64},
                              {7, 17, 33, 33},
                              {16, 16, 32, 32},
                              {17, 33, 63, 21},
                              {33, 100, 70, 35},
                              {40, 1, 300, 300},
                              {70, 53, 515, 515},
                              {150, 70, 1000, 100},
                              {3, 150, 100, 100},
                              {16, 129, 64, 64},
                              {8, 49, 515, 515},
                              {12, 97, 31, 31},
                              {150, 3, 70, 70},
                              {70, 8, 133, 133},
                              {9, 18, 0, 0},
                              // several blocks of k
                              {7, 33, 4097, 4097},
                              {18, 17, 9000, 9000}})
      for (const bool a_t : {false, true})
        for (const bool b_t : {false, true}) {
          if (!share.next()) continue;
          const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2], inner = sizes[3];
          INFO(m, "x", n, "x", k, " ", a_t, b_t);
          PairCase s(m, n, k, inner, a_t, b_t);
          s.a.draw(dice);
          s.b.draw(dice);
          // Half of the rows cancel: the second half of k is the negated first half, except for the last bits.
          for (std::int64_t i = 0; i < m; i += 2)
            for (std::int64_t kk = 0; kk < k / 2; ++kk)
              s.a.set(s.at_a(i, k - 1 - kk), -s.a.at(s.at_a(i, kk)) * (kk % 3 == 0 ? 1.0 : 0.99));
          const Elements one = s.run(*pairs, DType::F32, 1);
          double worst = 0;
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              const auto [sum, terms] = s.exact(i, j);
              const double gap = std::abs(one.at(i * n + j) - sum);
              worst = std::max(worst, terms > 0 ? gap / (terms * 0x1p-23) : gap);
            }
          CHECK(worst <= 4);  // half of the allowed error of sums
          for (const int threads : {3, kFinestTiling}) {
            const Elements other = s.run(*pairs, DType::F32, threads);
            CHECK(other.bytes == one.bytes);
          }
          const Elements halves = s.run(*pairs, DType::BF16, 2);
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < m * n; ++i)
            wrong += halves.at(i) != static_cast<double>(float(BF16(static_cast<float>(one.at(i)))));
          CHECK(wrong == 0);
        }
}

TEST_CASE("products of bf16 by pairs: nothing subnormal is lost, and each element knows its own operands alone") {
  std::mt19937 dice(12);
  const std::int64_t m = 37, n = 150;
  for (const MatmulKernel* pairs : bf16_pair_sets())
    for (const auto& [turned, k] : {std::pair<bool, std::int64_t>{false, 170}, {true, 170}, {false, 1100}}) {
      PairCase s(m, n, k, k, turned, turned);
      s.a.draw(dice);
      s.b.draw(dice);
      const Elements before = s.run(*pairs, DType::F32, 1);
      // One subnormal number; a row whose products with one column are subnormal; a row whose products with all columns
      // are.
      s.a.set(s.at_a(3, 40), 0x1.4p-130);
      for (std::int64_t kk = 0; kk < k; ++kk) {
        s.a.set(s.at_a(20, kk), s.a.at(s.at_a(20, kk)) * 0x1p-70);
        s.b.set(s.at_b(kk, 17), s.b.at(s.at_b(kk, 17)) * 0x1p-60);
        s.a.set(s.at_a(36, kk), s.a.at(s.at_a(36, kk)) * 0x1p-125);
      }
      s.b.set(s.at_b(0, 30), 0x1p120);  // the contribution that flushing would lose
      const Elements after = s.run(*pairs, DType::F32, 1);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const double got = after.at(i * n + j);
          const bool ordered = i == 3 || i == 36 || (i == 20 && j == 17);
          if (ordered)
            wrong += got != static_cast<double>(s.ordered(i, j));
          else if (i != 20 && j != 17 && j != 30)
            wrong += got != before.at(i * n + j);
        }
      CHECK(wrong == 0);
      CHECK(after.bytes == s.run(*pairs, DType::F32, kFinestTiling).bytes);
      // Each row alone, and several rows together.
      for (const std::int64_t rows : {1, 5, 16})
        for (std::int64_t first = 0; first + rows <= m; first += rows) {
          PairCase some(rows, n, k, k, turned, turned);
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t kk = 0; kk < k; ++kk) some.a.set(some.at_a(i, kk), s.a.at(s.at_a(first + i, kk)));
          some.b = s.b;
          const Elements own = some.run(*pairs, DType::F32, 2);
          for (std::int64_t i = 0; i < rows * n; ++i) REQUIRE(own.at(i) == after.at(first * n + i));
        }
      // Zeros do not count as subnormal; infinities and NaN stay.
      const double inf = std::numeric_limits<double>::infinity();
      s.a.set(s.at_a(5, 9), inf);
      s.a.set(s.at_a(6, 9), std::nan(""));
      s.a.set(s.at_a(7, 9), 0);
      const Elements special = s.run(*pairs, DType::BF16, 3);
      wrong = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        wrong += special.at(5 * n + j) != (s.b.at(s.at_b(9, j)) > 0 ? inf : -inf);
        wrong += !std::isnan(special.at(6 * n + j));
        wrong += !std::isfinite(special.at(7 * n + j));
      }
      CHECK(wrong == 0);
    }
}

}  // namespace
}  // namespace rlx::cpu::test
