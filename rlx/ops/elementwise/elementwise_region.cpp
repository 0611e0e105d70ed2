// ElementwiseRegion: a closed body of elementwise ops that runs per element.
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ops/body.h"
#include "rlx/ops/elementwise/elementwise.h"

namespace rlx {
namespace {

struct RegionRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Subgraph& body = c.op<ops::ElementwiseRegion>().body;
    if (!body) return c.attr_error("needs a body");
    if (c.num_inputs() == 0) return c.error("needs at least one operand");
    for (std::uint32_t i = 0; i < body->num_nodes(); ++i)
      if (const OpKind kind = body->node(NodeId{i}).kind();
          kind != OpKind::Input && kind != OpKind::Constant && !runs_per_element(*body, NodeId{i}))
        return c.attr_error("its body may hold only elementwise ops, not ", node_text(*body, NodeId{i}));
    std::vector<Shape> operands;
    for (int i = 0; i < c.num_inputs(); ++i) operands.push_back(c.input(i));
    auto results = infer_body(c, *body, operands, "its body");
    if (!results) return results.error();
    if (results->empty()) return c.attr_error("its body has no outputs");
    Result<Dims> space = broadcast_operands(c, 0, c.num_inputs());
    if (!space) return space.error();
    for (std::size_t r = 0; r < results->size(); ++r)
      if ((*results)[r].dims() != *space)
        return c.error("body output ", r, " is ", (*results)[r], ", which is not the broadcast shape of the operands, ",
                       dims_text(*space));
    return results;
  }

  static void decompose(DecomposeContext& c) {
    std::vector<Expr> outputs = inline_body(c.graph(), *c.op<ops::ElementwiseRegion>().body, c.inputs());
    for (std::size_t r = 0; r < outputs.size(); ++r) c.set_result(static_cast<int>(r), outputs[r]);
  }

  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;

  static Cost cost(const CostContext& c) {
    double flops = 0;
    const Graph& body = *c.op<ops::ElementwiseRegion>().body;
    for (const Node& node : body.nodes()) {
      Shapes operands;
      for (Value v : node.inputs) operands.push_back(body.shape(v));
      flops += op_def(node.op).cost(CostContext{node.op, operands, node.shapes}).flops;
    }
    return c.with_flops(flops);
  }

  static constexpr AttrField attrs[] = {field<&ops::ElementwiseRegion::body>("body")};
};

}  // namespace

constinit const OpDef ops::ElementwiseRegion::def{.kind = kind,
                                                  .name = "elementwise_region",
                                                  .what = "Elementwise ops on broadcast operands, run per element.",
                                                  .inputs = variadic_inputs("x"),
                                                  .attrs = RegionRules::attrs,
                                                  .level = Level::Mir,
                                                  .leaf = LeafKind::None,
                                                  .elementwise = ElementwiseKind::Yes,
                                                  .view = ViewKind::None,
                                                  .precision = PrecisionCategory::Elementwise,
                                                  .infer = RegionRules::infer,
                                                  .decompose = RegionRules::decompose,
                                                  .vjp = RegionRules::vjp,
                                                  .jvp = RegionRules::jvp,
                                                  .batch = RegionRules::batch,
                                                  .reference = by_decomposition,
                                                  .cost = RegionRules::cost};

}  // namespace rlx
