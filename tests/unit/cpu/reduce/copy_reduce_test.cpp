// Reductions, gather and strided copies of every instruction set, and the choice of instruction sets.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "rlx/backends/cpu/reduce/typed_reduce_kernels.h"
#include "rlx/error.h"
#include "rlx/tensor/tensor.h"
#include "rlx/tensor/visit.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

TEST_CASE("reductions over any axis") {
  struct Shape {
    std::int64_t outer, r, inner;
  };
  const Shape shapes[] = {{1, 1, 1},      {3, 7, 1},    {1, 100, 5},   {4, 33, 17},    {2, 5, 130},
                          {1, 300000, 1}, {2, 9000, 3}, {100, 384, 1}, {3, 600, 64},   {5, 0, 4},
                          {7, 0, 1},      {1, 7, 1500}, {2, 514, 300}, {1, 1030, 1024}};
  for (const KernelTable* t : tables()) {
    for (const Shape& s : shapes) {
      for (const ReduceKind kind :
           {ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod}) {
        Buffer x(s.outer * s.r * s.inner), y(s.outer * s.inner, 9.0F);
        randomize(x, 3, kind == ReduceKind::Prod ? 0.99F : -1.0F, kind == ReduceKind::Prod ? 1.01F : 2.0F);
        ReduceF32 r;
        r.kind = kind, r.outer = s.outer, r.r = s.r, r.inner = s.inner, r.x = x.data(), r.y = y.data();
        const ReducePlan plan = t->reduce_plan_f32(r);
        Buffer partials(plan.partial_floats);
        for (std::int64_t c = plan.chunks - 1; c >= 0; --c) t->reduce_f32(r, plan, c, partials.data());
        if (plan.splits > 1) t->reduce_finish_f32(r, plan, partials.data());
        CHECK(y.intact());
        CHECK(partials.intact());
        CAPTURE(isa_name(t->isa));
        CAPTURE(s.r);
        CAPTURE(s.inner);
        CAPTURE(static_cast<int>(kind));
        for (std::int64_t o = 0; o < s.outer; ++o) {
          for (std::int64_t j = 0; j < s.inner; ++j) {
            double sum = 0, prod = 1, lo = INFINITY, hi = -INFINITY;
            for (std::int64_t i = 0; i < s.r; ++i) {
              const auto v = static_cast<double>(x[(o * s.r + i) * s.inner + j]);
              sum += v, prod *= v, lo = std::min(lo, v), hi = std::max(hi, v);
            }
            const double want = kind == ReduceKind::Sum    ? sum
                                : kind == ReduceKind::Mean ? sum / static_cast<double>(s.r)
                                : kind == ReduceKind::Max  ? hi
                                : kind == ReduceKind::Min  ? lo
                                                           : prod;
            const float got = y[o * s.inner + j];
            if (std::isnan(want)) {
              CHECK(std::isnan(got));
            } else if (std::isinf(want)) {
              CHECK(got == static_cast<float>(want));
            } else {
              CHECK(static_cast<double>(got) == doctest::Approx(want).epsilon(2e-5));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("reductions: a column has the same bits in pieces of rows of any width") {
  constexpr std::int64_t kRows = 1031, kColumns = 1100;
  Buffer x(kRows * kColumns);
  randomize(x, 5, -1.0F, 1.0F);
  for (const KernelTable* t : tables())
    for (const ReduceKind kind : {ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max}) {
      CAPTURE(isa_name(t->isa));
      Buffer wide(kColumns, 9.0F), narrow(kColumns, 9.0F);
      ReduceF32 r;
      r.kind = kind, r.outer = 1, r.r = kRows, r.inner = kColumns, r.x = x.data();
      ReducePlan plan = t->reduce_plan_f32(r);
      CHECK(plan.inner_per_chunk > 256);
      r.y = wide.data();
      for (std::int64_t c = 0; c < plan.chunks; ++c) t->reduce_f32(r, plan, c, nullptr);
      plan.inner_per_chunk = 7, plan.chunks = plan.inner_chunks = (kColumns + 6) / 7;
      r.y = narrow.data();
      for (std::int64_t c = 0; c < plan.chunks; ++c) t->reduce_f32(r, plan, c, nullptr);
      CHECK(std::memcmp(wide.data(), narrow.data(), kColumns * sizeof(float)) == 0);
    }
}

TEST_CASE("reductions: NaN in any place wins, long sums keep their accuracy") {
  for (const KernelTable* t : tables()) {
    for (const std::int64_t inner : {1, 20}) {
      for (const std::int64_t at : {0, 1, 17, 99, 130}) {
        Buffer x(131 * inner), y(inner);
        randomize(x, 1);
        x[at * inner] = kNan;
        for (const ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod}) {
          ReduceF32 r;
          r.kind = kind, r.outer = 1, r.r = 131, r.inner = inner, r.x = x.data(), r.y = y.data();
          const ReducePlan plan = t->reduce_plan_f32(r);
          for (std::int64_t c = 0; c < plan.chunks; ++c) t->reduce_f32(r, plan, c, nullptr);
          CHECK(std::isnan(y[0]));
          if (inner > 1) CHECK_FALSE(std::isnan(y[1]));
        }
      }
    }
    Buffer ones(20 << 20, 1.0F), y(1);
    ReduceF32 r;
    r.outer = 1, r.r = ones.size(), r.inner = 1, r.x = ones.data(), r.y = y.data();
    const ReducePlan plan = t->reduce_plan_f32(r);
    Buffer partials(plan.partial_floats);
    for (std::int64_t c = 0; c < plan.chunks; ++c) t->reduce_f32(r, plan, c, partials.data());
    t->reduce_finish_f32(r, plan, partials.data());
    CHECK(y[0] == 20.0F * 1024 * 1024);  // a running F32 sum would stop at 2^24
  }
}

TEST_CASE("strided copy: transposes, slices, broadcasts of all element sizes") {
  for (const KernelTable* t : tables()) {
    for (const int bytes : {1, 2, 4, 8, 16}) {
      for (const std::int64_t d2 : {1, 3, 16, 37, 300}) {
        const std::int64_t d[3] = {5, 34, d2};
        const std::int64_t n = d[0] * d[1] * d[2];
        std::vector<unsigned char> x(static_cast<std::size_t>((n + 7) * bytes)),
            y(static_cast<std::size_t>(n * bytes + 16));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<unsigned char>(i * 131 + i / 251);
        for (int form = 0; form < 5; ++form) {
          // strides of x per axis of the (contiguous) result
          std::int64_t xs[3] = {d[1] * d[2], d[2], 1};
          if (form == 1) xs[0] = 1, xs[1] = d[0] * d[2], xs[2] = d[0];  // axes permuted
          if (form == 2) xs[0] = 1, xs[1] = d[0], xs[2] = d[0] * d[1];  // reversed
          if (form == 3) xs[1] = 0;
          if (form == 4) xs[2] = 0;
          std::fill(y.begin(), y.end(), static_cast<unsigned char>(0xee));
          StridedCopy c;
          c.rank = 3, c.element_bytes = bytes;
          for (int i = 0; i < 3; ++i) c.dims[i] = d[i], c.x_strides[i] = xs[i];
          c.y_strides[0] = d[1] * d[2], c.y_strides[1] = d[2], c.y_strides[2] = 1;
          copy_prepare(c);
          for (std::int64_t k = c.chunks - 1; k >= 0; --k) t->strided_copy(c, x.data(), y.data(), k);
          bool same = true;
          for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t at = i / (d[1] * d[2]) * xs[0] + i / d[2] % d[1] * xs[1] + i % d[2] * xs[2];
            same = same && std::memcmp(&y[static_cast<std::size_t>(i * bytes)],
                                       &x[static_cast<std::size_t>(at * bytes)], static_cast<std::size_t>(bytes)) == 0;
          }
          CAPTURE(bytes);
          CAPTURE(d2);
          CAPTURE(form);
          CHECK(same);
          CHECK(y[static_cast<std::size_t>(n * bytes)] == 0xee);
        }
      }
    }
    // concatenation: two sources into strided rows; a large copy past the caches
    Buffer a(6), b(9), y(15);
    std::iota(a.data(), a.data() + 6, 0.0F);
    std::iota(b.data(), b.data() + 9, 100.0F);
    for (int part = 0; part < 2; ++part) {
      StridedCopy c;
      const std::int64_t w = part == 0 ? 2 : 3;
      c.rank = 2, c.dims[0] = 3, c.dims[1] = w, c.x_strides[0] = w, c.x_strides[1] = 1, c.y_strides[0] = 5,
      c.y_strides[1] = 1;
      copy_prepare(c);
      for (std::int64_t k = 0; k < c.chunks; ++k)
        t->strided_copy(c, part == 0 ? a.data() : b.data(), y.data() + 2 * part, k);
    }
    const float want[] = {0, 1, 100, 101, 102, 2, 3, 103, 104, 105, 4, 5, 106, 107, 108};
    CHECK(std::memcmp(y.data(), want, sizeof want) == 0);
    Buffer big((20 << 20) / 4 + 3), copy(big.size());
    randomize(big, 1);
    StridedCopy c;
    c.rank = 1, c.dims[0] = big.size() - 1, c.x_strides[0] = c.y_strides[0] = 1;
    copy_prepare(c);
    CHECK(c.stream);
    for (std::int64_t k = 0; k < c.chunks; ++k) t->strided_copy(c, big.data() + 1, copy.data() + 1, k);
    CHECK(std::memcmp(big.data() + 1, copy.data() + 1, static_cast<std::size_t>(big.size() - 1) * 4) == 0);
    CHECK(copy.intact());
  }
  StridedCopy bad;
  bad.element_bytes = 3;
  CHECK_THROWS_AS(copy_prepare(bad), Error);
}

TEST_CASE("instruction sets: names, the best one, refusals") {
  const Isa best = best_isa();
  CHECK(isa_supported(best));
  CHECK(parse_isa("best") == best);
  CHECK(parse_isa(isa_name(best)) == best);
  CHECK_THROWS_WITH_AS(parse_isa("avx51"), doctest::Contains("avx512"), Error);
  for (const Isa isa : {Isa::Generic, Isa::Sse4, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (isa_supported(isa)) {
      CHECK(kernels_for(isa).isa == isa);
    } else {
      CHECK_THROWS_AS(kernels_for(isa), Error);
      // The error says whether the build or the machine lacks the instruction set.
      CHECK_THROWS_WITH_AS(parse_isa(isa_name(isa)), doctest::Contains("kernels"), Error);
      if (isa_built(isa)) CHECK_THROWS_WITH_AS(kernels_for(isa), doctest::Contains("this machine cannot run"), Error);
    }
  }
}

TEST_CASE("rows_per_chunk: bounded by the rows, coarse for cheap rows") {
  CHECK(rows_per_chunk(100, 384, 0.1, 1) == 100);
  CHECK(rows_per_chunk(4, 8, 0.1, 8) == 4);
  CHECK(rows_per_chunk(100000, 384, 0.5, 2) == 12500);
  CHECK(rows_per_chunk(0, 384, 0.5, 2) == 1);
}

TEST_CASE("wide reductions: every dtype, kind and layout, NaN among them") {
  struct Extents {
    std::int64_t outer, r, inner;
  };
  const Extents extents[] = {{1, 1, 1},    {3, 7, 1}, {2, 5, 300}, {1, 9000, 1},
                             {2, 1300, 3}, {5, 0, 4}, {7, 0, 1},   {2, 64, 70}};
  for (const KernelTable* t : tables())
    for (const DType type : {DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8, DType::I16, DType::U16,
                             DType::I32, DType::U32, DType::I64, DType::U64})
      for (const Extents& e : extents)
        for (const ReduceKind kind :
             {ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod}) {
          if (kind == ReduceKind::Mean && (is_int(type) || e.r == 0)) continue;
          CAPTURE(isa_name(t->isa));
          CAPTURE(dtype_name(type));
          CAPTURE(e.r);
          CAPTURE(e.inner);
          CAPTURE(static_cast<int>(kind));
          Tensor x = Tensor::zeros(Shape({e.outer * e.r * e.inner}, type));
          for (std::int64_t i = 0; i < x.num_elements(); ++i) {
            // Exact in every order: sums of small integers, products of ones and a few twos.
            const double v = kind == ReduceKind::Prod ? (i % 977 == 0 ? 2.0 : 1.0)
                             : type == DType::BF16    ? static_cast<double>(i % 3) - 1
                                                   : static_cast<double>((i * 7) % 5) - (is_unsigned_int(type) ? 0 : 2);
            store_element(x.mutable_data(), type, i, v);
          }
          const bool with_nan = is_float(type) && kind != ReduceKind::Prod && e.r > 3;
          if (with_nan) store_element(x.mutable_data(), type, (e.r / 2) * e.inner, std::nan(""));
          Tensor y = Tensor::zeros(Shape({e.outer * e.inner}, type));
          TypedReduce g;
          g.kind = kind, g.dtype = type, g.outer = e.outer, g.r = e.r, g.inner = e.inner;
          g.x = x.data(), g.y = y.mutable_data();
          for (std::int64_t o = 0; o < e.outer; ++o)
            for (std::int64_t col = 0; col < e.inner; col += kReduceColumns)
              typed_reduce_kernels(t->isa).run(g, o, col, std::min(kReduceColumns, e.inner - col));
          std::int64_t wrong = 0;
          for (std::int64_t o = 0; o < e.outer; ++o)
            for (std::int64_t j = 0; j < e.inner; ++j) {
              double r = kind == ReduceKind::Prod  ? 1
                         : kind == ReduceKind::Max ? -kInf
                         : kind == ReduceKind::Min ? kInf
                                                   : 0;
              for (std::int64_t i = 0; i < e.r; ++i) {
                const double v = load_element<double>(x.data(), type, (o * e.r + i) * e.inner + j);
                if (kind == ReduceKind::Max || kind == ReduceKind::Min)
                  r = std::isnan(r) ? r : std::isnan(v) ? v : kind == ReduceKind::Max ? std::max(r, v) : std::min(r, v);
                else
                  r = kind == ReduceKind::Prod ? r * v : r + v;
              }
              if (kind == ReduceKind::Mean) r /= static_cast<double>(e.r);
              if (e.r == 0 && is_int(type) && (kind == ReduceKind::Max || kind == ReduceKind::Min)) continue;
              const double got = load_element<double>(y.data(), type, o * e.inner + j);
              const double bound = kind == ReduceKind::Mean ? std::fabs(r) * (type == DType::BF16 ? 4e-3 : 1e-3) : 0;
              if (is_int(type)) {
                Tensor wrapped = Tensor::zeros(Shape({1}, type));
                store_element(wrapped.mutable_data(), type, 0, static_cast<std::int64_t>(r));
                wrong += wrapped.at_i64(0) != y.at_i64(o * e.inner + j);
              } else if (std::isnan(r)) {
                wrong += !std::isnan(got);
              } else if (std::isinf(r)) {
                wrong += got != r;
              } else {
                wrong += !(std::fabs(got - r) <= bound + (dtype_bits(type) == 16 ? std::fabs(r) * 4e-3 : 0));
              }
            }
          CHECK(wrong == 0);
        }
}

TEST_CASE("wide reductions: extrema of halves, every bit pattern with others") {
  constexpr std::int64_t kAll = 65536;
  for (const DType type : {DType::F16, DType::BF16}) {
    // Each pattern is paired with one of nine values: zeros, infinities, NaN and numbers of both signs.
    const std::uint16_t infinity = type == DType::BF16 ? 0x7f80 : 0x7c00;
    const std::uint16_t others[] = {
        0, 0x8000, 0x0001, 0x8001, 0x3c05, 0xbc05, infinity, static_cast<std::uint16_t>(infinity | 0x8000), 0xffff};
    std::vector<std::uint16_t> x(2 * kAll), lines(2 * kAll), y(kAll), z(kAll);
    for (std::size_t i = 0; i < kAll; ++i) {
      lines[2 * i] = x[i] = static_cast<std::uint16_t>(i);
      lines[2 * i + 1] = x[kAll + i] = others[i * 7 % 9];
    }
    const auto value = [type](const std::vector<std::uint16_t>& of, std::int64_t i) {
      return load_element<double>(reinterpret_cast<const std::byte*>(of.data()), type, i);
    };
    for (const KernelTable* t : tables())
      for (const ReduceKind kind : {ReduceKind::Max, ReduceKind::Min}) {
        CAPTURE(isa_name(t->isa));
        CAPTURE(dtype_name(type));
        TypedReduce g;
        g.kind = kind, g.dtype = type, g.outer = 1, g.r = 2, g.inner = kAll, g.x = x.data(), g.y = y.data();
        for (std::int64_t col = 0; col < kAll; col += kReduceColumns)
          typed_reduce_kernels(t->isa).run(g, 0, col, kReduceColumns);
        g.outer = kAll, g.inner = 1, g.x = lines.data(), g.y = z.data();
        for (std::int64_t o = 0; o < kAll; ++o) typed_reduce_kernels(t->isa).run(g, o, 0, 1);
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < kAll; ++i) {
          const double a = value(x, i), b = value(x, kAll + i);
          const double right = std::isnan(a) || std::isnan(b) ? std::nan("")
                               : kind == ReduceKind::Max      ? std::max(a, b)
                                                              : std::min(a, b);
          for (const auto* r : {&y, &z}) {
            const double got = value(*r, i);
            wrong += !(got == right || (std::isnan(got) && std::isnan(right)));
          }
        }
        CHECK(wrong == 0);
      }
  }
}

}  // namespace
}  // namespace rlx::cpu::test
