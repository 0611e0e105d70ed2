// One decode step with a cache of full extent. The token's keys and values are written at its position, and its queries
// attend to all positions up to it. Later positions of the cache hold NaN.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/attention.h"

namespace rlx::test {

struct DecodeLoop {
  static constexpr std::int64_t kBatch = 2, kMost = 1024, kHeads = 4, kKvHeads = 2, kDepth = 8;
  static constexpr std::int64_t kWidth = (kHeads + 2 * kKvHeads) * kDepth;  // of q, k and v of

  /// Inputs: token [B, 1, kWidth] and its position I32 []; states k and v [B, kMost, KV, D]; output [B, 1, H * D].
  static Graph graph() {
    Graph g("decode");
    const Shape cache({kBatch, kMost, kKvHeads, kDepth}, DType::F32);
    const Tensor empty = Tensor::full(cache, std::numeric_limits<double>::quiet_NaN());
    Expr token = g.input("token", {{kBatch, 1, kWidth}, DType::F32});
    Expr position = g.input("position", {{}, DType::I32});
    const auto heads = [&](std::int64_t from, std::int64_t count) {
      return g.reshape(g.narrow(token, 2, from * kDepth, count * kDepth), {kBatch, 1, count, kDepth});
    };
    Expr row = position * g.constant(Tensor::of<std::int32_t>({4}, {0, 1, 0, 0}));
    Expr k = g.dynamic_update_slice(g.state("k", empty), heads(kHeads, kKvHeads), row);
    Expr v = g.dynamic_update_slice(g.state("v", empty), heads(kHeads + kKvHeads, kKvHeads), row);
    g.set_state("k", k);
    g.set_state("v", v);
    ops::Attention op;
    op.num_heads = kHeads, op.kv_heads = kKvHeads, op.head_dim = kDepth;
    op.mask = MaskKind::Causal, op.layout = HeadLayout::HeadsInner;
    Expr y = g.attention(heads(0, kHeads), k, v, op, {.kv_len = g.expand(position + 1, {kBatch})});
    g.set_outputs({g.reshape(y, {kBatch, 1, kHeads * kDepth})});
    return g;
  }

  /// The token at `position`, the same for every call.
  static std::vector<float> token(std::int64_t position) {
    std::vector<float> out(static_cast<std::size_t>(kBatch * kWidth));
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>((static_cast<std::size_t>(position) * 131 + i * 29) % 97) / 48.0F - 1.0F;
    return out;
  }

  /// The expected result of the step at `position` after all earlier steps, in double.
  static std::vector<double> expected(std::int64_t position) {
    std::vector<std::vector<float>> tokens;
    for (std::int64_t t = 0; t <= position; ++t) tokens.push_back(token(t));
    std::vector<double> out;
    for (std::int64_t b = 0; b < kBatch; ++b)
      for (std::int64_t h = 0; h < kHeads; ++h) {
        const auto at = [&](std::int64_t t, std::int64_t head, std::int64_t d) {
          return static_cast<double>(
              tokens[static_cast<std::size_t>(t)][static_cast<std::size_t>(b * kWidth + head * kDepth + d)]);
        };
        const std::int64_t kv = h / (kHeads / kKvHeads);
        std::vector<double> sums(kDepth);
        double weights = 0;
        for (std::int64_t t = 0; t <= position; ++t) {
          double s = 0;
          for (std::int64_t d = 0; d < kDepth; ++d) s += at(position, h, d) * at(t, kHeads + kv, d);
          const double w = std::exp(s / std::sqrt(static_cast<double>(kDepth)));
          weights += w;
          for (std::int64_t d = 0; d < kDepth; ++d)
            sums[static_cast<std::size_t>(d)] += w * at(t, kHeads + kKvHeads + kv, d);
        }
        for (double s : sums) out.push_back(s / weights);
      }
    return out;
  }
};

}  // namespace rlx::test
