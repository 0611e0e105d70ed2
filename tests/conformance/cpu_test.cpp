// Every op sample on the cpu backend compared with its exact result: small, large and in every dtype, with every
// instruction set of this machine, at one and two threads. Also tests the claims of the kernel table.
#include <doctest/doctest.h>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/device/registry.h"
#include "tests/support/guarded_program.h"
#include "tests/support/needs.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

bool claimed(const Graph& g, const Target& target) {
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (!target.claims(g, NodeId{i})) return false;
  return true;
}

/// Runs a sample's graph once, on stale memory between guards.
std::vector<Tensor> run(const Executable& exe, const std::vector<Tensor>& operands, bool timed = false) {
  return test::GuardedProgram(exe, {}, test::Around::Nan).run(test::bind_operands(operands), timed);
}

// Compares a sample with the exact result for every given instruction set. With the last one, two threads must give the
// same bits.
void expect_exact(const testing::Sample& sample, const std::vector<std::string>& names) {
  INFO("variant '", sample.name, "'");
  const Graph g = test::sample_graph(sample);
  const std::vector<Tensor> operands = test::draw_operands(sample);
  const test::BoundedResult exact = test::evaluate_bounded(g, test::bind_operands(operands));
  auto backend = backend_for(Device::Cpu);
  for (const std::string& isa : names) {
    std::vector<Tensor> alone;
    for (int threads : {1, 2}) {
      if (threads == 2 && isa != names.back()) continue;
      INFO(isa, ", ", threads, " threads");
      const BackendOptions options{threads, isa, {}};
      auto exe = backend->compile_lir(test::lir_for(g, backend->target(options)), options);
      const std::vector<Tensor> got = run(*exe, operands);
      if (threads == 1) {
        test::expect_within_bound(got, exact);
        CHECK(run(*exe, operands, true)[0].identical(got[0]));
        alone = got;
      } else {
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].identical(alone[i]));
      }
    }
  }
}

}  // namespace

TEST_CASE("cpu: every op sample agrees with the exact result") {
  test::for_each_run_sample([&](const OpDef&, const testing::Sample& sample) { expect_exact(sample, test::isas()); });
}

TEST_CASE("cpu: every op sample in every dtype that the op takes") {
  test::Share share(3);
  test::for_each_run_sample([&](const OpDef&, const testing::Sample& sample) {
    for (const testing::Sample& other : test::dtype_samples(sample))
      if (share.next()) expect_exact(other, {""});
  });
}

// Large enough to split every kernel into chunks for two threads.
TEST_CASE("cpu: large and odd variants of every op sample") {
  test::Share share(5);
  test::for_each_run_sample([&](const OpDef&, const testing::Sample& sample) {
    for (const testing::Sample& large : test::large_samples(sample))
      if (share.next()) expect_exact(large, test::isas());
  });
}

// A kernel may overwrite a value that is read for the last time, but not while it still reads it as another operand.
TEST_CASE("cpu: every op sample with one value as two of its operands") {
  test::Share share(2);
  test::for_each_run_sample([&](const OpDef&, const testing::Sample& sample) {
    const std::vector<testing::SampleInput>& in = sample.inputs;
    for (std::size_t i = 0; i < in.size(); ++i)
      for (std::size_t j = i + 1; j < in.size(); ++j) {
        if (!(in[i].shape == in[j].shape) || in[i].shape.rank() == 0 || !share.next()) continue;
        INFO("operands ", i, " and ", j);
        Graph g = test::sample_graph(sample);
        const Node node = g.node(g.outputs()[0].node);
        Graph one("one value");
        std::vector<Value> operands;
        for (const Value v : node.inputs) operands.push_back(one.input(g.leaf_name(v.node), g.shape(v)));
        operands[i] = operands[j] = one.reverse(one.expr(operands[in[j].fill == Fill::Index ? j : i]), {0});
        const Expr e = one.add(node.op, operands);
        std::vector<Value> results;
        for (std::uint32_t r = 0; r < node.num_results(); ++r) results.push_back(e.result(r));
        one.set_outputs(std::move(results));
        const NamedTensors values = test::bind_operands(test::draw_operands(sample));
        auto backend = backend_for(Device::Cpu);
        auto exe = backend->compile_lir(test::lir_for(one, backend->target({})), {});
        test::expect_within_bound(test::GuardedProgram(*exe, {}, test::Around::Nan).run(values),
                                  test::evaluate_bounded(one, values));
      }
  });
}

TEST_CASE("reference: every op sample through the planner equals the evaluator") {
  auto backend = backend_by_name("reference");
  REQUIRE(backend);
  test::for_each_run_sample([&](const OpDef&, const testing::Sample& sample) {
    const Graph g = test::sample_graph(sample);
    const std::vector<Tensor> operands = test::draw_operands(sample);
    const std::vector<Tensor> expected = evaluate(g, test::bind_operands(operands));
    auto exe = backend->compile_lir(test::lir_for(g, backend->target({})), {});
    const std::vector<Tensor> got = run(*exe, operands);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].identical(expected[i]));
  });
}

TEST_CASE("cpu: the table claims every sample of every primitive") {
  const auto target = backend_for(Device::Cpu)->target({});
  test::for_each_run_sample([&](const OpDef& def, const testing::Sample& sample) {
    if (def.is_composite() || !def.reference.has()) return;
    // Barriers are removed by then; loops and branches run by their reference rule.
    if (def.bodies == BodyKind::Programs || def.kind == OpKind::OptimizationBarrier) return;
    CHECK(claimed(test::sample_graph(sample), *target));
  });
}

TEST_CASE("cpu: names say what runs") {
  const BackendOptions options{2, "", {}};
  auto backend = backend_for(Device::Cpu);
  const std::string best(cpu::isa_name(cpu::best_isa()));
  CHECK(backend->target(options)->name() == "cpu (" + best + ", 2 threads)");
  Graph g;
  Expr x = g.input("x", Shape({4, 8}, DType::F32));
  g.set_outputs({g.softmax(x)});
  auto exe = backend->compile_lir(test::lir_for(g, backend->target(options)), options);
  CHECK(exe->kernel_name(exe->lir().plan.schedule[0].node) == "softmax_f32 (" + best + ")");
  CHECK(exe->kernel_name(exe->lir().graph.leaves(OpKind::Input)[0]) == "none");
}

}  // namespace rlx
