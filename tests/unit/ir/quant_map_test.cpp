// The map of quantized values: what it reads from a graph, and what rewrites keep of it.
#include "rlx/ir/quant/quant_map.h"

#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/quant/calibration.h"
#include "rlx/passes/passes.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;

struct QuantisedGraph {
  Graph g{"quantised"};
  Expr affine, blocks, nvfp4, faked;
};
QuantisedGraph quantised() {
  QuantisedGraph q;
  Graph& g = q.g;
  const Expr codes = g.param("w0", Shape({4, 6}, DType::I4));
  ops::Dequantize op;
  op.axis = 1;
  const Expr scale = g.constant(test::doubles({6}, {1, 2, 3, 4, 5, 6}).cast(DType::F32)),
             zero = g.constant(Tensor::zeros(Shape({6}, DType::I4)));
  q.affine = g.dequantize(codes, Operand(scale), op, Operand(zero));
  q.blocks = g.dequantize(g.param("w1", Shape({3, 144}, DType::U8)), QuantScheme::Q4_K);
  g.set_label(q.blocks.value().node, "layer0/w1");
  ops::Dequantize nvfp4;
  nvfp4.axis = 1, nvfp4.block = 16;
  q.nvfp4 = g.dequantize(g.cast(g.param("w2", Shape({2, 32}, DType::F32)), DType::F4E2M1),
                         Operand(g.param("s2", Shape({2, 2}, DType::F8E4M3))), nvfp4, std::nullopt,
                         Operand(g.param("t2", Shape({}, DType::F32))));
  ops::FakeQuantize fake;
  fake.bits = 4, fake.mode = ScaleMode::Fixed;
  q.faked = g.fake_quantize(g.input("x", Shape({5}, DType::F32)), fake, Operand(g.scalar(0.25F))).y;
  g.set_label(q.faked.value().node, "x4");
  g.set_outputs({q.affine, q.blocks, q.nvfp4, q.faked});
  return q;
}

TEST_CASE("a map of quantised values says what their nodes say") {
  const QuantisedGraph q = quantised();
  const QuantMap map(q.g);
  REQUIRE(map.entries().size() == 4);

  const QuantEntry* affine = map.find(q.affine.value());
  REQUIRE(affine);
  CHECK(map.find("w0") == affine);  // without a label, the leaf of the quantized values
  CHECK(affine->scheme == QuantScheme::Affine);
  CHECK(affine->axis == 1);
  CHECK(affine->quantized_dtype == DType::I4);
  CHECK(affine->bits == 4);
  CHECK_FALSE(affine->fake);
  CHECK(q.g.shape(affine->scale.value()) == Shape({6}, DType::F32));
  CHECK(q.g.shape(affine->zero_point.value()) == Shape({6}, DType::I4));
  CHECK_FALSE(affine->global_scale);

  const QuantEntry* blocks = map.find("layer0/w1");
  REQUIRE(blocks);
  CHECK(blocks->value == q.blocks.value());
  CHECK(blocks->bits == 4.5);
  CHECK_FALSE(blocks->scale);

  const QuantEntry* nvfp4 = map.find(q.nvfp4.value());
  REQUIRE(nvfp4);
  CHECK(nvfp4->path == q.nvfp4.value().text());
  CHECK(nvfp4->block == 16);
  CHECK_FALSE(nvfp4->zero_point);
  CHECK(q.g.shape(nvfp4->global_scale.value()) == Shape({}, DType::F32));

  const QuantEntry* faked = map.find("x4");
  REQUIRE(faked);
  CHECK(faked->fake);
  CHECK(faked->bits == 4);
  CHECK_FALSE(faked->codes);
  CHECK(faked->scale == Value(q.faked.value().node, 1));

  CHECK(map.find(affine->codes.value()) == nullptr);
  CHECK(map.find(Value(NodeId{})) == nullptr);
  CHECK(map.find("nobody") == nullptr);
  CHECK(contains(map.text(), "w0: affine i4, axis 1, zero points, 4"));
  CHECK(contains(map.text(), "layer0/w1: q4_k, 4.5"));
  CHECK(contains(map.text(), "x4: fake, 4"));
  CHECK(QuantMap(Graph("none")).entries().empty());
}

TEST_CASE("several quantised values of one leaf are told apart by their nodes") {
  Graph g;
  const Expr codes = g.param("w", Shape({4}, DType::I8));
  const Expr a = g.dequantize(codes, Operand(g.scalar(1.0F))), b = g.dequantize(codes, Operand(g.scalar(2.0F)));
  g.set_outputs({a, b});
  const QuantMap map(g);
  CHECK(map.find("w") == nullptr);
  CHECK(map.find(a.value()) != map.find(b.value()));
  CHECK(map.find("w/" + a.value().node.text()) == map.find(a.value()));
  CHECK(map.find("w/" + b.value().node.text()) == map.find(b.value()));
}

TEST_CASE("a label that is only a scope is followed by the leaf of the codes, after a rewrite too") {
  Graph g;
  Expr codes, scale, w;
  {
    const auto scope = g.scope("layer0");
    codes = g.param("q_proj", Shape({4, 6}, DType::I8)), scale = g.param("q_scale", Shape({}, DType::F32));
    w = g.dequantize(codes, Operand(scale));
  }
  const Expr rows = g.gather(w, g.constant(test::ints({2}, {2, 0})), 0);
  g.set_outputs({rows});
  const QuantMap map(g);
  REQUIRE(map.find("layer0/q_proj"));
  CHECK(map.find("layer0/q_proj")->value == w.value());
  CHECK(map.find("layer0") == nullptr);
  const std::vector<const Pass*> passes{&sink_dequantize, &eliminate_dead_code};
  const QuantMap after(run_passes(g, passes, PassContext{}));
  REQUIRE(after.entries().size() == 1);
  CHECK(after.entries()[0].path == "layer0/q_proj");
}

TEST_CASE("after a rewrite the map of the new graph has the same paths") {
  QuantisedGraph q = quantised();
  const Expr rows = q.g.gather(q.blocks, q.g.constant(test::ints({2}, {2, 0})), 0);
  q.g.set_outputs({rows, q.affine, q.faked});
  REQUIRE(q.g.node(rows.value().node).origin.label.empty());
  const std::vector<const Pass*> passes{&sink_dequantize, &eliminate_dead_code};
  const Graph after = run_passes(q.g, passes, PassContext{});
  CHECK(after.shape(after.outputs()[0]) == Shape({2, 256}, DType::F32));
  const QuantMap map(after);
  CHECK(map.find("w0") != nullptr);
  CHECK(map.find("layer0/w1") != nullptr);
  CHECK(map.find("x4") != nullptr);
}

}  // namespace
}  // namespace rlx
