// Legalization with a record of what became of each node, from which a compile makes its one report. Internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/compiler/legalize.h"

namespace rlx {

/// How one node reaches the device.
struct NodeDispatch {
  OpKind kind;
  std::string name;  // the op's name; for a Custom op its registered name
  DispatchPath path;
  const char* why = nullptr;  // the target's reason, static text; null when it takes the node or was not asked
};
/// The dispatch of a node that stays as it is.
NodeDispatch dispatch_of(const Graph& g, NodeId id, const Claims& claims, const KernelDispatchConfig& dispatch);

/// What the steps of legalization did to a program.
struct DispatchRecord {
  std::vector<NodeDispatch> decomposed{};  // nodes that the program no longer has
  std::vector<NodeDispatch> left{};        // the nodes that run, of its bodies too, each body once
  std::vector<Diagnostic> unsupported{};   // one per node of `left` that cannot run
  /// Adds what a later step did. The nodes that it left replace those left before.
  void continue_with(DispatchRecord later);
};

struct Legalized {
  Graph graph;
  DispatchRecord record{};
};
/// Legalizes as `rewrite_for_backend` does.
Legalized legalized(Graph g, const Claims& claims, std::string_view backend_name, const KernelDispatchConfig& dispatch);

/// Throws one Unsupported error that lists every node of `legal` that cannot run.
void require_legal(const Legalized& legal, const Claims& claims, std::string_view backend_name);

/// Counts the record.
KernelDispatchReport dispatch_report(const DispatchRecord& record, const Claims& claims, std::string_view backend_name,
                                     const KernelDispatchConfig& dispatch);

}  // namespace rlx
