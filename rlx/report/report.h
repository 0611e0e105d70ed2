// One HTML page that shows a compile: every pass, fusion, memory, kernels. It needs no network and no other file.
#pragma once

#include <string>
#include <vector>

#include "rlx/compiler/pipeline.h"
#include "rlx/device/backend.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

/// What a page shows besides the result of a compile.
struct ReportOptions {
  std::string title;            // empty: the name of the graph
  std::vector<NodeTime> times;  // of a profiled run of the same program (median_profile); empty: the page says how
  MachineLimits limits;         // the floors beside them (Backend::measure_limits); none: times alone
  std::string times_note;       // how they were taken: "median of 15 runs on one thread"
};

/// The page of a result, which shows every pass when it was compiled with CompileOptions::keep_stages, else the program
/// as planned. Linear in the nodes of all stages: some 2 MB and half a second for 10,000 nodes. Texts of the graph may
/// hold any bytes.
std::string inspect_html(const CompileResult& result, const ReportOptions& options = {});
/// The page of the program that the last used shape of `program` runs.
std::string inspect_html(const CompiledGraph& program, const ReportOptions& options = {});

using PageOptions [[deprecated("now ReportOptions")]] = ReportOptions;

}  // namespace rlx
