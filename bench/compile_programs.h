// Programs like those of models, for measurements of compile time: layers, loops, branches, random graphs, and their
// derivatives. The nodes of bodies and of derivatives count too.
#pragma once

#include <rlx/ir/graph.h>
#include <rlx/ir/ops/attention.h>
#include <rlx/ir/rewrite/bodies.h>
#include <rlx/transforms/reverse.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rlx::shapes {

/// The nodes of a graph and of its bodies.
inline std::size_t count_nodes(const Graph& g) {
  std::size_t all = g.num_nodes();
  for (const Node& n : g.nodes())
    for (const Subgraph& body : body_graphs(n.op)) all += count_nodes(*body);
  return all;
}

// A pseudo-random sequence, the same everywhere.
class Picks {
 public:
  int below(int n) {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<int>((state_ >> 11) % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

inline std::string numbered(const char* name, int i) { return name + std::to_string(i); }

/// Ops of many kinds. Most read values that were made shortly before, some read any value.
inline Graph random_graph(int n) {
  Graph g("random");
  Picks picks;
  std::vector<Expr> values{g.input("x", {{4, 8}, DType::F32})};
  const auto any = [&] {
    const int all = static_cast<int>(values.size());
    return values[static_cast<std::size_t>(picks.below(10) < 7 ? all - 1 - picks.below(std::min(all, 8))
                                                               : picks.below(all))];
  };
  for (int i = 0; i < n; ++i) {
    const Expr a = any(), b = any();
    switch (picks.below(9)) {
      case 0: values.push_back(g.tanh(a)); break;
      case 1: values.push_back(a * 0.5 + b); break;
      case 2: values.push_back(g.softmax(a)); break;
      case 3: values.push_back(g.matmul(a, g.param(numbered("w", i), {{8, 8}, DType::F32}))); break;
      case 4: values.push_back(g.reshape(g.transpose(g.reshape(a, {8, 4}), {1, 0}), {4, 8})); break;
      case 5: values.push_back(g.concat({g.narrow(a, 0, 2, 2), g.narrow(b, 0, 0, 2)}, 0)); break;
      case 6: values.push_back(a - g.mean(b, {1}, true)); break;
      case 7: values.push_back(g.where(g.gt(a, b), a, b * 0.25)); break;
      default: values.push_back(g.matmul(g.matmul(a, g.transpose(b, {1, 0})), b) * 0.1); break;
    }
  }
  Expr sum = values.back();
  for (std::size_t i = 2; i <= std::min<std::size_t>(values.size(), 16); ++i) sum = sum + values[values.size() - i];
  g.set_outputs({sum});
  return g;
}

/// Pre-norm MLP layers.
inline Graph norm_mlp(int n) {
  Graph g("layers");
  Expr h = g.input("x", {{4, 8}, DType::F32});
  for (int i = 0; i < std::max(1, n / 11); ++i) {
    const auto vector = [&](const char* name, std::int64_t size) {
      return g.param(numbered(name, i), {{size}, DType::F32});
    };
    const Expr a = g.layer_norm(h, vector("g", 8), vector("b", 8));
    const Expr up = g.matmul(a, g.param(numbered("u", i), {{8, 16}, DType::F32})) + vector("c", 16);
    h = h + g.matmul(g.gelu(up), g.param(numbered("d", i), {{16, 8}, DType::F32}));
  }
  g.set_outputs({h});
  return g;
}

inline Graph attention_layers(int n) {
  Graph g("attention");
  Expr h = g.input("x", {{1, 4, 8}, DType::F32});
  const ops::Attention two_heads{.num_heads = 2, .kv_heads = 2, .head_dim = 4};
  for (int i = 0; i < std::max(1, n / 3); ++i) h = g.attention(h, h * 0.5, h, two_heads) + h;
  g.set_outputs({h});
  return g;
}

/// h = 0.1 h h + h, so every value has three readers.
inline Graph diamonds(int n) {
  Graph g("diamonds");
  Expr h = g.input("x", {{8, 8}, DType::F32});
  for (int i = 0; i < std::max(1, n / 3); ++i) h = g.matmul(h, h) * 0.1 + h;
  g.set_outputs({h});
  return g;
}

/// n products side by side in one concat.
inline Graph concat_of_products(int n) {
  Graph g("products");
  const Expr x = g.input("x", {{4, 8}, DType::F32});
  std::vector<Expr> parts;
  for (int i = 0; i < std::max(1, n / 2); ++i)
    parts.push_back(g.matmul(x, g.param(numbered("w", i), {{8, 8}, DType::F32})));
  g.set_outputs({g.concat(parts, 1)});
  return g;
}

/// A scan whose body reads n weights from outside.
inline Graph scan_of_captures(int n) {
  Graph g("captures");
  const Expr x = g.input("x", {{3, 4, 8}, DType::F32});
  std::vector<Expr> weights;
  for (int i = 0; i < std::max(1, n / 3); ++i) weights.push_back(g.param(numbered("w", i), {{8, 8}, DType::F32}));
  const LoopResult r =
      g.scan(ExprList{g.sum(x, {0})}, ExprList{x}, [&](Graph& b, const ExprList& c, const ExprList& xs) {
        Expr h = c[0] + xs[0];
        for (const Expr& w : weights) h = b.tanh(b.matmul(h, w));
        return LoopStep{ExprList{h}, ExprList{h}};
      });
  g.set_outputs({r.ys[0]});
  return g;
}

/// A scan of n carries that change places.
inline Graph scan_of_carries(int n) {
  Graph g("carries");
  const Expr x = g.input("x", {{3, 8}, DType::F32});
  ExprList first;
  for (int i = 0; i < std::max(1, n / 4); ++i) first.push_back(g.sum(x, {0}) * (i + 1.0));
  const LoopResult r = g.scan(first, ExprList{x}, [](Graph& b, const ExprList& c, const ExprList& xs) {
    ExprList next;
    for (std::size_t i = 0; i < c.size(); ++i) next.push_back(b.tanh(c[(i + 1) % c.size()] + xs[0]));
    return LoopStep{next, ExprList{}};
  });
  g.set_outputs(r.carries);
  return g;
}

/// A scan with one large body.
inline Graph scan_of_large_body(int n) {
  Graph g("body");
  const Expr x = g.input("x", {{3, 8}, DType::F32});
  const LoopResult r =
      g.scan(ExprList{g.sum(x, {0})}, ExprList{x}, [n](Graph& b, const ExprList& c, const ExprList& xs) {
        Expr h = c[0] + xs[0];
        for (int i = 0; i < n; ++i) h = i % 2 ? b.softmax(h) : b.tanh(h);
        return LoopStep{ExprList{h}, ExprList{h}};
      });
  g.set_outputs({r.ys[0]});
  return g;
}

/// Scans and branches one after the other.
inline Graph small_bodies(int n) {
  Graph g("bodies");
  Expr h = g.input("x", {{3, 8}, DType::F32});
  for (int i = 0; i < std::max(1, n / 16); ++i) {
    h = g.scan(ExprList{g.sum(h, {0}) * 0.1}, ExprList{h}, [](Graph& b, const ExprList& c, const ExprList& xs) {
           const Expr next = b.tanh(c[0] + xs[0]);
           return LoopStep{ExprList{next}, ExprList{next}};
         }).ys[0];
    h = g.cond(
        g.gt(g.sum(h), 0.0), ExprList{h}, [](Graph& b, const ExprList& v) { return ExprList{b.sin(v[0])}; },
        [](Graph& b, const ExprList& v) { return ExprList{b.cos(v[0])}; })[0];
  }
  g.set_outputs({h});
  return g;
}

/// Bodies sixteen deep, each with its part of the ops.
inline Graph nested_bodies(int n) {
  constexpr int kDepth = 16;
  Graph g("nested");
  const std::function<Expr(Graph&, Expr, int)> nest = [&](Graph& b, Expr h, int depth) {
    for (int i = 0; i < std::max(1, n / kDepth); ++i) h = i % 2 ? b.softmax(h) : b.tanh(h);
    if (depth == 0) return h;
    return b
        .scan(ExprList{h}, ExprList{},
              [&](Graph& body, const ExprList& c, const ExprList&) {
                return LoopStep{ExprList{nest(body, c[0] * 0.5, depth - 1)}, ExprList{}};
              },
              {.length = Dim(1)})
        .carries[0];
  };
  g.set_outputs({nest(g, g.input("x", {{2, 8}, DType::F32}), kDepth - 1)});
  return g;
}

/// n runtime symbols.
inline Graph many_symbols(int n) {
  Graph g("symbols");
  std::vector<Expr> sums;
  for (int i = 0; i < std::max(1, n / 4); ++i) {
    const Dim rows = g.symbol(numbered("n", i), {.min = 1, .max = 8});
    sums.push_back(g.reshape(g.sum(g.sin(g.input(numbered("x", i), {{rows}, DType::F32}))), {1}));
  }
  g.set_outputs({g.concat(sums, 0)});
  return g;
}

/// The program that `make` makes, with the gradient of the sum of its outputs by all its inputs and params. A
/// derivative has about `times` the nodes of its program.
template <Graph (*make)(int), int times>
Graph gradient_of(int n) {
  Graph g = make(std::max(1, n / times));
  Expr loss;
  for (Value v : g.outputs()) loss = loss.valid() ? loss + g.sum(g.expr(v)) : g.sum(g.expr(v));
  g.set_outputs({loss});
  std::vector<Wrt> wrt;
  for (OpKind kind : {OpKind::Input, OpKind::Param})
    for (NodeId id : g.leaves(kind)) wrt.emplace_back(g.leaf_name(id));
  return value_and_grad(g, wrt).graph;
}

/// A family of programs: `make(n)` has about n nodes.
struct Case {
  const char* name;
  Graph (*make)(int);
};

inline constexpr Case kPrograms[] = {
    {"random", random_graph},
    {"norm-mlp", norm_mlp},
    {"attention", attention_layers},
    {"diamonds", diamonds},
    {"concat-products", concat_of_products},
    {"scan-captures", scan_of_captures},
    {"scan-carries", scan_of_carries},
    {"scan-body", scan_of_large_body},
    {"small-bodies", small_bodies},
    {"nested-bodies", nested_bodies},
    {"gradient-random", gradient_of<random_graph, 3>},
    {"gradient-norm-mlp", gradient_of<norm_mlp, 3>},
    {"gradient-attention", gradient_of<attention_layers, 3>},
    {"gradient-products", gradient_of<concat_of_products, 3>},
    {"gradient-captures", gradient_of<scan_of_captures, 3>},
    {"gradient-carries", gradient_of<scan_of_carries, 3>},
    {"gradient-body", gradient_of<scan_of_large_body, 3>},
    {"gradient-bodies", gradient_of<small_bodies, 3>},
    {"gradient-nested", gradient_of<nested_bodies, 3>},
};

}  // namespace rlx::shapes
