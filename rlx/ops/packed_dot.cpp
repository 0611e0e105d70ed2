// PackedDot: a matrix product whose weight a backend has packed (LIR only).
#include "rlx/ops/body.h"

#include "rlx/ir/ops/lir.h"

namespace rlx {
namespace {

struct PackedDotRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::PackedDot>();
    const Shape& x = c.input(0);
    if (x.rank() < 1 || !x.dim(-1).is_static(op.k)) return c.error("x ", x, " does not end in k = ", op.k);
    if (op.n < 0 || op.k < 0 || op.panel_width < 0) return c.attr_error("k, n and panel_width must not be negative");
    if (c.input(1).dtype() != DType::U8 || c.input(1).rank() != 1)
      return c.error("the packed weight must be u8 [bytes], got ", c.input(1));
    if (!op.epilogue) return c.attr_error("needs an epilogue");
    std::vector<Shape> operands{x.with_dim(x.rank() - 1, Dim(op.n))};
    for (int i = 2; i < c.num_inputs(); ++i) operands.push_back(c.input(i));
    auto results = infer_body(c, *op.epilogue, operands, "the epilogue");
    if (!results) return results.error();
    if (results->size() != 1) return c.attr_error("the epilogue must have one output, it has ", results->size());
    if (results->front().dims() != operands.front().dims())
      return c.error("the epilogue turns the product ", operands.front(), " into ", results->front(),
                     "; it must keep its dims");
    return results;
  }
  static Cost cost(const CostContext& c) {
    const auto& op = c.op<ops::PackedDot>();
    double rows = static_cast<double>(c.inputs[0].num_elements()) / static_cast<double>(op.k > 0 ? op.k : 1);
    return c.with_flops(2.0 * rows * static_cast<double>(op.k) * static_cast<double>(op.n));
  }
  static void samples(SampleSet&) {
  }  // the packed bytes are the backend's own: conformance reaches it through DotGeneral
  static constexpr NoRule vjp = none("gradients are taken before packing");
  static constexpr NoRule jvp = none("derivatives are taken before packing");
  static constexpr NoRule batch = none("batching happens before packing");
  static constexpr AttrField attrs[] = {field<&ops::PackedDot::k>("k"), field<&ops::PackedDot::n>("n"),
                                        field<&ops::PackedDot::panel_width>("panel_width"),
                                        field<&ops::PackedDot::epilogue>("epilogue")};
};

}  // namespace

constinit const OpDef ops::PackedDot::def{.kind = kind,
                                          .name = "packed_dot",
                                          .what = "fused_dot with the weight as relayout packed it.",
                                          .inputs = {{"x", "packed", "operands"}, 3, 2, true},
                                          .attrs = PackedDotRules::attrs,
                                          .level = Level::Lir,
                                          .leaf = LeafKind::None,
                                          .elementwise = ElementwiseKind::No,
                                          .view = ViewKind::None,
                                          .precision = PrecisionCategory::Compute,
                                          .infer = PackedDotRules::infer,
                                          .decompose = none("the packed layout is the backend's"),
                                          .vjp = PackedDotRules::vjp,
                                          .jvp = PackedDotRules::jvp,
                                          .batch = PackedDotRules::batch,
                                          .reference = none("the packed layout is the backend's"),
                                          .cost = PackedDotRules::cost,
                                          .samples = PackedDotRules::samples};

}  // namespace rlx
