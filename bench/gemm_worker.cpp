// rlx's f32 matmul with packed B, for bench/gemm: requests "M N K seconds" in, JSON lines out.
// usage: gemm_worker THREADS [isa]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "bench/peers/gemm_loop.h"
#include "rlx/backends/cpu/matmul/driver.h"
#include "rlx/error.h"
#include "rlx/threads/thread_pool.h"

namespace {

std::shared_ptr<float> floats(std::int64_t n) {
  const std::size_t bytes = (static_cast<std::size_t>(n) * sizeof(float) + 127) / 64 * 64;
  return {static_cast<float*>(std::aligned_alloc(64, bytes)), std::free};
}

GemmSide make_side(const rlx::cpu::KernelTable& kernels, rlx::ThreadPool& pool, std::int64_t m, std::int64_t n,
                   std::int64_t k) {
  const auto a = floats(m * k), b = floats(k * n), packed = floats(kernels.packed_size_f32(k, n)), c = floats(m * n);
  rlx::cpu::MatmulOperands g = rlx::cpu::packed_b_operands(m, n, k);
  g.a = a.get(), g.b = packed.get(), g.c = c.get();
  const rlx::cpu::MatmulKernel& kernel = rlx::cpu::packed_b_kernel(kernels, rlx::cpu::PackedBType::F32);
  const rlx::cpu::MatmulPlan plan = rlx::cpu::plan_matmul(&kernel, g, pool.threads());
  GemmSide side;
  side.a = a.get(), side.b = b.get(), side.c = c.get();
  side.pack = [&kernels, b, packed, n, k] { kernels.pack_b_f32(b.get(), n, 1, k, n, 0, n, packed.get()); };
  side.run = [&kernel, &pool, a, packed, c, g, plan] {
    const auto chunk = [&](std::int64_t i) { rlx::cpu::run_matmul(&kernel, g, plan, i, nullptr, nullptr); };
    if (pool.threads() == 1) {
      for (std::int64_t i = 0; i < plan.chunks; ++i) chunk(i);
    } else {
      pool.parallel_for(plan.chunks, chunk);
    }
  };
  return side;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    rlx::ThreadPool pool(argc > 1 ? std::atoi(argv[1]) : 1);
    const auto& kernels = rlx::cpu::kernels_for(rlx::cpu::parse_isa(argc > 2 ? argv[2] : "best"));
    std::printf("{\"version\":\"rlx (%s)\"}\n", std::string(rlx::cpu::isa_name(kernels.isa)).c_str());
    std::fflush(stdout);
    answer_gemm_requests(
        [&](std::int64_t m, std::int64_t n, std::int64_t k) { return make_side(kernels, pool, m, n, k); });
  } catch (const rlx::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
