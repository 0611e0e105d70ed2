// GroupNorm and BatchNorm: channel norms. Composites. Their derivatives of any order are those of their decompositions.
#include <cmath>
#include <string_view>

#include "rlx/ir/ops/norm.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/elementwise/representable.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// Checks that x is float with a channel axis, eps is finite and not negative, and every other operand has one number
// for each channel.
std::optional<Diagnostic> check_channels(const InferContext& c, std::int64_t axis, double eps) {
  const Shape& x = c.input(0);
  if (!is_float(x.dtype()) || is_storage_only(x.dtype())) return c.dtype_error("x must be float, got ", x);
  if (auto e = c.check_axis(axis, x)) return e;
  if (auto e = check_representable_eps(c, eps, x.dtype())) return e;
  for (int i = 1; i < c.num_inputs(); ++i) {
    const std::string_view name = operand_name(c.box(), c.num_inputs(), i);
    const bool statistic = name == "mean" || name == "var";
    const Shape want({x.dim(static_cast<int>(axis))}, statistic ? accumulator_dtype(x.dtype()) : x.dtype());
    if (c.input(i).dtype() != want.dtype())
      return c.dtype_error(name, " must be ", dtype_name(want.dtype()), " for x ", x, ", got ", c.input(i));
    if (!(c.input(i) == want))
      return c.error(name, " must be ", want, " (axis ", axis, " of x ", x, "), got ", c.input(i));
  }
  return std::nullopt;
}

Dim product_of(const Shape& x, int first, int last) {
  Dim n(1);
  for (int i = first; i < last; ++i) n = n * x.dim(i);
  return n;
}

// hat * gamma + beta, rounded to the dtype of the result.
Expr scaled(const DecomposeContext& c, Expr hat, std::int64_t axis) {
  if (c.has("gamma")) hat = hat * along_axis(widen(c.input("gamma")), hat.rank(), axis);
  if (c.has("beta")) hat = hat + along_axis(widen(c.input("beta")), hat.rank(), axis);
  return round_to(hat, c.result_shape().dtype());
}

struct GroupNormRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const auto& op = c.op<ops::GroupNorm>();
    if (x.rank() < 2) return c.error("x must be [N, C, ..], got ", x);
    if (auto e = check_channels(c, 1, op.eps)) return *e;
    if (op.groups < 1) return c.attr_error("groups must be at least 1, got ", op.groups);
    if (op.groups > 1 && x.dim(1).is_static(0))
      return c.error("x ", x, " has no channels to divide into ", op.groups, " groups");
    if (!exact_div(x.dim(1), Dim(op.groups)))
      return c.error("the channels of x ", x, " are not a multiple of ", op.groups, " groups");
    return make_shapes(x);
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::GroupNorm>();
    const Expr x = widen(c.input(0));
    const Dim each = *exact_div(x.dim(1), Dim(op.groups));
    const Expr rows = g.reshape(x, {x.dim(0), Dim(op.groups), each * product_of(x.shape(), 2, x.rank())});
    ops::LayerNorm norm;
    norm.axes = {2}, norm.eps = op.eps;
    c.set_result(scaled(c, g.reshape(g.add_named(norm, {{"x", rows}}), x.shape().dims()), 1));
  }
  static constexpr AttrField attrs[] = {field<&ops::GroupNorm::groups>("groups"), field<&ops::GroupNorm::eps>("eps"),
                                        field<&ops::GroupNorm::present>("present")};
};

struct BatchNormRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const auto& op = c.op<ops::BatchNorm>();
    if (auto e = check_channels(c, op.axis, op.eps)) return *e;
    if (c.has("mean") != c.has("var"))
      return c.error("give both mean and var, or neither; ", c.has("mean") ? "var" : "mean", " is missing");
    if (c.has("mean")) return make_shapes(x);
    const Shape stats({x.dim(static_cast<int>(op.axis))}, accumulator_dtype(x.dtype()));
    return make_shapes(x, stats, stats);
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::BatchNorm>();
    const Expr x = widen(c.input(0));
    if (c.has("mean")) {
      const auto vector = [&](Expr v) { return along_axis(v, x.rank(), op.axis); };
      c.set_result(scaled(c, (x - vector(c.input("mean"))) * vector(g.rsqrt(c.input("var") + op.eps)), op.axis));
      return;
    }
    // [outer, C, inner]: the mean over inner, then the mean over outer, so that each reads adjacent elements. Empty
    // axes are reduced together, because the other extent may be huge.
    const int axis = static_cast<int>(op.axis);
    const Dim channels = x.dim(axis);
    const Expr rows =
        g.reshape(x, {product_of(x.shape(), 0, axis), channels, product_of(x.shape(), axis + 1, x.rank())});
    const bool nothing = rows.dim(0).is_static(0) || rows.dim(2).is_static(0);
    const auto average = [&](Expr v) {
      return nothing ? g.mean(v, {0, 2}, true) : g.mean(g.mean(v, {2}, true), {0}, true);
    };
    const Expr mean = average(rows), centred = rows - mean, var = average(g.square(centred));
    c.set_result(scaled(c, g.reshape(centred * g.rsqrt(var + op.eps), x.shape().dims()), op.axis));
    c.set_result(1, g.reshape(mean, {channels}));
    c.set_result(2, g.reshape(var, {channels}));
  }
  static constexpr AttrField attrs[] = {field<&ops::BatchNorm::axis>("axis"), field<&ops::BatchNorm::eps>("eps"),
                                        field<&ops::BatchNorm::present>("present")};
};

}  // namespace

constinit const OpDef ops::GroupNorm::def{
    .kind = kind,
    .name = "group_norm",
    .what = "Groups of channels of each x[n], normalised by their mean and variance.",
    .inputs = inputs("x", maybe("gamma"), maybe("beta")).masked_by<&ops::GroupNorm::present>(),
    .attrs = GroupNormRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Reduction,
    .infer = GroupNormRules::infer,
    .decompose = GroupNormRules::decompose,
    .vjp = by_decomposition,
    .jvp = by_decomposition,
    .batch = by_decomposition,
    .reference = by_decomposition,
    .cost = flops_per_element<8>};

constinit const OpDef ops::BatchNorm::def{
    .kind = kind,
    .name = "batch_norm",
    .what = "Channels normalised by given means and variances, or by their own over all other axes.",
    .inputs =
        inputs("x", maybe("gamma"), maybe("beta"), maybe("mean"), maybe("var")).masked_by<&ops::BatchNorm::present>(),
    .attrs = BatchNormRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Reduction,
    .infer = BatchNormRules::infer,
    .decompose = BatchNormRules::decompose,
    .vjp = by_decomposition,
    .jvp = by_decomposition,
    .batch = by_decomposition,
    .reference = by_decomposition,
    .cost = flops_per_element<8>};

}  // namespace rlx
