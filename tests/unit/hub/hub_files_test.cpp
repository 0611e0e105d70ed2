// Names of models, lists of files that are not to be trusted, and the files that are taken.
#include "rlx/hub/hub_files.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"

using namespace rlx;
using namespace rlx::test;

namespace {

const std::string kSum(40, 'a'), kCommit(40, '1');

std::vector<HubFile> files_named(const std::vector<std::string>& paths) {
  std::vector<HubFile> out;
  for (const std::string& path : paths) out.push_back({path, 1500000000, kSum});
  return out;
}

HubChoice chosen(const std::string& name, const std::vector<std::string>& paths) {
  return choose_files(*parse_hub_name(name), files_named(paths));
}

std::string listing_with(const std::string& file) {
  return concat_text(R"({"sha": ")", kCommit, R"(", "siblings": [)", file, "]}");
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("hub: names of models, and what is none") {
  const auto name = parse_hub_name("org/na.me-1_b@refs/pr/3:sub/Q4_K_M");
  REQUIRE(name);
  CHECK(name->repo == "org/na.me-1_b");
  CHECK(name->revision == "refs/pr/3");
  CHECK(name->file == "sub/Q4_K_M");
  CHECK(name->text() == "org/na.me-1_b@refs/pr/3:sub/Q4_K_M");
  CHECK(parse_hub_name("gpt2")->text() == "gpt2");
  CHECK(parse_hub_name("a/b@main")->text() == "a/b");
  for (const char* text :
       {"",          "/a/b",     "./a",        "../a",     "~/a",      "a/b/c",       "a//b",          "a/",
        "/a",        "a/b:",     "a/b@",       "a/b:/etc", "a/b:../c", "a/b@../c",    "a/b:c/../../d", "a b/c",
        "a/b\n",     "a--b/c",   "a/b..c",     "-a/b",     "a/b.",     "https://a/b", "a\\b/c",        "a/b:c\\d",
        "a/b:c\x01", "a/b:\xff", "\xc3\xa4/b", "a/b@",     "a/b:.",    "a/b?x=1",     "a/b#c",         "a/%2e%2e"})
    CHECK_MESSAGE(!parse_hub_name(text), text);
  CHECK(!parse_hub_name(std::string(200, 'a')));
}

TEST_CASE("hub: no file name of a list leads out of a folder") {
  for (const char* path : {"../x", "a/../../x", "/etc/passwd", "a//b", "a/./b", "a/..", "a\\\\..\\\\b", "", ".", "..",
                           "a/", "\\u0000", "a\\nb", "a\\u007fb"}) {
    const std::string file = concat_text(R"({"rfilename": ")", path, R"(", "size": 1, "blobId": ")", kSum, R"("})");
    const std::string error = error_text([&] { (void)parse_listing(listing_with(file), "the list"); });
    CHECK_MESSAGE(contains(error, "could lead out of the model's folder"), path, ": ", error);
  }
  CHECK_FALSE(is_safe_path(std::string(256, 'a')));
  CHECK_FALSE(is_safe_path("a/" + std::string(1100, 'b')));
  CHECK(is_safe_path("sub/..a/b..c/...d"));
  CHECK(is_safe_path("a b/\xc3\xa4.json"));
  // Neither does one of an index, or a commit, or a checksum, which are names too.
  for (const char* shard : {"../a.safetensors", "/a", "b/a", "", "."})
    CHECK(contains(error_text([&] { (void)shards_of(concat_text(R"({"weight_map": {"w": ")", shard, "\"}}"), "i"); }),
                   "is not a file beside it"));
  for (const char* sha :
       {"", "main", "../../x", "0123456789012345678901234567890123456789a", "ABCDEFABCDEFABCDEFABCDEFABCDEFABCDEFABCD"})
    CHECK(contains(
        error_text([&] { (void)parse_listing(concat_text(R"({"sha": ")", sha, R"(", "siblings": []})"), "the list"); }),
        "is not a commit"));
  for (const char* about :
       {R"("size": 1)", R"("size": -1, "blobId": "x")", R"("size": 1, "blobId": "../../../x")",
        R"("blobId": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")", R"("size": 1, "lfs": {"sha256": "aa", "size": 1})"})
    CHECK(contains(error_text([&] {
                     (void)parse_listing(listing_with(concat_text(R"({"rfilename": "a", )", about, "}")), "the list");
                   }),
                   "no size or no checksum of \"a\""));
}

TEST_CASE("hub: a list of files") {
  const HubListing list =
      parse_listing(listing_with(concat_text(R"({"rfilename": "a.json", "size": 5, "blobId": ")", kSum, R"("},)",
                                             R"({"rfilename": "b", "size": 9, "blobId": "x", "lfs": {"sha256": ")",
                                             std::string(64, 'b'), R"(", "size": 7, "pointerSize": 1}})")),
                    "the list");
  CHECK(list.commit == kCommit);
  REQUIRE(list.files.size() == 2);
  CHECK(list.find("a.json")->checksum == kSum);
  CHECK(list.find("b")->size == 7);
  CHECK(list.find("b")->checksum == std::string(64, 'b'));
  CHECK(list.find("c") == nullptr);
  CHECK(shards_of(R"({"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "b.safetensors"}})", "i") ==
        Paths{"a.safetensors", "b.safetensors"});
}

TEST_CASE("hub: the files of a model that rlx reads, weights last") {
  const HubChoice c = chosen(
      "o/n", {"LICENSE", "README.md", "config.json", "consolidated.safetensors", "model.fp16.safetensors",
              "model.safetensors", "model.safetensors.index.json", "onnx/config.json", "onnx/model.onnx",
              "original/params.json", "pytorch_model.bin", "pytorch_model.bin.index.json", "tokenizer.json",
              "vocab.txt", "chat_template.jinja", "1_Pooling/config.json", "2_Dense/model.safetensors", "m.gguf"});
  CHECK(c.files == Paths{"LICENSE", "config.json", "tokenizer.json", "vocab.txt", "chat_template.jinja",
                         "1_Pooling/config.json", "2_Dense/model.safetensors"});
  CHECK(c.weights == Paths{"model.safetensors"});
  CHECK(c.index.empty());
  CHECK(c.result.empty());
  const HubChoice shards = chosen("o/n", {"config.json", "model.safetensors.index.json", "a.safetensors"});
  CHECK(shards.index == "model.safetensors.index.json");
  CHECK(shards.weights.empty());
  CHECK(chosen("o/n", {"adapter_config.json", "adapter_model.safetensors"}).weights ==
        Paths{"adapter_model.safetensors"});
}

TEST_CASE("hub: GGUF files by name, by type, in parts") {
  const Paths files = {"README.md",
                       "mmproj-f16.gguf",
                       "n-Q4_K_M.gguf",
                       "n-Q4_K_S.gguf",
                       "n.Q8_0.gguf",
                       "IQ4_K_M/n-IQ4_K_M.gguf",
                       "n-BF16-00002-of-00002.gguf",
                       "n-BF16-00001-of-00002.gguf",
                       "big/x-F16-00001-of-00002.gguf",
                       "n-imatrix.gguf",
                       "two/n-Q5_K_M.gguf",
                       "n-Q5_K_M.gguf"};
  CHECK(chosen("o/n:Q4_K_M", files).result == "n-Q4_K_M.gguf");
  CHECK(chosen("o/n:q8_0", files).result == "n.Q8_0.gguf");
  CHECK(chosen("o/n:iq4_k_m", files).result == "IQ4_K_M/n-IQ4_K_M.gguf");
  CHECK(chosen("o/n:mmproj-f16.gguf", files).result == "mmproj-f16.gguf");
  CHECK(chosen("o/n:README.md", files).weights == Paths{"README.md"});
  for (const char* name : {"o/n:BF16", "o/n:n-BF16-00001-of-00002.gguf", "o/n:n-BF16-00002-of-00002.gguf"}) {
    const HubChoice c = chosen(name, files);
    CHECK(c.result == "n-BF16-00001-of-00002.gguf");
    CHECK(c.weights == Paths{"n-BF16-00001-of-00002.gguf", "n-BF16-00002-of-00002.gguf"});
  }
  CHECK(contains(error_text([&] { (void)chosen("o/n:F16", files); }), "has 1 of the 2 parts of \"big/x-F16\""));
  CHECK(contains(error_text([&] { (void)chosen("o/n:Q5_K_M", files); }), "several files of \"o/n\" have the type"));
  const std::string none = error_text([&] { (void)chosen("o/n:Q2_K", files); });
  CHECK(contains(none, "has no file and no GGUF type \"Q2_K\""));
  CHECK(contains(none, "n-Q4_K_M.gguf  1.5 GB"));
  CHECK_FALSE(contains(none, "mmproj"));
  const std::string all = error_text([&] { (void)chosen("o/n", files); });
  CHECK(contains(all, "has 8 GGUF files: name one, or its type"));
  CHECK(contains(all, "as o/n:Q4_K_M, one of\n"));
  CHECK(chosen("o/n", {"README.md", "mmproj.gguf", "n-Q4_0.gguf"}).result == "n-Q4_0.gguf");
  CHECK(contains(error_text([&] {
                   (void)chosen("o/n", {"config.json", "pytorch_model.bin"});
                 }),
                 "neither safetensors nor GGUF; it has pytorch_model.bin"));
  CHECK(contains(error_text([&] { (void)chosen("o/n:confg.json", {"config.json"}); }), "config.json"));
  CHECK(size_text(999) == "1.0 kB");
  CHECK(size_text(999960000) == "1.0 GB");
}
