// The memory plan: a location for every value, the schedule and its ordering edges, and the checker that proves them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/ir/module.h"

namespace rlx {

/// Plans a legal graph: views share bytes, kernels that allow it write over dead operands, states are updated in place
/// where their old value is dead, outputs are written in place, and buffers whose lives do not meet share arena bytes.
/// Symbolic dimensions are allowed: every decision then holds for all values within the symbols' bounds, buffers have
/// the largest size they can take, and the numbers in the plan are those of the upper bounds (`resize_plan` gives those
/// of other values). Of `donated` pairs of equal byte counts the plan allows those whose output is first written when
/// the input is no longer read. A target that plans its memory itself gets the donations, and the parts of what it does
/// not run as a whole (partition_parts.h). Throws OutOfMemory when
/// a buffer exceeds the target's limit, or all of them together what can be addressed.
/// Inputs and outputs are on device `home`; where the target stands for several, each has arenas of its own.
LirBufferPlan plan_memory(const Graph& g, const Target& target, std::span<const LirAlias> donated = {},
                          std::uint32_t home = 0);

/// The device that runs each node of a graph whose inputs are on device `home`: the target's answers, and for a view
/// that of its operand, for a state that of the node which makes its new value, else the first of its readers'.
std::vector<std::uint32_t> devices_of_nodes(const Graph& g, const Target& target, std::uint32_t home);

/// Bytes of a shape as an expression.
Dim shape_bytes(const Shape& s);
/// Bytes of a value as an expression: those of its form, or of its shape.
Dim stored_size(const Graph& g, Value v);

/// The most bytes that a value of `g` takes within the bounds of the symbols.
std::size_t max_bytes(const Graph& g, Value v);

/// `plan`, made for a symbolic graph, at the extents of `g`, the same graph with its symbols bound: buffers, schedule
/// and edges stay, the sizes of values and the places of views become those of `g`.
LirBufferPlan resize_plan(const Graph& g, const LirBufferPlan& plan);

/// Every violation of a plan: a value overwritten before its last reader under the partial order of the schedule,
/// overlap of live buffers, locations outside their place. Empty when the plan is right.
std::vector<std::string> check_plan(const Graph& g, const LirBufferPlan& plan);

}  // namespace rlx
