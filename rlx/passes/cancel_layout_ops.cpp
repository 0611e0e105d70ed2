// cancel-layout-ops: merges chains of layout ops into one or none, and drops identities.
#include <algorithm>
#include <cmath>

#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

// Mantissa bits (with the implicit one) and exponent range of a float dtype.
struct FloatFormat {
  int digits, max_exponent, min_exponent;  // min_exponent: of the smallest subnormal
};
std::optional<FloatFormat> float_format(DType t) {
  switch (t) {
    case DType::F16: return FloatFormat{11, 15, -24};
    case DType::BF16: return FloatFormat{8, 127, -133};
    case DType::F32: return FloatFormat{24, 127, -149};
    case DType::F64: return FloatFormat{53, 1023, -1074};
    default: return std::nullopt;
  }
}

int value_bits(DType t) { return static_cast<int>(size_bytes(t, 1)) * 8 - (is_signed_int(t) ? 1 : 0); }

// True when `to` represents every value of `from`.
bool exact_cast(DType from, DType to) {
  if (from == to) return true;
  auto a = float_format(from), b = float_format(to);
  if (a && b) return a->digits <= b->digits && a->max_exponent <= b->max_exponent && a->min_exponent >= b->min_exponent;
  if (from == DType::Bool) return is_int(to) || b;
  if (!is_int(from)) return false;
  if (b) return value_bits(from) <= b->digits && value_bits(from) <= b->max_exponent;
  if (!is_int(to)) return false;
  return value_bits(from) <= value_bits(to) && (!is_signed_int(from) || is_signed_int(to));
}

// True when cast(cast(x: a -> b) -> c) equals cast(x -> c). Integers wrap and floats saturate, so the middle type must
// not change the family from which a narrowing cast starts.
bool casts_compose(DType a, DType b, DType c) {
  if (!exact_cast(a, b)) return false;
  return a == c || a == DType::Bool || c == DType::Bool || (float_format(a).has_value() == float_format(b).has_value());
}

bool is_identity(const std::vector<std::int64_t>& perm) { return std::is_sorted(perm.begin(), perm.end()); }

// True when the permutation only moves axes of extent 1, so that all elements keep their positions.
bool moves_no_element(const Shape& x, const std::vector<std::int64_t>& perm) {
  std::int64_t last = -1;
  for (std::int64_t axis : perm) {
    if (x.dim(static_cast<int>(axis)).is_static(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool full_range(const ops::Slice& s, const Shape& x) {
  for (int d = 0; d < x.rank(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (!s.starts[i].is_static(0) || !(s.limits[i] == x.dim(d)) || (!s.strides.empty() && s.strides[i] != 1))
      return false;
  }
  return true;
}

bool all_zero(const std::vector<std::int64_t>& v) {
  return std::all_of(v.begin(), v.end(), [](std::int64_t e) { return e == 0; });
}

// x when x op constant equals x bit for bit: x + (-0.0), x - 0.0, x * 1, x / 1 for floats; x + 0 and x - 0 for
// integers. x + 0.0 is excluded because it turns -0.0 into 0.0.
std::optional<Expr> arithmetic_identity(Graph& g, const ops::Binary& op, const Shape& result,
                                        const std::vector<Expr>& in) {
  for (int side : {1, 0}) {
    const Expr& x = in[static_cast<std::size_t>(1 - side)];
    if (!(x.shape() == result)) continue;
    std::optional<double> c = constant_scalar(g, in[static_cast<std::size_t>(side)].value());
    if (!c) continue;
    const bool commutative = op.fn == BinaryKind::Add || op.fn == BinaryKind::Mul;
    if (side == 0 && !commutative) continue;
    const bool inexact = is_inexact(x.dtype());
    bool same = false;
    if (op.fn == BinaryKind::Add) same = *c == 0 && (!inexact || std::signbit(*c));
    if (op.fn == BinaryKind::Sub) same = *c == 0 && (!inexact || !std::signbit(*c));
    if (op.fn == BinaryKind::Mul || op.fn == BinaryKind::Div) same = *c == 1;
    if (same) return x;
  }
  return std::nullopt;
}

// The simpler value of node `n` over `in`, or none. `n` and `in` belong to graph `g`, whose nodes are already
// simplified.
std::optional<Expr> simplify(Graph& g, const Node& n, const std::vector<Expr>& in) {
  auto producer = [&](const Expr& e) -> const Node& { return g.node(e.value().node); };
  const Shape& result = n.shape();
  switch (n.kind()) {
    case OpKind::Transpose: {
      std::vector<std::int64_t> perm = n.op.as<ops::Transpose>().perm;
      Expr x = in[0];
      bool composed = false;
      if (const auto* inner = producer(x).op.get_if<ops::Transpose>()) {
        for (std::int64_t& axis : perm) axis = inner->perm[static_cast<std::size_t>(axis)];
        x = g.expr(producer(x).inputs[0]);
        composed = true;
      }
      if (is_identity(perm)) return x;
      if (moves_no_element(x.shape(), perm)) {
        if (producer(x).kind() == OpKind::Reshape) x = g.expr(producer(x).inputs[0]);
        return x.shape() == result ? x : g.reshape(x, result.dims());
      }
      if (composed) return g.transpose(x, perm);
      return std::nullopt;
    }
    case OpKind::Reshape: {
      Expr x = in[0];
      const bool nested = producer(x).kind() == OpKind::Reshape;
      if (nested) x = g.expr(producer(x).inputs[0]);
      if (x.shape() == result) return x;
      if (nested) return g.reshape(x, result.dims());
      return std::nullopt;
    }
    case OpKind::Expand: {
      Expr x = in[0];
      const bool nested = producer(x).kind() == OpKind::Expand;
      if (nested) x = g.expr(producer(x).inputs[0]);
      if (x.shape() == result) return x;
      if (nested) return g.expand(x, result.dims());
      return std::nullopt;
    }
    case OpKind::Cast: {
      Expr x = in[0];
      const DType to = n.op.as<ops::Cast>().to;
      if (x.dtype() == to) return x;
      if (producer(x).kind() == OpKind::Cast) {
        Expr source = g.expr(producer(x).inputs[0]);
        if (casts_compose(source.dtype(), x.dtype(), to)) return g.cast(source, to);
      }
      return std::nullopt;
    }
    case OpKind::Slice:
      if (full_range(n.op.as<ops::Slice>(), in[0].shape())) return in[0];
      return std::nullopt;
    case OpKind::Concat:
      if (in.size() == 1) return in[0];
      return std::nullopt;
    case OpKind::Pad: {
      const auto& p = n.op.as<ops::Pad>();
      if (all_zero(p.low) && all_zero(p.high) && all_zero(p.interior)) return in[0];
      return std::nullopt;
    }
    case OpKind::Reverse: {
      const auto& axes = n.op.as<ops::Reverse>().axes;
      if (std::all_of(axes.begin(), axes.end(),
                      [&](std::int64_t a) { return result.dim(static_cast<int>(a)).is_static(1); }))
        return in[0];
      return std::nullopt;
    }
    case OpKind::Binary: return arithmetic_identity(g, n.op.as<ops::Binary>(), result, in);
    default: return std::nullopt;
  }
}

// False only when `simplify` would not change the node, as long as no earlier node changes.
bool may_become_simpler(const Graph& g, const Node& n) {
  switch (n.kind()) {
    case OpKind::Transpose:
    case OpKind::Reshape:
    case OpKind::Expand:
    case OpKind::Cast:
    case OpKind::Slice:
    case OpKind::Concat:
    case OpKind::Pad:
    case OpKind::Reverse: return true;
    case OpKind::Binary:
      return std::any_of(n.inputs.begin(), n.inputs.end(), [&](Value v) {
        const std::optional<double> c = constant_scalar(g, v);
        return c && (*c == 0 || *c == 1);
      });
    default: return false;
  }
}

std::optional<Graph> run_cancel_layout_ops(const Graph& g, const PassContext&) {
  if (std::none_of(g.nodes().begin(), g.nodes().end(), [&](const Node& n) { return may_become_simpler(g, n); }))
    return std::nullopt;
  return replace_nodes(g, cancel_layout_ops.name, [&](Rebuilder& r, NodeId id) -> Replacement {
    const std::optional<Expr> simpler = simplify(r.graph(), g.node(id), r.operands(id));
    return simpler ? Replacement({*simpler}) : std::nullopt;
  });
}

}  // namespace

const Pass cancel_layout_ops{"cancel-layout-ops",
                             "Joins transposes, reshapes, expands and exact casts of one another and drops identities "
                             "(full slices, zero pads, x * 1, exact x + 0). "
                             "Every rewrite is bit-exact.",
                             run_cancel_layout_ops};

}  // namespace rlx
