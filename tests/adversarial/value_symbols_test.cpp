// Runs with host sync points where an extent becomes known, on a device with asynchronous work and memory of its own,
// and on an opaque device.
#include <algorithm>
#include <optional>

#include <doctest/doctest.h>

#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/op_set.h"
#include "rlx/runtime/session.h"
#include "tests/adversarial/adversarial_device.h"
#include "tests/support/error_text.h"
#include "tests/support/segment_programs.h"
#include "tests/support/value_symbols.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::contains;
using test::error_text;

// The first elements of x; a matmul of x with the weights gives their number.
Graph counted() {
  Graph g("counted");
  const Expr x = g.input("x", Shape({8}, DType::F32)), w = g.param("w", Shape({8}, DType::F32));
  const Dim n = g.symbol("n", {0, 8}, g.cast(g.sum(x * w), DType::I64));
  g.set_outputs({g.narrow(x * 2.0, 0, 0, n), g.sum(x)});
  return g;
}

}  // namespace

TEST_CASE("adversarial: programs whose extents are values, also where the host drives their loops and branches") {
  std::vector<test::AdversarialOptions> modes = test::adversarial_modes();
  modes.push_back(modes[0]);
  modes.back().refuse = test::AdversarialOptions::control_flow();
  for (const test::AdversarialOptions& mode : modes) {
    CAPTURE(test::mode_name(mode));
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      CAPTURE(seed);
      AdversarialScope adversary(mode);
      const test::ValueProgram program = test::random_value_program(seed);
      check_value_program(program, Session(AdversarialScope::kDevice).compile(Graph(program.graph)), seed, 5);
    }
  }
}

TEST_CASE("adversarial: a value that was seen is not bound again; an input is brought there once") {
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    AdversarialScope adversary(mode);
    CompiledGraph f = Session(AdversarialScope::kDevice).compile(counted());
    f.set_param("w", {1, 1, 1, 1, 1, 1, 1, 1});
    const std::vector<float> three{1, 1, 1, 0, 0, 0, 0, 0}, five{1, 1, 1, 1, 1, 0, 0, 0};
    CHECK(f.run({{"x", three}})[0] == std::vector<float>{2, 2, 2});
    CHECK(f.run({{"x", five}})[0] == std::vector<float>(5, 2));
    const auto before = adversary->counts();
    CHECK(f.run({{"x", three}})[0] == std::vector<float>{2, 2, 2});
    CHECK(f.run({{"x", five}})[0] == std::vector<float>(5, 2));
    CHECK(adversary->counts().binds == before.binds);
    CHECK(adversary->counts().uploads == before.uploads + 2);
    f.set_param("w", {0, 0, 0, 0, 0, 0, 0, 0});
    CHECK(f.run({{"x", five}})[0].empty());
    f.set_param("w", {9, 0, 0, 0, 0, 0, 0, 0});
    const std::string why = error_text([&] { (void)f.run({{"x", five}}); });
    CHECK(contains(why, "symbol 'n' = 9"));
    CHECK(contains(why, "cast"));
    f.set_param("w", {1, 1, 1, 1, 1, 1, 1, 1});
    CHECK(f.run({{"x", three}})[0] == std::vector<float>{2, 2, 2});
  }
}

TEST_CASE("adversarial: what others see run keeps its order around a stop; what would run twice is refused") {
  Graph g("seen");
  const Expr x = g.input("x", Shape({8}, DType::F32)), w = g.param("w", Shape({8}, DType::F32));
  const Expr before = g.all_reduce(x, ReduceKind::Sum, "data", 1);
  const Expr total = g.all_reduce(g.sum(w), ReduceKind::Sum, "data", 1);
  const Dim n = g.value_dim(g.cast(total, DType::I64), 8);
  g.set_outputs({g.all_reduce(g.narrow(before, 0, 0, n), ReduceKind::Max, "data", 1), before});
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    AdversarialScope adversary(mode);
    std::optional<CompiledGraph> f;
    const std::string why = error_text([&] { f = Session(AdversarialScope::kDevice).compile(Graph(g)); });
    CHECK(contains(why, "which this device would run twice") == mode.opaque);
    if (!f) continue;
    for (int set : {3, 8, 0}) {
      std::vector<float> weights(8, 0);
      std::fill(weights.begin(), weights.begin() + set, 1.0F);
      f->set_param("w", weights);
      const auto out = f->run({{"x", {1, 2, 3, 4, 5, 6, 7, 8}}});
      CHECK(out[0].size() == static_cast<std::size_t>(set));
      CHECK(out[1].back() == 8);
    }
  }
}

TEST_CASE("adversarial: runs over several devices stop for an extent and go on where the values are") {
  int several = 0;
  for (bool peers : {false, true})
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      CAPTURE(seed);
      test::AdversarialOptions mode;
      mode.refuse = seed % 3 == 0   ? test::AdversarialOptions::control_flow()
                    : seed % 3 == 1 ? OpSet({OpKind::Reverse, OpKind::Sort})
                                    : OpSet({OpKind::Reduce, OpKind::Gather, OpKind::Cumulative});
      mode.peers = peers;
      AdversarialScope adversary(mode);
      test::ValueProgram program = test::random_value_program(seed);
      CompileOptions options;
      if (seed % 2 == 0) {
        test::Dice dice(seed);
        for (std::uint32_t i = 0; i < program.graph.num_nodes(); ++i)
          if (!op_def(program.graph.nodes()[i].kind()).is_leaf())
            program.graph.set_label(NodeId{i}, dice.chance(50) ? "a/n" : "b/n");
        test::place_label(program.graph, "a", {AdversarialScope::kDevice, 1}, options);
      }
      CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(program.graph), options);
      const NamedTensors values = test::random_value_inputs(program, seed);
      NamedTensors inputs;
      for (const IoInfo& p : f.params()) f.set_param(p.name, values.at(p.name));
      for (const IoInfo& in : f.inputs()) inputs.emplace(in.name, values.at(in.name));
      (void)f.run_typed(inputs);
      several += f.compile_result().lir.others.empty() ? 0 : 1;
      f.reset();
      check_value_program(program, std::move(f), seed, 5);
    }
  CHECK(several >= 8);
}

TEST_CASE("adversarial: what the second device made before a stop is there behind it") {
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    AdversarialScope adversary(mode);
    Graph g("there");
    const Expr x = g.input("x", Shape({8}, DType::F32)), w = g.param("w", Shape({8}, DType::F32));
    {
      const auto scope = g.scope("there");
      const Expr v = g.reverse(x * 2.0, {0});
      g.set_outputs({g.first(v, g.cast(g.sum(v * w), DType::I64)) + 1.0});
    }
    CompileOptions options;
    options.placement = {{"there", {AdversarialScope::kDevice, 1}}};
    CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(std::move(g), options);
    for (int round = 0; round < 2; ++round) {
      const auto before = adversary->counts();
      for (int n : {2, 4, 0}) {
        std::vector<float> weights(8, 0);
        weights[7] = static_cast<float>(n) / 2;  // the last element of v is twice the first element of x
        f.set_param("w", weights);
        const std::vector<float> all{17, 15, 13, 11, 9, 7, 5, 3};
        CHECK(f.run({{"x", {1, 2, 3, 4, 5, 6, 7, 8}}})[0] == std::vector<float>(all.begin(), all.begin() + n));
      }
      if (round != 0) CHECK(adversary->counts().binds == before.binds);
    }
  }
}

TEST_CASE("adversarial: work that fails before the extent is known fails the run, and the next one works") {
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    AdversarialScope adversary(mode);
    CompiledGraph f = Session(AdversarialScope::kDevice).compile(counted());
    f.set_param("w", {1, 1, 1, 1, 1, 1, 1, 1});
    adversary->fail_step(0, 0, "the first step fails");
    CHECK(contains(error_text([&] { (void)f.run({{"x", std::vector<float>(8, 1)}}); }), "the first step fails"));
    CHECK(f.run({{"x", std::vector<float>(8, 1)}})[0] == std::vector<float>(8, 2));
  }
}

}  // namespace rlx
