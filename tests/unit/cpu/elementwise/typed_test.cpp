// Elementwise ops in their own dtype, and norms and softmax of F64: compiled for the cpu against the reference rules.
// They cover broadcasts and strides, lengths around blocks and vectors, partitions of every size, and regions.
#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "rlx/backends/cpu/elementwise/complex_kernels.h"
#include "rlx/backends/cpu/elementwise/typed_kernels.h"
#include "rlx/backends/cpu/norm/norm_f64_kernels.h"
#include "rlx/functions/floats.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/runtime/session.h"
#include "tests/support/closeness.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

/// Elements of every bit pattern; floats include NaN, infinities and denormals.
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

/// Runs a graph of these operands on 1 and 2 threads and compares bits.
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
TEST_CASE("typed: floats to integers are cut, and the nearest limit beyond the range; NaN is 0") {
  std::vector<double> values = {NAN, 0.0, -0.0, 0.9, -0.9, 1e-310, 1e30, -1e30, INFINITY, -INFINITY};
  for (const double limit :
       {127.0, 128.0, 255.0, 256.0, 32767.0, 32768.0, 65535.0, 65536.0, 2147483647.0, 2147483648.0})
    for (const double beside : {-1.0, -0.5, 0.0, 0.5, 1.0})
      for (const double sign : {1.0, -1.0}) values.push_back(sign * (limit + beside));
  const auto n = static_cast<std::int64_t>(values.size());
  const Tensor singles = Tensor::of({n}, std::vector<float>(values.begin(), values.end()));
  for (const Tensor& x : {singles, Tensor::of({n}, values)}) {
    for (const DType to : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32}) {
      CAPTURE(dtype_name(x.dtype()));
      CAPTURE(dtype_name(to));
      check_typed({x}, [to](Graph& g, const std::vector<Expr>& v) { return g.cast(v[0], to); });
    }
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
  for (std::int64_t i = 0; i < r; ++i) {  // columns: all -inf, one NaN, one +inf, all -inf but one
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
      run(f64_row_kernels(t->isa), log, x.data(), y.data() + 1);
      run(f64_row_kernels(t->isa), log, again.data(), again.data());
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
      check_columns<float>(r, inner, 1e-6, [&](const F64RowKernels& k, bool log, const float* x, float* y) {
        for (std::int64_t col = 0; col < inner; col += 40)
          k.softmax_columns_f32(log, x, y, r, inner, col, std::min<std::int64_t>(40, inner - col));
      });
      check_columns<double>(r, inner, 2e-15, [&](const F64RowKernels& k, bool log, const double* x, double* y) {
        for (std::int64_t col = 0; col < inner; col += 40)
          k.softmax_columns_f64(log, x, y, r, inner, col, std::min<std::int64_t>(40, inner - col));
      });
      if (inner != 1) continue;
      check_columns<double>(r, 1, 2e-15, [&](const F64RowKernels& k, bool log, const double* x, double* y) {
        (log ? k.log_softmax_f64 : k.softmax_f64)(x, r, y, r, r, 0, 1);
      });
    }
}
TEST_CASE("wide rows: softmax of a row of -inf is 0, its logarithm -inf; NaN and +inf reach the row alone") {
  for (const KernelTable* t : tables()) {
    const F64RowKernels& k = f64_row_kernels(t->isa);
    std::vector<double> x(3 * 19, -HUGE_VAL), y(x.size());
    x[19 + 18] = NAN, x[38 + 2] = 1;
    k.softmax_f64(x.data(), 19, y.data(), 19, 19, 0, 3);
    for (std::size_t i = 0; i < 19; ++i) {
      CHECK(y[i] == 0);
      CHECK(std::isnan(y[19 + i]));
      CHECK(y[38 + i] == (i == 2 ? 1 : 0));
    }
    k.log_softmax_f64(x.data(), 19, y.data(), 19, 19, 0, 3);
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
          n.cols = n.ld_x = n.ld_y = cols, n.x = x.data(), n.y = y.data(), n.eps = 1e-5;
          if (affine) n.gamma = gamma.data(), n.beta = beta.data();
          if (layer) n.mean_out = mean.data();
          n.rstd_out = rstd.data();
          const F64RowKernels& k = f64_row_kernels(t->isa);
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
              // One column has the difference 0, up to rounding, over sqrt(eps).
              worst.add(y[r * c + j], static_cast<double>(want), cols == 1 ? 300 : 1);
            }
          }
          CHECK(worst.value() <= 1e-14);
        }
  }
}

Tensor region_draw(DType t, std::vector<std::int64_t> dims, unsigned seed) {
  Tensor x = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), t));
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal(0, 2);
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    if (t == DType::I64) {
      x.set_i64(i, static_cast<std::int64_t>(rng() % 3 == 0 ? std::uint64_t{rng()} << 31 | rng() : rng() % 5) - 2);
      continue;
    }
    const double special[] = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, NAN, 5e-324, 3, -3};
    x.set(i, t == DType::Bool ? static_cast<double>(rng() % 2) : rng() % 5 == 0 ? special[rng() % 8] : normal(rng));
  }
  return x;
}

using RegionMaker = std::vector<Expr> (*)(Graph&, const std::vector<Expr>&);

/// Compiles the graph with several options. `fused`: its steps must have a region.
void check_region(const std::vector<Tensor>& in, RegionMaker make, bool fused = true) {
  const auto graph = [&] {
    Graph g;
    std::vector<Expr> x;
    for (std::size_t i = 0; i < in.size(); ++i) x.push_back(g.input("x" + std::to_string(i), in[i].shape()));
    g.set_outputs(make(g, x));
    return g;
  };
  NamedTensors named;
  for (std::size_t i = 0; i < in.size(); ++i) named.emplace("x" + std::to_string(i), in[i]);
  const std::vector<Tensor> want = evaluate(graph(), named);
  for (const KernelTable* t : tables())
    for (const int threads : {1, 2}) {
      const std::string isa(isa_name(t->isa));
      CAPTURE(isa);
      CAPTURE(threads);
      CompiledGraph f = Session(Device::Cpu).with_isa(isa).with_threads(threads).compile(graph());
      const LirModule& lir = f.compile_result().lir;
      int found = 0;
      for (const LirStep& s : lir.plan.schedule)
        if (lir.graph.node(s.node).kind() == OpKind::ElementwiseRegion) ++found;
      CHECK((found > 0) == fused);
      const std::vector<Tensor> got = f.run_typed(named);
      REQUIRE(got.size() == want.size());
      for (std::size_t o = 0; o < got.size(); ++o) {
        rlx::test::Worst worst;
        for (std::int64_t i = 0; i < want[o].num_elements(); ++i) {
          if (want[o].dtype() == DType::I64)
            worst.add(got[o].at_i64(i) == want[o].at_i64(i) ? 0.0 : 1.0);
          else if (want[o].dtype() == DType::Bool)
            worst.add(got[o].at(i), want[o].at(i));
          else
            worst.add(rlx::test::ulps(DType::F64, got[o].at(i), want[o].at(i)));
        }
        CHECK(worst.value() <= (want[o].dtype() == DType::F64 ? 8 : 0));
      }
    }
}

std::vector<Expr> finite_ones(Graph& g, const std::vector<Expr>& x) {
  return {g.lt(g.abs(x[0]), g.constant(Tensor::scalar(DType::F64, HUGE_VAL)))};
}
std::vector<Expr> chosen_sum(Graph& g, const std::vector<Expr>& x) {
  const Expr both = x[0] * x[1] + x[2];
  return {g.where(g.ge(both, x[1]), g.exp(g.min(both, x[1])), g.tanh(x[2]) * 0.5)};
}
std::vector<Expr> next_numbers(Graph&, const std::vector<Expr>& x) { return {floats::nextafter(x[0], x[1])}; }
std::vector<Expr> counted_ones(Graph& g, const std::vector<Expr>& x) {
  const Expr sum = g.bit_and(x[0] + g.cast(x[2], DType::I64), x[1] * 3);
  return {g.where(g.eq(g.gt(sum, x[1]), x[2]), g.neg(sum), g.max(sum, x[0])), g.cast(sum, DType::F64) * 0.25};
}
std::vector<Expr> flags_and_numbers(Graph& g, const std::vector<Expr>& x) {
  const Expr inside = g.bit_and(g.gt(x[0], x[1]), g.bit_xor(x[2], g.eq(x[0], x[0])));
  const Expr counted = g.cast(g.logical_not(inside), DType::F64) + g.clamp(x[0], -1.0, 1.0);
  return {counted * 2.0, inside};
}

TEST_CASE("wide regions: one pass over lengths around blocks and vectors") {
  for (const std::int64_t n : {1, 7, 8, 31, 255, 256, 257, 1025, 70001}) {
    CAPTURE(n);
    check_region({region_draw(DType::F64, {n}, 1)}, finite_ones);
    check_region({region_draw(DType::F64, {n}, 2), region_draw(DType::F64, {n}, 3), region_draw(DType::F64, {n}, 4)},
                 chosen_sum);
    check_region({region_draw(DType::F64, {n}, 5), region_draw(DType::F64, {n}, 6), region_draw(DType::Bool, {n}, 7)},
                 flags_and_numbers);
    check_region({region_draw(DType::F64, {n}, 8), region_draw(DType::F64, {n}, 9)}, next_numbers);
    check_region(
        {region_draw(DType::I64, {n}, 10), region_draw(DType::I64, {n}, 11), region_draw(DType::Bool, {n}, 12)},
        counted_ones);
  }
}

TEST_CASE("wide regions: operands that are broadcast along rows, columns and both") {
  const std::vector<std::vector<std::int64_t>> shapes[] = {
      {{5, 300}, {300}, {5, 300}}, {{3, 257}, {3, 1}, {1, 1}}, {{1, 9}, {33, 1}, {33, 9}}, {{2, 3, 40}, {3, 1}, {40}}};
  for (const auto& dims : shapes) {
    check_region(
        {region_draw(DType::F64, dims[0], 1), region_draw(DType::F64, dims[1], 2), region_draw(DType::F64, dims[2], 3)},
        chosen_sum);
    check_region({region_draw(DType::F64, dims[0], 4), region_draw(DType::F64, dims[1], 5),
                  region_draw(DType::Bool, dims[2], 6)},
                 flags_and_numbers);
  }
}

TEST_CASE("wide regions: what is read through strides, and nothing at all") {
  check_region({region_draw(DType::F64, {70, 33}, 1), region_draw(DType::F64, {33, 70}, 2)},
               [](Graph& g, const std::vector<Expr>& x) {
                 const Expr turned = g.transpose(x[0], {1, 0});
                 return std::vector<Expr>{g.where(g.lt(turned, x[1]), turned * x[1], g.abs(turned))};
               });
  check_region({region_draw(DType::F64, {0}, 1)}, finite_ones, false);
}

TEST_CASE(
    "typed: functions of two flags, whatever bytes are true, and exponentials of c64 beside their special values") {
  for (const std::int64_t n : {1, 63, 64, 65, 5000})
    for (const BinaryKind fn : {BinaryKind::BitAnd, BinaryKind::BitOr, BinaryKind::BitXor})
      check_typed({typed_draw(DType::Bool, {n}, 1), typed_draw(DType::Bool, {n}, 2)},
                  [&](Graph& g, const std::vector<Expr>& x) {
                    return g.add(ops::Binary{fn}, {x[0], x[1]});
                  });
  const std::uint8_t a[] = {0, 1, 2, 255, 2, 0}, b[] = {1, 2, 1, 4, 0, 0};
  for (const KernelTable* t : tables()) {
    const TypedKernels& k = typed_kernels(t->isa);
    std::uint8_t y[3][6];
    const BinaryKind fns[] = {BinaryKind::BitAnd, BinaryKind::BitOr, BinaryKind::BitXor};
    for (int f = 0; f < 3; ++f) k.binary(fns[f], DType::Bool)(a, b, nullptr, y[f], 6);
    for (int i = 0; i < 6; ++i) {
      CHECK(y[0][i] == (a[i] != 0 && b[i] != 0 ? 1 : 0));
      CHECK(y[1][i] == (a[i] != 0 || b[i] != 0 ? 1 : 0));
      CHECK(y[2][i] == ((a[i] != 0) != (b[i] != 0) ? 1 : 0));
    }
  }
  const float parts[] = {0, -0.0F, 1, -2.5F, 88, 89, -104, 720, -800, HUGE_VALF, -HUGE_VALF, NAN, 1e6F, 3e-39F};
  std::vector<std::complex<float>> z;
  for (const float re : parts)
    for (const float im : parts) z.emplace_back(re, im);
  for (const KernelTable* t : tables()) {
    std::vector<std::complex<float>> y(z.size());
    for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{130}, z.size()}) {
      complex_kernels(t->isa).exp(reinterpret_cast<const float*>(z.data()), reinterpret_cast<float*>(y.data()),
                                  static_cast<std::int64_t>(n));
      for (std::size_t i = 0; i < n; ++i) {
        const std::complex<double> want = std::exp(std::complex<double>(z[i]));
        CAPTURE(z[i].real());
        CAPTURE(z[i].imag());
        CHECK(rlx::test::ulps(DType::F32, static_cast<double>(y[i].real()), want.real()) <= 0.51);
        CHECK(rlx::test::ulps(DType::F32, static_cast<double>(y[i].imag()), want.imag()) <= 0.51);
      }
    }
  }
}

}  // namespace
}  // namespace rlx::cpu::test
