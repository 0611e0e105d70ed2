// GroupedDot: rows times the matrix of their group, and the contraction that is its derivative. Composite.
#include <algorithm>

#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

struct GroupedDotRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::GroupedDot>();
    const bool rows = op.fn == GroupedKind::Rows;
    const Shape &x = c.input(0), &other = c.input(1), &ids = c.input(2);
    const char* name = rows ? "w" : "y";
    if (auto e = c.check_same_dtype(0, 2)) return *e;
    if (!is_inexact(x.dtype()) && !is_int(x.dtype()))
      return c.dtype_error("x is ", x, "; matmuls need floats, complex numbers or integers");
    if (!is_index(ids.dtype())) return c.dtype_error("ids must be i32 or i64, not ", ids, "; cast them");
    if (x.rank() != 2 || other.rank() != (rows ? 3 : 2) || ids.rank() != 1)
      return c.error("needs x [M, K], ", name, rows ? " [E, K, N]" : " [M, N]", " and ids [M], got ", x, ", ", other,
                     " and ", ids);
    if (!(ids.dim(0) == x.dim(0))) return c.error("x ", x, " has ", x.dim(0), " rows, ids ", ids);
    if (rows) {
      if (op.groups != 0) return c.attr_error("the number of groups follows from w ", other, ": leave `groups` 0");
      if (!(other.dim(1) == x.dim(1))) return c.error("x ", x, " has ", x.dim(1), " columns, w ", other);
      return make_shapes(Shape({x.dim(0), other.dim(2)}, x.dtype()));
    }
    if (op.groups < 0) return c.attr_error("groups must not be negative, got ", op.groups);
    if (!(other.dim(0) == x.dim(0))) return c.error("x ", x, " has ", x.dim(0), " rows, y ", other);
    return make_shapes(Shape({Dim(op.groups), x.dim(1), other.dim(1)}, x.dtype()));
  }
  // One group after the other. A select excludes the rows of other groups, so that their infinities have no effect.
  static void decompose(DecomposeContext& c) {
    const bool rows = c.op<ops::GroupedDot>().fn == GroupedKind::Rows;
    Graph& g = c.graph();
    const Expr x = c.input(0), other = c.input(1);
    const DType t = x.dtype();
    // There is nothing to add. Groups or other extents may then be too many to loop over.
    const auto empty = [](const Shape& s) {
      return std::any_of(s.dims().begin(), s.dims().end(), [](const Dim& d) { return d.is_static(0); });
    };
    if (empty(x.shape()) || empty(other.shape()) || empty(c.result_shape()))
      return c.set_result(c.zeros(c.result_shape()));
    const Dim groups = rows ? other.dim(0) : Dim(c.op<ops::GroupedDot>().groups);
    const DType number = count_dtype(g, {{groups}}, c.input(2).dtype());
    const Expr numbers = positions(g, groups, 0, 1, number), ids = g.cast(c.input(2), number);
    const auto mine = [&](Graph& body, Expr group) { return body.reshape(body.eq(ids, group), {x.dim(0), 1}); };
    if (rows) {
      const LoopResult r = g.scan(c.zeros(c.result_shape()), {numbers, other},
                                  [&](Graph& body, const ExprList& sum, const ExprList& at) {
                                    return LoopStep(body.where(mine(body, at[0]), body.matmul(x, at[1]), sum[0]));
                                  });
      return c.set_result(r.carries[0]);
    }
    const LoopResult r = g.scan({}, numbers, [&](Graph& body, const ExprList&, const ExprList& at) {
      const Expr own = mine(body, at[0]), nothing = body.scalar(0, t);
      return LoopStep(ExprList{}, body.dot_general(body.where(own, x, nothing), body.where(own, other, nothing),
                                                   ops::DotGeneral{{0}, {0}, {}, {}}));
    });
    c.set_result(r.ys[0]);
  }
  static Expr rows_of(Graph& g, Expr x, Expr w, Expr ids) {
    return g.add(ops::GroupedDot{GroupedKind::Rows, 0}, {x, w, ids});
  }
  static Expr sums_of(Graph& g, Expr x, Expr y, Expr ids, std::int64_t groups) {
    return g.add(ops::GroupedDot{GroupedKind::Contract, groups}, {x, y, ids});
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0)) return;
    Graph& g = c.graph();
    const Expr ct = c.cotangent(), x = c.input(0), other = c.input(1), ids = c.input(2);
    if (c.op<ops::GroupedDot>().fn == GroupedKind::Rows) {
      if (!other.dim(0).is_static())
        throw Error(ErrorCode::Unsupported,
                    concat_text("the derivative of grouped_dot needs a known number of groups, got w ", other.shape()),
                    "bind the symbol first");
      c.accumulate(0, rows_of(g, ct, g.transpose(other, {0, 2, 1}), ids));
      return c.accumulate(1, sums_of(g, x, ct, ids, other.dim(0).value()));
    }
    c.accumulate(0, rows_of(g, other, g.transpose(ct, {0, 2, 1}), ids));
    c.accumulate(1, rows_of(g, x, ct, ids));
  }
  static void jvp(JvpContext& c) {
    for (int i = 0; i < 2; ++i) {
      if (!c.has_tangent(i)) continue;
      c.add_tangent(0, c.graph().add(c.box(), {i == 0 ? c.tangent(0) : c.input(0), i == 1 ? c.tangent(1) : c.input(1),
                                               c.input(2)}));
    }
  }
  // The rows of all batch members are concatenated. When their groups differ, each member gets separate groups.
  static void batch(BatchContext& c) {
    ops::GroupedDot op = c.op<ops::GroupedDot>();
    Graph& g = c.graph();
    const bool rows = op.fn == GroupedKind::Rows;
    const Dim& b = c.batch_size();
    const auto folded = [&](Expr e) {  // [B, M, ..] -> [B M, ..]
      Dims dims(e.shape().dims().begin() + 1, e.shape().dims().end());
      dims[0] = b * dims[0];
      return g.reshape(e, dims);
    };
    const Expr x = folded(c.lifted(0));
    Expr ids = c.lifted(2), other = c.input(1);
    if (!rows || c.is_batched(1)) {
      const Dim groups = rows ? c.input(1).dim(1) : Dim(op.groups);
      const DType t = count_dtype(g, {{b, groups}}, ids.dtype());
      const Expr own = g.cast(ids, t), count = dim_value(g, groups, t);
      const Expr inside = g.bit_and(g.ge(own, 0), g.lt(own, count));
      ids = g.where(inside, own + positions(g, b, 0, 2, t) * count, -1);
      other = folded(c.lifted(1));
      if (!rows) {
        if (!b.is_static())
          throw Error(ErrorCode::Unsupported, "vmap of grouped_dot_contract needs a known batch size",
                      "bind the symbol first");
        op.groups *= b.value();
      }
    }
    const Expr out = g.add(op, {x, other, folded(ids)});
    Dims dims = c.result_shape().dims();
    dims.insert(dims.begin(), b);
    c.set_result(g.reshape(out, dims));
  }
  static Cost cost(const CostContext& c) {
    const bool rows = c.op<ops::GroupedDot>().fn == GroupedKind::Rows;
    const double k = static_cast<double>(c.inputs[0].dim(1).value());
    return c.with_flops(2 * k * static_cast<double>((rows ? c.outputs[0].dim(0) : c.inputs[0].dim(0)).value()) *
                        static_cast<double>((rows ? c.outputs[0].dim(1) : c.inputs[1].dim(1)).value()));
  }
  static constexpr AttrField attrs[] = {field<&ops::GroupedDot::fn>("fn", AttrPlace::Suffix),
                                        field<&ops::GroupedDot::groups>("groups")};
};

}  // namespace

constinit const OpDef ops::GroupedDot::def{
    .kind = kind,
    .name = "grouped_dot",
    .what = "Rows times the matrix of their group, and sums of outer products by group.",
    .inputs = inputs("x", "other", "ids"),
    .attrs = GroupedDotRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Compute,
    .infer = GroupedDotRules::infer,
    .decompose = GroupedDotRules::decompose,
    .vjp = GroupedDotRules::vjp,
    .jvp = GroupedDotRules::jvp,
    .batch = GroupedDotRules::batch,
    .reference = by_decomposition,
    .cost = GroupedDotRules::cost};

}  // namespace rlx
