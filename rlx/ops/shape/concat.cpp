// Concat: operands concatenated along one axis.
#include "rlx/ops/rule_helpers.h"

#include "rlx/ir/ops/shape.h"

namespace rlx {
namespace {

struct ConcatRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (c.num_inputs() == 0) return c.error("needs at least one operand");
    const Shape& first = c.input(0);
    const std::int64_t axis = c.op<ops::Concat>().axis;
    if (auto error = c.check_axis(axis, first)) return *error;
    if (auto error = c.check_same_dtype(0, c.num_inputs())) return *error;
    Dim total = first.dim(static_cast<int>(axis));
    for (int i = 1; i < c.num_inputs(); ++i) {
      const Shape& x = c.input(i);
      if (x.rank() != first.rank())
        return c.error("operand ", i, " ", x, " and operand 0 ", first, " have different ranks");
      for (int d = 0; d < x.rank(); ++d)
        if (d != axis && !(x.dim(d) == first.dim(d)))
          return c.error("operand ", i, " ", x, " and operand 0 ", first, " differ on axis ", d,
                         "; they may differ only on axis ", axis, " only");
      total = total + x.dim(static_cast<int>(axis));
    }
    return make_shapes(first.with_dim(static_cast<int>(axis), total));
  }
  static void reference(const RefArgs& a) {
    const auto axis = static_cast<std::size_t>(a.op<ops::Concat>().axis);
    StridedView to = whole(a.out().dims());
    std::byte* out = a.out().mutable_data();
    for (const Tensor& x : a.inputs) {
      const auto dims = x.dims();
      copy_strided(x.dtype(), dims, out, to, x.data(), whole(dims));
      to.offset += dims[axis] * to.strides[axis];
    }
  }
  static void vjp(VjpContext& c) {
    const std::int64_t axis = c.op<ops::Concat>().axis;
    Dim start(0);
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Dim length = c.input(i).dim(static_cast<int>(axis));
      if (c.wants(i)) c.accumulate(i, c.graph().narrow(c.cotangent(), axis, start, length));
      start = start + length;
    }
  }
  static void jvp(JvpContext& c) {
    std::vector<Expr> tangents;
    bool any = false;
    for (int i = 0; i < c.num_inputs(); ++i) any = any || c.has_tangent(i);
    if (!any) return;
    for (int i = 0; i < c.num_inputs(); ++i) tangents.push_back(c.tangent(i));
    c.set_tangent(c.graph().concat(tangents, c.op<ops::Concat>().axis));
  }
  static void batch(BatchContext& c) { c.emit_lifted(ops::Concat{c.op<ops::Concat>().axis + 1}); }
  static constexpr AttrField attrs[] = {field<&ops::Concat::axis>("axis")};
};

}  // namespace

constinit const OpDef ops::Concat::def{.kind = kind,
                                       .name = "concat",
                                       .what = "Operands joined along one axis.",
                                       .inputs = variadic_inputs("xs"),
                                       .attrs = ConcatRules::attrs,
                                       .level = Level::Mir,
                                       .leaf = LeafKind::None,
                                       .elementwise = ElementwiseKind::No,
                                       .view = ViewKind::None,
                                       .precision = PrecisionCategory::DataMovement,
                                       .infer = ConcatRules::infer,
                                       .decompose = none("a primitive"),
                                       .vjp = ConcatRules::vjp,
                                       .jvp = ConcatRules::jvp,
                                       .batch = ConcatRules::batch,
                                       .reference = ConcatRules::reference,
                                       .cost = moves_bytes};

}  // namespace rlx
