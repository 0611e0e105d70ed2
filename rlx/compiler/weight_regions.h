// Where the elements of the matrices that products read again and again lie, through bodies and whatever only moves,
// widens or decodes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rlx/device/target.h"
#include "rlx/ir/graph.h"

namespace rlx {

/// A program's graph, or a body in it at any depth, and which of its values are the same whenever they are read.
struct WeightScope {
  const Graph* graph = nullptr;
  std::vector<bool> pure{};  // by node: computed from frozen Params (and, of the program, Constants) alone
  std::vector<bool>
      loop_invariant{};  // by node: the same in every step of the loops around, and of extents that are known
  const WeightScope* parent = nullptr;
  NodeId node{};                 // of the parent, that holds this body
  std::size_t index = 0;         // in the list of scopes; 0 is the program
  std::vector<NodeId> inputs{};  // of a body

  /// The operand of `node` that an Input of this body takes, and whether it takes rows of it.
  struct Source {
    std::uint32_t operand = 0;
    bool row = false;
  };
  Source source(NodeId input) const;
  /// How often the loops around a body turn for one run of the program; kUnknownTrips where a `while` decides.
  std::int64_t trips() const;
};
inline constexpr std::int64_t kUnknownTrips = std::int64_t{1} << 40;

/// The program with what weights decide in it, followed by all bodies that the program's own device runs; each behind
/// its parent.
std::vector<std::unique_ptr<WeightScope>> weight_scopes(const Graph& g, std::vector<bool> pure, const Target& target);

/// Columns of a matrix [K, N] in a value of the program: element (k, j) is at `start`, k further along `k_axis`, j
/// along `n_axis`.
struct WeightRegion {
  Value value;
  int k_axis = 0, n_axis = 1;
  std::vector<std::int64_t> start;  // by axis
  std::int64_t columns = 0;
  QuantScheme scheme = QuantScheme::Affine;  // blocks: `value` holds them, `start` counts elements
};
/// The extents of a region's value in elements: of blocks those that they stand for.
std::vector<std::int64_t> element_dims(const WeightRegion& r, const Shape& of);

/// A matrix that a product reads, or, in the body of a scan that takes one in each step, the matrices of all steps.
struct WeightMatrices {
  std::vector<WeightRegion> regions;  // of one matrix after the other
  std::int64_t count = 1;
  const WeightScope* stack = nullptr;  // the body that takes one in each step
};

/// Follows `matrix`, pure and of rank 2, to what holds its elements. None where a body inside a body takes rows of
/// rows.
std::optional<WeightMatrices> trace_weight(const WeightScope& scope, Value matrix, int n_axis);
/// Likewise the matrices of `stack`, pure, of rank 3 and of a value of the program: [count, K, N], or [count, N, K].
/// None for one matrix, and for more than anybody stacks.
std::optional<WeightMatrices> trace_stack(const WeightScope& scope, Value stack, int n_axis);
/// Likewise of a matrix that is steady: to values of the program. Never a stack.
WeightMatrices trace_steady(const WeightScope& scope, Value matrix, int n_axis);

}  // namespace rlx
