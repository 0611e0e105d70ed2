// Finds scales and shifts of the channels of convolutions and matmuls.
#include "rlx/passes/scale_chains.h"

#include <algorithm>

#include "rlx/ir/input_spec.h"
#include "rlx/ir/math/conv_geometry.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/shape.h"

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

Value before_expand(const Graph& g, Value v) {
  while (g.node(v.node).kind() == OpKind::Expand) v = g.node(v.node).inputs[0];
  return v;
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

class ScaleFinder {
 public:
  ScaleFinder(const GraphRewriter& r, const PassContext& context)
      : r_(r), g_(r.source()), context_(context), prepared_(g_) {}

  FoundScales find() && {
    found_.norm_seen.assign(g_.num_nodes(), false);
    for (NodeId id : r_.nodes())
      if (is_root(id)) collect(id);
    return std::move(found_);
  }

 private:
  bool is_root(NodeId id) const {
    const Node& n = g_.node(id);
    if (n.kind() != OpKind::Conv && n.kind() != OpKind::DotGeneral) return false;
    return n.shape().rank() > 0 && is_float(n.shape().dtype()) && !prepared_.param_only(Value(id));
  }
  static const char* root_name(const Node& n) { return n.kind() == OpKind::Conv ? "convolution" : "product"; }
  void missed(const ScaleChain& c, FoldRefusal stop) {
    context_.missed(scale_pattern(g_, c), g_, c.root, stop.reason, std::move(stop.detail), std::move(stop.hint));
  }

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
  // The operand that is not prepared when weights are set, and why.
  std::optional<FoldRefusal> operand_refuses(const ScaleStep& s) const {
    for (Value v : operands_of(g_, s)) {
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
      if (scaled && !s->constant) {
        kept = c.steps.size(), kept_layout = layout.size(), c.tip = tip;
        c.tip_axis = c.root_axis < 0 ? -1 : places[static_cast<std::size_t>(c.root_axis)];
      }
    }
    if (!scaled || c.root_axis < 0) return;
    c.steps.resize(kept);
    layout.resize(kept_layout);
    c.layout = std::move(layout);
    for (const ScaleStep& s : c.steps)
      if (s.kind == ScaleKind::Norm) found_.norm_seen[s.node.index] = true;
    found_.chains.push_back(std::move(c));
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
    if (c.steps.back().kind == ScaleKind::Norm) found_.norm_seen[c.steps.back().node.index] = true;
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

  const GraphRewriter& r_;
  const Graph& g_;
  const PassContext& context_;
  const PreparedValues prepared_;
  FoundScales found_;
};

}  // namespace

bool is_inference_norm(const Node& n) {
  return n.kind() == OpKind::BatchNorm && find_operand(n.op, static_cast<int>(n.inputs.size()), "mean").has_value();
}

std::vector<Value> operands_of(const Graph& g, const ScaleStep& s) {
  if (s.kind != ScaleKind::Norm) return {s.operand};
  const auto& in = g.node(s.node).inputs;
  return {in.begin() + 1, in.end()};
}

std::string_view scale_pattern(const Graph& g, const ScaleChain& c) {
  const bool norm =
      std::any_of(c.steps.begin(), c.steps.end(), [](const ScaleStep& s) { return s.kind == ScaleKind::Norm; });
  if (g.node(c.root).kind() == OpKind::Conv) return norm ? "conv_batch_norm" : "conv_scale_shift";
  return norm ? "matmul_batch_norm" : "matmul_scale_shift";
}

FoundScales find_scales(const GraphRewriter& r, const PassContext& context) { return ScaleFinder(r, context).find(); }

}  // namespace rlx
