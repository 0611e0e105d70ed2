// Splitting a graph into weight preparation and run.
#include "rlx/compiler/weights.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "rlx/ir/fingerprint.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite.h"

namespace rlx {
namespace {

constexpr double kMaxGrowth = 1.1;

// A weight operand traced to the values it joins along N.
struct WeightSources {
  std::vector<Value> values;  // each [K, N_i], or [N_i, K] when transposed
  std::vector<std::int64_t> transposed;
};

class Splitter {
 public:
  Splitter(const Graph& g, const Target& target) : g_(g), target_(target) {}

  SplitProgram split() {
    classify();
    prepare_.set_name(g_.name() + ".prepare");
    run_.set_name(g_.name());
    run_.set_symbols(g_.symbols());
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) copy_node(NodeId{i});
    std::vector<Value> outputs;
    for (Value v : g_.outputs()) outputs.push_back(run_value(v));
    run_.set_outputs(std::move(outputs));
    for (const Graph::StateUpdate& u : g_.state_updates()) run_.set_state(u.name, run_value(u.value));
    prepare_.set_outputs(prepared_);
    return {std::move(run_), std::move(prepare_)};
  }

 private:
  void classify() {
    constant_.assign(g_.num_nodes(), false);
    has_param_.assign(g_.num_nodes(), false);
    in_prepare_.assign(g_.num_nodes(), false);
    std::vector<double> source_bytes(g_.num_nodes(), 0);
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const Node& n = g_.nodes()[i];
      OpKind kind = n.kind();
      if ((kind == OpKind::Param || kind == OpKind::State) && !n.shape().is_static())
        throw Error(Diagnostic{
            ErrorCode::Unsupported,
            concat_text(op_text_name(n.op), " '", g_.leaf_name(NodeId{i}), "' ", n.shape(), " has a runtime symbol"),
            node_where(g_, NodeId{i}), "weights and states have one shape: bind the symbol with dim_binding"});
      if (is_frozen_param(n) || kind == OpKind::Constant) {
        constant_[i] = true;
        has_param_[i] = kind == OpKind::Param;
        source_bytes[i] = static_cast<double>(n.shape().size_bytes());
        continue;
      }
      if (n.inputs.empty() || op_def(kind).is_leaf()) continue;
      bool all = true, param = false;
      double sources = 0, own = 0;
      for (Value v : n.inputs) {
        all = all && constant_[v.node.index];
        param = param || has_param_[v.node.index];
        sources += source_bytes[v.node.index];
      }
      // What depends on a symbol too is computed in the run: its extents change, prepared weights do not.
      const bool is_static =
          std::all_of(n.shapes.begin(), n.shapes.end(), [](const Shape& s) { return s.is_static(); });
      if (!all || !param || !is_static) continue;
      for (const Shape& s : n.shapes) own += static_cast<double>(s.size_bytes());
      if (own > kMaxGrowth * sources) continue;
      constant_[i] = has_param_[i] = true;
      source_bytes[i] = own;
    }
  }

  // The value in the prepare graph, copying its producers there on first use.
  Value prepare_value(Value v) {
    auto it = prepare_map_.find(v);
    if (it != prepare_map_.end()) return it->second;
    std::vector<NodeId> wanted{v.node}, fresh;
    while (!wanted.empty()) {
      const NodeId id = wanted.back();
      wanted.pop_back();
      if (in_prepare_[id.index]) continue;
      in_prepare_[id.index] = true;
      fresh.push_back(id);
      for (Value in : g_.node(id).inputs) wanted.push_back(in.node);
    }
    std::sort(fresh.begin(), fresh.end());
    for (NodeId from : fresh) {
      const Node& n = g_.node(from);
      std::vector<Value> inputs;
      for (Value in : n.inputs) inputs.push_back(prepare_map_.at(in));
      NodeId id = prepare_.add_node(Node{n.op, std::move(inputs), n.shapes, n.origin});
      for (std::uint32_t r = 0; r < n.num_results(); ++r) prepare_map_[Value(from, r)] = Value(id, r);
    }
    return prepare_map_.at(v);
  }

  // A Param of the run graph that reads prepared value `p`.
  Value run_param(Value p, const Shape& shape, const Origin& origin) {
    auto it = run_params_.find(p);
    if (it != run_params_.end()) return it->second;
    const Node& made_by = prepare_.node(p.node);
    std::string name =
        made_by.kind() == OpKind::Param ? prepare_.leaf_name(p.node) : concat_text("prepared.", prepared_.size());
    NodeId id = run_.add_node(Node{ops::Param{std::move(name), shape.dims(), shape.dtype()}, {}, {shape}, origin});
    prepared_.push_back(p);
    run_params_[p] = Value(id);
    return Value(id);
  }

  Value run_value(Value v) {
    auto it = run_map_.find(v);
    if (it != run_map_.end()) return it->second;
    check(constant_[v.node.index], "a run value was not copied in order");
    const Node& n = g_.node(v.node);
    if (n.kind() == OpKind::Constant) {  // embedded where it is used
      NodeId id = run_.add_node(n);
      return run_map_[v] = Value(id);
    }
    return run_map_[v] = run_param(prepare_value(v), g_.shape(v), n.origin);
  }

  void copy_node(NodeId id) {
    const Node& n = g_.node(id);
    if (constant_[id.index]) return;  // copied on use
    if (n.kind() == OpKind::Param) {  // a mutable one: its own bytes are what the program reads
      run_map_[Value(id)] = run_param(prepare_value(Value(id)), n.shape(), n.origin);
      return;
    }
    if (packed_dot(id)) return;
    std::vector<Value> inputs;
    for (Value v : n.inputs) inputs.push_back(run_value(v));
    NodeId fresh = run_.add_node(Node{n.op, std::move(inputs), n.shapes, n.origin});
    for (std::uint32_t r = 0; r < n.num_results(); ++r) run_map_[Value(id, r)] = Value(fresh, r);
  }

  // Follows transposes and concats of a weight-only value down to the weights themselves.
  bool trace(Value v, int n_axis, WeightSources& out) {
    const Node& n = g_.node(v.node);
    if (const auto* concat = n.op.get_if<ops::Concat>(); concat && concat->axis == n_axis) {
      for (Value part : n.inputs)
        if (!trace(part, n_axis, out)) return false;
      return true;
    }
    if (n.op.is<ops::Transpose>()) return trace(n.inputs[0], 1 - n_axis, out);
    out.values.push_back(v);
    out.transposed.push_back(n_axis == 0 ? 1 : 0);
    return true;
  }

  // x [.., K] times a constant rank-2 weight, contracted over x's last axis: the form that takes a packed weight.
  bool packed_dot(NodeId id) {
    const Node& n = g_.node(id);
    if (!target_.has(OpKind::PackedDot)) return false;
    const std::vector<std::int64_t>*lc, *rc, *lb;
    Subgraph epilogue;
    if (const auto* dot = n.op.get_if<ops::DotGeneral>()) {
      lc = &dot->lhs_contract, rc = &dot->rhs_contract, lb = &dot->lhs_batch;
    } else if (const auto* fused = n.op.get_if<ops::FusedDot>()) {
      lc = &fused->lhs_contract, rc = &fused->rhs_contract, lb = &fused->lhs_batch;
      epilogue = fused->epilogue;
    } else {
      return false;
    }
    const Shape& x = g_.shape(n.inputs[0]);
    const Shape& w = g_.shape(n.inputs[1]);
    if (!constant_[n.inputs[1].node.index] || constant_[n.inputs[0].node.index]) return false;
    if (w.rank() != 2 || x.rank() < 1 || !lb->empty() || lc->size() != 1 || (*lc)[0] != x.rank() - 1) return false;
    int k_axis = static_cast<int>((*rc)[0]);
    std::int64_t k = w.dim(k_axis).value(), cols = w.dim(1 - k_axis).value();
    auto packing = target_.packing(g_, id, 1, k, cols);
    if (!packing) return false;
    if (!epilogue) {
      auto body = std::make_shared<Graph>("epilogue");
      body->set_outputs({body->input("acc", n.shape())});
      epilogue = std::move(body);
    }
    WeightSources sources;
    if (!trace(n.inputs[1], 1 - k_axis, sources)) return false;

    std::vector<Value> weights;
    for (Value v : sources.values) weights.push_back(prepare_value(v));
    ops::Relayout relayout{packing->panel_width, sources.transposed, k, cols, packing->bytes};
    Shape packed_shape({Dim(packing->bytes)}, DType::U8);
    // One packed form per set of weights: dots that share a weight share its packing.
    std::string key = concat_text(k, ",", cols, ",", packing->panel_width);
    for (std::size_t i = 0; i < weights.size(); ++i)
      key += concat_text(";", weights[i], sources.transposed[i] ? "t" : "");
    auto [it, fresh] = packed_.try_emplace(key);
    if (fresh) it->second = Value(prepare_.add_node(Node{relayout, std::move(weights), {packed_shape}, n.origin}));

    std::vector<Value> inputs{run_value(n.inputs[0]), run_param(it->second, packed_shape, n.origin)};
    for (std::size_t i = 2; i < n.inputs.size(); ++i) inputs.push_back(run_value(n.inputs[i]));
    NodeId dot = run_.add_node(Node{ops::PackedDot{k, cols, packing->panel_width, std::move(epilogue)},
                                    std::move(inputs), n.shapes, n.origin});
    run_map_[Value(id)] = Value(dot);
    return true;
  }

  const Graph& g_;
  const Target& target_;
  Graph run_, prepare_;
  std::vector<bool> constant_, has_param_, in_prepare_;
  std::vector<Value> prepared_;  // outputs of prepare, in the order of the run graph's Params
  std::map<Value, Value> run_map_, prepare_map_, run_params_;
  std::map<std::string, Value> packed_;
};

// The sets of params that values read. Most values of a graph share a set with an operand; one that joins several
// refers to them and is written out only when somebody asks, so that a chain over ten thousand weights is linear.
class ParamSets {
 public:
  explicit ParamSets(const Graph& g) : g_(g) {
    sets_.emplace_back();  // of what reads none
    of_.reserve(g.num_nodes());
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
      const Node& n = g.nodes()[i];
      if (n.kind() == OpKind::Param) {
        sets_.push_back({{}, NodeId{i}, nullptr});
        of_.push_back(sets_.size() - 1);
        continue;
      }
      std::vector<std::size_t> parts;
      for (Value v : n.inputs)
        if (of_[v.node.index] != 0) parts.push_back(of_[v.node.index]);
      std::sort(parts.begin(), parts.end());
      parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
      of_.push_back(parts.empty() ? 0 : parts.size() == 1 ? parts[0] : joined(std::move(parts)));
    }
  }

  ParamNames names(Value v) {
    const std::size_t root = of_[v.node.index];
    if (sets_[root].names) return sets_[root].names;
    auto names = std::make_shared<std::vector<std::string>>();
    std::vector<std::size_t> open{root};
    std::set<std::size_t> seen{root};
    while (!open.empty()) {
      const Set& set = sets_[open.back()];
      open.pop_back();
      if (set.param.valid()) names->push_back(g_.leaf_name(set.param));
      for (std::size_t part : set.parts)
        if (seen.insert(part).second) open.push_back(part);
    }
    std::sort(names->begin(), names->end());
    return sets_[root].names = std::move(names);
  }

 private:
  struct Set {
    std::vector<std::size_t> parts;  // sets it joins
    NodeId param;                    // of a set of one
    ParamNames names;                // once asked for
  };

  std::size_t joined(std::vector<std::size_t> parts) {
    auto [it, fresh] = by_parts_.try_emplace(parts, sets_.size());
    if (fresh) sets_.push_back({std::move(parts), NodeId{}, nullptr});
    return it->second;
  }

  const Graph& g_;
  std::vector<Set> sets_;
  std::vector<std::size_t> of_;  // by node
  std::map<std::vector<std::size_t>, std::size_t> by_parts_;
};

}  // namespace

SplitProgram split_weights(const Graph& g, const Target& target) { return Splitter(g, target).split(); }

std::vector<std::string> prepared_keys(const Graph& prepare) {
  const std::vector<Fingerprint> nodes = node_fingerprints(prepare);
  std::vector<std::string> keys;
  for (Value v : prepare.outputs()) keys.push_back(concat_text(nodes[v.node.index].text(), ".", v.result));
  return keys;
}

std::vector<ParamNames> params_read(const Graph& prepare, std::span<const Value> values) {
  ParamSets sets(prepare);
  std::vector<ParamNames> out;
  for (Value v : values) out.push_back(sets.names(v));
  return out;
}

}  // namespace rlx
