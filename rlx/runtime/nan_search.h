// The search for the op at which a NaN of a run begins: the ops that the result depends on run again one at a time.
// Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/runtime/nan_check.h"

namespace rlx {

/// True for dtypes that have a NaN.
bool may_be_nan(DType t);
/// The first element of a host tensor that `check` looks for.
std::optional<std::int64_t> first_not_finite(const Tensor& t, NanCheck check);
/// "nan", "inf" or "-inf": what the check finds in an element.
std::string not_finite_text(const Tensor& t, std::int64_t element);
/// The position of a row-major element.
std::vector<std::int64_t> position_of(const Shape& shape, std::int64_t element);

/// A compiled graph: takes host tensors in the order of its Inputs.
using SmallProgram = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// The run that is searched.
struct SearchedRun {
  const Graph& graph;  // static
  NamedTensors inputs, states;
  std::function<Tensor(const std::string&)> param;
  /// Compiles a graph for the device of the run. `params` are the values of its Params.
  std::function<SmallProgram(Graph, const NamedTensors& params)> compile;
  NanCheck check = NanCheck::Nan;
  bool other_ranks = false;  // the program runs on several ranks together
};

/// Where an element of a result begins.
struct NanFound {
  NanOrigin origin;
  std::string sentence;  // "log(-1) gives nan, element [2] of [4] f32"
  std::string where;     // the node, its line, and the loops around it
};
/// The op, first in the order of the program, from which an element of `roots` that the check looks for comes: its
/// operands have none there. None when the ops, run one at a time, give no such element.
std::optional<NanFound> find_nan(const SearchedRun& run, const std::vector<Value>& roots);

}  // namespace rlx
