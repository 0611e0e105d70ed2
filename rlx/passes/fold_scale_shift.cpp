// fold-scale-shift: what is multiplied with each channel of a convolution or matmul of weights goes into the weights,
// and what is added becomes one vector. Batch norm of inference is such a scale and shift.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "rlx/ir/input_spec.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/passes/scale_chains.h"

namespace rlx {
namespace {

constexpr std::size_t kLargeBytes = std::size_t{2} << 20;  // about an L2 cache

class ScaleFolder {
 public:
  ScaleFolder(GraphRewriter& r, const PassContext& context)
      : r_(r), g_(r.source()), context_(context), found_(find_scales(r, context)), folded_(g_.num_nodes(), false) {}

  void run() {
    count_readers();
    for (const ScaleChain& c : found_.chains) {
      std::optional<FoldRefusal> stop = sharing_refuses(c);
      if (!stop) stop = fold(c);
      if (stop)
        context_.missed(scale_pattern(g_, c), g_, c.root, stop->reason, std::move(stop->detail), std::move(stop->hint));
    }
    for (NodeId id : r_.nodes()) {
      if (!is_inference_norm(g_.node(id)) || r_.is_replaced(id) || folded_[id.index]) continue;
      if (!found_.norm_seen[id.index])
        context_.missed("batch_norm", g_, id, MissReason::NotFused,
                        concat_text("x is ", node_text(g_, g_.node(id).inputs[0].node),
                                    ", not the result of a convolution or product of weights"));
      write_out(id);
    }
  }

 private:
  using Key = std::vector<std::tuple<int, Value, double>>;
  Key key_of(const ScaleChain& c) const {
    Key key{{c.weight_axis, c.weight, 0.0}};
    for (const ScaleStep& s : c.steps) {
      const auto* norm = g_.node(s.node).op.get_if<ops::BatchNorm>();
      const int kind = static_cast<int>(s.kind) | (norm ? static_cast<int>(norm->present.bits) << 8 : 0);
      for (Value v : operands_of(g_, s)) key.emplace_back(kind, v, norm ? norm->eps : 0.0);
    }
    return key;
  }

  // How often chains read a weight, and whether all scale it by the same.
  struct Readers {
    Key key;
    std::size_t count = 0;
    bool same = true;
  };
  void count_readers() {
    for (const ScaleChain& c : found_.chains) {
      Key key = key_of(c);
      Readers& readers = by_weight_[c.weight];
      if (readers.count++ == 0)
        readers.key = std::move(key);
      else
        readers.same = readers.same && key == readers.key;
    }
  }

  // Refuses weights that something else reads too, except chains with the same scale: a copy for each takes memory.
  std::optional<FoldRefusal> sharing_refuses(const ScaleChain& c) {
    const auto shared = [&](Value v) {
      return FoldRefusal{MissReason::MultiConsumer,
                         concat_text("the weight ", v, " has ", r_.uses().use_count(v),
                                     " readers, which would need copies of their own"),
                         {}};
    };
    const Readers& readers = by_weight_.at(c.weight);
    if (!readers.same) return shared(c.weight);
    for (Value wide = g_.node(c.root).inputs[c.operand]; !(wide == c.weight); wide = g_.node(wide.node).inputs[0])
      if (!r_.uses().single_use(wide)) return shared(wide);
    Value v = c.weight;
    if (r_.uses().is_output(v) || r_.uses().uses(v).size() != readers.count) return shared(v);
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
    const std::optional<Expr>& shift = made->second.second;
    // Epilogues take vectors of a convolution's features and of a matmul's columns. Another shift joins what follows.
    const bool first = root.kind() == OpKind::Conv || c.root_axis + 1 == y.rank() || c.tip_axis < 0;
    if (shift && first) y = y + along(*shift, y.rank(), c.root_axis);
    for (NodeId id : c.layout) {
      const Node& n = g_.node(id);
      const auto* t = n.op.get_if<ops::Transpose>();
      y = t ? stage.transpose(y, t->perm) : stage.reshape(y, n.shape().dims());
    }
    if (shift && !first) y = y + along(*shift, y.rank(), c.tip_axis);
    if (const char* why = context_.refuses(r_, y, c.tip))
      return FoldRefusal{MissReason::NotClaimed,
                         concat_text("the target does not claim ", node_text(stage, y.value().node), ": ", why),
                         {}};
    r_.replace(c.tip, y);
    for (const ScaleStep& s : c.steps) folded_[s.node.index] = true;
    context_.fused(scale_pattern(g_, c));
    return std::nullopt;
  }

  // Writes a norm that is not folded out of elementwise ops, where they join the chain that reads it, or where the
  // target has no kernel for the norm. With channels that are not last, regions take longer for a number of each
  // channel than the kernel of the norm, which outweighs the saved pass over values in cache.
  void write_out(NodeId id) {
    const Node& n = g_.node(id);
    const auto& op = n.op.as<ops::BatchNorm>();
    const DType t = n.shape().dtype();
    if (accumulator_dtype(t) != t || !context_.claims->has(OpKind::ElementwiseRegion) ||
        context_.options.unfuse_elementwise_regions)
      return;
    const bool joins = r_.uses().single_use(Value(id)) && runs_per_element(g_, r_.uses().uses(Value(id))[0].user);
    const bool pays =
        op.axis + 1 == n.shape().rank() || (n.shape().is_static() && n.shape().size_bytes() >= kLargeBytes);
    if (!(joins && pays) && context_.claims->has(OpKind::BatchNorm)) return;
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
  const FoundScales found_;
  std::vector<bool> folded_;  // nodes
  std::map<Value, Readers> by_weight_;
  std::map<Key, std::pair<Expr, std::optional<Expr>>> scaled_;  // weights and shift by chain
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
