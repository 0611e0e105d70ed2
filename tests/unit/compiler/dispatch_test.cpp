// The dispatch report: the path of each op to the device (native, common-ir, rewritten, host-fallback, unsupported), by
// policy, by kind, by environment variable.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "rlx/compiler/legalize.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/runtime/env.h"
#include "rlx/runtime/session.h"
#include "tests/support/custom_ops.h"
#include "tests/support/error_text.h"
#include "tests/support/toy_target.h"

using namespace rlx;
using namespace rlx::test;

namespace {

// softmax(clamp(x)) + sin(x)
Graph probe() {
  Graph g("probe");
  Expr x = g.input("x", Shape({2, 3}, DType::F32));
  g.set_outputs({g.add(g.softmax(g.clamp(x, -1, 1), -1), g.sin(x))});
  return g;
}

// The path of a kind of op; "" if the kind does not occur.
std::string paths(const KernelDispatchReport& report, std::string_view name) {
  std::string out;
  for (const KindDispatch& k : report.summaries)
    if (k.name == name) out += concat_text(out.empty() ? "" : " ", k.node_count, " ", dispatch_path_name(k.path));
  return out;
}

OpSet all_but(std::initializer_list<OpKind> kinds) {
  OpSet set = OpSet::everything();
  for (OpKind k : kinds) set.remove(k);
  return set;
}

}  // namespace

TEST_CASE("dispatch: a kernel first, the decomposition where there is none, an error where neither is") {
  KernelDispatchReport report;
  const Graph g = rewrite_for_backend(probe(), all_but({OpKind::Softmax, OpKind::Activation}), "toy", report);
  CHECK(report.policy == KernelDispatchPolicy::PreferNative);
  CHECK(paths(report, "clamp") == "1 native");
  CHECK(paths(report, "softmax") == "1 rewritten");
  CHECK(paths(report, "binary") == "3 native");  // the add, and two of the decomposition of softmax
  CHECK_FALSE(report.compile_ready());
  CHECK(contains(paths(report, "activation"), "unsupported"));
  CHECK(contains(report.text(), "dispatch on toy ("));
  CHECK(contains(report.text(), "prefer_native"));
  CHECK(contains(report.text(), "  softmax: 1 rewritten: the target does not list this kind of op as supported\n"));
}

TEST_CASE("dispatch: force_common decomposes what has a kernel, and gives the same values") {
  KernelDispatchConfig common;
  common.policy = KernelDispatchPolicy::ForceCommon;
  KernelDispatchReport report;
  const Graph g = rewrite_for_backend(probe(), OpSet::everything(), "toy", report, common);
  CHECK(report.compile_ready());
  CHECK(paths(report, "softmax") == "1 common-ir");
  CHECK(paths(report, "clamp") == "1 common-ir");
  CHECK(paths(report, "activation") == "2 native");  // sin, and the exponential of softmax
  for (const Node& n : g.nodes()) CHECK(n.kind() != OpKind::Softmax);

  CompileOptions options;
  options.kernel_dispatch = common;
  const auto native = Session().compile(probe()).run({{"x", {1, 2, 3, -1, 0, 0.5f}}});
  const auto portable = Session().compile_with(probe(), options).run({{"x", {1, 2, 3, -1, 0, 0.5f}}});
  for (std::size_t i = 0; i < 6; ++i) CHECK(portable[0][i] == doctest::Approx(native[0][i]).epsilon(1e-5));
}

TEST_CASE("dispatch: kinds have their own policy, native wins over common") {
  KernelDispatchConfig config;
  config.force_common_kinds = {OpKind::Softmax, OpKind::Clamp};
  config.force_native_kinds = {OpKind::Clamp};
  KernelDispatchReport report;
  rewrite_for_backend(probe(), OpSet::everything(), "toy", report, config);
  CHECK(paths(report, "softmax") == "1 common-ir");
  CHECK(paths(report, "clamp") == "1 native");
}

TEST_CASE("dispatch: force_native refuses to decompose, naming op and backend") {
  KernelDispatchConfig native;
  native.policy = KernelDispatchPolicy::ForceNative;
  const std::string text =
      error_text([&] { legalize_or_rewrite_for_backend(probe(), all_but({OpKind::Softmax}), "toy", nullptr, native); });
  CHECK(contains(text, "cannot run on toy"));
  CHECK(contains(text, "softmax([2, 3] f32) has no kernel"));
  CHECK(contains(text, "force_native forbids"));
}

TEST_CASE("dispatch: the report is of the program that runs, after the passes that follow legalisation") {
  // Decompositions with common subexpressions, which are merged after legalization.
  custom_ops();
  Graph g("shared");
  Expr x = g.input("x", Shape({2, 3}, DType::F32));
  Expr a = g.softmax(x, -1), b = g.softmax(g.clamp(x, -1, 1), -1);
  Expr pair = g.add(custom_op("test.sum_and_difference"), {a, b});
  Expr again = g.add(custom_op("test.sum_and_difference"), {b, a});
  g.set_outputs({pair.result(0) * again.result(1)});
  CompileOptions options;
  options.keep_stages = true;
  options.kernel_dispatch.emplace().policy = KernelDispatchPolicy::ForceCommon;
  const CompileResult r = CompilePipeline(Session().target(), options).compile_graph(g);
  std::vector<const Graph*> legal;
  for (const PipelineStage& s : r.stages)
    if (s.name == "legalize") legal.push_back(&s.graph);
  REQUIRE(legal.size() == 2);
  CHECK(legal[1]->num_nodes() < legal[0]->num_nodes());  // else the test checks nothing
  std::map<std::string, std::size_t> runs, reported;
  for (const Node& n : legal[1]->nodes())
    if (!needs_no_kernel(n)) ++runs[std::string(op_def(n.op).name)];
  for (const KindDispatch& k : r.dispatch.summaries)
    if (k.path == DispatchPath::Native || k.path == DispatchPath::HostFallback) reported[k.name] += k.node_count;
  CHECK(reported == runs);
  CHECK(paths(r.dispatch, "softmax") == "2 common-ir");
  CHECK(paths(r.dispatch, "test.sum_and_difference") == "2 common-ir");
  CHECK(r.dispatch.compile_ready());
}

TEST_CASE("dispatch: bodies that a decomposition makes are made legal too") {
  Graph g("groups");  // grouped_dot decomposes into a scan whose body is a matmul
  g.set_outputs({g.grouped_dot(g.input("x", Shape({5, 3}, DType::F32)), g.input("w", Shape({4, 3, 2}, DType::F32)),
                               g.input("ids", Shape({5}, DType::I32)))});
  const OpSet claims = all_but({OpKind::GroupedDot, OpKind::MatMul});
  KernelDispatchReport report;
  const Graph legal = rewrite_for_backend(g, claims, "toy", report);
  CHECK(paths(report, "scan") == "1 native");
  CHECK(paths(report, "matmul") == "1 rewritten");
  CHECK(paths(report, "dot_general") == "1 native");
  CHECK_FALSE(any_body(legal, [&](const Graph& body) { return !legalize_for_backend(body, claims).empty(); }));
}

TEST_CASE("dispatch: what a body held is counted once when its holder is written out") {
  Graph g("call");
  g.set_outputs(g.call("f", {g.input("x", Shape({2, 3}, DType::F32))},
                       [](Graph& body, const ExprList& x) { return ExprList{body.sin(body.softmax(x[0], -1))}; }));
  KernelDispatchReport report;
  rewrite_for_backend(g, all_but({OpKind::Call, OpKind::Softmax}), "toy", report);
  CHECK(paths(report, "call") == "1 rewritten");
  CHECK(paths(report, "softmax") == "1 rewritten");
  CHECK(paths(report, "activation") == "2 native");  // sin, and the exponential of softmax
}

TEST_CASE("dispatch: custom ops are reported by their own names") {
  custom_ops();
  Graph g("custom");
  Expr x = g.input("x", Shape({3}, DType::F32));
  Expr pair = g.add(custom_op("test.sum_and_difference"), {x, g.add(custom_op("test.scaled_tanh", 1.0), {x})});
  g.set_outputs({pair.result(0), pair.result(1)});
  CompilePipeline pipeline(Session().target());
  const KernelDispatchReport report = pipeline.compile_graph(g).dispatch;
  CHECK(paths(report, "test.scaled_tanh") == "1 native");
  CHECK(paths(report, "test.sum_and_difference") == "1 rewritten");
  CHECK(contains(report.text(), "  test.sum_and_difference: 1 rewritten: no kernel was registered for it\n"));
}

// scaled_tanh(bare(x) * w) + bare(transposed x) in two dtypes. bare reads an input, a view and computed values, and
// writes outputs.
Graph with_bare() {
  custom_ops();
  Graph g("bare");
  Expr x = g.input("x", Shape({2, 2}, DType::F32)), w = g.param("w", Shape({2, 2}, DType::F32));
  Expr y = g.add(custom_op("test.scaled_tanh", 1.0),
                 {g.mul(g.add(custom_op("test.bare"), {x}), g.add(custom_op("test.bare"), {w}))});
  Expr z = g.add(custom_op("test.bare"), {g.transpose(x, {1, 0})});
  g.set_outputs({g.add(y, z), g.add(custom_op("test.bare"), {g.cast(x, DType::I64)}), z});
  return g;
}

TEST_CASE("dispatch: what has neither kernel nor decomposition runs by its reference rule on the host") {
  const KernelDispatchReport report = CompilePipeline(Session().target()).compile_graph(with_bare()).dispatch;
  CHECK(report.compile_ready());
  CHECK(paths(report, "test.bare") == "4 host-fallback");
  CHECK(contains(report.text(), "  test.bare: 4 host-fallback: no kernel was registered for it\n"));
  CHECK(paths(report, "test.scaled_tanh") == "1 native");
  for (int threads : {1, 2}) {
    CompiledGraph f = Session().with_threads(threads).compile(with_bare());
    f.set_param("w", {0.5f, 1, 0, -1});
    for (float scale : {1.f, 2.f}) {
      const auto x = Tensor::of<float>({2, 2}, std::vector<float>{1 * scale, 2 * scale, 3 * scale, 4 * scale});
      const auto out = f.run_typed({{"x", x}});
      CHECK(out[0].at(1) == doctest::Approx(std::tanh(2 * scale) + 3 * scale));
      CHECK(out[0].at(3) == doctest::Approx(std::tanh(-4 * scale) + 4 * scale));
      CHECK(out[1].at_i64(2) == static_cast<std::int64_t>(3 * scale));
      CHECK(out[2].at(1) == 3 * scale);
    }
  }
}

TEST_CASE("dispatch: one error lists every offender, each with its line and its way out") {
  custom_ops();
  Graph g = probe();
  Expr y = g.expr(g.outputs()[0]);
  g.set_outputs({g.add(custom_op("test.bare"), {y}), g.cos(y)});
  KernelDispatchConfig no_host;
  no_host.host_fallback = false;
  test::ToyTarget claims;
  claims.takes = all_but({OpKind::Custom, OpKind::Activation});
  claims.host = [](const Graph&, NodeId) { return true; };
  KernelDispatchReport report;
  const std::string text = error_text([&] { legalize_or_rewrite_for_backend(g, claims, "toy", &report, no_host); });
  CHECK(report.unsupported.size() == 3);
  CHECK(paths(report, "test.bare") == "1 unsupported");
  CHECK(paths(report, "activation") == "2 unsupported");
  CHECK_MESSAGE(contains(text, "3 nodes of 'probe' cannot run on toy"), text);
  for (const char* part : {"sin([2, 3] f32) has no kernel on toy", "cos([2, 3] f32) has no kernel on toy",
                           "test.bare([2, 3] f32) has no kernel on toy", "dispatch_test.cpp", "it is kept opaque",
                           "host_fallback = false"})
    CHECK_MESSAGE(contains(text, part), text);
  // The same graph with host fallback, and with a policy that forbids it.
  KernelDispatchReport helped;
  rewrite_for_backend(g, claims, "toy", helped);
  CHECK(helped.compile_ready());
  CHECK(paths(helped, "activation") == "2 host-fallback");
  KernelDispatchConfig native;
  native.policy = KernelDispatchPolicy::ForceNative;
  CHECK(contains(error_text([&] { legalize_or_rewrite_for_backend(g, claims, "toy", nullptr, native); }),
                 "force_native forbids"));
}

TEST_CASE("dispatch: RLX_KERNEL_DISPATCH is the default of compiles, their own option wins") {
  const auto refused = [](CompileOptions options) {
    Graph g("probe");
    custom_ops();
    Expr x = g.input("x", Shape({3}, DType::F32));
    Expr pair = g.add(custom_op("test.sum_and_difference"), {x, x});
    g.set_outputs({pair.result(0)});
    return error_text([&] { Session().compile_with(std::move(g), std::move(options)).run({{"x", {1, 2, 3}}}); });
  };
  CHECK(refused({}).empty());
  {
    RuntimeOverrides env("RLX_KERNEL_DISPATCH", "native");
    CHECK(contains(refused({}), "force_native forbids"));
    CompileOptions own;
    own.kernel_dispatch = KernelDispatchConfig{};
    CHECK(refused(own).empty());
  }
  {
    RuntimeOverrides env("RLX_KERNEL_DISPATCH", "fast");
    CHECK(contains(refused({}), "RLX_KERNEL_DISPATCH = 'fast' is not a dispatch policy"));
    CHECK(contains(refused({}), "native, common or prefer_native"));
  }
  CHECK(kernel_dispatch_policy_name(*parse_kernel_dispatch_policy("common")) == "force_common");
  CHECK_FALSE(parse_kernel_dispatch_policy("").has_value());
}
