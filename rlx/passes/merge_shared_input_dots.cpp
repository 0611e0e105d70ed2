// merge-shared-input-dots: matmuls of one value with several weights become one matmul with the joined weight.
#include <algorithm>
#include <compare>
#include <map>
#include <tuple>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/match.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

constexpr std::string_view kSharedInputPattern = "shared_input_matmul";

using Group = std::vector<BiasedMatmul>;

// Matmuls of the same x, in node order. Only these can be joined: x [.., K] contracted over its last axis with one
// matrix.
std::map<Value, std::vector<std::pair<NodeId, MatmulDims>>> matmuls_by_lhs(const Graph& g,
                                                                           const std::vector<bool>& param_only) {
  std::map<Value, std::vector<std::pair<NodeId, MatmulDims>>> out;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    NodeId id{i};
    OpKind kind = g.node(id).kind();
    if (kind != OpKind::DotGeneral && kind != OpKind::FusedDot) continue;
    std::optional<MatmulDims> m = as_matmul(g, id);
    if (!m || !m->batch.empty() || m->lhs_transposed || param_only[i]) continue;
    if (g.shape(m->rhs).rank() == 2) out[m->lhs].emplace_back(id, *m);
  }
  return out;
}

// How a weight is stored, when it is widened before use. Only weights of equal storage can be concatenated without
// conversion. For others, every run would read a widened copy.
struct Storage {
  OpKind widened = OpKind::Param;  // Dequantize or Cast; Param: not widened
  QuantScheme scheme = QuantScheme::Affine;
  DType dtype = DType::F32;
  friend auto operator<=>(const Storage&, const Storage&) = default;
};
Storage storage_of(const Graph& g, Value weight) {
  const Node* n = &g.node(weight.node);
  while (n->kind() == OpKind::Transpose || n->kind() == OpKind::Reshape) n = &g.node(n->inputs[0].node);
  if (n->kind() != OpKind::Dequantize && n->kind() != OpKind::Cast) return {};
  const QuantScheme scheme = n->kind() == OpKind::Dequantize ? n->op.as<ops::Dequantize>().scheme : QuantScheme::Affine;
  return {n->kind(), scheme, g.shape(n->inputs[0]).dtype()};
}

std::string list_text(const Group& group) {
  std::string out;
  for (const BiasedMatmul& m : group) out += concat_text(out.empty() ? "" : ", ", m.dot);
  return out;
}

// "layer0/q+k+v": the labels of the matmuls with their common folder once; the label that all have; empty when one has
// none.
std::string joined_label(const Graph& g, const Group& group) {
  const std::string& first = g.node(group[0].dot).origin.label;
  if (std::all_of(group.begin(), group.end(), [&](const auto& m) { return g.node(m.dot).origin.label == first; }))
    return first;
  const std::size_t slash = first.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : first.substr(0, slash + 1);
  std::string out = folder;
  for (const BiasedMatmul& m : group) {
    const std::string& label = g.node(m.dot).origin.label;
    if (label.empty()) return {};
    const bool inside = label.compare(0, folder.size(), folder) == 0;
    out += concat_text(out == folder ? "" : "+", inside ? label.substr(folder.size()) : label);
  }
  return out;
}

bool merge(GraphRewriter& r, const PassContext& context, Value x, const Group& group) {
  const Graph& g = r.source();
  Graph& stage = r.stage();
  // The orientation of most of the weight's elements stays. The others are transposed (once, when weights are
  // prepared).
  const auto num_transposed =
      std::count_if(group.begin(), group.end(), [](const BiasedMatmul& m) { return m.transposed; });
  const bool transposed = static_cast<std::size_t>(num_transposed) * 2 > group.size();
  std::vector<Expr> weights, biases;
  for (const BiasedMatmul& m : group) {
    Expr w = r.expr(m.weight);
    weights.push_back(m.transposed == transposed ? w : stage.transpose(w, {1, 0}));
    if (m.bias) biases.push_back(r.expr(*m.bias));
  }
  Expr lhs = r.expr(x);
  const std::int64_t last = lhs.rank() - 1;
  Expr y = stage.dot_general(lhs, stage.concat(weights, transposed ? 0 : 1),
                             ops::DotGeneral{{last}, {transposed ? 1 : 0}, {}, {}});
  const NodeId product = y.value().node;
  const std::string label = joined_label(g, group);
  stage.set_label(product, label);
  const char* why = context.claims->refuses(stage, product);
  if (why && !context.claims->has(OpKind::FusedDot)) {
    context.missed(kSharedInputPattern, g, group[0].dot, MissReason::NotClaimed,
                   concat_text("the target does not claim ", node_text(stage, product), ": ", why));
    return false;
  }
  if (!biases.empty()) y = y + stage.concat(biases, 0);
  if (!biases.empty()) stage.set_label(y.value().node, label);
  Dim start = 0;
  for (const BiasedMatmul& m : group) {
    const Expr part = stage.narrow(y, -1, start, m.n);
    stage.set_label(part.value().node, g.node(m.result.node).origin.label);  // for a slice that is no view
    r.replace(m.result, part);
    start = start + m.n;
  }
  context.fused(kSharedInputPattern);
  return true;
}

std::optional<Graph> run_merge_shared_input_dots(const Graph& g, const PassContext& context) {
  GraphRewriter r(g);
  const std::vector<bool> param_only = param_only_nodes(g);
  for (const auto& [x, products] : matmuls_by_lhs(g, param_only)) {
    if (products.size() < 2) continue;
    // Groups matmuls by bias, device and storage of the weight, in this order. Joining matmuls with and without bias
    // would need a bias add of zeros.
    std::map<std::tuple<bool, std::uint32_t, Storage>, Group> groups;
    for (const auto& [id, form] : products) {
      if (!param_only[form.rhs.node.index]) {
        context.missed(kSharedInputPattern, g, id, MissReason::WeightNotConstant,
                       concat_text(form.rhs, " depends on inputs or states; joining it with the other ",
                                   products.size() - 1, " would copy it in each run"),
                       "make the weight a param");
        continue;
      }
      std::optional<BiasedMatmul> p = biased_matmul_at(g, r.uses(), id);
      if (!p) {
        context.missed(kSharedInputPattern, g, id, MissReason::NotFused, "its epilogue is more than a bias add");
        continue;
      }
      if (p->bias && !param_only[p->bias->node.index]) {
        if (p->result == Value(id)) {
          context.missed(kSharedInputPattern, g, id, MissReason::WeightNotConstant,
                         concat_text("its bias ", *p->bias, " is computed at run time"));
          continue;
        }
        p->result = Value(id);  // the add stays in place
        p->bias.reset();
      }
      if (!context.together(g, id, p->result.node)) p->result = Value(id), p->bias.reset();  // likewise
      groups[{p->bias.has_value(), context.claims->place_of(g.node(id).origin.label), storage_of(g, form.rhs)}]
          .push_back(std::move(*p));
    }
    for (const auto& [form, group] : groups) {
      if (group.size() >= 2)
        merge(r, context, x, group);
      else
        context.missed(kSharedInputPattern, g, group.front().dot, MissReason::SharedMatmulCount,
                       concat_text("of the ", products.size(), " matmuls of ", x, ", no other has the layout",
                                   context.claims->places() ? " and the device of " : " of ", list_text(group)));
    }
  }
  if (!r.changed()) return std::nullopt;
  return r.commit(merge_shared_input_dots.name).graph;
}

}  // namespace

const Pass merge_shared_input_dots{
    "merge-shared-input-dots",
    "Joins matmuls of one value with several weights [K, N_i] (and their bias vectors) into one matmul with the "
    "concatenated weights, whose result is read through slices. Legal: weights and biases depend only on params and "
    "constants, so they are joined once, when weights are prepared.",
    run_merge_shared_input_dots};

}  // namespace rlx
