// Feed-forward layers: dense, and mixtures of experts (Shazeer et al. 2017, arXiv:1701.06538).
#include <algorithm>
#include <vector>

#include "rlx/models/decoder_blocks.h"

namespace rlx {

// act(x W_gate) * (x W_up), times W_down.
Expr DecoderBuilder::gated(Expr x, const std::string& gate, const std::string& up, const std::string& down,
                           std::int64_t width) {
  const Expr y = g_.activation(c_.activation, linear(x, gate, width, c_.ff_bias)) * linear(x, up, width, c_.ff_bias);
  return linear(y, down, c_.hidden_size, c_.ff_bias);
}

Expr DecoderBuilder::feed_forward(Expr x) {
  const DecoderNames& n = c_.names;
  const std::int64_t width = c_.ff_size;
  if (c_.gated && n.gate_up.empty()) return gated(x, at(n.gate), at(n.up), at(n.down), width);
  Expr y;
  if (c_.gated) {
    const Expr both = linear(x, at(n.gate_up), 2 * width, c_.ff_bias);
    y = g_.activation(c_.activation, g_.narrow(both, 1, 0, width)) * g_.narrow(both, 1, width, width);
  } else {
    y = g_.activation(c_.activation, linear(x, at(n.up), width, c_.ff_bias));
  }
  return linear(y, at(n.down), c_.hidden_size, c_.ff_bias);
}

// Rows of x [T * used, H] through the experts `ids` [T * used].
Expr DecoderBuilder::expert_outputs(Expr rows, Expr ids) {
  const MoeSpec& m = *c_.moe;
  const auto all = [&](const std::string& name, std::int64_t k, std::int64_t n) {
    std::vector<std::string> names;
    for (std::int64_t e = 0; e < m.experts; ++e)
      names.push_back(at(with_number(c_.names.expert, e)) + name + ".weight");
    return flow_.experts(names, k, n);
  };
  const Expr gate = g_.grouped_dot(rows, all("gate_proj", c_.hidden_size, m.ff_size), ids);
  const Expr up = g_.grouped_dot(rows, all("up_proj", c_.hidden_size, m.ff_size), ids);
  return g_.grouped_dot(g_.activation(c_.activation, gate) * up, all("down_proj", m.ff_size, c_.hidden_size), ids);
}

// The same of gpt-oss: matrices [E, in, out] with biases, gate and up in turn, both clamped.
Expr DecoderBuilder::stacked_outputs(Expr rows, Expr ids) {
  const MoeSpec& m = *c_.moe;
  const auto product = [&](Expr x, const std::string& name, std::int64_t k, std::int64_t n) {
    const Expr w = flow_.weight(at(c_.names.experts) + name, {m.experts, k, n});
    const Expr bias = flow_.weight(at(c_.names.experts) + name + "_bias", {m.experts, n});
    return g_.grouped_dot(x, w, ids) + g_.gather(bias, ids);
  };
  const Expr both = product(rows, "gate_up_proj", c_.hidden_size, 2 * m.ff_size);
  const Expr pairs = g_.reshape(both, {both.dim(0), m.ff_size, 2});
  const auto part = [&](std::int64_t i) { return g_.reshape(g_.narrow(pairs, 2, i, 1), {both.dim(0), m.ff_size}); };
  const Expr gate = g_.min(part(0), m.clamp), up = g_.max(g_.min(part(1), m.clamp), -m.clamp);
  return product((up + 1) * gate * g_.sigmoid(gate * m.alpha), "down_proj", m.ff_size, c_.hidden_size);
}

Expr DecoderBuilder::experts(Expr x) {
  const MoeSpec& m = *c_.moe;
  const Expr scores = flow_.linear(x, at(c_.names.router), m.experts, m.stacked);
  Expr weights, chosen;  // [T, used]
  if (m.router == RouterKind::TopKSoftmax) {
    const auto best = g_.top_k(scores, m.used);
    weights = g_.softmax(best.values), chosen = best.indices;
  } else {
    Expr p = g_.softmax(scores);
    if (m.groups > 1) {  // experts outside the groups whose best expert is best are out
      const std::int64_t size = m.experts / m.groups;
      const Expr grouped = g_.reshape(p, {tokens_, m.groups, size});
      const Expr best = g_.top_k(g_.reduce_max(grouped, {2}), m.used_groups).indices;  // [T, used groups]
      const Expr group = g_.iota(Shape({1, 1, m.groups}, DType::I32), 2);
      const Expr hit = g_.eq(g_.reshape(best, {tokens_, m.used_groups, 1}), group);  // [T, used groups, groups]
      const Expr in = g_.reduce_max(g_.cast(hit, DType::F32), {1});
      p = g_.reshape(grouped * g_.reshape(in, {tokens_, m.groups, 1}), {tokens_, m.experts});
    }
    const auto best = g_.top_k(p, m.used);
    weights = best.values, chosen = best.indices;
    if (m.normalize) weights = weights / g_.sum(weights, {1}, true);
  }
  if (m.scale != 1) weights = weights * m.scale;
  const Dim rows = tokens_ * Dim(m.used);
  const Expr spread = g_.expand(g_.reshape(x, {tokens_, 1, c_.hidden_size}), {tokens_, m.used, c_.hidden_size});
  const Expr each = g_.reshape(spread, {rows, c_.hidden_size}), ids = g_.reshape(chosen, {rows});
  Expr y = m.stacked ? stacked_outputs(each, ids) : expert_outputs(each, ids);
  y = g_.reshape(y, {tokens_, m.used, c_.hidden_size}) * g_.reshape(weights, {tokens_, m.used, 1});
  y = g_.sum(y, {1});
  if (m.shared_ff_size == 0) return y;
  const std::string shared = at(c_.names.shared);
  return y + gated(x, shared + "gate_proj", shared + "up_proj", shared + "down_proj", m.shared_ff_size);
}

}  // namespace rlx
