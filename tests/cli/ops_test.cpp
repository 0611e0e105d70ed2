// `rlx ops`: the table, one op in full, and names it does not know.
#include <doctest/doctest.h>

#include "rlx/ir/op_def.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/run_program.h"

using namespace rlx;
using namespace rlx::test;

TEST_CASE("rlx ops: every op has a line in each table") {
  for (const char* arguments : {"ops", "ops --coverage", "ops --markdown"}) {
    const ProgramResult r = run_rlx(arguments);
    CHECK(r.status == 0);
    CHECK(r.err.empty());
    for (const OpDef* def : all_op_defs())
      CHECK_MESSAGE(contains(r.out, std::string(def->name) + (r.out[0] == '#' ? "` |" : " ")), arguments, ": ",
                    def->name);
  }
}

TEST_CASE("docs/ops.md is what the command writes") {
  const bool current = rlx::test::read_file(source_path("docs/ops.md")) == run_rlx("ops --markdown").out;
  CHECK_MESSAGE(current, "the op table changed: run `build/dev/rlx ops --markdown -o docs/ops.md`");
}

TEST_CASE("rlx ops --op: attributes, rules with reasons, samples") {
  const ProgramResult r = run_rlx("ops --op top_k");
  CHECK(r.status == 0);
  CHECK(contains(r.out, "top_k(x)  mir, primitive, precision movement\n"));
  CHECK(contains(r.out, "  k: integer\n"));
  CHECK(contains(r.out, "  decompose: - (a primitive)\n"));
  CHECK(contains(r.out, "  rows: top_k([2, 5] f32) {k = 3}\n"));
  // An enumerator's name stands for its op, and an operand may be optional.
  CHECK(contains(run_rlx("ops --op reduce_max").out,
                 "fn: enumerator (sum, mean, max, min, prod), part of the op's name in text\n"));
  CHECK(contains(run_rlx("ops --op attention").out, "attention(q, k, v, [mask], [kv_len], [q_len], [sinks])"));
}

TEST_CASE("rlx ops: wrong names and options") {
  CHECK(contains(run_rlx("ops --op quantize").out, "present: optional operands that are there"));
  const ProgramResult unknown = run_rlx("ops --op gahter");
  CHECK(unknown.status == 2);
  CHECK(unknown.out.empty());
  CHECK(contains(unknown.err, "did you mean 'gather'?"));
  CHECK(run_rlx("ops --coverage --markdown").status == 2);
}
