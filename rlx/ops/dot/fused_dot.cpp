// FusedDot: dot_general followed by an elementwise epilogue kept as a sub-graph.
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/body.h"
#include "rlx/ops/dot/dot_dims.h"

namespace rlx {
namespace {

struct FusedDotRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::FusedDot>();
    auto dot = infer_dot(c, dot_axes(op));
    if (!dot) return dot.error();
    return infer_epilogue(c, op.epilogue, *dot, "the product");
  }
  static void decompose(DecomposeContext& c) {
    const auto& op = c.op<ops::FusedDot>();
    const Expr product = c.graph().dot_general(
        c.input(0), c.input(1), ops::DotGeneral{op.lhs_contract, op.rhs_contract, op.lhs_batch, op.rhs_batch, op.out});
    decompose_epilogue(c, *op.epilogue, product);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    const auto& op = c.op<ops::FusedDot>();
    const double per_element = static_cast<double>(op.epilogue->num_nodes());
    return c.with_flops(dot_flops(c.inputs[0], c.outputs[0], dot_axes(op)) + per_element * c.elements());
  }
  static void samples(SampleSet& s) {
    const auto body = [](const Shape& acc, const std::vector<Shape>& operands, auto&& build) {
      return sample_epilogue(acc, operands, build);
    };
    const Shape x({3, 4}, DType::F32), w({4, 2}, DType::F32), out({3, 2}, DType::F32), bias({2}, DType::F32),
        one({}, DType::F32);
    s.add("bias", {x, w, bias},
          ops::FusedDot{{1}, {0}, {}, {}, body(out, {bias}, [](Graph&, auto& in) { return in[0] + in[1]; })});
    s.add("bias gelu", {x, w, bias},
          ops::FusedDot{{1}, {0}, {}, {}, body(out, {bias}, [](Graph& g, auto& in) { return g.gelu(in[0] + in[1]); })});
    s.add("bias residual", {x, w, bias, out},
          ops::FusedDot{
              {1}, {0}, {}, {}, body(out, {bias, out}, [](Graph&, auto& in) { return in[0] + in[1] + in[2]; })});
    s.add("scale", {x, w},
          ops::FusedDot{{1}, {0}, {}, {}, body(out, {}, [](Graph&, auto& in) { return in[0] * 0.5; })});
    s.add("multiply by a scalar operand", {x, w, one},
          ops::FusedDot{{1}, {0}, {}, {}, body(out, {one}, [](Graph&, auto& in) { return in[0] * in[1]; })});
    s.add("transposed weight, silu", {x, Shape({2, 4}, DType::F32)},
          ops::FusedDot{{1}, {1}, {}, {}, body(out, {}, [](Graph& g, auto& in) { return g.silu(in[0]); })});
    s.add("batched", {Shape({2, 2, 3}, DType::F32), Shape({2, 3, 2}, DType::F32), Shape({2, 1, 2}, DType::F32)},
          ops::FusedDot{{2},
                        {1},
                        {0},
                        {0},
                        body(Shape({2, 2, 2}, DType::F32), {Shape({2, 1, 2}, DType::F32)},
                             [](Graph& g, auto& in) { return g.tanh(in[0] + in[1]); })});
    s.add("no rows", {Shape({0, 4}, DType::F32), w, bias},
          ops::FusedDot{{1}, {0}, {}, {}, body(Shape({0, 2}, DType::F32), {bias}, [](Graph&, auto& in) {
                          return in[0] + in[1];
                        })});
    s.add(
        "bf16 to f32, bias", {Shape({3, 4}, DType::BF16), Shape({4, 2}, DType::BF16), bias},
        ops::FusedDot{{1}, {0}, {}, {}, body(out, {bias}, [](Graph&, auto& in) { return in[0] + in[1]; }), DType::F32});
    s.add_discrete("i8 to i32, scaled",
                   {SampleInput(Shape({3, 4}, DType::I8), Fill::Small),
                    SampleInput(Shape({4, 2}, DType::U8), Fill::Index, 256), bias},
                   ops::FusedDot{{1},
                                 {0},
                                 {},
                                 {},
                                 body(Shape({3, 2}, DType::I32), {bias},
                                      [](Graph& g, auto& in) { return g.cast(in[0], DType::F32) * in[1]; }),
                                 DType::I32});
    s.add_discrete(
        "cast", {x, w},
        ops::FusedDot{{1}, {0}, {}, {}, body(out, {}, [](Graph& g, auto& in) { return g.cast(in[0], DType::BF16); })});
  }
  static constexpr AttrField attrs[] = {
      field<&ops::FusedDot::lhs_contract>("lhs_contract"), field<&ops::FusedDot::rhs_contract>("rhs_contract"),
      field<&ops::FusedDot::lhs_batch>("lhs_batch"),       field<&ops::FusedDot::rhs_batch>("rhs_batch"),
      field<&ops::FusedDot::epilogue>("epilogue"),         field<&ops::FusedDot::out>("out")};
};

}  // namespace

constinit const OpDef ops::FusedDot::def{.kind = kind,
                                         .name = "fused_dot",
                                         .what = "A product whose accumulator runs through an elementwise epilogue.",
                                         .inputs = variadic_inputs("operands", 2),
                                         .attrs = FusedDotRules::attrs,
                                         .level = Level::Mir,
                                         .leaf = LeafKind::None,
                                         .elementwise = ElementwiseKind::No,
                                         .view = ViewKind::None,
                                         .precision = PrecisionCategory::Compute,
                                         .infer = FusedDotRules::infer,
                                         .decompose = FusedDotRules::decompose,
                                         .vjp = FusedDotRules::vjp,
                                         .jvp = FusedDotRules::jvp,
                                         .batch = FusedDotRules::batch,
                                         .reference = by_decomposition,
                                         .cost = FusedDotRules::cost,
                                         .samples = FusedDotRules::samples};

}  // namespace rlx
