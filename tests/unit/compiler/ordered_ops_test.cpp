// Ordered ops run as often as the graph says and in its order, whatever passes, transforms, bodies and threads do with
// other ops. A registered op that records its runs stands for collectives and callbacks.
#include <doctest/doctest.h>

#include <mutex>
#include <thread>

#include "rlx/compiler/memory_plan.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/collectives.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/hvp.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/custom_ops.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

struct Notes {
  std::mutex mutex;
  std::vector<std::int64_t> ran;
  std::vector<std::thread::id> threads;
};
Notes& notes() {
  static Notes n;
  return n;
}

// 2 x. The op records its number; its derivative records the number + 100.
struct NoteRules {
  static std::int64_t number(const OpBox& op) { return std::get<0>(custom_attrs<std::int64_t>(op)); }
  static void reference(const RefArgs& a) {
    std::lock_guard lock(notes().mutex);
    notes().ran.push_back(number(a.box));
    notes().threads.push_back(std::this_thread::get_id());
    for (std::int64_t i = 0; i < a.in(0).num_elements(); ++i) a.out().set(i, 2 * a.in(0).at(i));
  }
  static OpBox moved(const OpBox& op) { return custom_op("test.note", number(op) + 100); }
  static void vjp(VjpContext& c) { c.accumulate(0, c.graph().add(moved(c.box()), {c.cotangent()})); }
  static void jvp(JvpContext& c) { c.set_tangent(c.graph().add(moved(c.box()), {c.tangent(0)})); }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
};

void register_note() {
  static const bool once = [] {
    OpDef def = plain_record("test.note");
    def.what = "2 x, and others see it run.";
    def.trait = OpTrait::Ordered;
    def.vjp = NoteRules::vjp;
    def.jvp = NoteRules::jvp;
    def.batch = NoteRules::batch;
    def.reference = NoteRules::reference;
    register_op(def);
    return true;
  }();
  (void)once;
}

Expr note(Graph& g, Expr x, std::int64_t number) { return g.add(custom_op("test.note", number), {x}); }

using Numbers = std::vector<std::int64_t>;

Numbers taken() {
  std::lock_guard lock(notes().mutex);
  notes().threads.clear();
  return std::exchange(notes().ran, {});
}

// The recorded runs of the evaluator, and of compiled programs on one and three threads.
void expect_runs(const Graph& g, const NamedTensors& values, const Numbers& expected) {
  (void)taken();
  const std::vector<Tensor> exact = evaluate(g, values);
  CHECK(taken() == expected);
  for (int threads : {1, 3}) {
    CAPTURE(threads);
    CompiledGraph f = Session().with_threads(threads).compile(Graph(g));
    for (int run = 0; run < 2; ++run) {
      const std::vector<Tensor> got = f.run_typed(values);
      const std::vector<std::thread::id> by = notes().threads;
      for (const std::thread::id& id : by) CHECK(id == std::this_thread::get_id());
      CHECK(taken() == expected);
      for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], exact[i], 1e-5);
    }
  }
}

const Shape kFour({4}, DType::F32);
Tensor row() { return Tensor::of<float>({4}, std::vector<float>{1, 2, 3, 4}); }
Tensor flag(bool on) { return Tensor::scalar(DType::Bool, on ? 1 : 0); }

}  // namespace

TEST_CASE("ordered ops stay, unread and equal ones too, in their order") {
  register_note();
  Graph g("g");
  const Expr x = g.input("x", kFour), c = g.constant(row());
  note(g, x, 1);
  const Expr y = g.exp(note(g, c, 2));  // of a constant: not folded
  note(g, x, 1);                        // equal to the first: not merged
  note(g, g.sin(x), 3);
  g.cos(x);  // dead
  const Expr z = note(g, x, 4) + y;
  g.set_outputs({z, z * 2});
  CHECK(g.ordered().size() == 5);
  CHECK(roots(g).size() == 7);
  CHECK_FALSE(all_live(g));  // the cosine is dead
  expect_runs(g, {{"x", row()}}, {1, 2, 1, 3, 4});
}

TEST_CASE("ordered ops on weights run in every run") {
  register_note();
  Graph g("g");
  const Expr x = g.input("x", kFour), w = g.param("w", kFour);
  g.set_outputs({x * note(g, w * 2, 7)});
  CompiledGraph f = Session().compile(std::move(g));
  f.set_param("w", row());
  (void)taken();
  (void)f.run_typed({{"x", row()}});
  (void)f.run_typed({{"x", row()}});
  CHECK(taken() == Numbers{7, 7});
}

TEST_CASE("an op whose body holds an ordered one is ordered") {
  register_note();
  Graph g("g");
  const Expr x = g.input("x", kFour), p = g.input("p", Shape({}, DType::Bool)),
             rows = g.input("rows", Shape({3, 4}, DType::F32));
  const ExprList unread = g.cond(
      p, [&](Graph& b) { return ExprList{note(b, b.sin(x), 1)}; }, [&](Graph& b) { return ExprList{b.cos(x)}; });
  g.call("noted", x, [](Graph& b, const ExprList& in) { return ExprList{note(b, in[0], 2)}; });
  const LoopResult loop = g.scan(x, rows, [](Graph& b, const ExprList& carry, const ExprList& in) {
    note(b, in[0], 3);
    return LoopStep{{carry[0] + in[0]}, {}};
  });
  g.while_loop(
      x, [](Graph& b, const ExprList& in) { return b.lt(b.sum(in[0]), 100.0); },
      [](Graph& b, const ExprList& in) {
        return LoopStep{{note(b, in[0], 4)}, {}};
      });
  g.set_outputs({loop.carries[0]});
  CHECK(g.ordered().size() == 4);
  const Tensor rows_value = Tensor::of<float>({3, 4}, std::vector<float>(12, 0.5F));
  expect_runs(g, {{"x", row()}, {"p", flag(true)}, {"rows", rows_value}}, {1, 2, 3, 3, 3, 4, 4, 4, 4});
  expect_runs(g, {{"x", row()}, {"p", flag(false)}, {"rows", rows_value}}, {2, 3, 3, 3, 4, 4, 4, 4});
}

TEST_CASE("transforms run an ordered op once, and its derivative behind it") {
  register_note();
  Graph g("g");
  const Expr x = g.input("x", kFour);
  const Expr y = note(g, g.sin(note(g, x, 1)), 2);
  g.set_outputs({g.sum(y * y)});
  const NamedTensors values{{"x", row()}};
  expect_runs(value_and_grad(g, {"x"}).graph, values, {1, 2, 102, 101});
  NamedTensors both = values;
  both.emplace("tangent_x", row());
  expect_runs(jvp(g, {"x"}).graph, both, {1, 2, 101, 102});
  expect_runs(vmap(g, {{"x", 0}}, Dim(2)).graph, {{"x", Tensor::of<float>({2, 4}, std::vector<float>(8, 1.0F))}},
              {1, 2});
  CHECK(error_text([&] { (void)jacfwd(g, {"x"}); }).find("would run several times") != std::string::npos);
}

TEST_CASE("derivatives of bodies run an ordered op once a trip, checkpointed or not") {
  register_note();
  for (bool checkpoint : {false, true}) {
    CAPTURE(checkpoint);
    Graph g("g");
    const Expr x = g.input("x", kFour), rows = g.input("rows", Shape({2, 4}, DType::F32));
    const LoopResult loop = g.scan(x, rows,
                                   [](Graph& b, const ExprList& carry, const ExprList& in) {
                                     return LoopStep{{b.sin(note(b, carry[0], 1)) * in[0]}, {}};
                                   },
                                   {.checkpoint = checkpoint});
    g.set_outputs({g.sum(loop.carries[0])});
    const NamedTensors values{{"x", row()}, {"rows", Tensor::of<float>({2, 4}, std::vector<float>(8, 0.5F))}};
    expect_runs(value_and_grad(g, {"x", "rows"}).graph, values, {1, 1, 101, 101});
    NamedTensors both = values;
    both.emplace("tangent_x", row());
    expect_runs(jvp(g, {"x"}).graph, both, {1, 101, 1, 101});
    CHECK(error_text([&] { (void)linearize(g, {"x"}); }).find("would run in both parts") != std::string::npos);
  }
  Graph g("g");
  const Expr x = g.input("x", kFour);
  g.set_outputs({g.sum(
      g.checkpoint(x, [](Graph& b, const ExprList& in) { return ExprList{b.sin(note(b, b.exp(in[0]), 1))}; })[0])});
  expect_runs(value_and_grad(g, {"x"}).graph, {{"x", row()}}, {1, 101});
}

TEST_CASE("a branch with an ordered op is not run for every example") {
  register_note();
  Graph g("g");
  const Expr x = g.input("x", kFour), p = g.input("p", Shape({}, DType::Bool));
  g.set_outputs({g.cond(
      p, [&](Graph& b) { return ExprList{note(b, b.sin(x), 1)}; }, [&](Graph& b) { return ExprList{b.cos(x)}; })[0]});
  CHECK(error_text([&] { (void)vmap(g, {{"p", 0}}, Dim(2)); }).find("a branch has an ordered op") != std::string::npos);
  CHECK(vmap(g, {{"x", 0}}, Dim(2)).graph.ordered().size() == 1);
}

TEST_CASE("the plan orders ordered ops, and its checker asks for that") {
  register_note();
  Graph g("g");
  const Expr x = g.input("x", kFour), y = g.input("y", kFour);
  const Expr a = note(g, x, 1), b = note(g, y, 2);  // no data dependence between them
  g.set_outputs({a, b});
  const auto target = Session().with_threads(2).target();
  LirBufferPlan plan = plan_memory(g, *target, {});
  REQUIRE(plan.schedule.size() == 2);
  CHECK(plan.schedule[1].predecessors == std::vector<std::int32_t>{0});
  CHECK(check_plan(g, plan).empty());
  plan.schedule[1].predecessors.clear();
  REQUIRE(check_plan(g, plan).size() == 1);
  CHECK(check_plan(g, plan)[0].find("is an ordered op, but no edge makes it run after") != std::string::npos);
}

TEST_CASE("collectives of one rank are what they are given") {
  Graph g("g");
  const Expr x = g.input("x", Shape({2, 4}, DType::F32)), n = g.input("n", Shape({3}, DType::I32));
  const ExprList both = g.all_reduce_each(ExprList{x, n}, ReduceKind::Sum, "data", 1);
  const Expr gathered = g.all_gather(x * 2, 1, "data", 1),
             scattered = g.reduce_scatter(x, ReduceKind::Mean, 0, "data", 1),
             swapped = g.all_to_all(g.exp(x), 0, 1, "data,model", 1), here = g.permute(x, {{0, 0}}, "data", 1),
             nowhere = g.permute(x, {}, "data", 1), rank = g.axis_index("model", 1);
  g.set_outputs({both[0], both[1], gathered, scattered, swapped, here, nowhere, rank});
  const NamedTensors values{{"x", Tensor::of<float>({2, 4}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8})},
                            {"n", Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{1, 2, 3})}};
  const std::vector<Tensor> exact = evaluate(g, values);
  CompileOptions options;
  options.mesh = Mesh{{{"data", 1}, {"model", 1}}};
  CHECK(options.mesh.ranks() == 1);
  CHECK(Mesh{{{"data", 2}, {"model", 3}}}.ranks() == 6);
  for (const CompileOptions& o : {CompileOptions{}, options}) {
    CompiledGraph f = Session().compile_with(Graph(g), o);
    const std::vector<Tensor> got = f.run_typed(values);
    for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], exact[i], 1e-6);
  }
  CHECK(exact[6].at(3) == 0);
  CHECK(exact[7].at_i64(0) == 0);
}

TEST_CASE("collectives of several ranks: shapes are known, running them is refused with the way out") {
  Graph g("g");
  const Expr x = g.input("x", Shape({2, 4}, DType::F32));
  g.set_outputs({g.all_gather(x, 0, "data", 2)});
  const std::string none = error_text([&] { (void)Session().compile(Graph(g)); });
  CHECK(none.find("compiled without a mesh") != std::string::npos);
  CompileOptions options;
  options.mesh = Mesh{{{"data", 2}}};
  const std::string cpu = error_text([&] { (void)Session().compile_with(Graph(g), options); });
  CHECK(cpu.find("has no communicator") != std::string::npos);
  CHECK(cpu.find("all_gather") != std::string::npos);
  CHECK(error_text([&] {
          (void)evaluate(g, {{"x", Tensor::zeros(Shape({2, 4}, DType::F32))}});
        }).find("the reference rules run one") != std::string::npos);
}

TEST_CASE("the derivative of a collective is the collective that is its adjoint") {
  const auto derived = [](const std::function<Expr(Graph&, Expr)>& f) {
    Graph g("g");
    const Expr x = g.input("x", Shape({4, 4}, DType::F32));
    g.set_outputs({g.sum(f(g, x))});
    const Graph d = grad(g, {"x"}).graph;
    std::vector<OpBox> out;
    for (NodeId id : d.ordered()) out.push_back(d.node(id).op);
    return out;
  };
  const auto gather = derived([](Graph& g, Expr x) { return g.all_gather(x, 1, "d", 2); });
  REQUIRE(gather.size() == 2);
  CHECK(gather[1].as<ops::ReduceScatter>().axis == 1);
  CHECK(gather[1].as<ops::ReduceScatter>().fn == ReduceKind::Sum);
  CHECK(gather[1].as<ops::ReduceScatter>().ranks == 2);
  CHECK(derived([](Graph& g, Expr x) { return g.reduce_scatter(x, ReduceKind::Sum, 0, "d", 2); })[1]
            .is<ops::AllGather>());
  CHECK(derived([](Graph& g, Expr x) { return g.all_reduce(x, ReduceKind::Sum, "d", 2); })[1].is<ops::AllReduce>());
  const auto to_all = derived([](Graph& g, Expr x) { return g.all_to_all(x, 0, 1, "d", 2); });
  CHECK(to_all[1].as<ops::AllToAll>().split == 1);
  CHECK(to_all[1].as<ops::AllToAll>().concat == 0);
  const auto permuted = derived([](Graph& g, Expr x) { return g.permute(x, {{0, 1}}, "d", 2); });
  CHECK(permuted[1].as<ops::Permute>().pairs == std::vector<std::int64_t>{1, 0});
}

}  // namespace rlx::test
