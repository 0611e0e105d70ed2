// No entry of the emitter is dead: each writes a node of some program of the tests.
#include <doctest/doctest.h>

#include <set>

#include "rlx/backends/tpu/entries.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/device/registry.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

void add_kinds(const Graph& g, std::set<OpKind>& kinds) {
  for (const Node& n : g.nodes()) {
    kinds.insert(n.kind());
    for (const Subgraph& body : body_graphs(n.op)) add_kinds(*body, kinds);
  }
}

// Adds the kinds of ops in the text of `g`; none if a part of the program runs on the host.
void meet_kinds(const Graph& g, std::set<OpKind>& met) {
  CompileOptions options;
  for (const auto& [name, info] : g.symbols()) options.symbol_modes.emplace(name, SymbolMode::runtime());
  try {
    CompilePipeline pipeline(backend_for(Device::Tpu)->target({}), std::move(options));
    add_kinds(pipeline.compile_graph(Graph(g)).lir.graph, met);
  } catch (const Error&) {
    return;
  }
}

// Ops whose operands are constants in samples.
Graph extent_of_a_run() {
  Graph g("extent");
  const Expr x = g.input("x", Shape({g.symbol("n", {.min = 1, .max = 9})}, DType::F32));
  g.set_outputs({g.dim_size(x, 0)});
  return g;
}

}  // namespace

TEST_CASE("StableHLO: every row writes a node of a sample, and there is one row for a kind") {
  std::set<OpKind> met;
  for (const OpDef* def : all_op_defs()) {
    if (def->is_leaf() || def->level == Level::Lir) continue;
    for (const testing::Sample& sample : test::samples_of(*def)) meet_kinds(test::sample_graph(sample), met);
  }
  meet_kinds(extent_of_a_run(), met);
  for (const OpDef* def : all_op_defs()) {
    const std::string name(def->name);
    const std::size_t rows = tpu::entry_table().of(def->kind).size();
    CHECK_MESSAGE(rows <= 1, "there are ", rows, " rows of ", name);
    // The entries of views exist for their claims: the compiler uses the operand itself.
    if (rows != 0 && def->view != ViewKind::Always)
      CHECK_MESSAGE(met.contains(def->kind), "no sample has a node for the row of ", name);
  }
}

}  // namespace rlx
