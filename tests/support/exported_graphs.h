// Layers as exporters write them: norms, softmax, gelu and attention made of primitives.
#pragma once

#include <cmath>
#include <string>

#include "rlx/ir/graph.h"

namespace rlx::test {

/// exp(x - max) / sum along the last axis.
inline Expr written_softmax(Graph& g, Expr x) {
  Expr e = g.exp(x - g.reduce_max(x, {-1}, true));
  return e / g.sum(e, {-1}, true);
}
/// (x - mean) / sqrt(var + eps) * gamma + beta along the last axis.
inline Expr written_layer_norm(Graph& g, Expr x, Expr gamma, Expr beta, double eps) {
  Expr d = x - g.mean(x, {-1}, true);
  Expr var = g.mean(g.pow(d, 2.0), {-1}, true);
  return d / g.sqrt(var + eps) * gamma + beta;
}
/// x * (1 + erf(x / sqrt 2)) * 0.5.
inline Expr written_gelu(Graph& g, Expr x) { return x * (g.erf(x / std::sqrt(2.0)) + 1.0) * 0.5; }

/// A post-norm encoder layer of [batch, seq, heads * head_dim], as BERT's PyTorch code is exported. Its additive mask
/// [batch, 1, 1, seq] is made of a float mask of ones and zeros.
inline Graph exported_encoder_layer(std::int64_t batch, std::int64_t seq, std::int64_t heads, std::int64_t head_dim,
                                    std::int64_t inner) {
  Graph g("exported");
  const std::int64_t e = heads * head_dim;
  auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  Expr x = g.input("x", f32({batch, seq, e}));
  Expr mask = g.input("mask", f32({batch, seq}));
  auto linear = [&](Expr in, const std::string& name, std::int64_t n) {
    const Dim k = in.dim(-1);
    return g.matmul(in, g.param("w_" + name, f32({k, n}))) + g.param("b_" + name, f32({n}));
  };
  auto norm = [&](Expr in, const std::string& name) {
    return written_layer_norm(g, in, g.param("gamma_" + name, f32({e})), g.param("beta_" + name, f32({e})), 1e-12);
  };
  auto split = [&](Expr in) { return g.transpose(g.reshape(in, {batch, seq, heads, head_dim}), {0, 2, 1, 3}); };
  Expr q = split(linear(x, "q", e)), k = split(linear(x, "k", e)), v = split(linear(x, "v", e));
  Expr bias = (1.0 - g.reshape(mask, {batch, 1, 1, seq})) * -10000.0;
  Expr scores = g.matmul(q, g.t(k)) / std::sqrt(static_cast<double>(head_dim)) + bias;
  Expr context = g.matmul(written_softmax(g, scores), v);
  Expr merged = g.reshape(g.transpose(context, {0, 2, 1, 3}), {batch, seq, e});
  Expr h = norm(linear(merged, "o", e) + x, "1");
  Expr y = linear(written_gelu(g, linear(h, "up", inner)), "down", e);
  g.set_outputs({norm(y + h, "2")});
  return g;
}

}  // namespace rlx::test
