// The prepare graph: the part of a program that is split off, and the rule that it must not grow a weight.
#include "rlx/compiler/split_weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "rlx/ir/custom_op.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/passes/fusion.h"
#include "rlx/runtime/session.h"
#include "tests/support/custom_ops.h"
#include "tests/support/toy_target.h"

namespace rlx {
namespace {

bool reads_prepared(const SplitProgram& p, std::string_view op) {
  return op_histogram(p.prepare).contains(std::string(op));
}

// The values of the leaves of `g`.
NamedTensors of(const Graph& g, const NamedTensors& values) {
  NamedTensors out;
  for (const auto& [name, value] : values)
    if (g.find_leaf(OpKind::Param, name).valid() || g.find_leaf(OpKind::Input, name).valid()) out.emplace(name, value);
  return out;
}

// Runs the prepare graph and the rest, and compares with the whole program.
void check_equal(const Graph& g, const SplitProgram& p, const NamedTensors& values) {
  NamedTensors params = of(p.run, values);
  const std::vector<Tensor> prepared = evaluate(p.prepare, of(p.prepare, values));
  const std::vector<NodeId> leaves = p.run.leaves(OpKind::Param);
  REQUIRE(leaves.size() == prepared.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) params.insert_or_assign(p.run.leaf_name(leaves[i]), prepared[i]);
  const std::vector<Tensor> whole = evaluate(g, values), halves = evaluate(p.run, params);
  REQUIRE(whole.size() == halves.size());
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(whole[i].identical(halves[i]));
}

Tensor ramp(std::vector<std::int64_t> dims) {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i % 17) - 8;
  return Tensor::of<float>(std::move(dims), v);
}

// A weight of 100 elements, padded by `more` elements and added to x.
Graph padded_weight(std::int64_t more) {
  Graph g("padded");
  Expr w = g.pad(g.param("w", {{100}, DType::F32}), {0}, {more});
  g.set_outputs({w * g.input("x", {{100 + more}, DType::F32})});
  return g;
}

TEST_CASE("a value of weights is made ahead up to 1.1 times the bytes of its sources") {
  // The sources of the pad are the weight and the padding value, 101 elements. So 111 elements are prepared and 112 are
  // not.
  for (std::int64_t more : {0, 5, 11}) {
    CAPTURE(more);
    const Graph g = padded_weight(more);
    const SplitProgram p = split_weights(g, test::ToyTarget());
    CHECK(reads_prepared(p, "pad"));
    CHECK(!op_histogram(p.run).contains("pad"));
    check_equal(g, p, {{"w", ramp({100})}, {"x", ramp({100 + more})}});
  }
  for (std::int64_t more : {12, 400}) {
    CAPTURE(more);
    const Graph g = padded_weight(more);
    const SplitProgram p = split_weights(g, test::ToyTarget());
    CHECK(!reads_prepared(p, "pad"));
    CHECK(op_histogram(p.run).contains("pad"));
    check_equal(g, p, {{"w", ramp({100})}, {"x", ramp({100 + more})}});
  }
}

TEST_CASE("a chain is cut where it would grow: the small part ahead, the rest in each run") {
  Graph g("chain");
  Expr table = g.expand(g.exp(g.param("w", {{1, 64}, DType::F32})), {32, 64});
  g.set_outputs({table + g.input("x", {{32, 64}, DType::F32})});
  const SplitProgram p = split_weights(g, test::ToyTarget());
  CHECK(reads_prepared(p, "exp"));
  CHECK(op_histogram(p.run).contains("expand"));
  CHECK(!op_histogram(p.run).contains("exp"));
  REQUIRE(p.prepare.outputs().size() == 1);
  CHECK(p.prepare.shape(p.prepare.outputs()[0]).num_elements() == 64);
  check_equal(g, p, {{"w", ramp({1, 64})}, {"x", ramp({32, 64})}});
}

TEST_CASE("a weight in half precision is widened in each run, one in double is narrowed ahead") {
  for (DType stored : {DType::F16, DType::F64}) {
    CAPTURE(dtype_name(stored));
    Graph g("cast");
    g.set_outputs({g.cast(g.param("w", {{8, 8}, stored}), DType::F32) - g.input("x", {{8, 8}, DType::F32})});
    const SplitProgram p = split_weights(g, test::ToyTarget());
    CHECK(reads_prepared(p, "cast") == (stored == DType::F64));
    CHECK(op_histogram(p.run).contains("cast") == (stored == DType::F16));
    check_equal(g, p, {{"w", ramp({8, 8}).cast(stored)}, {"x", ramp({8, 8})}});
  }
}

TEST_CASE("elementwise values of constants alone are made ahead, and inputs never are") {
  Graph g("constants");
  Expr c = g.constant(ramp({4}));
  g.set_outputs({g.exp(c) * 2 + g.input("x", {{4}, DType::F32})});
  const SplitProgram p = split_weights(g, test::ToyTarget());
  CHECK(reads_prepared(p, "exp"));
  CHECK(reads_prepared(p, "mul"));
  CHECK(op_histogram(p.run).contains("add"));
  check_equal(g, p, {{"x", ramp({4})}});
}

TEST_CASE("a mutable param is read as it is, and nothing is made ahead from it") {
  Graph g("mutable");
  Expr w = g.param("w", {{4, 3}, DType::F32}, ParamMode::Mutable), frozen = g.param("f", {{4, 3}, DType::F32});
  g.set_outputs({g.matmul(g.input("x", {{2, 4}, DType::F32}), w * frozen), g.exp(frozen) - w});
  const SplitProgram p = split_weights(g, test::ToyTarget());
  CHECK(reads_prepared(p, "exp"));
  CHECK(!reads_prepared(p, "mul"));
  bool raw = false;
  for (Value v : p.prepare.outputs())
    raw = raw || (p.prepare.node(v.node).kind() == OpKind::Param && p.prepare.leaf_name(v.node) == "w");
  CHECK(raw);
  check_equal(g, p, {{"w", ramp({4, 3})}, {"f", Tensor::full({{4, 3}, DType::F32}, 0.5)}, {"x", ramp({2, 4})}});
}

// x times a weight that `steps` nodes computed; each reads the node before twice.
Graph doubled(int steps) {
  Graph g("doubled");
  Expr w = g.param("w", {{4}, DType::F32});
  for (int i = 0; i < steps; ++i) w = w + w;
  g.set_outputs({w * g.input("x", {{4}, DType::F32})});
  return g;
}

TEST_CASE("keys and params of prepared weights are linear: chains whose every node is used twice") {
  // A walk over all paths of 64 nodes would take 2^64 steps.
  for (int steps : {1, 64, 10'000}) {
    CAPTURE(steps);
    const SplitProgram p = split_weights(doubled(steps), test::ToyTarget());
    REQUIRE(p.prepare.outputs().size() == 1);
    CHECK(p.prepare.num_nodes() == static_cast<std::size_t>(steps) + 1);
    const std::vector<std::string> keys = prepared_keys(p.prepare);
    CHECK(keys[0].size() < 40);
    CHECK(keys == prepared_keys(split_weights(doubled(steps), test::ToyTarget()).prepare));
    CHECK(keys != prepared_keys(split_weights(doubled(steps + 1), test::ToyTarget()).prepare));
    CHECK(*params_read(p.prepare, p.prepare.outputs())[0] == std::vector<std::string>{"w"});
  }
}

TEST_CASE("a chain of values of ever more params: those of many are computed in the run") {
  constexpr int kParams = 700;
  Graph g("chain");
  const Expr x = g.input("x", {{2}, DType::F32});
  Expr w = g.param("w0", {{2}, DType::F32}), sum = w * x;
  for (int i = 1; i < kParams; ++i) {
    w = g.sin(w) + g.param(concat_text("w", i), {{2}, DType::F32});
    sum = sum + w * x;
  }
  g.set_outputs({sum});
  const SplitProgram p = split_weights(g, test::ToyTarget());
  std::size_t most = 0;
  for (const ParamNames& names : params_read(p.prepare, p.prepare.outputs())) most = std::max(most, names->size());
  CHECK(most == 512);
  CHECK(p.run.leaves(OpKind::Param).size() == p.prepare.outputs().size());
  CompiledGraph f = Session().with_threads(1).compile(Graph(g));
  NamedTensors leaves{{"x", Tensor::full({{2}, DType::F32}, 0.5)}};
  for (int i = 0; i < kParams; ++i) {
    const std::string name = concat_text("w", i);
    leaves.emplace(name, Tensor::full({{2}, DType::F32}, 0.25 + i % 7));
    f.set_param(name, leaves.at(name));
  }
  const Tensor got = f.run_typed({{"x", leaves.at("x")}})[0], want = evaluate(g, leaves)[0];
  CHECK(got.at(0) == doctest::Approx(want.at(0)).epsilon(1e-4));
}

TEST_CASE("values of the same params share one list of them") {
  Graph g("lists");
  std::vector<Value> values;
  Expr sum = g.param("w0", {{2}, DType::F32});
  for (int i = 1; i < 300; ++i) {
    sum = sum + g.param(concat_text("w", i), {{2}, DType::F32});
    sum = g.exp(sum) * sum;
  }
  for (int i = 0; i < 100; ++i) values.push_back(g.exp(sum + static_cast<double>(i)));
  values.push_back(g.constant(ramp({2})));
  values.push_back(g.exp(g.param("alone", {{2}, DType::F32})));
  g.set_outputs(values);
  const std::vector<ParamNames> names = params_read(g, values);
  REQUIRE(names.size() == 102);
  CHECK(names[0]->size() == 300);
  for (int i = 1; i < 100; ++i) CHECK(names[static_cast<std::size_t>(i)] == names[0]);
  CHECK(names[100]->empty());
  CHECK(*names[101] == std::vector<std::string>{"alone"});
  CHECK(std::is_sorted(names[0]->begin(), names[0]->end()));
}

TEST_CASE("prepared weights that differ in one attribute, constant or body have different keys") {
  test::custom_ops();
  const auto key = [](auto build) {
    Graph g("key");
    g.set_outputs({build(g, g.param("w", {{2}, DType::F32}))});
    const std::vector<std::string> keys = prepared_keys(g);
    CHECK(keys.size() == 1);
    return keys[0];
  };
  const auto plus = [&](float last) {
    const float v[] = {1, last};
    return key([&](Graph& g, Expr w) { return g.exp(w + g.constant(Tensor::of<float>({2}, v))); });
  };
  const auto in_body = [&](float last) {
    auto body = std::make_shared<Graph>("body");
    const float v[] = {1, last};
    Expr x = body->input("x", {{2}, DType::F32});
    body->set_outputs({body->exp(x * body->constant(Tensor::of<float>({2}, v)))});
    return key([&](Graph& g, Expr w) { return g.add(ops::ElementwiseRegion{body}, {w}); });
  };
  const auto initial = [&](float last) {  // the Tensor attribute of an op that is not a constant
    const float v[] = {1, last};
    return key([&](Graph& g, Expr w) {
      return w + g.add(ops::State{"s", {2}, DType::F32, Tensor::of<float>({2}, v)}, {});
    });
  };
  const auto scaled = [&](double by) {
    return key([&](Graph& g, Expr w) { return g.add(custom_op("test.scaled_tanh", by), {w}); });
  };
  const auto reversed = [&](std::vector<std::int64_t> axes) {
    return key([&](Graph& g, Expr w) { return g.add(ops::Reverse{std::move(axes)}, {w}); });
  };
  CHECK(plus(2) == plus(2));
  CHECK(in_body(2) == in_body(2));
  CHECK(scaled(2) == scaled(2));
  const std::vector<std::string> all = {plus(2),    plus(3),   in_body(2),  in_body(3),   initial(2),
                                        initial(3), scaled(2), scaled(2.5), reversed({}), reversed({0})};
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
}

}  // namespace
}  // namespace rlx
