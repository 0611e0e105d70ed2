// Samples of PagedAttention.
#include <optional>

#include "rlx/ir/ops/attention.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::PagedAttention>(SampleSet& set) {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  const auto index = [](Dims d, std::int64_t bound) {
    return SampleInput(Shape(std::move(d), DType::I32), Fill::Index, bound);
  };
  // Tokens, pages of the pool, tokens of a page, requests, pages of a request.
  struct Extents {
    std::int64_t t, p, page, b, m;
  };
  const auto add = [&](const char* name, Extents x, ops::PagedAttention op, std::optional<SampleInput> mask = {},
                       bool sinks = false) {
    const std::int64_t dv = op.v_head_dim.value_or(op.head_dim);
    const auto pool = [&](std::int64_t dim) {
      const bool blocks = is_block_scheme(op.pool_scheme);
      if (blocks) dim = dim / block_layout(op.pool_scheme).elements * block_layout(op.pool_scheme).bytes;
      const Dims dims{x.p, x.page, op.kv_heads, dim};
      return blocks ? SampleInput(Shape(dims, DType::U8), Fill::Index, 60) : f32(dims);
    };
    std::vector<SampleInput> in{
        f32({x.t, op.num_heads, op.head_dim}), pool(op.head_dim),        pool(dv), index({x.b, x.m}, x.p + 1),
        index({x.b}, x.m * x.page + 2),        index({x.b + 1}, x.t + 1)};
    if (mask) in.push_back(*mask);
    if (sinks) in.emplace_back(f32({op.num_heads})), op.present.bits |= 1U << 7;
    set.add(name, std::move(in), std::move(op));
  };
  ops::PagedAttention op;
  op.num_heads = 2, op.kv_heads = 1, op.head_dim = 2;
  add("every key", {5, 4, 2, 2, 2}, op);
  op.mask = MaskKind::Causal;
  add("causal", {6, 3, 2, 3, 2}, op);
  add("causal, sinks", {5, 4, 3, 2, 2}, op, {}, true);
  op.v_head_dim = 3, op.softcap = 1.5, op.scale = 0.4;
  add("values of another size, scale, softcap", {4, 3, 2, 2, 2}, op);
  op.v_head_dim.reset(), op.softcap.reset(), op.scale.reset();
  op.mask = MaskKind::SlidingWindow, op.window = 1;
  add("window", {5, 4, 2, 2, 2}, op);
  op.window = 0, op.mask = MaskKind::Custom, op.kv_heads = 2;
  add("draft tree", {5, 4, 2, 2, 3}, op, SampleInput(Shape({5, 3}, DType::Bool), Fill::Boolean));
  op.mask = MaskKind::Bias;
  add("bias of new tokens, sinks", {4, 3, 2, 2, 2}, op, SampleInput(f32({4, 4})), true);
  op.mask = MaskKind::Causal;
  add("one request", {3, 2, 4, 1, 1}, op);
  add("no tokens", {0, 2, 2, 1, 1}, op);
  op.head_dim = 64, op.v_head_dim = 32, op.pool_scheme = QuantScheme::Q8_0;
  add("pools of q8_0", {4, 3, 2, 2, 2}, op);
  op.pool_scheme = QuantScheme::Q4_0, op.num_heads = 4;
  add("pools of q4_0", {5, 3, 2, 2, 2}, op);
}

}  // namespace rlx::testing
