// `rlx ops`: the table, one op in full, the matrix, the page, and names it does not know.
#include <doctest/doctest.h>

#include "rlx/ir/functions.h"
#include "rlx/ir/op_def.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/run_program.h"

using namespace rlx;
using namespace rlx::test;

namespace {

// Asked once: they run the reference rule on every sample in every dtype.
const ProgramResult& ops_page_once() {
  static const ProgramResult r = run_rlx("ops --markdown");
  return r;
}
const ProgramResult& coverage_once() {
  static const ProgramResult r = run_rlx("ops --coverage");
  return r;
}
// What follows `heading` up to the next heading of any level.
std::string section_of(const std::string& page, const std::string& heading) {
  const std::size_t begin = page.find(heading + "\n");
  if (begin == std::string::npos) return {};
  return page.substr(begin, page.find("\n#", begin + heading.size()) - begin);
}

}  // namespace

TEST_CASE("rlx ops: every op has a line in each table") {
  for (const ProgramResult& r : {run_rlx("ops"), coverage_once(), ops_page_once()}) {
    CHECK(r.status == 0);
    CHECK(r.err.empty());
    for (const OpDef* def : all_op_defs())
      CHECK_MESSAGE(contains(r.out, r.out[0] == '#' ? concat_text("\n### `", def->name, "`\n")
                                                    : concat_text("\n", def->name, " ")),
                    def->name);
  }
}

TEST_CASE("docs/ops.md is what the command writes") {
  const bool current = rlx::test::read_file(source_path("docs/ops.md")) == ops_page_once().out;
  CHECK_MESSAGE(current, "the op table changed: run `build/dev/rlx ops --markdown -o docs/ops.md`");
}

TEST_CASE("rlx ops --markdown: an entry says what a reader asks") {
  const std::string& page = ops_page_once().out;
  const std::string softmax = section_of(page, "### `softmax`");
  for (const char* part : {"exp(x - max(x)) / sum along `axis`. x: float [..., N, ...].", "* Operands: `x`\n",
                           "* Attributes: `axis`, integer\n", "* Dtypes: floats\n", "reverse by its rule",
                           "cpu: kernel", "NumPy `sp.special.softmax`; JAX `jax.nn.softmax`; ONNX `Softmax`"})
    CHECK_MESSAGE(contains(softmax, part), part, " in ", softmax);
  CHECK(contains(section_of(page, "### `scatter`"), "`scatter_add`: NumPy `np.add.at`"));
  CHECK(contains(section_of(page, "### `arg_reduce`"), "reverse none: integer output"));
  // The comment beside the struct, not the one of its neighbour.
  CHECK(contains(section_of(page, "### `top_k`"), "ties to the smaller index, NaN first."));
  CHECK(contains(page, "| `leaky_relu` | "));
  CHECK(contains(page, "alpha = 0.01"));
  // Codes are the data of their products, not the bias; a derivative that is an error is none.
  CHECK(contains(section_of(page, "### `q_conv`"), "* Dtypes: i8 u8\n"));
  CHECK(contains(section_of(page, "### `q_matmul`"), "* Dtypes: i8 u8\n"));
  CHECK(contains(page, "| `igamma_grad_a` | `igamma_grad_a(a, b)` | floats | by b |"));
  CHECK(contains(page, "| `igamma` | `igamma(a, b)` | floats | by both |"));
  for (const char* name :
       {"SynthMatMul", "PartitionedConv", "SplineActivation", "TransformRegion", "FftQ", "BatchElementwiseRegion",
        "FftButterflyStage", "ScaledQuantScale", "DoubleSingle", "RoundToFormat"})
    CHECK_MESSAGE(contains(section_of(page, "## Names that are left out"), name), name);
  for (const char* name : {"ReluBackward", "Conv2dBackwardInput", "ResizeNearest2x", "ArgSort"})
    CHECK_MESSAGE(contains(section_of(page, "## Documented names that are other ops"), name), name);
}

// A line of cli/op_names.cpp for every op and function; what a library has no name for is said by an empty one.
TEST_CASE("rlx ops: names of other libraries are given for every op and function") {
  const std::string names = rlx::test::read_file(source_path("cli/op_names.cpp"));
  const auto check = [&](std::string_view text) {
    CHECK_MESSAGE(contains(names, concat_text("    {\"", text, "\", \"")), text, " has no line in cli/op_names.cpp");
  };
  for (const OpDef* def : all_op_defs()) {
    bool in_name = false;
    for (const AttrField& f : def->attrs) {
      if (f.place != AttrPlace::Mnemonic && f.place != AttrPlace::Suffix) continue;
      for (std::string_view name : f.enum_names)
        check(f.place == AttrPlace::Suffix ? concat_text(def->name, "_", name) : std::string(name)), in_name = true;
    }
    if (!in_name) check(def->name);
  }
}

TEST_CASE("rlx ops --coverage: cells, reasons, and no hole without one") {
  const std::string& out = coverage_once().out;
  // softmax: floats by the reference and on the cpu, f64 not in WGSL.
  const std::size_t at = out.find("\nsoftmax ");
  REQUIRE(at != std::string::npos);
  const std::string row = out.substr(at + 1, out.find('\n', at + 1) - at - 1);
  CHECK_MESSAGE(contains(row, "  floats  "), row);
  CHECK_MESSAGE(contains(row, "kernel"), row);
  CHECK_MESSAGE(contains(row, "host f64"), row);
  CHECK(contains(out, "  vjp: integer output\n"));
  CHECK(contains(out, "  decompose: a primitive\n"));
  CHECK(contains(out, "gpu, vulkan, opengl, webgpu: WGSL has no type for"));
  CHECK_MESSAGE(contains(out, "\n0 unexplained holes\n"), out.substr(std::min(out.find("unexplained: "), out.size())));
  const ProgramResult page = run_rlx("ops --coverage --markdown");
  CHECK(page.status == 0);
  CHECK(contains(page.out, "# Coverage of ops\n"));
  CHECK(contains(page.out, "\n| softmax | floats | "));
  CHECK(contains(page.out, "\n* vjp: integer output — "));
}

TEST_CASE("rlx ops --op: attributes, rules with reasons, samples") {
  const ProgramResult r = run_rlx("ops --op top_k");
  CHECK(r.status == 0);
  CHECK(contains(r.out, "top_k(x)  mir, primitive, precision movement\n"));
  CHECK(contains(r.out, "  k: integer\n"));
  CHECK(contains(r.out, "  decompose: - (a primitive)\n"));
  CHECK(contains(r.out, "  rows: top_k([2, 5] f32) {k = 3}\n"));
  CHECK(contains(r.out, "in JAX: lax.top_k\n"));
  // An enumerator's name stands for its op, and an operand may be optional.
  CHECK(contains(run_rlx("ops --op reduce_max").out,
                 "fn: enumerator (sum, mean, max, min, prod), part of the op's name in text\n"));
  CHECK(contains(run_rlx("ops --op dot_general").out, "  out: optional dtype\n"));
  CHECK(contains(run_rlx("ops --op attention").out, "attention(q, k, v, [mask], [kv_len], [q_len], [sinks])"));
}

TEST_CASE("rlx ops: wrong names and options") {
  CHECK(contains(run_rlx("ops --op quantize").out, "present: optional operands that are there"));
  const ProgramResult unknown = run_rlx("ops --op gahter");
  CHECK(unknown.status == 2);
  CHECK(unknown.out.empty());
  CHECK(contains(unknown.err, "did you mean 'gather'?"));
  CHECK(run_rlx("ops --op sort --markdown").status == 2);
  CHECK(run_rlx("ops --op sort --coverage").status == 2);
}
