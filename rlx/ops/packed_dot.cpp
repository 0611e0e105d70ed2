// PackedDot: a matrix product whose weight a backend has packed (LIR only).
#include "rlx/ir/op_def.h"

namespace rlx {
namespace {

struct PackedDotRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::PackedDot>();
    const Shape& x = c.input(0);
    if (x.rank() < 1 || !x.dim(-1).is_static(op.k)) return c.error("x ", x, " does not end in k = ", op.k);
    if (op.n < 0 || op.k < 0 || op.panel_width < 0) return c.attr_error("k, n and panel_width must not be negative");
    if (c.input(1).dtype() != DType::U8 || c.input(1).rank() != 1) return c.error("the packed weight must be u8 [bytes], got ", c.input(1));
    const Graph& body = *op.epilogue;
    std::vector<NodeId> ins = body.leaves(OpKind::Input);
    if (static_cast<int>(ins.size()) != c.num_inputs() - 1 || body.outputs().size() != 1)
      return c.attr_error("the epilogue has ", ins.size(), " inputs and ", body.outputs().size(), " outputs; it needs ", c.num_inputs() - 1,
                          " and 1");
    Shape accumulator = x.with_dim(x.rank() - 1, Dim(op.n));
    if (!(body.shape(ins[0]) == accumulator)) return c.error("the epilogue starts from ", body.shape(ins[0]), ", the product is ", accumulator);
    for (std::size_t i = 1; i < ins.size(); ++i)
      if (!(body.shape(ins[i]) == c.input(static_cast<int>(i) + 1)))
        return c.error("epilogue input ", i, " is ", body.shape(ins[i]), ", the operand ", c.input(static_cast<int>(i) + 1));
    return Shapes{body.shape(body.outputs()[0])};
  }
  static Cost cost(const CostContext& c) {
    const auto& op = c.op<ops::PackedDot>();
    double rows = static_cast<double>(c.inputs[0].num_elements()) / static_cast<double>(op.k > 0 ? op.k : 1);
    return c.with_flops(2.0 * rows * static_cast<double>(op.k) * static_cast<double>(op.n));
  }
  static void samples(SampleSet&) {}  // the packed bytes are the backend's own: conformance reaches it through DotGeneral
  static constexpr NoRule vjp = none("gradients are taken before packing");
  static constexpr NoRule jvp = none("derivatives are taken before packing");
  static constexpr NoRule batch = none("batching happens before packing");
  static constexpr AttrField attrs[] = {field<&ops::PackedDot::k>("k"), field<&ops::PackedDot::n>("n"),
                                        field<&ops::PackedDot::panel_width>("panel_width"), field<&ops::PackedDot::epilogue>("epilogue")};
};

}  // namespace

constinit const OpDef ops::PackedDot::def{
    .kind = kind, .name = "packed_dot",
    .what = "fused_dot with the weight as relayout packed it.",
    .inputs = {{"x", "packed", "operands"}, 3, 2, true}, .attrs = PackedDotRules::attrs,
    .level = Level::Lir, .traits = OpTrait::Blas, .infer = PackedDotRules::infer, .decompose = none("the packed layout is the backend's"),
    .vjp = PackedDotRules::vjp, .jvp = PackedDotRules::jvp, .batch = PackedDotRules::batch,
    .reference = none("the packed layout is the backend's"), .cost = PackedDotRules::cost, .samples = PackedDotRules::samples};

}  // namespace rlx
