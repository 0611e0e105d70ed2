// The memory plan: a location for every value, the schedule with its ordering edges, and the checker that proves them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/ir/module.h"

namespace rlx {

/// Plans a legal graph. Views share bytes. Kernels that allow it write over dead operands. States are updated in place
/// when their old value is dead. Outputs are written in place. Buffers with disjoint lifetimes share arena bytes.
///
/// Symbolic dimensions are allowed. Every decision then holds for all values within the symbols' bounds, buffers have
/// their largest possible size, and the numbers in the plan are those of the upper bounds (`resize_plan` gives the
/// numbers of other values).
///
/// Of the `donated` pairs of equal byte counts, the plan allows those whose output is first written after the last read
/// of the input. A target that plans its own memory gets the donations, and the partitions of a program that it does
/// not run as a whole (partition.h).
///
/// Inputs and outputs are on device `home`. A target that stands for several devices gives each its own arenas. Throws
/// OutOfMemory when a buffer exceeds the target's limit, or when all buffers together exceed the address space.
LirBufferPlan plan_memory(const Graph& g, const Target& target, std::span<const LirAlias> donated = {},
                          std::uint32_t home = 0);

/// The device that runs each node of a graph whose inputs are on device `home`. The target answers for most nodes. A
/// view has the device of its operand. A state has the device of the node that makes its new value, otherwise the first
/// of its readers' devices.
std::vector<std::uint32_t> devices_of_nodes(const Graph& g, const Target& target, std::uint32_t home);

/// Bytes of a shape, as an expression.
Dim shape_bytes(const Shape& s);
/// Bytes of a value, as an expression: the bytes of its packed layout, or of its shape.
Dim stored_size(const Graph& g, Value v);

/// The largest number of bytes that a value of `g` takes within the bounds of the symbols.
std::size_t max_bytes(const Graph& g, Value v);

/// Resizes `plan`, made for a symbolic graph, to the extents of `g`, the same graph with its symbols bound. Buffers,
/// schedule and edges stay. The sizes of values and the offsets of views become those of `g`.
LirBufferPlan resize_plan(const Graph& g, const LirBufferPlan& plan);

/// Returns every violation of a plan: a value overwritten before its last reader under the partial order of the
/// schedule, an overlap of live buffers, a location outside its place. Empty when the plan is correct.
std::vector<std::string> check_plan(const Graph& g, const LirBufferPlan& plan);

}  // namespace rlx
