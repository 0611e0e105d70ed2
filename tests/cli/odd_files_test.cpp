// What stands where a file is expected and is none, names with control characters, and empty names: the command fails
// and says which.
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "rlx/formats/safetensors.h"
#include "tests/support/encoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_model.h"
#include "tests/support/tiny_model.h"

using namespace rlx;
using namespace rlx::test;
namespace fs = std::filesystem;

namespace {

// Puts at `path` what is no regular file.
void replace(const fs::path& path, const std::string& kind) {
  fs::remove_all(path);
  if (kind == "folder")
    fs::create_directory(path);
  else if (kind == "pipe")
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  else if (kind == "link to nothing")
    fs::create_symlink("nowhere", path);
  else if (kind == "link to itself")
    fs::create_symlink(path.filename(), path);
  else
    fs::create_symlink("/dev/" + kind, path);
}
constexpr const char* kKinds[] = {"folder", "pipe", "link to nothing", "link to itself", "zero", "null"};

}  // namespace

TEST_CASE("rlx embed: a file of the model that is no file is an error, not as if it were not there") {
  const FolderReference reference = folder_reference("mean");
  const TempDir dir;
  std::size_t count = 0;
  for (const char* name :
       {"config.json", "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json",
        "1_Pooling/config.json", "2_Dense/config.json", "tokenizer.json", "model.safetensors"}) {
    write_folder(dir, reference);
    REQUIRE(fs::exists(dir.file(name)));
    for (const char* kind : kKinds) {
      CAPTURE(name);
      CAPTURE(kind);
      replace(dir.file(name), kind);
      expect_failure(run_rlx("embed --text a --model " + dir.path()), 1, name);
      ++count;
    }
    fs::remove_all(dir.file(name));
  }
  CHECK(count == 8 * 6);
}

TEST_CASE("rlx generate: a file of the model that is no file is an error, as is a page of a web server") {
  for (const char* name : {"generation_config.json", "tokenizer_config.json", "chat_template.jinja"}) {
    const TempDir dir;
    write_text_model(dir);
    for (const char* kind : kKinds) {
      CAPTURE(name);
      CAPTURE(kind);
      replace(dir.file(name), kind);
      expect_failure(run_rlx("generate " + dir.path() + " a -n 1"), 1, name);
    }
    fs::remove_all(dir.file(name));
    for (const char* content :
         {"<!DOCTYPE html>\n<html></html>", "version https://git-lfs.github.com/spec/v1\noid x"}) {
      dir.write(name, content);
      expect_failure(run_rlx("generate " + dir.path() + " a -n 1"), 1, name);
    }
  }
}

TEST_CASE("rlx: names of tensors act on no terminal") {
  const TempDir dir;
  const std::string graph = dir.write("g.rlx", "graph @g {\n  %w = param() {name = \"w\"} : [1] f32\n  return %w\n}\n");
  const std::vector<NamedTensor> weights = {
      {std::string("evil\x1b[31m\0\x7f\xc2\x9b", 13), Tensor::zeros(Shape({1}, DType::F32))}};
  write_safetensors(dir.file("w.safetensors"), weights);
  expect_failure(run_rlx("run " + graph + " -w " + dir.file("w.safetensors")), 1,
                 "'evil\\x1b[31m\\x00\\x7f\\xc2\\x9b'");
}

TEST_CASE("rlx: an empty name of a file is an error of the command line") {
  const TinyModel model;
  const std::string with = " --model " + model.path() + " ", text = model.write("a.txt", "a b\n");
  const std::vector<std::string> commands = {"index -o '' " + text + with,
                                             "index -o x.rlxi ''" + with,
                                             "search a ''" + with,
                                             "search a -i ''",
                                             "search a " + text + " --model ''",
                                             "embed --text a -o ''" + with,
                                             "embed --file ''" + with,
                                             "run ''",
                                             "run x.rlx -i ''",
                                             "run x.rlx -w ''",
                                             "inspect ''",
                                             "inspect x.rlx --html ''",
                                             "opt x.rlx -o ''",
                                             "generate '' a",
                                             "generate m.gguf a --grammar ''",
                                             "generate m.gguf a --json-schema ''",
                                             "generate m.gguf a --save-state ''",
                                             "generate m.gguf --load-state ''",
                                             "generate m.gguf a --chat-template ''",
                                             "rerank -q a ''" + with};
  for (const std::string& command : commands) {
    CAPTURE(command);
    expect_failure(run_rlx(command), 2, "must not be empty");
  }
}

TEST_CASE("rlx: a file of another kind is named with what reads it") {
  const TempDir dir;
  expect_failure(run_rlx("inspect " + dir.write("p.rlx", "RLXPROG2....")), 1, "p.rlx is a program that Python saved");
  const TempDir model;
  write_folder(model, folder_reference("mean"));
  expect_failure(run_rlx("rerank -q a --model " + model.path() + " " + dir.write("a.txt", "a\n")), 1,
                 "has no classifier, so it is not a reranker");
  expect_failure(run_rlx("bench --shapes 99999999999999999999x1 --model " + model.path()), 2,
                 "'99999999999999999999x1' is not a shape");
}
