// Sort kernels of every instruction set against std::sort: sizes around those of vectors and sorting networks, and data
// that is bad for pivots. Also whole rows through the compiler, with NaN and both zeros.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "rlx/backends/cpu/sort/sort_kernels.h"
#include "rlx/ir/builder.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/visit.h"
#include "tests/support/needs.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

constexpr std::int64_t kSizes[] = {0,   1,   2,   3,    7,    8,    9,    15,   16,    17,    31,
                                   32,  33,  47,  48,   63,   64,   65,   100,  127,   128,   129,
                                   130, 255, 257, 1000, 2047, 4096, 4097, 9000, 16384, 20011, 70001};

/// Kinds of data: random, few different values, one value, ascending, descending, from both ends, organ pipes, an
/// outlier.
template <class T>
std::vector<T> shaped(int shape, std::int64_t n, std::mt19937_64& random) {
  std::vector<T> x(static_cast<std::size_t>(n));
  std::normal_distribution<double> normal(0, 1e6);
  for (std::int64_t i = 0; i < n; ++i) {
    T& v = x[static_cast<std::size_t>(i)];
    switch (shape) {
      case 0: v = static_cast<T>(normal(random)); break;
      case 1: v = static_cast<T>(random() % 3); break;
      case 2: v = 5; break;
      case 3: v = static_cast<T>(i); break;
      case 4: v = static_cast<T>(-i); break;
      case 5: v = static_cast<T>(i % 2 != 0 ? i : n - i); break;
      case 6: v = static_cast<T>(i < n / 2 ? i : n - i); break;
      default: v = i == n / 3 ? std::numeric_limits<T>::max() : static_cast<T>(random() % 1000); break;
    }
  }
  return x;
}

template <class T>
void check_sort(const char* name, void (*sort)(T*, std::int64_t, T*)) {
  std::mt19937_64 random(7);
  rlx::test::Share share(3);
  for (const std::int64_t n : kSizes)
    for (int shape = 0; shape < 8; ++shape) {
      if (!share.next()) continue;
      CAPTURE(name);
      CAPTURE(n);
      CAPTURE(shape);
      std::vector<T> x = shaped<T>(shape, n, random), expected = x;
      const T mark = static_cast<T>(77);
      x.push_back(mark);  // after the sorted range
      std::vector<T> scratch(static_cast<std::size_t>(n + kSortSlack + 1), mark);
      std::sort(expected.begin(), expected.end());
      expected.push_back(mark);
      sort(x.data(), n, scratch.data());
      CHECK(x == expected);
      CHECK(scratch.back() == mark);
    }
}

TEST_CASE("sort kernels: every size and shape of data, each instruction set") {
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    const SortKernels& k = sort_kernels(t->isa);
    check_sort("f32", k.sort_f32);
    check_sort("f64", k.sort_f64);
    check_sort("i32", k.sort_i32);
    check_sort("i64", k.sort_i64);
  }
}

TEST_CASE("sort kernels: infinities and the largest integers are numbers like others") {
  for (const KernelTable* t : tables()) {
    const SortKernels& k = sort_kernels(t->isa);
    std::vector<float> x{kInf, 1, -kInf, 0, kInf, -1, 3.4e38F, -3.4e38F}, scratch(x.size() + kSortSlack);
    k.sort_f32(x.data(), static_cast<std::int64_t>(x.size()), scratch.data());
    CHECK(x == std::vector<float>{-kInf, -3.4e38F, -1, 0, 1, 3.4e38F, kInf, kInf});
    constexpr auto kMin = std::numeric_limits<std::int64_t>::min(), kMax = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> y{kMax, 0, kMin, -1, kMax, 1}, other(y.size() + kSortSlack);
    k.sort_i64(y.data(), static_cast<std::int64_t>(y.size()), other.data());
    CHECK(y == std::vector<std::int64_t>{kMin, -1, 0, 1, kMax, kMax});
  }
}

TEST_CASE("sort kernels: keys order as numbers do, NaN above all, the zeros alike") {
  for (const KernelTable* t : tables()) {
    const SortKernels& k = sort_kernels(t->isa);
    const std::vector<float> x{-kInf, -2, -1e-40F, -0.0F, 0.0F, 1e-40F, 3, kInf, kNan, -kNan};
    const auto n = static_cast<std::int64_t>(x.size());
    std::vector<std::int32_t> keys(x.size());
    for (const bool descending : {false, true}) {
      k.keys_f32(x.data(), n, descending, keys.data());
      for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const bool equal = i == 3 || i == 8;
        CHECK((equal ? keys[i] == keys[i + 1] : descending ? keys[i] > keys[i + 1] : keys[i] < keys[i + 1]));
      }
    }
    const std::vector<double> wide(x.begin(), x.end());
    std::vector<std::int64_t> wide_keys(x.size());
    k.keys_f64(wide.data(), n, false, wide_keys.data());
    for (std::size_t i = 0; i + 1 < x.size(); ++i)
      CHECK((i == 3 || i == 8 ? wide_keys[i] == wide_keys[i + 1] : wide_keys[i] < wide_keys[i + 1]));
    std::vector<float> copy(x.size());
    CHECK(k.copy_f32(x.data(), n, copy.data()));
    CHECK(!k.copy_f32(x.data() + 4, 4, copy.data()));
    CHECK(k.copy_f32(x.data() + 3, 1, copy.data()));
  }
}

TEST_CASE("sort kernels: places above a threshold, in pieces") {
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    const SortKernels& k = sort_kernels(t->isa);
    std::mt19937_64 random(3);
    for (const std::int64_t n : {1, 15, 16, 17, 100, 1000}) {
      std::vector<float> x = shaped<float>(0, n, random);
      x[static_cast<std::size_t>(n / 2)] = kNan;
      std::vector<std::int32_t> expected, got, at(static_cast<std::size_t>(n) + 16);
      for (std::int64_t i = 0; i < n; ++i)
        if (!(x[static_cast<std::size_t>(i)] <= 0.5F)) expected.push_back(static_cast<std::int32_t>(i));
      for (std::int64_t begin = 0; begin < n;) {
        const std::int64_t count = k.above_f32(x.data(), &begin, n, 0.5F, 7, at.data());
        CHECK(count < 7 + 16);
        got.insert(got.end(), at.begin(), at.begin() + count);
      }
      CHECK(got == expected);
    }
  }
}

template <class T>
void check_highest(void (*highest)(const T*, std::int64_t, std::int64_t, T*)) {
  std::mt19937_64 random(13);
  for (const std::int64_t chains : {64, 128, 448})
    for (const std::int64_t rows : {1, 2, 16}) {
      std::vector<T> x = shaped<T>(0, rows * chains, random), expected, got(static_cast<std::size_t>(chains) + 1, T(7));
      constexpr bool kFloat = std::numeric_limits<T>::has_infinity;
      const T least = kFloat ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto row = static_cast<std::size_t>(i * chains);
        x[row + 3] = kFloat ? std::numeric_limits<T>::quiet_NaN() : least;  // a part of NaN alone
        x[row + 5] = least;
        if (i == 0 && kFloat) x[row + 40] = std::numeric_limits<T>::quiet_NaN();
      }
      for (std::int64_t c = 0; c < chains; ++c) {
        T best = least;
        for (std::int64_t i = 0; i < rows; ++i) {
          const T v = x[static_cast<std::size_t>(i * chains + c)];
          best = v > best ? v : best;
        }
        expected.push_back(best);
      }
      expected.push_back(T(7));
      highest(x.data(), rows, chains, got.data());
      CHECK(got == expected);
    }
}
TEST_CASE("sort kernels: the highest number of each chain") {
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    const SortKernels& k = sort_kernels(t->isa);
    check_highest(k.highest_f32);
    check_highest(k.highest_f64);
    check_highest(k.highest_i32);
    check_highest(k.highest_i64);
  }
}

// -- through the compiler --

Tensor special_line(DType t, std::int64_t n) {
  Tensor x = Tensor::zeros(Shape({n}, t));
  std::mt19937_64 random(11);
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(random() % 2001) / 10 - 100;
    const double special[] = {-0.0, 0.0, std::nan(""), -std::nan(""), HUGE_VAL, -HUGE_VAL};
    store_element(x.mutable_data(), t, i, i % 5 == 0 ? special[random() % 6] : v);
  }
  return x;
}

void check_as_reference(const Graph& g, const NamedTensors& inputs) {
  const std::vector<Tensor> expected = evaluate(g, inputs);
  Session session(Device::Cpu);
  CompiledGraph program = session.compile(Graph(g));
  const std::vector<Tensor> got = program.run_typed(inputs);
  REQUIRE(got.size() == expected.size());
  for (std::size_t r = 0; r < got.size(); ++r) {
    const bool same = got[r].shape() == expected[r].shape() &&
                      std::equal(got[r].data(), got[r].data() + got[r].size_bytes(), expected[r].data());
    CHECK_MESSAGE(same, "result ", r, " of ", got[r].shape());
  }
}

TEST_CASE("sort on the cpu: NaN and zeros of both signs keep their bits and their order") {
  for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const bool descending : {false, true})
      for (const std::int64_t n : {1, 5, 40, 3000}) {
        CAPTURE(dtype_name(t));
        CAPTURE(n);
        CAPTURE(descending);
        Graph g("sort");
        const Expr x = g.input("x", Shape({n}, t));
        g.set_outputs({g.add(ops::Sort{0, descending}, {x}).result(0)});
        check_as_reference(g, {{"x", special_line(t, n)}});
        Graph order("argsort");
        const Expr y = order.input("x", Shape({n}, t));
        const Expr both = order.add(ops::Sort{0, descending}, {y, order.iota(Shape({n}, DType::I32), 0)});
        order.set_outputs({both.result(0), both.result(1)});
        check_as_reference(order, {{"x", special_line(t, n)}});
      }
}

TEST_CASE("sort on the cpu: keys of 64 bits that differ in their lowest ones alone, and an outlier") {
  for (const DType t : {DType::F64, DType::I64, DType::U64}) {
    constexpr std::int64_t kN = 5000;
    Tensor x = Tensor::zeros(Shape({kN}, t));
    for (std::int64_t i = 0; i < kN; ++i) {
      const auto low = static_cast<std::uint64_t>(i * 7919 % 4001);
      std::uint64_t bits = t == DType::F64 ? std::bit_cast<std::uint64_t>(1.0) + low : low;
      if (i == 77) bits = t == DType::F64 ? std::bit_cast<std::uint64_t>(-1e300) : std::uint64_t{1} << 63;
      std::memcpy(x.mutable_data() + i * 8, &bits, 8);
    }
    for (const bool descending : {false, true}) {
      Graph g("argsort");
      const Expr k = g.input("x", Shape({kN}, t));
      const Expr both = g.add(ops::Sort{0, descending}, {k, g.iota(Shape({kN}, DType::I64), 0)});
      g.set_outputs({both.result(0), both.result(1)});
      check_as_reference(g, {{"x", x}});
    }
  }
}

TEST_CASE("sort on the cpu: keys of one and two bytes, of which there may be more than there are numbers" *
          doctest::test_suite(rlx::test::kSlow)) {
  for (const DType t : {DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16, DType::F16, DType::BF16})
    for (const std::int64_t n : {255, 256, 1023, 1024, 70001, 530000})
      for (const bool descending : {false, true}) {
        if (n > 70001 && t != DType::I16 && t != DType::U16) continue;
        CAPTURE(dtype_name(t));
        CAPTURE(n);
        CAPTURE(descending);
        Tensor x = Tensor::zeros(Shape({n}, t));
        std::mt19937_64 random(static_cast<std::uint64_t>(n));
        if (t == DType::Bool) {
          for (std::int64_t i = 0; i < n; ++i) x.set(i, random() % 2 == 0 ? 1 : 0);
        } else {  // every bit pattern
          for (std::size_t i = 0; i < x.size_bytes(); ++i) x.mutable_data()[i] = static_cast<std::byte>(random() & 255);
        }
        Graph g("sort");
        g.set_outputs({g.add(ops::Sort{0, descending}, {g.input("x", x.shape())}).result(0)});
        check_as_reference(g, {{"x", x}});
        Graph order("argsort");
        const Expr both =
            order.add(ops::Sort{0, descending}, {order.input("x", x.shape()), order.iota(Shape({n}, DType::I32), 0)});
        order.set_outputs({both.result(1)});
        check_as_reference(order, {{"x", x}});
      }
}

TEST_CASE("a sort whose values of half a byte nobody reads") {
  Graph g("keys");
  const Expr x = g.input("x", Shape({7, 5}, DType::F32));
  g.set_outputs({g.add(ops::Sort{1}, {x, g.cast(x, DType::I4)}).result(0)});
  check_as_reference(g, {{"x", Tensor::zeros(Shape({7, 5}, DType::F32))}});
}

TEST_CASE("top_k on the cpu: ties to the smaller place, NaN first, rising and falling rows") {
  for (const DType t :
       {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U8, DType::U32, DType::U64})
    for (const std::int64_t k : {1, 3, 40, 600, 2500, 3000})
      for (int shape = 0; shape < 8; ++shape) {
        // The last rows: fewer than k numbers above the lowest one; all NaN; some NaN in front; both zeros.
        CAPTURE(dtype_name(t));
        CAPTURE(k);
        CAPTURE(shape);
        constexpr std::int64_t kN = 3000;
        Tensor x = Tensor::zeros(Shape({2, kN}, t));
        const double lowest = is_float(t) ? -HUGE_VAL : is_unsigned_int(t) ? 0.0 : -9.3e18;  // saturates
        std::mt19937_64 random(5);
        for (std::int64_t i = 0; i < 2 * kN; ++i) {
          const double v = shape == 0   ? static_cast<double>(random() % 100)
                           : shape == 1 ? static_cast<double>(i % kN)
                           : shape == 2 ? static_cast<double>(kN - i % kN)
                           : shape == 3 ? 1.0
                           : shape == 4 ? (i % 500 == 7 ? 3.0 : lowest)
                           : shape == 5 ? (i % 3 == 0 || !is_float(t) ? static_cast<double>(i % 50) : std::nan(""))
                           : shape == 6 ? (i % kN < 5 && is_float(t) ? std::nan("") : static_cast<double>(random() % 7))
                                        : (i % 2 == 0 ? 0.0 : -0.0);
          store_element(x.mutable_data(), t, i, is_float(t) && shape == 0 && v == 42 ? std::nan("") : v);
        }
        Graph g("top_k");
        const Expr best = g.add(ops::TopK{k}, {g.input("x", x.shape())});
        g.set_outputs({best.result(0), best.result(1)});
        check_as_reference(g, {{"x", x}});
      }
}

}  // namespace
}  // namespace rlx::cpu::test
