// The memory plan of a program as JSON: schedule, buffers with their lives, who runs which step.
#pragma once

#include "rlx/base/json_text.h"
#include "rlx/ir/module.h"
#include "rlx/report/records.h"

namespace rlx {

/// Appends the plan of `m` and those of the bodies in it as members of the open array, each
/// {"name", "body", "arenas": [[bytes, device]], "alignment", "peak", "unshared", "opaque", "steps": [node, ..],
/// "devices": [first step, device, ..], "buffers": [[node, result, arena, offset, bytes, first step, last step, how,
/// node it is written over], ..], "elsewhere": [[node, result, place, bytes, first step, last step], ..],
/// "held": [[node, arena, offset, bytes, step], ..], "parts", "notes"}. A first step of -1: before the run; a last one
/// of the number of steps: behind it. `body` is the number of the graph among the bodies, -1 for the program's own.
void write_plans(JsonText& json, const LirModule& m, ReportRecords& records, ReportStrings& strings);

}  // namespace rlx
