// Reports and dumps of compiles that environment variables or options ask for.
#pragma once

#include <memory>

#include "rlx/base/trace.h"
#include "rlx/compiler/pipeline.h"

namespace rlx {

/// Prints the fusion report to the standard error when RLX_FUSION_REPORT, RLX_VERBOSE or `verbose` is on; returns
/// whether.
bool maybe_log_fusion(const CompileResult& result, bool verbose = false);
/// Prints the dispatch report when RLX_DISPATCH_REPORT, RLX_VERBOSE or `verbose` is on; returns whether.
bool maybe_log_dispatch(const CompileResult& result, bool verbose = false);
/// Writes the stages of a result to what RLX_IR_DUMP names (dump_pipeline): the first compile of the process replaces a
/// file, later ones append. Returns the file, empty when the variable is unset.
std::string maybe_dump_pipeline(const CompileResult& result);

/// The timeline of the process that RLX_TRACE names, one for each file, written when the process ends; null when the
/// variable is unset, or when nothing can be written there: that is said on the standard error, once.
std::shared_ptr<Trace> env_trace();

}  // namespace rlx
