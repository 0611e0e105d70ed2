// Legalization: every node becomes one that the target claims, or one error names all nodes that cannot.
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
  Native,          // a kernel entry takes it unchanged
  CommonIr,        // decomposed because the dispatch policy asks for the common IR
  Rewritten,       // decomposed because no kernel takes it
  HostFallback,    // neither kernel nor decomposition: the host runs it, on the cpu by its reference rule
  HostControlled,  // a branch or loop without a kernel: the host decides, its bodies run on the devices that claim them
  Unsupported,     // none of these
  Driven [[deprecated("now HostControlled")]] = HostControlled,
};
std::string_view dispatch_path_name(DispatchPath p);

/// Choice between kernel and decomposition, for ops that have both.
enum class KernelDispatchPolicy : std::uint8_t {
  PreferNative,  // the kernel if there is one, otherwise the decomposition
  ForceCommon,   // the decomposition if there is one; for comparison with a kernel and for debugging
  ForceNative,   // the kernel; an op without one is an error, never decomposed and never run on the host
};
std::string_view kernel_dispatch_policy_name(KernelDispatchPolicy p);
/// The policy called "native", "common" or "prefer_native" ("force_native" and "force_common" too). None for other
/// text.
std::optional<KernelDispatchPolicy> parse_kernel_dispatch_policy(std::string_view text);

/// A policy for all kinds, with overrides per kind. A kind in both lists is forced native.
struct KernelDispatchConfig {
  KernelDispatchPolicy policy = KernelDispatchPolicy::PreferNative;
  std::vector<OpKind> force_common_kinds{}, force_native_kinds{};
  bool host_fallback = true;  // false: an op with neither kernel nor decomposition is an error instead of slow
  KernelDispatchPolicy policy_of(OpKind kind) const;
};

struct KindDispatch {
  OpKind kind;
  std::string name;  // the op's name; for a Custom op its registered name
  DispatchPath path;
  std::string why{};  // the target's reason when no kernel takes the nodes
  std::size_t node_count = 0;
};

/// What legalization did, by kind: the nodes that were decomposed, and the remaining nodes, which run.
struct KernelDispatchReport {
  std::string backend_name;
  KernelDispatchPolicy policy = KernelDispatchPolicy::PreferNative;
  std::size_t supported_claim_count = 0;
  std::vector<KindDispatch> summaries;  // sorted by kind, name, path, reason
  std::vector<Diagnostic> unsupported;  // one per offending node
  bool compile_ready() const { return unsupported.empty(); }
  std::string text() const;
};

/// Ops that every target runs without a kernel: leaves, views that the planner resolves, and copies between devices.
bool needs_no_kernel(const Node& n);

/// The nodes, with their kinds, that a backend with these claims cannot run unchanged. Empty when `g` is legal.
std::vector<std::pair<NodeId, OpKind>> legalize_for_backend(const Graph& g, const Claims& claims);

/// Decomposes nodes that `claims` does not take, or that `dispatch` wants decomposed, until every node is claimed or
/// left to the host (`Claims::on_host`). The report lists the nodes that cannot be legalized; the graph then still
/// holds them.
Graph rewrite_for_backend(Graph g, const Claims& claims, std::string_view backend_name, KernelDispatchReport& report,
                          const KernelDispatchConfig& dispatch = {});
/// The same, but throws one Unsupported error that lists every node that cannot be legalized.
Graph legalize_or_rewrite_for_backend(Graph g, const Claims& claims, std::string_view backend_name,
                                      KernelDispatchReport* report = nullptr,
                                      const KernelDispatchConfig& dispatch = {});

}  // namespace rlx
