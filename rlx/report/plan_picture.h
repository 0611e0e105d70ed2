// The memory plan of a program as JSON: schedule, buffers with their lifetimes, device of each step.
#pragma once

#include "rlx/base/json_writer.h"
#include "rlx/ir/module.h"
#include "rlx/report/records.h"

namespace rlx {

/// Appends the plans of `m` and of the bodies in it as members of the open array, each {"name", "body", "arenas":
/// [[bytes, device]], "alignment", "peak", "unshared", "opaque", "steps": [node, ..], "devices": [first step, device,
/// ..], "buffers": [[node, result, arena, offset, bytes, first step, last step, how, node it is written over], ..],
/// "elsewhere": [[node, result, place, bytes, first step, last step], ..], "held": [[node, arena, offset, bytes, step],
/// ..], "parts", "notes"}. First step -1 means before the run; a last step equal to the number of steps means after it.
/// `body` is the number of the graph among the bodies, -1 for the program's own graph.
void write_plans(JsonWriter& json, const LirModule& m, ReportRecords& records, ReportStrings& strings);

}  // namespace rlx
