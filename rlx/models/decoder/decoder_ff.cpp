// Feed-forward layers: dense, and mixtures of experts (Shazeer et al. 2017, arXiv:1701.06538).
#include <algorithm>
#include <vector>

#include "rlx/models/adapter/adapter_set.h"
#include "rlx/models/decoder/decoder_blocks.h"

namespace rlx {

Expr DecoderBuilder::xielu(Expr x) {
  const auto number = [&](const char* name, double XieluSpec::*field, std::vector<std::int64_t> dims) {
    if (c_.xielu.empty()) return g_.reshape(flow_.weight(at(c_.names.xielu) + name, dims), {1});
    return g_.constant(Tensor::of<float>({1}, {static_cast<float>(c_.xielu[layer_].*field)}));
  };
  const Expr beta = number(".beta", &XieluSpec::beta, {}), eps = number(".eps", &XieluSpec::eps, {});
  const Expr above = g_.softplus(number(".alpha_p", &XieluSpec::alpha_p, {1}));
  const Expr below = beta + g_.softplus(number(".alpha_n", &XieluSpec::alpha_n, {1}));
  const Expr line = beta * x;
  return g_.where(g_.gt(x, 0), above * x * x + line, (g_.expm1(g_.min(x, eps)) - x) * below + line);
}

Expr DecoderBuilder::activated(Expr x) {
  return c_.names.xielu.empty() && c_.xielu.empty() ? g_.activation(c_.activation, x) : xielu(x);
}

// act(x W_gate) * (x W_up), times W_down.
Expr DecoderBuilder::gated(Expr x, const std::string& gate, const std::string& up, const std::string& down,
                           std::int64_t width) {
  const Expr y = activated(linear(x, gate, width, c_.ff_bias)) * linear(x, up, width, c_.ff_bias);
  return linear(y, down, c_.hidden_size, c_.ff_bias);
}

Expr DecoderBuilder::feed_forward(Expr x) {
  const DecoderNames& n = c_.names;
  const std::int64_t width = c_.ff_size;
  if (c_.gated && n.gate_up.empty()) return gated(x, at(n.gate), at(n.up), at(n.down), width);
  Expr y;
  if (c_.gated) {
    const Expr both = linear(x, at(n.gate_up), 2 * width, c_.ff_bias);
    y = activated(g_.narrow(both, 1, 0, width)) * g_.narrow(both, 1, width, width);
  } else {
    y = activated(linear(x, at(n.up), width, c_.ff_bias));
  }
  return linear(y, at(n.down), c_.hidden_size, c_.ff_bias);
}

// rows [M, in] times the matrices `name` of their experts `ids` [M]: [M, out].
Expr DecoderBuilder::expert_matmul(Expr rows, Expr ids, const std::string& name, std::int64_t out) {
  const MoeSpec& m = *c_.moe;
  const DecoderNames& n = c_.names;
  const std::int64_t in = rows.dim(1).value();
  Expr w;
  std::vector<std::string> names;
  if (m.layout == ExpertLayout::Apart) {
    for (std::int64_t e = 0; e < m.experts; ++e) names.push_back(at(with_number(name, e)) + n.expert_weight);
    w = flow_.experts(names, in, out);
  } else if (m.layout == ExpertLayout::Stacked) {
    w = g_.transpose(flow_.weight(at(name) + n.expert_weight, {m.experts, out, in}), {0, 2, 1});
  } else {
    w = flow_.weight(at(name) + n.expert_weight, {m.experts, in, out});
  }
  Expr y = g_.grouped_dot(rows, w, ids);
  if (set_ && !names.empty()) {
    for (std::string& matrix : names) matrix.erase(matrix.size() - n.expert_weight.size());
    const Expr spread = g_.expand(g_.reshape(adapters_, {tokens_, 1}), {tokens_, m.used});
    y = set_->add_experts(y, rows, names, ids, g_.reshape(spread, {tokens_ * Dim(m.used)}));
  }
  return m.bias ? y + g_.gather(flow_.weight(at(name) + n.expert_bias, {m.experts, out}), ids) : y;
}

Expr DecoderBuilder::expert_outputs(Expr rows, Expr ids) {
  const MoeSpec& m = *c_.moe;
  const DecoderNames& n = c_.names;
  Expr gate, up;
  if (m.layout == ExpertLayout::Interleaved) {
    const Expr both = expert_matmul(rows, ids, n.expert_gate, 2 * m.ff_size);
    const Expr pairs = g_.reshape(both, {both.dim(0), m.ff_size, 2});
    const auto part = [&](std::int64_t i) { return g_.reshape(g_.narrow(pairs, 2, i, 1), {both.dim(0), m.ff_size}); };
    gate = part(0), up = part(1);
  } else {
    gate = expert_matmul(rows, ids, n.expert_gate, m.ff_size);
    up = expert_matmul(rows, ids, n.expert_up, m.ff_size);
  }
  Expr y;
  if (m.clamp != 0) {
    gate = g_.min(gate, m.clamp), up = g_.max(g_.min(up, m.clamp), -m.clamp);
    y = (up + 1) * gate * g_.sigmoid(gate * m.alpha);
  } else {
    y = g_.activation(c_.activation, gate) * up;
  }
  return expert_matmul(y, ids, n.expert_down, c_.hidden_size);
}

Expr DecoderBuilder::experts(Expr x) {
  const MoeSpec& m = *c_.moe;
  const std::string router = at(c_.names.router);
  const Expr scores = adapted(flow_.linear(x, router, m.experts, m.router_bias), x, router, m.experts, m.router_bias);
  Expr weights, chosen;  // [T, used]
  if (m.router == RouterKind::TopKSoftmax) {
    const auto best = g_.top_k(scores, m.used);
    weights = g_.softmax(best.values), chosen = best.indices;
  } else {
    Expr p = g_.softmax(scores);
    if (m.groups > 1) {  // masks experts outside the groups with the best experts
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
  Expr y = expert_outputs(each, ids);
  y = g_.reshape(y, {tokens_, m.used, c_.hidden_size}) * g_.reshape(weights, {tokens_, m.used, 1});
  y = g_.sum(y, {1});
  if (m.shared_ff_size == 0) return y;
  const DecoderNames& n = c_.names;
  return y + gated(x, at(n.shared_gate), at(n.shared_up), at(n.shared_down), m.shared_ff_size);
}

}  // namespace rlx
