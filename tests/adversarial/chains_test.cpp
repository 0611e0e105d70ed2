// Chains of updates and ordered ops on the adversarial test device, which counts copies and runs steps in any order
// that the plan's edges allow.
#include <doctest/doctest.h>

#include <mutex>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/runtime/session.h"
#include "tests/adversarial/adversarial_device.h"
#include "tests/support/custom_ops.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::AdversarialScope;

Tensor starts(std::int64_t row) { return Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{row, 0}); }

struct Log {
  std::mutex mutex;
  std::vector<std::int64_t> ran;
};
Log& log_of_runs() {
  static Log log;
  return log;
}

void register_note() {
  static const bool once = [] {
    OpDef def = test::plain_record("test.adversarial_note");
    def.what = "x, and others see it run.";
    def.trait = OpTrait::Ordered;
    def.reference = +[](const RefArgs& a) {
      std::lock_guard lock(log_of_runs().mutex);
      log_of_runs().ran.push_back(std::get<0>(custom_attrs<std::int64_t>(a.box)));
      a.out() = a.in(0);
    };
    register_op(def);
    return true;
  }();
  (void)once;
}

}  // namespace

TEST_CASE("adversarial: a chain of updates copies nothing") {
  AdversarialScope adversary;
  Graph g("chain");
  const Expr x = g.input("x", Shape({1, 64}, DType::F32));
  Expr s = g.state("cache", Tensor::zeros(Shape({32, 64}, DType::F32)));
  for (std::int64_t row = 0; row < 6; ++row)
    s = g.dynamic_update_slice(g.reshape(g.reshape(s, {32 * 64}), {32, 64}), x * static_cast<double>(row),
                               g.constant(starts(row)));
  g.set_state("cache", s);
  g.set_outputs({g.sum(x)});
  CompileOptions options;
  options.must_alias = true;
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
  const NamedTensors values{{"x", Tensor::full(Shape({1, 64}, DType::F32), 2)}};
  (void)f.run_typed(values);
  const auto before = adversary->counts();
  (void)f.run_typed(values);
  CHECK(adversary->counts().copies == before.copies);
  const Tensor cache = f.read_state("cache");
  for (std::int64_t row = 0; row < 6; ++row) CHECK(cache.at(row * 64 + 5) == 2.0 * static_cast<double>(row));

  // With a later reader the first update is a copy, as the counter shows.
  Graph late("late");
  const Expr y = late.input("x", Shape({1, 64}, DType::F32)),
             t = late.state("cache", Tensor::zeros(Shape({32, 64}, DType::F32)));
  const Expr one = late.dynamic_update_slice(t, y, late.constant(starts(0)));
  late.set_state("cache", late.dynamic_update_slice(one, y, late.constant(starts(1))));
  late.set_outputs({late.sum(one), late.sum(t)});
  CompiledGraph copies = Session(AdversarialScope::kDevice).compile(std::move(late));
  const LirBufferPlan& plan = copies.compile_result().lir.plan;
  const auto then = adversary->counts();
  (void)copies.run_typed(values);
  CHECK(adversary->counts().copies - then.copies == plan.state_copies.size() + plan.update_copies.size());
  CHECK(adversary->counts().copies > then.copies);
}

TEST_CASE("adversarial: ordered ops keep their order where nothing else ties them") {
  register_note();
  AdversarialScope adversary;
  Graph g("ordered");
  std::vector<Expr> outputs;
  for (std::int64_t i = 0; i < 12; ++i) {
    const Expr x = g.input(concat_text("x", i), Shape({4}, DType::F32));
    outputs.push_back(g.exp(g.add(custom_op("test.adversarial_note", i), {g.sin(x)})));
  }
  g.set_outputs(outputs);
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(Graph(g));
  NamedTensors values;
  for (int i = 0; i < 12; ++i) values.emplace(concat_text("x", i), Tensor::full(Shape({4}, DType::F32), 1));
  std::vector<std::int64_t> in_order;
  for (std::int64_t i = 0; i < 12; ++i) in_order.push_back(i);
  const auto before = adversary->counts();
  for (int run = 0; run < 10; ++run) {
    log_of_runs().ran.clear();
    (void)f.run_typed(values);
    CHECK(log_of_runs().ran == in_order);
  }
  CHECK(adversary->counts().reordered > before.reordered);  // the ordered ops were not reordered
}

TEST_CASE("adversarial: a slice by value") {
  AdversarialScope adversary;
  Graph g("by value");
  const Expr x = g.input("x", Shape({8}, DType::F32)), n = g.input("n", Shape({}, DType::I64));
  const Dim extent = g.symbol("extent", {0, 8}, n * 2);
  g.set_outputs({g.exp(g.slice(x, {0}, {extent}))});
  for (const auto& mode : {SymbolMode::specialise(), SymbolMode::runtime(8)}) {
    CompileOptions options;
    options.symbol_modes["extent"] = mode;
    CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
    for (std::int64_t half : {1, 4, 0, 3}) {
      const NamedTensors values{{"x", test::sequence({8}, 1, 0, DType::F32)},
                                {"n", Tensor::scalar_i64(DType::I64, half)}};
      test::expect_close(f.run_typed(values)[0], evaluate(g, values)[0], 1e-6);
    }
  }
}

}  // namespace rlx
