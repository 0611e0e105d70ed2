// Splitting a graph into weight preparation and run.
#include "rlx/compiler/split_weights.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "rlx/ir/fingerprint.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ir/roots.h"
#include "rlx/ir/symbol_order.h"

namespace rlx {
namespace {

constexpr double kMaxGrowth = 1.1;

// -- where the elements of a matrix lie --

// Columns of a matrix [K, N] in a value: element (k, j) is at `start`, k further along `k_axis`, j along `n_axis`.
struct Region {
  Value value;
  int k_axis = 0, n_axis = 1;
  std::vector<std::int64_t> start;  // by axis
  std::int64_t columns = 0;
};

// Follows regions of weight-only values down to what holds their elements, through whatever only moves or widens them.
class RegionTracer {
 public:
  RegionTracer(const Graph& g, const std::vector<bool>& pure) : g_(g), pure_(pure) {}

  std::vector<Region> trace(Value matrix, int n_axis) {
    Region all{matrix, 1 - n_axis, n_axis, {0, 0}, g_.shape(matrix).dim(n_axis).value()};
    follow(std::move(all));
    return std::move(found_);
  }

 private:
  void follow(Region r) {
    const Node& n = g_.node(r.value.node);
    if (n.num_results() != 1 || n.inputs.empty() || !pure_[r.value.node.index]) return found_.push_back(std::move(r));
    const Shape& shape = n.shape();
    if (const auto* concat = n.op.get_if<ops::Concat>(); concat && concat->axis == r.n_axis) {
      const auto axis = static_cast<std::size_t>(r.n_axis);
      std::int64_t first = r.start[axis], left = r.columns;
      for (Value part : n.inputs) {
        const std::int64_t extent = g_.shape(part).dim(r.n_axis).value();
        if (const std::int64_t take = std::min(left, extent - first); take > 0) {
          Region piece = r;
          piece.value = part;
          piece.start[axis] = first;
          piece.columns = take;
          follow(std::move(piece));
          left -= take;
        }
        first = std::max<std::int64_t>(0, first - extent);
      }
      return;
    }
    if (const auto* transpose = n.op.get_if<ops::Transpose>()) {
      std::vector<std::int64_t> start(r.start.size());
      for (std::size_t i = 0; i < start.size(); ++i) start[static_cast<std::size_t>(transpose->perm[i])] = r.start[i];
      r.k_axis = static_cast<int>(transpose->perm[static_cast<std::size_t>(r.k_axis)]);
      r.n_axis = static_cast<int>(transpose->perm[static_cast<std::size_t>(r.n_axis)]);
      r.start = std::move(start);
    } else if (const auto* slice = n.op.get_if<ops::Slice>(); slice && steps_of_one(*slice)) {
      for (std::size_t i = 0; i < r.start.size(); ++i) r.start[i] += slice->starts[i].value();
    } else if (n.op.is<ops::Reshape>()) {
      if (!reshape(r, shape, g_.shape(n.inputs[0]))) return found_.push_back(std::move(r));
    } else if (!widens(n, shape.dtype(), g_.shape(n.inputs[0]).dtype())) {
      return found_.push_back(std::move(r));
    }
    r.value = n.inputs[0];
    follow(std::move(r));
  }

  static bool steps_of_one(const ops::Slice& s) {
    const auto one = [](std::int64_t step) { return step == 1; };
    const auto fixed = [](const Dim& d) { return d.is_static(); };
    return std::all_of(s.strides.begin(), s.strides.end(), one) && std::all_of(s.starts.begin(), s.starts.end(), fixed);
  }

  static bool widens(const Node& n, DType to, DType from) {
    return n.kind() == OpKind::Cast && to == DType::F32 && (from == DType::BF16 || from == DType::F16);
  }

  // A reshape that only adds or drops axes of one element.
  bool reshape(Region& r, const Shape& to, const Shape& from) const {
    std::vector<std::int64_t> start(static_cast<std::size_t>(from.rank()), 0);
    int k_axis = -1, n_axis = -1, t = 0;
    for (int f = 0; f < from.rank(); ++f) {
      if (from.dim(f).is_static(1)) continue;
      while (t < to.rank() && to.dim(t).is_static(1)) ++t;
      if (t == to.rank() || !(to.dim(t) == from.dim(f))) return false;
      start[static_cast<std::size_t>(f)] = r.start[static_cast<std::size_t>(t)];
      if (t == r.k_axis) k_axis = f;
      if (t == r.n_axis) n_axis = f;
      ++t;
    }
    if (k_axis < 0 || n_axis < 0) return false;
    r.k_axis = k_axis, r.n_axis = n_axis;
    r.start = std::move(start);
    return true;
  }

  const Graph& g_;
  const std::vector<bool>& pure_;
  std::vector<Region> found_;
};

// -- splitting --

class Splitter {
 public:
  Splitter(const Graph& g, const Target& target) : g_(g), target_(target) {}

  SplitProgram split() {
    classify();
    choose_forms();
    prepare_.set_name(g_.name() + ".prepare");
    run_ = copy_shell(g_);
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) copy_node(NodeId{i});
    copy_ends(run_, g_, [&](Value v) { return run_value(v); });
    prepare_.set_outputs(prepared_);
    return {std::move(run_), std::move(prepare_)};
  }

 private:
  // A matrix of weights that products read, and the form that they read it in.
  struct Formed {
    std::vector<Region> regions;
    bool readable = true;  // every region lies in a value that is made ahead
    ConstantMatrix matrix;
    NodeId first;             // the product that is asked for the form
    bool transposed = false;  // [N, K], as a gather reads it
    Form form;
    std::vector<UseIndex::Use> others;
    Value prepared{};  // its relayout, once made
    Value param{};     // in the run graph
  };

  // `pure_`: from frozen Params and Constants alone. `constant_`: that, and small enough to be made ahead.
  void classify() {
    pure_.assign(g_.num_nodes(), false);
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
        pure_[i] = constant_[i] = true;
        has_param_[i] = kind == OpKind::Param;
        source_bytes[i] = static_cast<double>(n.shape().size_bytes());
        continue;
      }
      if (n.inputs.empty() || op_def(kind).is_leaf() || is_ordered(n.op)) continue;
      bool pure = true, all = true, param = false;
      double sources = 0, own = 0;
      for (Value v : n.inputs) {
        pure = pure && pure_[v.node.index];
        all = all && constant_[v.node.index];
        param = param || has_param_[v.node.index];
        sources += source_bytes[v.node.index];
      }
      // What depends on a symbol too is computed in the run: its extents change, prepared weights do not.
      const bool is_static =
          std::all_of(n.shapes.begin(), n.shapes.end(), [](const Shape& s) { return s.is_static(); });
      if (!pure || !param || !is_static || has_symbols(n)) continue;
      pure_[i] = has_param_[i] = true;
      for (const Shape& s : n.shapes) own += static_cast<double>(s.size_bytes());
      source_bytes[i] = own;
      constant_[i] = all && own <= kMaxGrowth * sources;
    }
  }

  // -- forms --

  // x [.., K] times a matrix of weights, contracted over x's last axis; gives the axis of its columns.
  std::optional<int> product_of_weight(NodeId id) const {
    const Node& n = g_.node(id);
    const std::vector<std::int64_t>*lc, *rc, *lb;
    if (const auto* dot = n.op.get_if<ops::DotGeneral>())
      lc = &dot->lhs_contract, rc = &dot->rhs_contract, lb = &dot->lhs_batch;
    else if (const auto* fused = n.op.get_if<ops::FusedDot>())
      lc = &fused->lhs_contract, rc = &fused->rhs_contract, lb = &fused->lhs_batch;
    else
      return std::nullopt;
    const Shape &x = g_.shape(n.inputs[0]), &w = g_.shape(n.inputs[1]);
    if (!pure_[n.inputs[1].node.index] || pure_[n.inputs[0].node.index]) return std::nullopt;
    if (w.rank() != 2 || x.rank() < 1 || !lb->empty() || lc->size() != 1 || (*lc)[0] != x.rank() - 1)
      return std::nullopt;
    return static_cast<int>(1 - (*rc)[0]);
  }

  // One form for all that read the same elements as the same matrix.
  void choose_forms() {
    std::map<std::string, std::size_t> known;
    std::vector<UseIndex::Use> gathers;
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const NodeId id{i};
      const Node& n = g_.node(id);
      const auto* gather = n.op.get_if<ops::Gather>();
      if (gather && gather->axes == std::vector<std::int64_t>{0} && gather->mode == IndexMode::Clamp &&
          g_.shape(n.inputs[0]).rank() == 2 && pure_[n.inputs[0].node.index])
        gathers.push_back({id, 0});
      const std::optional<int> n_axis = product_of_weight(id);
      if (!n_axis) continue;
      Formed f = matrix_of(n.inputs[1], *n_axis);
      f.first = id;
      const auto [it, fresh] = known.try_emplace(key_of(f), formed_.size());
      if (!fresh) {
        formed_[it->second].others.push_back({id, 1});
        continue;
      }
      if (f.readable)
        if (auto form = target_.form(g_, id, 1, f.matrix)) f.form = std::move(*form);
      if (!f.form.empty()) form_of_use_[{id, 1}] = formed_.size();
      formed_.push_back(std::move(f));
    }
    for (const UseIndex::Use& use : gathers) {
      const auto it = known.find(key_of(matrix_of(g_.node(use.user).inputs[0], 0)));
      if (it != known.end()) formed_[it->second].others.push_back(use);
    }
    for (std::size_t f = 0; f < formed_.size(); ++f) {
      if (formed_[f].form.empty()) continue;
      for (const UseIndex::Use& use : formed_[f].others) {
        if (!target_.reads_form(g_, use.user, static_cast<int>(use.operand), formed_[f].form)) continue;
        form_of_use_[{use.user, use.operand}] = f;
        formed_[f].transposed = formed_[f].transposed || use.operand == 0;
      }
    }
  }

  Formed matrix_of(Value v, int n_axis) const {
    const Shape& w = g_.shape(v);
    Formed f;
    f.matrix = {w.dim(1 - n_axis).value(), w.dim(n_axis).value(), w.dtype(), w.dtype()};
    f.regions = RegionTracer(g_, pure_).trace(v, n_axis);
    if (!f.regions.empty()) f.matrix.stored = g_.shape(f.regions.front().value).dtype();
    for (const Region& r : f.regions) {
      f.readable = f.readable && constant_[r.value.node.index];
      // Of sources in several dtypes the form is that of the values.
      if (g_.shape(r.value).dtype() != f.matrix.stored) f.matrix.stored = f.matrix.dtype;
    }
    return f;
  }

  static std::string key_of(const Formed& f) {
    std::string key = concat_text(f.matrix.k, ",", f.matrix.n);
    for (const Region& r : f.regions) {
      key += concat_text(";", r.value, ",", r.k_axis, ",", r.n_axis, ",", r.columns);
      for (std::int64_t s : r.start) key += concat_text(",", s);
    }
    return key;
  }

  // The Param of the run graph that reads a matrix in its form.
  Value formed_param(Formed& f, const Origin& origin) {
    if (f.param.node.valid()) return f.param;
    ops::Relayout op{f.form, f.matrix.k, f.matrix.n, f.transposed, f.matrix.dtype, {}};
    std::vector<Value> sources;
    for (const Region& r : f.regions) {
      const std::vector<std::int64_t> strides = row_major_strides(g_.shape(r.value).static_dims());
      std::int64_t offset = 0;
      for (std::size_t a = 0; a < strides.size(); ++a) offset += r.start[a] * strides[a];
      for (std::int64_t part : {r.columns, offset, strides[static_cast<std::size_t>(r.k_axis)],
                                strides[static_cast<std::size_t>(r.n_axis)]})
        op.sources.push_back(part);
      sources.push_back(prepare_value(r.value));
    }
    const Shape shape({f.transposed ? f.matrix.n : f.matrix.k, f.transposed ? f.matrix.k : f.matrix.n}, f.matrix.dtype);
    f.prepared = Value(prepare_.add_node(Node{std::move(op), std::move(sources), {shape}, origin}));
    return f.param = run_param(f.prepared, shape, origin, f.form);
  }

  // The op of a node that reads operand 1, once [K, N] or [N, K] as it came, as the form has it.
  static OpBox contracting(const OpBox& op, bool transposed) {
    const std::vector<std::int64_t> axis{transposed ? 1 : 0};
    if (const auto* dot = op.get_if<ops::DotGeneral>()) {
      ops::DotGeneral out = *dot;
      out.rhs_contract = axis;
      return out;
    }
    if (const auto* fused = op.get_if<ops::FusedDot>()) {
      ops::FusedDot out = *fused;
      out.rhs_contract = axis;
      return out;
    }
    return op;
  }

  // -- copying --

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
  Value run_param(Value p, const Shape& shape, const Origin& origin, const Form& form = {}) {
    auto it = run_params_.find(p);
    if (it != run_params_.end()) return it->second;
    const Node& made_by = prepare_.node(p.node);
    std::string name =
        made_by.kind() == OpKind::Param ? prepare_.leaf_name(p.node) : concat_text("prepared.", prepared_.size());
    NodeId id = run_.add_node(
        Node{ops::Param{std::move(name), shape.dims(), shape.dtype(), ParamMode::Frozen, form}, {}, {shape}, origin});
    prepared_.push_back(p);
    run_params_[p] = Value(id);
    return Value(id);
  }

  // A value in the run graph; what weights alone give, and is not made ahead, is computed where it is first read.
  Value run_value(Value v) {
    auto it = run_map_.find(v);
    if (it != run_map_.end()) return it->second;
    std::vector<Value> wanted{v};
    while (!wanted.empty()) {
      const Value want = wanted.back();
      const Node& n = g_.node(want.node);
      if (run_map_.contains(want)) {
        wanted.pop_back();
        continue;
      }
      check(pure_[want.node.index], "a run value was not copied in order");
      if (n.kind() == OpKind::Constant) {  // embedded where it is used
        run_map_[want] = Value(run_.add_node(n));
      } else if (constant_[want.node.index]) {
        run_map_[want] = run_param(prepare_value(want), g_.shape(want), n.origin);
      } else {
        const std::size_t before = wanted.size();
        for (Value in : n.inputs)
          if (!run_map_.contains(in)) wanted.push_back(in);
        if (wanted.size() == before) copy(want.node);
      }
    }
    return run_map_.at(v);
  }

  void copy_node(NodeId id) {
    const Node& n = g_.node(id);
    if (pure_[id.index]) return;      // copied on use
    if (n.kind() == OpKind::Param) {  // a mutable one: its own bytes are what the program reads
      run_map_[Value(id)] = run_param(prepare_value(Value(id)), n.shape(), n.origin);
      return;
    }
    copy(id);
  }

  void copy(NodeId id) {
    const Node& n = g_.node(id);
    OpBox op = n.op;
    std::vector<Value> inputs;
    for (std::uint32_t i = 0; i < n.inputs.size(); ++i) {
      const auto at = form_of_use_.find({id, i});
      if (at == form_of_use_.end()) {
        inputs.push_back(run_value(n.inputs[i]));
        continue;
      }
      Formed& f = formed_[at->second];
      inputs.push_back(formed_param(f, n.origin));
      op = contracting(op, f.transposed);
    }
    NodeId fresh = run_.add_node(Node{std::move(op), std::move(inputs), n.shapes, n.origin});
    for (std::uint32_t r = 0; r < n.num_results(); ++r) run_map_[Value(id, r)] = Value(fresh, r);
  }

  const Graph& g_;
  const Target& target_;
  Graph run_, prepare_;
  std::vector<bool> pure_, constant_, has_param_, in_prepare_;
  std::vector<Formed> formed_;
  std::map<std::pair<NodeId, std::uint32_t>, std::size_t> form_of_use_;  // (node, operand) -> formed_
  std::vector<Value> prepared_;  // outputs of prepare, in the order of the run graph's Params
  std::map<Value, Value> run_map_, prepare_map_, run_params_;
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
