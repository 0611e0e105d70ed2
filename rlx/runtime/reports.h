// Reports and dumps of compiles that environment variables or options request.
#pragma once

#include <memory>

#include "rlx/base/trace.h"
#include "rlx/compiler/pipeline.h"

namespace rlx {

/// Prints the fusion report to standard error when RLX_FUSION_REPORT, RLX_VERBOSE or `verbose` is on. Returns true if
/// it printed.
bool maybe_log_fusion(const CompileResult& result, bool verbose = false);
/// Prints the dispatch report when RLX_DISPATCH_REPORT, RLX_VERBOSE or `verbose` is on. Returns true if it printed.
bool maybe_log_dispatch(const CompileResult& result, bool verbose = false);
/// Writes the stages of a result to the file that RLX_IR_DUMP names (dump_pipeline). The first compile of the process
/// replaces the file, later ones append. Returns the file, or an empty string when the variable is unset.
std::string maybe_dump_pipeline(const CompileResult& result);

/// The process trace that RLX_TRACE names. There is one per file, written when the process ends. Null when the variable
/// is unset, or when the file cannot be written; standard error reports that once.
std::shared_ptr<Trace> env_trace();

}  // namespace rlx
