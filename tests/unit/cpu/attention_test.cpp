// Attention of every instruction set against a double loop.
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

struct Options {
  std::int64_t b = 2, sq = 5, sk = 5, h = 4, hkv = 2, d = 16, dv = 16;
  AttentionMask mask = AttentionMask::None;
  std::int64_t window = 0;
  float softcap = 0;
  int custom = 0;  // 0 none, 1 F32 [B, Sk], 2 U8 [B, 1, Sq, Sk]
  bool bias = false;
  int threads = 1;
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
       ++j) {  // the last batch sees nothing through the key mask; one query through the full one
    key_mask[(o.b - 1) * o.sk + j] = 0.2F;
    full_mask[static_cast<std::size_t>(j)] = 0;
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
  }
  if (o.bias) a.bias = bias.data(), a.bias_head_stride = o.sq * o.sk, a.bias_q_stride = o.sk, a.bias_k_stride = 1;
  const AttentionPlan plan = t.attention_plan_f32(a, o.threads);
  Buffer scratch(static_cast<std::int64_t>(plan.scratch_bytes / 4), kNan);
  for (std::int64_t c = plan.chunks - 1; c >= 0; --c) t.attention_f32(a, plan, c, scratch.data());
  CHECK(scratch.intact());
  CHECK(out.intact());
  double worst = 0;
  for (std::int64_t b = 0; b < o.b; ++b) {
    for (std::int64_t h = 0; h < o.h; ++h) {
      for (std::int64_t i = 0; i < o.sq; ++i) {
        std::vector<double> p(static_cast<std::size_t>(o.sk));
        double top = -INFINITY, sum = 0;
        const std::int64_t hk = h / (o.h / o.hkv), at = i + o.sk - o.sq;
        for (std::int64_t j = 0; j < o.sk; ++j) {
          double s = 0;
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
          p[static_cast<std::size_t>(j)] = visible ? s : -INFINITY;
          top = std::max(top, p[static_cast<std::size_t>(j)]);
        }
        for (double& s : p) sum += s = std::isinf(s) ? 0.0 : std::exp(s - top);
        for (std::int64_t d = 0; d < o.dv; ++d) {
          double y = 0;
          for (std::int64_t j = 0; j < o.sk; ++j) {
            y += p[static_cast<std::size_t>(j)] * static_cast<double>(v[(b * o.sk + j) * vs + hk * o.dv + d]);
          }
          y = sum > 0 ? y / sum : 0;
          const float got = out[(b * o.sq + i) * os + h * o.dv + d];
          worst = std::isnan(got) ? 1e9 : std::max(worst, std::fabs(y - static_cast<double>(got)));
        }
      }
      for (std::int64_t i = 0; i < o.sq; ++i) {
        CHECK(out[(b * o.sq + i) * os + o.h * o.dv] == 3.0F);  // beyond the heads nothing is written
      }
    }
  }
  // A score sums head_dim products in F32, and an error of a score is a relative error of its weight.
  CHECK(worst < 3e-6 * std::max(1.0, static_cast<double>(o.d) / 128));
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

TEST_CASE("attention: a key block without a visible key, large scores, NaN") {
  for (const KernelTable* t : tables()) {
    const std::int64_t s = 200, d = 8;
    Buffer q(s * d, 30.0F), k(s * d, 30.0F), v(s * d, 1.0F), out(s * d), mask(s, 1.0F);
    for (std::int64_t j = 0; j < 150; ++j) mask[j] = 0.0F;
    k[10 * d] = kNan;  // hidden keys do not matter
    AttentionF32 a;
    a.batch = 1, a.q_len = s, a.k_len = s, a.heads = 1, a.kv_heads = 1, a.head_dim = d, a.v_head_dim = d;
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data();
    a.q_seq_stride = a.k_seq_stride = a.v_seq_stride = a.out_seq_stride = d;
    a.custom_type = MaskType::F32, a.custom = mask.data(), a.custom_k_stride = 1;
    const AttentionPlan plan = t->attention_plan_f32(a, 1);
    Buffer scratch(static_cast<std::int64_t>(plan.scratch_bytes / 4));
    for (std::int64_t c = 0; c < plan.chunks; ++c) t->attention_f32(a, plan, c, scratch.data());
    for (std::int64_t i = 0; i < s * d; ++i) CHECK(out[i] == doctest::Approx(1.0F));
    k[160 * d] = kNan;  // a visible one does
    for (std::int64_t c = 0; c < plan.chunks; ++c) t->attention_f32(a, plan, c, scratch.data());
    for (std::int64_t i = 0; i < s * d; ++i) CHECK(std::isnan(out[i]));
  }
}

}  // namespace
}  // namespace rlx::cpu::test
