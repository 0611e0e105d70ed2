// Samples of Attention and AttentionBackward.
#include <optional>

#include "rlx/ir/ops/attention.h"
#include "rlx/ops/attention/attention_core.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {
namespace {

// One case for both ops: shapes of q, k, v, the optional operands, and the attributes.
struct AttentionCase {
  const char* name;
  Shape q, k, v;
  std::optional<SampleInput> mask{}, kv_len{}, q_len{}, sinks{};
  AttentionSpec spec;
};

template <class Add>
void attention_cases(Add add_case) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  using M = MaskKind;
  using L = HeadLayout;
  const auto spec = [](std::int64_t h, std::int64_t kv, std::int64_t d, M m = M::None, L l = L::Merged) {
    return AttentionSpec{h, kv, d, d, m, 0, std::nullopt, std::nullopt, l};
  };
  const auto add = [&](const char* name, const Shape& q, const Shape& kv, const std::optional<SampleInput>& mask,
                       const AttentionSpec& s) {
    add_case(AttentionCase{name, q, kv, kv, mask, {}, {}, {}, s});
  };
  const Shape merged = f32({2, 3, 4});
  const std::optional<SampleInput> no_mask;
  add("plain", merged, merged, no_mask, spec(2, 2, 2));
  add("heads first", f32({1, 2, 3, 2}), f32({1, 2, 2, 2}), no_mask, spec(2, 2, 2, M::None, L::HeadsFirst));
  add("heads inner, as many heads as queries", f32({1, 2, 2, 2}), f32({1, 3, 2, 2}), no_mask,
      spec(2, 2, 2, M::None, L::HeadsInner));
  add("grouped heads", f32({1, 2, 8}), f32({1, 3, 4}), no_mask, spec(4, 2, 2));
  add("one key head", f32({1, 2, 3, 2}), f32({1, 2, 1, 2}), no_mask, spec(3, 1, 2, M::None, L::HeadsInner));
  add("causal", merged, merged, no_mask, spec(2, 2, 2, M::Causal));
  add("causal, more keys", f32({1, 2, 2}), f32({1, 4, 2}), no_mask, spec(1, 1, 2, M::Causal));
  add("causal, more queries", f32({1, 4, 2}), f32({1, 2, 2}), no_mask, spec(1, 1, 2, M::Causal));
  AttentionSpec s = spec(1, 1, 2, M::SlidingWindow);
  s.window = 1;
  add("window", f32({1, 3, 2}), f32({1, 4, 2}), no_mask, s);
  s = spec(2, 1, 2);
  s.scale = 0.3;
  s.softcap = 1.5;
  add("scale and softcap", merged, f32({2, 3, 2}), no_mask, s);
  s = spec(1, 1, 2, M::Causal);
  s.scale = 2.0;
  s.softcap = 3.0;
  add("scale, softcap and causal", f32({1, 3, 2}), f32({1, 3, 2}), no_mask, s);
  add("mask of keys", merged, merged, SampleInput(Shape({2, 1, 1, 3}, DType::Bool), Fill::Boolean),
      spec(2, 2, 2, M::Custom));
  add("mask of queries and keys, as many entries as queries", f32({3, 3, 4}), f32({3, 2, 4}),
      SampleInput(Shape({3, 2}, DType::Bool), Fill::Boolean), spec(2, 2, 2, M::Custom));
  add("float mask", merged, merged, SampleInput(f32({2, 1, 3, 3}), Fill::Boolean), spec(2, 2, 2, M::Custom));
  add("mask of heads", f32({1, 2, 8}), f32({1, 2, 4}), SampleInput(Shape({4, 2, 2}, DType::Bool), Fill::Boolean),
      spec(4, 2, 2, M::Custom));
  add("bias", f32({1, 2, 8}), f32({1, 3, 4}), SampleInput(f32({1, 4, 2, 3})), spec(4, 2, 2, M::Bias));
  add("bias of keys", merged, merged, SampleInput(f32({2, 1, 1, 3})), spec(2, 2, 2, M::Bias));
  add("bias, one for all keys", merged, merged, SampleInput(f32({3, 1})), spec(2, 2, 2, M::Bias));
  add("bias, broadcast", merged, merged, SampleInput(f32({2, 1, 3})), spec(2, 2, 2, M::Bias));
  add("no keys", f32({1, 2, 2}), f32({1, 0, 2}), no_mask, spec(1, 1, 2));
  add("no queries", f32({1, 0, 2}), f32({1, 2, 2}), no_mask, spec(1, 1, 2));
  add("one of each", f32({1, 1, 1}), f32({1, 1, 1}), no_mask, spec(1, 1, 1));
  add("f64", Shape({1, 2, 4}, DType::F64), Shape({1, 2, 4}, DType::F64), no_mask, spec(2, 2, 2));
  add("bf16", Shape({1, 2, 4}, DType::BF16), Shape({1, 2, 4}, DType::BF16), no_mask, spec(2, 2, 2, M::Causal));
  add("f16", Shape({1, 2, 4}, DType::F16), Shape({1, 2, 4}, DType::F16), no_mask, spec(2, 2, 2));

  // Lengths from 0 to more than the extent.
  const auto lengths = [](std::int64_t batch, std::int64_t extent) {
    return SampleInput(Shape({batch}, DType::I32), Fill::Index, extent + 2);
  };
  AttentionCase c{"kv_len", f32({3, 2, 4}), f32({3, 4, 4}), f32({3, 4, 4}), {}, {}, {}, {}, spec(2, 2, 2)};
  c.kv_len = lengths(3, 4);
  add_case(c);
  c.name = "kv_len, causal", c.spec.mask = M::Causal;
  add_case(c);
  c.name = "kv_len and q_len, causal", c.q_len = lengths(3, 2);
  add_case(c);
  c.name = "kv_len, q_len and sinks, causal", c.sinks = SampleInput(f32({2}));
  add_case(c);
  c.name = "q_len, window", c.kv_len.reset(), c.sinks.reset();
  c.spec.mask = M::SlidingWindow, c.spec.window = 1;
  add_case(c);
  c.name = "q_len and sinks of each entry", c.spec = spec(2, 1, 2), c.k = c.v = f32({3, 4, 2});
  c.sinks = SampleInput(f32({3, 2}));
  add_case(c);
  c.name = "sinks", c.q_len.reset(), c.sinks = SampleInput(f32({2}));
  add_case(c);
  c.name = "sinks, softcap and bias", c.spec.mask = M::Bias, c.spec.softcap = 1.5, c.mask = SampleInput(f32({2, 4}));
  add_case(c);
  c.name = "lengths, sinks and mask", c.spec = spec(2, 1, 2, M::Custom);
  c.mask = SampleInput(Shape({3, 1, 1, 4}, DType::Bool), Fill::Boolean);
  c.kv_len = lengths(3, 4), c.q_len = lengths(3, 2);
  add_case(c);
  c = {"values of another size", f32({2, 3, 4}), f32({2, 2, 4}), f32({2, 2, 6}), {}, {}, {}, {}, spec(2, 2, 2)};
  c.spec.v_head_dim = 3;
  add_case(c);
  c.name = "values of another size, kv_len, heads first", c.spec = spec(2, 1, 4, M::Causal, L::HeadsFirst);
  c.q = f32({2, 2, 1, 4}), c.k = f32({2, 1, 3, 4}), c.v = f32({2, 1, 3, 2}), c.spec.v_head_dim = 2;
  c.kv_len = lengths(2, 3);
  add_case(c);
  c = {"bf16 keys of f32 queries",
       f32({1, 2, 4}),
       Shape({1, 3, 4}, DType::BF16),
       Shape({1, 3, 4}, DType::BF16),
       {},
       lengths(1, 3),
       {},
       {},
       spec(2, 2, 2, M::Causal)};
  add_case(c);
}

// The sample of an op over the operands of a case, in the order of its record.
template <class Op>
void add_attention_sample(SampleSet& set, const AttentionCase& c, std::vector<SampleInput> in, bool with_dlse) {
  Op op = attention_op<Op>(c.spec);
  int place = static_cast<int>(in.size());
  for (const auto& x : {c.mask, c.kv_len, c.q_len, c.sinks}) {
    if (x) in.push_back(*x);
    if (x && Op::def.inputs.names[place] != "mask") op.present.bits |= 1U << place;
    ++place;
  }
  if (with_dlse) in.emplace_back(lse_shape(c.spec, c.q)), op.present.bits |= 1U << place;
  // A float Custom mask is a step function of its operand. Its derivative is zero away from 0.5.
  set.add(c.name, std::move(in), std::move(op));
}

}  // namespace

template <>
void samples<ops::Attention>(SampleSet& set) {
  attention_cases([&](const AttentionCase& c) {
    add_attention_sample<ops::Attention>(set, c, {c.q, c.k, c.v}, false);
  });
}

template <>
void samples<ops::AttentionBackward>(SampleSet& set) {
  int number = 0;
  attention_cases([&](const AttentionCase& c) {
    const bool longer = c.kv_len || c.q_len || c.sinks;
    add_attention_sample<ops::AttentionBackward>(set, c, {c.q, c.k, c.v, attention_result(c.spec, c.q)},
                                                 longer && number++ % 3 != 2);
  });
}

}  // namespace rlx::testing
