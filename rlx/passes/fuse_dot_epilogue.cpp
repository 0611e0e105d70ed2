// fuse-dot-epilogue and fuse-conv-epilogue: the elementwise chain after a matmul or a convolution becomes its epilogue,
// step by step, while the target takes the result.
#include <memory>

#include "rlx/ir/math/conv_geometry.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

// Longer chains become elementwise regions. The limit keeps the pass linear, because each step builds the node that it
// proposes.
constexpr std::size_t kMaxSteps = 16;

// The other operand of a step, beside the accumulator.
enum class Other : std::uint8_t { None, Scalar, Vector, Full };

// One elementwise op of the chain.
struct Step {
  OpBox op;
  Other other = Other::None;
  Value operand;          // Vector, Full, or a Scalar that is no constant
  bool constant = false;  // a Scalar with `value`
  double value = 0;
  bool accumulator_first = true;
  Value result;  // in the source graph
};

// Why a step cannot be added.
struct StepRefusal {
  MissReason reason;
  std::string detail;
  std::string_view pattern = {};  // empty: the pattern of the chain so far
};

bool takes(BinaryKind fn, Other other, bool accumulator_first) {
  switch (fn) {
    case BinaryKind::Add:
    case BinaryKind::Mul: return true;
    case BinaryKind::Sub: return other == Other::Scalar || other == Other::Full || accumulator_first;
    case BinaryKind::Div: return other == Other::Scalar && accumulator_first;
    case BinaryKind::Max:
    case BinaryKind::Min: return other == Other::Scalar;
    default: return false;
  }
}

// True when `s` broadcasts against `acc` along every axis, except at most `axis`: [N], [], [1] or [1, .., N] for the
// last axis.
bool is_vector(const Shape& s, const Shape& acc, int axis) {
  const int at = axis - acc.rank() + s.rank();  // the position of `axis` in s; negative: absent
  for (int i = 0; i < s.rank(); ++i)
    if (!s.dim(i).is_static(1) && !(i == at && s.dim(i) == acc.dim(axis))) return false;
  return true;
}
// True when `s` is one number along the axis: it lacks the axis, or has extent 1 where `acc` has a larger extent.
bool is_one(const Shape& s, const Shape& acc, int axis) {
  const int at = axis - acc.rank() + s.rank();
  return at < 0 || s.rank() == 0 || (s.dim(at).is_static(1) && !acc.dim(axis).is_static(1));
}

class Chain {
 public:
  Chain(GraphRewriter& r, const PassContext& context, std::vector<bool>& taken, NodeId root)
      : r_(r), g_(r.source()), context_(context), taken_(taken), root_(root), tip_(root) {
    const ops::Conv* const conv = conv_of(g_.node(root).op);
    is_conv_ = conv != nullptr;
    axis_ = g_.shape(root).rank() - 1;
    if (is_conv_) axis_ = static_cast<int>(conv_geometry(*conv, axis_ + 1).y_feature);
  }

  void run() {
    std::optional<StepRefusal> stop;
    while (steps_.size() < kMaxSteps) {
      std::optional<Step> step = next(stop);
      if (!step) break;
      steps_.push_back(std::move(*step));
      const Expr candidate = build();
      if (const char* why = context_.refuses(r_, candidate, steps_.back().result)) {
        stop = refused(steps_.back(), why);
        stop->pattern = pattern();
        steps_.pop_back();
        break;
      }
      best_ = candidate;
      tip_ = steps_.back().result;
    }
    if (stop)
      context_.missed(stop->pattern.empty() ? pattern() : stop->pattern, g_, root_, stop->reason,
                      std::move(stop->detail), hint(stop->reason));
    if (steps_.empty()) return;
    for (const Step& s : steps_) taken_[s.result.node.index] = true;
    r_.replace(tip_, best_);
    context_.fused(pattern());
  }

 private:
  // The documented pattern name for bias [+ activation]. Every other chain is an epilogue.
  std::string_view pattern() const {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto* b = steps_[i].op.get_if<ops::Binary>();
      const bool bias = b && b->fn == BinaryKind::Add && steps_[i].other == Other::Vector;
      if (i == 0 ? !bias : i > 1 || steps_[i].other != Other::None)
        return is_conv_ ? "conv_epilogue" : "matmul_epilogue";
    }
    return is_conv_ ? "conv_bias_act" : "matmul_bias_act";
  }
  const char* root_name() const { return is_conv_ ? "convolution" : "product"; }
  std::string hint(MissReason reason) const {
    switch (reason) {
      case MissReason::BiasRankTooHigh:
        return is_conv_ ? "the added value must have one element for each feature, or the shape of the result"
                        : "the added value must have the shape [N]";
      case MissReason::IsOutput: return "make only the last value of the chain an output";
      default: return {};
    }
  }
  StepRefusal refused(const Step& s, const char* why) const {
    if (s.other == Other::None)
      return {
          MissReason::UnsupportedEpilogueActivation,
          concat_text("the target does not claim a ", root_name(), " with ", op_text_name(s.op), " at the end: ", why)};
    return {MissReason::NotClaimed, concat_text("the target does not claim a ", root_name(), " that ends in ",
                                                node_text(g_, s.result.node), ": ", why)};
  }

  // The step of the op that reads the tip in `use`. Sets `stop` when the op began to match.
  std::optional<Step> step_of(const UseIndex::Use& use, std::optional<StepRefusal>& stop) const {
    const Node& n = g_.node(use.user);
    if (n.kind() == OpKind::Activation) return Step{n.op, Other::None, {}, false, 0, true, Value(use.user)};
    const auto* b = n.op.get_if<ops::Binary>();
    if (!b) return std::nullopt;
    const Value other = n.inputs[1 - use.operand];
    const Shape& acc = g_.shape(tip_);
    const Shape& shape = g_.shape(other);
    Step s{n.op, Other::Full, other, false, 0, use.operand == 0, Value(use.user)};
    std::optional<double> constant = is_float(acc.dtype()) ? constant_scalar(g_, other) : std::nullopt;
    if (!(n.shape().dims() == acc.dims())) {
      stop = StepRefusal{shape.rank() <= 1 ? MissReason::BiasLength : MissReason::ShapeMismatch,
                         concat_text(other, " ", shape, " broadcasts the ", root_name(), " ", acc, " to ", n.shape())};
      return std::nullopt;
    }
    if (constant)
      s.other = Other::Scalar, s.constant = true, s.value = *constant;
    else if (shape == acc)
      s.other = Other::Full;
    else if (is_vector(shape, acc, axis_))
      s.other = is_one(shape, acc, axis_) ? Other::Scalar : Other::Vector;
    else {
      stop = StepRefusal{MissReason::BiasRankTooHigh,
                         concat_text(other, " is ", shape, ", not a vector [", acc.dim(axis_), "]")};
      return std::nullopt;
    }
    if (!takes(b->fn, s.other, s.accumulator_first)) {
      stop = StepRefusal{MissReason::NonAddBiasConsumer,
                         concat_text("the ", root_name(), " is read by ", node_text(g_, use.user))};
      return std::nullopt;
    }
    return s;
  }

  std::optional<Step> next(std::optional<StepRefusal>& stop) const {
    std::span<const UseIndex::Use> uses = r_.uses().uses(tip_);
    if (uses.empty() || g_.shape(tip_).rank() == 0) return std::nullopt;
    if (r_.uses().is_output(tip_)) {
      std::optional<StepRefusal> ignored;
      if (uses.size() == 1 && step_of(uses[0], ignored))
        stop = StepRefusal{MissReason::IsOutput, concat_text(tip_, " is an output of the graph")};
      return std::nullopt;
    }
    if (uses.size() > 1) {
      std::optional<StepRefusal> ignored;
      for (const UseIndex::Use& u : uses) {
        if (!step_of(u, ignored)) continue;
        stop =
            StepRefusal{MissReason::MultiConsumer, concat_text(tip_, " has ", uses.size(), " readers: ", uses[0].user,
                                                               ", ", uses[1].user, uses.size() > 2 ? ", .." : "")};
        break;
      }
      return std::nullopt;
    }
    if (taken_[uses[0].user.index]) return std::nullopt;  // another matmul took this op, with our value as its operand
    return step_of(uses[0], stop);
  }

  // Builds the fused node on the stage.
  Expr build() const {
    const Node& root = g_.node(root_);
    auto body = std::make_shared<Graph>("epilogue");
    std::vector<Value> operands{r_.expr(root.inputs[0]), r_.expr(root.inputs[1])};
    if (is_conv_) {
      ops::FusedConv op;
      static_cast<ops::Conv&>(op) = *conv_of(root.op);
      const auto* fused = root.op.get_if<ops::FusedConv>();
      fill(*body, fused ? fused->epilogue : nullptr, operands);
      op.epilogue = std::move(body);
      return r_.stage().add(std::move(op), std::move(operands));
    }
    ops::FusedDot op;
    const auto* fused = root.op.get_if<ops::FusedDot>();
    if (fused) {
      op = *fused;
    } else {
      const auto& dot = root.op.as<ops::DotGeneral>();
      op.lhs_contract = dot.lhs_contract, op.rhs_contract = dot.rhs_contract, op.lhs_batch = dot.lhs_batch,
      op.rhs_batch = dot.rhs_batch, op.out = dot.out;
    }
    fill(*body, fused ? fused->epilogue : nullptr, operands);
    op.epilogue = std::move(body);
    return r_.stage().add(std::move(op), std::move(operands));
  }
  // Fills the body with the root's epilogue, if it has one, and with the steps. Their operands are added to `operands`.
  void fill(Graph& body, const Subgraph& had, std::vector<Value>& operands) const {
    const Node& root = g_.node(root_);
    Expr acc;
    if (had) {
      std::vector<Expr> inputs;
      std::size_t k = 0;
      for (const Node& n : had->nodes()) {
        if (n.kind() != OpKind::Input) continue;
        inputs.push_back(body.input(k == 0 ? "acc" : concat_text("op", k - 1), n.shape()));
        if (k > 0) operands.push_back(r_.expr(root.inputs[k + 1]));
        ++k;
      }
      acc = inline_body(body, *had, inputs)[0];
    } else {
      acc = body.input("acc", root.shape());
    }
    for (const Step& s : steps_) {
      if (s.other == Other::None) {
        acc = body.add(s.op, {acc});
        continue;
      }
      Expr other;
      if (s.constant) {
        other = body.scalar(s.value, acc.dtype());
      } else {
        const Expr operand = bare(s, r_.expr(s.operand));
        other = body.input(concat_text("op", operands.size() - 2), operand.shape());
        operands.push_back(operand);
      }
      acc = s.accumulator_first ? body.add(s.op, {acc, other}) : body.add(s.op, {other, acc});
    }
    body.set_outputs({acc});
  }
  // A vector is passed as [N], with a 1 for each axis after its own, a scalar as []. Both reshapes are views.
  Expr bare(const Step& s, Expr operand) const {
    if (s.other == Other::Scalar && operand.rank() > 0) return r_.stage().reshape(operand, {});
    const int behind = g_.shape(root_).rank() - 1 - axis_;
    if (s.other != Other::Vector || operand.rank() <= behind + 1) return operand;
    Dims dims{operand.dim(operand.rank() - 1 - behind)};
    dims.insert(dims.end(), static_cast<std::size_t>(behind), Dim(1));
    return r_.stage().reshape(operand, dims);
  }

  GraphRewriter& r_;
  const Graph& g_;
  const PassContext& context_;
  std::vector<bool>& taken_;  // nodes that are part of an epilogue
  NodeId root_;
  bool is_conv_ = false;
  int axis_ = 0;  // the axis of vectors: the columns, or the features
  Value tip_;     // the last value of the chain so far
  std::vector<Step> steps_;
  Expr best_;
};

// Fuses epilogues into every op of kind `plain` or `fused`.
std::optional<Graph> fuse_epilogues(const Graph& g, const PassContext& context, OpKind plain, OpKind fused,
                                    std::string_view name) {
  if (!context.claims->has(fused)) return std::nullopt;
  GraphRewriter r(g);
  std::vector<bool> taken(g.num_nodes(), false);
  for (NodeId id : r.nodes())
    if (g.node(id).kind() == plain || g.node(id).kind() == fused) Chain(r, context, taken, id).run();
  if (!r.changed()) return std::nullopt;
  return r.commit(name).graph;
}
std::optional<Graph> run_fuse_dot_epilogue(const Graph& g, const PassContext& context) {
  return fuse_epilogues(g, context, OpKind::DotGeneral, OpKind::FusedDot, fuse_dot_epilogue.name);
}
std::optional<Graph> run_fuse_conv_epilogue(const Graph& g, const PassContext& context) {
  return fuse_epilogues(g, context, OpKind::Conv, OpKind::FusedConv, fuse_conv_epilogue.name);
}

}  // namespace

const Pass fuse_dot_epilogue{
    "fuse-dot-epilogue",
    "Moves the elementwise chain after a matmul into its epilogue: scalars, a vector over the last axis, values with "
    "the shape of the matmul, activations. Legal: every intermediate has one reader and is not an output, the result "
    "keeps the dimensions of the matmul, and the target claims the longer epilogue. Residual adds before a norm belong "
    "to fuse-residual-norm, which runs first.",
    run_fuse_dot_epilogue};

const Pass fuse_conv_epilogue{
    "fuse-conv-epilogue",
    "Moves the elementwise chain after a convolution into its epilogue: scalars, a vector over the features, values "
    "with the shape of the result, activations. Legal under the conditions of fuse-dot-epilogue.",
    run_fuse_conv_epilogue};

}  // namespace rlx
