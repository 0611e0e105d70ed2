// `rlx run` and `rlx opt`: results, files in and out, and what they say when something is wrong.
#include <doctest/doctest.h>

#include <filesystem>

#include "rlx/base/utf8.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/npy.h"
#include "rlx/formats/safetensors.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "tests/support/build_kind.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/values.h"

using namespace rlx;
using namespace rlx::test;

namespace {

const char* const kDense = R"(graph @dense {
  %0 = input() {name = "x"} : [2, 2] f32
  %1 = param() {name = "w"} : [2, 2] f32
  %2 = matmul(%0, %1) : [2, 2] f32
  %3 = relu(%2) : [2, 2] f32
  return %3, %2
}
)";

// A folder with graph.rlx, x.npy = {{1, 2}, {3, 4}} and w.npy = {{1, 0.5}, {-1, 0}}: x w = {{-1, 0.5}, {-1, 1.5}}.
struct Dense {
  TempDir dir;
  Dense() {
    write_file(dir.file("graph.rlx"), kDense);
    write_npy(dir.file("x.npy"), doubles({2, 2}, {1, 2, 3, 4}).cast(DType::F32));
    write_npy(dir.file("w.npy"), doubles({2, 2}, {1, 0.5, -1, 0}).cast(DType::F32));
  }
  std::string graph() const { return "run --oracle " + dir.file("graph.rlx") + " "; }
  std::string x() const { return "--input " + dir.file("x.npy") + " "; }
  std::string w() const { return "--param " + dir.file("w.npy") + " "; }
};

const char* const kPrinted = "out0: [2, 2] f32\n  0 0.5\n  0 1.5\nout1: [2, 2] f32\n  -1 0.5\n  -1 1.5\n";

}  // namespace

TEST_CASE("rlx run: prints its outputs; names, positions, weights and the binary form agree") {
  const Dense d;
  CHECK(run_rlx(d.graph() + d.x() + d.w()).out == kPrinted);
  CHECK(run_rlx(d.graph() + "--param w=" + d.dir.file("w.npy") + " --input x=" + d.dir.file("x.npy")).out == kPrinted);
  const std::vector<NamedTensor> weights{{"w", read_npy(d.dir.file("w.npy"))}, {"other", doubles({1}, {0})}};
  write_safetensors(d.dir.file("w.safetensors"), weights);
  CHECK(run_rlx(d.graph() + d.x() + "--weights " + d.dir.file("w.safetensors")).out == kPrinted);
  const std::vector<std::byte> bytes = to_bytes(parse_text(kDense));
  write_file(d.dir.file("graph.bin"), std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  CHECK(run_rlx("run --oracle " + d.dir.file("graph.bin") + " " + d.x() + d.w()).out == kPrinted);
  CHECK(run_rlx("run --oracle - " + d.x() + d.w(), kDense).out == kPrinted);
}

TEST_CASE("rlx run: npy and npz outputs, F64") {
  const Dense d;
  const std::string y = d.dir.file("y.npy"), all = d.dir.file("all.npz");
  const ProgramResult r = run_rlx(d.graph() + d.x() + d.w() + "--output " + y);
  CHECK(r.status == 0);
  CHECK(r.out.empty());
  expect_close(read_npy(y), {0, 0.5, 0, 1.5}, 0);
  CHECK(run_rlx(d.graph() + d.x() + d.w() + "--f64 --output " + all).status == 0);
  const std::vector<NamedTensor> both = read_npz(all);
  REQUIRE(both.size() == 2);
  CHECK(both[1].name == "out1");
  CHECK(both[1].tensor.dtype() == DType::F64);
  expect_close(both[1].tensor, {-1, 0.5, -1, 1.5}, 0);
  CHECK(contains(run_rlx(d.graph() + d.x() + d.w() + "--print --max-values 1 --output " + y).out, "-1 ... (3 more)"));
}

TEST_CASE("rlx run: an option that is spelt wrong is named with the nearest one") {
  expect_failure(run_rlx("run --max_values 3 x.rlx"), 2, "did you mean '--max-values'? `rlx run --help` lists");
  expect_failure(run_rlx("run x.rlx --outputs=y.npy"), 2, "did you mean '--output'? `rlx run --help` lists");
  expect_failure(run_rlx("generate m --top_p 0.5"), 2, "did you mean '--top-p'? `rlx generate --help` lists");
  expect_failure(run_rlx("run x.rlx --frobnicate"), 2, "hint: `rlx run --help` lists");
}

TEST_CASE("rlx run: --nan-check and --inf-check name the op where a NaN or an infinity begins") {
  const TempDir dir;
  const std::string graph = dir.file("log.rlx"), x = " --input " + dir.file("x.npy");
  write_file(graph, R"(graph @log {
  %0 = input() {name = "x"} : [3] f32
  %1 = log(%0) : [3] f32
  %2 = mul(%1, %1) : [3] f32
  return %2
}
)");
  write_npy(dir.file("x.npy"), doubles({3}, {1, 0, -1}).cast(DType::F32));
  CHECK(run_rlx("run " + graph + x).out == "out0: [3] f32\n  0 inf nan\n");
  for (const char* device : {"cpu", "reference"}) {
    const std::string run = concat_text("run -d ", device, " ", graph, x);
    const ProgramResult r = run_rlx(run + " --nan-check");
    expect_failure(r, 1, "log(-1) gives nan in element [2] of [3] f32, which reaches output 'out0'");
    CHECK(contains(r.err, "%1 = log(%0)"));
    expect_failure(run_rlx(run + " --inf-check"), 1, "log(0) gives -inf in element [1] of [3] f32");
  }
  expect_failure(run_rlx("run --oracle --nan-check " + graph + x), 2, "--oracle");
}

TEST_CASE("rlx run: the values states are left with are results too") {
  const TempDir dir;
  const std::string graph = dir.file("count.rlx"), total = dir.file("total.npy"), all = dir.file("all.npz");
  write_file(graph, R"(graph @count {
  %0 = input() {name = "x"} : [2] f32
  %1 = state() {name = "total", init = [2] f32 {1, 2}} : [2] f32
  %2 = add(%1, %0) : [2] f32
  set_state "total" %2
  return %1
}
)");
  write_npy(dir.file("x.npy"), doubles({2}, {10, 20}).cast(DType::F32));
  const char* const printed = "out0: [2] f32\n  1 2\nstate total: [2] f32\n  11 22\n";
  for (const char* how : {"--oracle ", "--device reference ", "--device cpu "}) {
    CAPTURE(how);
    const std::string command = concat_text("run ", how, graph, " --input ", dir.file("x.npy"), " ");
    CHECK(run_rlx(command).out == printed);
    CHECK(run_rlx(command + "-o total=" + total).out.empty());
    expect_close(read_npy(total), {11, 22}, 0);
    CHECK(run_rlx(command + "-o " + all).status == 0);
    const std::vector<NamedTensor> both = read_npz(all);
    REQUIRE(both.size() == 2);
    CHECK(both[1].name == "state.total");
    expect_close(both[1].tensor, {11, 22}, 0);
    expect_failure(run_rlx(command + "-o totl=" + total), 2, "did you mean 'total'?");
  }
}

TEST_CASE("rlx run: two results in one file are refused, both named") {
  const Dense d;
  const std::string y = d.dir.file("y.npy"), same = d.dir.path() + "/./y.npy";
  expect_failure(run_rlx(d.graph() + d.x() + d.w() + "-o " + y + " -o " + same), 2,
                 "--output: out0 and out1 would both go to '" + same + "'");
  CHECK(!has_file(y));
  CHECK(run_rlx(d.graph() + d.x() + d.w() + "-o /dev/null -o /dev/null").status == 0);
  const std::string count = d.dir.write("count.rlx", R"(graph @count {
  %0 = state() {name = "n", init = [1] f32 {1}} : [1] f32
  %1 = add(%0, %0) : [1] f32
  set_state "n" %1
  return %0
}
)");
  expect_failure(run_rlx("run --oracle " + count + " -o " + y + " -o n=" + y), 2, "out0 and state 'n' would both");
}

TEST_CASE("rlx run: a dtype that would round is refused unless asked for") {
  const Dense d;
  write_npy(d.dir.file("x.npy"), doubles({2, 2}, {1, 2, 3, 4}));
  expect_failure(run_rlx(d.graph() + d.x() + d.w()), 1, "--cast");
  CHECK(run_rlx(d.graph() + d.x() + d.w() + "--cast").out == kPrinted);
  CHECK(run_rlx(d.graph() + d.x() + d.w() + "--f64").status == 0);
}

TEST_CASE("rlx run: missing, unknown, doubled and misshapen values") {
  const Dense d;
  expect_failure(run_rlx(d.graph() + d.x()), 2, "param 'w' [2, 2] f32 has no value");
  expect_failure(run_rlx(d.graph() + d.w()), 2, "give --input x=FILE.npy");
  expect_failure(run_rlx(d.graph() + d.w() + "--input xs=" + d.dir.file("x.npy")), 2, "did you mean 'x'?");
  expect_failure(run_rlx(d.graph() + d.x() + d.x() + d.w()), 2, "bound already");
  expect_failure(run_rlx(d.graph() + d.x() + d.w() + "--param w=" + d.dir.file("w.npy")), 2, "twice");
  expect_failure(run_rlx(d.graph() + d.w() + "--input " + d.dir.file("none.npy")), 1, "none.npy");
  write_npy(d.dir.file("x.npy"), doubles({3}, {1, 2, 3}).cast(DType::F32));
  expect_failure(run_rlx(d.graph() + d.x() + d.w()), 1, "'x'");
  expect_failure(run_rlx(d.graph() + d.w() + "--input x="), 2, "'x=' has no file name");
  expect_failure(run_rlx("run --oracle --device cpu x.rlx"), 2, "--oracle");
  expect_failure(run_rlx("run " + d.dir.file("graph.rlx") + " --device gpx " + d.x() + d.w()), 2,
                 "there is no device 'gpx'");
}

TEST_CASE("rlx run: a missing weight, no results, no memory") {
  const Dense d;
  const auto with_weights = [&](const char* name) {
    write_safetensors(d.dir.file("w.safetensors"), std::vector<NamedTensor>{{name, doubles({2, 2}, {1, 2, 3, 4})}});
    return run_rlx(d.graph() + d.x() + "--weights " + d.dir.file("w.safetensors"));
  };
  expect_failure(with_weights("W"), 1, "has no tensor \"w\"\n  hint: did you mean 'W'?");
  expect_failure(with_weights("bias"), 1,
                 "has no tensor \"w\"\n  hint: no name is similar; the file has 1 tensor: 'bias'");
  expect_failure(with_weights("w1"), 1, "did you mean 'w1'?");
  for (const char* how : {"--oracle ", "--device cpu "}) {
    CAPTURE(how);
    const std::string run = concat_text("run ", how, "- --input ", d.dir.file("x.npy"));
    expect_failure(run_rlx(run, "graph @nothing {\n  %0 = input() {name = \"x\"} : [2, 2] f32\n}\n"), 1,
                   "graph 'nothing' has neither outputs nor states");
#if !defined(RLX_ADDRESS_SANITIZER) && !defined(RLX_THREAD_SANITIZER)  // their allocators end the program
    const ProgramResult r = run_rlx(run, R"(graph @vast {
  %0 = input() {name = "x"} : [2, 2] f32
  %1 = expand(%0) : [17592186044416, 2, 2] f32
  %2 = relu(%1) : [17592186044416, 2, 2] f32
  return %2
}
)");
    expect_failure(r, 1, "out of memory: graph 'vast': there is no memory for ");
    CHECK(contains(r.err, "281474976710656 bytes"));
#endif
  }
}

TEST_CASE("rlx run: malformed graphs are refused with their place") {
  const TempDir dir;
  write_file(dir.file("bad.rlx"),
             "graph @g {\n  %0 = input() {name = \"x\"} : [2] f32\n  %1 = gelo(%0) : [2] f32\n  return %1\n}\n");
  expect_failure(run_rlx("run --oracle " + dir.file("bad.rlx")), 1, "bad.rlx:3:");
  write_file(dir.file("large.rlx"),
             "graph @g {\n  %0 = input() {name = \"x\"} : [99999999999999999999, 2] f32\n  return %0\n}\n");
  expect_failure(run_rlx("run --oracle " + dir.file("large.rlx")), 1,
                 "the dimension '99999999999999999999' is too large");
  write_file(dir.file("cut.bin"), "RLXGRAPH\x01");
  expect_failure(run_rlx("run --oracle " + dir.file("cut.bin")), 1, "cut.bin");
  // No byte of a binary file reaches the terminal as it is, and not much of it as text.
  std::string bytes;
  for (int i = 0; i < 4000; ++i) bytes += static_cast<char>((i * 37 + 1) % 255 + 1);
  write_file(dir.file("image"), bytes);
  write_file(dir.file("zeros"), bytes + std::string(1, '\0'));
  for (const char* name : {"image", "zeros"}) {
    const ProgramResult r = run_rlx("run --oracle " + dir.file(name));
    expect_failure(r, 1, name);
    CHECK(r.err.size() < 500);
    for (char c : r.err) CHECK((c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)));
    CHECK_FALSE(find_invalid_utf8(r.err));
  }
  expect_failure(run_rlx("run --oracle " + dir.file("none.rlx")), 1, "none.rlx");
  expect_failure(run_rlx("run --oracle " + dir.path()), 1, "is a folder");
  expect_failure(run_rlx("run --oracle /dev/zero"), 1, "is a device file, which may never end");
  std::filesystem::create_symlink("loop", dir.path() + "/loop");
  expect_failure(run_rlx("run --oracle " + dir.path() + "/loop"), 1, "cannot read");
}

TEST_CASE("rlx opt: runs passes in order, prints text that parses back") {
  const Dense d;
  const std::string file = d.dir.file("graph.rlx");
  const ProgramResult r = run_rlx("opt --pass canonicalize-dots,eliminate-dead-code " + file);
  CHECK(r.status == 0);
  CHECK(contains(r.out, "dot_general(%0, %1) {lhs_contract = [1], rhs_contract = [0]}"));
  CHECK(parse_text(r.out).num_nodes() == 4);
  CHECK(contains(run_rlx("opt --pass canonicalize-dots --diff " + file).out, "matmul -1"));
  CHECK(run_rlx("opt --pass canonicalize-dots - -o " + d.dir.file("out.rlx"), kDense).out.empty());
  CHECK(print_text(parse_text(rlx::test::read_file(d.dir.file("out.rlx")))) ==
        run_rlx("opt -p canonicalize-dots " + file).out);
  CHECK(contains(run_rlx("opt --list").out, "eliminate-dead-code"));
}

TEST_CASE("rlx opt without --pass: what a compile for the target makes, printed") {
  const Dense d;
  const std::string file = d.dir.file("graph.rlx");
  const ProgramResult cpu = run_rlx("opt " + file), reference = run_rlx("opt --target reference " + file);
  CHECK(cpu.status == 0);
  CHECK(cpu.err.empty());
  CHECK_MESSAGE(contains(cpu.out, "dot_general(%0, %1)"), cpu.out);
  CHECK(contains(cpu.out, "relu"));
  CHECK(!contains(cpu.out, " matmul("));
  CHECK(parse_text(cpu.out).outputs().size() == 2);
  CHECK(run_rlx("opt --target cpu " + file).out == cpu.out);
  CHECK(parse_text(reference.out).outputs().size() == 2);
  // A device that is not there: its preset, as for inspect.
  for (const char* passes : {"", "--pass all "}) {
    const ProgramResult absent = run_rlx(concat_text("opt ", passes, "--target cuda:1 ", file));
    CHECK(absent.status == 0);
    CHECK(parse_text(absent.out).outputs().size() == 2);
    CHECK(contains(absent.err, "note: the target is cuda (documented preset), since the device is not available: "));
  }
  expect_failure(run_rlx("opt --target cudaa " + file), 2, "there is no device 'cudaa'");
  CHECK(contains(run_rlx("opt --help").out, "available or not"));
  CHECK(contains(run_rlx("opt --report --diff " + file).err, "missed matmul_bias_act"));
}

TEST_CASE("rlx opt: unknown passes, symbols and missing arguments") {
  const Dense d;
  const std::string file = d.dir.file("graph.rlx");
  expect_failure(run_rlx("opt --pass canonicalise-dots " + file), 2, "did you mean 'canonicalize-dots'?");
  expect_failure(run_rlx("opt --pass all"), 2, "no graph file is given");
  expect_failure(run_rlx("opt --pass all --bind seq=4 " + file), 2, "no symbol 'seq'");
  expect_failure(run_rlx("opt --pass all --bind seq " + file), 2, "batch=8");
}
