// ElementwiseRegion: a closed body of elementwise ops that runs per element.
#include <memory>

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
    if (c.num_inputs() == 0) return c.error("needs an operand");
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
        return c.error("body output ", r, " is ", (*results)[r], ", not of the operands' broadcast shape ",
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

  static void samples(SampleSet& s) {
    auto region = [](Graph body, std::vector<Value> outputs) {
      body.set_outputs(std::move(outputs));
      return ops::ElementwiseRegion{std::make_shared<const Graph>(std::move(body))};
    };
    {
      Graph b("bias_gelu");
      Expr x = b.input("x", Shape({2, 3}, DType::F32)), bias = b.input("bias", Shape({3}, DType::F32));
      Expr y = b.gelu(x + bias);
      s.add("bias gelu", {Shape({2, 3}, DType::F32), Shape({3}, DType::F32)}, region(std::move(b), {y}));
    }
    {
      Graph b("two_results");
      Expr x = b.input("x", Shape({2, 2}, DType::F64)), y = b.input("y", Shape({2, 1}, DType::F64)),
           z = b.input("z", Shape({}, DType::F64));
      Expr sum = x * y + z, picked = b.where(b.gt(sum, 0.0), b.tanh(sum), sum * 0.1);
      s.add("two results", {Shape({2, 2}, DType::F64), Shape({2, 1}, DType::F64), Shape({}, DType::F64)},
            region(std::move(b), {sum, picked}));
    }
    {
      Graph b("mixed_dtypes");
      Expr x = b.input("x", Shape({4}, DType::BF16)), n = b.input("n", Shape({4}, DType::I32));
      Expr y = b.cast(x, DType::F32) * b.cast(n, DType::F32);
      s.add_discrete("mixed dtypes", {Shape({4}, DType::BF16), {Shape({4}, DType::I32), Fill::Small}},
                     region(std::move(b), {y}));
    }
    {
      Graph b("nothing");
      Expr x = b.input("x", Shape({0, 2}, DType::F32));
      Expr y = b.silu(x);
      s.add("no elements", {Shape({0, 2}, DType::F32)}, region(std::move(b), {y}));
    }
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
                                                  .cost = RegionRules::cost,
                                                  .samples = RegionRules::samples};

}  // namespace rlx
