// Legalisation: every node becomes one the target claims, or one error names all that cannot.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/driver/backend.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_set.h"

namespace rlx {

/// How a kind of op reaches the device.
enum class DispatchPath : std::uint8_t {
  Native,       // a kernel row takes it as it is
  Rewritten,    // it was decomposed into claimed ops
  Unsupported,  // neither
};
std::string_view dispatch_path_name(DispatchPath p);

struct KindDispatch {
  OpKind kind;
  DispatchPath path;
  std::size_t node_count = 0;
};

/// What legalisation did, by kind.
struct KernelDispatchReport {
  std::string backend_name;
  std::size_t supported_claim_count = 0;
  std::vector<KindDispatch> summaries;  // sorted by kind, then path
  std::vector<Diagnostic> unsupported;  // one per offending node
  bool compile_ready() const { return unsupported.empty(); }
  std::string text() const;
};

/// Ops every target runs without a kernel: leaves, and views the planner resolves.
bool needs_no_kernel(const Node& n);

/// Decomposes what `claims` does not take until everything is claimed. Offenders are listed in the report; the graph then
/// still holds them.
Graph rewrite_for_backend(const Graph& g, const OpSet& claims, std::string_view backend_name, KernelDispatchReport& report);
/// The same, throwing one Unsupported error that lists every offender.
Graph legalize_or_rewrite_for_backend(const Graph& g, const OpSet& claims, std::string_view backend_name,
                                      KernelDispatchReport* report = nullptr);

}  // namespace rlx
