// Transpose: result dim k is operand dim perm[k].
#include "rlx/ops/rule_helpers.h"

#include "rlx/ir/ops/shape.h"

namespace rlx {
namespace {

struct TransposeRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const auto& perm = c.op<ops::Transpose>().perm;
    if (perm.size() != static_cast<std::size_t>(x.rank()))
      return c.error("perm ", dims_text(perm), " names ", perm.size(), " axes, x ", x, " has ", x.rank());
    if (auto error = check_axes(c, perm, x)) return *error;
    Dims dims;
    for (std::int64_t axis : perm) dims.push_back(x.dim(static_cast<int>(axis)));
    return make_shapes(Shape(std::move(dims), x.dtype()));
  }
  static void reference(const RefArgs& a) {
    const auto& perm = a.op<ops::Transpose>().perm;
    const auto from = row_major_strides(a.in(0).dims());
    StridedView view;
    for (std::int64_t axis : perm) view.strides.push_back(from[static_cast<std::size_t>(axis)]);
    const auto dims = a.out().dims();
    copy_strided(a.out().dtype(), dims, a.out().mutable_data(), whole(dims), a.in(0).data(), view);
  }
  static void vjp(VjpContext& c) {
    c.accumulate(0, c.graph().transpose(c.cotangent(), inverse_perm(c.op<ops::Transpose>().perm)));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0)) c.set_tangent(c.graph().transpose(c.tangent(0), c.op<ops::Transpose>().perm));
  }
  static void batch(BatchContext& c) {
    std::vector<std::int64_t> perm = shifted(c.op<ops::Transpose>().perm);
    perm.insert(perm.begin(), 0);
    c.emit_lifted(ops::Transpose{std::move(perm)});
  }
  static constexpr AttrField attrs[] = {field<&ops::Transpose::perm>("perm")};
};

}  // namespace

constinit const OpDef ops::Transpose::def{.kind = kind,
                                          .name = "transpose",
                                          .what = "Axes permuted: result axis k is operand axis perm[k].",
                                          .inputs = inputs("x"),
                                          .attrs = TransposeRules::attrs,
                                          .level = Level::Mir,
                                          .leaf = LeafKind::None,
                                          .elementwise = ElementwiseKind::No,
                                          .view = ViewKind::ByStrides,
                                          .precision = PrecisionCategory::DataMovement,
                                          .infer = TransposeRules::infer,
                                          .decompose = none("a primitive"),
                                          .vjp = TransposeRules::vjp,
                                          .jvp = TransposeRules::jvp,
                                          .batch = TransposeRules::batch,
                                          .reference = TransposeRules::reference,
                                          .cost = moves_bytes};

}  // namespace rlx
