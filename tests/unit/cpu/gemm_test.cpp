// Packed and strided GEMM of every instruction set against a double loop.
#include "tests/unit/cpu/kernel_test.h"

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

struct Case {
  std::int64_t m, n, k;
};

void check_epilogue(const Buffer& c, std::int64_t ldc, const Case& s, const std::vector<double>& product,
                    const GemmEpilogue& e) {
  double worst = 0;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double v = e.alpha * product[static_cast<std::size_t>(i * s.n + j)];
      if (e.bias != nullptr) v += e.bias[j];
      if (e.residual != nullptr && !e.residual_after_act) v += e.residual[i * e.ld_residual + j];
      v = activate(e.act, v);
      if (e.mul != nullptr) v *= e.mul[i * e.ld_mul + j];
      if (e.residual != nullptr && e.residual_after_act) v += e.residual[i * e.ld_residual + j];
      worst = std::max(worst, std::fabs(v - static_cast<double>(c[i * ldc + j])));
    }
  }
  CHECK(worst < 2e-6 * std::sqrt(static_cast<double>(s.k) + 1) + 2e-6);
}

std::vector<double> product_of(const Buffer& a, std::int64_t lda, const Buffer& b, std::int64_t ks, std::int64_t ns,
                               const Case& s) {
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
          const Case s{m, n, k};
          const std::int64_t lda = k + 3, ldc = n + 5;
          Buffer a(m * lda), b(k * n), c(m * ldc, 7.0F), packed(t->packed_size_f32(k, n), kNan);
          randomize(a, seed++);
          randomize(b, seed++);
          t->pack_b_f32(b.data(), n, 1, k, n, 0, n, packed.data());
          REQUIRE(packed.intact());
          GemmF32 g;
          g.m = m, g.n = n, g.k = k, g.a = a.data(), g.lda = lda, g.b_packed = packed.data(), g.c = c.data(),
          g.ldc = ldc;
          const GemmPlan plan = t->gemm_plan_f32(m, n, k, 1 + static_cast<int>(seed % 3));
          for (std::int64_t chunk = plan.chunks - 1; chunk >= 0; --chunk) t->gemm_f32(g, plan, chunk);
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
    const Case s{13, 53, 40};
    Buffer a(s.m * s.k), b(s.k * s.n), bias(s.n), residual(s.m * 60), mul(s.m * 61),
        packed(t->packed_size_f32(s.k, s.n));
    randomize(a, 1);
    randomize(b, 2);
    randomize(bias, 3);
    randomize(residual, 4);
    randomize(mul, 5);
    t->pack_b_f32(b.data(), s.n, 1, s.k, s.n, 0, s.n, packed.data());
    const auto product = product_of(a, s.k, b, s.n, 1, s);
    const GemmPlan plan = t->gemm_plan_f32(s.m, s.n, s.k, 2);
    for (int bits = 0; bits < 32; ++bits) {
      for (const Act act : {Act::None, Act::Relu, Act::Gelu, Act::GeluTanh, Act::Silu, Act::Tanh, Act::Sigmoid}) {
        Buffer c(s.m * s.n);
        GemmF32 g;
        g.m = s.m, g.n = s.n, g.k = s.k, g.a = a.data(), g.lda = s.k, g.b_packed = packed.data(), g.c = c.data(),
        g.ldc = s.n;
        g.epilogue.act = act;
        g.epilogue.alpha = (bits & 1) != 0 ? 0.37F : 1.0F;
        if ((bits & 2) != 0) g.epilogue.bias = bias.data();
        if ((bits & 4) != 0) g.epilogue.residual = residual.data(), g.epilogue.ld_residual = 60;
        if ((bits & 8) != 0) g.epilogue.mul = mul.data(), g.epilogue.ld_mul = 61;
        g.epilogue.residual_after_act = (bits & 16) != 0;
        for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk) t->gemm_f32(g, plan, chunk);
        CAPTURE(bits);
        CAPTURE(static_cast<int>(act));
        check_epilogue(c, s.n, s, product, g.epilogue);
        CHECK(c.intact());
      }
    }
  }
}

TEST_CASE("packed gemm: residual read from C itself, NaN travels") {
  for (const KernelTable* t : tables()) {
    const Case s{9, 40, 17};
    Buffer a(s.m * s.k), b(s.k * s.n), c(s.m * s.n), before(s.m * s.n), packed(t->packed_size_f32(s.k, s.n));
    randomize(a, 1);
    randomize(b, 2);
    randomize(c, 3);
    a[4 * s.k + 2] = kNan;
    for (std::int64_t i = 0; i < c.size(); ++i) before[i] = c[i];
    t->pack_b_f32(b.data(), s.n, 1, s.k, s.n, 0, s.n, packed.data());
    GemmF32 g;
    g.m = s.m, g.n = s.n, g.k = s.k, g.a = a.data(), g.lda = s.k, g.b_packed = packed.data(), g.c = c.data(),
    g.ldc = s.n;
    g.epilogue.residual = c.data(), g.epilogue.ld_residual = s.n, g.epilogue.act = Act::Relu;
    const GemmPlan plan = t->gemm_plan_f32(s.m, s.n, s.k, 1);
    for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk) t->gemm_f32(g, plan, chunk);
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
    for (int i = 4; i >= 0; --i) {  // as a PyTorch weight [N, K], in pieces, last first
      t->pack_b_f32(transposed.data() + cuts[i] * k, 1, k, k, n, cuts[i], cuts[i + 1], parts.data());
    }
    CHECK(std::memcmp(whole.data(), parts.data(), static_cast<std::size_t>(size) * 4) == 0);
    CHECK(parts.intact());
  }
}

TEST_CASE("packed gemm: the result does not depend on the number of threads it is planned for") {
  for (const KernelTable* t : tables()) {
    // Rows that would leave a last chunk of one row on 16 or 64 threads, columns that leave a panel of one vector.
    for (const Case s : {Case{16, 384, 384}, Case{100, 200, 300}, Case{1, 500, 700}, Case{129, 40, 64},
                         Case{1081, 40, 64}, Case{4105, 33, 16}}) {
      Buffer a(s.m * s.k), b(s.k * s.n), first(s.m * s.n), c(s.m * s.n), packed(t->packed_size_f32(s.k, s.n));
      randomize(a, 1);
      randomize(b, 2);
      t->pack_b_f32(b.data(), s.n, 1, s.k, s.n, 0, s.n, packed.data());
      GemmF32 g;
      g.m = s.m, g.n = s.n, g.k = s.k, g.a = a.data(), g.lda = s.k, g.b_packed = packed.data(), g.ldc = s.n;
      for (const int threads : {1, 2, 7, 16, 64}) {
        Buffer& out = threads == 1 ? first : c;
        g.c = out.data();
        const GemmPlan plan = t->gemm_plan_f32(s.m, s.n, s.k, threads);
        CHECK((threads == 1 || plan.chunks > 1 || s.m * s.n * s.k < 1000000));
        for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk) t->gemm_f32(g, plan, chunk);
        if (threads > 1) CHECK(std::memcmp(first.data(), c.data(), static_cast<std::size_t>(s.m * s.n) * 4) == 0);
      }
    }
  }
}

TEST_CASE("strided gemm: the result does not depend on the number of threads it is planned for") {
  for (const KernelTable* t : tables()) {
    for (const std::int64_t m : {257, 265, 385, 513, 521, 1025}) {
      for (const bool ta : {false, true}) {
        const std::int64_t n = 40, k = 33;
        Buffer a(m * k), b(k * n), first(m * n), c(m * n);
        randomize(a, 1);
        randomize(b, 2);
        GemmStridedF32 g;
        g.m = m, g.n = n, g.k = k, g.a = a.data(), g.b = b.data(), g.ldc = n;
        g.a_m_stride = ta ? 1 : k, g.a_k_stride = ta ? m : 1;
        g.b_k_stride = n, g.b_n_stride = 1;
        for (const int threads : {1, 2, 3, 16}) {
          g.c = threads == 1 ? first.data() : c.data();
          const GemmPlan plan = t->gemm_strided_plan_f32(g, threads);
          Buffer scratch(static_cast<std::int64_t>(plan.scratch_bytes / 4));
          for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk) t->gemm_strided_f32(g, plan, chunk, scratch.data());
          CHECK(scratch.intact());
          if (threads > 1) CHECK(std::memcmp(first.data(), c.data(), static_cast<std::size_t>(m * n) * 4) == 0);
        }
      }
    }
  }
}

TEST_CASE("strided gemm: transposed operands, batches, few and many rows") {
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    for (const std::int64_t m : {1, 3, 8, 15, 16, 40, 300}) {
      for (const std::int64_t n : {1, 20, 64, 70}) {
        for (int form = 0; form < 4; ++form) {
          const std::int64_t k = 33;
          const bool ta = (form & 1) != 0, tb = (form & 2) != 0;
          const std::int64_t batches[4] = {2, 1, 3, 1};
          Buffer a(6 * m * k), b(3 * k * n), c(6 * m * n);
          randomize(a, 1);
          randomize(b, 2);
          GemmStridedF32 g;
          g.m = m, g.n = n, g.k = k, g.a = a.data(), g.b = b.data(), g.c = c.data(), g.ldc = n;
          g.a_m_stride = ta ? 1 : k, g.a_k_stride = ta ? m : 1;
          g.b_k_stride = tb ? 1 : n, g.b_n_stride = tb ? k : 1;
          for (int i = 0; i < 4; ++i) g.batch[i] = batches[i];
          g.a_batch_stride[0] = 3 * m * k, g.a_batch_stride[2] = m * k;
          g.b_batch_stride[0] = 0, g.b_batch_stride[2] = k * n;  // B is shared over the first batch axis
          g.c_batch_stride[0] = 3 * m * n, g.c_batch_stride[2] = m * n;
          g.epilogue.alpha = 0.5F;
          const GemmPlan plan = t->gemm_strided_plan_f32(g, 3);
          Buffer scratch(static_cast<std::int64_t>(plan.scratch_bytes / 4));
          for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk)
            t->gemm_strided_f32(g, plan, chunk, scratch.data());
          CHECK(scratch.intact());
          CHECK(c.intact());
          double worst = 0;
          for (std::int64_t o = 0; o < 2; ++o) {
            for (std::int64_t p = 0; p < 3; ++p) {
              for (std::int64_t i = 0; i < m; ++i) {
                for (std::int64_t j = 0; j < n; ++j) {
                  double sum = 0;
                  for (std::int64_t q = 0; q < k; ++q) {
                    sum += static_cast<double>(a[(o * 3 + p) * m * k + i * g.a_m_stride + q * g.a_k_stride]) *
                           static_cast<double>(b[p * k * n + q * g.b_k_stride + j * g.b_n_stride]);
                  }
                  worst =
                      std::max(worst, std::fabs(0.5 * sum - static_cast<double>(c[(o * 3 + p) * m * n + i * n + j])));
                }
              }
            }
          }
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(form);
          CHECK(worst < 1e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rlx::cpu::test
