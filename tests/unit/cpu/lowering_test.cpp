// What rows tell of the steps that they add.
#include <doctest/doctest.h>

#include "rlx/backends/cpu/rows.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/runtime/session.h"

namespace rlx::cpu {
namespace {

struct Nothing {};
void run_nothing(const Nothing&, std::int64_t) {}

}  // namespace

TEST_CASE("a node without steps says nothing of the step of the node before") {
  Graph g;
  g.set_outputs({g.softmax(g.input("x", Shape({4, 8}, DType::F32)))});
  const CompileResult result = CompilePipeline(Session().target()).compile_graph(std::move(g));
  const LirModule& lir = result.lir;
  const NodeId node = lir.plan.schedule[0].node;
  const std::size_t bytes = lir.plan.arenas.empty() ? 0 : lir.plan.arenas[0];
  const std::vector<BufferView> memory{BufferView(nullptr, bytes)};
  Program program;
  Nothing nothing;
  LowerContext first(lir, node, memory, kernels_for(best_isa()), 1, program);
  first.step<run_nothing>(nothing, 3, 1.0);
  LowerContext second(lir, node, memory, kernels_for(best_isa()), 1, program);
  second.step<run_nothing>(nothing, 0, 1.0);
  second.walks_rows(8, 1, 1, {0});
  REQUIRE(program.pieces.size() == 1);
  CHECK(program.pieces[0].halves.rows == 0);
  first.walks_rows(4, 1, 1, {0});
  CHECK(program.pieces[0].halves.rows == 4);
}

}  // namespace rlx::cpu
