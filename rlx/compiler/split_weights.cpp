// Splits a graph into weight preparation and run.
#include "rlx/compiler/split_weights.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "rlx/compiler/weight_regions.h"
#include "rlx/ir/math/conv_geometry.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/rewrite/symbol_order.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/value_map.h"

namespace rlx {
namespace {

constexpr double kMaxGrowth = 1.1;
// A prepared value keeps the list of its params, and setting one of them computes it again. In a chain of values, each
// of one more param, the lists would take memory and time of the square of its length. Stacks of experts have fewer.
constexpr std::size_t kMostParams = 512;
// A value of the run gets a packed layout for matmuls of loops that read it at least kLeastReads times with at most
// kMostRows rows. Packing costs one or two of these matmuls. With more rows a kernel reads a row-major matrix as fast
// (bench/control_flow).
constexpr std::int64_t kLeastReads = 16, kMostRows = 32;

class Splitter {
 public:
  Splitter(const Graph& g, const Target& target, MatmulPrecision allowed_loss)
      : g_(g), target_(target), allowed_loss_(allowed_loss), run_map_(g), prepare_map_(g) {
    for (std::uint32_t i = 0; i < g.num_nodes() && !has_blocks_; ++i)
      if (const OpBox& op = g.node(NodeId{i}).op; op.is<ops::Dequantize>())
        has_blocks_ = is_block_scheme(op.as<ops::Dequantize>().scheme);
  }

  SplitProgram split() {
    classify();
    scopes_ = weight_scopes(g_, pure_, target_);
    for (const auto& scope : scopes_)
      if (scope->parent) bodies_[{scope->parent->index, scope->node}].push_back(scope.get());
    live_.resize(scopes_.size());
    choose_packed_layouts();
    prepare_.set_name(g_.name() + ".prepare");
    run_ = copy_shell(g_);
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) copy_node(NodeId{i});
    copy_ends(run_, g_, [&](Value v) { return run_value(v); });
    prepare_.set_outputs(prepared_);
    return {std::move(run_), std::move(prepare_)};
  }

 private:
  // An operand of a node of a scope. `stack` is the scope, or a body around it, that takes one matrix in each step.
  struct Use {
    const WeightScope* scope = nullptr;
    NodeId user{};
    std::uint32_t operand = 0;
    const WeightScope* stack = nullptr;
  };
  // One or more weight matrices that matmuls read, with their packed layout; or a loop-invariant matrix that the run
  // computes.
  struct PackedMatrix {
    std::vector<WeightRegion> regions;
    bool in_run = false;
    bool readable = true;  // every region lies in a value of the prepare graph; for a matrix of the run, in memory
    ConstantMatrix matrix;
    std::int64_t count = 1;
    bool transposed = false;  // [N, K], as a gather reads it
    Dims dims{};              // dims of filters, which are [K, N] as a matrix; otherwise the shape is the matrix's
    PackedLayout layout;      // of each matrix
    std::vector<Use> others;
    Value made{};  // in the run graph, once it is made
  };
  // A packed operand that a node passes to its bodies beside its own operands. `whole` passes all matrices unchanged;
  // otherwise the body takes one of them in each step.
  struct Entry {
    std::size_t packed = 0;
    bool row = false, whole = false;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using NodeKey = std::pair<std::size_t, NodeId>;  // index of the scope, node

  // `pure_`: computed from frozen Params and Constants alone. `constant_`: pure, and small enough for the prepare
  // graph.
  void classify() {
    pure_.assign(g_.num_nodes(), false);
    constant_.assign(g_.num_nodes(), false);
    has_param_.assign(g_.num_nodes(), false);
    in_prepare_.assign(g_.num_nodes(), false);
    std::vector<double> source_bytes(g_.num_nodes(), 0);
    std::vector<ParamList> params(g_.num_nodes());  // of the values in the prepare graph
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
        if (has_param_[i]) params[i] = std::make_shared<const std::vector<std::uint32_t>>(1, i);
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
      // A value that depends on a symbol is computed in the run: its extents change, and prepared weights do not.
      const bool is_static =
          std::all_of(n.shapes.begin(), n.shapes.end(), [](const Shape& s) { return s.is_static(); });
      // Small values of constants alone are folded earlier. Large ones are moved or scaled once, not in each run.
      const bool once =
          kind == OpKind::Transpose || kind == OpKind::Reshape || kind == OpKind::Binary || kind == OpKind::Activation;
      if (!pure || !(param || once) || !is_static || has_symbols(n)) continue;
      pure_[i] = true;
      has_param_[i] = param;
      for (const Shape& s : n.shapes) own += static_cast<double>(s.size_bytes());
      source_bytes[i] = own;
      constant_[i] = all && own <= kMaxGrowth * sources;
      if (!constant_[i]) continue;
      params[i] = joined_params(n, params);
      constant_[i] = !params[i] || params[i]->size() <= kMostParams;
    }
  }

  // Params by index, sorted. Values that depend on the same ones share the list; null: none.
  using ParamList = std::shared_ptr<const std::vector<std::uint32_t>>;
  static ParamList joined_params(const Node& n, const std::vector<ParamList>& of) {
    std::set<ParamList> lists;
    for (Value v : n.inputs)
      if (of[v.node.index]) lists.insert(of[v.node.index]);
    if (lists.size() < 2) return lists.empty() ? nullptr : *lists.begin();
    std::vector<std::uint32_t> all;
    for (const ParamList& list : lists) all.insert(all.end(), list->begin(), list->end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (const ParamList& list : lists)
      if (list->size() == all.size()) return list;
    return std::make_shared<const std::vector<std::uint32_t>>(std::move(all));
  }

  // -- packed layouts --

  static bool few_rows(const Shape& x) {
    std::int64_t rows = 1;
    for (int a = 0; a + 1 < x.rank() && rows <= kMostRows; ++a)
      rows *= x.dim(a).is_static() ? x.dim(a).value() : kMostRows + 1;
    return rows <= kMostRows;
  }

  // A matmul of x [.., K] and a weight matrix, or in a loop a loop-invariant matrix, contracted over the last axis of
  // x. Returns the axis of the matrix's columns.
  static std::optional<int> weight_axis_of_matmul(const WeightScope& scope, NodeId id) {
    const Graph& g = *scope.graph;
    const Node& n = g.node(id);
    const std::vector<std::int64_t>*lc, *rc, *lb;
    if (const auto* dot = n.op.get_if<ops::DotGeneral>())
      lc = &dot->lhs_contract, rc = &dot->rhs_contract, lb = &dot->lhs_batch;
    else if (const auto* fused = n.op.get_if<ops::FusedDot>())
      lc = &fused->lhs_contract, rc = &fused->rhs_contract, lb = &fused->lhs_batch;
    else if (const auto* grouped = n.op.get_if<ops::GroupedDot>())
      return stacked_matmul(scope, n, *grouped) ? std::optional(2) : std::nullopt;
    else
      return std::nullopt;
    const Shape &x = g.shape(n.inputs[0]), &w = g.shape(n.inputs[1]);
    const std::uint32_t left = n.inputs[0].node.index, right = n.inputs[1].node.index;
    if (scope.pure[right] ? scope.pure[left] : !scope.loop_invariant[right] || scope.loop_invariant[left])
      return std::nullopt;
    if (w.rank() != 2 || x.rank() < 1 || !lb->empty() || lc->size() != 1 || (*lc)[0] != x.rank() - 1)
      return std::nullopt;
    if (!scope.pure[right] && (scope.iterations() < kLeastReads || !few_rows(x))) return std::nullopt;
    return static_cast<int>(1 - (*rc)[0]);
  }

  // A grouped matmul of rows and the matrices of their groups, where the matrices are weights of the program [E, K, N].
  static bool stacked_matmul(const WeightScope& scope, const Node& n, const ops::GroupedDot& op) {
    return op.fn == GroupedKind::Rows && !scope.parent && scope.pure[n.inputs[1].node.index] &&
           !scope.pure[n.inputs[0].node.index] && scope.graph->shape(n.inputs[1]).is_static();
  }

  // The filters [space.., C, O] of a convolution as a matrix [K, O], or as one [K, O / groups] matrix per group.
  // Requires that the filters come from weights and x does not.
  std::optional<PackedMatrix> filters_of(const WeightScope& scope, NodeId id) const {
    if (scope.parent) return std::nullopt;  // `id` belongs to the graph of a body
    const ops::Conv* const conv = conv_of(g_.node(id).op);
    if (conv == nullptr) return std::nullopt;
    const Node& n = g_.node(id);
    const Value v = n.inputs[1];
    const Shape& w = g_.shape(v);
    if (!pure_[v.node.index] || pure_[n.inputs[0].node.index] || !w.is_static()) return std::nullopt;
    const ConvGeometry geo = conv_geometry(*conv, w.rank());
    bool in_order = geo.w_out == w.rank() - 1 && geo.w_in == w.rank() - 2;
    for (std::size_t a = 0; a < geo.space.size(); ++a)
      in_order = in_order && geo.space[a].w == static_cast<std::int64_t>(a);
    if (!in_order || w.num_elements() == 0) return std::nullopt;
    PackedMatrix f;
    f.count = std::max(geo.groups, geo.batch_groups);  // one matrix for each group, of its columns
    const std::int64_t all = w.dim(-1).value(), columns = all / f.count;
    f.matrix = {w.num_elements() / all, columns, w.dtype(), w.dtype(), MatmulPrecision::Exact};
    for (std::int64_t group = 0; group < f.count; ++group) {
      std::vector<std::int64_t> start(static_cast<std::size_t>(w.rank()), 0);
      start.back() = group * columns;
      f.regions.push_back({v, w.rank() - 2, w.rank() - 1, std::move(start), columns});
    }
    f.readable = constant_[v.node.index];
    f.dims = w.dims();
    return f;
  }

  // Chooses a packed layout for the value that `use` reads, or takes that of an earlier reader.
  void choose_packed_layout(const Use& use, PackedMatrix f, std::map<std::string, std::size_t>& known) {
    const auto [it, fresh] = known.try_emplace(key_of(f), packed_.size());
    if (!fresh) {
      packed_[it->second].others.push_back(use);
      return;
    }
    if (f.readable)
      if (auto layout = target_.packed_layout(*use.scope->graph, use.user, 1, f.matrix)) f.layout = std::move(*layout);
    packed_.push_back(std::move(f));
    if (!packed_.back().layout.empty()) note(use, packed_.size() - 1);
  }

  // Chooses one packed layout for all readers of the same elements as the same matrix.
  void choose_packed_layouts() {
    std::map<std::string, std::size_t> known;
    for (const auto& scope : scopes_)
      for (std::uint32_t i = 0; i < scope->graph->num_nodes(); ++i) {
        const NodeId id{i};
        if (std::optional<PackedMatrix> f = filters_of(*scope, id)) {
          choose_packed_layout({scope.get(), id, 1}, std::move(*f), known);
          continue;
        }
        const std::optional<int> n_axis = weight_axis_of_matmul(*scope, id);
        if (!n_axis) continue;
        Use use{scope.get(), id, 1};
        std::optional<PackedMatrix> f = matrix_of(use, *n_axis);
        if (!f) continue;
        choose_packed_layout(use, std::move(*f), known);
      }
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const auto* gather = g_.nodes()[i].op.get_if<ops::Gather>();
      if (!gather || gather->axes != std::vector<std::int64_t>{0} || gather->mode != IndexMode::Clamp) continue;
      const Value table = g_.nodes()[i].inputs[0];
      if (g_.shape(table).rank() != 2 || !pure_[table.node.index]) continue;
      Use use{scopes_[0].get(), NodeId{i}, 0};
      const auto it = known.find(key_of(*matrix_of(use, 0)));
      if (it != known.end()) packed_[it->second].others.push_back(use);
    }
    for (std::size_t f = 0; f < packed_.size(); ++f) {
      if (packed_[f].layout.empty()) continue;
      for (const Use& use : packed_[f].others) {
        if (!target_.reads_packed(*use.scope->graph, use.user, static_cast<int>(use.operand), packed_[f].layout))
          continue;
        note(use, f);
        packed_[f].transposed = packed_[f].transposed || use.operand == 0;
      }
    }
  }

  // Records that the use reads packed value `f`. The nodes around its body pass it in.
  void note(const Use& use, std::size_t f) {
    layout_of_use_[{use.scope->index, use.user, use.operand}] = f;
    bool whole = false;  // of the bodies outside the stack's body
    for (const WeightScope* body = use.scope; body->parent; body = body->parent) {
      const Entry entry{f, body == use.stack, whole};
      whole = whole || entry.row;
      std::vector<Entry>& all = entries_[{body->parent->index, body->node}];
      if (std::find(all.begin(), all.end(), entry) == all.end()) all.push_back(entry);
    }
  }

  // The matrix that a use reads. None for a matrix that only a body has.
  std::optional<PackedMatrix> matrix_of(Use& use, int n_axis) const {
    const Value v = use.scope->graph->node(use.user).inputs[use.operand];
    const Shape& w = use.scope->graph->shape(v);
    PackedMatrix f;
    f.in_run = !use.scope->pure[v.node.index];
    std::optional<WeightMatrices> traced = w.rank() == 3 ? trace_stack(*use.scope, v, n_axis)
                                           : f.in_run    ? trace_loop_invariant(*use.scope, v, n_axis)
                                                         : trace_weight(*use.scope, v, n_axis);
    if (!traced) return std::nullopt;
    use.stack = traced->stack;
    const MatmulPrecision allowed_loss = f.in_run ? MatmulPrecision::Exact : allowed_loss_;
    const int k_axis = w.rank() == 3 ? 3 - n_axis : 1 - n_axis;
    f.matrix = {w.dim(k_axis).value(), w.dim(n_axis).value(), w.dtype(), w.dtype(), allowed_loss};
    f.regions = std::move(traced->regions);
    f.count = traced->count;
    for (const WeightRegion& r : f.regions)
      if (!r.value.node.valid()) return std::nullopt;
    if (!f.regions.empty()) {
      f.matrix.stored = g_.shape(f.regions.front().value).dtype();
      f.matrix.scheme = f.regions.front().scheme;
    }
    // The maker of a block-quantized file chooses what stays unquantized: a router of experts, a head.
    if (allowed_loss == MatmulPrecision::Int8 && has_blocks_ && !is_block_scheme(f.matrix.scheme))
      f.matrix.allowed_loss = MatmulPrecision::Exact;
    for (const WeightRegion& r : f.regions) {
      // Quantized values stay quantized: their matmuls read them directly.
      f.readable =
          f.readable && (f.in_run ? !g_.node(r.value.node).op.is<ops::Dequantize>() : constant_[r.value.node.index]);
      // Blocks can be packed when all have one scheme and fill the whole columns.
      const bool whole = !is_block_scheme(r.scheme) || f.matrix.k % block_layout(r.scheme).elements == 0;
      f.readable = f.readable && r.scheme == f.matrix.scheme && whole;
      // With sources of several dtypes, the packed layout has the dtype of the values.
      if (g_.shape(r.value).dtype() != f.matrix.stored) f.matrix.stored = f.matrix.dtype;
    }
    return f;
  }

  static std::string key_of(const PackedMatrix& f) {
    std::string key = concat_text(f.in_run ? "run," : "", f.matrix.k, ",", f.matrix.n, ",", f.count);
    for (const Dim& d : f.dims) key += concat_text(",", d);
    for (const WeightRegion& r : f.regions) {
      key += concat_text(";", r.value, ",", r.k_axis, ",", r.n_axis, ",", r.columns, ",", static_cast<int>(r.scheme));
      for (std::int64_t s : r.start) key += concat_text(",", s);
    }
    return key;
  }

  // The shape of a value in packed layout `f`, with the layout.
  static Shape shape_of(const PackedMatrix& f, bool whole) {
    if (!f.dims.empty()) return Shape(f.dims, f.matrix.dtype);
    Dims dims{f.transposed ? f.matrix.n : f.matrix.k, f.transposed ? f.matrix.k : f.matrix.n};
    if (whole && f.count > 1) dims.insert(dims.begin(), f.count);
    return Shape(std::move(dims), f.matrix.dtype);
  }
  static PackedLayout layout_in(const PackedMatrix& f, bool whole) {
    return whole ? stacked(f.layout, f.count) : f.layout;
  }

  // A packed matrix in the run graph: a Param, or a Relayout that the run computes before its first reader.
  Value packed_value(PackedMatrix& f, const Origin& origin) {
    if (f.made.node.valid()) return f.made;
    ops::Relayout op{layout_in(f, true), f.matrix.k, f.matrix.n, f.transposed, f.matrix.dtype, {}, f.matrix.scheme};
    std::vector<Value> sources;
    for (const WeightRegion& r : f.regions) {
      const std::vector<std::int64_t> strides = row_major_strides(element_dims(r, g_.shape(r.value)));
      std::int64_t offset = 0;
      for (std::size_t a = 0; a < strides.size(); ++a) offset += r.start[a] * strides[a];
      for (std::int64_t part : {r.columns, offset, strides[static_cast<std::size_t>(r.k_axis)],
                                strides[static_cast<std::size_t>(r.n_axis)]})
        op.sources.push_back(part);
      sources.push_back(f.in_run ? run_value(r.value) : prepare_value(r.value));
    }
    const Shape shape = shape_of(f, true);
    // The packed value is a matrix; filters keep their dims for the reader.
    Dims matrices{f.matrix.k, f.matrix.n};
    if (f.count > 1) matrices.insert(matrices.begin(), f.count);
    const Shape made = f.dims.empty() ? shape : Shape(std::move(matrices), f.matrix.dtype);
    const Value relayout(
        (f.in_run ? run_ : prepare_).add_node(Node{std::move(op), std::move(sources), {made}, origin}));
    return f.made = f.in_run ? relayout : run_param(relayout, shape, origin, layout_in(f, true));
  }

  // The op of a node for its packed operand 1, which was [K, N] or [N, K] before packing.
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

  // The value in the prepare graph. Copies its producers there on first use.
  Value prepare_value(Value v) {
    if (prepare_map_.has(v)) return prepare_map_(v);
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
      for (Value in : n.inputs) inputs.push_back(prepare_map_(in));
      NodeId id = prepare_.add_node(Node{n.op, std::move(inputs), n.shapes, n.origin});
      for (std::uint32_t r = 0; r < n.num_results(); ++r) prepare_map_.set(Value(from, r), Value(id, r));
    }
    return prepare_map_(v);
  }

  // A Param of the run graph that reads prepared value `p`.
  Value run_param(Value p, const Shape& shape, const Origin& origin, const PackedLayout& layout = {}) {
    auto it = run_params_.find(p);
    if (it != run_params_.end()) return it->second;
    const Node& made_by = prepare_.node(p.node);
    std::string name =
        made_by.kind() == OpKind::Param ? prepare_.leaf_name(p.node) : concat_text("prepared.", prepared_.size());
    NodeId id = run_.add_node(
        Node{ops::Param{std::move(name), shape.dims(), shape.dtype(), ParamMode::Frozen, layout}, {}, {shape}, origin});
    prepared_.push_back(p);
    run_params_[p] = Value(id);
    return Value(id);
  }

  // A value in the run graph. A value of weights alone that the prepare graph does not make is computed before its
  // first reader.
  Value run_value(Value v) {
    if (run_map_.has(v)) return run_map_(v);
    std::vector<Value> wanted{v};
    while (!wanted.empty()) {
      const Value want = wanted.back();
      const Node& n = g_.node(want.node);
      if (run_map_.has(want)) {
        wanted.pop_back();
        continue;
      }
      check(pure_[want.node.index], "a value of the run graph was not copied before its reader");
      if (n.kind() == OpKind::Constant) {  // embedded where it is used
        run_map_.set(want, Value(run_.add_node(n)));
      } else if (constant_[want.node.index]) {
        run_map_.set(want, run_param(prepare_value(want), g_.shape(want), n.origin));
      } else {
        const std::size_t before = wanted.size();
        for (Value in : n.inputs)
          if (!run_map_.has(in)) wanted.push_back(in);
        if (wanted.size() == before) copy(want.node);
      }
    }
    return run_map_(v);
  }

  void copy_node(NodeId id) {
    const Node& n = g_.node(id);
    if (pure_[id.index]) return;  // copied on use
    // Skips ops that only moved a matrix which is now read packed.
    if (!op_def(n.kind()).is_leaf() && !live_in(*scopes_[0])[id.index]) return;
    if (n.kind() == OpKind::Param) {  // a mutable one: the program reads its own bytes
      run_map_.set(Value(id), run_param(prepare_value(Value(id)), n.shape(), n.origin));
      return;
    }
    copy(id);
  }

  void copy(NodeId id) {
    const Node& n = g_.node(id);
    Node fresh = adapted(
        *scopes_[0], id, [&](Value v) { return run_value(v); },
        [&](std::size_t f, bool) { return packed_value(packed_[f], n.origin); });
    const NodeId added = run_.add_node(std::move(fresh));
    for (std::uint32_t r = 0; r < n.num_results(); ++r) run_map_.set(Value(id, r), Value(added, r));
  }

  // Writes the node with its packed operands, and with bodies that read their packed operands. `plain(value)` and
  // `formed(f, whole)` return operands in the written graph.
  template <class Plain, class PackedValue>
  Node adapted(const WeightScope& scope, NodeId id, const Plain& plain, const PackedValue& packed) {
    const Node& n = scope.graph->node(id);
    if (const auto held = entries_.find({scope.index, id}); held != entries_.end())
      return with_packed_layouts(scope, id, held->second, plain, packed);
    OpBox op = n.op;
    std::vector<Value> inputs;
    for (std::uint32_t i = 0; i < n.inputs.size(); ++i) {
      const auto at = layout_of_use_.find({scope.index, id, i});
      if (at == layout_of_use_.end()) {
        inputs.push_back(plain(n.inputs[i]));
        continue;
      }
      inputs.push_back(packed(at->second, false));
      op = contracting(op, packed_[at->second].transposed);
    }
    return Node{std::move(op), std::move(inputs), n.shapes, n.origin};
  }

  // -- bodies --

  // How the operands of a node with bodies divide. Conditions and carries stay. Other operands are dropped when no body
  // reads them any more. New loop-invariant operands follow the old ones, and new rows follow the old rows.
  struct HeldOperands {
    std::size_t first = 0;  // the operand of the first Input of a body
    std::size_t invariants = 0, carries = 0;

    explicit HeldOperands(const Node& n) {
      if (const std::optional<LoopParts> loop = loop_parts(n.op))
        invariants = loop->invariants, carries = loop->carries;
      else
        first = 1, invariants = n.inputs.size() - 1;  // a branch: after the condition
    }
    bool is_carry(std::size_t input) const { return input >= invariants && input < invariants + carries; }
  };

  // The nodes of a body, or of the program, that still run when matmuls read packed layouts.
  const std::vector<bool>& live_in(const WeightScope& scope) {
    std::vector<bool>& live = live_[scope.index];
    if (!live.empty()) return live;
    const Graph& g = *scope.graph;
    live.assign(g.num_nodes(), false);
    for (const Root& root : roots(g)) live[root.value.node.index] = true;
    if (!scope.parent)
      for (const PackedMatrix& f : packed_)
        for (const WeightRegion& r : f.regions)
          if (f.in_run && !f.layout.empty()) live[r.value.node.index] = true;
    for (std::uint32_t i = g.num_nodes(); i-- > 0;) {
      if (!live[i]) continue;
      const std::vector<bool> read = operands_read(scope, NodeId{i});
      for (std::size_t k = 0; k < read.size(); ++k)
        if (read[k]) live[g.nodes()[i].inputs[k].node.index] = true;
    }
    return live;
  }

  // The operands that a node reads unpacked.
  std::vector<bool> operands_read(const WeightScope& scope, NodeId id) {
    const Node& n = scope.graph->node(id);
    std::vector<bool> read(n.inputs.size(), true);
    if (!entries_.contains({scope.index, id})) {
      for (std::uint32_t k = 0; k < n.inputs.size(); ++k) read[k] = !layout_of_use_.contains({scope.index, id, k});
      return read;
    }
    const HeldOperands held(n);
    const std::vector<const WeightScope*>& bodies = bodies_.at({scope.index, id});
    for (std::size_t k = held.first; k < n.inputs.size(); ++k) {
      const std::size_t input = k - held.first;
      read[k] = held.is_carry(input) || std::any_of(bodies.begin(), bodies.end(), [&](const WeightScope* body) {
                  return input < body->inputs.size() && live_in(*body)[body->inputs[input].index];
                });
    }
    return read;
  }

  template <class Plain, class PackedValue>
  Node with_packed_layouts(const WeightScope& scope, NodeId id, const std::vector<Entry>& entries, const Plain& plain,
                           const PackedValue& packed) {
    const Node& n = scope.graph->node(id);
    const HeldOperands held(n);
    const std::vector<bool> read = operands_read(scope, id);
    std::vector<Value> inputs;
    std::size_t invariants = 0;
    const auto keep = [&](std::size_t from, std::size_t to) {
      for (std::size_t k = from; k < to; ++k)
        if (read[k]) inputs.push_back(plain(n.inputs[k]));
    };
    const auto take = [&](bool row) {
      for (const Entry& e : entries)
        if (e.row == row) inputs.push_back(packed(e.packed, e.row || e.whole));
    };
    keep(0, held.first + held.invariants);
    take(false);
    invariants = inputs.size() - held.first;
    keep(held.first + held.invariants, n.inputs.size());
    take(true);
    std::map<const Graph*, Subgraph> bodies;
    for (const WeightScope* body : bodies_.at({scope.index, id}))
      bodies[body->graph] = std::make_shared<const Graph>(body_with_packed_layouts(*body, read, entries));
    OpBox op = with_bodies(n.op, [&](std::string_view, const Subgraph& old) {
      const auto it = bodies.find(old.get());
      return it == bodies.end() ? Subgraph() : it->second;
    });
    if (const auto* scan = op.get_if<ops::Scan>()) {
      ops::Scan with = *scan;
      with.invariants = static_cast<std::int64_t>(invariants);
      op = std::move(with);
    } else if (const auto* loop = op.get_if<ops::While>()) {
      ops::While with = *loop;
      with.invariants = static_cast<std::int64_t>(invariants);
      op = std::move(with);
    }
    return Node{std::move(op), std::move(inputs), n.shapes, n.origin};
  }

  // A body whose Inputs are the operands that its node still takes, followed by the packed operands.
  Graph body_with_packed_layouts(const WeightScope& body, const std::vector<bool>& read,
                                 const std::vector<Entry>& entries) {
    const Graph& g = *body.graph;
    const Node& holder = body.parent->graph->node(body.node);
    const HeldOperands held(holder);
    const std::vector<bool>& live = live_in(body);
    Graph out = copy_shell(g);
    std::map<Value, Value> moved;
    std::map<std::pair<std::size_t, bool>, Value> packed;  // Inputs by packed value and `whole`
    const auto keep = [&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < std::min(to, body.inputs.size()); ++i)
        if (read[i + held.first]) moved[Value(body.inputs[i])] = Value(out.add_node(g.node(body.inputs[i])));
    };
    const auto take = [&](bool row) {
      for (const Entry& e : entries) {
        if (e.row != row) continue;
        const PackedMatrix& f = packed_[e.packed];
        const Shape shape = shape_of(f, e.whole);
        ops::Input input{concat_text("prepared.", e.packed, e.whole ? ".all" : ""), shape.dims(), shape.dtype(),
                         layout_in(f, e.whole)};
        packed[{e.packed, e.whole}] = Value(out.add_node(Node{std::move(input), {}, {shape}, holder.origin}));
      }
    };
    // The condition of a loop takes no rows.
    keep(0, held.invariants);
    take(false);
    keep(held.invariants, body.inputs.size());
    take(true);
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
      const NodeId id{i};
      if (!live[i] || g.node(id).kind() == OpKind::Input) continue;
      const NodeId added = out.add_node(adapted(
          body, id, [&](Value v) { return moved.at(v); },
          [&](std::size_t f, bool whole) {
            return packed.at({f, whole});
          }));
      for (std::uint32_t r = 0; r < g.node(id).num_results(); ++r) moved[Value(id, r)] = Value(added, r);
    }
    copy_ends(out, g, [&](Value v) { return moved.at(v); });
    return out;
  }

  const Graph& g_;
  const Target& target_;
  const MatmulPrecision allowed_loss_;
  bool has_blocks_ = false;  // the program has block-quantized weights, so other weights stay exact
  Graph run_, prepare_;
  std::vector<bool> pure_, constant_, has_param_, in_prepare_;
  std::vector<PackedMatrix> packed_;
  std::map<std::tuple<std::size_t, NodeId, std::uint32_t>, std::size_t> layout_of_use_;  // scope, node, operand
  std::vector<std::unique_ptr<WeightScope>> scopes_;
  std::map<NodeKey, std::vector<const WeightScope*>> bodies_;  // of the nodes that weights reach
  std::map<NodeKey, std::vector<Entry>> entries_;
  std::vector<std::vector<bool>> live_;  // by scope, computed on first use
  std::vector<Value> prepared_;          // outputs of prepare, in the order of the run graph's Params
  ValueMap run_map_, prepare_map_;
  std::map<Value, Value> run_params_;  // by output of `prepare`
};

// The sets of params that values read. Most values of a graph share the set of an operand. A value that joins several
// sets refers to them, and the union is computed only on request, so that a chain over ten thousand weights stays
// linear.
class ParamSets {
 public:
  explicit ParamSets(const Graph& g) : g_(g) {
    sets_.emplace_back();  // of values that read no params
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
    std::vector<std::size_t> parts;  // the sets that it joins
    NodeId param;                    // of a set of one
    ParamNames names;                // computed on request
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

SplitProgram split_weights(const Graph& g, const Target& target, MatmulPrecision allowed_loss) {
  return Splitter(g, target, allowed_loss).split();
}

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
