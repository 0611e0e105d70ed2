// Runs that are checked for NaN: the op, element, operands, line and iteration that errors name, on the cpu.
#include <doctest/doctest.h>

#include <limits>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/runtime/env.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/nan_runs.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::f32;

constexpr float kInfinite = std::numeric_limits<float>::infinity(),
                kNotANumber = std::numeric_limits<float>::quiet_NaN();

CompiledGraph checked(const Graph& g, NanCheck check = NanCheck::Nan) {
  CompileOptions options;
  options.nan_check = check;
  return Session().compile_with(Graph(g), options);
}

// log(x) + y of [2, 2]
Graph log_graph() {
  Graph g("logs");
  const Expr x = g.input("x", f32({2, 2})), y = g.input("y", f32({2, 2}));
  g.set_outputs({g.log(x) + y});
  return g;
}
NamedTensors log_inputs(float x, float y = 0) {
  return {{"x", Tensor::of<float>({2, 2}, {1, 2, x, 4})}, {"y", Tensor::of<float>({2, 2}, {0, y, 0, 0})}};
}

NanOrigin origin_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const NotFinite& e) {
    return e.origin();
  }
  return {};
}

}  // namespace

TEST_CASE("nan check: every op that makes NaN, in every place of a program") {
  CHECK(test::check_nan_runs(Session(), true) > 150);
  CHECK(test::check_nan_runs(Session::on_backend("reference"), false) > 12);
}

TEST_CASE("nan check: the message has op, values, element, output and line") {
  CompiledGraph f = checked(log_graph());
  CHECK(f.run_typed(log_inputs(3)).size() == 1);
  const std::string text = error_text([&] { (void)f.run_typed(log_inputs(-3)); });
  CHECK_MESSAGE(contains(text,
                         "graph 'logs': log(-3) gives nan in element [1, 0] of [2, 2] f32, which reaches output "
                         "'out0'"),
                text);
  CHECK_MESSAGE(contains(text, "built at "), text);
  CHECK_MESSAGE(contains(text, "nan_check_test.cpp:"), text);
  CHECK(f.run_typed(log_inputs(3)).size() == 1);  // the program still works
  const NanOrigin given = origin_of([&] { (void)f.run_typed(log_inputs(3, kNotANumber)); });
  CHECK(given.op == "input");
  CHECK(given.label == "y");
  CHECK(given.element == std::vector<std::int64_t>{0, 1});
  CHECK(given.operands.empty());
}

TEST_CASE("nan check: every kind of run") {
  CompiledGraph f = checked(log_graph());
  const std::vector<float> x{1, -2, 3, 4}, y(4, 0);
  std::vector<float> out(4);
  const std::vector<NamedInput> named{{"x", x}, {"y", y}};
  const NamedTensors tensors{{"x", Tensor::of<float>({2, 2}, x)}, {"y", Tensor::of<float>({2, 2}, y)}};
  const std::vector<TensorView> in{{x.data(), DType::F32, {}, 16}, {y.data(), DType::F32, {}, 16}};
  const std::vector<MutableTensorView> to{{out.data(), DType::F32, {}, 16}};
  const auto is_found = [&](const char* what, const std::function<void()>& run) {
    CAPTURE(std::string(what));
    const NanOrigin o = origin_of(run);
    CHECK(o.op == "log");
    CHECK(o.operands == std::vector<std::string>{"-2"});
  };
  is_found("run", [&] { (void)f.run(named); });
  is_found("run_typed", [&] { (void)f.run_typed(tensors); });
  is_found("run_device", [&] { (void)f.run_device(tensors); });
  is_found("run_device that takes its inputs", [&] { (void)f.run_device(NamedTensors(tensors)); });
  is_found("run_into", [&] { f.run_into(in, to); });
  is_found("run_slots", [&] { (void)f.run_slots(in); });
  is_found("run_raw", [&] { (void)f.run_raw(named); });
  is_found("commit_no_wait", [&] { f.commit_no_wait(named), (void)f.sync_pending(); });
  is_found("run_pipelined", [&] { (void)f.run_pipelined({named, named}); });
  is_found("profile", [&] { (void)f.profile(in); });
  f.set_input("x", x);
  f.set_input("y", y);
  is_found("sticky inputs", [&] { (void)f.run(); });
  CompiledGraph clone = f.clone();
  is_found("a clone", [&] { (void)clone.run(named); });
}

TEST_CASE("nan check: an input that is donated, and several results") {
  Graph g("donated");
  const Expr x = g.input("x", f32({2})), y = g.input("y", f32({2}));
  g.set_outputs({g.sqrt(x), g.log(y)});
  CompileOptions options;
  options.nan_check = NanCheck::Nan;
  options.donate = {{"x", 0}};
  CompiledGraph f = Session().compile_with(std::move(g), options);
  std::vector<float> values{4, -1}, minus{-1, -1}, second(2);
  const std::vector<TensorView> in{{values.data(), DType::F32, {}, 8}, {minus.data(), DType::F32, {}, 8}};
  const std::vector<MutableTensorView> out{{values.data(), DType::F32, {}, 8}, {second.data(), DType::F32, {}, 8}};
  const NanOrigin o = origin_of([&] { f.run_into(in, out); });
  CHECK(o.op == "sqrt");  // the first of two in the order of the program
  CHECK(o.element == std::vector<std::int64_t>{1});
  CHECK(o.operands == std::vector<std::string>{"-1"});
}

TEST_CASE("nan check: infinities on request, and where they are no fault") {
  Graph g("masked");
  const Expr s = g.input("s", f32({2, 3}));
  g.set_outputs({g.softmax(s + g.constant(Tensor::of<float>({3}, {0, 0, -kInfinite})), 1), g.exp(s)});
  CompiledGraph nan = checked(g), inf = checked(g, NanCheck::NanOrInf);
  const NamedTensors fine{{"s", Tensor::full(f32({2, 3}), 1)}};
  const NamedTensors large{{"s", Tensor::of<float>({2, 3}, {1, 1, 1, 1, 200, 1})}};
  CHECK(nan.run_typed(large)[1].at(4) == kInfinite);
  CHECK(inf.run_typed(fine).size() == 2);  // a mask of -inf reaches no result
  const NanOrigin o = origin_of([&] { (void)inf.run_typed(large); });
  CHECK(o.op == "exp");
  CHECK(o.value == "inf");
  CHECK(o.element == std::vector<std::int64_t>{1, 1});
  CHECK(o.operands == std::vector<std::string>{"200"});
}

TEST_CASE("nan check: ops that are not elementwise, dtypes, derivatives") {
  Graph g("rows");
  const Expr x = g.input("x", f32({2, 3})), w = g.input("w", f32({3, 2}));
  g.set_outputs({g.matmul(x, w) * 2.0});
  CompiledGraph f = checked(g);
  const NamedTensors infinite{{"x", Tensor::of<float>({2, 3}, {1, 2, 3, 1, kInfinite, 1})},
                              {"w", Tensor::zeros(f32({3, 2}))}};
  const std::string text = error_text([&] { (void)f.run_typed(infinite); });
  CHECK_MESSAGE(contains(text,
                         "matmul gives nan in element [1, 0] of [2, 2] f32, from operands [2, 3] f32 from 1 to "
                         "inf; [3, 2] f32 from 0 to 0"),
                text);
  for (DType t : {DType::F16, DType::BF16, DType::F64}) {
    Graph d("dtypes");
    d.set_outputs({d.cast(d.log(d.input("x", Shape({3}, t)) - 2.0), DType::F32)});
    CompiledGraph h = checked(d);
    const NanOrigin o = origin_of([&] { (void)h.run_typed({{"x", Tensor::full(Shape({3}, t), 1)}}); });
    CHECK(o.op == "log");
    CHECK(o.operands == std::vector<std::string>{"-1"});
  }
  Graph c("complex");
  const Expr z = c.input("z", Shape({2}, DType::C64));
  c.set_outputs({z / z});
  CompiledGraph h = checked(c);
  const float parts[] = {1, 2, 0, 0};
  const NanOrigin o = origin_of([&] { (void)h.run_typed({{"z", Tensor::copy_of(parts, Shape({2}, DType::C64))}}); });
  CHECK(o.op == "div");
  CHECK(o.element == std::vector<std::int64_t>{1});
  CHECK(o.operands == std::vector<std::string>{"0+0i", "0+0i"});
  // The classic: the derivative of the branch that where does not select.
  Graph s("safe");
  const Expr v = s.input("x", f32({2}));
  s.set_outputs({s.sum(s.where(s.gt(v, 0.0), s.sqrt(v), 0.0), {0})});
  CompiledGraph grad = checked(vjp(s, {"x"}).graph);
  NamedTensors values{{"x", Tensor::of<float>({2}, {0, 4})}};
  for (const IoInfo& in : grad.inputs())
    if (in.name != "x") values.emplace(in.name, Tensor::full(in.shape, 1));
  const std::string derivative = error_text([&] { (void)grad.run_typed(values); });
  CHECK_MESSAGE(contains(derivative, "gives nan in element [0] of [2] f32"), derivative);
  CHECK_MESSAGE(contains(derivative, "nan_check_test.cpp:"), derivative);
}

TEST_CASE("nan check: a scope replaces the option in the runs of its thread, and RLX_NAN_CHECK is the default") {
  Graph g = log_graph();
  CompiledGraph f = Session().compile(Graph(g));
  const NamedTensors bad = log_inputs(-1);
  CHECK(f.run_typed(bad).size() == 1);
  {
    const NanCheckScope on(NanCheck::Nan);
    CHECK(NanCheckScope::any_open());
    CHECK(origin_of([&] { (void)f.run_typed(bad); }).op == "log");
    const NanCheckScope off(NanCheck::Off);
    CHECK(NanCheckScope::current() == NanCheck::Off);
    CHECK(checked(g).run_typed(bad).size() == 1);
  }
  CHECK(!NanCheckScope::current());
  CHECK(f.run_typed(bad).size() == 1);
  const RuntimeOverrides set("RLX_NAN_CHECK", "1");
  CompiledGraph by_default = Session().compile(Graph(g));
  CHECK(origin_of([&] { (void)by_default.run_typed(bad); }).op == "log");
  CHECK(checked(g, NanCheck::Off).run_typed(bad).size() == 1);
  const RuntimeOverrides wrong("RLX_NAN_CHECK", "maybe");
  const std::string text = error_text([&] { (void)Session().compile(Graph(g)); });
  CHECK_MESSAGE(contains(text, "RLX_NAN_CHECK = 'maybe' is not a check for NaN"), text);
  CHECK(parse_nan_check("inf", "x") == NanCheck::NanOrInf);
  CHECK(parse_nan_check("0", "x") == NanCheck::Off);
}

TEST_CASE("nan check: what cannot be searched is told with its reason") {
  Graph g = log_graph();
  const CompiledGraph f = Session().compile(Graph(g));
  CompileOptions options;
  options.nan_check = NanCheck::Nan;
  CompiledGraph planned = Session().compile_module(GraphModule(LirModule(f.compile_result().lir)), options);
  const std::string text = error_text([&] { (void)planned.run_typed(log_inputs(-3)); });
  CHECK_MESSAGE(contains(text, "output 'out0' holds nan in element [1, 0] of [2, 2] f32; the op is unknown"), text);
  CHECK(origin_of([&] { (void)planned.run_typed(log_inputs(-3)); }).op.empty());
}

}  // namespace rlx
