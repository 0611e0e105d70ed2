// `rlx inspect`: the stages of a compile, chosen ones, the model's graph, and what it says when something is wrong.
#include <doctest/doctest.h>

#include <set>

#include "rlx/formats/mapped_file.h"
#include "rlx/ir/text.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/paths.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"

using namespace rlx;
using namespace rlx::test;

namespace {

const char* const kDenseRows = R"(graph @dense {
  symbol rows [1, 64]
  %0 = input() {name = "x"} : [rows, 2] f32
  %1 = param() {name = "w"} : [2, 3] f32
  %2 = matmul(%0, %1) : [rows, 3] f32
  %3 = relu(%2) : [rows, 3] f32
  %4 = relu(%3) : [rows, 3] f32
  return %4, %2
}
)";

}  // namespace

TEST_CASE("rlx inspect: every stage from the graph as given to the plan") {
  for (const char* device : {"cpu", "reference"}) {
    CAPTURE(device);
    const ProgramResult r = run_rlx(std::string("inspect - --bind rows=4 --device ") + device, kDenseRows);
    CHECK(r.status == 0);
    CHECK(r.err.empty());
    std::size_t at = 0;
    for (const char* part : {"target: ", "buffer plan", "fusion: ", "== hir: ", "matmul(%0, %1)", "[4, 3] f32",
                             "== canonicalize-dots: ", "matmul -1", "dot_general(%0, %1)", "== lir: ", "waits for",
                             "== fusion: ", "missed", "is_output", "== dispatch: "}) {
      at = r.out.find(part, at);
      CHECK_MESSAGE(at != std::string::npos, "missing or out of order: ", part);
      if (at == std::string::npos) break;
    }
  }
}

TEST_CASE("rlx inspect: a state that is copied after each run is named, with the reason") {
  const char* const swap = R"(graph @swap {
  %0 = state() {name = "a", init = [2] f32 {0, 0}} : [2] f32
  %1 = state() {name = "b", init = [2] f32 {1, 1}} : [2] f32
  %2 = neg(%1) : [2] f32
  set_state "a" %1
  set_state "b" %0
  return %2
}
)";
  const std::string out = run_rlx("inspect - --summary", swap).out;
  CHECK(contains(out, "state 'a': 8 B are copied after each run: the new value lies in state 'b'"));
  CHECK(contains(run_rlx("inspect - --stage lir", swap).out, "to state 0: the new value lies in state 'b'"));
}

TEST_CASE("rlx inspect: the plan tells which carries of a loop have two buffers, and what else is copied") {
  const std::string plan = run_rlx("inspect - --stage lir", R"(graph @loop {
  %0 = input() {name = "x"} : [6, 4] f32
  %1 = state() {name = "s", init = [4] f32 {0, 0, 0, 0}} : [4] f32
  %2:2 = scan(%1, %0) {carries = 1, length = [6], body = graph @body {
      %0 = input() {name = "carry"} : [4] f32
      %1 = input() {name = "row"} : [4] f32
      %2 = add(%0, %1) : [4] f32
      return %2, %0
    }} : [4] f32, [6, 4] f32
  return %2#1
  set_state "s" %2
}
)")
                               .out;
  CHECK_MESSAGE(contains(plan, "  bodies of %2: arena from 0, "), plan);
  CHECK(contains(plan, "  carry 0 of %2 has two buffers: "));
  CHECK(contains(plan, "  %2 copies operand 0 before it updates it: "));
}

TEST_CASE("rlx inspect: chosen stages, list, summary, text") {
  const ProgramResult one = run_rlx("inspect - --bind rows=4 --stage dispatch,hir", kDenseRows);
  CHECK(contains(one.out, "== hir: "));
  CHECK(contains(one.out, "== dispatch: "));
  CHECK(!contains(one.out, "== lir: "));
  const ProgramResult list = run_rlx("inspect - --bind rows=4 --list", kDenseRows);
  CHECK(contains(list.out, "== lir: "));
  CHECK(!contains(list.out, "matmul("));
  CHECK(contains(run_rlx("inspect - --bind rows=4 --summary", kDenseRows).out, "buffer plan"));
  const ProgramResult text = run_rlx("inspect - --bind rows=4 --text --stage hir", kDenseRows);
  CHECK(parse_text(text.out.substr(text.out.find('\n') + 1)).num_nodes() == 5);
}

TEST_CASE("rlx inspect --list without a graph: the stages that there are, in order") {
  const ProgramResult r = run_rlx("inspect --list");
  CHECK(r.status == 0);
  std::size_t at = 0;
  for (const char* name :
       {"hir", "lower-hir", "canonicalize-dots", "fuse-dot-epilogue", "legalize", "lir", "fusion", "dispatch"}) {
    at = r.out.find(concat_text("== ", name, ": "), at);
    CHECK_MESSAGE(at != std::string::npos, "missing or out of order: ", name);
    if (at == std::string::npos) break;
  }
  // Each of a compile is among them, and no two have one name.
  const std::string of_graph = run_rlx("inspect - --bind rows=4 --list", kDenseRows).out;
  std::set<std::string> names;
  for (std::size_t line = 0; line < of_graph.size(); line = of_graph.find('\n', line) + 1) {
    const std::string name = of_graph.substr(line, of_graph.find(':', line) - line);
    CHECK_MESSAGE(names.insert(name).second, name, " stands twice");
    CHECK(contains(r.out, name.ends_with("-2") ? name.substr(0, name.size() - 2) : name));
  }
  CHECK(names.contains("== legalize-2"));
  CHECK(contains(run_rlx("inspect - --bind rows=4 -s legalize-2", kDenseRows).out, "== legalize-2: after the pass"));
  CHECK(contains(r.out, "== NAME-2: "));
}

TEST_CASE("rlx inspect --html: a page of all stages, with times when it is run") {
  const TempDir dir;
  const ProgramResult r = run_rlx("inspect - --bind rows=4 --html " + dir.file("page.html"), kDenseRows);
  CHECK(r.status == 0);
  CHECK(r.out.empty());
  const std::string page = rlx::read_file(dir.file("page.html"));
  for (const char* part : {"<!doctype html>", "<title>dense - rlx</title>", "\"name\":\"canonicalize-dots\"",
                           "\"is_output\"", "\"times\":[]", "</html>"})
    CHECK_MESSAGE(contains(page, part), "missing: ", part);
  CHECK(!contains(page, "://"));
  CHECK(run_rlx("inspect - --bind rows=4 --profile --html " + dir.file("page.html"), kDenseRows).status == 0);
  const std::string timed = rlx::read_file(dir.file("page.html"));
  CHECK(!contains(timed, "\"times\":[]"));
  CHECK(contains(timed, "Medians of 15 runs"));
  expect_failure(run_rlx("inspect - --profile --html " + dir.file("page.html"), kDenseRows), 2, "--bind rows=");
  expect_failure(run_rlx("inspect - --profile", kDenseRows), 2, "--html");
  expect_failure(run_rlx("inspect - --html /nowhere/page.html", kDenseRows), 1, "/nowhere/page.html");
  CHECK(run_rlx("inspect - --html " + dir.file("open.html"), kDenseRows).status == 0);
}

TEST_CASE("rlx inspect --code: what the device gets, which need not be there") {
  const ProgramResult r = run_rlx("inspect - --bind rows=4 --device tpu --code", kDenseRows);
  if (r.status != 0) {  // a build without the backend
    CHECK_MESSAGE(contains(r.err, "device tpu has no device code"), r.err);
  } else {
    CHECK(r.out.starts_with("module @"));
    CHECK(contains(r.out, "func.func public @main(%0: tensor<4x2xf32>, %1: tensor<2x3xf32>)"));
    CHECK(contains(r.out, "stablehlo.dot_general"));
  }
  // Kernels for hardware and for rasterisers differ; one may ask for either without an adapter.
  const std::string wgsl = "inspect - --bind rows=4 --code --device vulkan,kernels=";
  const ProgramResult hard = run_rlx(wgsl + "hardware", kDenseRows), soft = run_rlx(wgsl + "software", kDenseRows);
  CHECK(contains(hard.out, "@compute"));
  CHECK(contains(soft.out, "@compute"));
  CHECK(hard.out != soft.out);
  const ProgramResult open = run_rlx("inspect - --device tpu --code", kDenseRows);
  CHECK(open.status == 2);
  CHECK_MESSAGE(contains(open.err, "device code needs values: --bind rows="), open.err);
  const ProgramResult none = run_rlx("inspect - --bind rows=4 --device cpu --code", kDenseRows);
  CHECK(none.status == 2);
  CHECK_MESSAGE(contains(none.err, "device cpu has no device code"), none.err);
}

TEST_CASE("rlx inspect: nothing given, open dimensions, unknown stages and devices, no model") {
  expect_failure(run_rlx("inspect"), 2, "--model DIR");
  expect_failure(run_rlx("inspect - --bind row=4", kDenseRows), 2, "it has 'rows'");
  expect_failure(run_rlx("inspect - --bind rows=65", kDenseRows), 2, "symbol 'rows' = 65 is outside [1, 64]");
  expect_failure(run_rlx("inspect - --bind rows=4 --bind rows=5", kDenseRows), 2, "dimension 'rows' is bound twice");
  expect_failure(run_rlx("inspect - --bind rows=99999999999999999999", kDenseRows), 2, "the dimension is too large");
  std::string undeclared = kDenseRows;
  undeclared.erase(undeclared.find("  symbol"), undeclared.find("  %0") - undeclared.find("  symbol"));
  expect_failure(run_rlx("inspect - --stage lir", undeclared), 2,
                 "this compile has no stage 'lir'\n  hint: the plan needs values: --bind rows=16");
  CHECK(run_rlx("inspect - --bind rows=4 --summary", undeclared).status == 0);
  expect_failure(run_rlx("inspect - --bind rows=4 --stage lirr", kDenseRows), 2, "did you mean 'lir'?");
  expect_failure(run_rlx("inspect - --bind rows=4 --device cpuu", kDenseRows), 2, "did you mean 'cpu'?");
  const TempDir empty;
  expect_failure(run_rlx("inspect --model " + empty.path()), 1, "config.json");
}

TEST_CASE("rlx inspect without values of the dimensions: everything but the plan, and how to get it") {
  std::string graph = kDenseRows;
  const std::size_t bounds = graph.find("[1, 64]");
  graph.replace(bounds, 7, "[1, 24] div 12");
  const ProgramResult r = run_rlx("inspect -", graph);
  CHECK(r.status == 0);
  for (const char* part : {"buffer plan: none, dimension 'rows' has no value; the plan needs values: --bind rows=12",
                           "== hir: ", "[rows, 3] f32", "== canonicalize-dots: ", "== fusion: ", "== dispatch: "})
    CHECK_MESSAGE(contains(r.out, part), "missing: ", part);
  CHECK(!contains(r.out, "== lir: "));
  CHECK(contains(run_rlx("inspect - --summary", graph).out, "--bind rows=12"));
  CHECK(run_rlx("inspect - --bind rows=12 --stage lir", graph).status == 0);
  CHECK(!contains(run_rlx("inspect - --list", graph).out, "== lir: "));
}

TEST_CASE("rlx inspect: a device that is not there is planned for by its preset, what runs says where to look") {
  const ProgramResult r = run_rlx("inspect - --bind rows=4 --device rocm", kDenseRows);
  CHECK(r.status == 0);
  for (const char* part : {"target: rocm (documented preset)\nthe device is not available, so this is only a plan: ",
                           "this version has no ROCm backend", "buffer plan", "== lir: "})
    CHECK_MESSAGE(contains(r.out, part), "missing: ", part);
  CHECK(run_rlx("inspect - --bind rows=4 --summary --device rocm:1", kDenseRows).status == 0);
  const ProgramResult run = run_rlx("bench --bind rows=4 --device rocm -", kDenseRows);
  CHECK(run.status == 1);
  CHECK(contains(run.err, "hint: pick one of those that `rlx devices` calls available"));
}

TEST_CASE("rlx inspect --model: the encoder of a model folder" * doctest::test_suite(kNeedsModel)) {
  if (model_dir().empty()) return skip("the all-MiniLM-L6-v2 model");
  const ProgramResult r = run_rlx("inspect --summary --batch 2 --seq 12 --model '" + model_dir() + "'");
  CHECK(r.status == 0);
  CHECK(contains(r.out, "sentence_encoder"));
  const TempDir dir;
  CHECK(run_rlx("inspect --batch 2 --seq 12 --save " + dir.file("encoder.rlx") + " --model '" + model_dir() + "'")
            .out.empty());
  const Graph g = parse_text(rlx::read_file(dir.file("encoder.rlx")));
  CHECK(g.shape(g.outputs().at(0)) == Shape({2, 384}, DType::F32));
}

TEST_CASE("RLX_TRACE: every command writes its timeline at its end; a place that cannot be written is a warning") {
  const TempDir dir;
  const std::string file = dir.file("run.json"), program = rlx_command();
  const ProgramResult r = run_shell("RLX_TRACE=" + file + " " + program + "bench - --bind rows=4 --runs 3", kDenseRows);
  CHECK(r.status == 0);
  const std::string trace = rlx::read_file(file);
  for (const char* part : {"\"traceEvents\"", "\"name\":\"compile\"", "\"name\":\"run\"", "\"cat\":\"step\"", "\n]}\n"})
    CHECK_MESSAGE(contains(trace, part), "missing: ", part);
  const ProgramResult bad = run_shell("RLX_TRACE=/nowhere/a.json " + program + "inspect - --list", kDenseRows);
  CHECK(bad.status == 0);
  CHECK(contains(bad.err, "warning: RLX_TRACE: "));
  CHECK(contains(bad.err, "/nowhere/a.json"));
  const ProgramResult full = run_shell("RLX_TRACE=/dev/full " + program + "inspect - --list", kDenseRows);
  CHECK(full.status == 0);
  CHECK(contains(full.err, "the trace cannot be written: cannot write \"/dev/full\""));
}
