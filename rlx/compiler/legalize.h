// Legalisation: every node becomes one the target claims, or one error names all that cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_set.h"

namespace rlx {

/// How a kind of op reaches the device.
enum class DispatchPath : std::uint8_t {
  Native,          // a kernel row takes it as it is
  CommonIr,        // it was decomposed because the dispatch policy asks for the portable form
  Rewritten,       // it was decomposed because no kernel takes it
  HostFallback,    // neither kernel nor decomposition: the host runs it, on the cpu by its reference rule
  HostControlled,  // a branch or loop without a kernel: the host decides, its bodies run where they are claimed
  Unsupported,     // none of these
};
std::string_view dispatch_path_name(DispatchPath p);

/// Kernel or decomposition, where an op has both.
enum class KernelDispatchPolicy : std::uint8_t {
  PreferNative,  // the kernel where there is one, else the decomposition
  ForceCommon,   // the decomposition wherever there is one: what a kernel does is compared with it, and bugs are found
                 // by it
  ForceNative,   // the kernel; an op without one is an error, never decomposed, never on the host
};
std::string_view kernel_dispatch_policy_name(KernelDispatchPolicy p);
/// The policy called "native", "common" or "prefer_native" ("force_native" and "force_common" too); none for other
/// text.
std::optional<KernelDispatchPolicy> parse_kernel_dispatch_policy(std::string_view text);

/// A policy for all kinds, and kinds that have their own; a kind in both lists is forced native.
struct KernelDispatchConfig {
  KernelDispatchPolicy policy = KernelDispatchPolicy::PreferNative;
  std::vector<OpKind> force_common_kinds{}, force_native_kinds{};
  bool host_fallback = true;  // false: an op with neither kernel nor decomposition is an error, never slow
  KernelDispatchPolicy policy_of(OpKind kind) const;
};

struct KindDispatch {
  OpKind kind;
  std::string name;  // the op's name; of a Custom op the registered one
  DispatchPath path;
  std::string why{};  // the target's reason where no kernel takes them
  std::size_t node_count = 0;
};

/// What legalisation did, by kind: the nodes that were decomposed, and the nodes that are left, which are what runs.
struct KernelDispatchReport {
  std::string backend_name;
  KernelDispatchPolicy policy = KernelDispatchPolicy::PreferNative;
  std::size_t supported_claim_count = 0;
  std::vector<KindDispatch> summaries;  // sorted by kind, name, path, reason
  std::vector<Diagnostic> unsupported;  // one per offending node
  bool compile_ready() const { return unsupported.empty(); }
  /// Adds a later legalisation of the same program: what is left of it takes the place of what was left before.
  void continue_with(KernelDispatchReport later);
  std::string text() const;
};

/// Ops every target runs without a kernel: leaves, views the planner resolves, and copies between devices.
bool needs_no_kernel(const Node& n);

/// The nodes, with their kinds, that a backend of these claims cannot run as they are; empty when `g` is legal.
std::vector<std::pair<NodeId, OpKind>> legalize_for_backend(const Graph& g, const Claims& claims);

/// Decomposes what `claims` does not take (or `dispatch` wants decomposed) until everything is claimed, or is left to
/// the host (`Claims::on_host`). Offenders are listed in the report; the graph then still holds them.
Graph rewrite_for_backend(Graph g, const Claims& claims, std::string_view backend_name, KernelDispatchReport& report,
                          const KernelDispatchConfig& dispatch = {});
/// The same, throwing one Unsupported error that lists every offender.
Graph legalize_or_rewrite_for_backend(Graph g, const Claims& claims, std::string_view backend_name,
                                      KernelDispatchReport* report = nullptr,
                                      const KernelDispatchConfig& dispatch = {});

}  // namespace rlx
