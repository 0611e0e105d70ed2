// Long contractions of the f32 GEMMs: an element is the sum of its blocks of kSumBlock steps of k, each a chain of
// multiply-adds, bit for bit, in every kernel, layout, number of rows and plan.
#include "rlx/backends/cpu/sum_blocks.h"

#include "rlx/tensor/half.h"
#include "tests/unit/cpu/matmul/packed_matmul.h"

namespace rlx::cpu::test {
namespace {

/// x [m, k] times w [k, n], and what each element must be.
struct LongProduct {
  std::int64_t m, n, k;
  Buffer x, w, want;

  LongProduct(Isa isa, std::int64_t rows, std::int64_t columns, std::int64_t depth, unsigned seed)
      : m(rows), n(columns), k(depth), x(m * k), w(k * n), want(m * n) {
    randomize(x, seed);
    randomize(w, seed + 1);
    for (std::int64_t i = 0; i < k * n; ++i)
      w[i] = static_cast<float>(static_cast<int>(w[i] * 127));  // fits every type
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) want[i * n + j] = sum(isa, i, j);
  }
  float sum(Isa isa, std::int64_t i, std::int64_t j) const {
    float total = 0, block = 0;
    for (std::int64_t kk = 0; kk < k; ++kk) {
      if (kk > 0 && kk % kSumBlock == 0) total = kk == kSumBlock ? block : total + block, block = 0;
      const float a = x[i * k + kk], b = w[kk * n + j];
      block = isa == Isa::Sse4 ? a * b + block : std::fma(a, b, block);
    }
    return k > kSumBlock ? total + block : block;
  }
  void check(const Buffer& got, const char* what, const float* scale = nullptr) const {
    INFO(what, " ", m, "x", n, "x", k);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < m * n; ++i) wrong += got[i] != (scale ? want[i] * scale[i % n] : want[i]);
    CHECK(wrong == 0);
    CHECK(got.intact());
  }
};

void check_packed(const KernelTable& t, const LongProduct& p) {
  const std::int64_t size = t.packed_size_f32(p.k, p.n), nr = t.packed_nr_f32(p.n);
  std::vector<float> scales(static_cast<std::size_t>(size / p.k), 0.75F);
  const auto run = [&](PackedBType type, const void* panels, const char* what, const float* scale) {
    for (const int threads : {1, 3}) {
      Buffer c(p.m * p.n, kNan);
      MatmulOperands g = packed_b_operands(p.m, p.n, p.k);
      g.a = p.x.data(), g.b = panels, g.b_scale = scale, g.c = c.data();
      run_packed(t, g, threads, type);
      p.check(c, what, scale);
    }
  };
  Buffer panels(size);
  t.pack_b_f32(p.w.data(), p.n, 1, p.k, p.n, 0, p.n, panels.data());
  run(PackedBType::F32, panels.data(), "packed f32", nullptr);
  std::vector<std::uint16_t> bf16(static_cast<std::size_t>(size)), f16(static_cast<std::size_t>(size));
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    bf16[static_cast<std::size_t>(i)] = float_to_bf16_bits(panels[i]);
    f16[static_cast<std::size_t>(i)] = float_to_f16_bits(panels[i]);
    bytes[static_cast<std::size_t>(i)] = static_cast<std::byte>(static_cast<int>(panels[i]));
  }
  for (std::size_t j = 0; j < scales.size(); ++j) scales[j] = 0.01F * static_cast<float>(j + 1);
  run(PackedBType::BF16, bf16.data(), "packed bf16", nullptr);
  run(PackedBType::F16, f16.data(), "packed f16", nullptr);
  run(PackedBType::I8, bytes.data(), "packed i8", scales.data());
  CHECK(nr > 0);
}

void check_strided(const KernelTable& t, const LongProduct& p) {
  Buffer x_turned(p.m * p.k), w_turned(p.k * p.n + 1);
  for (std::int64_t i = 0; i < p.m * p.k; ++i) x_turned[i % p.k * p.m + i / p.k] = p.x[i];
  float* const columns = w_turned.data() + 1;  // off the alignment of vectors, as views are
  for (std::int64_t i = 0; i < p.k * p.n; ++i) columns[i % p.n * p.k + i / p.n] = p.w[i];
  for (int form = 0; form < 8; ++form) {
    const bool a_t = (form & 1) != 0, b_t = (form & 2) != 0, two_axes = (form & 4) != 0;
    if (two_axes && p.k % 4 != 0) continue;
    Buffer c(p.m * p.n, kNan);
    MatmulOperands g;
    g.m = p.m, g.n = p.n, g.c = c.data(), g.ldc = p.n;
    g.a_type = g.b_type = g.c_type = DType::F32;
    g.a = a_t ? x_turned.data() : p.x.data(), g.b = b_t ? columns : p.w.data();
    g.a_m_stride = a_t ? 1 : p.k, g.b_n_stride = b_t ? p.k : 1;
    const std::int64_t step_a = a_t ? p.m : 1, step_b = b_t ? 1 : p.n;
    if (two_axes) {
      g.num_contracted = 2;
      g.contracted[0] = {4, p.k / 4 * step_a, p.k / 4 * step_b, 0};
      g.contracted[1] = {p.k / 4, step_a, step_b, 0};
    } else {
      g.num_contracted = 1;
      g.contracted[0] = {p.k, step_a, step_b, 0};
    }
    const MatmulKernel& kernel = matmul_kernel(t, MatmulSums::F32);
    const MatmulPlan plan = plan_matmul(&kernel, g, 1 + form % 3);
    Buffer scratch(static_cast<std::int64_t>(plan.scratch_bytes / 4), kNan), packed(plan.pack_bytes / 4, kNan);
    for (std::int64_t chunk = 0; chunk < plan.pack_chunks; ++chunk) pack_matmul(&kernel, g, plan, chunk, packed.data());
    for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk)
      run_matmul(&kernel, g, plan, chunk, packed.data(), scratch.data());
    p.check(c, a_t ? (b_t ? "strided tt" : "strided tn") : (b_t ? "strided nt" : "strided nn"));
  }
}

}  // namespace

TEST_CASE("gemm: long contractions are summed in blocks of k, packed or strided, in every shape") {
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    unsigned seed = 1;
    for (const std::int64_t k : {kSumBlock, kSumBlock + 1, 2 * kSumBlock + 76, 4 * kSumBlock}) {
      for (const std::int64_t m : {1, 3, 4, 9, 20}) {
        for (const std::int64_t n : {1, 17, 150}) {
          if (m > 4 && n > 17 && k > 3 * kSumBlock) continue;
          const LongProduct p(t->isa, m, n, k, seed++);
          check_packed(*t, p);
          check_strided(*t, p);
        }
      }
    }
  }
}

}  // namespace rlx::cpu::test
