// merge-shared-input-dots: products of one value with several weights become one product with the joined weight.
#include <algorithm>
#include <map>

#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

constexpr std::string_view kPattern = "shared_input_matmul";

// One product x [.., K] times a weight, with the vector added to it when there is one.
struct Member {
  NodeId dot;
  Value result;  // what the slice replaces: the product, or its sum with the bias
  Value weight;
  bool transposed = false;  // [N, K]
  Dim n;
  std::optional<Value> bias;  // [N]
};

using Group = std::vector<Member>;

// The bias operand of a FusedDot whose epilogue is exactly acc + operand with operand [N].
std::optional<Value> bias_of_fused_dot(const Graph& g, const Node& n, const Dim& width) {
  const Graph& body = *n.op.as<ops::FusedDot>().epilogue;
  if (n.inputs.size() != 3 || body.num_nodes() != 3) return std::nullopt;
  const Node& last = body.nodes()[2];
  const auto* add = last.op.get_if<ops::Binary>();
  if (!add || add->fn != BinaryKind::Add || body.outputs()[0] != Value(NodeId{2}) || last.inputs[0] == last.inputs[1]) return std::nullopt;
  const Shape& bias = g.shape(n.inputs[2]);
  if (bias.rank() != 1 || !(bias.dim(0) == width)) return std::nullopt;
  return n.inputs[2];
}

// The one add that reads the product, and its vector.
std::optional<std::pair<Value, Value>> bias_add(const GraphRewriter& r, Value product, const Dim& width) {
  const Graph& g = r.source();
  if (!r.uses().single_use(product)) return std::nullopt;
  const NodeId user = r.uses().uses(product)[0].user;
  const auto* add = g.node(user).op.get_if<ops::Binary>();
  if (!add || add->fn != BinaryKind::Add) return std::nullopt;
  const Value other = g.node(user).inputs[1 - r.uses().uses(product)[0].operand];
  const Shape& bias = g.shape(other);
  if (bias.rank() != 1 || !(bias.dim(0) == width) || !(g.shape(user) == g.shape(product))) return std::nullopt;
  return std::pair(Value(user), other);
}

// Products of the same x, in node order. Only these can be joined: x [.., K] contracted over its last axis with one matrix.
std::map<Value, std::vector<std::pair<NodeId, MatmulForm>>> products_by_lhs(const Graph& g, const std::vector<bool>& param_only) {
  std::map<Value, std::vector<std::pair<NodeId, MatmulForm>>> out;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    NodeId id{i};
    OpKind kind = g.node(id).kind();
    if (kind != OpKind::DotGeneral && kind != OpKind::FusedDot) continue;
    std::optional<MatmulForm> m = as_matmul(g, id);
    if (!m || !m->batch.empty() || m->lhs_transposed || param_only[i]) continue;
    if (g.shape(m->rhs).rank() == 2) out[m->lhs].emplace_back(id, *m);
  }
  return out;
}

std::string list_text(const Group& group) {
  std::string out;
  for (const Member& m : group) out += concat_text(out.empty() ? "" : ", ", m.dot);
  return out;
}

bool merge(GraphRewriter& r, const PassContext& context, Value x, const Group& group) {
  const Graph& g = r.source();
  Graph& stage = r.stage();
  // The orientation of most of the weight's elements stays; the others are transposed (once, when weights are prepared).
  const auto num_transposed = std::count_if(group.begin(), group.end(), [](const Member& m) { return m.transposed; });
  const bool transposed = static_cast<std::size_t>(num_transposed) * 2 > group.size();
  std::vector<Expr> weights, biases;
  for (const Member& m : group) {
    Expr w = r.expr(m.weight);
    weights.push_back(m.transposed == transposed ? w : stage.transpose(w, {1, 0}));
    if (m.bias) biases.push_back(r.expr(*m.bias));
  }
  Expr lhs = r.expr(x);
  const std::int64_t last = lhs.rank() - 1;
  Expr y = stage.dot_general(lhs, stage.concat(weights, transposed ? 0 : 1), ops::DotGeneral{{last}, {transposed ? 1 : 0}, {}, {}});
  const NodeId product = y.value().node;
  if (!context.claims.claims(stage, product) && !context.claims.has(OpKind::FusedDot)) {
    context.missed(kPattern, g, group[0].dot, MissReason::NotClaimed, concat_text("the target has no kernel for ", node_text(stage, product)));
    return false;
  }
  if (!biases.empty()) y = y + stage.concat(biases, 0);
  Dim start = 0;
  for (const Member& m : group) {
    r.replace(m.result, stage.narrow(y, -1, start, m.n));
    start = start + m.n;
  }
  context.fused(kPattern);
  return true;
}

std::optional<Graph> run(const Graph& g, const PassContext& context) {
  GraphRewriter r(g);
  const std::vector<bool> param_only = param_only_nodes(g);
  for (const auto& [x, products] : products_by_lhs(g, param_only)) {
    if (products.size() < 2) continue;
    // Products with and without bias are joined apart: one bias add per joined product, and none that adds zeros.
    Group plain, biased;
    for (const auto& [id, form] : products) {
      if (!param_only[form.rhs.node.index]) {
        context.missed(kPattern, g, id, MissReason::WeightNotConstant,
                       concat_text(form.rhs, " depends on inputs or states; joining it with the other ", products.size() - 1, " would copy it each run"),
                       "make the weight a param");
        continue;
      }
      Member m{id, Value(id), form.rhs, form.rhs_transposed, form.n, {}};
      if (g.node(id).kind() == OpKind::FusedDot) {
        m.bias = bias_of_fused_dot(g, g.node(id), form.n);
        if (!m.bias) {
          context.missed(kPattern, g, id, MissReason::NotFused, "its epilogue is more than a bias add");
          continue;
        }
        if (!param_only[m.bias->node.index]) {
          context.missed(kPattern, g, id, MissReason::WeightNotConstant, concat_text("its bias ", *m.bias, " is computed at run time"));
          continue;
        }
      } else if (auto add = bias_add(r, Value(id), form.n); add && param_only[add->second.node.index]) {
        m.result = add->first;
        m.bias = add->second;
      }
      (m.bias ? biased : plain).push_back(std::move(m));
    }
    for (const Group* group : {&plain, &biased}) {
      if (group->size() >= 2) {
        merge(r, context, x, *group);
      } else if (group->size() == 1) {
        context.missed(kPattern, g, group->front().dot, MissReason::SharedMatmulCount,
                       concat_text("of the ", products.size(), " products of ", x, " no other has the form of ", list_text(*group)));
      }
    }
  }
  if (!r.changed()) return std::nullopt;
  return r.commit(merge_shared_input_dots.name).graph;
}

}  // namespace

const Pass merge_shared_input_dots{
    "merge-shared-input-dots",
    "Joins products of one value with several weights [K, N_i] (and their bias vectors) into one product with the weights side by side, read "
    "through slices. Legal: weights and biases come from params and constants alone, so the join happens once, when weights are prepared.",
    run};

}  // namespace rlx
