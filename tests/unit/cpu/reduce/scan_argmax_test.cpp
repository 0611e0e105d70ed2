// Argmax, argmin and cumulative kernels of every instruction set against plain loops, and scatters in every dtype,
// which apply the updates of one element in order.
#include "rlx/backends/cpu/reduce/scan_argmax_kernels.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "rlx/backends/cpu/index/indexed_kernels.h"
#include "rlx/backends/cpu/index/scatter_kernels.h"
#include "rlx/ir/builder.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/runtime/session.h"
#include "tests/support/needs.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

constexpr DType kLineTypes[] = {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8,  DType::U8,  DType::I16,
                                DType::U16, DType::I32, DType::U32, DType::I64,  DType::U64, DType::Bool};
constexpr std::int64_t kLineSizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 200, 511, 512, 513, 1030};

/// A few different numbers, the ends of the dtype, and some NaN.
Tensor line_values(DType t, std::vector<std::int64_t> dims, int seed, bool nan) {
  const Shape shape(Dims(dims.begin(), dims.end()), t);
  Tensor x = Tensor::zeros(shape);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    const auto draw = random() % 200;
    double v = static_cast<double>(draw % 9) - (is_unsigned_int(t) || t == DType::Bool ? 0.0 : 4.0);
    if (t == DType::Bool) v = draw % 2 == 0 ? 0 : 1;
    if (nan && is_float(t) && draw < 2) v = std::nan("");
    x.set(i, v);
    if (t == DType::U64 && draw == 7) x.set(i, 1.8e19);
    if (t == DType::U32 && draw == 7) x.set(i, 4e9);
  }
  return x;
}
/// Compares the bits of two tensors; all NaN are equal.
bool same_values(const Tensor& a, const Tensor& b) {
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (!(x == y || (x != x && y != y))) return false;
  }
  return a.num_elements() == b.num_elements();
}

TEST_CASE("line kernels: the first of the largest and smallest, NaN above all, each instruction set") {
  for (const KernelTable* table : tables()) {
    const ScanArgmaxKernels& k = scan_argmax_kernels(table->isa);
    for (const DType t : kLineTypes)
      for (const std::int64_t n : kLineSizes)
        for (const bool maximum : {true, false}) {
          CAPTURE(isa_name(table->isa));
          CAPTURE(dtype_name(t));
          CAPTURE(n);
          CAPTURE(maximum);
          constexpr std::int64_t kCols = 21;
          const Tensor x = line_values(t, {n, kCols}, static_cast<int>(n), n % 2 == 0);
          const auto expected = [&](std::int64_t first, std::int64_t step) {
            std::int64_t best = 0;
            for (std::int64_t i = 1; i < n; ++i) {
              const double v = x.at(first + i * step), b = x.at(first + best * step);
              if (b == b && (v != v || (maximum ? v > b : v < b))) best = i;
            }
            return best;
          };
          CHECK(k.best(t, maximum, x.data(), 3, n) == expected(3, 1));
          std::int32_t places[kCols + 1];
          places[kCols] = -7;
          k.best_columns(t, maximum, x.data(), 0, kCols, n, kCols, places);
          for (std::int64_t j = 0; j < kCols; ++j) CHECK(places[j] == expected(j, kCols));
          CHECK(places[kCols] == -7);
        }
  }
}

TEST_CASE("line kernels: running reductions, both ways, with and without the element itself") {
  constexpr ReduceKind kKinds[] = {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min};
  constexpr CumulativeKind kOps[] = {CumulativeKind::Sum, CumulativeKind::Prod, CumulativeKind::Max,
                                     CumulativeKind::Min};
  rlx::test::Share share(3);
  for (const KernelTable* table : tables()) {
    const ScanArgmaxKernels& k = scan_argmax_kernels(table->isa);
    for (const DType t : kLineTypes)
      for (int kind = 0; kind < 4; ++kind) {
        if (t == DType::Bool && kind < 2) continue;
        for (const std::int64_t n : kLineSizes)
          for (int form = 0; form < 4; ++form) {
            if (!share.next()) continue;
            CAPTURE(isa_name(table->isa));
            CAPTURE(dtype_name(t));
            CAPTURE(kind);
            CAPTURE(n);
            CAPTURE(form);
            // Products of a few numbers that stay small: integers are exact in every dtype.
            Tensor x = line_values(t, {n}, form, kind >= 2 && n % 2 == 0);
            if (kind == 1)
              for (std::int64_t i = 0; i < n; ++i) x.set(i, i == n / 2 ? 3 : 1);
            const bool exclusive = form % 2 != 0, reverse = form / 2 != 0;
            Graph g("scan");
            g.set_outputs({g.cumulative(kOps[kind], g.input("x", x.shape()), 0, exclusive, reverse)});
            const Tensor expected = evaluate(g, {{"x", x}})[0];
            Tensor y = Tensor::zeros(x.shape());
            k.scan({kKinds[kind], t, exclusive, reverse, x.data(), y.mutable_data()}, 0, n);
            CHECK(same_values(y, expected));
            // The same vector as the columns of a matrix.
            constexpr std::int64_t kCols = 19;
            Tensor wide = Tensor::zeros(Shape({n, kCols}, t)), out = wide, column = y;
            for (std::int64_t i = 0; i < n * kCols; ++i) wide.set(i, x.at(i / kCols));
            k.scan_columns({kKinds[kind], t, exclusive, reverse, wide.data(), out.mutable_data()}, 0, kCols, n, kCols);
            for (const std::int64_t j : {std::int64_t{0}, kCols - 1}) {
              for (std::int64_t i = 0; i < n; ++i) column.set(i, out.at(i * kCols + j));
              CHECK(same_values(column, expected));
            }
          }
      }
  }
}

TEST_CASE("scatter kernels: every function and dtype, places shared in parts, updates out of range") {
  constexpr ScatterKind kFns[] = {ScatterKind::Set, ScatterKind::Add, ScatterKind::Mul, ScatterKind::Min,
                                  ScatterKind::Max};
  constexpr std::int64_t kRows = 13, kCount = 70;
  for (const KernelTable* table : tables())
    for (const DType t : kLineTypes)
      for (const ScatterKind fn : kFns)
        for (const std::int64_t size : {1, 2, 17, 300}) {
          if (t == DType::Bool && (fn == ScatterKind::Add || fn == ScatterKind::Mul)) continue;
          CAPTURE(isa_name(table->isa));
          CAPTURE(dtype_name(t));
          CAPTURE(static_cast<int>(fn));
          CAPTURE(size);
          const bool nan = fn == ScatterKind::Min || fn == ScatterKind::Max;
          const Tensor x = line_values(t, {kRows, size}, 1, nan);
          Tensor updates = line_values(t, {kCount, size}, 2, nan);
          if (fn == ScatterKind::Mul)
            for (std::int64_t i = 0; i < updates.num_elements(); ++i) updates.set(i, i % 11 == 0 ? 2 : 1);
          Tensor ids = Tensor::zeros(Shape({kCount}, DType::I32));
          for (std::int64_t i = 0; i < kCount; ++i) ids.set(i, static_cast<double>(i * 7 % 16) - 2);  // -2 to 13
          Graph g("scatter");
          g.set_outputs(
              {g.scatter(fn, g.input("x", x.shape()), g.input("i", ids.shape()), g.input("u", updates.shape()))});
          const Tensor expected = evaluate(g, {{"x", x}, {"i", ids}, {"u", updates}})[0];

          std::vector<std::int64_t> at, order;
          for (std::int64_t i = 0; i < kCount; ++i) {
            const auto row = static_cast<std::int64_t>(ids.at(i));
            at.push_back(row >= 0 && row < kRows ? row * size : -1);
            order.push_back(i);
          }
          std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
            return at[static_cast<std::size_t>(i)] < at[static_cast<std::size_t>(j)];
          });
          for (const std::int64_t parts : {1, 3}) {
            Tensor y = Tensor::copy_of(x.data(), x.shape());
            Updates u;
            u.dtype = t;
            u.fn = fn;
            u.at = at.data();
            u.order = rounds_updates(t, fn) ? order.data() : nullptr;
            u.count = kCount;
            u.size = size;
            u.from = updates.data();
            u.to = y.mutable_data();
            REQUIRE(has_scatter_kernels(t, fn));
            const std::int64_t span = (kRows - 1) * size + 1;
            for (std::int64_t p = 0; p < parts; ++p)
              scatter_kernels(table->isa).put(u, 0, 0, size, span * p / parts, span * (p + 1) / parts);
            CHECK(same_values(y, expected));
          }
        }
}

TEST_CASE("indexed blocks: rows of indices that stand still, that move alone, and that move together") {
  // Index tensors of dims [3, 4] for two axes of a [5, 6] table, each broadcast in another way.
  std::vector<std::int32_t> rows{0, 4, 2, -1, 3, 1, 2, 5, 0, 0, 4, 1};
  std::vector<std::int64_t> cols{5, 0, 1, 2, 6, 3, 3, 4, -2, 1, 0, 2};
  const std::vector<std::int64_t> ways[] = {{4, 1}, {0, 1}, {1, 0}, {0, 0}};
  for (const KernelTable* table : tables())
    for (int way = 0; way < 32; ++way) {
      const bool clamp = way % 2 != 0;
      const auto &first = ways[way / 2 % 4], &second = ways[way / 8];
      CAPTURE(isa_name(table->isa));
      CAPTURE(way);
      NamedBlocks b;
      b.kernels = &index_kernels(table->isa);
      const std::vector<std::int64_t> dims{5, 6};
      b.blocks = IndexedBlocks(dims, {0, 1});
      b.axes = {{{rows.data(), false}, first}, {{cols.data(), true}, second}};
      b.dims = {3, 4};
      b.count = 12;
      b.clamp = clamp;
      CHECK(b.span() == 30);
      for (const std::int64_t begin : {0, 2, 5}) {
        const std::int64_t end = begin == 0 ? 12 : begin == 2 ? 11 : 6;
        std::vector<std::int64_t> at(12, -9), expected(12, -9);
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t r = i / 4, c = i % 4;
          std::int64_t row = rows[static_cast<std::size_t>(r * first[0] + c * first[1])],
                       col = cols[static_cast<std::size_t>(r * second[0] + c * second[1])];
          if (clamp) row = std::clamp<std::int64_t>(row, 0, 4), col = std::clamp<std::int64_t>(col, 0, 5);
          expected[static_cast<std::size_t>(i)] = row < 0 || row > 4 || col < 0 || col > 5 ? -1 : row * 6 + col;
        }
        find_blocks(b, begin, end, at.data() + begin);
        CHECK(at == expected);
      }
    }
}

TEST_CASE("index kernels: places and what lies there, rows of every length around vectors, apart and together") {
  constexpr std::int64_t kExtent = 11;
  for (const KernelTable* table : tables())
    for (const std::int64_t n : {1, 7, 8, 9, 16, 17, 33, 300})
      for (const std::int64_t step : {1, 3})
        for (int form = 0; form < 8; ++form) {
          const bool clamp = form % 2 != 0, wide = form / 2 % 2 != 0;
          const int count = form < 4 ? 1 : 2;
          CAPTURE(isa_name(table->isa));
          CAPTURE(n);
          CAPTURE(step);
          CAPTURE(form);
          std::vector<std::int32_t> narrow;
          std::vector<std::int64_t> long_ones;
          for (std::int64_t i = 0; i < 2 * n * step; ++i) {
            const std::int64_t v =
                i % 13 == 12 ? (i % 2 == 0 ? std::int64_t{1} << 30 : -(std::int64_t{1} << 30)) : i * 5 % 13 - 1;
            narrow.push_back(static_cast<std::int32_t>(v));
            long_ones.push_back(i % 13 == 12 ? v * 4 : v);
          }
          const auto* data = wide ? static_cast<const void*>(long_ones.data()) : narrow.data();
          const IndexRow rows[] = {{data, wide, step, kExtent, 20},
                                   {static_cast<const std::byte*>(data) + n * step * (wide ? 8 : 4), wide, step, 7, 2}};
          std::vector<std::int64_t> expected, at(static_cast<std::size_t>(n) + 1, -9);
          for (std::int64_t j = 0; j < n; ++j) {
            std::int64_t sum = 5;
            for (int r = 0; r < count; ++r) {
              std::int64_t index = long_ones[static_cast<std::size_t>((r * n + j) * step)];
              if (clamp) index = std::clamp<std::int64_t>(index, 0, rows[r].extent - 1);
              sum = sum < 0 || index < 0 || index >= rows[r].extent ? -1 : sum + index * rows[r].stride;
            }
            expected.push_back(sum);
          }
          expected.push_back(-9);
          index_kernels(table->isa).places(rows, count, clamp, 5, n, at.data());
          CHECK(at == expected);
          // An empty axis has no extremum.
          const IndexRow none{data, wide, step, 0, 20};
          std::vector<std::int64_t> nowhere(static_cast<std::size_t>(n));
          index_kernels(table->isa).places(&none, 1, clamp, 0, n, nowhere.data());
          CHECK(nowhere == std::vector<std::int64_t>(static_cast<std::size_t>(n), -1));
          for (const std::int64_t bytes : {1, 2, 4, 8, 16}) {
            std::vector<std::uint8_t> x, y(static_cast<std::size_t>((n + 1) * bytes), 0x5a), fill(16, 0xee), right = y;
            for (std::int64_t i = 0; i < 250 * bytes; ++i) x.push_back(static_cast<std::uint8_t>(i * 7 + i / 256));
            for (std::int64_t i = 0; i < n * bytes; ++i) {
              const std::int64_t from = expected[static_cast<std::size_t>(i / bytes)];
              right[static_cast<std::size_t>(i)] =
                  from < 0 ? std::uint8_t{0xee} : x[static_cast<std::size_t>(from * bytes + i % bytes)];
            }
            index_kernels(table->isa).take(static_cast<int>(bytes) * 8, x.data(), at.data(), n, fill.data(), y.data());
            CHECK(y == right);
          }
        }
}

TEST_CASE("scatter on the cpu: more updates than are found together, short and long blocks, any axis") {
  for (const DType t : {DType::F32, DType::BF16, DType::I8, DType::I64, DType::C64})
    for (const std::int64_t axis : {0, 1})
      for (const std::int64_t size : {1, 3, 40})
        for (const ScatterKind fn : {ScatterKind::Set, ScatterKind::Add}) {
          constexpr std::int64_t kRows = 19, kCount = 700;
          CAPTURE(dtype_name(t));
          CAPTURE(axis);
          CAPTURE(size);
          CAPTURE(static_cast<int>(fn));
          std::vector<std::int64_t> dims{kRows, size}, shape{kCount, size};
          if (axis == 1) std::swap(dims[0], dims[1]), std::swap(shape[0], shape[1]);
          const Tensor x = line_values(t, dims, 1, false), updates = line_values(t, shape, 2, false);
          Tensor ids = Tensor::zeros(Shape({kCount}, DType::I32));
          for (std::int64_t i = 0; i < kCount; ++i) ids.set(i, static_cast<double>(i * 7 % 23) - 2);  // -2 to 20
          Graph g("scatter");
          const Expr i = g.input("i", ids.shape());
          g.set_outputs({g.scatter(fn, g.input("x", x.shape()), i, g.input("u", updates.shape()), axis)});
          const NamedTensors inputs{{"x", x}, {"i", ids}, {"u", updates}};
          const Tensor expected = evaluate(g, inputs)[0];
          const Tensor got = Session(Device::Cpu).compile(Graph(g)).run_typed(inputs)[0];
          CHECK(same_values(got, expected));
        }
}

TEST_CASE("reductions on the cpu: axes in one, two and three groups, and extents of 0") {
  const std::vector<std::int64_t> groups[] = {{0, 2},    {0, 3}, {1, 3},    {0, 2, 3},
                                              {0, 1, 3}, {1, 4}, {0, 2, 4}, {0, 1, 2, 3, 4}};
  constexpr rlx::ReduceKind kFns[] = {rlx::ReduceKind::Sum, rlx::ReduceKind::Mean, rlx::ReduceKind::Max,
                                      rlx::ReduceKind::Min, rlx::ReduceKind::Prod};
  for (const DType t : {DType::F32, DType::F64, DType::BF16, DType::I32, DType::U8, DType::Bool})
    for (const auto& axes : groups)
      for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{3, 5, 2, 70, 4},
                                                    {2, 3, 1, 1, 600},
                                                    {3, 2, 0, 2, 2},
                                                    {0, 2, 3, 2, 2},
                                                    {9, 1, 4, 33, 1}})
        for (const rlx::ReduceKind fn : kFns) {
          const bool orders = fn == rlx::ReduceKind::Max || fn == rlx::ReduceKind::Min, empty = dims[0] * dims[2] == 0;
          if ((t == DType::Bool && !orders) || (is_int(t) && (fn == rlx::ReduceKind::Mean || (empty && orders))))
            continue;
          if (empty && fn == rlx::ReduceKind::Mean) continue;
          CAPTURE(dtype_name(t));
          CAPTURE(axes.size());
          CAPTURE(axes.back());
          CAPTURE(dims[0]);
          CAPTURE(static_cast<int>(fn));
          Tensor x = line_values(t, dims, 3, orders);
          if (fn == rlx::ReduceKind::Prod)  // exact in every order
            for (std::int64_t i = 0; i < x.num_elements(); ++i) x.set(i, i % 97 == 0 ? 2 : 1);
          Graph g("reduce");
          g.set_outputs({g.reduce(fn, g.input("x", x.shape()), axes)});
          const Tensor expected = evaluate(g, {{"x", x}})[0];
          const Tensor got = Session(Device::Cpu).compile(Graph(g)).run_typed({{"x", x}})[0];
          if (fn != rlx::ReduceKind::Mean && t != DType::BF16) {
            CHECK(same_values(got, expected));
            continue;
          }
          std::int64_t wrong = 0;  // small integers: only quotients are inexact
          for (std::int64_t i = 0; i < expected.num_elements(); ++i) {
            const double a = got.at(i), b = expected.at(i);
            wrong += !(std::fabs(a - b) <= std::fabs(b) * (t == DType::BF16 ? 8e-3 : 1e-6) + 1e-7 ||
                       (a != a && b != b) || a == b);
          }
          CHECK(wrong == 0);
        }
}

}  // namespace
}  // namespace rlx::cpu::test
