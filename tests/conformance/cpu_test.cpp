// Every op sample on the cpu backend against the reference evaluator, at every instruction set of this machine and at
// one and two threads; and what the kernel table promises.
#include <array>
#include <cstring>

#include <doctest/doctest.h>

#include "rlx/backends/cpu/kernels/kernels.h"
#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/driver/registry.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

std::vector<std::string> isas() {
  std::vector<std::string> names;
  for (cpu::Isa isa : {cpu::Isa::Generic, cpu::Isa::Sse4, cpu::Isa::Avx2, cpu::Isa::Avx512, cpu::Isa::Neon})
    if (cpu::isa_supported(isa)) names.emplace_back(cpu::isa_name(isa));
  return names;
}

bool claimed(const Graph& g, const TargetInfo& target) {
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (!target.claims.claims(g, NodeId{i})) return false;
  return true;
}

/// The graph as it is when the target claims every node, else what the pipeline makes of it.
LirModule to_lir(const Graph& g, const TargetInfo& target) {
  if (!claimed(g, target)) return CompilePipeline(target).compile_graph(g).lir;
  LirModule lir{g, plan_memory(g, target), Graph("prepare")};
  CHECK(check_plan(lir.graph, lir.plan).empty());
  return lir;
}

/// Runs a program without params or states on fresh memory, every buffer surrounded by bytes that must not change.
std::vector<Tensor> run(const ExecutableGraph& exe, const std::vector<Tensor>& inputs, bool timed = false) {
  constexpr std::size_t kGuard = 64;
  const LirModule& lir = exe.lir();
  const auto guarded = [](std::size_t n) { return std::vector<std::byte>(n + 3 * kGuard, std::byte{0xa5}); };
  const auto start = [](std::vector<std::byte>& v) {
    auto at = reinterpret_cast<std::uintptr_t>(v.data()) + kGuard;
    return reinterpret_cast<std::byte*>((at + kGuard - 1) / kGuard * kGuard);
  };
  const auto untouched = [&](std::vector<std::byte>& v, std::size_t n) {
    for (std::byte* p = v.data(); p < start(v); ++p)
      if (*p != std::byte{0xa5}) return false;
    for (std::byte* p = start(v) + n; p < v.data() + v.size(); ++p)
      if (*p != std::byte{0xa5}) return false;
    return true;
  };
  std::vector<std::byte> arena = guarded(lir.plan.arena_bytes);
  std::vector<std::vector<std::byte>> results;
  std::vector<void*> outputs;
  for (Value v : lir.graph.outputs()) results.push_back(guarded(lir.graph.shape(v).size_bytes()));
  for (auto& r : results) outputs.push_back(start(r));
  std::vector<const void*> ins;
  for (const Tensor& t : inputs) ins.push_back(t.data());
  BindContext context;
  context.arena = start(arena);
  auto bound = exe.bind(context);
  if (timed)
    CHECK(bound->run_timed(ins, outputs).size() == lir.plan.schedule.size());
  else
    bound->run(ins, outputs);
  CHECK(untouched(arena, lir.plan.arena_bytes));
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Shape& shape = lir.graph.shape(lir.graph.outputs()[i]);
    CHECK(untouched(results[i], shape.size_bytes()));
    out.push_back(Tensor::copy_of(outputs[i], shape));
  }
  return out;
}

/// Relative error allowed: the polynomials of F32 functions are good to a few ulp, products add up in another order.
double allowed(DType t) {
  switch (t) {
    case DType::F32: return 4e-6;
    case DType::F64:
    case DType::C128: return 1e-12;
    case DType::BF16: return 1.0 / 128;
    case DType::F16: return 1.0 / 1024;
    case DType::C64: return 1e-6;
    default: return 0;
  }
}

// Leaves are no work; LIR ops hold bytes only their backend understands.
bool runs_on(const OpDef& def) { return def.level != Level::Lir && !def.is(OpTrait::Leaf); }

}  // namespace

TEST_CASE("cpu: every op sample agrees with the reference") {
  auto backend = backend_for(Device::Cpu);
  REQUIRE(backend);
  test::for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (!runs_on(def)) return;
    const Graph g = test::sample_graph(sample);
    const std::vector<Tensor> operands = test::draw_operands(sample);
    const std::vector<Tensor> expected = evaluate(g, test::bind_operands(operands));
    for (const std::string& isa : isas()) {
      for (int threads : {1, 2}) {
        const BackendOptions options{threads, isa, false};
        auto exe = backend->compile_lir(to_lir(g, backend->target(options)), options);
        const std::vector<Tensor>& inputs = operands;
        const std::vector<Tensor> got = run(*exe, inputs);
        INFO(isa, ", ", threads, " threads");
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          CAPTURE(expected[i].text());
          CAPTURE(got[i].text());
          CHECK(test::distance(got[i], expected[i]) <= allowed(expected[i].dtype()));
        }
        if (threads == 1) CHECK(test::distance(run(*exe, inputs, true)[0], got[0]) == 0);
      }
    }
  });
}

TEST_CASE("reference: every op sample through the planner equals the evaluator") {
  auto backend = backend_by_name("reference");
  REQUIRE(backend);
  test::for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (!runs_on(def)) return;
    const Graph g = test::sample_graph(sample);
    const std::vector<Tensor> operands = test::draw_operands(sample);
    const std::vector<Tensor> expected = evaluate(g, test::bind_operands(operands));
    auto exe = backend->compile_lir(to_lir(g, backend->target({})), {});
    const std::vector<Tensor> got = run(*exe, operands);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(test::distance(got[i], expected[i]) == 0);
  });
}

TEST_CASE("cpu: the table claims every sample of every primitive") {
  const TargetInfo target = backend_for(Device::Cpu)->target({});
  test::for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (!runs_on(def) || def.is(OpTrait::Composite) || !def.reference.has()) return;
    CHECK(claimed(test::sample_graph(sample), target));
  });
}

TEST_CASE("cpu: names say what runs") {
  const BackendOptions options{2, "", false};
  auto backend = backend_for(Device::Cpu);
  const std::string best(cpu::isa_name(cpu::best_isa()));
  CHECK(backend->target(options).name == "cpu (" + best + ", 2 threads)");
  Graph g;
  Expr x = g.input("x", Shape({4, 8}, DType::F32));
  g.set_outputs({g.softmax(x)});
  auto exe = backend->compile_lir(to_lir(g, backend->target(options)), options);
  CHECK(exe->kernel_name(exe->lir().plan.schedule[0].node) == "softmax_f32 (" + best + ")");
}

}  // namespace rlx
