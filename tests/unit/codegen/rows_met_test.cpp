// No kernel entry is dead: each writes kernels for some program of the tests.
#include <doctest/doctest.h>

#include <set>

#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/codegen_target.h"
#include "tests/support/needs.h"
#include "tests/support/samples.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using MetRows = std::set<const codegen::KernelEntry*>;

// Adds the kernel entries that write kernels of `g`; none if a part of the program runs on the host.
void meet_rows(const Graph& g, MetRows& met) {
  LirModule lir{Graph("none"), {}, Graph("prepare")};
  try {
    CompileOptions options;
    for (const auto& [name, info] : g.symbols()) options.symbol_modes.emplace(name, SymbolMode::runtime());
    CompilePipeline pipeline(std::make_shared<test::CodegenTarget>(), std::move(options));
    lir = pipeline.compile_graph(Graph(g)).lir;
  } catch (const Error&) {
    return;
  }
  for (const LirStep& s : lir.plan.schedule) {
    const Node& n = lir.graph.node(s.node);
    if (lir.plan.node_device(s.node) != 0 || op_def(n.kind()).bodies == BodyKind::Programs) continue;
    const codegen::KernelEntry* row = codegen::entry_table().find(lir.graph, s.node);
    CHECK_MESSAGE(row != nullptr, "no row for a planned step: ", std::string(op_text_name(n.op)));
    if (row && !codegen::launches_of(lir, s.node, codegen::Dialect{}).kernels.empty()) met.insert(row);
  }
}

// Matmuls that read quantized values are two ops, so they have no samples.
Expr decoded(Graph& g) {
  ops::Dequantize op;
  op.present.bits = 0b110;
  return g.add(op, {g.input("codes", Shape({32, 24}, DType::I8)), g.input("scale", test::f32({})),
                    g.input("zero", Shape(Dims{}, DType::I8))});
}

Graph coded_gather() {
  Graph g("coded");
  g.set_outputs({g.gather(decoded(g), g.input("rows", Shape({5}, DType::I32)), 0)});
  return g;
}

// With an add after it, the passes turn the matmul into one with an epilogue.
Graph coded_product(bool epilogue) {
  Graph g("coded");
  const Expr w = decoded(g);
  const Expr y = g.dot_general(g.input("x", test::f32({3, 32})), w, {{1}, {0}, {}, {}});
  g.set_outputs({epilogue ? g.relu(y + g.input("bias", test::f32({24}))) : y});
  return g;
}

// Ops that are views or constants in samples, here with extents known only at run time.
Graph extents_of_a_run() {
  Graph g("extents");
  const Dim n = g.symbol("n", {.min = 1, .max = 9}), m = g.symbol("m", {.min = 1, .max = 9});
  const Expr x = g.input("x", test::f32({n, m}));
  g.set_outputs({g.reshape(g.tanh(x), {m, n}), g.dim_size(x, 0)});
  return g;
}

}  // namespace

TEST_CASE("codegen: every row writes kernels for a sample" * doctest::test_suite(rlx::test::kSlow)) {
  MetRows met;
  for (const OpDef* def : all_op_defs()) {
    if (def->is_leaf() || def->level == Level::Lir) continue;
    for (const testing::Sample& sample : test::samples_of(*def)) {
      meet_rows(test::sample_graph(sample), met);
      for (const testing::Sample& other : test::dtype_samples(sample)) meet_rows(test::sample_graph(other), met);
    }
  }
  for (bool epilogue : {false, true}) meet_rows(coded_product(epilogue), met);
  meet_rows(coded_gather(), met);
  meet_rows(extents_of_a_run(), met);
  for (const OpDef* def : all_op_defs())
    if (def->view != ViewKind::Always)  // the entry exists for its claim: the planner makes no step of it
      for (const codegen::KernelEntry* row : codegen::entry_table().of(def->kind))
        CHECK_MESSAGE(met.contains(row), "no sample has a node for the row '", std::string(row->kernel), "' of ",
                      std::string(def->name));
}

}  // namespace rlx
