// `rlx pull`, and models by name: the command asks a hub on the loopback by libcurl.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>

#include "tests/support/fake_hub.h"
#include "tests/support/needs.h"
#include "tests/support/paths.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_model.h"

using namespace rlx;
using namespace rlx::test;

namespace {

namespace fs = std::filesystem;

bool has_libcurl() {
  if (::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL) != nullptr ||
      ::dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL) != nullptr)
    return true;
  skip("libcurl (package libcurl4)");
  return false;
}

// A language model of random weights that answers.
void add_text_model(FakeHub& hub) {
  const TempDir dir;
  write_text_model(dir);
  for (const auto& entry : fs::directory_iterator(dir.path()))
    if (entry.is_regular_file())
      hub.add(entry.path().filename().string(), rlx::test::read_file(entry.path().string()),
              entry.path().extension() == ".safetensors");
}

}  // namespace

TEST_CASE("rlx pull: prints the path of what it pulled; models by name are pulled once") {
  if (!has_libcurl()) return;
  const TempDir dir;
  FakeHub hub;
  add_text_model(hub);
  hub.add("n-Q4_0.gguf", "not a model", true);
  const HubServer server(hub);
  const std::string with = server.environment(dir.path()) + "HF_TOKEN=hf_secret " + rlx_command();
  const std::string snapshot = dir.file("hub/models--org--name/snapshots/" + hub.commit);
  const ProgramResult generated = run_shell(with + "generate org/name 'abc def' -n 8 --temperature 0");
  CHECK_MESSAGE(generated.status == 0, generated.err);
  CHECK(contains(generated.err, "note: downloading org/name: "));
  const std::size_t asked = hub.requests().size();
  const ProgramResult again = run_shell(with + "generate org/name@main 'abc def' -n 8 --temperature 0");
  CHECK(again.out == generated.out);
  CHECK(again.err.empty());
  CHECK(hub.requests().size() == asked);
  CHECK(run_shell(with + "generate " + snapshot + " 'abc def' -n 8 --temperature 0").out == generated.out);
  const ProgramResult pulled = run_shell(with + "pull org/name");
  CHECK(pulled.status == 0);
  CHECK(pulled.out == snapshot + "\n");
  CHECK(pulled.err.empty());
  const ProgramResult file = run_shell(with + "pull org/name:q4_0 --quiet");
  CHECK(file.out == snapshot + "/n-Q4_0.gguf\n");
  CHECK(file.err.empty());
  CHECK(rlx::test::read_file(snapshot + "/n-Q4_0.gguf") == "not a model");
  bool other = false;
  for (const HubRequest& r : hub.requests()) {
    const bool home = r.origin == server.url();
    CHECK(r.header("authorization") == (home ? "Bearer hf_secret" : ""));
    other = other || !home;
  }
  CHECK(other);
  CHECK(run_shell(with + "convert org/name " + dir.file("m.gguf") + " --pre gpt-2 --quiet").status == 0);
}

TEST_CASE("rlx pull: a cut download continues; a killed one is continued by the next command") {
  if (!has_libcurl()) return;
  const TempDir dir;
  FakeHub hub;
  const std::string weights(300000, 'w');
  hub.add("config.json", "{}");
  hub.add("model.safetensors", weights, true);
  const HubServer server(hub);
  const std::string pull = server.environment(dir.path()) + rlx_command() + "pull org/name ";
  std::vector<std::string> ranges;
  const auto cut = [&](const HubRequest& r, std::size_t) -> std::optional<HubReply> {
    if (r.path != "/large/model.safetensors") return std::nullopt;
    ranges.push_back(r.header("range"));
    HubReply reply = hub.usual(r);
    reply.cut = 120000;
    return reply;
  };
  hub.special = cut;
  const ProgramResult broken = run_shell(pull + "--retries 0");
  CHECK(broken.status == 1);
  CHECK(broken.out.empty());
  CHECK_MESSAGE(contains(broken.err, "hint: run the same command again: it continues where this one ended"),
                broken.err);
  const ProgramResult done = run_shell(pull);
  CHECK_MESSAGE(done.status == 0, done.err);
  CHECK(ranges == std::vector<std::string>{"", "bytes=120000-", "bytes=240000-"});
  CHECK(rlx::test::read_file(dir.file("hub/models--org--name/snapshots/" + hub.commit + "/model.safetensors")) ==
        weights);
}

TEST_CASE("rlx pull: two commands at a time pull one model") {
  if (!has_libcurl()) return;
  const TempDir dir;
  FakeHub hub;
  hub.add("config.json", "{}");
  hub.add("model.safetensors", std::string(3000000, 'w'), true);
  const HubServer server(hub);
  const std::string pull = server.environment(dir.path()) + rlx_command() + "pull org/name";
  const ProgramResult both = run_shell(pull + " >'" + dir.file("a") + "' & first=$!; " + pull + "; wait $first");
  CHECK_MESSAGE(both.status == 0, both.err);
  CHECK(rlx::test::read_file(dir.file("a")) == both.out);
  std::size_t fetched = 0;
  for (const HubRequest& r : hub.requests()) fetched += r.path.starts_with("/large/");
  CHECK(fetched == 1);
}

TEST_CASE("rlx pull: what fails, and what to do") {
  const TempDir dir;
  FakeHub hub;
  hub.add("config.json", "{}");
  hub.add("model.safetensors", "w", true);
  const HubServer server(hub);
  const std::string with = server.environment(dir.path());
  const auto rlx = [&](const std::string& args, const std::string& more = "") {
    return run_shell(with + more + rlx_command() + args);
  };
  for (const char* name : {"a/b/c", "../x", "org/name:../x", "''"})
    expect_failure(rlx(concat_text("pull ", name)), 2, "is not the name of a model on a hub");
  expect_failure(rlx("pull https://huggingface.co/org/name"), 2, "give what stands after the host, ORG/NAME");
  expect_failure(rlx("pull org/name", "HF_HUB_OFFLINE=1 "), 1, "HF_HUB_OFFLINE forbids to download it");
  expect_failure(rlx("generate org/name hi", "HF_HUB_OFFLINE=1 "), 1,
                 "there is no file or folder \"org/name\" here, and as the name of a model: ");
  expect_failure(rlx("pull org/name", "HF_ENDPOINT=http://hub.example "), 1, "is not the address of a hub");
  expect_failure(rlx("pull org/name", "HF_HUB_DOWNLOAD_TIMEOUT=soon "), 1, "is not a number of seconds");
  CHECK(hub.requests().empty());
  if (!has_libcurl()) return;
  expect_failure(rlx("pull org/other"), 1, "there is no model \"org/other\" at http://127.0.0.1:");
  expect_failure(rlx("pull org/name", "HF_ENDPOINT=http://127.0.0.1:9 "), 1,
                 "hint: without a network, give the path of a model on this machine");
  hub.special = [](const HubRequest&, std::size_t) { return HubReply{429, {{"Retry-After", "90"}}, ""}; };
  expect_failure(rlx("pull org/name"), 1, "try again in 90 seconds");
  hub.special = [&](const HubRequest& r, std::size_t) {
    HubReply wrong = hub.usual(r);
    if (r.path.starts_with("/large/")) wrong.body = "x";
    return wrong;
  };
  expect_failure(rlx("pull org/name"), 1, "\"model.safetensors\" has another checksum than http://127.0.0.1:");
  hub.special = [&](const HubRequest&, std::size_t) {
    HubReply none;
    none.silent = true;
    return none;
  };
  const auto start = std::chrono::steady_clock::now();
  expect_failure(rlx("pull org/name", "HF_HUB_DOWNLOAD_TIMEOUT=1 "), 1, "cannot reach http://127.0.0.1:");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}
