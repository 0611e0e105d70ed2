// Cast: numeric conversion between element types.
#include "rlx/ops/elementwise/elementwise.h"

#include "rlx/ir/ops/elementwise.h"

namespace rlx {
namespace {

struct CastRules {
  static Result<Shapes> infer(const InferContext& c) {
    DType to = c.op<ops::Cast>().to;
    if (static_cast<int>(to) >= kNumDTypes) return c.attr_error("has an unknown dtype");
    return make_shapes(c.input(0).with_dtype(to));
  }
  static void reference(const RefArgs& a) { a.out() = a.in(0).cast(a.op<ops::Cast>().to); }

  // Real to complex and complex to real are transposes of each other: they add a zero imaginary part, or drop it.
  static void vjp(VjpContext& c) {
    if (c.wants(0)) c.accumulate(0, c.graph().cast(c.cotangent(), c.input(0).dtype()));
  }
  static void jvp(JvpContext& c) {
    DType to = c.op<ops::Cast>().to;
    if (c.has_tangent(0) && is_inexact(to)) c.set_tangent(c.graph().cast(c.tangent(0), to));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }

  static constexpr AttrField attrs[] = {field<&ops::Cast::to>("to", AttrPlace::TypeDType)};
};

}  // namespace

constinit const OpDef ops::Cast::def{.kind = kind,
                                     .name = "cast",
                                     .what = "Numeric conversion to another dtype.",
                                     .inputs = inputs("x"),
                                     .attrs = CastRules::attrs,
                                     .level = Level::Mir,
                                     .leaf = LeafKind::None,
                                     .elementwise = ElementwiseKind::InBodies,
                                     .view = ViewKind::None,
                                     .precision = PrecisionCategory::Stated,
                                     .infer = CastRules::infer,
                                     .decompose = none("a primitive"),
                                     .vjp = CastRules::vjp,
                                     .jvp = CastRules::jvp,
                                     .batch = CastRules::batch,
                                     .reference = CastRules::reference,
                                     .cost = flops_per_element<1>};

}  // namespace rlx
