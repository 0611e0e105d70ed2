// fold-scale-shift: what is multiplied with each channel of a convolution or matmul of weights goes into the weights,
// and what is added becomes one vector. Batch norm of inference is such a scale and shift.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "rlx/ir/input_spec.h"
#include "rlx/ir/math/conv_geometry.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxScaleSteps = 32;  // keeps the pass linear
// Weight preparation stores no value that takes more memory than what it is computed from (split_weights.cpp). Weights
// scaled by such a value would be computed in each run.
constexpr double kPreparedGrowth = 1.1;

// Which values are prepared when weights are set.
class PreparedValues {
 public:
  explicit PreparedValues(const Graph& g) : param_only_(param_only_nodes(g)), grows_(g.num_nodes(), false) {
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
      const Node& n = g.nodes()[i];
      if (!param_only_[i] || n.inputs.empty()) continue;
      double own = 0, sources = 0;
      for (const Shape& s : n.shapes) own += static_cast<double>(s.size_bytes());
      for (Value v : n.inputs) {
        sources += static_cast<double>(g.shape(v).size_bytes());
        grows_[i] = grows_[i] || grows_[v.node.index];
      }
      grows_[i] = grows_[i] || own > kPreparedGrowth * sources;
    }
  }
  bool param_only(Value v) const { return param_only_[v.node.index]; }
  bool grows(Value v) const { return grows_[v.node.index]; }

 private:
  std::vector<bool> param_only_, grows_;
};

enum class ScaleKind : std::uint8_t { Add, Sub, SubFrom, Mul, Div, Norm };

// One op of the chain after the root: a scale, a shift or a batch norm by one number for each channel, or by one
// number.
struct ScaleStep {
  ScaleKind kind = ScaleKind::Add;
  NodeId node;
  Value operand;          // of all kinds but Norm
  bool constant = false;  // the operand is a constant number
  int axis = -1;          // of the value that it reads; -1: the operand is one number
  bool scales() const { return kind == ScaleKind::Mul || kind == ScaleKind::Div || kind == ScaleKind::Norm; }
};

// Why a chain is not folded.
struct FoldRefusal {
  MissReason reason = MissReason::NotFused;
  std::string detail, hint;
  bool only_norms = false;  // reported for a batch norm alone
};

// A convolution or product with the chain after it.
struct ScaleChain {
  NodeId root;
  Value tip;                     // the value that is replaced
  std::vector<ScaleStep> steps;  // scales and shifts
  std::vector<NodeId> layout;    // reshapes and transposes among them, in order
  int root_axis = -1;            // the channels in the result of the root
  std::size_t operand = 1;       // the root's operand that is scaled
  Value weight;                  // that operand without an expand
  int weight_axis = -1;          // its channels
};

Value before_expand(const Graph& g, Value v) {
  while (g.node(v.node).kind() == OpKind::Expand) v = g.node(v.node).inputs[0];
  return v;
}

bool is_inference_norm(const Node& n) {
  return n.kind() == OpKind::BatchNorm && find_operand(n.op, static_cast<int>(n.inputs.size()), "mean").has_value();
}

// The axis of the operand `i` of a matmul that axis `axis` of the result comes from; -1: none.
int axis_in_operand(const Graph& g, const Node& n, std::size_t i, int axis) {
  const auto& dot = n.op.as<ops::DotGeneral>();
  const auto& batch = i == 0 ? dot.lhs_batch : dot.rhs_batch;
  const auto& contract = i == 0 ? dot.lhs_contract : dot.rhs_contract;
  if (axis < static_cast<int>(batch.size())) return static_cast<int>(batch[static_cast<std::size_t>(axis)]);
  const int left_free = g.shape(n.inputs[0]).rank() - static_cast<int>(batch.size() + contract.size());
  int at = axis - static_cast<int>(batch.size());
  if ((at < left_free) != (i == 0)) return -1;
  if (i == 1) at -= left_free;
  const auto has = [](const std::vector<std::int64_t>& axes, int a) {
    return std::find(axes.begin(), axes.end(), a) != axes.end();
  };
  for (int a = 0; a < g.shape(n.inputs[i]).rank(); ++a)
    if (!has(batch, a) && !has(contract, a) && at-- == 0) return a;
  return -1;
}

class ScaleFolder {
 public:
  ScaleFolder(GraphRewriter& r, const PassContext& context) : r_(r), g_(r.source()), context_(context), prepared_(g_) {}

  void run() {
    norm_seen_.assign(g_.num_nodes(), false);
    folded_.assign(g_.num_nodes(), false);
    for (NodeId id : r_.nodes())
      if (is_root(id)) collect(id);
    // Weights are scaled once for all that read them. A copy for each reader would take memory.
    for (const ScaleChain& c : chains_) {
      std::optional<FoldRefusal> stop = sharing_refuses(c);
      if (!stop) stop = fold(c);
      if (stop) missed(c, std::move(*stop));
    }
    for (NodeId id : r_.nodes()) {
      if (!is_inference_norm(g_.node(id)) || r_.is_replaced(id) || folded_[id.index]) continue;
      if (!norm_seen_[id.index])
        context_.missed("batch_norm", g_, id, MissReason::NotFused,
                        concat_text("x is ", node_text(g_, g_.node(id).inputs[0].node),
                                    ", not the result of a convolution or product of weights"));
      write_out(id);
    }
  }

 private:
  bool is_root(NodeId id) const {
    const Node& n = g_.node(id);
    if (n.kind() != OpKind::Conv && n.kind() != OpKind::DotGeneral) return false;
    return n.shape().rank() > 0 && is_float(n.shape().dtype()) && !prepared_.param_only(Value(id));
  }
  static const char* root_name(const Node& n) { return n.kind() == OpKind::Conv ? "convolution" : "product"; }
  std::string_view pattern(const ScaleChain& c) const {
    const bool norm =
        std::any_of(c.steps.begin(), c.steps.end(), [](const ScaleStep& s) { return s.kind == ScaleKind::Norm; });
    if (g_.node(c.root).kind() == OpKind::Conv) return norm ? "conv_batch_norm" : "conv_scale_shift";
    return norm ? "matmul_batch_norm" : "matmul_scale_shift";
  }
  void missed(const ScaleChain& c, FoldRefusal stop) {
    context_.missed(pattern(c), g_, c.root, stop.reason, std::move(stop.detail), std::move(stop.hint));
  }

  // -- the chain --

  // Where the axes of the root lie in a value of the chain; -1: lost.
  using Places = std::vector<int>;

  static void move(Places& places, const Node& layout, const Shape& from) {
    if (const auto* t = layout.op.get_if<ops::Transpose>()) {
      for (int& p : places)
        if (p >= 0) p = static_cast<int>(std::find(t->perm.begin(), t->perm.end(), p) - t->perm.begin());
      return;
    }
    const auto before = [](const Shape& s, int axis) {
      Dim n(1);
      for (int a = 0; a < axis; ++a) n = n * s.dim(a);
      return n;
    };
    const Shape& to = layout.shape();
    for (int& p : places) {
      if (p < 0) continue;
      int found = -1;
      for (int a = 0; a < to.rank() && found < 0; ++a)
        if (to.dim(a) == from.dim(p) && before(to, a) == before(from, p)) found = a;
      p = found;
    }
  }

  // The step of the op that reads `tip`, if it scales or shifts channels.
  std::optional<ScaleStep> step_of(Value tip, const UseIndex::Use& use) const {
    const Node& n = g_.node(use.user);
    const Shape& acc = g_.shape(tip);
    if (is_inference_norm(n) && use.operand == 0)
      return ScaleStep{ScaleKind::Norm, use.user, {}, false, static_cast<int>(n.op.as<ops::BatchNorm>().axis)};
    const auto* b = n.op.get_if<ops::Binary>();
    if (!b || !(n.shape() == acc)) return std::nullopt;
    ScaleStep s{ScaleKind::Add, use.user, n.inputs[1 - use.operand], false, -1};
    switch (b->fn) {
      case BinaryKind::Add: break;
      case BinaryKind::Sub: s.kind = use.operand == 0 ? ScaleKind::Sub : ScaleKind::SubFrom; break;
      case BinaryKind::Mul: s.kind = ScaleKind::Mul; break;
      case BinaryKind::Div:
        if (use.operand != 0) return std::nullopt;
        s.kind = ScaleKind::Div;
        break;
      default: return std::nullopt;
    }
    s.constant = constant_scalar(g_, s.operand).has_value();
    s.operand = before_expand(g_, s.operand);
    const Shape& shape = g_.shape(s.operand);
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape.dim(i).is_static(1)) continue;
      if (s.axis >= 0) return std::nullopt;
      s.axis = i + acc.rank() - shape.rank();
      if (s.axis < 0 || !(shape.dim(i) == acc.dim(s.axis))) return std::nullopt;
    }
    return s;
  }
  // The values that a step reads beside the chain.
  std::vector<Value> operands(const ScaleStep& s) const {
    if (s.kind != ScaleKind::Norm) return {s.operand};
    const auto& in = g_.node(s.node).inputs;
    return {in.begin() + 1, in.end()};
  }
  // The operand that is not prepared when weights are set, and why.
  std::optional<FoldRefusal> operand_refuses(const ScaleStep& s) const {
    for (Value v : operands(s)) {
      if (!prepared_.param_only(v))
        return FoldRefusal{
            MissReason::WeightNotConstant,
            concat_text(node_text(g_, v.node), " is not computed from constants and frozen params alone"),
            "make it a frozen param, or a constant"};
      if (prepared_.grows(v))
        return FoldRefusal{MissReason::WeightNotConstant,
                           concat_text(v, " takes more memory than its params, so it is computed in each run"),
                           {}};
    }
    return std::nullopt;
  }
  // True for a step whose miss is worth a line of the report: a batch norm, or a scale by weights.
  bool worth_a_line(const ScaleStep& s) const {
    return s.kind == ScaleKind::Norm || (s.scales() && !s.constant && prepared_.param_only(s.operand));
  }

  void collect(NodeId root) {
    ScaleChain c{};
    c.root = root, c.tip = Value(root);
    const int rank = g_.shape(root).rank();
    Places places(static_cast<std::size_t>(rank));
    for (int a = 0; a < rank; ++a) places[static_cast<std::size_t>(a)] = a;
    std::optional<FoldRefusal> stop;
    std::size_t kept = 0, kept_layout = 0;
    bool scaled = false;
    Value tip(root);
    std::vector<NodeId> layout;
    while (c.steps.size() + layout.size() < kMaxScaleSteps) {
      const auto uses = r_.uses().uses(tip);
      if (uses.size() != 1 || r_.uses().is_output(tip)) {
        note_readers(c, tip);
        break;
      }
      const UseIndex::Use use = uses[0];
      const Node& n = g_.node(use.user);
      if (n.kind() == OpKind::Transpose || n.kind() == OpKind::Reshape) {
        move(places, n, g_.shape(tip));
        layout.push_back(use.user);
        tip = Value(use.user);
        continue;
      }
      const std::optional<ScaleStep> s = step_of(tip, use);
      if (!s) break;
      stop = operand_refuses(*s);
      if (!stop) stop = take_axis(c, *s, places);
      if (stop) {
        c.steps.push_back(*s);
        if (worth_a_line(*s) && (s->kind == ScaleKind::Norm || !stop->only_norms)) note(c, std::move(*stop));
        c.steps.pop_back();
        break;
      }
      c.steps.push_back(*s);
      tip = Value(use.user);
      scaled = scaled || (s->scales() && !s->constant);
      // Constant numbers at the end stay: epilogues take them as they are.
      if (scaled && !s->constant) kept = c.steps.size(), kept_layout = layout.size(), c.tip = tip;
    }
    if (!scaled || c.root_axis < 0) return;
    c.steps.resize(kept);
    layout.resize(kept_layout);
    c.layout = std::move(layout);
    for (const ScaleStep& s : c.steps)
      if (s.kind == ScaleKind::Norm) norm_seen_[s.node.index] = true;
    chains_.push_back(std::move(c));
  }

  // Reports a chain that ends where another reader or an output needs the value.
  void note_readers(ScaleChain& c, Value tip) {
    const auto uses = r_.uses().uses(tip);
    for (const UseIndex::Use& u : uses) {
      const std::optional<ScaleStep> s = step_of(tip, u);
      if (!s || !worth_a_line(*s)) continue;
      c.steps.push_back(*s);
      if (r_.uses().is_output(tip))
        note(c, {MissReason::IsOutput, concat_text(tip, " is an output of the graph"), {}});
      else
        note(c, {MissReason::MultiConsumer,
                 concat_text(tip, " has ", uses.size(), " readers: ", uses[0].user, ", ", uses[1].user,
                             uses.size() > 2 ? ", .." : ""),
                 {}});
      c.steps.pop_back();
      return;
    }
  }
  void note(const ScaleChain& c, FoldRefusal stop) {
    if (c.steps.back().kind == ScaleKind::Norm) norm_seen_[c.steps.back().node.index] = true;
    missed(c, std::move(stop));
  }

  // Finds the channels of the step in the root and in its weights. All steps must agree on them.
  std::optional<FoldRefusal> take_axis(ScaleChain& c, const ScaleStep& s, const Places& places) const {
    if (s.axis < 0) return std::nullopt;
    const auto at = std::find(places.begin(), places.end(), s.axis);
    const int axis = at == places.end() ? -1 : static_cast<int>(at - places.begin());
    if (axis >= 0 && axis == c.root_axis) return std::nullopt;
    const Node& root = g_.node(c.root);
    const DType t = root.shape().dtype();
    if ((t != DType::F32 && t != DType::F64) || g_.shape(root.inputs[0]).dtype() != t ||
        g_.shape(root.inputs[1]).dtype() != t)
      return FoldRefusal{MissReason::NotFused,
                         concat_text("the ", root_name(root), " reads ", dtype_name(g_.shape(root.inputs[1]).dtype()),
                                     " and gives ", dtype_name(t), ": scaled weights would be rounded once more"),
                         "fold in f32, and choose the precision when compiling"};
    if (axis < 0 || c.root_axis >= 0)
      return FoldRefusal{MissReason::ShapeMismatch,
                         concat_text(node_text(g_, s.node), " does not scale one axis of the ", root_name(root)),
                         {}};
    std::optional<FoldRefusal> why;
    for (std::size_t i : {1, 0}) {
      int own = -1;
      if (const auto* conv = root.op.get_if<ops::Conv>()) {
        const ConvGeometry geo = conv_geometry(*conv, root.shape().rank());
        if (i == 1 && axis == geo.y_feature) own = static_cast<int>(geo.w_out);
      } else {
        own = axis_in_operand(g_, root, i, axis);
      }
      if (own < 0) continue;
      // An expanded filter is scaled before it is expanded.
      Value w = root.inputs[i];
      while (own >= 0 && g_.node(w.node).kind() == OpKind::Expand) {
        const Shape wide = g_.shape(w);
        w = g_.node(w.node).inputs[0];
        const int from = own - (wide.rank() - g_.shape(w).rank());
        own = from >= 0 && g_.shape(w).dim(from) == wide.dim(own) ? from : -1;
      }
      if (own < 0) continue;
      why = weight_refuses(w);
      if (why) continue;
      c.root_axis = axis, c.operand = i, c.weight = w, c.weight_axis = own;
      return std::nullopt;
    }
    if (why) return why;
    return FoldRefusal{
        MissReason::ShapeMismatch,
        concat_text(node_text(g_, s.node), " does not scale the output channels of the ", root_name(root)),
        {}};
  }
  std::optional<FoldRefusal> weight_refuses(Value w) const {
    if (!prepared_.param_only(w))
      return FoldRefusal{
          MissReason::WeightNotConstant,
          concat_text("the weight is ", node_text(g_, w.node), ", not computed from constants and frozen params alone"),
          "make the weight a frozen param, or a constant"};
    if (prepared_.grows(w))
      return FoldRefusal{MissReason::WeightNotConstant,
                         concat_text("the weight ", node_text(g_, w.node),
                                     " takes more memory than its params, so it is decoded where it is used"),
                         {}};
    return std::nullopt;
  }

  // -- the fold --

  using Key = std::vector<std::tuple<int, Value, double>>;
  Key key_of(const ScaleChain& c) const {
    Key key{{c.weight_axis, c.weight, 0.0}};
    for (const ScaleStep& s : c.steps) {
      const auto* norm = g_.node(s.node).op.get_if<ops::BatchNorm>();
      const int kind = static_cast<int>(s.kind) | (norm ? static_cast<int>(norm->present.bits) << 8 : 0);
      for (Value v : operands(s)) key.emplace_back(kind, v, norm ? norm->eps : 0.0);
    }
    return key;
  }

  // Refuses weights that something else reads too, except chains with the same scale.
  std::optional<FoldRefusal> sharing_refuses(const ScaleChain& c) {
    if (by_weight_.empty())
      for (const ScaleChain& other : chains_) by_weight_[other.weight].push_back(&other);
    const std::vector<const ScaleChain*>& all = by_weight_.at(c.weight);
    const auto shared = [&](Value v) {
      return FoldRefusal{MissReason::MultiConsumer,
                         concat_text("the weight ", v, " has ", r_.uses().use_count(v),
                                     " readers, which would need copies of their own"),
                         {}};
    };
    std::size_t readers = 0;
    const Key own = all.size() > 1 ? key_of(c) : Key();
    for (const ScaleChain* other : all) {
      if (other != &c && key_of(*other) != own) return shared(c.weight);
      ++readers;
    }
    Value v = c.weight;
    const Node& root = g_.node(c.root);
    for (Value wide = root.inputs[c.operand]; !(wide == c.weight); wide = g_.node(wide.node).inputs[0])
      if (!r_.uses().single_use(wide)) return shared(wide);
    if (r_.uses().is_output(v) || r_.uses().uses(v).size() != readers) return shared(v);
    while (g_.node(v.node).kind() == OpKind::Transpose || g_.node(v.node).kind() == OpKind::Reshape) {
      v = g_.node(v.node).inputs[0];
      if (!r_.uses().single_use(v)) return shared(v);
    }
    return std::nullopt;
  }

  struct ScaleShift {
    std::optional<Expr> scale, shift;  // [channels], or []
  };

  // A vector as [channels], a number as [].
  Expr bare(Value v, bool number) {
    const Expr e = r_.expr(v);
    const Dims dims = number ? Dims{} : Dims{Dim(g_.shape(v).num_elements())};
    return e.shape().dims() == dims ? e : r_.stage().reshape(e, dims);
  }

  std::optional<Expr> norm_operand(const Node& norm, std::string_view name) {
    const std::optional<int> i = find_operand(norm.op, static_cast<int>(norm.inputs.size()), name);
    return i ? std::optional(r_.expr(norm.inputs[static_cast<std::size_t>(*i)])) : std::nullopt;
  }

  // x * scale + shift, which all steps together compute.
  ScaleShift combined(const ScaleChain& c) {
    Graph& stage = r_.stage();
    ScaleShift a;
    const auto scale_by = [&](Expr v) {
      a.scale = a.scale ? *a.scale * v : v;
      if (a.shift) a.shift = *a.shift * v;
    };
    for (const ScaleStep& s : c.steps) {
      if (s.kind == ScaleKind::Norm) {
        const Node& n = g_.node(s.node);
        const Expr mean = *norm_operand(n, "mean");
        const Expr root = stage.rsqrt(*norm_operand(n, "var") + n.op.as<ops::BatchNorm>().eps);
        const std::optional<Expr> gamma = norm_operand(n, "gamma"), beta = norm_operand(n, "beta");
        a.shift = a.shift ? *a.shift - mean : -mean;
        scale_by(gamma ? root * *gamma : root);
        if (beta) a.shift = *a.shift + *beta;
        continue;
      }
      const Expr v = bare(s.operand, s.axis < 0);
      switch (s.kind) {
        case ScaleKind::Add: a.shift = a.shift ? *a.shift + v : v; break;
        case ScaleKind::Sub: a.shift = a.shift ? *a.shift - v : -v; break;
        case ScaleKind::SubFrom:
          a.scale = a.scale ? -*a.scale : stage.scalar(-1, v.dtype());
          a.shift = a.shift ? v - *a.shift : v;
          break;
        case ScaleKind::Mul: scale_by(v); break;
        case ScaleKind::Div:
          a.scale = a.scale ? *a.scale / v : 1.0 / v;
          if (a.shift) a.shift = *a.shift / v;
          break;
        case ScaleKind::Norm: break;
      }
    }
    return a;
  }

  // A vector that lies along `axis` of a value with `rank` axes.
  static Expr along(Expr v, int rank, int axis) {
    if (v.rank() == 0) return v;
    Dims dims(static_cast<std::size_t>(rank - axis), Dim(1));
    dims[0] = v.dim(0);
    return dims.size() == 1 ? v : v.graph().reshape(v, dims);
  }

  std::optional<FoldRefusal> fold(const ScaleChain& c) {
    Graph& stage = r_.stage();
    const Node& root = g_.node(c.root);
    auto [made, fresh] = scaled_.try_emplace(key_of(c));
    if (fresh) {
      const ScaleShift a = combined(c);
      const Expr w = r_.expr(c.weight);
      made->second = {w * along(*a.scale, w.rank(), c.weight_axis), a.shift};
    }
    Expr w = made->second.first;
    std::vector<Value> wide;
    for (Value v = root.inputs[c.operand]; !(v == c.weight); v = g_.node(v.node).inputs[0]) wide.push_back(v);
    for (std::size_t i = wide.size(); i-- > 0;) w = stage.expand(w, g_.shape(wide[i]).dims());
    std::vector<Value> in{r_.expr(root.inputs[0]), r_.expr(root.inputs[1])};
    in[c.operand] = w;
    Expr y = stage.add(root.op, std::move(in));
    if (made->second.second) y = y + along(*made->second.second, y.rank(), c.root_axis);
    for (NodeId id : c.layout) {
      const Node& n = g_.node(id);
      const auto* t = n.op.get_if<ops::Transpose>();
      y = t ? stage.transpose(y, t->perm) : stage.reshape(y, n.shape().dims());
    }
    if (const char* why = context_.refuses(r_, y, c.tip))
      return FoldRefusal{MissReason::NotClaimed,
                         concat_text("the target does not claim ", node_text(stage, y.value().node), ": ", why),
                         {}};
    r_.replace(c.tip, y);
    for (const ScaleStep& s : c.steps) folded_[s.node.index] = true;
    context_.fused(pattern(c));
    return std::nullopt;
  }

  // Writes a norm that is not folded out of elementwise ops, where they join the chain that reads it, or where the
  // target has no kernel for the norm.
  void write_out(NodeId id) {
    const Node& n = g_.node(id);
    const DType t = n.shape().dtype();
    const bool joins = r_.uses().single_use(Value(id)) && runs_per_element(g_, r_.uses().uses(Value(id))[0].user);
    if (accumulator_dtype(t) != t || !context_.claims->has(OpKind::ElementwiseRegion) ||
        context_.options.unfuse_elementwise_regions || (!joins && context_.claims->has(OpKind::BatchNorm)))
      return;
    const auto& op = n.op.as<ops::BatchNorm>();
    const auto vector = [&](Expr v) { return along(v, n.shape().rank(), static_cast<int>(op.axis)); };
    Expr scale = r_.stage().rsqrt(*norm_operand(n, "var") + op.eps);
    if (const std::optional<Expr> gamma = norm_operand(n, "gamma")) scale = scale * *gamma;
    Expr y = (r_.expr(n.inputs[0]) - vector(*norm_operand(n, "mean"))) * vector(scale);
    if (const std::optional<Expr> beta = norm_operand(n, "beta")) y = y + vector(*beta);
    if (!context_.refuses(r_, y, Value(id))) r_.replace(Value(id), y);
  }

  GraphRewriter& r_;
  const Graph& g_;
  const PassContext& context_;
  const PreparedValues prepared_;
  std::vector<ScaleChain> chains_;
  std::map<Value, std::vector<const ScaleChain*>> by_weight_;
  std::map<Key, std::pair<Expr, std::optional<Expr>>> scaled_;  // weights and shift by chain
  std::vector<bool> folded_;                                    // nodes
  std::vector<bool> norm_seen_;                                 // folded, or with a line in the report
};

std::optional<Graph> run_fold_scale_shift(const Graph& g, const PassContext& context) {
  const auto looks = [](const Node& n) {
    return n.kind() == OpKind::Conv || n.kind() == OpKind::DotGeneral || n.kind() == OpKind::BatchNorm;
  };
  if (std::none_of(g.nodes().begin(), g.nodes().end(), looks)) return std::nullopt;
  GraphRewriter r(g);
  ScaleFolder(r, context).run();
  if (!r.changed()) return std::nullopt;
  return r.commit(fold_scale_shift.name).graph;
}

}  // namespace

const Pass fold_scale_shift{
    "fold-scale-shift",
    "Scales the weights of a convolution or matmul by what multiplies each of its output channels, and joins what is "
    "added to them to one vector: batch norm of inference, and the same written out. Legal: weights, scales and shifts "
    "depend on constants and frozen params alone, so that they are computed when weights are set; every intermediate "
    "has one reader and is not an output, the weights have no other readers; f32 and f64. The order of roundings "
    "changes, as if each weight had been rounded once more. Another batch norm of inference that an elementwise op "
    "reads is written out, so that a region takes both.",
    run_fold_scale_shift};

}  // namespace rlx
