// Expand: NumPy broadcasting to given dimensions.
#include "rlx/ops/rule_helpers.h"

#include "rlx/ir/ops/shape.h"

namespace rlx {
namespace {

struct ExpandRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const Dims& dims = c.op<ops::Expand>().dims;
    if (dims.size() < static_cast<std::size_t>(x.rank()))
      return c.error("x ", x, " has more axes than the target ", dims_text(dims));
    const std::size_t added = dims.size() - static_cast<std::size_t>(x.rank());
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (c.negative(dims[i])) return c.error("the target ", dims_text(dims), " has a negative dimension");
      if (i < added) continue;
      const Dim& from = x.dims()[i - added];
      if (!from.is_static(1) && !(from == dims[i]))
        return c.error("x ", x, " does not broadcast to ", dims_text(dims), ": ", from, " is neither 1 nor ", dims[i]);
    }
    return make_shapes(Shape(dims, x.dtype()));
  }
  static void reference(const RefArgs& a) {
    const auto dims = a.out().dims();
    const auto from = a.in(0).dims();
    const auto strides = row_major_strides(from);
    const std::size_t added = dims.size() - from.size();
    StridedView view{0, std::vector<std::int64_t>(dims.size(), 0)};
    for (std::size_t i = 0; i < from.size(); ++i) view.strides[added + i] = from[i] == 1 ? 0 : strides[i];
    copy_strided(a.out().dtype(), dims, a.out().mutable_data(), whole(dims), a.in(0).data(), view);
  }
  static Cost cost(const CostContext& c) {
    return {0, static_cast<double>(c.inputs[0].size_bytes()), static_cast<double>(c.outputs[0].size_bytes())};
  }
  static void vjp(VjpContext& c) { c.accumulate(0, c.cotangent()); }  // accumulate sums over the broadcast axes
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(c.graph().expand(c.tangent(0), c.result_shape().dims()));
  }
  static void batch(BatchContext& c) {
    const Dims& dims = c.op<ops::Expand>().dims;
    c.set_result(c.graph().expand(c.aligned(0, static_cast<int>(dims.size())), prepend(c.batch_size(), dims)));
  }
  static constexpr AttrField attrs[] = {field<&ops::Expand::dims>("dims", AttrPlace::TypeDims)};
};

}  // namespace

constinit const OpDef ops::Expand::def{.kind = kind,
                                       .name = "expand",
                                       .what = "x broadcast to given dimensions.",
                                       .inputs = inputs("x"),
                                       .attrs = ExpandRules::attrs,
                                       .level = Level::Mir,
                                       .leaf = LeafKind::None,
                                       .elementwise = ElementwiseKind::No,
                                       .view = ViewKind::ByStrides,
                                       .precision = PrecisionCategory::DataMovement,
                                       .infer = ExpandRules::infer,
                                       .decompose = none("a primitive"),
                                       .vjp = ExpandRules::vjp,
                                       .jvp = ExpandRules::jvp,
                                       .batch = ExpandRules::batch,
                                       .reference = ExpandRules::reference,
                                       .cost = ExpandRules::cost};

}  // namespace rlx
