// The GGUF writer: files read back, wrong calls are refused, and an interrupted file is resumed.
#include "rlx/formats/gguf_writer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

std::span<const std::byte> bytes_of(std::span<const float> v) { return std::as_bytes(v); }

std::vector<std::string> files_in(const test::TempDir& dir) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) out.push_back(entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("gguf writer: a file of the format's own package, written again, is the same file") {
  const test::TempDir dir;
  const auto file = GgufFile::open(test::source_path("tests/fuzz/corpus/gguf/mixed.gguf"));
  GgufWriter w(dir.file("again.gguf"), {.alignment = file->alignment()});
  for (const GgufValue& v : file->metadata())
    if (v.key() != "general.alignment") w.copy(v);
  CHECK(w.has("t.u8"));
  CHECK_FALSE(w.has("t.u9"));
  for (const GgufTensor& t : file->tensors()) w.add_tensor(t.name, t.type, t.dims);
  CHECK(w.data_size_bytes() == file->data_size_bytes());
  CHECK(w.begin() == 0);
  for (const GgufTensor& t : file->tensors())
    for (const std::byte& b : t.bytes) w.write({&b, 1});
  CHECK(files_in(dir).size() == 1);  // under a temporary name
  CHECK_FALSE(std::filesystem::exists(dir.file("again.gguf")));
  w.commit();
  const auto again = GgufFile::open(dir.file("again.gguf"));
  CHECK(again->names() == file->names());
  for (const GgufTensor& t : file->tensors()) CHECK(std::ranges::equal(again->at(t.name).bytes, t.bytes));
  REQUIRE(again->metadata().size() == file->metadata().size());
  for (const GgufValue& v : file->metadata()) CHECK(std::ranges::equal(again->value(v.key()).raw(), v.raw()));
  CHECK(std::filesystem::file_size(dir.file("again.gguf")) == MappedFile::open(file->source()).size());
}

TEST_CASE("gguf writer: every setter, tensors without elements, and none at all") {
  const test::TempDir dir;
  GgufWriter w(dir.file("a.gguf"));
  w.set_bool("b", true);
  w.set_int("i", GgufKind::I16, -32768);
  w.set_int("u", GgufKind::U64, std::numeric_limits<std::int64_t>::max());
  w.set_number("f", GgufKind::F32, 0.1);
  w.set_number("d", GgufKind::F64, 0.1);
  w.set_string("s", "é");
  w.set_strings("ss", std::vector<std::string>{"a", ""});
  w.set_ints("is", GgufKind::U8, std::vector<std::int64_t>{0, 255});
  w.set_floats("fs", std::vector<float>{1.5F});
  w.add_tensor("none", GgufType::F32, std::vector<std::int64_t>{0, 4});
  w.add_tensor("scalar", GgufType::F32, {});
  w.add_tensor("also none", GgufType::Q8_0, std::vector<std::int64_t>{0, 32});
  w.begin();
  const float v = 2.5F;
  w.write(bytes_of({&v, 1}));
  w.commit();
  const auto file = GgufFile::open(dir.file("a.gguf"));
  CHECK(file->get_bool("b"));
  CHECK(file->get_int("i") == -32768);
  CHECK(file->get_int("u") == std::numeric_limits<std::int64_t>::max());
  CHECK(file->get_number("f") == static_cast<double>(0.1F));
  CHECK(file->get_number("d") == 0.1);
  CHECK(file->get_string("s") == "é");
  CHECK(file->value("ss").strings() == std::vector<std::string_view>{"a", ""});
  CHECK(file->value("is").ints() == std::vector<std::int64_t>{0, 255});
  CHECK(file->value("fs").floats() == std::vector<float>{1.5F});
  CHECK(file->decoded("scalar").at(0) == 2.5);
  CHECK(file->at("none").dims[0] == 0);
  GgufWriter empty(dir.file("e.gguf"));
  empty.begin();
  empty.commit();
  CHECK(GgufFile::open(dir.file("e.gguf"))->tensors().empty());
}

TEST_CASE("gguf writer: what an earlier try left whole is not written again") {
  const test::TempDir dir;
  const std::string path = dir.file("m.gguf");
  const std::vector<float> a(1000, 1), b(500, 2), c(30000, 3);
  const std::vector<std::int64_t> da{1000}, db{500}, dc{30000};
  const auto start = [&](GgufWriter& w) {
    w.add_tensor("a", GgufType::F32, da);
    w.add_tensor("b", GgufType::F32, db);
    w.add_tensor("c", GgufType::F32, dc);
    return w.begin();
  };
  {
    GgufWriter w(path, {.resume_key = "k1"});
    CHECK(start(w) == 0);
    w.write(bytes_of(a));
    w.write(bytes_of(b));
    w.write(bytes_of(c).first(100000));
  }  // the writer is destroyed without commit
  CHECK(files_in(dir) == std::vector<std::string>{"m.gguf.k1.partial"});
  {
    GgufWriter other(path, {.resume_key = "k2"});
    CHECK(start(other) == 0);  // other sources
  }
  {
    GgufWriter changed(path, {.resume_key = "k1"});
    changed.set_bool("x", true);  // another header
    CHECK(start(changed) == 0);
    changed.write(bytes_of(a));
    changed.write(bytes_of(b));
    changed.write(bytes_of(c).first(80000));
  }
  {
    GgufWriter w(path, {.resume_key = "k1"});
    w.set_bool("x", true);
    REQUIRE(start(w) == 2);
    w.write(bytes_of(c));
    w.commit();
  }
  CHECK(files_in(dir) == std::vector<std::string>{"m.gguf", "m.gguf.k2.partial"});
  const auto file = GgufFile::open(path);
  CHECK(file->decoded("a").at(999) == 1);
  CHECK(file->decoded("b").at(499) == 2);
  CHECK(file->decoded("c").at(0) == 3);
  CHECK(file->decoded("c").at(29999) == 3);
  GgufWriter never(path, {.resume_key = "k3"});  // the old file stays unchanged
  start(never);
  never.write(bytes_of(b));
  CHECK(GgufFile::open(path)->decoded("a").at(0) == 1);
}

TEST_CASE("gguf writer: what cannot be written is refused") {
  const test::TempDir dir;
  GgufWriter w(dir.file("w.gguf"));
  const auto refused = [&](auto f) { return error_text(f); };
  CHECK(contains(refused([&] { w.set_int("k", GgufKind::U8, 256); }), "key \"k\": 256 does not fit in u8"));
  CHECK(contains(refused([&] { w.set_int("k", GgufKind::U64, -1); }), "-1 does not fit in u64"));
  CHECK(contains(refused([&] { w.set_int("k", GgufKind::F32, 1); }), "an integer cannot be written as f32"));
  CHECK(contains(refused([&] { w.set_ints("k", GgufKind::String, {}); }), "an integer cannot be written as string"));
  CHECK(
      contains(refused([&] { w.set_number("k", GgufKind::U8, 1); }), "a float must be written as f32 or f64, not u8"));
  CHECK(contains(refused([&] { w.set_bool("", true); }), "1 to 65535 bytes"));
  CHECK(contains(refused([&] { w.copy(GgufValue()); }), "cannot copy a value that belongs to no file"));
  w.set_bool("k", true);
  CHECK(contains(refused([&] { w.set_bool("k", true); }), "the key \"k\" is given twice"));
  const std::vector<std::int64_t> row{33}, negative{-1}, huge{1 << 30, 1 << 30}, many{1, 1, 1, 1, 1}, good{2};
  CHECK(contains(refused([&] { w.add_tensor("t", GgufType::Q8_0, row); }),
                 "w.gguf: tensor \"t\": a row has 33 elements, which is not a multiple of 32, the block size of Q8_0"));
  CHECK(contains(refused([&] { w.add_tensor("t", GgufType::F32, negative); }), "negative dimension -1"));
  CHECK(contains(refused([&] { w.add_tensor("t", GgufType::F32, huge); }), "more bytes than any file can hold"));
  CHECK(contains(refused([&] { w.add_tensor("t", GgufType::F32, many); }), "at most 4"));
  CHECK(contains(refused([&] { w.add_tensor("", GgufType::F32, good); }), "not empty"));
  CHECK(contains(refused([&] { w.write({}); }), "must be written after begin()"));
  CHECK(contains(refused([&] { w.commit(); }), "commit() must be called after begin()"));
  w.add_tensor("t", GgufType::F32, good);
  CHECK(contains(refused([&] { w.add_tensor("t", GgufType::F32, good); }), "the tensor \"t\" is given twice"));
  w.begin();
  CHECK(contains(refused([&] { w.begin(); }), "must be called before begin()"));
  CHECK(contains(refused([&] { w.set_bool("later", true); }), "metadata must be called before begin()"));
  CHECK(contains(refused([&] { w.commit(); }), "1 of 1 tensors have not been written"));
  const float values[] = {1, 2, 3};
  CHECK(contains(refused([&] { w.write(bytes_of(values)); }), "4 bytes were written after the last tensor"));
  CHECK(contains(refused([&] { GgufWriter(dir.file("x"), {.alignment = 3}); }), "not a power of two"));
  CHECK(contains(refused([&] { GgufWriter("/nowhere/x", {}).begin(); }), "cannot write \"/nowhere/x\""));
  CHECK(
      contains(refused([&] { GgufWriter("/nowhere/x", {.resume_key = "k"}).begin(); }), "cannot write \"/nowhere/x\""));
  CHECK(contains(refused([&] { GgufWriter(dir.path(), {.resume_key = "k"}).begin(); }), "Is a directory"));
}

}  // namespace rlx
