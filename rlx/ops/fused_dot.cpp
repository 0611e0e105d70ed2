// FusedDot: dot_general followed by an elementwise epilogue kept as a sub-graph.
#include "rlx/ops/dot_dims.h"

namespace rlx {
namespace {

struct FusedDotRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::FusedDot>();
    auto dot = infer_dot(c, dot_axes(op));
    if (!dot) return dot.error();
    if (!op.epilogue) return c.attr_error("needs an epilogue");
    const Graph& body = *op.epilogue;
    if (body.outputs().size() != 1)
      return c.attr_error("the epilogue must have one output, it has ", body.outputs().size());
    if (!body.state_updates().empty()) return c.attr_error("the epilogue must not update states");
    // The shapes of this node run through the body: its stored shapes are those of the node it was made for.
    std::vector<Shapes> shapes(body.num_nodes());
    std::size_t next_input = 0;
    const auto num_body_inputs = static_cast<std::size_t>(c.num_inputs() - 1);
    for (std::size_t i = 0; i < body.num_nodes(); ++i) {
      const Node& node = body.nodes()[i];
      if (node.kind() == OpKind::Param || node.kind() == OpKind::State)
        return c.attr_error("the epilogue holds a ", op_def(node.kind()).name, "; pass it as an operand");
      if (node.kind() == OpKind::Input) {
        if (next_input == num_body_inputs)
          return c.attr_error("the epilogue has more inputs than the accumulator and the ", num_body_inputs - 1,
                              " operands");
        const Shape& given = next_input == 0 ? *dot : c.input(static_cast<int>(next_input) + 1);
        if (given.dtype() != node.shape().dtype())
          return c.dtype_error("epilogue input ", next_input, " is ", node.shape(), ", its operand is ", given);
        shapes[i] = {given};
        ++next_input;
        continue;
      }
      std::vector<Shape> operands;
      for (const Value& v : node.inputs) {
        if (v.node.index >= i || v.result >= shapes[v.node.index].size())
          return c.attr_error("the epilogue is not in topological order");
        operands.push_back(shapes[v.node.index][v.result]);
      }
      auto inferred = infer_shapes(node.op, operands);
      if (!inferred) return c.error("in the epilogue: ", inferred.error().message);
      shapes[i] = std::move(inferred).value();
    }
    if (next_input != num_body_inputs)
      return c.attr_error("the epilogue takes ", next_input, " inputs, the node gives an accumulator and ",
                          num_body_inputs - 1, " operands");
    const Value out = body.outputs()[0];
    if (out.node.index >= shapes.size() || out.result >= shapes[out.node.index].size())
      return c.attr_error("the epilogue's output does not exist");
    const Shape& result = shapes[out.node.index][out.result];
    if (result.dims() != dot->dims())
      return c.error("the epilogue turns the product ", *dot, " into ", result, "; it must keep its dims");
    return Shapes{result};
  }
  static void decompose(DecomposeContext& c) {
    const auto& op = c.op<ops::FusedDot>();
    std::vector<Expr> operands;
    operands.push_back(c.graph().dot_general(
        c.input(0), c.input(1), ops::DotGeneral{op.lhs_contract, op.rhs_contract, op.lhs_batch, op.rhs_batch}));
    for (int i = 2; i < c.num_inputs(); ++i) operands.push_back(c.input(i));
    c.set_result(inline_body(c.graph(), *op.epilogue, operands)[0]);
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
    auto body = [](const Shape& acc, std::vector<Shape> operands, auto&& build) {
      auto g = std::make_shared<Graph>("epilogue");
      std::vector<Expr> in{g->input("acc", acc)};
      for (std::size_t i = 0; i < operands.size(); ++i) in.push_back(g->input(concat_text("op", i), operands[i]));
      g->set_outputs({build(*g, in)});
      return Subgraph(g);
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
    s.add_discrete(
        "cast", {x, w},
        ops::FusedDot{{1}, {0}, {}, {}, body(out, {}, [](Graph& g, auto& in) { return g.cast(in[0], DType::BF16); })});
  }
  static constexpr AttrField attrs[] = {
      field<&ops::FusedDot::lhs_contract>("lhs_contract"), field<&ops::FusedDot::rhs_contract>("rhs_contract"),
      field<&ops::FusedDot::lhs_batch>("lhs_batch"), field<&ops::FusedDot::rhs_batch>("rhs_batch"),
      field<&ops::FusedDot::epilogue>("epilogue")};
};

}  // namespace

constinit const OpDef ops::FusedDot::def{.kind = kind,
                                         .name = "fused_dot",
                                         .what = "A product whose accumulator runs through an elementwise epilogue.",
                                         .inputs = variadic_inputs("operands", 2),
                                         .attrs = FusedDotRules::attrs,
                                         .level = Level::Mir,
                                         .traits = OpTrait::Blas | OpTrait::Composite,
                                         .infer = FusedDotRules::infer,
                                         .decompose = FusedDotRules::decompose,
                                         .vjp = FusedDotRules::vjp,
                                         .jvp = FusedDotRules::jvp,
                                         .batch = FusedDotRules::batch,
                                         .reference = by_decomposition,
                                         .cost = FusedDotRules::cost,
                                         .samples = FusedDotRules::samples};

}  // namespace rlx
