// One HTML report of a compile: every pass, fusion, memory, kernels. It needs no network and no other file.
#pragma once

#include <string>
#include <vector>

#include "rlx/compiler/pipeline.h"
#include "rlx/device/backend.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

/// What a report shows besides the result of a compile.
struct ReportOptions {
  std::string title;            // empty: the name of the graph
  std::vector<NodeTime> times;  // times of a profiled run (median_profile); empty: the report says how to measure
  MachineLimits limits;         // the roofline limits beside the times (Backend::measure_limits); none: times alone
  std::string times_note;       // how the times were measured: "median of 15 runs on one thread"
};

/// The report of a result. It shows every pass when the program was compiled with CompileOptions::keep_stages, else the
/// program as planned. Linear in the nodes of all stages: some 2 MB and half a second for 10,000 nodes. Names in the
/// graph may hold any bytes.
std::string inspect_html(const CompileResult& result, const ReportOptions& options = {});
/// The report of the program that `program` runs for its most recent shape.
std::string inspect_html(const CompiledGraph& program, const ReportOptions& options = {});

using PageOptions [[deprecated("now ReportOptions")]] = ReportOptions;

}  // namespace rlx
