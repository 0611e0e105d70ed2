// Matches the body of a FusedDot or FusedConv against the epilogue that the kernels support.
#include "rlx/backends/cpu/matmul/epilogue.h"

#include <cmath>

#include "rlx/ir/functions.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx::cpu {
namespace {

std::optional<Act> epilogue_act(ActivationKind fn) {
  switch (fn) {
    case ActivationKind::Relu: return Act::Relu;
    case ActivationKind::Gelu: return Act::Gelu;
    case ActivationKind::GeluApprox: return Act::GeluTanh;
    case ActivationKind::Silu: return Act::Silu;
    case ActivationKind::Tanh: return Act::Tanh;
    case ActivationKind::Sigmoid: return Act::Sigmoid;
    default: return std::nullopt;
  }
}

/// Matches the chain of the body from the accumulator to its output as scale, bias, residual, activation, bounds (where
/// the kernel `clips`), multiply; or with the residual last. Fails for all else. Vectors lie along axis `axis`; -1 is
/// the last one.
class EpilogueMatcher {
 public:
  explicit EpilogueMatcher(const Graph& body, int axis = -1, bool clips = false)
      : body_(body), inputs_(body.leaves(OpKind::Input)), axis_(axis), clips_(clips) {}

  std::optional<EpilogueMatch> match() {
    if (body_.outputs().size() != 1 || inputs_.empty()) return std::nullopt;
    if (body_.shape(inputs_[0]).dtype() != DType::F32 || body_.shape(inputs_[0]).rank() < 1) return std::nullopt;
    accumulator_ = body_.shape(inputs_[0]);
    if (axis_ < 0) axis_ += accumulator_.rank();
    UseIndex uses(body_);
    Value cur(inputs_[0]);
    while (!(cur == body_.outputs()[0])) {
      if (!uses.single_use(cur)) return std::nullopt;
      const NodeId user = uses.uses(cur)[0].user;
      const Node& n = body_.node(user);
      if (!(n.shape() == accumulator_)) return std::nullopt;
      const int at = static_cast<int>(uses.uses(cur)[0].operand);
      if (const auto* act = n.op.get_if<ops::Activation>()) {
        const auto fn = has_own_params(*act) ? epilogue_act(act->fn) : std::nullopt;
        if (!fn || form_.act != Act::None || form_.mul.used() || form_.low || form_.high) return std::nullopt;
        form_.act = *fn;
        after_act_ = true;
      } else if (const auto* binary = n.op.get_if<ops::Binary>()) {
        if (!take(binary->fn, at, n.inputs[static_cast<std::size_t>(1 - at)])) return std::nullopt;
      } else {
        return std::nullopt;
      }
      cur = Value(user);
    }
    return form_;
  }

 private:
  bool take(BinaryKind fn, int position, Value other) {
    if (fn == BinaryKind::Mul || (fn == BinaryKind::Div && position == 0)) {
      if (auto factor = scalar(other)) return scale(fn, *factor);
      if (fn != BinaryKind::Mul || !(body_.shape(other) == accumulator_) || form_.mul.used() || late_residual_)
        return false;
      form_.mul = operand(other);
      after_act_ = true;
      return form_.mul.used();
    }
    if (fn == BinaryKind::Max || fn == BinaryKind::Min) return clip(fn, scalar(other));
    if (fn != BinaryKind::Add) return false;
    // Try a vector as the bias first. With one row a residual looks like a bias, and the result is the same. The kernel
    // adds the bias before the residual, so a vector after the residual is not a bias.
    if (is_bias(body_.shape(other)) && !form_.bias.used() && !form_.residual.used() && !after_act_) {
      form_.bias = operand(other);
      return form_.bias.used();
    }
    if (!(body_.shape(other) == accumulator_) || form_.residual.used()) return false;
    form_.residual = operand(other);
    form_.residual_after_act = late_residual_ = after_act_;
    return form_.residual.used();
  }

  // Only one factor is folded, so that the kernel's multiplication rounds as the step does. The product of two folded
  // factors may leave the range of normal numbers where the steps do not, and vice versa (y * 2^100 / 2^100 is infinite
  // from y = 2^28 on), and two roundings become one. Division by a power of two equals multiplication by its reciprocal
  // exactly. Other reciprocals would be rounded or overflow.
  bool scale(BinaryKind fn, float factor) {
    if (form_.alpha != 1.0F || any_after_scale()) return false;
    if (fn == BinaryKind::Div) {
      int exponent = 0;
      const bool power_of_two = std::fabs(std::frexp(factor, &exponent)) == 0.5F;
      factor = 1.0F / factor;
      if (!power_of_two || !std::isnormal(factor)) return false;
    }
    form_.alpha = factor;
    return true;
  }

  // Both orders give the same result when the lower bound is the smaller one.
  bool clip(BinaryKind fn, std::optional<float> bound) {
    std::optional<float>& own = fn == BinaryKind::Max ? form_.low : form_.high;
    if (!clips_ || !bound || std::isnan(*bound) || own || form_.mul.used() || late_residual_) return false;
    own = bound;
    after_act_ = true;
    return !form_.low || !form_.high || *form_.low <= *form_.high;
  }

  bool any_after_scale() const { return form_.bias.used() || form_.residual.used() || after_act_; }

  bool is_bias(const Shape& s) const {
    const int at = axis_ - accumulator_.rank() + s.rank();
    if (s.dtype() != DType::F32 || at < 0 || s.rank() > accumulator_.rank()) return false;
    for (int i = 0; i < s.rank(); ++i)
      if (i == at ? !(s.dim(i) == accumulator_.dim(axis_)) : !s.dim(i).is_static(1)) return false;
    return true;
  }

  EpilogueOperand operand(Value v) const {
    EpilogueOperand out;
    for (std::size_t i = 1; i < inputs_.size(); ++i)
      if (Value(inputs_[i]) == v) out.operand = static_cast<int>(i) - 1;
    if (const auto* c = body_.node(v.node).op.get_if<ops::Constant>())
      out.constant = reinterpret_cast<const float*>(c->value.data());
    return out;
  }

  std::optional<float> scalar(Value v) const {
    const auto* c = body_.node(v.node).op.get_if<ops::Constant>();
    if (!c || c->value.num_elements() != 1 || c->value.dtype() != DType::F32) return std::nullopt;
    return c->value.values<float>()[0];
  }

  const Graph& body_;
  std::vector<NodeId> inputs_;
  int axis_;
  bool clips_;
  Shape accumulator_;
  EpilogueMatch form_;
  bool after_act_ = false, late_residual_ = false;
};

}  // namespace

std::optional<EpilogueMatch> match_epilogue(const Graph& g, NodeId id) {
  const auto* fused = g.node(id).op.get_if<ops::FusedDot>();
  return fused && fused->epilogue ? EpilogueMatcher(*fused->epilogue).match() : EpilogueMatch{};
}

std::optional<EpilogueMatch> match_conv_epilogue(const Graph& g, NodeId id, int features) {
  const auto* fused = g.node(id).op.get_if<ops::FusedConv>();
  return fused && fused->epilogue ? EpilogueMatcher(*fused->epilogue, features, true).match() : EpilogueMatch{};
}

const char* epilogue_refuses(const Graph& g, NodeId id) {
  return refuse_unless(match_epilogue(g, id).has_value(), "the kernel does not support this epilogue");
}

bool read_before_written(const Graph& g, NodeId id, int i) {
  const auto form = match_epilogue(g, id);
  return form && (form->residual.operand == i || form->mul.operand == i) && form->bias.operand != i;
}

bool reads_strided_rows(const Graph& g, NodeId id, int operand) {
  return operand == 0 && in_shape(g, id, 0).rank() <= 2;
}

bool lies_over_epilogue(const Graph& g, NodeId id, int operand, int) {
  const auto& inputs = g.node(id).inputs;
  return operand >= 2 && !(inputs[static_cast<std::size_t>(operand)] == inputs[0]) &&
         read_before_written(g, id, operand - 2);
}

void point_epilogue_operand(LowerContext& c, const float*& field, const EpilogueOperand& operand) {
  if (operand.constant) {
    field = operand.constant;
  } else if (operand.operand >= 0) {
    const View v = c.in(2 + operand.operand);
    check(v.dense(), "an operand of an epilogue is not row-major");
    c.point(field, v);
  }
}

void point_epilogue(LowerContext& c, const EpilogueMatch& form, std::int64_t n, GemmEpilogue& e) {
  e.alpha = form.alpha;
  e.act = form.act;
  e.residual_after_act = form.residual_after_act;
  point_epilogue_operand(c, e.bias, form.bias);
  point_epilogue_operand(c, e.residual, form.residual);
  point_epilogue_operand(c, e.mul, form.mul);
  e.ld_residual = e.ld_mul = n;
}

}  // namespace rlx::cpu
