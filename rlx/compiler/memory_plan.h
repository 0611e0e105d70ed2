// The memory plan: a location for every value, the schedule with its ordering edges, and the checker that proves them.
#pragma once

#include <optional>
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

/// Bytes of a shape, as an expression.
Dim shape_bytes(const Shape& s);
/// Bytes of a value, as an expression: the bytes of its packed layout, or of its shape.
Dim stored_size(const Graph& g, Value v);

/// The largest number of bytes that a value of `g` takes within the bounds of the symbols.
std::size_t max_bytes(const Graph& g, Value v);

/// Resizes `plan`, made for a symbolic graph, to the extents of `g`, the same graph with its symbols bound. Buffers,
/// schedule and edges stay. The sizes of values and the offsets of views become those of `g`.
LirBufferPlan resize_plan(const Graph& g, const LirBufferPlan& plan);

/// The same without the check, for a body: the check of its program covers it.
LirBufferPlan plan_unchecked(const Graph& g, const Target& target, std::span<const LirAlias> donated,
                             std::uint32_t home);

/// What a plan is checked against besides its graph.
struct PlanCheck {
  const Target* target = nullptr;  // what kernels allow; null: not checked
  std::uint32_t home = 0;          // the device of the inputs
  bool whole = true;               // false: the first steps of a program, before its outputs and states are complete
};

/// Returns the problems of a plan, empty when it is correct. Every field is within its range. Every value has the
/// place, size and strides that its op and its readers ask for. Every node has its step. No read finds bytes that
/// another value may have overwritten, under the partial order of the schedule. Every output and state receives its
/// value. The same holds in the bodies.
std::vector<std::string> check_plan(const Graph& g, const LirBufferPlan& plan, const PlanCheck& how = {});

/// Where view `id` lies when its operand lies at `operand`. None when its elements must move. Shapes are static.
std::optional<LirValue> placed_view(const Graph& g, NodeId id, const LirValue& operand);

}  // namespace rlx
