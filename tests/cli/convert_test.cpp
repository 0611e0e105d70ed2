// `rlx convert`: models from folders and files, and what it says when something is wrong.
#include <doctest/doctest.h>

#include <filesystem>

#include "rlx/formats/gguf.h"
#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/mapped_file.h"
#include "tests/support/build_kind.h"
#include "tests/support/error_text.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_model.h"

using namespace rlx;
using namespace rlx::test;

namespace {

// A GGUF file with one matrix of 1,024 x 256 numbers.
std::string matrix_file(const TempDir& dir) {
  GgufWriter w(dir.file("m.gguf"));
  const std::vector<std::int64_t> dims{1024, 256};
  w.set_string("general.architecture", "none");
  w.add_tensor("m.weight", GgufType::F32, dims);
  w.begin();
  std::vector<float> x(1024 * 256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5F;
  w.write(std::as_bytes(std::span(x)));
  w.commit();
  return dir.file("m.gguf");
}

}  // namespace

TEST_CASE("rlx convert: a file in another type; the target is as named or not there") {
  const TempDir dir;
  const std::string source = matrix_file(dir), target = dir.file("q.gguf");
  const ProgramResult done = run_rlx("convert " + source + " " + target + " --type q4_k --threads 2");
  CHECK(done.status == 0);
  CHECK(done.out.empty());
  CHECK(done.err.empty());
  CHECK(GgufFile::open(target)->at("m.weight").type == GgufType::Q4_K);
  CHECK(run_rlx("convert " + source + " " + target + " --type Q8_0 --head-type f16").status == 0);
  CHECK(GgufFile::open(target)->at("m.weight").type == GgufType::Q8_0);
  const ProgramResult split = run_rlx("convert " + source + " " + dir.file("s.gguf") + " --split-max-size 1M");
  CHECK(split.status == 0);  // what one file holds is one file
  CHECK(GgufFile::open(dir.file("s.gguf"))->num_parts() == 1);
}

TEST_CASE("rlx convert: a GGUF file becomes a folder that rlx opens, with the same tokens and answers") {
  const TempDir dir;
  write_text_model(dir);
  const std::string file = dir.file("m.gguf"), folder = dir.file("back");
  const ProgramResult there = run_rlx("convert " + dir.path() + " " + file + " --pre gpt-2 --quiet");
  CHECK_MESSAGE(there.status == 0, there.err);
  const ProgramResult back = run_rlx("convert " + file + " " + folder);
  CHECK_MESSAGE(back.status == 0, back.err);
  CHECK(back.err.empty());
  for (const char* name :
       {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"})
    CHECK(std::filesystem::exists(std::filesystem::path(folder) / name));
  for (const char* how : {"--seed 1", "--seed 2 --raw", "--temperature 0 --system abc"}) {
    const std::string rest = concat_text(" 'abc def' -n 20 --matmul-precision exact ", how);
    const ProgramResult own = run_rlx("generate " + file + rest);
    CHECK_MESSAGE(own.status == 0, own.err);
    CHECK(run_rlx("generate " + folder + rest).out == own.out);
  }
}

TEST_CASE("rlx convert: mistakes of the command line and of files") {
  const TempDir dir;
  const std::string source = matrix_file(dir), target = dir.file("q.gguf");
  expect_failure(run_rlx("convert " + source + " " + target + " --type q4_kk"), 2,
                 "--type: there is no type 'q4_kk'\n  hint: did you mean");
  expect_failure(run_rlx("convert " + dir.path() + " " + dir.file("other")), 2, "does not end in .gguf");
  for (const char* size : {"2", "G", "0G", "-1G", "2T", "99999999999G"})
    expect_failure(run_rlx("convert " + source + " " + target + " --split-max-size=" + size), 2,
                   concat_text("--split-max-size: '", size, "' is not a size\n  hint: write it as 500M or 2G"));
  expect_failure(run_rlx("convert " + source), 2, "target is required");
  expect_failure(run_rlx("convert /nowhere " + target), 1, "cannot open \"/nowhere\"");
  expect_failure(run_rlx("convert " + dir.path() + " " + target), 1, "config.json");
  expect_failure(run_rlx("convert " + source + " " + target + " --type iq2_xs"), 1,
                 "tensors of type IQ2_XS can be read, but not written");
  expect_failure(run_rlx("convert " + source + " " + dir.file("folder")), 1,
                 "models of architecture \"none\" cannot be converted to folders");
  expect_failure(run_rlx("convert " + source + " /nowhere/q.gguf"), 1,
                 "cannot write \"/nowhere/q.gguf\": No such file");
  CHECK_FALSE(std::filesystem::exists(target));
}

TEST_CASE("rlx convert: a full disk is one error, the target stays as it was, and the same command goes on") {
  const TempDir dir;
  const std::string source = matrix_file(dir), target = dir.write("q.gguf", "old");
  const std::string convert = "convert " + source + " " + target + " --type f16";
  // A limit of the size of files stands for a full disk: 200 blocks of 1,024 bytes, of 513.
  const ProgramResult full = run_shell("ulimit -f 200; " + rlx_command() + convert);
  CHECK(full.status == 1);
  CHECK_MESSAGE(
      contains(full.err, "cannot write \"" + target + "\": File too large\n  hint: run the same command again"),
      full.err);
  CHECK(read_file(target) == "old");
  CHECK(run_rlx(convert).status == 0);
  CHECK(GgufFile::open(target)->at("m.weight").type == GgufType::F16);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) files += entry.is_regular_file();
  CHECK(files == 2);  // nothing is left beside them
}
