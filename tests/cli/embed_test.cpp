// `rlx embed`, `rlx search`: what they print, and what they say when something is wrong.
#include <doctest/doctest.h>

#include <cctype>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <sstream>

#include "rlx/formats/json.h"
#include "rlx/formats/npy.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/paths.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

using namespace rlx;
using namespace rlx::test;

namespace {

const char* const kThree = "The weather is lovely today.\nIt's so sunny outside!\nHe drove to the stadium.\n";

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string model_option() { return " --model '" + model_dir() + "' "; }

}  // namespace

TEST_CASE("rlx: the texts of all options begin with a capital letter or a digit") {
  std::size_t texts = 0;
  const auto check = [&](const std::string& command) {
    const std::string help = run_rlx(command + "--help").out;
    for (const std::string& line : lines_of(help)) {
      constexpr std::size_t kColumn = 30;  // where CLI11 puts the texts of options and commands
      // A longer name has its text on the next line, and words of its own around this column.
      if (line.size() <= kColumn || line.compare(kColumn - 2, 2, "  ") != 0 || !line.starts_with("  ")) continue;
      const unsigned char first = static_cast<unsigned char>(line[kColumn]);
      if (first == ' ') continue;
      CAPTURE(line);
      CHECK((std::isupper(first) || std::isdigit(first)));
      ++texts;
    }
    return help;
  };
  for (const std::string& line : lines_of(check("")))
    if (line.starts_with("  ") && std::islower(static_cast<unsigned char>(line[2])))
      check(line.substr(2, line.find(' ', 2) - 2) + " ");
  CHECK(texts > 100);
}

TEST_CASE("rlx: version, help, wrong commands") {
  CHECK(run_rlx("--version").out.rfind("rlx ", 0) == 0);
  CHECK(contains(run_rlx("--help").out, "embed"));
  for (const char* command : {"", "embed", "search", "bench", "devices", "run", "opt", "inspect", "ops"})
    CHECK(contains(run_rlx(std::string(command) + " --help").out, "Exit status: 0 done, 1 the work failed"));
  expect_failure(run_rlx(""), 2, "embed");
  expect_failure(run_rlx("embedd"), 2, "did you mean 'embed'?");
  expect_failure(run_rlx("embed"), 2, "--model is required");
  expect_failure(run_rlx("embed --model . --batch 0"), 2, "--batch");
  expect_failure(run_rlx("embed --model . --format xml"), 2, "--format");
}

TEST_CASE("rlx embed: a folder without a model, no text, text that is not UTF-8, an output that cannot be written") {
  const TempDir empty;
  expect_failure(run_rlx("embed --text x --model " + empty.path()), 1, "config.json");
  expect_failure(run_rlx("embed --model " + empty.path()), 1, "there is no text");
  expect_failure(run_rlx("embed --model . --file " + empty.file("none.txt")), 1, "none.txt");
  expect_failure(run_rlx("embed --model . --file " + empty.path()), 1, "is a folder");
  const TinyModel model;
  const std::string with = "embed --model " + model.path() + " --text a -o ";
  expect_failure(run_rlx(with + empty.file("no/such/folder")), 1, "cannot write \"" + empty.file("no/such/folder"));
  expect_failure(run_rlx(with + empty.path()), 1, "Is a directory");
  expect_failure(run_rlx("embed --model .", "good\nbad \xff\n"), 1, "standard input:2: invalid UTF-8 at byte 4 of 5");
}

TEST_CASE("every command that takes a device hints at `rlx devices`, not at a call") {
  const TinyModel model;
  const TempDir dir;
  const std::string graph = dir.write("g.rlx", R"(graph @g {
  %0 = state() {name = "n", init = [1] f32 {1}} : [1] f32
  return %0
}
)");
  const std::string at = " --model " + model.path() + " --device rocm", lines = model.write("lines.txt", "a b\nc\n");
  for (const std::string& command : {"embed --text a" + at, "search a " + lines + at, "run --device rocm " + graph,
                                     "bench --device rocm " + graph}) {
    const ProgramResult r = run_rlx(command);
    CAPTURE(command);
    CHECK_MESSAGE(contains(r.err, "hint: pick one of those that `rlx devices` calls available"), r.err);
    CHECK(!contains(r.err, "rlx::"));
  }
}

TEST_CASE("rlx embed: a failure leaves an old output as it was, and the output may be the input") {
  const TinyModel model;
  const std::string with = " --model " + model.path() + " ", lines = model.write("lines.txt", "a b\nc\n"),
                    to_lines = " -o " + lines;
  expect_failure(run_rlx("embed --text ''" + with + to_lines), 1, "--text 1: the text is empty");
  expect_failure(run_rlx("embed --text a --model " + model.file("none") + to_lines), 1, "none\" does not exist");
  CHECK(rlx::test::read_file(lines) == "a b\nc\n");
  const ProgramResult to_terminal = run_rlx("embed --format text --file " + lines + with);
  CHECK(run_rlx("embed --format text --file " + lines + with + to_lines).status == 0);
  CHECK(rlx::test::read_file(lines) == to_terminal.out);
}

TEST_CASE("rlx embed: a limit of the file size or a signal leaves an old output as it was and nothing beside it") {
  const TinyModel model;
  const std::string out = model.write("out/vectors.json", "old"), folder = model.file("out");
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += "a b c\n";
  const std::string embed = "embed --model " + model.path() + " -o " + out;
  auto expect_old = [&] {
    CHECK(rlx::test::read_file(out) == "old");
    CHECK(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()) == 1);
  };
  const std::string limited = "ulimit -f 1; " + rlx_command() + embed + " --file " + model.write("lines.txt", lines);
  expect_failure(run_shell(limited), 1, "vectors.json\": File too large");
  expect_old();
  // It waits for texts that never come, with its output begun.
  const std::string pipe = model.file("pipe");
  const ProgramResult ended = run_shell(concat_text(
      "mkfifo ", pipe, "; exec 9<>", pipe, "; ", rlx_command(), embed, " --file ", pipe, " & i=0; until ls ", folder,
      "/.rlx-* >/dev/null 2>&1 || [ $i = 200 ]; do sleep 0.05; i=$((i+1)); done; ls ", folder,
      "/.rlx-*; kill -TERM $!; wait $!"));
  CHECK(ended.status == 128 + SIGTERM);
  CHECK(contains(ended.out, "/.rlx-"));
  expect_old();
}

TEST_CASE("rlx: the standard output is full, or numbers are out of range: one short message") {
  const TinyModel model;
  const std::string with = " --model " + model.path() + " ";
  for (const std::string& command : {std::string("--help"), std::string("ops"), std::string("devices"),
                                     "embed --text a" + with, "bench --shapes 1x4 --runs 1 --seconds 0.01" + with}) {
    CAPTURE(command);
    expect_failure(run_rlx(command + " > /dev/full"), 1, "cannot write the standard output: No space left on device");
  }
  for (const std::string& command :
       {std::string("run x.rlx --threads 1000000"), std::string("run x.rlx --max-values -1"),
        std::string("run x.rlx --threads 65"), "embed --threads 65" + with, "bench --threads 65" + with,
        "bench --threads -1" + with, "bench --runs 0" + with, "bench --seconds -1" + with, "inspect --seq 0" + with,
        "embed --max-tokens 99999999999" + with}) {
    CAPTURE(command);
    const ProgramResult r = run_rlx(command);
    expect_failure(r, 2, "not in range");
    CHECK(r.err.size() < 200);
  }
  expect_failure(run_rlx("inspect x.rlx --batch 4"), 2, "--batch requires --model");
  expect_failure(run_rlx("bench --seconds nan" + with), 2, "--seconds is not a number");
  expect_failure(run_rlx("ops --op ''"), 2, "there is no op ''");
}

TEST_CASE("rlx bench: any graph file, a header, three quantiles, JSON") {
  const TempDir dir;
  const std::string graph = dir.write("g.rlx", R"(graph @dense {
  symbol rows [1, 64]
  %0 = input() {name = "x"} : [rows, 2] f32
  %1 = param() {name = "w"} : [2, 3] f32
  %2 = matmul(%0, %1) : [rows, 3] f32
  return %2
}
)");
  const std::string quick = " --runs 3 --seconds 0.01 --threads 1 ";
  REQUIRE(run_rlx("opt --pass canonicalize-dots --binary -o " + dir.file("g.bin") + " " + graph).status == 0);
  write_npy(dir.file("w.npy"), Tensor::zeros(Shape({2, 3}, DType::F32)));
  for (const std::string& args : {"bench " + graph, "bench " + dir.file("g.bin"), "bench -w none " + graph}) {
    CAPTURE(args);
    const ProgramResult r = run_rlx(args + " --bind rows=4" + quick + "--param " + dir.file("w.npy"));
    if (contains(args, "none")) {
      expect_failure(r, 1, "none");
      continue;
    }
    CHECK(r.status == 0);
    for (const char* part : {"rlx ", " CPU", "1 thread)", "graph dense", "1 of 2 inputs and params with made-up values",
                             "p50 ", "p10 ", "p90 ", "arena "})
      CHECK_MESSAGE(contains(r.out, part), part, " is missing in ", r.out);
  }
  const ProgramResult json = run_rlx("bench --json --breakdown --bind rows=4" + quick + graph);
  const JsonDocument row = JsonDocument::parse(json.out, "row");
  CHECK(row.root_object().get_string("bench") == "graph");
  CHECK(row.root_object().get_int("threads") == 1);
  CHECK(row.root_object().get_string("matmul_precision") == "exact");
  const double p10 = row.root_object().get_number("p10_us"), p50 = row.root_object().get_number("p50_us"),
               p90 = row.root_object().get_number("p90_us");
  CHECK((0 < p10 && p10 <= p50 && p50 <= p90));
  CHECK(contains(run_rlx("bench --breakdown --bind rows=4" + quick + graph).out, "roofline %"));
  // The kernels are in the JSON too, with what the machine can do.
  const JsonValue kernels = row.root_object().at("breakdown");
  REQUIRE(kernels.elements("breakdown").size() > 0);
  for (const JsonValue& kernel : kernels.elements("breakdown")) {
    CHECK(!kernel.get_string("op").empty());
    CHECK(kernel.get_int("nodes") > 0);
    CHECK(kernel.get_number("us") > 0);
    CHECK(kernel.get_number("floor_us") >= 0);
  }
  CHECK(row.root_object().at("limits").get_number("gflop_per_s") > 0);
  CHECK(!contains(run_rlx("bench --json --bind rows=4" + quick + graph).out, "breakdown"));
  expect_failure(
      run_rlx("bench " + graph), 2,
      "dimension 'rows' has no value\n  hint: choose values, for example: rlx bench " + graph + " --bind rows=16");
  // The shape of a file is as good as --bind.
  write_npy(dir.file("x.npy"), Tensor::zeros(Shape({5, 2}, DType::F32)));
  CHECK(run_rlx("bench --input " + dir.file("x.npy") + quick + graph).status == 0);
  expect_failure(run_rlx("bench --bind rows=4 --input " + dir.file("x.npy") + quick + graph), 1, "got [5, 2]");
  CHECK(contains(run_rlx("bench --matmul-precision bf16 --bind rows=4" + quick + graph).out,
                 ", bf16 matmuls where kernels for them exist, graph dense"));
  const ProgramResult old = run_rlx("bench --products=bf16 --bind rows=4" + quick + graph);
  CHECK(contains(old.out, ", bf16 matmuls"));
  CHECK(old.err == "rlx: --products is now --matmul-precision; the old name goes with the next release\n");
  expect_failure(run_rlx("bench --matmul-precision 2 --bind rows=4 " + graph), 2, "2 not in {exact,bf16,int8}");
  CHECK(contains(run_rlx("bench --help").out, "{exact,bf16,int8}"));
  expect_failure(run_rlx("bench --isa avx3 --bind rows=4 " + graph), 2, "unknown instruction set 'avx3'");
  // A symbol that the graph itself computes needs no value.
  const std::string counted = dir.write("counted.rlx", R"(graph @counted {
  symbol n [0, 8]
  %0 = input() {name = "x"} : [2, 2] f32
  %1 = constant() {value = [] i64 {3}} : [] i64
  %2 = reduce_sum(%0) {axes = [0, 1]}
  %3 = cast(%2) : [] i64
  %4 = mul(%3, %1)
  %5 = iota() {axis = 0} : [n] f32
  return %5
  set_symbol n %4
}
)");
  write_npy(dir.file("half.npy"), Tensor::full(Shape({2, 2}, DType::F32), 0.5));
  const ProgramResult computed = run_rlx("bench --input " + dir.file("half.npy") + quick + counted);
  CHECK_MESSAGE(computed.status == 0, computed.err);
  CHECK(contains(computed.out, "graph counted"));
  expect_failure(run_rlx("bench --bind rows=65 " + graph), 2, "symbol 'rows' = 65 is outside [1, 64]");
  expect_failure(run_rlx("bench"), 2, "give either a graph file or --model DIR");
  expect_failure(run_rlx("bench --shapes 1x4 " + graph), 2, "--shapes requires --model");
}

TEST_CASE("rlx bench: shapes and weights that cannot be") {
  const TinyModel model;
  const std::string command = "bench --seconds 0.01 --model " + model.path() + " --shapes ";
  expect_failure(run_rlx(command + "1x4,1x"), 2, "'1x' is not a shape");
#if !defined(RLX_ADDRESS_SANITIZER) && !defined(RLX_THREAD_SANITIZER)  // their allocators end the program
  const ProgramResult r = run_rlx(command + "99999999999x6");
  CHECK(r.status == 1);
  CHECK(contains(r.err, "there is no memory for the values of a run ("));
#endif
  std::vector<NamedTensor> weights = TinyModel::tensors();
  weights[1].tensor = Tensor::zeros(Shape({4, 4}, DType::F32));
  model.write_weights(weights);
  expect_failure(run_rlx(command + "1x4"), 1,
                 "model.safetensors: tensor '" + weights[1].name + "' is [4, 4] f32 in the file");
}

TEST_CASE("rlx embed: an empty or damaged text is named by its file and line, or as which --text it is") {
  const TempDir dir;
  const std::string a = dir.write("a.txt", "one\ntwo\n"), none = dir.write("none.txt", ""),
                    b = dir.write("b.txt", "three\n\nfive\n"), c = dir.write("c.txt", "four\nfive\nsix \xc3\n");
  const std::string files = "embed --model . --file " + a + " --file " + none + " --file ";
  expect_failure(run_rlx(files + b), 1, "b.txt:2: the text is empty\n  hint: --skip-empty leaves such texts out");
  expect_failure(run_rlx(files + c), 1, "c.txt:3: invalid UTF-8 at byte 4 of 5");
  expect_failure(run_rlx("embed --model . --text one --text ' ' --file " + a), 1, "--text 2: the text is empty");
  expect_failure(run_rlx("embed --model . --file -", "one\n \t\n"), 1, "standard input:2: the text is empty");
  expect_failure(run_rlx("embed --model . --pairs --text one"), 2, "--pairs compares texts");
}

TEST_CASE("rlx embed: empty texts are left out or get zeros when asked for, and are counted") {
  const TinyModel model;
  // A zero-width space is no white space, and no token.
  const std::string lines = model.write("lines.txt", "a b\n\nb\n \t\n\xe2\x80\x8b\nc\n"),
                    dense = model.write("dense.txt", "a b\nb\nc\n");
  const std::string with = " --format text --model " + model.path() + " --file ";
  expect_failure(run_rlx("embed" + with + lines), 1, "lines.txt:2: the text is empty");
  const std::string rows = run_rlx("embed" + with + dense).out;
  const ProgramResult skipped = run_rlx("embed --skip-empty" + with + lines);
  CHECK(skipped.status == 0);
  CHECK(skipped.out == rows);
  CHECK(contains(skipped.err, "note: 3 empty texts left out, the first is " + lines + ":2\n"));
  const ProgramResult zeros = run_rlx("embed --zero-empty" + with + lines);
  CHECK(zeros.status == 0);
  CHECK(contains(zeros.err, "note: 3 empty texts with a vector of zeros, the first is " + lines + ":2\n"));
  const std::vector<std::string> all = [&] {
    std::vector<std::string> out;
    for (std::size_t at = 0, end = 0; (end = rows.find('\n', at)) != std::string::npos; at = end + 1)
      out.push_back(rows.substr(at, end + 1 - at));
    return out;
  }();
  REQUIRE(all.size() == 3);
  const std::string none = "0 0 0 0\n";
  CHECK(zeros.out == all[0] + none + all[1] + none + none + all[2]);
  CHECK(run_rlx("embed --skip-empty" + with + dense).err.empty());
  expect_failure(run_rlx("embed --skip-empty --zero-empty" + with + dense), 2, "excludes");
  expect_failure(run_rlx("embed --skip-empty --text '' --model " + model.path()), 1, "there is no text to embed");
  // Names of later texts are those of the file, not of what is left.
  CHECK(contains(run_rlx("embed --skip-empty --max-tokens 3" + with + model.write("long.txt", "\na\n\na b c\n")).err,
                 "long.txt:4 has 5 tokens"));
}

TEST_CASE("rlx search: files that are no text are left out with a note, gzip is read") {
  const TinyModel model;
  const std::string text = model.write("text.txt", "a b\nc\n"), packed = model.file("packed.gz"),
                    with = " --model " + model.path() + " --top 1 ";
  REQUIRE(run_shell("printf 'b\n' | gzip -n >" + packed + "; printf 'c c\n' | gzip -n >>" + packed).status == 0);
  const std::string binary = model.write("binary", std::string_view("\x7f"
                                                                    "ELF\0\0",
                                                                    6)),
                    cut = model.write("cut.gz", test::read_file(packed).substr(0, 15)),
                    xz = model.write("x.xz",
                                     "\xfd"
                                     "7zXZ data"),
                    latin = model.write("latin.txt", "a\ncaf\xe9\n");
  const ProgramResult r = run_rlx("search b " + binary + " " + text + " " + cut + " " + packed + " " + xz + " " +
                                  latin + with);
  CHECK(r.status == 0);
  CHECK(contains(r.out, packed + ":1  b\n"));
  for (const std::string& note :
       {binary + ": a binary file", cut + ": the compressed data ends too early", xz + ": compressed with xz",
        latin + ":2: not valid UTF-8"})
    CHECK_MESSAGE(contains(r.err, "note: left out: " + note + "\n"), r.err);
  expect_failure(run_rlx("search b " + binary + with), 1, binary + ": a binary file");
  expect_failure(run_rlx("search b " + text + " " + model.file("none") + with), 1, "none");
  // Lines to embed may be compressed as well.
  CHECK(run_rlx("embed --format text --model " + model.path() + " --file " + packed).out ==
        run_rlx("embed --format text --model " + model.path(), "b\nc c\n").out);
}

TEST_CASE("rlx embed, rlx search: weights that are not numbers give no result in any format") {
  const TinyModel model;
  const std::string with = " --model " + model.path() + " ", lines = model.write("lines.txt", "a b\n\nb\n\n\na c\n");
  CHECK(run_rlx("search b " + lines + with).status == 0);  // blank lines separate
  expect_failure(run_rlx("search '' " + lines + with), 1, "the query is empty");
  std::vector<NamedTensor> weights = TinyModel::tensors();
  weights[0].tensor.set(7 * 4, std::numeric_limits<double>::quiet_NaN());  // the word embedding of "c"
  model.write_weights(weights);
  CHECK(run_rlx("embed --text a --text b" + with).status == 0);
  for (const char* how : {"--format json", "--format npy -o /dev/null", "--format text", "--pairs"}) {
    CAPTURE(how);
    const ProgramResult r = run_rlx(std::string("embed --text a --text 'b c' ") + how + with);
    CHECK(r.status == 1);
    CHECK(contains(r.err, "--text 2: element "));
    CHECK(contains(r.err, "of its vector is nan"));
    CHECK(contains(r.err, model.file("model.safetensors")));
  }
  expect_failure(run_rlx("search b " + lines + with), 1, "lines.txt:6: element ");
  expect_failure(run_rlx("search c " + lines + with), 1, "the query: element ");
}

TEST_CASE("rlx embed: pairs" * doctest::test_suite(kNeedsModel)) {
  if (model_dir().empty()) return skip("the all-MiniLM-L6-v2 model");
  const ProgramResult r = run_rlx("embed --pairs" + model_option(), kThree);
  CHECK(r.status == 0);
  CHECK(r.err.empty());
  CHECK(contains(r.out, " 0.6660  The weather is lovely today.  |  It's so sunny outside!\n"));
  CHECK(contains(r.out, " 0.1046  The weather is lovely today.  |  He drove to the stadium.\n"));
  CHECK(contains(r.out, " 0.1411  It's so sunny outside!  |  He drove to the stadium.\n"));
}

TEST_CASE("rlx embed: json, npy and text hold the same numbers, in the order of the texts" *
          doctest::test_suite(kNeedsModel)) {
  if (model_dir().empty()) return skip("the all-MiniLM-L6-v2 model");
  const TempDir dir;
  const std::string lines = dir.write("lines.txt", "a much longer line comes first in its batch\r\nshort\r\n");
  const std::string npy = dir.file("out.npy");
  REQUIRE(run_rlx("embed --format npy -o " + npy + " --file " + lines + model_option()).status == 0);
  const Tensor y = read_npy(npy);
  CHECK(y.dtype() == DType::F32);
  REQUIRE(y.dims() == std::vector<std::int64_t>{2, 384});
  const ProgramResult json = run_rlx("embed --file " + lines + model_option());
  REQUIRE(json.status == 0);
  const Tensor alone = [&] {
    REQUIRE(run_rlx("embed --format npy --text short -o " + npy + model_option()).status == 0);
    return read_npy(npy);
  }();
  for (std::int64_t i = 0; i < 384; ++i) CHECK(std::fabs(alone.at(i) - y.at(384 + i)) < 1e-6);
  const ProgramResult text = run_rlx("embed --format text --file " + lines + model_option());
  std::string numbers = json.out;
  for (char& c : numbers)
    if (c == '[' || c == ']' || c == ',') c = ' ';
  const char *a = numbers.c_str(), *b = text.out.c_str();
  for (std::int64_t i = 0; i < 2 * 384; ++i) {
    char *a_end = nullptr, *b_end = nullptr;
    const float from_json = std::strtof(a, &a_end), from_text = std::strtof(b, &b_end);
    REQUIRE(a_end != a);
    REQUIRE(b_end != b);
    REQUIRE(from_json == static_cast<float>(y.at(i)));
    REQUIRE(from_text == from_json);
    a = a_end;
    b = b_end;
  }
}

TEST_CASE("rlx embed: a cut text is announced on the standard error" * doctest::test_suite(kNeedsModel)) {
  if (model_dir().empty()) return skip("the all-MiniLM-L6-v2 model");
  const ProgramResult r = run_rlx("embed --max-tokens 5 --text 'one two three four five'" + model_option());
  CHECK(r.status == 0);
  CHECK(contains(r.err, "note: "));
  CHECK(contains(r.err, "--text 1 has 7 tokens"));
}

TEST_CASE("rlx search: the best line, its place, paragraphs" * doctest::test_suite(kNeedsModel)) {
  if (model_dir().empty()) return skip("the all-MiniLM-L6-v2 model");
  const TempDir dir;
  const std::string file = dir.write(
      "notes.txt", "The cat sleeps on the sofa.\n\nBread is baked\nin a hot oven.\n\nThe train leaves at noon.\n");
  const ProgramResult r = run_rlx("search 'when does the railway depart?' --top 1 " + file + model_option());
  CHECK(r.status == 0);
  CHECK(contains(r.out, "notes.txt:6  The train leaves at noon.\n"));
  const ProgramResult p =
      run_rlx("search 'how are loaves made' --paragraphs --top 1 --format json " + file + model_option());
  CHECK(contains(p.out, "\"line\":3,\"text\":\"Bread is baked in a hot oven.\""));
  expect_failure(run_rlx("search query " + dir.write("latin.txt", "fine\ncaf\xe9\n") + model_option()), 1,
                 "latin.txt:2: not valid UTF-8");
  expect_failure(run_rlx("search query " + dir.write("blank.txt", " \n\n") + model_option()), 1, "hold no text");
}
