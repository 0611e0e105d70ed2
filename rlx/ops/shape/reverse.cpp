// Reverse: reverses the order of elements along axes.
#include "rlx/ops/rule_helpers.h"

#include "rlx/ir/ops/shape.h"

namespace rlx {
namespace {

struct ReverseRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto error = check_axes(c, c.op<ops::Reverse>().axes, c.input(0))) return *error;
    return make_shapes(c.input(0));
  }
  static void reference(const RefArgs& a) {
    const auto dims = a.out().dims();
    StridedView from = whole(dims);
    for (std::int64_t axis : a.op<ops::Reverse>().axes) {
      const auto i = static_cast<std::size_t>(axis);
      from.offset += (dims[i] - 1) * from.strides[i];
      from.strides[i] = -from.strides[i];
    }
    copy_strided(a.out().dtype(), dims, a.out().mutable_data(), whole(dims), a.in(0).data(), from);
  }
  static void vjp(VjpContext& c) { c.accumulate(0, c.graph().add(c.box(), {c.cotangent()})); }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(c.graph().add(c.box(), {c.tangent(0)}));
  }
  static void batch(BatchContext& c) { c.emit_lifted(ops::Reverse{shifted(c.op<ops::Reverse>().axes)}); }
  static constexpr AttrField attrs[] = {field<&ops::Reverse::axes>("axes")};
};

}  // namespace

constinit const OpDef ops::Reverse::def{.kind = kind,
                                        .name = "reverse",
                                        .what = "x with the order along some axes reversed.",
                                        .inputs = inputs("x"),
                                        .attrs = ReverseRules::attrs,
                                        .level = Level::Mir,
                                        .leaf = LeafKind::None,
                                        .elementwise = ElementwiseKind::No,
                                        .view = ViewKind::None,
                                        .precision = PrecisionCategory::DataMovement,
                                        .infer = ReverseRules::infer,
                                        .decompose = none("a primitive"),
                                        .vjp = ReverseRules::vjp,
                                        .jvp = ReverseRules::jvp,
                                        .batch = ReverseRules::batch,
                                        .reference = ReverseRules::reference,
                                        .cost = moves_bytes};

}  // namespace rlx
