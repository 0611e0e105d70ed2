// The memory plan: a location for every value, the schedule and its ordering edges, and the checker that proves them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rlx/driver/backend.h"
#include "rlx/ir/module.h"

namespace rlx {

/// Plans a static, legal graph: views share bytes, kernels that allow it write over dead operands, states are updated in
/// place where their old value is dead, outputs are written in place, and buffers whose lives do not meet share arena
/// bytes. Of `donated` pairs of equal byte counts the plan allows those whose output is first written when the input is no
/// longer read. Throws OutOfMemory when a buffer exceeds the target's limit.
LirBufferPlan plan_memory(const Graph& g, const TargetInfo& target, std::span<const LirAlias> donated = {});

/// Every violation of a plan: a value overwritten before its last reader under the partial order of the schedule, overlap of
/// live buffers, locations outside their place. Empty when the plan is right.
std::vector<std::string> check_plan(const Graph& g, const LirBufferPlan& plan);

/// True for ops the planner resolves to views of their operand when strides allow.
bool is_view_op(OpKind kind);

/// Element strides of a reshape from (`dims`, `strides`) to `to` without moving bytes; none when there are none.
std::vector<std::int64_t> reshape_strides(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides,
                                          const std::vector<std::int64_t>& to, bool& possible);

/// One line per buffer: step range, offset, bytes, node.
std::string plan_text(const Graph& g, const LirBufferPlan& plan);

}  // namespace rlx
