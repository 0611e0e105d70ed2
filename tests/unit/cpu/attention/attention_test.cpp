// Attention kernels of every instruction set against plain loops in double.
#include <algorithm>

#include "tests/support/needs.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

constexpr std::int64_t kReach = 20;

struct Options {
  std::int64_t b = 2, sq = 5, sk = 5, h = 4, hkv = 2, d = 16, dv = 16;
  AttentionMask mask = AttentionMask::None;
  std::int64_t window = 0;
  float softcap = 0;
  int custom = 0;  // 0 none, 1 F32 [B, Sk], 2 U8 [B, 1, Sq, Sk]; of near pairs: 3 U8 [Sq, Sk], 4 F32 transposed
  bool bias = false;
  int threads = 1;
  bool lengths = false, sinks = false, lse = false;
};

void check(const KernelTable& t, const Options& o) {
  CAPTURE(isa_name(t.isa));
  CAPTURE(o.sq);
  CAPTURE(o.sk);
  CAPTURE(o.d);
  CAPTURE(static_cast<int>(o.mask));
  CAPTURE(o.custom);
  // q, k, v are slices of packed buffers [B, S, (H + 2 Hkv) * D] as far as the lengths allow
  const std::int64_t qs = o.h * o.d + 3, ks = o.hkv * o.d, vs = o.hkv * o.dv + 1, os = o.h * o.dv + 2;
  Buffer q(o.b * o.sq * qs), k(o.b * o.sk * ks), v(o.b * o.sk * vs), out(o.b * o.sq * os, 3.0F);
  Buffer key_mask(o.b * o.sk), bias(o.h * o.sq * o.sk);
  std::vector<std::uint8_t> full_mask(static_cast<std::size_t>(o.b * o.sq * o.sk));
  randomize(q, 1, -2, 2);
  randomize(k, 2, -2, 2);
  randomize(v, 3);
  randomize(key_mask, 4, 0, 1);
  randomize(bias, 5, -2, 2);
  std::mt19937 rng(6);
  for (auto& m : full_mask) m = rng() % 3 != 0 ? 1 : 0;
  for (std::int64_t j = 0; j < o.sk;
       ++j) {  // the key mask hides all keys of the last batch entry, the full mask all keys of one query
    key_mask[(o.b - 1) * o.sk + j] = 0.2F;
    full_mask[static_cast<std::size_t>(j)] = 0;
  }
  const auto near = [&](std::int64_t i, std::int64_t j) { return std::abs(i - j) <= kReach; };
  Buffer turned_mask(o.sk * o.sq);
  for (std::int64_t i = 0; i < o.sq && o.custom >= 3; ++i)
    for (std::int64_t j = 0; j < o.sk; ++j) {
      full_mask[static_cast<std::size_t>(i * o.sk + j)] = near(i, j);
      turned_mask[j * o.sq + i] = near(i, j) ? 1.0F : 0.0F;
    }
  AttentionF32 a;
  a.batch = o.b, a.q_len = o.sq, a.k_len = o.sk, a.heads = o.h, a.kv_heads = o.hkv, a.head_dim = o.d,
  a.v_head_dim = o.dv;
  a.q = q.data(), a.q_batch_stride = o.sq * qs, a.q_seq_stride = qs, a.q_head_stride = o.d;
  a.k = k.data(), a.k_batch_stride = o.sk * ks, a.k_seq_stride = ks, a.k_head_stride = o.d;
  a.v = v.data(), a.v_batch_stride = o.sk * vs, a.v_seq_stride = vs, a.v_head_stride = o.dv;
  a.out = out.data(), a.out_batch_stride = o.sq * os, a.out_seq_stride = os, a.out_head_stride = o.dv;
  a.scale = 0.3F, a.softcap = o.softcap, a.mask_kind = o.mask, a.window = o.window;
  if (o.custom == 1) {
    a.custom_type = MaskType::F32, a.custom = key_mask.data(), a.custom_batch_stride = o.sk, a.custom_k_stride = 1;
  } else if (o.custom == 2) {
    a.custom_type = MaskType::U8, a.custom = full_mask.data();
    a.custom_batch_stride = o.sq * o.sk, a.custom_q_stride = o.sk, a.custom_k_stride = 1;
  } else if (o.custom == 3) {
    a.custom_type = MaskType::U8, a.custom = full_mask.data(), a.custom_q_stride = o.sk, a.custom_k_stride = 1;
  } else if (o.custom == 4) {
    a.custom_type = MaskType::F32, a.custom = turned_mask.data(), a.custom_q_stride = 1, a.custom_k_stride = o.sq;
  }
  if (o.bias) a.bias = bias.data(), a.bias_head_stride = o.sq * o.sk, a.bias_q_stride = o.sk, a.bias_k_stride = 1;
  // Batch entry 0 has fewer keys and queries, the last entry more than there are. Elements beyond the lengths are NaN.
  std::vector<std::int32_t> kv_lens(static_cast<std::size_t>(o.b), static_cast<std::int32_t>(o.sk + 3));
  std::vector<std::int32_t> q_lens(static_cast<std::size_t>(o.b), static_cast<std::int32_t>(o.sq + 3));
  std::vector<std::int64_t> kv(kv_lens.size(), o.sk), qn(kv_lens.size(), o.sq);
  if (o.lengths) {
    kv[0] = o.sk / 2 + 1, qn[0] = o.sq / 2;
    kv_lens[0] = static_cast<std::int32_t>(kv[0]), q_lens[0] = static_cast<std::int32_t>(qn[0]);
    for (std::int64_t j = kv[0]; j < o.sk; ++j) {
      for (std::int64_t d = 0; d < ks; ++d) k[j * ks + d] = kNan;
      for (std::int64_t d = 0; d < vs; ++d) v[j * vs + d] = kNan;
    }
    for (std::int64_t i = qn[0]; i < o.sq; ++i)
      for (std::int64_t d = 0; d < qs; ++d) q[i * qs + d] = kNan;
    a.kv_lens = kv_lens.data(), a.q_lens = q_lens.data();
  }
  Buffer sinks(o.b * o.h), lse(o.b * o.h * o.sq, kNan);
  randomize(sinks, 7, -2, 2);
  if (o.sinks) a.sinks = sinks.data(), a.sinks_batch_stride = o.h;
  if (o.lse) a.lse = lse.data(), a.lse_head_stride = o.sq, a.lse_batch_stride = o.h * o.sq;
  const AttentionPlan plan = t.attention_plan_f32(a, o.threads);
  Buffer scratch(static_cast<std::int64_t>(plan.scratch_bytes / 4), kNan);
  for (std::int64_t c = plan.chunks - 1; c >= 0; --c) t.attention_f32(a, plan, c, scratch.data());
  CHECK(scratch.intact());
  CHECK(out.intact());
  CHECK(lse.intact());
  Worst worst, worst_lse;
  for (std::int64_t b = 0; b < o.b; ++b) {
    for (std::int64_t h = 0; h < o.h; ++h) {
      for (std::int64_t i = 0; i < o.sq; ++i) {
        std::vector<double> p(static_cast<std::size_t>(o.sk));
        double top = -INFINITY, sum = 0;
        const auto entry = static_cast<std::size_t>(b);
        const std::int64_t hk = h / (o.h / o.hkv), at = i + kv[entry] - qn[entry];
        const bool there = i < qn[entry];
        const double sink = o.sinks ? static_cast<double>(sinks[b * o.h + h]) : -INFINITY;
        top = sink;
        for (std::int64_t j = 0; j < o.sk; ++j) {
          double s = 0;
          if (!there || j >= kv[entry]) {
            p[static_cast<std::size_t>(j)] = -INFINITY;
            continue;
          }
          for (std::int64_t d = 0; d < o.d; ++d) {
            s += static_cast<double>(q[(b * o.sq + i) * qs + h * o.d + d]) *
                 static_cast<double>(k[(b * o.sk + j) * ks + hk * o.d + d]);
          }
          s *= static_cast<double>(0.3F);
          if (o.softcap > 0) s = static_cast<double>(o.softcap) * std::tanh(s / static_cast<double>(o.softcap));
          if (o.bias) s += static_cast<double>(bias[(h * o.sq + i) * o.sk + j]);
          bool visible = true;
          if (o.mask != AttentionMask::None) visible = j <= at;
          if (o.mask == AttentionMask::SlidingWindow) visible = visible && j >= at - o.window;
          if (o.custom == 1) visible = visible && key_mask[b * o.sk + j] >= 0.5F;
          if (o.custom == 2) visible = visible && full_mask[static_cast<std::size_t>((b * o.sq + i) * o.sk + j)] != 0;
          if (o.custom >= 3) visible = visible && near(i, j);
          p[static_cast<std::size_t>(j)] = visible ? s : -INFINITY;
          top = std::max(top, p[static_cast<std::size_t>(j)]);
        }
        for (double& s : p) sum += s = std::isinf(s) ? 0.0 : std::exp(s - top);
        if (o.sinks && there) sum += std::exp(sink - top);
        if (o.lse) {
          const float got = lse[(b * o.h + h) * o.sq + i];
          if (there && sum > 0)
            worst_lse.add(static_cast<double>(got), top + std::log(sum));
          else
            CHECK(got == -INFINITY);
        }
        for (std::int64_t d = 0; d < o.dv; ++d) {
          double y = 0;
          for (std::int64_t j = 0; j < o.sk; ++j) {
            if (p[static_cast<std::size_t>(j)] == 0) continue;
            y += p[static_cast<std::size_t>(j)] * static_cast<double>(v[(b * o.sk + j) * vs + hk * o.dv + d]);
          }
          y = sum > 0 ? y / sum : 0;
          worst.add(static_cast<double>(out[(b * o.sq + i) * os + h * o.dv + d]), y);
        }
      }
      for (std::int64_t i = 0; i < o.sq; ++i) {
        CHECK(out[(b * o.sq + i) * os + o.h * o.dv] == 3.0F);  // nothing is written beyond the heads
      }
    }
  }
  // A score sums head_dim products in F32, and an error of a score is a relative error of its weight.
  CHECK(worst.value() < 3e-6 * std::max(1.0, static_cast<double>(o.d) / 128));
  CHECK(worst_lse.value() < 3e-6 * std::max(1.0, static_cast<double>(o.d) / 128));
}

TEST_CASE("attention: lengths, head sizes and masks") {
  for (const KernelTable* t : tables()) {
    for (const std::int64_t sq : {1, 2, 16, 17, 31, 64, 65, 100}) {
      for (const std::int64_t sk : {1, 7, 64, 65, 130}) {
        for (const AttentionMask mask : {AttentionMask::None, AttentionMask::Causal, AttentionMask::SlidingWindow}) {
          Options o;
          o.sq = sq, o.sk = sk, o.mask = mask, o.window = 9, o.h = 2, o.hkv = 1, o.threads = sq % 3 == 1 ? 8 : 1;
          check(*t, o);
        }
      }
    }
    for (const std::int64_t d : {1, 4, 15, 20, 32, 64, 80, 128, 160, 256}) {
      Options o;
      o.d = d, o.dv = d == 20 ? 33 : d, o.sq = 19, o.sk = 23;
      check(*t, o);
    }
  }
}

TEST_CASE("attention: lengths as data, sinks and log-sum-exp") {
  rlx::test::Share share(3);
  for (const KernelTable* t : tables()) {
    for (const std::int64_t sq : {1, 2, 17, 65, 130}) {
      for (const std::int64_t sk : {1, 7, 65, 130}) {
        for (const AttentionMask mask : {AttentionMask::None, AttentionMask::Causal, AttentionMask::SlidingWindow}) {
          for (int bits = 1; bits < 8; ++bits) {
            if (!share.next()) continue;
            Options o;
            o.sq = sq, o.sk = sk, o.mask = mask, o.window = 9, o.h = 2, o.hkv = 1, o.threads = sq % 3 == 1 ? 8 : 1;
            o.lengths = (bits & 1) != 0, o.sinks = (bits & 2) != 0, o.lse = (bits & 4) != 0;
            o.custom = sk == 65 ? 2 : 0, o.softcap = sk == 7 ? 1.5F : 0.0F;
            check(*t, o);
          }
        }
      }
    }
  }
}

TEST_CASE("attention: custom masks, bias and softcap, together with causal") {
  for (const KernelTable* t : tables()) {
    for (int custom = 0; custom < 3; ++custom) {
      for (int bits = 0; bits < 8; ++bits) {
        Options o;
        o.custom = custom, o.bias = (bits & 1) != 0, o.softcap = (bits & 2) != 0 ? 1.5F : 0.0F;
        o.mask = (bits & 4) != 0 ? AttentionMask::Causal : AttentionMask::None;
        o.sq = 35, o.sk = 140;
        check(*t, o);
      }
    }
  }
}

TEST_CASE("attention: a mask of near pairs, whose far blocks are skipped") {
  rlx::test::Share share(2);
  for (const KernelTable* t : tables())
    for (const int custom : {3, 4})
      for (const std::int64_t length : {1, 20, 64, 150, 230})
        for (int bits = 0; bits < 4; ++bits) {
          if (!share.next()) continue;
          Options o;
          o.custom = custom, o.sq = o.sk = length, o.h = 2, o.hkv = 1;
          o.lengths = (bits & 1) != 0, o.lse = (bits & 2) != 0;
          check(*t, o);
        }
}

TEST_CASE("attention: a key block without a visible key, large scores, NaN") {
  for (const KernelTable* t : tables()) {
    const std::int64_t s = 200, d = 8;
    Buffer q(s * d, 30.0F), k(s * d, 30.0F), v(s * d, 1.0F), out(s * d), mask(s, 1.0F);
    for (std::int64_t j = 0; j < 150; ++j) mask[j] = 0.0F;
    k[10 * d] = kNan;  // hidden keys have no effect
    AttentionF32 a;
    a.batch = 1, a.q_len = s, a.k_len = s, a.heads = 1, a.kv_heads = 1, a.head_dim = d, a.v_head_dim = d;
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data();
    a.q_seq_stride = a.k_seq_stride = a.v_seq_stride = a.out_seq_stride = d;
    a.custom_type = MaskType::F32, a.custom = mask.data(), a.custom_k_stride = 1;
    const AttentionPlan plan = t->attention_plan_f32(a, 1);
    Buffer scratch(static_cast<std::int64_t>(plan.scratch_bytes / 4));
    for (std::int64_t c = 0; c < plan.chunks; ++c) t->attention_f32(a, plan, c, scratch.data());
    for (std::int64_t i = 0; i < s * d; ++i) CHECK(out[i] == doctest::Approx(1.0F));
    k[160 * d] = kNan;                                                                // a visible key has an effect
    for (std::int64_t j = 152; j < 160; ++j) k[j * d] = static_cast<float>(j - 120);  // and may hide larger scores
    for (std::int64_t c = 0; c < plan.chunks; ++c) t->attention_f32(a, plan, c, scratch.data());
    for (std::int64_t i = 0; i < s * d; ++i) CHECK(std::isnan(out[i]));
  }
}

// One attention in a head layout. Its results must not depend on the number of threads, and not on keys that a query
// does not see.
struct AttentionCase {
  std::int64_t b = 2, sq, sk, h = 4, hkv = 2, d;
  AttentionMask mask = AttentionMask::None;
  std::int64_t window = 0;
  enum class Hide { Nothing, Keys, Pairs, Bias } hide = Hide::Nothing;
  int layout = 0;  // 0 merged, 1 heads first, 2 slices of one projection
  std::vector<std::uint8_t> pairs{};
  Buffer q{b * sq * h * d * 3}, k{b * sk * hkv * d * 3}, v{b * sk * hkv * d * 3}, bias{b * sq * sk};

  AttentionCase(std::int64_t queries, std::int64_t keys, std::int64_t depth = 8) : sq(queries), sk(keys), d(depth) {
    randomize(q, 1, -2, 2);
    randomize(k, 2, -2, 2);
    randomize(v, 3);
    randomize(bias, 4);
  }
  void hide_some(Hide how, unsigned seed) {
    hide = how;
    std::mt19937 rng(seed);
    pairs.assign(static_cast<std::size_t>(b * sq * sk), 1);
    for (auto& p : pairs) p = rng() % 3 != 0 ? 1 : 0;
    if (how == Hide::Keys)
      for (std::int64_t i = 0; i < b * sq; ++i)
        for (std::int64_t j = 0; j < sk; ++j)
          pairs[static_cast<std::size_t>(i * sk + j)] = pairs[static_cast<std::size_t>(i / sq * sq * sk + j)];
    for (std::int64_t j = 0; how == Hide::Pairs && j < sk; ++j) pairs[static_cast<std::size_t>(sk * (sq - 1) + j)] = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i)
      if (how == Hide::Bias && !pairs[i]) bias[static_cast<std::int64_t>(i)] = -kInf;
  }
  bool sees(std::int64_t batch, std::int64_t i, std::int64_t j) const {
    const std::int64_t at = i + sk - sq;
    if (mask != AttentionMask::None && j > at) return false;
    if (mask == AttentionMask::SlidingWindow && j < at - window) return false;
    return hide == Hide::Nothing || pairs[static_cast<std::size_t>((batch * sq + i) * sk + j)] != 0;
  }
  void strides(std::int64_t heads, std::int64_t length, std::int64_t& batch, std::int64_t& seq, std::int64_t& head) {
    seq = layout == 1 ? d : layout == 2 ? heads * d * 3 : heads * d;
    head = layout == 1 ? length * d : d;
    batch = layout == 2 ? heads * d * length * 3 : heads * d * length;
  }
  std::int64_t at(std::int64_t heads, std::int64_t length, std::int64_t n, std::int64_t i, std::int64_t head) {
    std::int64_t sb = 0, ss = 0, sh = 0;
    strides(heads, length, sb, ss, sh);
    return n * sb + i * ss + head * sh;
  }
  std::vector<float> run(const KernelTable& t, int threads) {
    std::vector<float> out(static_cast<std::size_t>(b * sq * h * d), 3.0F);
    AttentionF32 a;
    a.batch = b, a.q_len = sq, a.k_len = sk, a.heads = h, a.kv_heads = hkv, a.head_dim = d, a.v_head_dim = d;
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data();
    strides(h, sq, a.q_batch_stride, a.q_seq_stride, a.q_head_stride);
    strides(hkv, sk, a.k_batch_stride, a.k_seq_stride, a.k_head_stride);
    strides(hkv, sk, a.v_batch_stride, a.v_seq_stride, a.v_head_stride);
    a.out_batch_stride = sq * h * d, a.out_seq_stride = h * d, a.out_head_stride = d;
    a.scale = 0.4F, a.mask_kind = mask, a.window = window;
    if (hide == Hide::Keys || hide == Hide::Pairs) {
      a.custom_type = MaskType::U8, a.custom = pairs.data(), a.custom_batch_stride = sq * sk, a.custom_k_stride = 1;
      a.custom_q_stride = hide == Hide::Pairs ? sk : 0;
    } else if (hide == Hide::Bias) {
      a.bias = bias.data(), a.bias_batch_stride = sq * sk, a.bias_q_stride = sk, a.bias_k_stride = 1;
    }
    const AttentionPlan plan = t.attention_plan_f32(a, threads);
    Buffer scratch(static_cast<std::int64_t>(plan.scratch_bytes / 4), kNan);
    for (std::int64_t c = plan.chunks - 1; c >= 0; --c) t.attention_f32(a, plan, c, scratch.data());
    CHECK(scratch.intact());
    return out;
  }
};

// The number of elements whose bits differ; all NaN are equal.
int bits_apart(const std::vector<float>& a, const std::vector<float>& b) {
  int apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    apart += std::memcmp(&a[i], &b[i], 4) != 0 && !(std::isnan(a[i]) && std::isnan(b[i])) ? 1 : 0;
  return apart;
}

using Hide = AttentionCase::Hide;

// Every mask on a few lengths and layouts.
template <class Visit>
void visit_masks(Visit visit) {
  rlx::test::Share share(2);
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    for (const auto& lengths : {std::pair{1, 70}, {17, 17}, {63, 255}, {100, 65}, {128, 130}}) {
      const int sq = lengths.first, sk = lengths.second;
      for (const AttentionMask mask : {AttentionMask::None, AttentionMask::Causal, AttentionMask::SlidingWindow}) {
        for (const Hide hide : {Hide::Nothing, Hide::Keys, Hide::Pairs, Hide::Bias}) {
          for (const std::int64_t window : {0, 1, 16, 63, 100}) {
            if ((mask != AttentionMask::SlidingWindow && window != 0) || !share.next()) continue;
            AttentionCase c(sq, sk);
            c.mask = mask, c.window = window, c.layout = static_cast<int>((window + sq) % 3);
            if (hide != Hide::Nothing) c.hide_some(hide, 5);
            CAPTURE(sq);
            CAPTURE(sk);
            CAPTURE(static_cast<int>(mask));
            CAPTURE(static_cast<int>(hide));
            CAPTURE(window);
            visit(*t, c);
          }
        }
      }
    }
  }
}

TEST_CASE("attention: the result does not depend on the number of threads it is planned for") {
  visit_masks([](const KernelTable& t, AttentionCase& c) {
    const std::vector<float> one = c.run(t, 1);
    for (const int threads : {2, 3, 5, 64}) {
      CAPTURE(threads);
      CHECK(bits_apart(one, c.run(t, threads)) == 0);
    }
  });
  for (const KernelTable* t : tables()) {
    for (const std::int64_t d : {1, 5, 16, 33, 64, 128}) {
      AttentionCase c(63, 255, d);
      c.mask = AttentionMask::SlidingWindow, c.window = 16;
      CHECK(bits_apart(c.run(*t, 1), c.run(*t, 5)) == 0);
    }
  }
}

TEST_CASE("attention: what lies at a hidden key reaches no result") {
  visit_masks([](const KernelTable& t, AttentionCase& c) {
    const std::vector<float> clean = c.run(t, 1);
    const float bad[] = {kNan, kInf, -kInf};
    // Keys that no query of a batch entry sees change nothing.
    int hidden = 0;
    for (std::int64_t n = 0; n < c.b; ++n) {
      for (std::int64_t j = 0; j < c.sk; ++j) {
        bool seen = false;
        for (std::int64_t i = 0; i < c.sq; ++i) seen = seen || c.sees(n, i, j);
        if (seen) continue;
        ++hidden;
        for (std::int64_t head = 0; head < c.hkv; ++head)
          for (std::int64_t d = 0; d < c.d; ++d)
            c.k[c.at(c.hkv, c.sk, n, j, head) + d] = c.v[c.at(c.hkv, c.sk, n, j, head) + d] =
                bad[static_cast<std::size_t>((j + d) % 3)];
      }
    }
    if (hidden) CHECK(bits_apart(clean, c.run(t, 1)) == 0);
    // A key that some queries see: their rows become NaN or infinite, other rows stay the same.
    const auto value = [&](std::int64_t j, std::int64_t head) { return &c.v[c.at(c.hkv, c.sk, 0, j, head)]; };
    for (const std::int64_t j : {std::int64_t{0}, c.sk / 2, c.sk - 1}) {
      std::vector<float> kept;
      for (std::int64_t head = 0; head < c.hkv; ++head)
        for (std::int64_t d = 0; d < c.d; ++d)
          kept.push_back(value(j, head)[d]), value(j, head)[d] = bad[static_cast<std::size_t>(d % 3)];
      const std::vector<float> one = c.run(t, 1), many = c.run(t, 7);
      CHECK(bits_apart(one, many) == 0);
      for (std::int64_t i = 0; i < c.sq; ++i) {
        const auto row = static_cast<std::ptrdiff_t>(i * c.h * c.d), end = row + static_cast<std::ptrdiff_t>(c.h * c.d);
        const std::vector<float> got(one.begin() + row, one.begin() + end);
        if (c.sees(0, i, j))
          CHECK(std::none_of(got.begin(), got.end(), [](float x) { return std::isfinite(x); }));
        else
          CHECK(bits_apart(got, std::vector<float>(clean.begin() + row, clean.begin() + end)) == 0);
      }
      for (std::int64_t head = 0; head < c.hkv; ++head)
        for (std::int64_t d = 0; d < c.d; ++d) value(j, head)[d] = kept[static_cast<std::size_t>(head * c.d + d)];
    }
  });
}

}  // namespace
}  // namespace rlx::cpu::test
