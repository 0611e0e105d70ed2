// Paged attention. Pools of other types give the bits of f32 pools with the same numbers, and a row has the same bits
// whether the heads that share its keys are computed together or not. quantize_blocks makes the blocks.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "rlx/backends/cpu/quant/interleaved_kernels.h"
#include "rlx/tensor/block_schemes.h"
#include "rlx/tensor/half.h"
#include "tests/support/needs.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

struct PagedCase {
  std::int64_t heads, kv_heads, d, dv, page, threads;
};

// Rows of numbers in another type: the contents of the pool, and their values as f32.
struct TypedRows {
  std::vector<std::byte> bytes;
  Buffer numbers;
  TypedRows(PoolType type, const Buffer& x, std::int64_t rows, std::int64_t dim);
};
TypedRows::TypedRows(PoolType type, const Buffer& x, std::int64_t rows, std::int64_t dim)
    : bytes(static_cast<std::size_t>(rows * pool_row_bytes(type, dim))), numbers(rows * dim) {
  const auto count = static_cast<std::size_t>(rows * dim);
  if (type == PoolType::F16 || type == PoolType::BF16) {
    auto* to = reinterpret_cast<std::uint16_t*>(bytes.data());
    for (std::size_t i = 0; i < count; ++i) {
      const float v = x[static_cast<std::int64_t>(i)];
      to[i] = type == PoolType::F16 ? float_to_f16_bits(v) : float_to_bf16_bits(v);
      numbers[static_cast<std::int64_t>(i)] =
          type == PoolType::F16 ? f16_bits_to_float(to[i]) : bf16_bits_to_float(to[i]);
    }
  } else {
    const QuantScheme scheme = type == PoolType::Q8_0 ? QuantScheme::Q8_0 : QuantScheme::Q4_0;
    quantize_blocks(scheme, {x.data(), count}, bytes);
    dequantize_blocks(scheme, bytes, {numbers.data(), count});
  }
}

constexpr std::int64_t kTokens = 9, kRequests = 3, kPages = 7;

// y [T, H, Dv] and lse [T, H] of all tokens. `expand`: every head has its own copy of the keys.
struct PagedResult {
  Buffer y, lse;
  explicit PagedResult(const PagedCase& c) : y(kTokens * c.heads * c.dv, kNan), lse(kTokens * c.heads, kNan) {}
};
void attend(const KernelTable& t, const PagedCase& c, PoolType type, const void* k, const void* v, bool expand,
            PagedResult& out, const InterleavedKernels* rounds_q = nullptr, const Buffer* given_q = nullptr) {
  const std::int64_t unit = pool_unit(type), k_row = pool_row_bytes(type, c.d) / unit,
                     v_row = pool_row_bytes(type, c.dv) / unit;
  Buffer q(kTokens * c.heads * c.d), sinks(c.heads);
  randomize(q, 3, -2, 2);
  if (given_q) std::copy_n(given_q->data(), kTokens * c.heads * c.d, q.data());
  randomize(sinks, 4);
  const std::int32_t lens[] = {static_cast<std::int32_t>(2 * c.page), 1, static_cast<std::int32_t>(c.page + 3)};
  const std::int32_t blocks[] = {3, 0, 6, 6, 5, 1};
  const QueryRange ranges[] = {{0, 5, 5}, {5, 1, 1}, {6, 3, 3}};
  const std::int64_t group = c.heads / c.kv_heads;
  AttentionF32 a;
  a.batch = kRequests, a.q_len = kTokens, a.k_len = 2 * c.page;
  a.head_dim = c.d, a.v_head_dim = c.dv;
  a.q_seq_stride = c.heads * c.d, a.q_head_stride = c.d;
  a.k_seq_stride = c.kv_heads * k_row, a.k_head_stride = k_row, a.k_page_stride = c.page * a.k_seq_stride;
  a.v_seq_stride = c.kv_heads * v_row, a.v_head_stride = v_row, a.v_page_stride = c.page * a.v_seq_stride;
  a.out_seq_stride = c.heads * c.dv, a.out_head_stride = c.dv;
  a.scale = 0.2F, a.mask_kind = AttentionMask::SlidingWindow, a.window = c.page;
  a.kv_lens = lens, a.blocks = blocks, a.blocks_stride = 2, a.page = c.page, a.pages = kPages, a.ranges = ranges;
  a.lse_q_stride = c.heads, a.lse_head_stride = 1, a.pool = type, a.rounds_q = rounds_q;
  // One call for all heads, or one call per head with the keys of its kv head.
  for (std::int64_t h = 0; h < (expand ? c.heads : 1); ++h) {
    a.heads = expand ? 1 : c.heads, a.kv_heads = expand ? 1 : c.kv_heads;
    a.q = q.data() + h * c.d, a.out = out.y.data() + h * c.dv, a.lse = out.lse.data() + h, a.sinks = sinks.data() + h;
    const auto at = [&](const void* pool, std::int64_t head_stride) {
      return reinterpret_cast<const float*>(static_cast<const std::byte*>(pool) + h / group * head_stride * unit);
    };
    a.k = at(k, a.k_head_stride), a.v = at(v, a.v_head_stride);
    const AttentionPlan plan = t.attention_plan_f32(a, static_cast<int>(c.threads));
    Buffer scratch(static_cast<std::int64_t>(plan.scratch_bytes / 4), kNan);
    for (std::int64_t chunk = plan.chunks - 1; chunk >= 0; --chunk) t.attention_f32(a, plan, chunk, scratch.data());
    CHECK(scratch.intact());
  }
  CHECK(out.y.intact());
  CHECK(out.lse.intact());
}

bool same_bits(const Buffer& a, const Buffer& b, std::int64_t n) {
  return std::equal(a.data(), a.data() + n, b.data(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

TEST_CASE("paged attention: queries rounded to the keys' 8 bits") {
  const PagedCase cases[] = {
      {4, 2, 64, 32, 64, 1}, {6, 2, 96, 96, 70, 2}, {70, 1, 32, 32, 5, 1}, {3, 3, 160, 64, 130, 4}};
  rlx::test::Share share(3);
  for (const KernelTable* t : tables())
    for (const PagedCase& c : cases)
      for (const Int8Matmul products : int8_matmul(t->isa)) {
        if (!share.next()) continue;
        INFO(isa_name(t->isa), " products ", static_cast<int>(products), " heads ", c.heads, " of ", c.kv_heads);
        const std::int64_t rows = kPages * c.page * c.kv_heads, n = kTokens * c.heads * c.dv;
        Buffer k(rows * c.d), v(rows * c.dv), q(kTokens * c.heads * c.d);
        randomize(k, 1, -2, 2);
        randomize(v, 2);
        randomize(q, 3, -2, 2);
        for (std::int64_t i = 0; i < 32; ++i) q[i] = 0;  // a block of zeros
        const TypedRows tk(PoolType::Q8_0, k, rows, c.d), tv(PoolType::Q8_0, v, rows, c.dv);
        PagedResult together(c), apart(c), of_numbers(c), again(c);
        const InterleavedKernels& panels = interleaved_kernels(t->isa, products);
        attend(*t, c, PoolType::Q8_0, tk.bytes.data(), tv.bytes.data(), false, together, &panels, &q);
        attend(*t, c, PoolType::Q8_0, tk.bytes.data(), tv.bytes.data(), true, apart, &panels, &q);
        // Every kernel gives the bits of the baseline kernel, and a row has the same bits alone.
        attend(*t, c, PoolType::Q8_0, tk.bytes.data(), tv.bytes.data(), false, again,
               &interleaved_kernels(t->isa, Int8Matmul::Pairs), &q);
        CHECK(same_bits(together.y, apart.y, n));
        CHECK(same_bits(together.lse, apart.lse, kTokens * c.heads));
        CHECK(same_bits(together.y, again.y, n));
        // As f32 attention of queries that were rounded before.
        for (std::int64_t at = 0; at < kTokens * c.heads * c.d; at += 32) {
          float largest = 0;  // of finite numbers
          for (std::int64_t i = at; i < at + 32; ++i)
            if (std::fabs(q[i]) > largest) largest = std::fabs(q[i]);
          for (std::int64_t i = at; i < at + 32 && largest > 0; ++i)
            q[i] = std::nearbyint(q[i] * (127 / largest)) * (largest / 127);
        }
        attend(*t, c, PoolType::F32, tk.numbers.data(), tv.numbers.data(), true, of_numbers, nullptr, &q);
        double worst = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double error = std::fabs(static_cast<double>(together.y[i]) - static_cast<double>(of_numbers.y[i]));
          if (!(error <= worst)) worst = error;  // NaN too
        }
        CHECK(worst < 2e-3);  // the scale is a factor of q here, so a tie may round the other way
      }
}

TEST_CASE("paged attention: pools of every type, and heads that share keys") {
  const PagedCase cases[] = {
      {4, 2, 64, 32, 64, 1}, {6, 2, 32, 96, 70, 2}, {70, 1, 32, 32, 5, 1}, {3, 3, 32, 64, 130, 4}};
  rlx::test::Share share(3);
  for (const KernelTable* t : tables())
    for (const PagedCase& base : cases)
      for (const PoolType type : {PoolType::F32, PoolType::F16, PoolType::BF16, PoolType::Q8_0, PoolType::Q4_0}) {
        if (!share.next()) continue;
        PagedCase c = base;
        if (type == PoolType::F16 || type == PoolType::BF16) c.d -= 11, c.dv -= 5;  // not whole vectors
        INFO(isa_name(t->isa), " ", static_cast<int>(type), " heads ", c.heads, " of ", c.kv_heads, " page ", c.page);
        const std::int64_t rows = kPages * c.page * c.kv_heads;
        Buffer k(rows * c.d), v(rows * c.dv);
        randomize(k, 1, -2, 2);
        randomize(v, 2);
        const std::int64_t n = kTokens * c.heads * c.dv;
        PagedResult of_type(c), of_numbers(c);
        if (type == PoolType::F32) {
          attend(*t, c, type, k.data(), v.data(), false, of_type);
          attend(*t, c, type, k.data(), v.data(), true, of_numbers);
        } else {
          const TypedRows tk(type, k, rows, c.d), tv(type, v, rows, c.dv);
          attend(*t, c, type, tk.bytes.data(), tv.bytes.data(), false, of_type);
          attend(*t, c, PoolType::F32, tk.numbers.data(), tv.numbers.data(), true, of_numbers);
        }
        CHECK(same_bits(of_type.y, of_numbers.y, n));
        CHECK(same_bits(of_type.lse, of_numbers.lse, kTokens * c.heads));
        CHECK(std::all_of(of_type.y.data(), of_type.y.data() + n, [](float x) { return std::isfinite(x); }));
      }
}

TEST_CASE("blocks of q8_0 are those of quantize_blocks") {
  constexpr float kMax = std::numeric_limits<float>::max(), kTiny = std::numeric_limits<float>::denorm_min();
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    Buffer x(32 * 40);
    randomize(x, 8, -5, 5);
    const float odd[] = {kNan, kInf, -kInf, kMax, -kMax, kTiny, -kTiny, 0.0F, -0.0F, 1e7F, 8.4e6F, 3e-6F, 7e-8F};
    for (std::int64_t i = 0; i < 13; ++i) {
      x[32 * i + 5] = odd[i];                                                      // among other values
      for (std::int64_t e = 0; e < 32; ++e) x[32 * (20 + i) + e] = odd[i] * 1.0F;  // alone
    }
    for (std::int64_t e = 0; e < 32; ++e) x[32 * 35 + e] = (static_cast<float>(e) - 16) / 127.0F * 0.5F;  // ties
    std::vector<std::byte> want(40 * 34), got(40 * 34);
    quantize_blocks(QuantScheme::Q8_0, {x.data(), 32 * 40}, want);
    t->encode_q8_0(x.data(), 40, reinterpret_cast<std::uint8_t*>(got.data()));
    CHECK(want == got);
  }
}

}  // namespace
}  // namespace rlx::cpu::test
