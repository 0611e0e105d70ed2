// Random programs with calls of any op: they reach every kind and are correct in every execution mode.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/text.h"
#include "tests/support/needs.h"
#include "tests/support/random_checks.h"

namespace rlx::test {
namespace {

RandomProgram program_with_calls(std::uint64_t seed) {
  ProgramOptions options;
  options.calls = 50;
  options.specials = seed % 8 == 7;
  return random_program(seed, options);
}

void add_kinds(const Graph& g, std::set<OpKind>& kinds) {
  for (const Node& n : g.nodes()) {
    kinds.insert(n.kind());
    for (const Subgraph& body : body_graphs(n.op)) add_kinds(*body, kinds);
  }
}

}  // namespace

TEST_CASE("random programs: every op kind of a program is in some") {
  std::set<OpKind> kinds;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) add_kinds(program_with_calls(seed).graph, kinds);
  for (const OpDef* def : all_op_defs())
    if (def->level != Level::Lir && def->kind != OpKind::Custom)
      CHECK_MESSAGE(kinds.contains(def->kind), std::string(def->name));
}

TEST_CASE("random programs: with calls, in every way") {
  for (const std::uint64_t seed : seeds(40)) {
    const RandomProgram p = program_with_calls(seed);
    const std::string text = failure_of(p, {}, true);
    CHECK_MESSAGE(text.empty(), "seed ", seed, ": ", text, "\n", print_text(p.graph));
  }
}

}  // namespace rlx::test
