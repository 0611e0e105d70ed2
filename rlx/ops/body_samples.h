// Shared helpers of the samples of ops with an epilogue.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rlx/testing/op_samples.h"

namespace rlx::testing {

/// The epilogue that build(graph, inputs) builds. Its inputs are the first result and the operands.
template <class Build>
Subgraph sample_epilogue(const Shape& acc, std::span<const Shape> operands, Build&& build) {
  auto g = std::make_shared<Graph>("epilogue");
  std::vector<Expr> in{g->input("acc", acc)};
  for (std::size_t i = 0; i < operands.size(); ++i) in.push_back(g->input(concat_text("op", i), operands[i]));
  g->set_outputs({build(*g, in)});
  return g;
}

}  // namespace rlx::testing
