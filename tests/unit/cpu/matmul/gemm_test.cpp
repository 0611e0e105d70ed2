// Packed and strided GEMM of every instruction set against plain loops in double.
#include "tests/support/needs.h"
#include "tests/unit/cpu/matmul/packed_matmul.h"

namespace rlx::cpu::test {
namespace {

double activate(Act act, double x) {
  switch (act) {
    case Act::None: return x;
    case Act::Relu: return std::isnan(x) ? x : std::max(x, 0.0);
    case Act::Gelu: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Act::GeluTanh: return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Act::Silu: return x / (1 + std::exp(-x));
    case Act::Tanh: return std::tanh(x);
    case Act::Sigmoid: return 1 / (1 + std::exp(-x));
  }
  return x;
}

struct GemmCase {
  std::int64_t m, n, k;
};

void check_epilogue(const Buffer& c, std::int64_t ldc, const GemmCase& s, const std::vector<double>& product,
                    const GemmEpilogue& e) {
  Worst worst;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double v = e.alpha * product[static_cast<std::size_t>(i * s.n + j)];
      if (e.bias != nullptr) v += e.bias[j];
      if (e.residual != nullptr && !e.residual_after_act) v += e.residual[i * e.ld_residual + j];
      v = activate(e.act, v);
      if (e.mul != nullptr) v *= e.mul[i * e.ld_mul + j];
      if (e.residual != nullptr && e.residual_after_act) v += e.residual[i * e.ld_residual + j];
      worst.add(static_cast<double>(c[i * ldc + j]), v);
    }
  }
  CHECK(worst.value() < 2e-6 * std::sqrt(static_cast<double>(s.k) + 1) + 2e-6);
}

std::vector<double> product_of(const Buffer& a, std::int64_t lda, const Buffer& b, std::int64_t ks, std::int64_t ns,
                               const GemmCase& s) {
  std::vector<double> out(static_cast<std::size_t>(s.m * s.n));
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < s.k; ++k)
        sum += static_cast<double>(a[i * lda + k]) * static_cast<double>(b[k * ks + j * ns]);
      out[static_cast<std::size_t>(i * s.n + j)] = sum;
    }
  }
  return out;
}

TEST_CASE("packed gemm: sizes, tails, leading dimensions, plans") {
  const std::int64_t sizes_m[] = {1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 31, 33, 65, 130};
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    unsigned seed = 1;
    for (const std::int64_t m : sizes_m) {
      for (const std::int64_t n : {1, 5, 16, 17, 31, 32, 33, 48, 100}) {
        for (const std::int64_t k : {0, 1, 3, 64, 77}) {
          const GemmCase s{m, n, k};
          const std::int64_t lda = k + 3, ldc = n + 5;
          Buffer a(m * lda), b(k * n), c(m * ldc, 7.0F), packed(t->packed_size_f32(k, n), kNan);
          randomize(a, seed++);
          randomize(b, seed++);
          t->pack_b_f32(b.data(), n, 1, k, n, 0, n, packed.data());
          REQUIRE(packed.intact());
          MatmulOperands g = packed_b_operands(m, n, k);
          g.a = a.data(), g.a_m_stride = lda, g.b = packed.data(), g.c = c.data(), g.ldc = ldc;
          run_packed(*t, g, 1 + static_cast<int>(seed % 3));
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(k);
          check_epilogue(c, ldc, s, product_of(a, lda, b, n, 1, s), g.epilogue);
          CHECK(c.intact());
          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = n; j < ldc; ++j) CHECK(c[i * ldc + j] == 7.0F);
          }
        }
      }
    }
  }
}

TEST_CASE("packed gemm: every epilogue") {
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    const GemmCase s{13, 53, 40};
    Buffer a(s.m * s.k), b(s.k * s.n), bias(s.n), residual(s.m * 60), mul(s.m * 60),
        packed(t->packed_size_f32(s.k, s.n));
    randomize(a, 1);
    randomize(b, 2);
    randomize(bias, 3);
    randomize(residual, 4);
    randomize(mul, 5);
    t->pack_b_f32(b.data(), s.n, 1, s.k, s.n, 0, s.n, packed.data());
    const auto product = product_of(a, s.k, b, s.n, 1, s);
    for (int bits = 0; bits < 32; ++bits) {
      for (const Act act : {Act::None, Act::Relu, Act::Gelu, Act::GeluTanh, Act::Silu, Act::Tanh, Act::Sigmoid}) {
        Buffer c(s.m * 60);
        MatmulOperands g = packed_b_operands(s.m, s.n, s.k);
        g.a = a.data(), g.b = packed.data(), g.c = c.data(), g.ldc = 60;
        g.epilogue.act = act;
        g.epilogue.alpha = (bits & 1) != 0 ? 0.37F : 1.0F;
        if ((bits & 2) != 0) g.epilogue.bias = bias.data();
        if ((bits & 4) != 0) g.epilogue.residual = residual.data(), g.epilogue.ld_residual = 60;
        if ((bits & 8) != 0) g.epilogue.mul = mul.data(), g.epilogue.ld_mul = 60;
        g.epilogue.residual_after_act = (bits & 16) != 0;
        run_packed(*t, g, 2);
        CAPTURE(bits);
        CAPTURE(static_cast<int>(act));
        check_epilogue(c, 60, s, product, g.epilogue);
        CHECK(c.intact());
      }
    }
  }
}

TEST_CASE("packed gemm: residual read from C itself, NaN travels") {
  for (const KernelTable* t : tables()) {
    const GemmCase s{9, 40, 17};
    Buffer a(s.m * s.k), b(s.k * s.n), c(s.m * s.n), before(s.m * s.n), packed(t->packed_size_f32(s.k, s.n));
    randomize(a, 1);
    randomize(b, 2);
    randomize(c, 3);
    a[4 * s.k + 2] = kNan;
    for (std::int64_t i = 0; i < c.size(); ++i) before[i] = c[i];
    t->pack_b_f32(b.data(), s.n, 1, s.k, s.n, 0, s.n, packed.data());
    MatmulOperands g = packed_b_operands(s.m, s.n, s.k);
    g.a = a.data(), g.b = packed.data(), g.c = c.data();
    g.epilogue.residual = c.data(), g.epilogue.ld_residual = s.n, g.epilogue.act = Act::Relu;
    run_packed(*t, g, 1);
    const auto product = product_of(a, s.k, b, s.n, 1, s);
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        const float got = c[i * s.n + j];
        if (i == 4) {
          CHECK(std::isnan(got));
        } else {
          CHECK(got == doctest::Approx(std::max(0.0, product[static_cast<std::size_t>(i * s.n + j)] +
                                                         static_cast<double>(before[i * s.n + j])))
                           .epsilon(1e-4));
        }
      }
    }
  }
}

TEST_CASE("pack_b: any strides and column ranges give the same panels") {
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    const std::int64_t k = 37, n = 101, size = t->packed_size_f32(k, n);
    Buffer b(k * n), transposed(k * n), whole(size, kNan), parts(size, kNan);
    randomize(b, 9);
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t j = 0; j < n; ++j) transposed[j * k + i] = b[i * n + j];
    }
    t->pack_b_f32(b.data(), n, 1, k, n, 0, n, whole.data());
    const std::int64_t cuts[] = {0, 7, 8, 64, 70, 101};
    for (int i = 4; i >= 0; --i) {  // as a PyTorch weight [N, K], in parts, the last one first
      t->pack_b_f32(transposed.data() + cuts[i] * k, 1, k, k, n, cuts[i], cuts[i + 1], parts.data());
    }
    CHECK(std::memcmp(whole.data(), parts.data(), static_cast<std::size_t>(size) * 4) == 0);
    CHECK(parts.intact());
  }
}

TEST_CASE("packed gemm: the result does not depend on the number of threads it is planned for") {
  for (const KernelTable* t : tables()) {
    // Numbers of rows that would leave a last chunk of one row on 16 or 64 threads, and of columns that leave a panel
    // of one vector.
    for (const GemmCase s : {GemmCase{16, 384, 384}, GemmCase{100, 200, 300}, GemmCase{1, 500, 700},
                             GemmCase{129, 40, 64}, GemmCase{1081, 40, 64}, GemmCase{4105, 33, 16}}) {
      Buffer a(s.m * s.k), b(s.k * s.n), first(s.m * s.n), c(s.m * s.n), packed(t->packed_size_f32(s.k, s.n));
      randomize(a, 1);
      randomize(b, 2);
      t->pack_b_f32(b.data(), s.n, 1, s.k, s.n, 0, s.n, packed.data());
      MatmulOperands g = packed_b_operands(s.m, s.n, s.k);
      g.a = a.data(), g.b = packed.data();
      for (const int threads : {1, 2, 7, 16, 64}) {
        Buffer& out = threads == 1 ? first : c;
        g.c = out.data();
        const MatmulPlan plan = plan_matmul(&packed_b_kernel(*t, PackedBType::F32), g, threads);
        CHECK((threads == 1 || plan.chunks > 1 || s.m * s.n * s.k < 1000000));
        run_packed(*t, g, threads);
        if (threads > 1) CHECK(std::memcmp(first.data(), c.data(), static_cast<std::size_t>(s.m * s.n) * 4) == 0);
      }
    }
  }
}

/// An F32 matmul of run-time operands, to be filled in.
MatmulOperands f32_operands(std::int64_t m, std::int64_t n) {
  MatmulOperands p;
  p.m = m, p.n = n, p.ldc = n;
  p.a_type = p.b_type = p.c_type = DType::F32;
  p.num_contracted = 1;
  return p;
}
/// Runs it as the backend does: A is packed first if the plan says so.
void run_strided(const KernelTable& t, const MatmulOperands& p, int threads) {
  const MatmulKernel& kernel = matmul_kernel(t, MatmulSums::F32);
  const MatmulPlan plan = plan_matmul(&kernel, p, threads);
  Buffer scratch(static_cast<std::int64_t>(plan.scratch_bytes / 4), kNan), packed_a(plan.pack_bytes / 4, kNan);
  for (std::int64_t chunk = 0; chunk < plan.pack_chunks; ++chunk) pack_matmul(&kernel, p, plan, chunk, packed_a.data());
  for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk)
    run_matmul(&kernel, p, plan, chunk, packed_a.data(), scratch.data());
  CHECK(scratch.intact());
  CHECK(packed_a.intact());
}

TEST_CASE("strided gemm: the result does not depend on the number of threads it is planned for") {
  for (const KernelTable* t : tables()) {
    for (const std::int64_t m : {1, 9, 18, 257, 265, 385, 513, 521, 1025}) {
      for (const bool ta : {false, true}) {
        const std::int64_t n = 40, k = 33;
        Buffer a(m * k), b(k * n), first(m * n), c(m * n);
        randomize(a, 1);
        randomize(b, 2);
        MatmulOperands g = f32_operands(m, n);
        g.a = a.data(), g.b = b.data();
        g.a_m_stride = ta ? 1 : k;
        g.contracted[0] = {k, ta ? m : 1, n, 0};
        for (const int threads : {1, 2, 3, 16}) {
          g.c = threads == 1 ? first.data() : c.data();
          run_strided(*t, g, threads);
          if (threads > 1) CHECK(std::memcmp(first.data(), c.data(), static_cast<std::size_t>(m * n) * 4) == 0);
        }
      }
    }
  }
}

TEST_CASE("a row of a product has the same bits whatever rows stand beside it, packed or strided, fused or not") {
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    for (const std::int64_t n : {7, 16, 33, 100, 1100}) {
      for (const std::int64_t k : {1, 6, 77, 384}) {
        if (n > 1000 && k > 6) continue;
        const std::int64_t most = 41;
        Buffer a(most * k), b(k * n), turned(n * k), bias(n), residual(most * n), all(most * n), c(most * n),
            packed(t->packed_size_f32(k, n));
        randomize(a, 1);
        randomize(b, 2);
        randomize(bias, 3);
        randomize(residual, 4);
        for (std::int64_t i = 0; i < k * n; ++i) turned[i % n * k + i / n] = b[i];
        t->pack_b_f32(b.data(), n, 1, k, n, 0, n, packed.data());
        const auto run_rows = [&](std::int64_t m, const float* rows, bool fused, float* out) {
          MatmulOperands g = packed_b_operands(m, n, k);
          g.a = rows, g.b = packed.data(), g.c = out;
          if (fused) {
            g.epilogue.bias = bias.data(), g.epilogue.residual = residual.data(), g.epilogue.ld_residual = n;
            g.epilogue.alpha = 0.37F;
          }
          run_packed(*t, g, 1);
        };
        const auto same = [&](const Buffer& x, std::int64_t m) {
          return std::memcmp(x.data(), all.data(), static_cast<std::size_t>(m * n) * 4) == 0;
        };
        run_rows(most, a.data(), false, all.data());
        for (std::int64_t m = 1; m < most; ++m) {
          CAPTURE(n);
          CAPTURE(k);
          CAPTURE(m);
          run_rows(m, a.data(), false, c.data());
          CHECK(same(c, m));
          MatmulOperands g = f32_operands(m, n);
          g.a = a.data(), g.b = b.data(), g.c = c.data(), g.a_m_stride = k;
          g.contracted[0] = {k, 1, n, 0};
          run_strided(*t, g, 2);
          CHECK(same(c, m));
          g.b = turned.data(), g.b_n_stride = k, g.contracted[0] = {k, 1, 1, 0};
          run_strided(*t, g, 2);
          CHECK(same(c, m));
        }
        // Scale, bias and residual in the kernel equal those of separate steps.
        for (const std::int64_t m : {std::int64_t{1}, std::int64_t{3}, most}) {
          run_rows(m, a.data(), true, c.data());
          int apart = 0;
          for (std::int64_t i = 0; i < m * n; ++i) {
            volatile float v = all[i] * 0.37F;  // each is rounded separately
            v = v + bias[i % n];
            v = v + residual[i];
            apart += c[i] == v ? 0 : 1;
          }
          CHECK(apart == 0);
        }
      }
    }
  }
}

TEST_CASE("strided gemm: any strides of both operands, several contracted axes, outer axes, few and many rows") {
  // K is 33, or 3 x 11 with a gap between the parts of one side or of both, or in an order other than in memory.
  enum class Depth { One, GapInA, GapInB, Crossed, Last = Crossed };
  rlx::test::Share share(3);
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    for (const std::int64_t m : {1, 3, 8, 15, 16, 40, 300}) {
      for (const std::int64_t n : {1, 20, 64, 70}) {
        for (int form = 0; form < 4 * (static_cast<int>(Depth::Last) + 1); ++form) {
          if (!share.next()) continue;
          const auto depth = static_cast<Depth>(form / 4);
          if (m == 300 && (n != 70 || depth == Depth::GapInA || depth == Depth::GapInB)) continue;  // chunks of rows
          const bool ta = (form & 1) != 0, tb = (form & 2) != 0;
          // The offset of step q of the contraction, in steps of a side.
          const auto at = [&](std::int64_t q, bool gap) {
            if (depth == Depth::One) return q;
            if (depth == Depth::Crossed) return q / 11 + q % 11 * 3;
            return q / 11 * (gap ? 13 : 11) + q % 11;
          };
          const std::int64_t k = 33, ka = depth == Depth::GapInA ? 39 : k, kb = depth == Depth::GapInB ? 39 : k;
          Buffer a(6 * m * ka), b(3 * kb * n), c(6 * m * n, kNan), residual(6 * m * n);
          randomize(a, 1);
          randomize(b, 2);
          randomize(residual, 3);
          MatmulOperands g = f32_operands(m, n);
          g.a = a.data(), g.b = b.data(), g.c = c.data();
          g.a_m_stride = ta ? 1 : ka, g.b_n_stride = tb ? kb : 1;
          const std::int64_t a_step = ta ? m : 1, b_step = tb ? 1 : n;
          const bool crossed = depth == Depth::Crossed;
          if (depth == Depth::One) {
            g.contracted[0] = {k, a_step, b_step, 0};
          } else {
            g.num_contracted = 2;
            g.contracted[0] = {3, (crossed ? 1 : ka / 3) * a_step, (crossed ? 1 : kb / 3) * b_step, 0};
            g.contracted[1] = {11, (crossed ? 3 : 1) * a_step, (crossed ? 3 : 1) * b_step, 0};
          }
          g.num_outer = 2;
          g.outer[0] = {2, 3 * m * ka, 0, 3 * m * n};  // B is shared along the first outer axis
          g.outer[1] = {3, m * ka, kb * n, m * n};
          g.epilogue.alpha = 0.5F;
          g.epilogue.residual = residual.data();
          g.epilogue_reads_c = true;
          run_strided(*t, g, 3);
          CHECK(c.intact());
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(form);
          std::int64_t wrong = 0;
          for (std::int64_t o = 0; o < 6; ++o) {
            for (std::int64_t i = 0; i < m; ++i) {
              for (std::int64_t j = 0; j < n; ++j) {
                const std::int64_t to = o * m * n + i * n + j;
                double sum = 2.0 * residual[to], terms = std::fabs(sum);
                for (std::int64_t q = 0; q < k; ++q) {
                  const double term =
                      static_cast<double>(a[o * m * ka + i * g.a_m_stride + at(q, ka > k) * a_step]) *
                      static_cast<double>(b[o % 3 * kb * n + at(q, kb > k) * b_step + j * g.b_n_stride]);
                  sum += term;
                  terms += std::fabs(term);
                }
                // Each of the K roundings loses at most eps / 2 of the sum so far.
                wrong += !(std::fabs(0.5 * sum - static_cast<double>(c[to])) <= 0.5 * terms * 1.2e-7 * 8);
              }
            }
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rlx::cpu::test
