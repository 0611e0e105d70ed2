// Traces weight matrices of matmuls back to the Params and values that hold their elements: out of bodies, and through
// ops that only move, widen or dequantize elements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rlx/device/target.h"
#include "rlx/ir/graph.h"

namespace rlx {

/// The graph of a program, or a body in it at any depth, with marks for the values that are constant during a run.
struct WeightScope {
  const Graph* graph = nullptr;
  std::vector<bool> pure{};  // by node: computed from frozen Params alone; in the program's own graph Constants count
                             // too
  std::vector<bool>
      loop_invariant{};  // by node: the same in every iteration of the loops around it, with known extents
  const WeightScope* parent = nullptr;
  NodeId node{};                 // the node of the parent that holds this body
  std::size_t index = 0;         // in the list of scopes; 0 is the program
  std::vector<NodeId> inputs{};  // of a body

  /// The operand of `node` that an Input of this body receives. `slice`: each iteration receives one slice of it (the
  /// xs of a scan).
  struct Source {
    std::uint32_t operand = 0;
    bool slice = false;
  };
  Source source(NodeId input) const;
  /// The number of times that a body runs in one run of the program: the product of the loops around it.
  /// kUnknownIterations inside a `while`.
  std::int64_t iterations() const;
};
inline constexpr std::int64_t kUnknownIterations = std::int64_t{1} << 40;

/// The program, followed by all bodies that the program's own device runs. Each body follows its parent. Values that
/// depend on weights alone are marked.
std::vector<std::unique_ptr<WeightScope>> weight_scopes(const Graph& g, std::vector<bool> pure, const Target& target);

/// Adjacent columns of a matrix [K, N], as they lie in a value of the program. Element (k, j) is at `start`, plus k
/// along `k_axis`, plus j along `n_axis`.
struct WeightRegion {
  Value value;
  int k_axis = 0, n_axis = 1;
  std::vector<std::int64_t> start;  // by axis
  std::int64_t columns = 0;
  QuantScheme scheme = QuantScheme::Affine;  // blocks: `value` holds them, `start` counts elements
};
/// The extents of a region's value in elements. For blocks, the elements that the blocks stand for.
std::vector<std::int64_t> element_dims(const WeightRegion& r, const Shape& of);

/// The weight matrix that a matmul reads. In the body of a scan that receives one matrix of a stacked weight in each
/// iteration: the matrices of all iterations.
struct WeightMatrices {
  std::vector<WeightRegion> regions;  // of one matrix after the other
  std::int64_t count = 1;
  const WeightScope* stack = nullptr;  // the body that receives one matrix in each iteration
};

/// Traces `matrix`, pure and of rank 2, to the values that hold its elements. None when two nested scans both slice the
/// weight, so that the inner body receives rows of rows.
std::optional<WeightMatrices> trace_weight(const WeightScope& scope, Value matrix, int n_axis);
/// The same for the matrices of `stack`, a pure value of the program of rank 3: [count, K, N] or [count, N, K]. None
/// for one matrix, and for more than kMostStacked.
std::optional<WeightMatrices> trace_stack(const WeightScope& scope, Value stack, int n_axis);
/// The same for a loop-invariant matrix that the run computes. The result is never a stack.
WeightMatrices trace_loop_invariant(const WeightScope& scope, Value matrix, int n_axis);

}  // namespace rlx
