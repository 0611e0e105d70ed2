// Saved packed weights: later starts find them if the weights are the same, and never use damaged ones.
#include "rlx/formats/packed_weight_files.h"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "rlx/base/sigbus_guard.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/safetensors.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

std::string read(const std::string& path) { return read_file(path); }

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); }

std::string text_of(const Tensor& t) { return {reinterpret_cast<const char*>(t.data()), t.size_bytes()}; }

const SourceIdentity kSource{1, 2, 3, 4, "head"};

// Saves "abcdefgh" under the key "k", changes the file by `spoil`, and returns the error of a reader.
struct Spoiled {
  Tensor found;
  std::vector<std::string> problems;
  std::string error;
};
template <class F>
Spoiled spoiled(F spoil, bool verify = false) {
  const test::TempDir dir;
  const std::string folder = dir.file("forms");
  PackedWeightFiles writer(folder);
  writer.save("k", bytes_of("abcdefgh"), kSource, "content");
  std::string file = read(writer.path_of("k"));
  spoil(file);
  write_file(writer.path_of("k"), file);
  PackedWeightFiles reader(folder, {verify, false}), strict(folder, {verify, true});
  Spoiled out;
  const auto content = [] { return std::string("other"); };
  out.found = reader.find("k", 8, kSource, content);
  out.problems = reader.problems();
  out.error = error_text([&] { strict.find("k", 8, kSource, content); });
  return out;
}

TEST_CASE("packed weight files: found by key, size and source; by content where the file was touched") {
  const test::TempDir dir;
  PackedWeightFiles files(dir.file("a/b"));
  CHECK(files.find("k", 8, kSource, [] { return std::string("content"); }).empty());
  files.save("k", bytes_of("abcdefgh"), kSource, "content");
  const auto never = []() -> std::string {
    FAIL("the content was asked for");
    return {};
  };
  CHECK(text_of(files.find("k", 8, kSource, never)) == "abcdefgh");
  CHECK(files.find("other", 8, kSource, never).empty());
  SourceIdentity touched = kSource;
  touched.mtime_ns = 5;
  CHECK(files.find("k", 8, touched, [] { return std::string("other weights"); }).empty());
  CHECK(text_of(files.find("k", 8, touched, [] { return std::string("content"); })) == "abcdefgh");
  CHECK(text_of(files.find("k", 8, touched, never)) == "abcdefgh");  // now touched is its source
  CHECK(files.problems().empty());
  const Tensor found = files.find("k", 8, touched, never);
  CHECK(reinterpret_cast<std::uintptr_t>(found.data()) % 64 == 0);
  CHECK((files.found_bytes() == 4 * 8 && files.saved_bytes() == 2 * 8));  // saved once more with the new source
  REQUIRE(files.mapped().size() == 4);
  CHECK(files.mapped().back() == found.data() - 4096);
}

TEST_CASE("packed weight files: one message for each way a file can be wrong, and it is not used") {
  const auto replace = [](std::string_view what, std::string_view with) {
    return [=](std::string& f) { f.replace(f.find(what), what.size(), with); };
  };
  const auto check_refused = [](const Spoiled& s, const char* why) {
    CAPTURE(why);
    CHECK(s.found.empty());
    REQUIRE(s.problems.size() == 1);
    CHECK(contains(s.problems[0], why));
    CHECK(contains(s.error, why));
    CHECK(contains(s.error, "delete the file"));
    CHECK(contains(s.error, ".form"));
  };
  check_refused(spoiled(replace("rlx form 1", "rlx form 2")), "has version 2; this program reads version 1");
  check_refused(spoiled([](std::string& f) { f.pop_back(); }), "is cut short: 4103 bytes instead of 4104");
  check_refused(spoiled([](std::string& f) { f += 'x'; }), "is too long: 4105 bytes instead of 4104");
  for (std::size_t bytes : {9, 10, 100}) {
    CAPTURE(bytes);
    check_refused(spoiled([&](std::string& f) { f.resize(bytes); }), "has a damaged head");
  }
  check_refused(spoiled([](std::string& f) { f.clear(); }), "is not a packed weight file");
  check_refused(spoiled([](std::string& f) { f[0] = 'x'; }), "is not a packed weight file");
  check_refused(spoiled(replace("bytes 8", "bytes 9")), "has a damaged head");
  check_refused(spoiled(replace("source 1", "source 2")), "has a damaged head");
  check_refused(spoiled(replace("abcdefgh", "abcdefgX"), true), "has a wrong checksum");
  CHECK(spoiled([](std::string&) {}).problems.empty());
}

TEST_CASE("packed weight files: a link in the folder is replaced, not followed; a folder of others is refused") {
  const test::TempDir dir;
  write_file(dir.file("precious"), "x");
  PackedWeightFiles files(dir.file("packed"));
  std::filesystem::create_symlink(dir.file("precious"), files.path_of("k"));
  files.save("k", bytes_of("abcdefgh"), kSource, "content");
  CHECK(read_file(dir.file("precious")) == "x");
  CHECK_FALSE(std::filesystem::is_symlink(files.path_of("k")));
  CHECK(files.problems().empty());
  std::filesystem::permissions(dir.file("packed"), std::filesystem::perms::all);
  CHECK(contains(error_text([&] { PackedWeightFiles(dir.file("packed")); }), "every user may write to it"));
}

TEST_CASE("packed weight files: a folder that cannot be made, and one that cannot be written") {
  const test::TempDir dir;
  write_file(dir.file("file"), "x");
  CHECK(contains(error_text([&] { PackedWeightFiles(dir.file("file")); }), "folder of packed weights"));
  CHECK(contains(error_text([&] { PackedWeightFiles(dir.file("file/below")); }), "folder of packed weights"));
  for (const char* path : {"file", "file/below"})
    CHECK(attempt([&] { return PackedWeightFiles(dir.file(path)).problems().size(); }).error().code ==
          ErrorCode::NotFound);
  PackedWeightFiles files(dir.file("gone"));
  std::filesystem::remove_all(dir.file("gone"));
  files.save("k", bytes_of("abcdefgh"), kSource, "content");
  REQUIRE(files.problems().size() == 1);
  CHECK(contains(files.problems()[0], "packed weights are no longer saved: cannot write"));
  files.save("l", bytes_of("abcdefgh"), kSource, "content");  // reported once, and not tried again
  std::filesystem::create_directories(dir.file("gone"));
  files.save("k", bytes_of("abcdefgh"), kSource, "content");
  CHECK(files.problems().size() == 1);
  CHECK(files.saved_bytes() == 0);
  CHECK(std::filesystem::is_empty(dir.file("gone")));
  PackedWeightFiles strict(dir.file("lost"), {.strict = true});
  std::filesystem::remove_all(dir.file("lost"));
  CHECK(contains(error_text([&] { strict.save("k", bytes_of("abcdefgh"), kSource, "content"); }), "cannot write"));
}

TEST_CASE("packed weight files: one truncated while it is mapped reads as zeros on request") {
  const test::TempDir dir;
  PackedWeightFiles files(dir.path(), {.guard_mapping = true});
  files.save("k", bytes_of(std::string(10000, 'x')), kSource, "content");
  const Tensor found = files.find("k", 10000, kSource, [] { return std::string("content"); });
  REQUIRE(found.size_bytes() == 10000);
  std::filesystem::resize_file(files.path_of("k"), 4096);
  CHECK(static_cast<int>(found.data()[9000]) == 0);
  CHECK(damaged_file_at(files.mapped().at(0)) == files.path_of("k"));
}

TEST_CASE("packed weight files: a pipe in the place of a file is neither read nor waited for") {
  const test::TempDir dir;
  PackedWeightFiles files(dir.path());
  const std::string path = files.path_of("k");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(files.find("k", 8, kSource, [] { return std::string("content"); }).empty());
  files.save("k", bytes_of("abcdefgh"), kSource, "content");
  REQUIRE(files.problems().size() == 1);
  CHECK(contains(files.problems()[0], "is not a regular file"));
}

// -- through a session --

Graph program() {
  Graph g("program");
  Expr x = g.input("x", Shape({2, 64}, DType::F32));
  Expr a = g.cast(g.param("a", Shape({96, 64}, DType::BF16)), DType::F32), b = g.param("b", Shape({96, 8}, DType::F32));
  g.set_outputs({g.matmul(g.relu(g.matmul(x, g.transpose(a, {1, 0}))), b)});
  return g;
}

Tensor ramp(std::vector<std::int64_t> dims, int seed, DType t) {
  Tensor out = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), t));
  for (std::int64_t i = 0; i < out.num_elements(); ++i) out.set(i, static_cast<double>((i * 5 + seed) % 17 - 8));
  return out;
}

struct Started {
  CompiledGraph f;
  std::vector<float> y;
  std::vector<std::string> problems;
};
Started start(const std::string& weights, const std::string& forms) {
  CompileOptions options;
  const auto cache = std::make_shared<PackedWeightFiles>(forms);
  options.packed_weight_cache = cache;
  CompiledGraph f = Session().compile_with(program(), options);
  f.load_params(SafetensorsFile::open(weights));
  std::vector<float> y = f.run_typed({{"x", ramp({2, 64}, 3, DType::F32)}})[0].to_f32();
  return {std::move(f), std::move(y), cache->problems()};
}

TEST_CASE("packed weight files: a second start maps what the first one wrote; set weights are not written") {
  const test::TempDir dir;
  const std::string weights = dir.file("w.safetensors"), forms = dir.file("forms");
  write_safetensors(
      weights, std::vector<NamedTensor>{{"a", ramp({96, 64}, 1, DType::BF16)}, {"b", ramp({96, 8}, 2, DType::F32)}});
  Started first = start(weights, forms);
  CHECK(first.f.prepared_bytes() > 0);
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(forms), std::filesystem::directory_iterator());
  };
  CHECK(count() == 2);
  Started second = start(weights, forms);
  CHECK(second.f.prepared_bytes() == 0);  // all packed weights are mapped from files
  CHECK(second.y == first.y);
  CHECK(count() == 2);

  // Setting a weight in a mapped packed layout copies it; the files and other instances do not change.
  CompiledGraph clone = second.f.clone();
  second.f.set_param("b", ramp({96, 8}, 9, DType::F32));
  first.f.set_param("b", ramp({96, 8}, 9, DType::F32));
  const NamedTensors in{{"x", ramp({2, 64}, 3, DType::F32)}};
  CHECK(second.f.run_typed(in)[0].identical(first.f.run_typed(in)[0]));
  CHECK(clone.run_typed(in)[0].to_f32() == first.y);
  CHECK(start(weights, forms).y == first.y);

  // Other weights of the same size in the same file never use the old packed weights.
  write_safetensors(
      weights, std::vector<NamedTensor>{{"a", ramp({96, 64}, 1, DType::BF16)}, {"b", ramp({96, 8}, 9, DType::F32)}});
  CHECK(start(weights, forms).y == first.f.run_typed(in)[0].to_f32());

  // Damaged packed weights are made again.
  for (const auto& entry : std::filesystem::directory_iterator(forms)) std::filesystem::resize_file(entry.path(), 5000);
  const Started healed = start(weights, forms);
  CHECK(healed.problems.size() == 2);
  CHECK(healed.y == first.f.run_typed(in)[0].to_f32());
  CHECK(start(weights, forms).problems.empty());
}

}  // namespace
}  // namespace rlx
