// Elementwise ops in the dtype itself, norms and softmax of F64: compiled for the cpu against the reference rules, over
// broadcasts and strides, lengths around blocks and vectors, and in cuts of every size.
#include <cmath>
#include <cstring>
#include <random>

#include <doctest/doctest.h>

#include "rlx/backends/cpu/kernels/typed.h"
#include "rlx/backends/cpu/kernels/wide_rows.h"
#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

/// Elements of every bit pattern, of floats among them NaN, infinities and denormals.
Tensor typed_draw(DType t, std::vector<std::int64_t> dims, unsigned seed) {
  Tensor x = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), t));
  std::mt19937 rng(seed);
  auto* bytes = reinterpret_cast<std::uint8_t*>(x.mutable_data());
  for (std::size_t i = 0; i < x.size_bytes(); ++i) bytes[i] = static_cast<std::uint8_t>(rng() >> 9);
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    if (t == DType::Bool) bytes[i] &= 1;
    if (is_float(t) || rng() % 4 == 0)
      x.set(i, static_cast<double>(static_cast<int>(rng() % 9)) - (is_unsigned_int(t) ? 0 : 2));
    if (is_float(t) && rng() % 8 == 0) x.set(i, rng() % 2 ? HUGE_VAL : rng() % 2 ? NAN : 5e-324);
  }
  return x;
}

bool typed_same(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Runs a graph of operands on 1 and 2 threads and compares bits.
template <class F>
void check_typed(const std::vector<Tensor>& in, F&& make) {
  const auto graph = [&] {
    Graph g;
    std::vector<Expr> x;
    for (std::size_t i = 0; i < in.size(); ++i) x.push_back(g.input("x" + std::to_string(i), in[i].shape()));
    g.set_outputs({make(g, x)});
    return g;
  };
  NamedTensors named;
  for (std::size_t i = 0; i < in.size(); ++i) named.emplace("x" + std::to_string(i), in[i]);
  const Tensor want = evaluate(graph(), named)[0];
  for (const int threads : {1, 2}) {
    CompiledGraph f = Session(Device::Cpu).with_threads(threads).compile(graph());
    CHECK(typed_same(f.run_typed(named)[0], want));
  }
}

constexpr DType kInts[] = {DType::I8,  DType::U8,  DType::I16, DType::U16,
                           DType::I32, DType::U32, DType::I64, DType::U64};

TEST_CASE("typed: integers of every width, comparisons and choices are the reference's bits, whatever is broadcast") {
  const std::vector<std::vector<std::int64_t>> shapes[] = {{{1}, {1}},      {{31}, {31}},       {{257}, {1}},
                                                           {{1}, {4097}},   {{9, 130}, {9, 1}}, {{3, 1, 65}, {7, 1}},
                                                           {{5, 0}, {5, 1}}};
  unsigned seed = 1;
  for (const auto& s : shapes)
    for (const DType t : kInts) {
      CAPTURE(dtype_name(t));
      CAPTURE(s[0][0]);
      const std::vector<Tensor> in = {typed_draw(t, s[0], ++seed), typed_draw(t, s[1], ++seed)};
      for (const BinaryKind fn : {BinaryKind::Add, BinaryKind::Sub, BinaryKind::Mul, BinaryKind::Max, BinaryKind::Min,
                                  BinaryKind::BitAnd, BinaryKind::BitOr, BinaryKind::BitXor, BinaryKind::Shl,
                                  BinaryKind::Shr, BinaryKind::Div, BinaryKind::Mod, BinaryKind::Rem}) {
        INFO(std::string(EnumNames<BinaryKind>::values[static_cast<std::size_t>(fn)]));
        check_typed(in, [fn](Graph& g, const std::vector<Expr>& x) { return g.binary(fn, x[0], x[1]); });
      }
    }
}
TEST_CASE("typed: comparisons, choices and functions of one operand") {
  unsigned seed = 100;
  std::vector<DType> types(std::begin(kInts), std::end(kInts));
  types.push_back(DType::F64);
  for (const std::int64_t n : {1, 17, 300, 5000})
    for (const DType t : types) {
      CAPTURE(dtype_name(t));
      CAPTURE(n);
      const std::vector<Tensor> in = {typed_draw(t, {n}, ++seed), typed_draw(t, {n == 300 ? 1 : n}, ++seed)};
      for (const CompareKind fn :
           {CompareKind::Eq, CompareKind::Ne, CompareKind::Lt, CompareKind::Le, CompareKind::Gt, CompareKind::Ge})
        check_typed(in, [fn](Graph& g, const std::vector<Expr>& x) { return g.compare(fn, x[0], x[1]); });
      const Tensor which = typed_draw(DType::Bool, {n}, ++seed);
      check_typed({which, in[0], in[1]},
                  [](Graph& g, const std::vector<Expr>& x) { return g.where(x[0], x[1], x[2]); });
      if (t == DType::F64) continue;
      for (const ActivationKind fn : {ActivationKind::Neg, ActivationKind::Abs, ActivationKind::Not,
                                      ActivationKind::Square, ActivationKind::Sign})
        check_typed({in[0]}, [fn](Graph& g, const std::vector<Expr>& x) { return g.activation(fn, x[0]); });
    }
}
TEST_CASE("typed: casts between integers, to floats, and between F32 and F64") {
  unsigned seed = 500;
  for (const std::int64_t n : {1, 19, 4100}) {
    for (const DType from : kInts) {
      const Tensor x = typed_draw(from, {n}, ++seed);
      for (const DType to : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64,
                             DType::U64, DType::F32, DType::F64, DType::Bool, DType::F16}) {
        if (to == from) continue;
        CAPTURE(dtype_name(from));
        CAPTURE(dtype_name(to));
        check_typed({x}, [to](Graph& g, const std::vector<Expr>& v) { return g.cast(v[0], to); });
      }
    }
    for (const DType to : {DType::F32, DType::I32, DType::I64, DType::U8, DType::BF16})
      check_typed({typed_draw(DType::F64, {n}, ++seed)},
                  [to](Graph& g, const std::vector<Expr>& v) { return g.cast(v[0], to); });
    check_typed({typed_draw(DType::F32, {n}, ++seed)},
                [](Graph& g, const std::vector<Expr>& v) { return g.cast(v[0], DType::F64); });
  }
}

/// Softmax of the columns of [r, inner] by every instruction set, against long doubles.
template <class T, class Run>
void check_columns(std::int64_t r, std::int64_t inner, double bound, Run&& run) {
  std::mt19937 rng(static_cast<unsigned>(r * 1000 + inner));
  std::normal_distribution<double> normal;
  std::vector<T> x(static_cast<std::size_t>(r * inner));
  for (T& v : x) v = static_cast<T>(normal(rng) * 4);
  const auto at = [&](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * inner + j); };
  for (std::int64_t i = 0; i < r; ++i) {  // columns of -inf, with one NaN, with one +inf, of -inf but for one
    if (inner > 4) x[at(i, 1)] = static_cast<T>(-HUGE_VAL), x[at(i, 4)] = static_cast<T>(-HUGE_VAL);
    if (inner > 4 && i == r / 2)
      x[at(i, 2)] = static_cast<T>(NAN), x[at(i, 3)] = static_cast<T>(HUGE_VAL), x[at(i, 4)] = 1;
  }
  for (const bool log : {false, true})
    for (const KernelTable* t : tables()) {
      CAPTURE(isa_name(t->isa));
      CAPTURE(r);
      CAPTURE(inner);
      std::vector<T> y(x.size() + 2, static_cast<T>(55)), again = x;
      run(wide_row_kernels(t->isa), log, x.data(), y.data() + 1);
      run(wide_row_kernels(t->isa), log, again.data(), again.data());
      CHECK((y.front() == 55 && y.back() == 55));
      CHECK(std::memcmp(again.data(), y.data() + 1, x.size() * sizeof(T)) == 0);
      Worst worst;
      for (std::int64_t j = 0; j < inner; ++j) {
        long double top = -HUGE_VALL, sum = 0;
        bool nan = false;
        for (std::int64_t i = 0; i < r; ++i) {
          top = std::max(top, static_cast<long double>(x[at(i, j)]));
          nan = nan || std::isnan(x[at(i, j)]) || x[at(i, j)] == static_cast<T>(HUGE_VAL);
        }
        const bool empty = std::isinf(top) && top < 0;
        for (std::int64_t i = 0; i < r; ++i) sum += std::exp(static_cast<long double>(x[at(i, j)]) - top);
        for (std::int64_t i = 0; i < r; ++i) {
          const long double d = static_cast<long double>(x[at(i, j)]) - top;
          long double want = log ? d - std::log(sum) : std::exp(d) / sum;
          if (empty) want = log ? -HUGE_VALL : 0;
          if (nan) want = NAN;
          const double unit = log ? 1 + std::fabs(static_cast<double>(std::isfinite(want) ? want : 0)) : 1;
          worst.add(static_cast<double>(y[1 + at(i, j)]), static_cast<double>(want), unit);
        }
      }
      CHECK(worst.value() <= bound);
    }
}
TEST_CASE("wide rows: softmax along columns and rows") {
  for (const std::int64_t r : {1, 3, 64, 65, 200})
    for (const std::int64_t inner : {1, 5, 8, 33, 64, 71}) {
      check_columns<float>(r, inner, 1e-6, [&](const WideRowKernels& k, bool log, const float* x, float* y) {
        for (std::int64_t col = 0; col < inner; col += 40)
          k.softmax_columns_f32(log, x, y, r, inner, col, std::min<std::int64_t>(40, inner - col));
      });
      check_columns<double>(r, inner, 2e-15, [&](const WideRowKernels& k, bool log, const double* x, double* y) {
        for (std::int64_t col = 0; col < inner; col += 40)
          k.softmax_columns_f64(log, x, y, r, inner, col, std::min<std::int64_t>(40, inner - col));
      });
      if (inner != 1) continue;
      check_columns<double>(r, 1, 2e-15, [&](const WideRowKernels& k, bool log, const double* x, double* y) {
        k.softmax_f64(log, x, y, r, 0, 1);
      });
    }
}
TEST_CASE("wide rows: softmax of a row of -inf is 0, its logarithm -inf; NaN and +inf reach the row alone") {
  for (const KernelTable* t : tables()) {
    const WideRowKernels& k = wide_row_kernels(t->isa);
    std::vector<double> x(3 * 19, -HUGE_VAL), y(x.size());
    x[19 + 18] = NAN, x[38 + 2] = 1;
    k.softmax_f64(false, x.data(), y.data(), 19, 0, 3);
    for (std::size_t i = 0; i < 19; ++i) {
      CHECK(y[i] == 0);
      CHECK(std::isnan(y[19 + i]));
      CHECK(y[38 + i] == (i == 2 ? 1 : 0));
    }
    k.softmax_f64(true, x.data(), y.data(), 19, 0, 3);
    for (std::size_t i = 0; i < 19; ++i) {
      CHECK(y[i] == -HUGE_VAL);
      CHECK(std::isnan(y[19 + i]));
      CHECK(y[38 + i] == (i == 2 ? 0 : -HUGE_VAL));
    }
  }
}
TEST_CASE("wide rows: norms of doubles against long doubles, lengths around vectors") {
  for (const std::int64_t cols : {1, 2, 7, 8, 9, 31, 32, 33, 100}) {
    const std::int64_t rows = 3;
    std::mt19937 rng(static_cast<unsigned>(cols));
    std::normal_distribution<double> normal;
    const auto draw = [&](std::int64_t n) {
      std::vector<double> v(static_cast<std::size_t>(n));
      for (double& e : v) e = normal(rng);
      return v;
    };
    const std::vector<double> x = draw(rows * cols), gamma = draw(cols), beta = draw(cols);
    for (const KernelTable* t : tables())
      for (const bool layer : {true, false})
        for (const bool affine : {true, false}) {
          CAPTURE(isa_name(t->isa));
          CAPTURE(cols);
          std::vector<double> y(x.size() + 1, 55), mean(3), rstd(3);
          NormF64 n;
          n.cols = cols, n.x = x.data(), n.y = y.data(), n.eps = 1e-5;
          if (affine) n.gamma = gamma.data(), n.beta = beta.data();
          if (layer) n.mean_out = mean.data();
          n.rstd_out = rstd.data();
          const WideRowKernels& k = wide_row_kernels(t->isa);
          (layer ? k.layer_norm_f64 : k.rms_norm_f64)(n, 0, rows);
          CHECK(y.back() == 55);
          Worst worst;
          for (std::size_t r = 0; r < 3; ++r) {
            const auto c = static_cast<std::size_t>(cols);
            long double m = 0, v = 0;
            for (std::size_t j = 0; layer && j < c; ++j) m += x[r * c + j];
            m /= static_cast<long double>(cols);
            for (std::size_t j = 0; j < c; ++j) v += (x[r * c + j] - m) * (x[r * c + j] - m);
            const long double scale = 1 / std::sqrt(v / static_cast<long double>(cols) + n.eps);
            worst.add(rstd[r], static_cast<double>(scale), static_cast<double>(scale));
            if (layer) worst.add(mean[r], static_cast<double>(m));
            for (std::size_t j = 0; j < c; ++j) {
              long double want = (x[r * c + j] - m) * scale;
              if (affine) want = want * gamma[j] + beta[j];
              // One column is 0 / sqrt(eps) of a difference that rounds.
              worst.add(y[r * c + j], static_cast<double>(want), cols == 1 ? 300 : 1);
            }
          }
          CHECK(worst.value() <= 1e-14);
        }
  }
}

}  // namespace
}  // namespace rlx::cpu::test
