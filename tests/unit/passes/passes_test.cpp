// The list of passes, the runner, claims and reports.
#include <set>

#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/elementwise.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"
#include "tests/unit/passes/pass_test.h"

using namespace rlx;
using namespace rlx::test;

namespace {

std::vector<std::string> names(const std::vector<const Pass*>& passes) {
  std::vector<std::string> out;
  for (const Pass* p : passes) out.emplace_back(p->name);
  return out;
}

Graph linear_graph() {
  Graph g("linear");
  Expr x = g.input("x", f32({2, 4})), w = g.param("w", f32({4, 3})), b = g.param("b", f32({3}));
  g.set_outputs({g.gelu(g.matmul(x, w) + b)});
  return g;
}

}  // namespace

TEST_CASE("every pass is found by its name, and says what it does") {
  std::set<std::string_view> seen;
  for (const Pass* pass : all_passes()) {
    CHECK(find_pass(pass->name) == pass);
    CHECK(pass->what.size() > 20);
    CHECK(seen.insert(pass->name).second);
  }
  CHECK(seen.size() == 23);
  CHECK(find_pass("fuse-everything") == nullptr);
}

TEST_CASE("claims choose the fusion passes") {
  CHECK(names(fusion_passes_for_supported({}, {})) ==
        std::vector<std::string>{"unfuse-elementwise-regions", "eliminate-dead-code"});
  CHECK(names(fusion_passes_for_supported({OpKind::DotGeneral, OpKind::FusedDot, OpKind::ElementwiseRegion}, {})) ==
        std::vector<std::string>{"fold-scale-shift", "merge-shared-input-dots", "fuse-dot-epilogue",
                                 "mark-elementwise-regions", "eliminate-dead-code"});
  // Blocks before their parts, residual norms before epilogues, regions last.
  CHECK(names(fusion_passes(FusionTarget::Cpu, {})) ==
        std::vector<std::string>{"fold-scale-shift", "merge-shared-input-dots", "fuse-swiglu", "fuse-residual-norm",
                                 "fuse-dot-epilogue", "fuse-conv-epilogue", "mark-elementwise-regions",
                                 "eliminate-dead-code"});
  FusionOptions options;
  options.unfuse_elementwise_regions = true;
  CHECK(names(fusion_passes(FusionTarget::Tpu, options)) ==
        std::vector<std::string>{"fold-scale-shift", "merge-shared-input-dots", "fuse-dot-epilogue",
                                 "unfuse-elementwise-regions", "eliminate-dead-code"});
  options.skip_fusion = true;
  CHECK(fusion_passes(FusionTarget::Cpu, options).empty());
  // Decomposed ops are recognized before the fusion patterns run, if the target has the op.
  CHECK(names(fusion_passes_for_supported({OpKind::Activation, OpKind::LayerNorm, OpKind::Attention}, {})) ==
        std::vector<std::string>{"recognize-activations", "recognize-norms", "recognize-attention",
                                 "unfuse-elementwise-regions", "eliminate-dead-code"});
}

TEST_CASE("region limits are the target's unless set") {
  for (FusionTarget t : {FusionTarget::Metal, FusionTarget::Mlx, FusionTarget::Cuda, FusionTarget::Rocm,
                         FusionTarget::Wgpu, FusionTarget::Tpu}) {
    const FusionOptions o = FusionOptions{}.for_target(t);
    CHECK(o.max_region_steps == 32);
    CHECK(o.max_region_inputs == 16);
  }
  CHECK(FusionOptions{}.for_target(FusionTarget::Cpu).max_region_steps == 0);
  FusionOptions mine;
  mine.max_region_steps = 0;
  mine.skip_fusion = true;
  const FusionOptions cuda = mine.for_target(FusionTarget::Cuda);
  CHECK(cuda.max_region_steps == 0);
  CHECK(cuda.max_region_inputs == 16);
  CHECK(cuda.skip_fusion);
}

TEST_CASE("a GPU target's regions stop at its limits") {
  Graph g("chain");
  Expr x = g.input("x", f32({4}));
  for (int i = 0; i < 40; ++i) x = g.tanh(x);
  g.set_outputs({x});
  FusionReport report;
  PassContext context;
  const OpSet regions{OpKind::ElementwiseRegion};
  context.claims = &regions;
  context.options = FusionOptions{}.for_target(FusionTarget::Cuda);
  context.report = &report;
  std::optional<Graph> after = mark_elementwise_regions.run(g, context);
  REQUIRE(after);
  CHECK(count_ops(*after, OpKind::ElementwiseRegion) == 2);
  CHECK(report.missed_count("elementwise_region") == 1);
}

TEST_CASE("default claims follow the documented table") {
  struct Row {
    FusionTarget target;
    bool swiglu, norms;
  };
  for (const Row& row : {Row{FusionTarget::Cpu, true, true}, Row{FusionTarget::Metal, true, true},
                         Row{FusionTarget::Mlx, true, true}, Row{FusionTarget::Wgpu, true, true},
                         Row{FusionTarget::Cuda, false, true}, Row{FusionTarget::Rocm, false, true},
                         Row{FusionTarget::Tpu, false, false}}) {
    INFO(fusion_target_name(row.target));
    const OpSet claims = default_claims(row.target);
    for (OpKind kind : {OpKind::MatMul, OpKind::DotGeneral, OpKind::ElementwiseRegion, OpKind::FusedDot})
      CHECK(supports_op(claims, kind));
    CHECK(supports_op(claims, OpKind::FusedSwiGLU) == row.swiglu);
    CHECK(supports_op(claims, OpKind::FusedResidualLN) == row.norms);
    CHECK(supports_op(claims, OpKind::FusedResidualRmsNorm) == row.norms);
    CHECK_FALSE(supports_op(claims, OpKind::FusedAttentionBlock));  // no device has a kernel of a whole layer
    CHECK_FALSE(supports_op(claims, OpKind::Softmax));
  }
}

TEST_CASE("run_passes shows each change to the observer and stamps what it made") {
  const Graph g = linear_graph();
  std::vector<std::string> changed;
  const Pass* passes[] = {&canonicalize_dots, &fold_constants, &fuse_dot_epilogue};
  const Graph after = run_passes(
      g, passes, PassContext{},
      [](void* user, const Pass& p, const Graph&) {
        static_cast<std::vector<std::string>*>(user)->emplace_back(p.name);
      },
      &changed);
  CHECK(changed == std::vector<std::string>{"canonicalize-dots", "fuse-dot-epilogue"});
  REQUIRE(count_ops(after, OpKind::FusedDot) == 1);
  const Origin& origin = after.nodes()[after.outputs()[0].node.index].origin;
  CHECK(origin.pass == "fuse-dot-epilogue");
  CHECK(std::find(origin.from.begin(), origin.from.end(), "%3 matmul") != origin.from.end());
  CHECK(origin.loc.line > 0);
}

#ifdef RLX_VERIFY
TEST_CASE("a pass that breaks an invariant is named") {
  const Pass broken{"break-shapes", "returns a graph with a wrong shape",
                    [](const Graph& g, const PassContext&) -> std::optional<Graph> {
                      Graph out("broken");
                      NodeId x = out.add_node(g.node(NodeId{0}));
                      NodeId y = out.add_node(Node{ops::Activation{ActivationKind::Gelu}, {x}, {f32({7})}, {}});
                      out.set_outputs(std::vector<Value>{y});
                      return out;
                    }};
  const Pass* passes[] = {&canonicalize_dots, &broken};
  CHECK(contains(error_text([&] { run_passes(linear_graph(), passes, PassContext{}); }), "break-shapes"));
}
#endif

TEST_CASE("a report counts, sums up and explains") {
  Graph g("two");
  Expr x = g.input("x", f32({2, 4})), w = g.param("w", f32({4, 3})), v = g.param("v", f32({3, 3})),
       b = g.param("b", f32({3}));
  Expr y = g.gelu(g.matmul(x, w) + b), z = g.matmul(y, v);
  g.set_label(z.value().node, "head");
  g.set_outputs({z + b, z});
  FusionReport report;
  PassContext context;
  context.report = &report;
  report.before = op_histogram(g);
  report.nodes_before = g.num_nodes();
  const Graph after = run_all(g, context);
  report.after = op_histogram(after);
  report.nodes_after = after.num_nodes();
  CHECK(report.before.at("matmul") == 2);
  CHECK(report.before.at("gelu") == 1);
  CHECK(report.fused_count("matmul_bias_act") == 1);
  CHECK(report.fused_count("swiglu") == 0);
  CHECK(report.missed_count("matmul_bias_act") == 1);
  CHECK(report.summary_line() == "nodes=9->7 fused_matmul_bias_act=1 missed=1");
  REQUIRE(report.missed.size() == 1);
  CHECK(report.missed[0].reason == MissReason::IsOutput);
  CHECK(report.missed[0].label == "head");
  const std::string text = report.text();
  CHECK(contains(text, "  fused_dot: 0 -> 1\n"));
  CHECK(contains(text, "\"head\": is_output: "));
  CHECK(contains(text, "(hint: make only the last value of the chain an output)"));
}

TEST_CASE("what follows a convolution is fused into it, along its features, or a report says why not") {
  for (const bool last : {false, true}) {
    ops::Conv op;
    op.low = op.high = {1, 1};
    if (last) op.lhs_spec = op.out_spec = {0, 3, 1, 2}, op.rhs_spec = {3, 2, 0, 1};
    Graph g("conv");
    const Expr x = g.input("x", last ? f32({1, 4, 5, 2}) : f32({1, 2, 4, 5})),
               b = g.param("b", last ? f32({3}) : f32({1, 3, 1, 1})),
               row = g.param("row", last ? f32({4, 5, 1}) : f32({5})),
               r = g.input("r", last ? f32({1, 4, 5, 3}) : f32({1, 3, 4, 5}));
    // Each convolution has its own filters, because equal ones would be merged.
    const auto conv = [&](const char* w) {
      return g.conv(x, g.param(w, last ? f32({3, 3, 2, 3}) : f32({3, 2, 3, 3})), op);
    };
    const Expr one = g.relu(conv("w1") + b), two = conv("w2"), three = conv("w3") + row;
    g.set_outputs({one, two, g.tanh(two), three, g.min(g.silu(conv("w4") * 0.5 + r), 3.0)});
    FusionReport report;
    PassContext context;
    context.report = &report;
    const Graph after = run_all(g, context);
    CHECK(count_ops(after, OpKind::FusedConv) == 2);
    CHECK(report.fused_count("conv_bias_act") == 1);
    CHECK(report.fused_count("conv_epilogue") == 1);
    REQUIRE(report.missed.size() == 2);
    CHECK(report.missed[0].reason == MissReason::IsOutput);
    CHECK(report.missed[1].reason == MissReason::BiasRankTooHigh);
    CHECK(contains(report.missed[1].text(), "one element for each feature"));
    check_same_results(g, after, 1e-5);
  }
}

TEST_CASE("every miss reason has its own name") {
  std::set<std::string_view> seen;
  for (int r = 0; r <= static_cast<int>(MissReason::NotFused); ++r)
    CHECK(seen.insert(miss_reason_name(static_cast<MissReason>(r))).second);
  CHECK_FALSE(seen.contains("unknown"));
}

TEST_CASE("symbolic shapes: products, norms and regions are fused before the symbols are bound") {
  Graph g("symbolic");
  const Dim seq = g.symbol("seq", {1, 64, 1});
  Expr x = g.input("x", f32({2, seq, 4})), w = g.param("w", f32({4, 4})), b = g.param("b", f32({4}));
  Expr h = g.layer_norm(g.matmul(x, w) + b + x, b, b, 1e-3);
  g.set_outputs({g.tanh(g.exp(g.gelu(g.matmul(h, w)) * 0.5) + h)});
  const Graph after = run_all(g, PassContext{});
  CHECK(count_ops(after, OpKind::FusedResidualLN) == 1);
  CHECK(count_ops(after, OpKind::FusedDot) == 2);
  for (std::int64_t n : {1, 5}) check_same_results(g.bind({{"seq", n}}), after.bind({{"seq", n}}), 1e-5);
}

TEST_CASE("gate and up products with other readers are joined, but no swiglu loses them") {
  Graph g("gated");
  Expr x = g.input("x", f32({3, 4})), gate = g.matmul(x, g.param("gate", f32({4, 5}))),
       up = g.matmul(x, g.param("up", f32({4, 5})));
  g.set_outputs({g.silu(gate) * up, g.tanh(gate), up});
  FusionReport report;
  PassContext context;
  context.report = &report;
  const Graph after = run_all(g, context);
  CHECK(count_ops(after, OpKind::FusedSwiGLU) == 0);
  CHECK(count_ops(after, OpKind::DotGeneral) == 1);
  CHECK(report.missed_count("swiglu") == 1);
  check_same_results(g, after, 1e-5);
}

TEST_CASE("a fused dot reads a bias that is also its residual's source, and a product of itself") {
  Graph g("twice");
  Expr x = g.input("x", f32({4, 4})), w = g.param("w", f32({4, 4})), b = g.param("b", f32({4}));
  Expr y = g.matmul(x, w), z = y + b;
  g.set_outputs({z * z, g.gelu(g.matmul(x, x) + x) + b, (g.matmul(x, g.t(x)) + b) * x + x});
  const Graph after = run_all(g, PassContext{});
  CHECK(count_ops(after, OpKind::FusedDot) == 3);
  check_same_results(g, after, 1e-5);
}

TEST_CASE("long chains and wide sums: 4000 ops behind one product, 2000 products of one value") {
  Graph chain("chain");
  Expr x = chain.matmul(chain.input("x", f32({4, 4})), chain.param("w", f32({4, 4})));
  for (int i = 0; i < 4000; ++i) x = i % 2 ? chain.tanh(x) : x + 0.25;
  chain.set_outputs({x});
  const Graph one = run_all(chain, PassContext{});
  CHECK(count_ops(one, OpKind::FusedDot) == 1);
  CHECK(count_ops(one, OpKind::ElementwiseRegion) == 1);
  check_same_results(chain, one, 1e-4);

  Graph wide("wide");
  Expr in = wide.input("x", f32({1, 2})), sum = in;
  for (int i = 0; i < 2000; ++i) sum = sum + wide.matmul(in, wide.param(concat_text("w", i), f32({2, 2})));
  wide.set_outputs({sum});
  const Graph joined = run_all(wide, PassContext{});
  CHECK(count_ops(joined, OpKind::DotGeneral) + count_ops(joined, OpKind::FusedDot) == 1);
}
