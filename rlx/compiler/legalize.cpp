// Legalization: decomposes nodes until the target's claims cover every node.
#include "rlx/compiler/legalize.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>

#include "rlx/compiler/dispatch_record.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/rebuild.h"

namespace rlx {
namespace {
// A decomposition makes simpler ops, so nesting is shallow. A rule that makes its own kind again would loop.
constexpr int kMaxRounds = 16;

void append(std::vector<NodeDispatch>& to, std::vector<NodeDispatch> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Records name the op: all activations are one op, each custom op is one of its own.
NodeDispatch taking(const Node& n, DispatchPath path, const char* why) {
  return {n.kind(), std::string(op_def(n.op).name), path, why};
}

bool is_decomposed(const NodeDispatch& n) {
  return n.path == DispatchPath::CommonIr || n.path == DispatchPath::Rewritten;
}

// Native or decomposed; none when the target was not asked, because the node is never decomposed. A claim may cost as
// much as writing the kernel's program, so no node is asked twice.
std::optional<NodeDispatch> native_or_decomposed(const Graph& g, NodeId id, const Claims& claims,
                                                 const KernelDispatchConfig& dispatch) {
  const Node& n = g.node(id);
  if (n.kind() != OpKind::OptimizationBarrier) {
    if (needs_no_kernel(n) || !op_def(n.op).decompose.has()) return std::nullopt;
    const KernelDispatchPolicy policy = dispatch.policy_of(n.kind());
    if (policy == KernelDispatchPolicy::ForceCommon) return taking(n, DispatchPath::CommonIr, nullptr);
    if (policy == KernelDispatchPolicy::ForceNative) return std::nullopt;
  }
  const char* why = claims.refuses(g, id);
  return taking(n, why ? DispatchPath::Rewritten : DispatchPath::Native, why);
}

// Writes the replacement of a node that the target does not take. A barrier has done its work in the passes and becomes
// a view of each operand. Later passes do not look through these views either.
std::vector<Expr> written_out(Graph& g, const OpBox& op, const std::vector<Expr>& operands, const Claims& claims) {
  if (op.kind() != OpKind::OptimizationBarrier)
    return decompose_into(g, op, operands, FusionPolicy::Fusable, claims.branches_freely());
  std::vector<Expr> out;
  for (const Expr& e : operands) out.push_back(g.stop_gradient(e));
  return out;
}

// True when the reference rule could run the node. The policy decides whether it may.
bool fits_host(const Graph& g, NodeId id, const Claims& claims) {
  return !op_def(g.node(id).op).decompose.has() && claims.on_host(g, id);
}

// The dispatch path of a node that is not decomposed.
DispatchPath path_of_unclaimed(const Graph& g, NodeId id, const Claims& claims, const KernelDispatchConfig& dispatch) {
  const bool native_only = dispatch.policy_of(g.node(id).kind()) == KernelDispatchPolicy::ForceNative;
  if (!native_only && claims.host_controlled(g, id)) return DispatchPath::HostControlled;
  const bool allowed = dispatch.host_fallback && !native_only;
  return allowed && fits_host(g, id, claims) ? DispatchPath::HostFallback : DispatchPath::Unsupported;
}

Diagnostic offender(const Graph& g, NodeId id, const Claims& claims, std::string_view backend,
                    const KernelDispatchConfig& dispatch) {
  const Node& n = g.node(id);
  const OpDef& def = op_def(n.op);
  std::string shapes, hint;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) shapes += concat_text(i ? ", " : "", g.shape(n.inputs[i]));
  const auto add = [&](auto&&... text) { hint += concat_text(hint.empty() ? "" : "; ", text...); };
  if (n.kind() == OpKind::Custom)
    add("register a kernel for it (register_cpu_kernel on the cpu) or give its record a decomposition");
  const bool native_only = dispatch.policy_of(n.kind()) == KernelDispatchPolicy::ForceNative;
  if (def.decompose.has() && native_only) add("it has a decomposition, which the dispatch policy force_native forbids");
  if (def.decompose.reason()) add("it cannot be decomposed: ", def.decompose.reason());
  if (fits_host(g, id, claims))
    add("its reference rule could run it on the host, which the dispatch policy ",
        native_only ? "force_native" : "(host_fallback = false)", " forbids");
  return Diagnostic{
      ErrorCode::Unsupported,
      concat_text(op_text_name(n.op), "(", shapes, ") has no kernel on ", backend, ": ", claims.refuses(g, id)),
      node_where(g, id), std::move(hint)};
}

// Legalizes bodies before the nodes that hold them, because a kernel's claim of a node may depend on its bodies. A body
// that cannot be legalized stays unchanged, for a kernel that takes the node as a whole.
class BodyRewriter {
 public:
  // Adds the nodes that it decomposes to `record`.
  BodyRewriter(const Claims& claims, std::string_view backend_name, const KernelDispatchConfig& dispatch,
               DispatchRecord& record)
      : claims_(claims), backend_name_(backend_name), dispatch_(dispatch), record_(record) {}

  // Returns `g` with legal bodies. Bodies that an earlier call has seen are not examined again.
  Graph legal(Graph g) {
    std::optional<Graph> changed = change_bodies_of(g, [&](NodeId, const Subgraph& body) -> Subgraph {
      if (left_.count(body) != 0) return nullptr;
      const auto [it, fresh] = legal_.try_emplace(body);
      if (fresh) it->second = rewritten(*body);
      return it->second;
    });
    return changed ? std::move(*changed) : std::move(g);
  }

  // Records the remaining nodes in the legal bodies of `g`, once per body.
  void record_left(const Graph& g) {
    for (const Node& n : g.nodes())
      for (const Subgraph& body : body_graphs(n.op))
        if (auto known = left_.extract(body)) append(record_.left, std::move(known.mapped()));
  }

 private:
  Subgraph rewritten(const Graph& body) {
    Legalized inner = legalized(body, claims_, backend_name_, dispatch_);
    if (!inner.record.unsupported.empty()) return nullptr;
    append(record_.decomposed, std::move(inner.record.decomposed));
    auto legal = std::make_shared<const Graph>(std::move(inner.graph));
    left_.emplace(legal, std::move(inner.record.left));
    return legal;
  }

  const Claims& claims_;
  const std::string_view backend_name_;
  const KernelDispatchConfig& dispatch_;
  DispatchRecord& record_;
  std::map<Subgraph, Subgraph> legal_;                  // body -> its legal form; null: unchanged
  std::map<Subgraph, std::vector<NodeDispatch>> left_;  // remaining nodes of each legal body
};
}  // namespace

std::string_view dispatch_path_name(DispatchPath p) {
  constexpr std::string_view names[] = {"native",        "common-ir",       "rewritten",
                                        "host-fallback", "host-controlled", "unsupported"};
  if (static_cast<std::size_t>(p) >= std::size(names))
    detail::throw_no_enumerator("DispatchPath", static_cast<std::int64_t>(p));
  return names[static_cast<std::size_t>(p)];
}

std::string_view kernel_dispatch_policy_name(KernelDispatchPolicy p) {
  constexpr std::string_view names[] = {"prefer_native", "force_common", "force_native"};
  if (static_cast<std::size_t>(p) >= std::size(names))
    detail::throw_no_enumerator("KernelDispatchPolicy", static_cast<std::int64_t>(p));
  return names[static_cast<std::size_t>(p)];
}

std::optional<KernelDispatchPolicy> parse_kernel_dispatch_policy(std::string_view text) {
  if (text == "common" || text == "force_common") return KernelDispatchPolicy::ForceCommon;
  if (text == "native" || text == "force_native") return KernelDispatchPolicy::ForceNative;
  if (text == "prefer_native") return KernelDispatchPolicy::PreferNative;
  return std::nullopt;
}

KernelDispatchPolicy KernelDispatchConfig::policy_of(OpKind kind) const {
  const auto in = [&](const std::vector<OpKind>& kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  if (in(force_native_kinds)) return KernelDispatchPolicy::ForceNative;
  if (in(force_common_kinds)) return KernelDispatchPolicy::ForceCommon;
  return policy;
}

std::string KernelDispatchReport::text() const {
  std::string out = concat_text("dispatch on ", backend_name, " (", supported_claim_count, " kinds claimed, ",
                                kernel_dispatch_policy_name(policy), ")\n");
  for (const KindDispatch& k : summaries)
    out += concat_text("  ", k.name, ": ", k.node_count, " ", dispatch_path_name(k.path), k.why.empty() ? "" : ": ",
                       k.why, "\n");
  for (const Diagnostic& d : unsupported) out += concat_text("  ", d.message, "\n    ", d.where, "\n");
  return out;
}

NodeDispatch dispatch_of(const Graph& g, NodeId id, const Claims& claims, const KernelDispatchConfig& dispatch) {
  const char* why = claims.refuses(g, id);
  return taking(g.node(id), why ? path_of_unclaimed(g, id, claims, dispatch) : DispatchPath::Native, why);
}

void DispatchRecord::continue_with(DispatchRecord later) {
  append(decomposed, std::move(later.decomposed));
  left = std::move(later.left);
  unsupported = std::move(later.unsupported);
}

KernelDispatchReport dispatch_report(const DispatchRecord& record, const Claims& claims, std::string_view backend_name,
                                     const KernelDispatchConfig& dispatch) {
  KernelDispatchReport report;
  report.backend_name = backend_name;
  report.policy = dispatch.policy;
  report.supported_claim_count = claims.kinds().count();
  std::map<std::tuple<OpKind, std::string_view, DispatchPath, std::string_view>, std::size_t> counts;
  for (const auto* nodes : {&record.decomposed, &record.left})
    for (const NodeDispatch& n : *nodes) ++counts[{n.kind, n.name, n.path, n.why ? n.why : ""}];
  for (const auto& [key, count] : counts) {
    const auto& [kind, name, path, why] = key;
    report.summaries.push_back({kind, std::string(name), path, std::string(why), count});
  }
  report.unsupported = record.unsupported;
  return report;
}

bool needs_no_kernel(const Node& n) {
  const OpDef& def = op_def(n.op);
  return def.is_leaf() || def.view == ViewKind::Always || n.kind() == OpKind::Transfer;
}

std::vector<std::pair<NodeId, OpKind>> legalize_for_backend(const Graph& g, const Claims& claims) {
  std::vector<std::pair<NodeId, OpKind>> illegal;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (const Node& n = g.nodes()[i];
        !needs_no_kernel(n) && dispatch_of(g, NodeId{i}, claims, {}).path == DispatchPath::Unsupported)
      illegal.emplace_back(NodeId{i}, n.kind());
  return illegal;
}

Legalized legalized(Graph g, const Claims& claims, std::string_view backend_name,
                    const KernelDispatchConfig& dispatch) {
  DispatchRecord record;
  BodyRewriter bodies(claims, backend_name, dispatch, record);
  std::vector<std::optional<NodeDispatch>> nodes;
  for (int round = 0;; ++round) {
    g = bodies.legal(std::move(g));  // includes bodies that the previous round made
    nodes.assign(g.num_nodes(), std::nullopt);
    if (round == kMaxRounds) break;
    bool any = false;
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
      nodes[i] = native_or_decomposed(g, NodeId{i}, claims, dispatch);
      any = any || (nodes[i] && is_decomposed(*nodes[i]));
    }
    if (!any) break;
    g = *replace_nodes(g, "legalize", [&](Rebuilder& r, NodeId id) -> Replacement {
      std::optional<NodeDispatch>& node = nodes[id.index];
      if (!node || !is_decomposed(*node)) return std::nullopt;
      record.decomposed.push_back(std::move(*node));
      return written_out(r.graph(), g.node(id).op, r.operands(id), claims);
    });
  }
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    if (needs_no_kernel(g.nodes()[i])) continue;
    record.left.push_back(nodes[i] ? std::move(*nodes[i]) : dispatch_of(g, NodeId{i}, claims, dispatch));
    if (record.left.back().path == DispatchPath::Unsupported)
      record.unsupported.push_back(offender(g, NodeId{i}, claims, backend_name, dispatch));
  }
  bodies.record_left(g);
  return {std::move(g), std::move(record)};
}

void require_legal(const Legalized& legal, const Claims& claims, std::string_view backend_name) {
  const std::vector<Diagnostic>& unsupported = legal.record.unsupported;
  if (unsupported.empty()) return;
  std::string where;
  for (const Diagnostic& d : unsupported)
    where +=
        concat_text(where.empty() ? "" : "\n  ", d.message, "\n    ", d.where, d.hint.empty() ? "" : "\n    ", d.hint);
  // When the device has no kernel of the kind at all, the dtype is not the cause.
  const bool of_the_dtype = std::any_of(legal.record.left.begin(), legal.record.left.end(), [&](const NodeDispatch& n) {
    return n.path == DispatchPath::Unsupported && claims.kinds().has(n.kind);
  });
  throw Error(Diagnostic{ErrorCode::Unsupported,
                         concat_text(unsupported.size(), unsupported.size() == 1 ? " node of '" : " nodes of '",
                                     legal.graph.name(), "' cannot run on ", backend_name),
                         std::move(where),
                         of_the_dtype ? "cast to a dtype the device computes with, or pick another device"
                                      : "write it in ops that the device has, or pick another device"});
}

Graph rewrite_for_backend(Graph g, const Claims& claims, std::string_view backend_name, KernelDispatchReport& report,
                          const KernelDispatchConfig& dispatch) {
  Legalized legal = legalized(std::move(g), claims, backend_name, dispatch);
  report = dispatch_report(legal.record, claims, backend_name, dispatch);
  return std::move(legal.graph);
}

Graph legalize_or_rewrite_for_backend(Graph g, const Claims& claims, std::string_view backend_name,
                                      KernelDispatchReport* report, const KernelDispatchConfig& dispatch) {
  Legalized legal = legalized(std::move(g), claims, backend_name, dispatch);
  if (report) *report = dispatch_report(legal.record, claims, backend_name, dispatch);
  require_legal(legal, claims, backend_name);
  return std::move(legal.graph);
}

}  // namespace rlx
