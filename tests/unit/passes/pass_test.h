// Shared graphs and checks for the tests of passes.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/passes/passes.h"
#include "tests/support/count_ops.h"

namespace rlx::test {

/// Values in [-1, 1) (integers in [0, 4), Bool 0 or 1) that depend on `seed` alone.
inline Tensor random_tensor(const Shape& shape, std::uint64_t seed) {
  Tensor t = Tensor::zeros(shape);
  std::uint64_t s = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (std::int64_t i = 0; i < t.num_elements(); ++i) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    const double unit = static_cast<double>(s >> 11) * 0x1p-53;
    if (is_inexact(shape.dtype()))
      t.set(i, 2 * unit - 1);
    else
      t.set_i64(i, static_cast<std::int64_t>(unit * (shape.dtype() == DType::Bool ? 2 : 4)));
  }
  return t;
}

/// A value for every input, param and state of `g`.
inline NamedTensors random_leaves(const Graph& g, std::uint64_t seed) {
  NamedTensors out;
  for (OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State})
    for (NodeId id : g.leaves(kind)) out.emplace(g.leaf_name(id), random_tensor(g.node(id).shape(), ++seed));
  return out;
}

/// Runs `g` and `after` on random leaves; their outputs and states must agree within `tolerance` (of max(1, |value|)).
inline void check_same_results(const Graph& g, const Graph& after, double tolerance, std::uint64_t seed = 1) {
  INFO(print_text(g));
  INFO(print_text(after));
  const std::vector<Diagnostic> problems = verify(after, Level::Hir);
  REQUIRE_MESSAGE(problems.empty(), problems.front().message);
  const NamedTensors leaves = random_leaves(g, seed);
  const EvaluateResult want = evaluate_with_states(g, leaves), got = evaluate_with_states(after, leaves);
  REQUIRE(want.outputs.size() == got.outputs.size());
  auto compare = [&](const Tensor& a, const Tensor& b) {
    REQUIRE(a.shape() == b.shape());
    if (is_complex(a.dtype())) {
      CHECK(a.identical(b));
      return;
    }
    for (std::int64_t i = 0; i < a.num_elements(); ++i) {
      const double x = a.at(i), y = b.at(i);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      CHECK(std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x)));
    }
  };
  for (std::size_t i = 0; i < want.outputs.size(); ++i) compare(want.outputs[i], got.outputs[i]);
  for (const auto& [name, value] : want.states) compare(value, got.states.at(name));
}

/// The canonical passes, then the fusion passes, as the compiler runs them.
inline Graph run_all(const Graph& g, PassContext context) {
  std::vector<const Pass*> passes{&lower_hir,          &canonicalize_convs, &canonicalize_dots,
                                  &cancel_layout_ops,  &fold_constants,     &eliminate_common_subexpressions,
                                  &eliminate_dead_code};
  for (const Pass* p : fusion_passes_for_supported(context.claims->kinds(), context.options)) passes.push_back(p);
  return run_passes(g, passes, context);
}

}  // namespace rlx::test
