// Traces the matrices that matmuls read repeatedly to the elements that hold them, through bodies and through ops that
// only move, widen or decode them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rlx/device/target.h"
#include "rlx/ir/graph.h"

namespace rlx {

/// The graph of a program, or a body in it at any depth, and the values in it that are constant.
struct WeightScope {
  const Graph* graph = nullptr;
  std::vector<bool> pure{};  // by node: computed from frozen Params (in the program, also Constants) alone
  std::vector<bool>
      loop_invariant{};  // by node: the same in every iteration of the loops around it, with known extents
  const WeightScope* parent = nullptr;
  NodeId node{};                 // the node of the parent that holds this body
  std::size_t index = 0;         // in the list of scopes; 0 is the program
  std::vector<NodeId> inputs{};  // of a body

  /// The operand of `node` that an Input of this body takes, and whether it takes rows of it.
  struct Source {
    std::uint32_t operand = 0;
    bool row = false;
  };
  Source source(NodeId input) const;
  /// How many iterations the loops around a body run in one run of the program; kUnknownIterations when a `while`
  /// decides.
  std::int64_t iterations() const;
};
inline constexpr std::int64_t kUnknownIterations = std::int64_t{1} << 40;

/// The program, followed by all bodies that the program's own device runs. Each body follows its parent. Values that
/// depend on weights alone are marked.
std::vector<std::unique_ptr<WeightScope>> weight_scopes(const Graph& g, std::vector<bool> pure, const Target& target);

/// Columns of a matrix [K, N] in a value of the program. Element (k, j) is at `start`, plus k along `k_axis`, plus j
/// along `n_axis`.
struct WeightRegion {
  Value value;
  int k_axis = 0, n_axis = 1;
  std::vector<std::int64_t> start;  // by axis
  std::int64_t columns = 0;
  QuantScheme scheme = QuantScheme::Affine;  // blocks: `value` holds them, `start` counts elements
};
/// The extents of a region's value in elements. For blocks, the elements that the blocks stand for.
std::vector<std::int64_t> element_dims(const WeightRegion& r, const Shape& of);

/// A matrix that a matmul reads, or, in the body of a scan that takes one matrix in each step, the matrices of all
/// steps.
struct WeightMatrices {
  std::vector<WeightRegion> regions;  // of one matrix after the other
  std::int64_t count = 1;
  const WeightScope* stack = nullptr;  // the body that takes one matrix in each step
};

/// Traces `matrix`, pure and of rank 2, to the values that hold its elements. None when a body within a body takes rows
/// of rows.
std::optional<WeightMatrices> trace_weight(const WeightScope& scope, Value matrix, int n_axis);
/// The same for the matrices of `stack`, a pure value of the program of rank 3: [count, K, N] or [count, N, K]. None
/// for one matrix, and for more than kMostStacked.
std::optional<WeightMatrices> trace_stack(const WeightScope& scope, Value stack, int n_axis);
/// The same for a loop-invariant matrix, to values of the program. Never a stack.
WeightMatrices trace_loop_invariant(const WeightScope& scope, Value matrix, int n_axis);

}  // namespace rlx
