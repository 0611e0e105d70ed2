// Decomposition until a target's claims hold.
#include "rlx/compiler/legalize.h"

#include <algorithm>
#include <map>
#include <utility>

#include "rlx/ir/op_def.h"
#include "rlx/ir/rebuild.h"

namespace rlx {
namespace {
// A decomposition makes simpler ops, so nesting is shallow; a rule that made its own kind again would loop.
constexpr int kMaxRounds = 16;

using Counts = std::map<std::pair<OpKind, DispatchPath>, std::size_t>;

Diagnostic offender(const Graph& g, NodeId id, const OpSet& claims, std::string_view backend) {
  const Node& n = g.node(id);
  const OpDef& def = op_def(n.kind());
  std::string why = claims.has(n.kind()) ? "has no kernel for these dtypes and shapes" : "has no kernel";
  std::string shapes;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) shapes += concat_text(i ? ", " : "", g.shape(n.inputs[i]));
  return Diagnostic{ErrorCode::Unsupported, concat_text(op_text_name(n.op), "(", shapes, ") ", why, " on ", backend), node_where(g, id),
                    def.decompose.reason() ? concat_text("it cannot be decomposed: ", def.decompose.reason()) : std::string()};
}
}  // namespace

std::string_view dispatch_path_name(DispatchPath p) {
  constexpr std::string_view names[] = {"native", "rewritten", "unsupported"};
  return names[static_cast<std::size_t>(p)];
}

std::string KernelDispatchReport::text() const {
  std::string out = concat_text("dispatch on ", backend_name, " (", supported_claim_count, " kinds claimed)\n");
  for (const KindDispatch& k : summaries)
    out += concat_text("  ", op_def(k.kind).name, ": ", k.node_count, " ", dispatch_path_name(k.path), "\n");
  for (const Diagnostic& d : unsupported) out += concat_text("  ", d.message, "\n    ", d.where, "\n");
  return out;
}

bool needs_no_kernel(const Node& n) {
  const OpDef& def = op_def(n.kind());
  return def.is(OpTrait::Leaf) || n.kind() == OpKind::StopGradient;
}

Graph rewrite_for_backend(const Graph& source, const OpSet& claims, std::string_view backend_name, KernelDispatchReport& report) {
  report.backend_name = backend_name;
  report.supported_claim_count = claims.kinds.count();
  Counts counts;
  Graph g = source;
  for (int round = 0; round < kMaxRounds; ++round) {
    Rebuilder r(g, "legalize");
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
      NodeId id{i};
      const Node& n = g.node(id);
      if (needs_no_kernel(n) || claims.claims(g, id) || !op_def(n.kind()).decompose.has()) {
        r.copy(id);
        continue;
      }
      ++counts[{n.kind(), DispatchPath::Rewritten}];
      std::vector<Expr> operands = r.operands(id);
      r.replace(id, decompose_into(r.graph(), n.op, operands));
    }
    if (!r.changed()) break;
    g = drop_dead(std::move(r).finish());
  }
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    NodeId id{i};
    const Node& n = g.node(id);
    if (needs_no_kernel(n)) continue;
    bool native = claims.claims(g, id);
    ++counts[{n.kind(), native ? DispatchPath::Native : DispatchPath::Unsupported}];
    if (!native) report.unsupported.push_back(offender(g, id, claims, backend_name));
  }
  for (const auto& [key, count] : counts) report.summaries.push_back({key.first, key.second, count});
  return g;
}

Graph legalize_or_rewrite_for_backend(const Graph& g, const OpSet& claims, std::string_view backend_name, KernelDispatchReport* report) {
  KernelDispatchReport local;
  KernelDispatchReport& r = report ? *report : local;
  Graph out = rewrite_for_backend(g, claims, backend_name, r);
  if (r.unsupported.empty()) return out;
  std::string where;
  for (const Diagnostic& d : r.unsupported) where += concat_text(where.empty() ? "" : "\n  ", d.message, "\n    ", d.where, d.hint.empty() ? "" : "\n    ", d.hint);
  throw Error(Diagnostic{ErrorCode::Unsupported,
                         concat_text(r.unsupported.size(), r.unsupported.size() == 1 ? " node of '" : " nodes of '", g.name(), "' cannot run on ", backend_name),
                         std::move(where), "cast to a dtype the device computes with, or pick another device"});
}

}  // namespace rlx
