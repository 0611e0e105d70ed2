// The options of the pipeline, and what a compile reports.
#include "rlx/compiler/pipeline.h"

#include <doctest/doctest.h>

#include <random>

#include "rlx/ir/ops/fused.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

using test::f32;

// gelu(x w + b). With `peek` the matmul is an output too, which prevents its fusion.
Graph layer(bool peek = false, Dim rows = 2) {
  Graph g("layer");
  Expr x = g.input("x", f32({rows, 4}));
  Expr product = g.matmul(x, g.param("w", f32({4, 3})));
  Expr y = g.gelu(product + g.param("b", f32({3})));
  if (peek)
    g.set_outputs({y, product});
  else
    g.set_outputs({y});
  return g;
}

std::shared_ptr<const Target> cpu() { return Session().target(); }

std::vector<float> run_layer(const CompileOptions& options) {
  CompiledGraph f = Session().compile_with(layer(), options);
  f.set_param("w", {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1});
  f.set_param("b", {0.5f, -0.5f, 0});
  return f.run({{"x", {1, 2, 3, 4, -1, -2, -3, -4}}})[0];
}

TEST_CASE("inspect_compiled shows each stage that was kept, and what is always there") {
  CompileOptions o;
  o.keep_stages = true;
  const CompileResult kept = CompilePipeline(cpu(), o).compile_graph(layer());
  const PipelineInspect all = inspect_compiled(kept);
  CHECK(all.hir == print_text(layer()));
  CHECK(contains(all.mir_lowered, " = matmul("));
  CHECK(contains(all.mir_optimized, " = fused_dot("));
  CHECK(!contains(all.mir_optimized, " = matmul("));
  CHECK(contains(all.mir_diff, "  fused_dot +1\n"));
  CHECK(contains(all.mir_diff, "  matmul -1\n"));
  CHECK(contains(all.lir, " form = \"panels("));
  CHECK(contains(all.lir, " = relayout("));
  CHECK(all.fusion == kept.fusion.text());
  CHECK(all.dispatch == kept.dispatch.text());
  const std::string text = all.text();
  std::size_t at = 0;
  for (const char* title : {"==== HIR ====", "==== MIR, lowered ====", "==== MIR, what the passes changed ====",
                            "==== MIR, optimised and legal ====", "==== LIR: run, prepare, buffers ====",
                            "==== fusion ====", "==== dispatch ===="}) {
    const std::size_t found = text.find(title, at);
    CHECK_MESSAGE(found != std::string::npos, title);
    at = found == std::string::npos ? at : found;
  }
  CHECK(inspect_pipeline(layer().module(), cpu()).text() == text);

  const PipelineInspect bare = inspect_compiled(CompilePipeline(cpu()).compile_graph(layer()));
  CHECK(bare.hir.empty());
  CHECK(bare.mir_diff.empty());
  CHECK(bare.lir == all.lir);
  CHECK(!contains(bare.text(), "==== HIR"));
}

TEST_CASE("inspect_fusion is the report of a compile") {
  const FusionReport clean = inspect_fusion(layer(), cpu());
  CHECK(clean.fused_count("matmul_bias_act") == 1);
  CHECK(clean.missed.empty());
  CHECK(clean.text() == CompilePipeline(cpu()).compile_graph(layer()).fusion.text());
  CompileOptions off;
  off.fusion.skip_fusion = true;
  CHECK(inspect_fusion(layer(), cpu(), off).fused.empty());
  const FusionReport missed = inspect_fusion(layer(true), cpu());
  CHECK(missed.fused_count("matmul_bias_act") == 0);
  REQUIRE(missed.missed_count("matmul_bias_act") == 1);
  CHECK(missed.missed[0].reason == MissReason::IsOutput);
}

TEST_CASE("a value with more readers than an ordering keeps apart, whose bytes are reused in parts, compiles") {
  for (const int readers : {64, 65, 81})
    for (int writers = 2; writers <= 6; writers += 2)
      for (int seed = 0; seed < test::repetitions(10); ++seed) {
        INFO(readers, " readers, ", writers, " writers, seed ", seed);
        std::mt19937 random(static_cast<unsigned>(seed));
        const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
        Graph g("many readers");
        const Expr x = g.input("x", f32({1024})), big = g.cumsum(x, 0);
        std::vector<Expr> sums, outputs;
        for (int i = 0; i < readers; ++i) sums.push_back(g.sum(g.slice(big, {i}, {1024}), {0}, true));
        outputs.push_back(g.concat(sums, 0));
        for (int j = 0; j < writers; ++j) {
          const int n = 16 * (1 + pick(20));
          outputs.push_back(g.slice(g.cumsum(g.slice(x, {j}, {j + n}), 0), {0}, {1 + pick(n - 1)}));
        }
        g.set_outputs(outputs);
        CHECK_NOTHROW((void)Session().compile(std::move(g)));
      }
}

TEST_CASE("a region may have results that nobody reads") {
  for (const std::uint32_t used : {0U, 1U}) {
    INFO("result ", used);
    Graph g("region");
    const Expr v = g.cumsum(g.input("x", f32({4})), 0);
    auto body = std::make_shared<Graph>("body");
    const Expr in = body->input("in", f32({4})), twice = in + in;
    body->set_outputs({twice, twice * in});
    const Expr region = g.add(ops::ElementwiseRegion{body}, {v});
    g.set_outputs({g.cumsum(g.expr(Value(region.value().node, used)), 0)});
    const std::vector<float> y = Session().compile(std::move(g)).run({{"x", {1, 1, 1, 1}}})[0];
    CHECK(y == (used == 0 ? std::vector<float>{2, 6, 12, 20} : std::vector<float>{2, 10, 28, 60}));
  }
}

// The error of a graph whose values are [rows, columns] of 2^30 each.
template <class Outputs>
std::string error_of_huge(const Outputs& outputs) {
  Graph g("huge");
  const SymbolInfo info{0, std::int64_t{1} << 30};
  const Dim a = g.symbol("rows", info), b = g.symbol("columns", info);
  const Expr x = g.input("x", f32({a, b}));
  g.set_outputs(outputs(g, x));
  CompileOptions options;
  options.symbol_modes = {{"rows", SymbolMode::runtime()}, {"columns", SymbolMode::runtime()}};
  return error_text([&] { Session().compile_with(std::move(g), options); });
}

TEST_CASE("buffers of symbols that no memory holds together: an error names their bytes and the symbols") {
  const std::string text = error_of_huge([](Graph& g, Expr x) {
    std::vector<Expr> live;
    for (int i = 0; i < 6; ++i) live.push_back(g.cumsum(i == 0 ? x : g.cumsum(live.back(), 0), 1));
    Expr sum = live[0];
    for (std::size_t i = live.size(); i-- > 0;) sum = g.cumsum(sum + live[i], 0);
    return std::vector<Expr>{sum};
  });
  INFO(text);
  CHECK(contains(text, "out of memory"));
  CHECK(contains(text, "4611686018427387904 bytes"));
  CHECK(contains(text, "rows <= 1073741824"));
  CHECK(contains(text, "columns <= 1073741824"));
  CHECK(contains(text, "hint: "));
}

TEST_CASE("outputs that no memory holds together are an error too") {
  const std::string text = error_of_huge([](Graph& g, Expr x) {
    std::vector<Expr> outputs;
    for (int i = 0; i < 6; ++i) outputs.push_back(g.cumsum(x + i, 0));
    return outputs;
  });
  INFO(text);
  CHECK(contains(text, "out of memory"));
  CHECK(contains(text, "4611686018427387904 bytes"));
  CHECK(contains(text, "hint: "));
}

TEST_CASE("assert_fusion_clean refuses a compile that missed a pattern, and no other") {
  CompileOptions o;
  o.assert_fusion_clean = true;
  CHECK(error_text([&] { (void)CompilePipeline(cpu(), o).compile_graph(layer()); }).empty());
  const std::string text = error_text([&] { (void)CompilePipeline(cpu(), o).compile_graph(layer(true)); });
  CHECK(contains(text, "fusion is not clean: 1 patterns were missed"));
  CHECK(contains(text, "matmul_bias_act"));
  CHECK(contains(error_text([&] { (void)Session().compile_with(layer(true), o); }), "fusion is not clean"));
  CHECK(error_text([&] { (void)Session().compile(layer(true)); }).empty());
}

TEST_CASE("supported_ops decides what is fused, what is decomposed, and what is refused") {
  const std::vector<float> expected = run_layer({});
  CompileOptions o;
  o.supported_ops = cpu()->kinds();
  o.supported_ops->remove(OpKind::FusedMatMulBiasAct);
  const CompileResult plain = CompilePipeline(cpu(), o).compile_graph(layer());
  CHECK(plain.fusion.fused_count("matmul_bias_act") == 0);
  CHECK(!op_histogram(plain.lir.graph).contains("fused_dot"));
  const std::vector<float> unfused = run_layer(o);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(unfused[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  o.supported_ops = cpu()->kinds();
  o.supported_ops->remove(OpKind::Softmax);
  Graph g("g");
  g.set_outputs({g.softmax(g.input("x", f32({2, 3})))});
  const CompileResult decomposed = CompilePipeline(cpu(), o).compile_graph(std::move(g));
  CHECK(!op_histogram(decomposed.lir.graph).contains("softmax"));
  bool rewritten = false;
  for (const KindDispatch& k : decomposed.dispatch.summaries)
    rewritten = rewritten || (k.kind == OpKind::Softmax && k.path == DispatchPath::Rewritten && k.node_count == 1);
  CHECK(rewritten);
}

TEST_CASE("one error lists every node that a target cannot run") {
  Graph g("many");
  Expr x = g.input("x", f32({2, 3}));
  Expr s;
  {
    Graph::LabelScope first(g, "block");
    s = g.sum(g.exp(x), {1});
  }
  g.set_outputs({s, g.cumsum(x, 0), g.gather(x, g.input("rows", {{4}, DType::I32}))});
  CompileOptions o;
  o.supported_ops = OpSet{OpKind::Activation};
  const std::string text = error_text([&] { (void)CompilePipeline(cpu(), o).compile_graph(std::move(g)); });
  CHECK(contains(text, "3 nodes of 'many' cannot run on cpu"));
  for (const char* part : {"reduce_sum([2, 3] f32) has no kernel", "cumulative_sum([2, 3] f32) has no kernel",
                           "gather([2, 3] f32, [4] i32) has no kernel", "pipeline_test.cpp"})
    CHECK_MESSAGE(contains(text, part), part << " in " << text);
}

TEST_CASE("dim_binding fixes symbols before anything else") {
  Graph g = layer(false, Dim::symbol("rows"));
  g.symbol("rows", {1, 64, 1});
  CompileOptions o;
  o.dim_binding = {{"rows", 5}};
  const CompileResult bound = CompilePipeline(cpu(), o).compile_graph(g);
  CHECK(!bound.has_dynamic_dims());
  CHECK(bound.lir.graph.shape(bound.lir.graph.outputs()[0]) == f32({5, 3}));
  CompiledGraph f = Session().compile_with(g, o);
  f.set_param("w", std::vector<float>(12, 1));
  f.set_param("b", std::vector<float>(3, 0));
  CHECK(f.run({{"x", std::vector<float>(20, 1)}})[0].size() == 15);
  CHECK(contains(error_text([&] { (void)f.run({{"x", std::vector<float>(16, 1)}}); }), "'x'"));
  CHECK(f.inputs()[0].shape == f32({5, 4}));
  o.dim_binding = {{"rwos", 5}};
  CHECK(contains(error_text([&] { (void)Session().compile_with(g, o); }),
                 "no symbol 'rwos'\n  hint: did you mean 'rows'?"));
  CHECK(contains(error_text([&] { (void)bound.specialize({{"rows", 5}}); }), "no unbound symbol 'rows'"));
  o.dim_binding = {{"rows", 65}};
  CHECK(contains(error_text([&] { (void)CompilePipeline(cpu(), o).compile_graph(g); }),
                 "'rows' = 65 is outside [1, 64]"));
}

}  // namespace
}  // namespace rlx
