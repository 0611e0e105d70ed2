// FusedConv: a convolution followed by an elementwise epilogue, which is a sub-graph.
#include "rlx/ops/body.h"
#include "rlx/ops/conv/conv_rules.h"

namespace rlx {
namespace {

// An attribute of Conv that is read and written in the Conv part of a FusedConv.
template <auto Member>
constexpr AttrField conv_field(std::string_view name) {
  AttrField f = field<Member>(name);
  using Access = detail::FieldAccess<Member>;
  f.get = [](const void* op) {
    const ops::Conv* conv = static_cast<const ops::FusedConv*>(op);
    return Access::get(conv);
  };
  f.set = [](void* op, AttrValue value) {
    ops::Conv* conv = static_cast<ops::FusedConv*>(op);
    Access::set(conv, std::move(value));
  };
  return f;
}

struct FusedConvRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::FusedConv>();
    auto conv = infer_conv(c, op);
    if (!conv) return conv.error();
    return infer_epilogue(c, op.epilogue, *conv, "the convolution");
  }
  static void decompose(DecomposeContext& c) {
    const auto& op = c.op<ops::FusedConv>();
    decompose_epilogue(c, *op.epilogue, c.graph().conv(c.input(0), c.input(1), static_cast<const ops::Conv&>(op)));
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    const auto& op = c.op<ops::FusedConv>();
    return c.with_flops((2 * conv_depth(c.inputs[1], op) + static_cast<double>(op.epilogue->num_nodes())) *
                        c.elements());
  }
  static constexpr AttrField attrs[] = {conv_field<&ops::Conv::strides>("strides"),
                                        conv_field<&ops::Conv::low>("low"),
                                        conv_field<&ops::Conv::high>("high"),
                                        conv_field<&ops::Conv::lhs_dilation>("lhs_dilation"),
                                        conv_field<&ops::Conv::rhs_dilation>("rhs_dilation"),
                                        conv_field<&ops::Conv::groups>("groups"),
                                        conv_field<&ops::Conv::batch_groups>("batch_groups"),
                                        conv_field<&ops::Conv::lhs_spec>("lhs_spec"),
                                        conv_field<&ops::Conv::rhs_spec>("rhs_spec"),
                                        conv_field<&ops::Conv::out_spec>("out_spec"),
                                        conv_field<&ops::Conv::out>("out"),
                                        field<&ops::FusedConv::epilogue>("epilogue")};
};

}  // namespace

constinit const OpDef ops::FusedConv::def{.kind = kind,
                                          .name = "fused_conv",
                                          .what = "A convolution followed by an elementwise epilogue.",
                                          .inputs = variadic_inputs("operands", 2),
                                          .attrs = FusedConvRules::attrs,
                                          .level = Level::Mir,
                                          .leaf = LeafKind::None,
                                          .elementwise = ElementwiseKind::No,
                                          .view = ViewKind::None,
                                          .precision = PrecisionCategory::Compute,
                                          .infer = FusedConvRules::infer,
                                          .decompose = FusedConvRules::decompose,
                                          .vjp = FusedConvRules::vjp,
                                          .jvp = FusedConvRules::jvp,
                                          .batch = FusedConvRules::batch,
                                          .reference = by_decomposition,
                                          .cost = FusedConvRules::cost};

}  // namespace rlx
