// GraphRewriter: the recording of replacements, and the rebuild.
#include "rlx/ir/rewrite.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "rlx/ir/chain.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/rewrite/symbol_order.h"

namespace rlx {

// -- recording --

GraphRewriter::GraphRewriter(const Graph& source) : source_(source), uses_(source), stage_(copy_shell(source)) {}

std::vector<NodeId> GraphRewriter::nodes() const {
  std::vector<NodeId> out;
  out.reserve(source_.num_nodes());
  for (std::uint32_t i = 0; i < source_.num_nodes(); ++i) out.push_back(NodeId{i});
  return out;
}

Expr GraphRewriter::import(Value old, bool original) {
  check(old.node.index < source_.num_nodes() && old.result < source_.node(old.node).num_results(),
        "value outside the source graph");
  auto [it, fresh] = import_nodes_[original].try_emplace(key(old));
  if (fresh) {
    const Shape& s = source_.shape(old);
    NodeId id =
        stage_.add_node(Node{ops::Input{(original ? "original " : "") + old.text(), s.dims(), s.dtype()}, {}, {s}, {}});
    imports_.emplace(id.index, Import{old, original});
    it->second = Value(id);
  }
  return stage_.expr(it->second);
}

Expr GraphRewriter::expr(Value old) { return import(old, false); }
Expr GraphRewriter::original(Value old) { return import(old, true); }

std::vector<Expr> GraphRewriter::exprs(const std::vector<Value>& old) {
  std::vector<Expr> out;
  out.reserve(old.size());
  for (Value v : old) out.push_back(expr(v));
  return out;
}

std::vector<Value> GraphRewriter::reads(const Expr& staged) const {
  check(&staged.graph() == &stage_, "the value must be a value of the rewriter's new graph");
  std::vector<Value> out;
  std::vector<NodeId> open{staged.value().node};
  std::unordered_set<std::uint32_t> met{open.front().index};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (const auto import = imports_.find(id.index); import != imports_.end()) out.push_back(import->second.old);
    for (Value v : stage_.node(id).inputs)
      if (met.insert(v.node.index).second) open.push_back(v.node);
  }
  return out;
}

void GraphRewriter::replace(Value old, Expr now) {
  check(&now.graph() == &stage_, "a replacement must be a value of the rewriter's new graph");
  auto import = imports_.find(now.value().node.index);
  if (import != imports_.end() && !import->second.original) return replace(old, import->second.old);
  check(old.node.index < source_.num_nodes() && old.result < source_.node(old.node).num_results(),
        "value outside the source graph");
  if (!(now.shape() == source_.shape(old)))
    throw Error(
        Diagnostic{ErrorCode::Internal,
                   concat_text("replacement ", node_text(stage_, now.value().node), " does not have the type of ", old),
                   node_where(source_, old.node), "this is a bug in a pass"});
  if (!replacements_.emplace(key(old), Replacement{now.value(), true}).second)
    throw Error(Diagnostic{ErrorCode::Internal, concat_text(old, " is replaced twice"), node_where(source_, old.node),
                           "this is a bug in a pass"});
  replaced_.push_back(old);
}

void GraphRewriter::replace(Value old, Value now) {
  for (Value v : {old, now})
    check(v.node.index < source_.num_nodes() && v.result < source_.node(v.node).num_results(),
          "value outside the source graph");
  if (old == now) return;
  if (!(source_.shape(now) == source_.shape(old)))
    throw Error(
        Diagnostic{ErrorCode::Internal,
                   concat_text("replacement ", node_text(source_, now.node), " does not have the type of ", old),
                   node_where(source_, old.node), "this is a bug in a pass"});
  if (!replacements_.emplace(key(old), Replacement{now, false}).second)
    throw Error(Diagnostic{ErrorCode::Internal, concat_text(old, " is replaced twice"), node_where(source_, old.node),
                           "this is a bug in a pass"});
  replaced_.push_back(old);
}

void GraphRewriter::replace_node(NodeId old, const std::vector<Expr>& now) {
  check(now.size() == source_.node(old).num_results(), "replace_node needs one value per result");
  for (std::uint32_t r = 0; r < now.size(); ++r) replace(Value(old, r), now[r]);
}

bool GraphRewriter::is_replaced(Value old) const { return replacements_.contains(key(old)); }

bool GraphRewriter::is_replaced(NodeId old) const {
  for (std::uint32_t r = 0; r < source_.node(old).num_results(); ++r)
    if (is_replaced(Value(old, r))) return true;
  return false;
}

// -- commit --

// One rebuild. Nodes of the source and of the stage share one numbering; staged nodes follow those of the source.
class Commit {
 public:
  Commit(GraphRewriter& r, std::string_view pass, CommitOptions options)
      : r_(r),
        old_(r.source_),
        stage_(r.stage_),
        pass_(pass),
        options_(options),
        num_old_(static_cast<std::uint32_t>(old_.num_nodes())),
        state_(num_old_ + stage_.num_nodes(), Unseen),
        new_id_(state_.size()) {}

  Rewritten run() {
    mark_live();
    compose_origins();
    Graph g = copy_shell(stage_);
    g.reserve(num_old_);
    // The old order is kept, and each replacement takes the position of the value it replaces. The replacement of
    // several values takes the position of the last: nodes before it may still read an old state that it updates.
    std::vector<std::uint32_t> to_come(stage_.num_nodes(), 0);
    for (Value old : r_.replaced_)
      if (const auto& to = r_.replacements_.at(GraphRewriter::key(old)); to.staged) ++to_come[to.now.node.index];
    for (std::uint32_t i = 0; i < num_old_; ++i) {
      if (state_[i] == Live) emit(g, i);
      for (std::uint32_t res = 0; res < old_.nodes()[i].num_results(); ++res) {
        auto it = r_.replacements_.find(GraphRewriter::key(Value(NodeId{i}, res)));
        if (it == r_.replacements_.end() || !it->second.staged) continue;
        Source s = from_stage(it->second.now);
        if (--to_come[it->second.now.node.index] == 0 && state_[s.node] == Live) emit(g, s.node);
      }
    }
    ValueMap map(old_);
    bool same = r_.replacements_.empty() && g.num_nodes() == num_old_;
    for (std::uint32_t i = 0; i < num_old_; ++i)
      for (std::uint32_t res = 0; res < old_.nodes()[i].num_results(); ++res) {
        Source s = resolve(Value(NodeId{i}, res));
        if (state_[s.node] == Emitted) map.set(Value(NodeId{i}, res), Value(new_id_[s.node], s.result));
      }
    copy_ends(g, old_, map);
    return {std::move(g), std::move(map), !same};
  }

 private:
  enum State : std::uint8_t { Unseen, Live, Open, Emitted };
  // A result of a node in the shared numbering.
  struct Source {
    std::uint32_t node = 0, result = 0;
  };

  Source from_stage(Value v) {
    auto it = r_.imports_.find(v.node.index);
    if (it == r_.imports_.end()) return {num_old_ + v.node.index, v.result};
    return it->second.original ? Source{it->second.old.node.index, it->second.old.result} : resolve(it->second.old);
  }
  // The value that a reader of the old value reads now.
  Source resolve(Value v) {
    for (std::size_t steps = 0;; ++steps) {
      auto it = r_.replacements_.find(GraphRewriter::key(v));
      if (it == r_.replacements_.end()) return {v.node.index, v.result};
      if (it->second.staged) {
        auto import = r_.imports_.find(it->second.now.node.index);  // only an `original` import reaches this line
        if (import == r_.imports_.end()) return {num_old_ + it->second.now.node.index, it->second.now.result};
        return {import->second.old.node.index, import->second.old.result};
      }
      if (steps > r_.replacements_.size())
        throw Error(Diagnostic{ErrorCode::Internal,
                               concat_text("pass ", pass_, ": replacements of ", v, " form a cycle"),
                               node_where(old_, v.node), "this is a bug in the pass"});
      v = it->second.now;
    }
  }
  const Node& node(std::uint32_t i) const { return i < num_old_ ? old_.nodes()[i] : stage_.nodes()[i - num_old_]; }
  Source operand(std::uint32_t user, std::size_t k) {
    Value v = node(user).inputs[k];
    return user < num_old_ ? resolve(v) : from_stage(v);
  }

  void mark_live() {
    std::vector<std::uint32_t> work;
    auto need = [&](std::uint32_t i) {
      if (state_[i] != Unseen) return;
      state_[i] = Live;
      work.push_back(i);
    };
    for (std::uint32_t i = 0; i < num_old_; ++i) {
      const OpKind kind = old_.nodes()[i].kind();
      const bool droppable =
          (kind == OpKind::Param && options_.drop_params) || (kind == OpKind::State && options_.drop_states);
      if (is_named_leaf(kind) && !droppable) need(i);
    }
    for (const Root& root : roots(old_)) need(resolve(root.value).node);
    for (const auto& u : old_.state_updates()) need(old_.find_leaf(OpKind::State, u.name).index);
    while (!work.empty()) {
      std::uint32_t i = work.back();
      work.pop_back();
      for (std::size_t k = 0; k < node(i).inputs.size(); ++k) need(operand(i, k).node);
    }
  }

  // Finds the replaced nodes that each staged node represents. A node takes those of its users, up to the roots of
  // other replacements.
  void compose_origins() {
    constexpr std::size_t kMaxSources = 8;
    std::uint32_t num_staged = static_cast<std::uint32_t>(stage_.num_nodes());
    stands_for_.resize(num_staged);
    std::vector<bool> root(num_staged, false);
    auto add = [&](std::vector<std::uint32_t>& list, std::uint32_t i) {
      if (list.size() < kMaxSources && std::find(list.begin(), list.end(), i) == list.end()) list.push_back(i);
    };
    for (Value old : r_.replaced_) {
      const auto& to = r_.replacements_.at(GraphRewriter::key(old));
      if (!to.staged || r_.imports_.contains(to.now.node.index)) continue;
      add(stands_for_[to.now.node.index], old.node.index);
      root[to.now.node.index] = true;
    }
    for (std::uint32_t i = num_staged; i-- > 0;)
      for (Value v : stage_.nodes()[i].inputs)
        if (!root[v.node.index])
          for (std::uint32_t old : stands_for_[i]) add(stands_for_[v.node.index], old);
    // A node that dies with its replaced user belongs to the same replacement.
    absorbed_by_.assign(num_old_, kNobody);
    for (Value old : r_.replaced_)
      if (state_[old.node.index] == Unseen) absorbed_by_[old.node.index] = old.node.index;
    absorbed_.resize(num_old_);
    for (std::uint32_t i = num_old_; i-- > 0;) {
      std::uint32_t owner = absorbed_by_[i];
      if (owner == kNobody) continue;
      for (Value v : old_.nodes()[i].inputs) {
        std::uint32_t d = v.node.index;
        if (state_[d] != Unseen || absorbed_by_[d] != kNobody || op_def(old_.nodes()[d].kind()).is_leaf()) continue;
        absorbed_by_[d] = owner;
        absorbed_[owner].push_back(d);
      }
    }
  }

  Origin staged_origin(std::uint32_t staged) {
    constexpr std::size_t kMaxFrom = 12;
    Origin origin;
    origin.pass = pass_;
    origin.label = stage_.nodes()[staged].origin.label;
    std::vector<std::uint32_t> sources;
    for (std::uint32_t replaced : stands_for_[staged]) {
      sources.push_back(replaced);
      sources.insert(sources.end(), absorbed_[replaced].begin(), absorbed_[replaced].end());
    }
    // Label and line come from the replaced nodes first, then from the nodes these absorbed.
    for (std::uint32_t s : sources) {
      const Origin& o = old_.nodes()[s].origin;
      if (origin.label.empty()) origin.label = o.label;
      if (origin.loc.line == 0) origin.loc = o.loc;
    }
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    auto add = [&](std::string text) {
      if (origin.from.size() < kMaxFrom && std::find(origin.from.begin(), origin.from.end(), text) == origin.from.end())
        origin.from.push_back(std::move(text));
    };
    for (std::uint32_t s : sources) {
      const Origin& o = old_.nodes()[s].origin;
      for (const std::string& f : o.from) add(f);
      if (o.from.empty()) add(concat_text(NodeId{s}, " ", op_text_name(old_.nodes()[s].op)));
    }
    return origin;
  }

  // The ordered op before an ordered op of the source, or its replacement.
  std::uint32_t earlier_ordered(std::uint32_t i) {
    if (old_.ordered().empty() || i >= num_old_) return kNobody;
    const auto at = std::lower_bound(old_.ordered().begin(), old_.ordered().end(), NodeId{i});
    if (at == old_.ordered().end() || !(*at == NodeId{i}) || at == old_.ordered().begin()) return kNobody;
    return resolve(Value(*std::prev(at))).node;
  }

  // Emits node `start` after everything it needs. Its stack is explicit: a graph may be deeper than the call stack.
  void emit(Graph& g, std::uint32_t start) {
    if (state_[start] == Emitted) return;
    struct Frame {
      std::uint32_t node;
      std::size_t next;
    };
    std::vector<Frame> stack{{start, 0}};
    state_[start] = Open;
    while (!stack.empty()) {
      Frame& top = stack.back();
      const Node& n = node(top.node);
      if (top.next <= n.inputs.size()) {
        const std::size_t k = top.next++;
        // After its operands, an ordered op needs the ordered op before it.
        const std::uint32_t need = k < n.inputs.size() ? operand(top.node, k).node : earlier_ordered(top.node);
        if (need == kNobody) continue;
        if (state_[need] == Emitted) continue;
        if (state_[need] == Open)
          throw Error(Diagnostic{
              ErrorCode::Internal, concat_text("pass ", pass_, ": a replacement reads the value it replaces"),
              need < num_old_ ? node_where(old_, NodeId{need}) : node_text(stage_, NodeId{need - num_old_}),
              "this is a bug in the pass: wrap a value through original()"});
        state_[need] = Open;
        stack.push_back({need, 0});
        continue;
      }
      std::vector<Value> inputs;
      inputs.reserve(n.inputs.size());
      for (std::size_t k = 0; k < n.inputs.size(); ++k) {
        Source s = operand(top.node, k);
        inputs.emplace_back(new_id_[s.node], s.result);
      }
      Origin origin = top.node < num_old_ ? n.origin : staged_origin(top.node - num_old_);
      new_id_[top.node] = g.add_node(Node{n.op, std::move(inputs), n.shapes, std::move(origin)});
      state_[top.node] = Emitted;
      stack.pop_back();
    }
  }

  static constexpr std::uint32_t kNobody = 0xffffffffu;
  GraphRewriter& r_;
  const Graph& old_;
  const Graph& stage_;
  std::string pass_;
  CommitOptions options_;
  std::uint32_t num_old_;
  std::vector<State> state_;
  std::vector<NodeId> new_id_;
  std::vector<std::vector<std::uint32_t>> stands_for_;  // staged node -> replaced nodes
  std::vector<std::uint32_t> absorbed_by_;              // dead old node -> the replaced node that absorbed it
  std::vector<std::vector<std::uint32_t>> absorbed_;    // replaced node -> dead nodes that it absorbed
};

Rewritten GraphRewriter::commit(std::string_view pass, CommitOptions options) {
  return Commit(*this, pass, options).run();
}

// -- matchers --

namespace {
using Axes = std::vector<std::int64_t>;

std::optional<MatmulDims> matmul_of_dot(const Graph& g, const Node& n, const Axes& lc, const Axes& rc, const Axes& lb,
                                        const Axes& rb) {
  MatmulDims m;
  m.lhs = n.inputs[0];
  m.rhs = n.inputs[1];
  const Shape& a = g.shape(m.lhs);
  const Shape& b = g.shape(m.rhs);
  auto num_batch = static_cast<int>(lb.size());
  if (lc.size() != 1 || rc.size() != 1 || rb.size() != lb.size() || b.rank() != num_batch + 2) return std::nullopt;
  for (int i = 0; i < num_batch; ++i) {
    if (lb[static_cast<std::size_t>(i)] != i || rb[static_cast<std::size_t>(i)] != i) return std::nullopt;
    m.batch.push_back(b.dim(i));
  }
  if (lc[0] != a.rank() - 1) {
    if (a.rank() != num_batch + 2 || lc[0] != num_batch) return std::nullopt;
    m.lhs_transposed = true;
  }
  m.rhs_transposed = rc[0] == num_batch + 1;
  m.k = b.dim(static_cast<int>(rc[0]));
  m.n = b.dim(m.rhs_transposed ? num_batch : num_batch + 1);
  m.m = Dim(1);
  for (int i = num_batch; i < a.rank(); ++i)
    if (i != lc[0]) m.m = m.m * a.dim(i);
  return m;
}
}  // namespace

std::optional<MatmulDims> as_matmul(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const auto widens = [&](const auto& dot) { return dot.out && *dot.out != g.shape(n.inputs[0]).dtype(); };
  if (const auto* dot = n.op.get_if<ops::DotGeneral>())
    return widens(*dot) ? std::nullopt
                        : matmul_of_dot(g, n, dot->lhs_contract, dot->rhs_contract, dot->lhs_batch, dot->rhs_batch);
  if (const auto* dot = n.op.get_if<ops::FusedDot>()) {
    if (widens(*dot)) return std::nullopt;
    auto m = matmul_of_dot(g, n, dot->lhs_contract, dot->rhs_contract, dot->lhs_batch, dot->rhs_batch);
    if (m) m->fused = true;
    return m;
  }
  if (!n.op.is<ops::MatMul>()) return std::nullopt;
  int a = g.shape(n.inputs[0]).rank(), b = g.shape(n.inputs[1]).rank();
  Axes batch;
  if (b > 2) {  // NumPy's batch axes are those of a matmul only when both operands have all of them
    if (a != b) return std::nullopt;
    for (int i = 0; i < b - 2; ++i) {
      if (!(g.shape(n.inputs[0]).dim(i) == g.shape(n.inputs[1]).dim(i))) return std::nullopt;
      batch.push_back(i);
    }
  }
  return matmul_of_dot(g, n, {a - 1}, {b - 2}, batch, batch);
}

bool runs_per_element(OpKind kind) { return op_def(kind).elementwise == ElementwiseKind::InBodies; }
bool runs_per_element(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (n.kind() == OpKind::Bitcast) return g.shape(n.inputs[0]).dims() == n.shape().dims();
  return runs_per_element(n.kind());
}

std::optional<MatMulBiasAct> as_matmul_bias_act(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (n.kind() != OpKind::FusedDot || n.inputs.size() != 3 || g.shape(n.inputs[2]).rank() != 1) return std::nullopt;
  const Chain chain = chain_of(*n.op.as<ops::FusedDot>().epilogue);
  const Graph& body = *n.op.as<ops::FusedDot>().epilogue;
  using From = ChainOperand::From;
  const std::size_t steps = chain.steps.size();
  if (steps == 0 || steps > 2 || chain.results.size() != 1 ||
      !(chain.results[0] == ChainOperand{From::Step, static_cast<std::uint32_t>(steps - 1)}))
    return std::nullopt;
  const OpBox& add = body.node(chain.steps[0].node).op;
  if (add.kind() != OpKind::Binary || add.as<ops::Binary>().fn != BinaryKind::Add) return std::nullopt;
  const std::vector<ChainOperand>& sum = chain.steps[0].operands;
  const ChainOperand accumulator{From::Input, 0}, bias{From::Input, 1};
  if (!(sum[0] == accumulator && sum[1] == bias) && !(sum[0] == bias && sum[1] == accumulator)) return std::nullopt;
  MatMulBiasAct out{n.inputs[0], n.inputs[1], n.inputs[2], {}};
  if (steps == 2) {
    const OpBox& act = body.node(chain.steps[1].node).op;
    if (act.kind() != OpKind::Activation || !has_own_params(act.as<ops::Activation>())) return std::nullopt;
    out.activation = act.as<ops::Activation>().fn;
  }
  return out;
}

std::optional<double> constant_scalar(const Graph& g, Value v) {
  // Views of constants are folded, so a long chain of views ends at something else. Without a limit the passes that ask
  // at every node of a chain would take quadratic time.
  constexpr int kMostViews = 32;
  for (int views = 0; views <= kMostViews; ++views) {
    const Node& n = g.node(v.node);
    if (const auto* c = n.op.get_if<ops::Constant>()) {
      if (c->value.empty() || c->value.num_elements() != 1 || is_complex(c->value.dtype())) return std::nullopt;
      return c->value.at(0);
    }
    if (!op_def(n.kind()).is_view()) return std::nullopt;
    v = n.inputs[0];
  }
  return std::nullopt;
}

bool is_frozen_param(const Node& n) {
  const auto* param = n.op.get_if<ops::Param>();
  return param && param->mode == ParamMode::Frozen;
}

namespace {
// `before`: the answers for earlier nodes.
bool depends_on_params(const Node& n, const std::vector<bool>& before) {
  if (!std::all_of(n.shapes.begin(), n.shapes.end(), [](const Shape& s) { return s.is_static(); })) return false;
  if (is_ordered(n.op)) return false;
  if (op_def(n.kind()).is_leaf()) return is_frozen_param(n) || n.kind() == OpKind::Constant;
  return std::all_of(n.inputs.begin(), n.inputs.end(), [&](Value v) { return before[v.node.index]; }) &&
         !has_symbols(n);  // such as a slice from a symbol on
}
}  // namespace

std::vector<bool> param_only_nodes(const Graph& g) {
  std::vector<bool> out(g.num_nodes());
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) out[i] = depends_on_params(g.nodes()[i], out);
  return out;
}

bool is_param_only(const Graph& g, Value v) { return ParamOnly()(g, v); }

bool ParamOnly::operator()(const Graph& g, Value v) {
  (void)g.shape(v);  // throws for a value that the graph does not have
  while (nodes_.size() <= v.node.index) nodes_.push_back(depends_on_params(g.nodes()[nodes_.size()], nodes_));
  return nodes_[v.node.index];
}

}  // namespace rlx
