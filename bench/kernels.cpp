// Kernel speeds beside the limits of the machine: GEMM, attention, row kernels, elementwise tape, random bits, thread
// pool.
// Usage: kernels [isa] [threads]. Pin it (taskset) on an idle machine. Figures are medians.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "bench/before.h"
#include "rlx/backends/cpu/matmul/driver.h"
#include "rlx/error.h"
#include "rlx/threads/thread_pool.h"

namespace {

using rlx::cpu::KernelTable;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

/// The median seconds of one call of f, over at least 0.2 s; short calls are timed in groups.
template <class F>
double median_seconds(F&& f) {
  f();
  auto t = Clock::now();
  f();
  const double once = std::max(1e-8, seconds_since(t));
  const int group = std::max(1, static_cast<int>(20e-6 / once));
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 9 || seconds_since(begin) < 0.2) {
    t = Clock::now();
    for (int i = 0; i < group; ++i) f();
    times.push_back(seconds_since(t) / group);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// Aligned floats with small values. Large buffers use huge pages, as packed weights do in the runtime.
struct Floats {
  explicit Floats(std::int64_t n) : size(n) {
    const std::size_t page = static_cast<std::size_t>(n) * 4 >= (4U << 20) ? 2U << 20 : 64U;
    const auto bytes = (static_cast<std::size_t>(n) * 4 + 64 + page - 1) / page * page;
    data = static_cast<float*>(std::aligned_alloc(page, bytes));
#if defined(__linux__)
    if (page > 64) (void)::madvise(data, bytes, MADV_HUGEPAGE);
#endif
    for (std::int64_t i = 0; i < n; ++i) data[i] = static_cast<float>(i * 7919 % 1000) / 500.0F - 1.0F;
  }
  Floats(Floats&& o) noexcept : data(o.data), size(o.size) { o.data = nullptr; }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  ~Floats() { std::free(data); }
  float* data = nullptr;
  std::int64_t size = 0;
};

struct Limits {
  double fma_gflops = 0;   // registers only
  double tile_gflops = 0;  // the best GEMM tile with A, B and C in L1
};

struct Bench {
  const KernelTable& k;
  rlx::ThreadPool& pool;
  Limits limits;

  template <class F>
  void chunks(std::int64_t n, F&& f) {
    if (pool.threads() == 1) {
      for (std::int64_t i = 0; i < n; ++i) f(i);
    } else {
      pool.parallel_for(n, f);
    }
  }

  void measure_limits() {
    double best = 0;
    for (int i = 0; i < 7; ++i) {
      const auto t = Clock::now();
      const auto flops = k.fma_peak_f32(1000000);
      best = std::max(best, static_cast<double>(flops) / seconds_since(t) / 1e9);
    }
    limits.fma_gflops = best;
    for (const std::int64_t m : {4, 6, 8, 12, 14}) {
      const std::int64_t kk = 128, n = k.packed_nr_f32(1 << 20);
      Floats a(m * kk), b(k.packed_size_f32(kk, n)), c(m * n);
      rlx::cpu::MatmulOperands g = rlx::cpu::packed_b_operands(m, n, kk);
      g.a = a.data, g.b = b.data, g.c = c.data;
      const auto& kernel = rlx::cpu::packed_b_kernel(k, rlx::cpu::PackedBType::F32);
      const double s = median_seconds([&] { rlx::cpu::run_whole_matmul(&kernel, g, nullptr); });
      limits.tile_gflops = std::max(limits.tile_gflops, 2.0 * static_cast<double>(m * n * kk) / s / 1e9);
    }
    std::printf("f32 FMA from registers %.1f GF/s, best GEMM tile from L1 (K = 128) %.1f GF/s, one thread\n",
                limits.fma_gflops, limits.tile_gflops);
  }

  void gemm(std::int64_t m, std::int64_t n, std::int64_t kk, rlx::cpu::Act act, int copies) {
    Floats a(m * kk), b(n * kk), c(m * n), bias(n);
    const std::int64_t size = (k.packed_size_f32(kk, n) + 15) / 16 * 16;
    Floats packed(size * copies);
    for (int i = 0; i < copies; ++i) k.pack_b_f32(b.data, 1, kk, kk, n, 0, n, packed.data + i * size);
    rlx::cpu::MatmulOperands g = rlx::cpu::packed_b_operands(m, n, kk);
    g.a = a.data, g.c = c.data;
    g.epilogue.act = act;
    if (act != rlx::cpu::Act::None) g.epilogue.bias = bias.data;
    const auto& kernel = rlx::cpu::packed_b_kernel(k, rlx::cpu::PackedBType::F32);
    const auto plan = rlx::cpu::plan_matmul(&kernel, g, pool.threads());
    std::int64_t at = 0;
    const double s = median_seconds([&] {
      g.b = packed.data + at * size;
      at = (at + 1) % copies;
      g.prefetch_next = packed.data + at * size;
      chunks(plan.chunks, [&](std::int64_t i) { rlx::cpu::run_matmul(&kernel, g, plan, i, nullptr, nullptr); });
    });
    const double gflops = 2.0 * static_cast<double>(m * n * kk) / s / 1e9;
    std::printf(
        "  %5lldx%5lldx%5lld %s%s %9.2f us %7.1f GF/s, %5.1f %% of tile, %5.1f %% of FMA, %5.1f GB/s of weights\n",
        static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(kk),
        act == rlx::cpu::Act::None ? "     " : "+gelu", copies > 1 ? " cold" : "  hot", s * 1e6, gflops,
        100 * gflops / limits.tile_gflops / pool.threads(), 100 * gflops / limits.fma_gflops / pool.threads(),
        4.0 * static_cast<double>(n * kk) / s / 1e9);
  }

  void attention(std::int64_t batch, std::int64_t s, std::int64_t heads, std::int64_t d) {
    const std::int64_t width = 3 * heads * d;
    Floats qkv(batch * s * width), out(batch * s * heads * d), mask(batch * s);
    for (std::int64_t i = 0; i < mask.size; ++i) mask.data[i] = 1.0F;
    rlx::cpu::AttentionF32 a;
    a.batch = batch, a.q_len = a.k_len = s, a.heads = a.kv_heads = heads, a.head_dim = a.v_head_dim = d;
    a.q = qkv.data, a.k = qkv.data + heads * d, a.v = qkv.data + 2 * heads * d, a.out = out.data;
    a.q_batch_stride = a.k_batch_stride = a.v_batch_stride = s * width;
    a.q_seq_stride = a.k_seq_stride = a.v_seq_stride = width;
    a.q_head_stride = a.k_head_stride = a.v_head_stride = d;
    a.out_batch_stride = s * heads * d, a.out_seq_stride = heads * d, a.out_head_stride = d;
    a.scale = 1.0F / std::sqrt(static_cast<float>(d));
    a.custom_type = rlx::cpu::MaskType::F32, a.custom = mask.data, a.custom_batch_stride = s, a.custom_k_stride = 1;
    const auto plan = k.attention_plan_f32(a, pool.threads());
    std::vector<Floats> scratch;
    for (int i = 0; i < pool.threads(); ++i) scratch.emplace_back(static_cast<std::int64_t>(plan.scratch_bytes / 4));
    const double t = median_seconds([&] {
      chunks(plan.chunks, [&](std::int64_t i) {
        k.attention_f32(a, plan, i, scratch[static_cast<std::size_t>(rlx::worker_index())].data);
      });
    });
    const double flops = 4.0 * static_cast<double>(batch * heads * s * s * d);
    std::printf("  attention %2lldx%4lld, %lld heads of %3lld: %9.2f us %6.1f GF/s, %4.1f %% of FMA\n",
                static_cast<long long>(batch), static_cast<long long>(s), static_cast<long long>(heads),
                static_cast<long long>(d), t * 1e6, flops / t / 1e9,
                100 * flops / t / 1e9 / limits.fma_gflops / pool.threads());
  }

  void random_bits(std::int64_t n) {
    std::vector<std::uint32_t> y(static_cast<std::size_t>(n));
    const double s = median_seconds([&] { k.threefry_u32(1, 2, 0, n, y.data()); });
    std::printf("threefry_u32 %lld words: %.2f ns a word\n", static_cast<long long>(n),
                s / static_cast<double>(n) * 1e9);
  }

  void rows(std::int64_t r, std::int64_t cols) {
    Floats x(r * cols), y(r * cols), residual(r * cols), gamma(cols), beta(cols);
    rlx::cpu::NormF32 n;
    n.cols = cols, n.x = x.data, n.ld_x = cols, n.y = y.data, n.ld_y = cols, n.gamma = gamma.data, n.beta = beta.data;
    const double ln = median_seconds([&] { k.layer_norm_f32(n, 0, r); });
    n.residual = residual.data, n.ld_residual = cols;
    const double rln = median_seconds([&] { k.layer_norm_f32(n, 0, r); });
    n.residual = nullptr;
    n.beta = nullptr;
    const double rms = median_seconds([&] { k.rms_norm_f32(n, 0, r); });
    const double sm = median_seconds([&] { k.softmax_f32(x.data, cols, y.data, cols, cols, 0, r); });
    const double copy = median_seconds([&] { std::memcpy(y.data, x.data, static_cast<std::size_t>(r * cols) * 4); });
    std::printf(
        "  %5lldx%5lld: layer norm %8.2f, residual + layer norm %8.2f, rms norm %8.2f, softmax %8.2f, copy %8.2f us\n",
        static_cast<long long>(r), static_cast<long long>(cols), ln * 1e6, rln * 1e6, rms * 1e6, sm * 1e6, copy * 1e6);
  }

  void tape(std::int64_t n) {
    using rlx::cpu::TapeOp;
    Floats x(n), y(n);
    // gelu_tanh(x * a + b) * c + tanh(x)
    const rlx::cpu::TapeInstr heavy[] = {{TapeOp::Mul, 1, 0, 255, 0, 1.1F, 0},   {TapeOp::Add, 1, 1, 255, 0, 0.2F, 0},
                                         {TapeOp::GeluApprox, 1, 1, 0, 0, 0, 0}, {TapeOp::Mul, 1, 1, 255, 0, 0.7F, 0},
                                         {TapeOp::Tanh, 2, 0, 0, 0, 0, 0},       {TapeOp::Add, 3, 1, 2, 0, 0, 0}};
    const rlx::cpu::TapeInstr cheap[] = {{TapeOp::Mul, 1, 0, 255, 0, 1.1F, 0},
                                         {TapeOp::Add, 1, 1, 255, 0, 0.2F, 0},
                                         {TapeOp::Mul, 1, 1, 0, 0, 0, 0},
                                         {TapeOp::Add, 1, 1, 255, 0, 0.7F, 0},
                                         {TapeOp::Sub, 2, 1, 0, 0, 0, 0}};
    double time[2];
    for (int i = 0; i < 2; ++i) {
      rlx::cpu::Tape t;
      t.rank = 1, t.dims[0] = n, t.num_inputs = 1, t.inputs[0].strides[0] = 1, t.num_outputs = 1;
      t.instrs = i == 0 ? heavy : cheap, t.num_instrs = i == 0 ? 6 : 5, t.outputs[0].reg = i == 0 ? 3 : 2;
      rlx::cpu::tape_prepare(t);
      const void* in[] = {x.data};
      void* out[] = {y.data};
      const std::int64_t step = 16384;
      time[i] = median_seconds([&] {
        chunks((n + step - 1) / step, [&](std::int64_t c) { k.tape_run(t, in, out, c * step, (c + 1) * step); });
      });
    }
    const double copy = median_seconds([&] { std::memcpy(y.data, x.data, static_cast<std::size_t>(n) * 4); });
    std::printf("  tape of %8lld: gelu chain %9.2f us (%.3f ns each), 5 cheap ops %9.2f us, copy %9.2f us\n",
                static_cast<long long>(n), time[0] * 1e6, time[0] / static_cast<double>(n) * 1e9, time[1] * 1e6,
                copy * 1e6);
  }

  void math() {
    using rlx::cpu::TapeOp;
    const std::int64_t n = 4096;
    Floats x(n), y(n);
    std::printf("  ns per element in L1:");
    for (const TapeOp op : {TapeOp::Exp, TapeOp::Log, TapeOp::Tanh, TapeOp::Erf, TapeOp::Gelu, TapeOp::GeluApprox,
                            TapeOp::Silu, TapeOp::Sin, TapeOp::Pow}) {
      rlx::cpu::TapeInstr instr{op, 1, 0, 0, 0, 0, 0};
      rlx::cpu::Tape t;
      t.rank = 1, t.dims[0] = n, t.num_inputs = 1, t.inputs[0].strides[0] = 1, t.num_outputs = 1;
      t.instrs = &instr, t.num_instrs = 1, t.outputs[0].reg = 1;
      rlx::cpu::tape_prepare(t);
      for (std::int64_t i = 0; i < n; ++i)
        x.data[i] = op == TapeOp::Log || op == TapeOp::Pow ? std::fabs(x.data[i]) + 0.1F : x.data[i] * 4.0F;
      const void* in[] = {x.data};
      void* out[] = {y.data};
      const double s = median_seconds([&] { k.tape_run(t, in, out, 0, n); });
      std::printf(" %s %.3f", std::string(rlx::cpu::tape_op_name(op)).c_str(), s / static_cast<double>(n) * 1e9);
    }
    std::printf("\n");
  }

  void packing() {
    const std::int64_t n = 1536, kk = 384;
    Floats b(n * kk), packed(k.packed_size_f32(kk, n)), copy(n * kk);
    const double rows = median_seconds([&] { k.pack_b_f32(b.data, n, 1, kk, n, 0, n, packed.data); });
    const double columns = median_seconds([&] { k.pack_b_f32(b.data, 1, kk, kk, n, 0, n, packed.data); });
    const double plain = median_seconds([&] { std::memcpy(copy.data, b.data, static_cast<std::size_t>(n * kk) * 4); });
    std::printf("  pack 384x1536: from [K, N] %.1f us, from [N, K] %.1f us, copy %.1f us\n", rows * 1e6, columns * 1e6,
                plain * 1e6);
  }

  void pool_overhead() {
    std::vector<rlx::ScheduleStep> steps;
    std::vector<std::int32_t> preds(200);
    for (int i = 0; i < 200; ++i) {
      preds[static_cast<std::size_t>(i)] = i - 1;
      steps.push_back({2 * pool.threads(), [](void*, std::int64_t) {}, nullptr,
                       i == 0 ? std::span<const std::int32_t>()
                              : std::span<const std::int32_t>(&preds[static_cast<std::size_t>(i)], 1)});
    }
    rlx::StepSchedule schedule(steps);
    const double s = median_seconds([&] { pool.run(schedule); });
    const double f = median_seconds([&] { pool.parallel_for(2 * pool.threads(), [](std::int64_t) {}); });
    std::printf("  thread pool, %d threads: %.4f us per step of a schedule, %.4f us per parallel_for\n", pool.threads(),
                s / 200 * 1e6, f * 1e6);
  }
};

}  // namespace

int main(int argc, char** argv) {
  compare_before_if_asked(argc, argv);
  try {
    const auto isa = rlx::cpu::parse_isa(argc > 1 ? argv[1] : "best");
    rlx::ThreadPool pool(argc > 2 ? std::atoi(argv[2]) : 1);
    const std::string part = argc > 3 ? argv[3] : "all";
    const auto wanted = [&](const char* name) { return part == "all" || part == name; };
    Bench bench{rlx::cpu::kernels_for(isa), pool, {}};
    std::printf("%s, %d threads\n", std::string(rlx::cpu::isa_name(isa)).c_str(), pool.threads());
    bench.measure_limits();
    const std::int64_t shapes[][3] = {{16, 384, 384},    {16, 1536, 384},    {16, 384, 1536},
                                      {128, 384, 384},   {128, 1536, 384},   {1024, 384, 384},
                                      {1024, 1536, 384}, {1024, 1024, 1024}, {1, 4096, 4096}};
    if (wanted("gemm")) {
      for (const auto& s : shapes) bench.gemm(s[0], s[1], s[2], rlx::cpu::Act::None, 1);
      bench.gemm(128, 1536, 384, rlx::cpu::Act::Gelu, 1);
      bench.gemm(16, 1536, 384, rlx::cpu::Act::Gelu, 1);
    }
    if (wanted("cold")) {
      for (const auto& s : shapes) {
        if (s[0] < 1024)
          bench.gemm(s[0], s[1], s[2], rlx::cpu::Act::None, static_cast<int>(128'000'000 / (4 * s[1] * s[2]) + 1));
      }
    }
    if (wanted("pack")) bench.packing();
    if (wanted("attention")) {
      for (const std::int64_t s : {16, 32, 77, 128, 200, 512}) bench.attention(1, s, 12, 32);
      bench.attention(8, 128, 12, 32);
      bench.attention(1, 512, 12, 64);
      bench.attention(1, 512, 8, 128);
    }
    if (wanted("rows")) {
      for (const std::int64_t r : {16, 128, 1024}) bench.rows(r, 384);
      bench.rows(1536, 128);
    }
    if (wanted("tape")) {
      bench.math();
      bench.tape(32768);
      bench.tape(4 << 20);
    }
    if (wanted("random")) bench.random_bits(1 << 16);
    if (wanted("pool")) bench.pool_overhead();
  } catch (const rlx::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
