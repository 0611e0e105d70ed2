// Programs of a given size, for measurements of compile time (bench/compile) and for tests.
#pragma once

#include <rlx/ir/graph.h>
#include <rlx/transforms/reverse.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/compile_programs.h"

namespace rlx::shapes {

inline constexpr DType F32 = DType::F32;

// Adds values in pairs, so N values are summed at a depth of log N.
inline Expr sum_tree(std::vector<Expr> values) {
  while (values.size() > 1) {
    std::vector<Expr> half;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) half.push_back(values[i] + values[i + 1]);
    if (values.size() % 2) half.push_back(values.back());
    values = std::move(half);
  }
  return values[0];
}

// h = step(h, i), n times, from x [4, 8].
template <class Step>
Graph chain(int n, const Step& step) {
  Graph g("chain");
  Expr x = g.input("x", {{4, 8}, F32}), h = x;
  for (int i = 0; i < n; ++i) h = step(g, x, h, i);
  g.set_outputs({h});
  return g;
}

// n independent values part(x, i), combined by `join`.
template <class Part>
Graph wide(int n, const Part& part) {
  Graph g("wide");
  Expr x = g.input("x", {{4, 8}, F32});
  std::vector<Expr> values;
  for (int i = 0; i < n; ++i) values.push_back(part(g, x, i));
  g.set_outputs({sum_tree(std::move(values))});
  return g;
}

inline std::vector<Expr> sines(Graph& g, int n) {
  Expr x = g.input("x", {{4, 8}, F32});
  std::vector<Expr> values;
  for (int i = 0; i < n; ++i) values.push_back(g.sin(x + i));
  return values;
}

inline Graph softmax_chain(int n) {
  return chain(n, [](Graph& g, Expr x, Expr h, int i) { return i % 2 ? g.softmax(h) : h + x; });
}

inline constexpr Case kCases[] = {
    {"chain-elementwise",
     [](int n) { return chain(n, [](Graph& g, Expr, Expr h, int i) { return i % 2 ? g.sin(h) : h + 0.5; }); }},
    {"chain-matmul",
     [](int n) {
       Graph g("chain");
       Expr h = g.input("x", {{4, 8}, F32}), w = g.param("w", {{8, 8}, F32});
       for (int i = 0; i < n; ++i) h = g.matmul(h, w);
       g.set_outputs({h});
       return g;
     }},
    {"chain-cumsum",
     [](int n) {
       return chain(n, [](Graph& g, Expr, Expr h, int i) { return i % 3 == 0 ? g.cumsum(h, 0) : g.tanh(h); });
     }},
    {"chain-softmax", softmax_chain},
    {"chain-transpose",
     [](int n) { return chain(n, [](Graph& g, Expr, Expr h, int) {
                   return g.transpose(h, {1, 0});
                 }); }},
    {"chain-reshape",
     [](int n) {
       return chain(n, [](Graph& g, Expr, Expr h, int i) { return g.reshape(h, i % 2 ? Dims{4, 8} : Dims{8, 4}); });
     }},
    {"chain-halves",
     [](int n) {
       return chain(n, [](Graph& g, Expr, Expr h, int) {
         return g.concat({g.narrow(h, 1, 4, 4), g.narrow(h, 1, 0, 4)}, 1);
       });
     }},
    {"wide-sine", [](int n) { return wide(n, [](Graph& g, Expr x, int i) { return g.sin(x * (i + 1.0)); }); }},
    {"wide-matmul",
     [](int n) {
       return wide(n, [](Graph& g, Expr x, int i) {
         return g.matmul(x, g.param("w" + std::to_string(i), {{8, 8}, F32}));
       });
     }},
    {"wide-softmax", [](int n) { return wide(n, [](Graph& g, Expr x, int i) { return g.softmax(x + i); }); }},
    {"concat",
     [](int n) {
       Graph g("concat");
       const std::vector<Expr> values = sines(g, n);
       g.set_outputs({g.concat(values, 0)});
       return g;
     }},
    {"outputs",
     [](int n) {
       Graph g("outputs");
       g.set_outputs(sines(g, n));
       return g;
     }},
    {"inputs",
     [](int n) {
       Graph g("inputs");
       Expr sum = g.input("i0", {{4}, F32});
       for (int i = 1; i < n; ++i) sum = sum + g.input("i" + std::to_string(i), {{4}, F32});
       g.set_outputs({sum});
       return g;
     }},
    {"states",
     [](int n) {
       Graph g("states");
       Expr x = g.input("x", {{4}, F32});
       for (int i = 0; i < n; ++i) {
         const std::string name = "s" + std::to_string(i);
         g.set_state(name, g.state(name, Tensor::zeros({{4}, F32})) * 0.5 + x);
       }
       g.set_outputs({x + 1});
       return g;
     }},
    {"gradient",
     [](int n) {
       Graph g = softmax_chain(n);
       g.set_outputs({g.sum(g.expr(g.outputs()[0]))});
       return value_and_grad(g, {"x"}).graph;
     }},
    {"gradient-weights",
     [](int n) {
       Graph g("layers");
       Expr h = g.input("x", {{4, 8}, F32});
       std::vector<Wrt> weights;
       for (int i = 0; i < std::max(1, n / 8); ++i) {  // a layer and its gradients have nine nodes
         const std::string name = "w" + std::to_string(i);
         weights.emplace_back(name);
         h = g.tanh(g.matmul(h, g.param(name, {{8, 8}, F32})));
       }
       g.set_outputs({g.sum(h)});
       return value_and_grad(g, weights).graph;
     }},
};

}  // namespace rlx::shapes
