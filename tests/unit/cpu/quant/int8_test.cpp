// int8 matmuls of every instruction set and kernel of this machine are exact for all shapes, strides, signs and
// partitions.
#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/backends/cpu/matmul/driver.h"
#include "rlx/backends/cpu/quant/int8_kernels.h"
#include "tests/support/needs.h"

using namespace rlx;
using namespace rlx::cpu;

namespace {

struct ByteCase {
  std::int64_t m, n, k;
  bool a_signed, b_signed, b_transposed;
  std::int64_t batch = 1, splits = 1;  // contracted axes of k / splits and splits
};

std::uint8_t byte_at(std::int64_t i, std::uint32_t seed) {
  const std::uint32_t x = (static_cast<std::uint32_t>(i) + seed) * 2654435761U;
  return static_cast<std::uint8_t>(x % 11 == 0 ? 128 : x % 13 == 0 ? 127 : x % 17 == 0 ? 255 : x >> 24);
}

// Runs the matmul as partitioned for `threads`, and compares every element.
void check_product(const MatmulKernel& kernel, const ByteCase& c, int threads, std::int64_t& compared) {
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  CAPTURE(c.a_signed);
  CAPTURE(c.b_signed);
  CAPTURE(c.b_transposed);
  std::vector<std::uint8_t> a(static_cast<std::size_t>(c.batch * c.m * c.k)),
      b(static_cast<std::size_t>(c.batch * c.n * c.k));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = byte_at(static_cast<std::int64_t>(i), 1);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = byte_at(static_cast<std::int64_t>(i), 77);
  std::vector<std::int32_t> y(static_cast<std::size_t>(c.batch * c.m * c.n), -7);
  MatmulOperands g;
  g.m = c.m, g.n = c.n;
  g.a_type = c.a_signed ? DType::I8 : DType::U8, g.b_type = c.b_signed ? DType::I8 : DType::U8, g.c_type = DType::I32;
  g.a = a.data(), g.b = b.data(), g.c = y.data();
  g.a_m_stride = c.k, g.b_n_stride = c.b_transposed ? c.k : 1, g.ldc = c.n;
  const std::int64_t step = c.b_transposed ? 1 : c.n;
  if (c.splits > 1) {
    g.num_contracted = 2;
    g.contracted[0] = {c.splits, c.k / c.splits, c.k / c.splits * step, 0};
    g.contracted[1] = {c.k / c.splits, 1, step, 0};
  } else {
    g.num_contracted = 1;
    g.contracted[0] = {c.k, 1, step, 0};
  }
  if (c.batch > 1) g.num_outer = 1, g.outer[0] = {c.batch, c.m * c.k, c.n * c.k, c.m * c.n};
  const MatmulPlan plan = plan_matmul(&kernel, g, threads);
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> packed(static_cast<std::size_t>(plan.pack_bytes) / 64 + 1), scratch(plan.scratch_bytes / 64 + 1);
  for (std::int64_t i = 0; i < plan.pack_chunks; ++i) pack_matmul(&kernel, g, plan, i, packed.data());
  for (std::int64_t i = plan.chunks - 1; i >= 0; --i) run_matmul(&kernel, g, plan, i, packed.data(), scratch.data());
  const auto number = [](std::uint8_t v, bool is_signed) {
    return is_signed ? static_cast<std::int64_t>(static_cast<std::int8_t>(v)) : static_cast<std::int64_t>(v);
  };
  for (std::int64_t p = 0; p < c.batch; ++p)
    for (std::int64_t i = 0; i < c.m; ++i)
      for (std::int64_t j = 0; j < c.n; ++j) {
        std::int64_t sum = 0;
        for (std::int64_t k = 0; k < c.k; ++k)
          sum += number(a[static_cast<std::size_t>((p * c.m + i) * c.k + k)], c.a_signed) *
                 number(b[static_cast<std::size_t>(p * c.n * c.k + (c.b_transposed ? j * c.k + k : k * c.n + j))],
                        c.b_signed);
        const std::int32_t got = y[static_cast<std::size_t>((p * c.m + i) * c.n + j)];
        ++compared;
        if (got != sum) {
          CAPTURE(i);
          CAPTURE(j);
          REQUIRE(got == sum);
        }
      }
}

}  // namespace

TEST_CASE("products of bytes are exact by every instruction set") {
  std::int64_t compared = 0;
  rlx::test::Share share(3);
  for (const Isa isa : {Isa::Generic, Isa::Sse4, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (!isa_supported(isa)) continue;
    for (const Int8Matmul way : int8_matmul(isa)) {
      CAPTURE(isa_name(isa));
      CAPTURE(static_cast<int>(way));
      const MatmulKernel& kernel = byte_kernel(isa, way);
      for (const bool a_signed : {true, false})
        for (const bool b_signed : {true, false})
          for (const bool transposed : {true, false})
            for (const ByteCase& c : {ByteCase{1, 1, 1, a_signed, b_signed, transposed},
                                      ByteCase{1, 33, 67, a_signed, b_signed, transposed},
                                      ByteCase{3, 600, 130, a_signed, b_signed, transposed},
                                      ByteCase{4, 17, 64, a_signed, b_signed, transposed},
                                      ByteCase{5, 40, 200, a_signed, b_signed, transposed},
                                      ByteCase{17, 31, 63, a_signed, b_signed, transposed, 2},
                                      ByteCase{33, 16, 129, a_signed, b_signed, transposed},
                                      ByteCase{70, 65, 96, a_signed, b_signed, transposed, 1, 3},
                                      ByteCase{2, 5, 30, a_signed, b_signed, transposed, 3, 5},
                                      ByteCase{2, 130, 259, a_signed, b_signed, transposed},
                                      ByteCase{6, 70, 65, a_signed, b_signed, transposed},
                                      ByteCase{8, 530, 74, a_signed, b_signed, transposed},
                                      ByteCase{40, 35, 1100, a_signed, b_signed, transposed},
                                      ByteCase{16, 48, 0, a_signed, b_signed, transposed}})
              for (const int threads : {1, 3, kFinestTiling})
                if (share.next()) check_product(kernel, c, threads, compared);
    }
  }
  CHECK(compared > 20000);  // of a fourth of the cases, or of an eighth under the sanitizers
}
