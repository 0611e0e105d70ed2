// Transforms of closed bodies: forward mode and batching use those of whole graphs; reverse mode is split where
// cotangents enter.
#include "rlx/ir/rewrite/body_transforms.h"

#include <algorithm>

#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse_walk.h"
#include "rlx/transforms/vmap.h"

namespace rlx {
namespace {

std::vector<Value> marked_inputs(const Graph& body, const Mask& marks) {
  const std::vector<NodeId> inputs = body.leaves(OpKind::Input);
  check(marks.size() == inputs.size(), "one mark for each input of a body");
  std::vector<Value> out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (marks[i]) out.emplace_back(inputs[i]);
  return out;
}

std::vector<Wrt> as_wrt(const std::vector<Value>& values) { return {values.begin(), values.end()}; }

// True for ops that only reorder or repeat elements. Recomputing them costs nothing.
bool is_free(OpKind kind) {
  return kind == OpKind::Expand || kind == OpKind::Reshape || kind == OpKind::Transpose || kind == OpKind::StopGradient;
}

// True for ops of one number per element that cost at most a multiplication.
bool is_cheap(const OpBox& op) {
  if (const auto* b = op.get_if<ops::Binary>())
    return b->fn != BinaryKind::Pow && b->fn != BinaryKind::Mod && b->fn != BinaryKind::Atan2 &&
           b->fn != BinaryKind::Div;
  if (const auto* a = op.get_if<ops::Activation>())
    return a->fn == ActivationKind::Neg || a->fn == ActivationKind::Square || a->fn == ActivationKind::Abs ||
           a->fn == ActivationKind::Sign || a->fn == ActivationKind::Relu || a->fn == ActivationKind::Not;
  return op.is<ops::Compare>() || op.is<ops::Where>() || op.is<ops::Cast>();
}

// Splits a joint graph of values and derivatives in two.
class Cut {
 public:
  Cut(const Graph& body, const BodyReverseRequest& request, const walk::Reverse& joint)
      : request_(request), joint_(joint), g_(joint.forward.graph), slot_(g_), in_backward_(g_.num_nodes(), false) {
    inputs_ = g_.leaves(OpKind::Input);
    inputs_.resize(body.leaves(OpKind::Input).size());  // seeds follow them
    for (const std::string& name : joint.added) seeds_.push_back(g_.find_leaf(OpKind::Input, name));
    const std::vector<Value> roots(seeds_.begin(), seeds_.end());
    moves_ = walk::dependents(g_, roots, false);
    place_.assign(g_.num_nodes(), kNowhere);
    for (std::uint32_t k = 0; k < inputs_.size(); ++k) place_[inputs_[k].index] = k;
    find_invariant();
  }

  BodyReverse run() {
    for (Value v : joint_.grads) need(v);
    for (NodeId id : g_.ordered())
      if (moves(id)) compute(id);
    settle_all();
    std::sort(stored_.begin(), stored_.end());
    if (request_.save == CallSave::All) store_less();
    std::sort(kept_.begin(), kept_.end());
    place_stored();
    BodyReverse out{forward(), Graph(), kept_, {}};
    for (Value v : stored_) out.residuals.push_back(position_.at(v));
    out.backward = backward();
    return out;
  }

 private:
  static constexpr std::uint32_t kNowhere = 0xffffffffu;
  static constexpr int kFewOps = 4;  // longest sequence of recomputed ops

  bool moves(NodeId id) const { return moves_[slot_(Value(id))]; }

  void find_invariant() {
    invariant_.assign(g_.num_nodes(), false);
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const Node& n = g_.nodes()[i];
      if (n.kind() == OpKind::Input)
        invariant_[i] = place_[i] != kNowhere && place_[i] < request_.invariant.size() && request_.invariant[place_[i]];
      else
        invariant_[i] = !is_ordered(n.op) && std::all_of(n.inputs.begin(), n.inputs.end(),
                                                         [&](Value v) { return invariant_[v.node.index]; });
    }
  }

  void need(Value v) {
    const std::uint32_t s = slot_(v);
    if (seen_.empty()) seen_.assign(slot_.size(), false);
    if (seen_[s]) return;
    seen_[s] = true;
    work_.push_back(v);
  }
  void compute(NodeId id) {
    if (in_backward_[id.index]) return;
    in_backward_[id.index] = true;
    for (Value v : g_.node(id).inputs) need(v);
  }

  // Decides how the backward body gets a value.
  void settle(Value v) {
    const NodeId id = v.node;
    const Node& n = g_.node(id);
    if (n.kind() == OpKind::Input) {
      if (place_[id.index] == kNowhere) return;  // a seed
      const std::uint32_t k = place_[id.index];
      if (request_.kept_inputs[k])
        kept_.push_back(k);
      else
        stored_.push_back(v);
      return;
    }
    if (is_ordered(n.op) && !moves(id)) return stored_.push_back(v);  // it runs once, in the forward body
    if (moves(id) || n.inputs.empty() || invariant_[id.index] || is_free(n.kind())) return compute(id);
    const bool product = op_def(n.op).precision == PrecisionCategory::Compute;
    if (request_.save == CallSave::All || (request_.save == CallSave::Dots && product)) return stored_.push_back(v);
    compute(id);
  }

  void settle_all() {
    while (!work_.empty()) {
      const Value v = work_.back();
      work_.pop_back();
      settle(v);
    }
  }

  // A stored value is recomputed if a few cheap ops make it from values that are available anyway.
  void store_less() {
    stored_here_.assign(slot_.size(), false);
    for (Value v : stored_) stored_here_[slot_(v)] = true;
    std::vector<Value> left;
    for (std::size_t k = stored_.size(); k-- > 0;) {
      const Value v = stored_[k];
      stored_here_[slot_(v)] = false;
      if (is_cheap(g_.node(v.node).op) && derivable(v, kFewOps)) {
        derive(v);
      } else {
        stored_here_[slot_(v)] = true;
        left.push_back(v);
      }
    }
    stored_.assign(left.rbegin(), left.rend());
    settle_all();
  }
  // True when the backward body has the value without storing it for this purpose.
  bool at_hand(Value v) const {
    const Node& n = g_.node(v.node);
    if (stored_here_[slot_(v)]) return true;
    if (n.kind() == OpKind::Input)
      return place_[v.node.index] != kNowhere && request_.kept_inputs[place_[v.node.index]];
    return n.inputs.empty() || invariant_[v.node.index];
  }
  bool derivable(Value v, int ops) const {
    const Node& n = g_.node(v.node);
    return std::all_of(n.inputs.begin(), n.inputs.end(), [&](Value in) {
      const OpBox& op = g_.node(in.node).op;
      return at_hand(in) ||
             (!is_ordered(op) && ops > 1 && (is_cheap(op) || is_free(op.kind())) && derivable(in, ops - 1));
    });
  }
  void derive(Value v) {
    seen_[slot_(v)] = true;
    if (in_backward_[v.node.index]) return;
    in_backward_[v.node.index] = true;
    for (Value in : g_.node(v.node).inputs) {
      if (!at_hand(in))
        derive(in);
      else if (!stored_here_[slot_(in)])
        need(in);
    }
  }

  // Sets the outputs of the forward body that are the stored values. New outputs follow those of the body.
  void place_stored() {
    const std::vector<Value>& outputs = joint_.outputs;
    for (std::uint32_t k = 0; k < outputs.size(); ++k)
      if (request_.kept_outputs[k]) position_.try_emplace(outputs[k], k);
    for (Value v : stored_)
      if (position_.try_emplace(v, static_cast<std::uint32_t>(outputs.size() + extra_.size())).second)
        extra_.push_back(v);
  }

  Graph forward() {
    Graph out = copy_shell(g_);
    std::map<Value, Value> ids;
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const NodeId id{i};
      if (!moves(id)) walk::copy_node(out, g_, id, ids);
    }
    std::vector<Value> outputs;
    for (Value v : joint_.outputs) outputs.push_back(ids.at(v));
    for (Value v : extra_) outputs.push_back(ids.at(v));
    out.set_outputs(std::move(outputs));
    return drop_dead(std::move(out));
  }

  Graph backward() {
    Graph out = copy_shell(g_, concat_text(g_.name(), "_backward"));
    std::map<Value, Value> ids;
    const auto take = [&](Value v, const std::string& name) {
      ids.emplace(v, out.input(walk::fresh_leaf_name(out, name), g_.shape(v)).value());
    };
    for (std::uint32_t k : kept_) take(inputs_[k], g_.leaf_name(inputs_[k]));
    for (std::size_t k = 0; k < stored_.size(); ++k) take(stored_[k], concat_text("residual_", k));
    for (NodeId id : seeds_) take(id, g_.leaf_name(id));
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i)
      if (in_backward_[i]) {
        // One result of the node may be read as stored, another recomputed.
        Node copy = g_.nodes()[i];
        for (Value& v : copy.inputs) v = ids.at(v);
        const std::uint32_t results = copy.num_results();
        const NodeId made = out.add_node(std::move(copy));
        for (std::uint32_t r = 0; r < results; ++r) ids.try_emplace(Value(NodeId{i}, r), Value(made, r));
      }
    std::vector<Value> outputs;
    for (Value v : joint_.grads) outputs.push_back(ids.at(v));
    out.set_outputs(std::move(outputs));
    return drop_dead(std::move(out));
  }

  const BodyReverseRequest& request_;
  const walk::Reverse& joint_;
  const Graph& g_;
  ValueSlots slot_;
  std::vector<NodeId> inputs_, seeds_;
  std::vector<bool> moves_, invariant_, in_backward_, seen_, stored_here_;
  std::vector<std::uint32_t> place_;  // node -> index of the body's input that it is
  std::vector<Value> work_, stored_, extra_;
  std::vector<std::uint32_t> kept_;
  std::map<Value, std::uint32_t> position_;
};

}  // namespace

Mask body_depends(const Graph& body, const Mask& inputs, bool inexact_only) {
  const std::vector<Value> roots = marked_inputs(body, inputs);
  const std::vector<bool> depends = walk::dependents(body, roots, inexact_only);
  const ValueSlots slot(body);
  Mask out;
  for (Value v : body.outputs()) out.push_back(depends[slot(v)]);
  return out;
}

Graph body_jvp(const Graph& body, const Mask& moving, const Mask& wanted) {
  TransformResult r = jvp(body, as_wrt(marked_inputs(body, moving)));
  const std::size_t count = body.outputs().size();
  std::vector<Value> outputs(r.graph.outputs().begin(), r.graph.outputs().begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t k = 0; k < count; ++k)
    if (wanted[k]) outputs.push_back(r.graph.outputs()[count + k]);
  r.graph.set_outputs(std::move(outputs));
  return drop_dead(std::move(r.graph));
}

Graph body_vmap(const Graph& body, const Mask& batched, const Dim& batch, const Mask& lifted) {
  InAxes in_axes;
  for (Value v : marked_inputs(body, batched)) in_axes.emplace(body.leaf_name(v.node), 0);
  OutAxes out_axes;
  for (bool on : lifted) out_axes.push_back(on ? std::optional<std::int64_t>(0) : std::nullopt);
  return vmap(body, in_axes, batch, out_axes).graph;
}

BodyReverse body_vjp(const Graph& body, const BodyReverseRequest& request) {
  const walk::Reverse joint = walk::run_reverse(body, as_wrt(marked_inputs(body, request.wanted)), request.seeded,
                                                false, walk::Seed::Input, "grad");
  return Cut(body, request, joint).run();
}

}  // namespace rlx
