// GGUF files: files written by the Python package gguf, and one error message for each kind of faulty file.
#include "rlx/formats/gguf.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "tests/support/error_text.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::gguf_string;
using test::GgufBytes;
using test::number_bytes;

std::shared_ptr<GgufFile> parse_gguf(const std::string& content) {
  return GgufFile::from_bytes(std::as_bytes(std::span(content.data(), content.size())), "w.gguf");
}
std::string gguf_error(const std::string& content) {
  return error_text([&] { parse_gguf(content); });
}
std::string gguf_error(const GgufBytes& file) { return gguf_error(file.bytes()); }

constexpr std::uint32_t kF32 = 0, kQ8_0 = 8;

GgufBytes two_tensors(std::uint64_t second = 32) {
  GgufBytes f;
  f.record("a", {4, 2}, kF32, 0).record("b", {2}, kF32, second);
  f.data = std::string(64, '\x01');
  return f;
}

}  // namespace

TEST_CASE("gguf: a file of the format's own package") {
  const auto file = GgufFile::open(test::source_path("tests/fuzz/corpus/gguf/mixed.gguf"));
  CHECK(file->version() == 3);
  CHECK(file->alignment() == 64);
  CHECK(file->num_parts() == 1);
  CHECK(file->architecture() == "llama");
  CHECK(file->get_int("t.u8") == 255);
  CHECK(file->get_int("t.i8") == -128);
  CHECK(file->get_int("t.u16") == 65535);
  CHECK(file->get_int("t.i16") == -32768);
  CHECK(file->get_int("t.u32") == 4294967295);
  CHECK(file->get_int("t.i32") == -2147483647 - 1);
  CHECK(contains(error_text([&] { file->get_int("t.u64"); }), "\"t.u64\" is u64, expected an integer below 2^63"));
  CHECK(file->get_number("t.u64") == 0x1p64);
  CHECK(file->get_int("t.i64") == std::numeric_limits<std::int64_t>::min());
  CHECK(file->get_number("t.f32") == 0.5);
  CHECK(file->get_number("t.f64") == 0.1);
  CHECK(file->get_bool("t.bool"));
  CHECK(file->get_string("t.string") == "é\n");
  const std::vector<std::string_view> tokens = file->value("t.strings").strings();
  CHECK(tokens == std::vector<std::string_view>{"a", "", "Ġthe"});
  CHECK(file->value("t.strings").size() == 3);
  CHECK(file->value("t.strings").elements()[2].as_string() == "Ġthe");
  CHECK(file->value("t.floats").floats() == std::vector<float>{-1.5F, 2.0F});
  CHECK(file->value("t.ints").ints() == std::vector<std::int64_t>{3, -4});
  CHECK(file->value("t.ints").element_kind() == GgufKind::I32);
  CHECK(file->value("t.bools").ints() == std::vector<std::int64_t>{1, 0});
  CHECK(file->value("t.nested").elements()[1].ints() == std::vector<std::int64_t>{2, 3});

  CHECK(file->names() == std::vector<std::string>{"plain", "half", "brain", "blocks", "ids"});
  const GgufTensor& plain = file->at("plain");
  CHECK(std::vector<std::int64_t>(plain.dims.begin(), plain.dims.end()) == std::vector<std::int64_t>{2, 3});
  const Tensor decoded = file->decoded("plain");
  for (int i = 0; i < 6; ++i) CHECK(decoded.at(i) == i / 2.0);
  CHECK(file->decoded("half").at(1) == -2);
  CHECK(GgufFile::tensor(file, "half").dtype() == DType::F16);
  CHECK(file->decoded("brain").at(0) == 1.5);
  CHECK(GgufFile::tensor(file, "ids").identical(Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{7, 8, 9})));
  const GgufTensor& blocks = file->at("blocks");
  CHECK(blocks.type == GgufType::Q8_0);
  CHECK(blocks.dims[1] == 64);
  const Tensor coded = GgufFile::tensor(file, "blocks");
  CHECK(coded.dims() == std::vector<std::int64_t>{2, 68});
  CHECK(coded.dtype() == DType::U8);
  const Tensor numbers = file->decoded("blocks");
  for (int i = 0; i < 128; ++i) CHECK(numbers.at(i) == i % 2 * 127.0);
  CHECK(file->data_size_bytes() == 24 + 8 + 8 + 136 + 12);
  file->drop_all_pages("blocks");
  CHECK(numbers.identical(file->decoded("blocks")));
  const auto identity = file->identity("plain");
  REQUIRE(identity);
  CHECK(*identity == *file->identity("ids"));
  CHECK(contains(error_text([&] { file->at("blocs"); }), "has no tensor \"blocs\"\n  hint: did you mean 'blocks'?"));
  CHECK(contains(error_text([&] { file->value("t.bol"); }), "has no key \"t.bol\"\n  hint: did you mean 't.bool'?"));
  CHECK(file->get_int("absent", 3) == 3);
  CHECK(contains(error_text([&] { file->get_int("t.string", 3); }), "\"t.string\" is string, expected an integer"));
}

TEST_CASE("gguf: data that is not aligned is copied, tensors outlive the file's other owners") {
  GgufBytes f;
  f.value("general.alignment", GgufKind::U32, number_bytes(std::uint32_t{1}));
  f.alignment = 1;
  f.record("x", {1}, kF32, 0);
  f.data = number_bytes(1.5F);
  const std::string content = f.bytes();
  for (std::size_t shift = 0; shift < 4; ++shift) {
    const std::string moved = std::string(shift, ' ') + content;
    const auto file = GgufFile::from_bytes(std::as_bytes(std::span(moved)).subspan(shift), "w");
    const TensorView x = *file->find("x");
    CHECK(reinterpret_cast<std::uintptr_t>(x.data) % 4 == 0);
    CHECK(*static_cast<const float*>(x.data) == 1.5F);
  }
  Tensor x;
  {
    const auto file = GgufFile::open(test::source_path("tests/fuzz/corpus/gguf/mixed.gguf"));
    x = GgufFile::tensor(file, "plain");
  }
  CHECK(x.at(5) == 2.5);
}

TEST_CASE("gguf: a large vocabulary is not walked more often than it is asked for") {
  std::string strings;
  for (int i = 0; i < 150000; ++i) strings += gguf_string(concat_text("t", i));
  GgufBytes f;
  f.array("tokens", GgufKind::String, 150000, strings);
  const std::string content = f.bytes();
  const auto file = parse_gguf(content);
  CHECK(file->value("tokens").strings()[149999] == "t149999");
  CHECK(file->value("tokens").raw().size() == 12 + strings.size());
}

TEST_CASE("gguf: split files are opened from any part") {
  const test::TempDir folder;
  const auto part = [&](int number, int own, int count, int all, const char* name) {
    GgufBytes f;
    if (number == 1) f.text("general.architecture", "llama");
    f.number("split.no", GgufKind::U16, static_cast<std::uint16_t>(own));
    f.number("split.count", GgufKind::U16, static_cast<std::uint16_t>(count));
    f.number("split.tensors.count", GgufKind::I32, std::int32_t{all});
    f.record(name, {2}, kF32, 0);
    f.data = number_bytes(static_cast<float>(number)) + number_bytes(0.25F);
    return folder.write(concat_text("m-0000", number, "-of-00003.gguf"), f.bytes());
  };
  const std::string one = part(1, 0, 3, 3, "a"), two = part(2, 1, 3, 3, "b"), three = part(3, 2, 3, 3, "c");
  for (const std::string& path : {one, two, three}) {
    const auto file = GgufFile::open(path);
    CHECK(file->num_parts() == 3);
    CHECK(file->names() == std::vector<std::string>{"a", "b", "c"});
    CHECK(file->architecture() == "llama");
    CHECK(file->decoded("b").at(0) == 2);
    CHECK(file->decoded("c").at(1) == 0.25);
    CHECK_FALSE(*file->identity("a") == *file->identity("b"));
  }
  const auto error = [&] { return error_text([&] { GgufFile::open(one); }); };
  part(2, 1, 3, 3, "a");
  CHECK(contains(error(), "m-00002-of-00003.gguf: tensor \"a\" occurs twice"));
  part(2, 1, 3, 4, "b");
  CHECK(contains(error(), "\"split.tensors.count\" is 4, but the 3 parts hold 3 tensors"));
  part(2, 2, 3, 3, "b");
  CHECK(contains(error(), "m-00002-of-00003.gguf: the metadata says that this is part 3 of 3, expected 2 of 3"));
  CHECK(contains(error_text([&] { GgufFile::open(two); }),
                 "the file says that it is part 3 of 3, but its name says part 2 of 3"));
  CHECK(std::remove(two.c_str()) == 0);
  CHECK(contains(error(), "part 2 of 3 of the model is missing: cannot open"));
  const std::string moved = folder.write("m.gguf", "");
  CHECK(std::rename(one.c_str(), moved.c_str()) == 0);
  CHECK(contains(error_text([&] { GgufFile::open(moved); }),
                 "part 1 of 3, but its name says no part number\n  hint: rename the parts"));
  CHECK(contains(error_text([&] { GgufFile::from_bytes(MappedFile::open(moved).bytes(), "w"); }), "one of 3 parts"));
}

TEST_CASE("gguf: each fault of the head has its message") {
  CHECK(contains(gguf_error(""), "w.gguf: the file does not begin with \"GGUF\"\n  hint: the file is cut short"));
  CHECK(contains(gguf_error("GG"), "cut short"));
  CHECK(contains(gguf_error("PK\x03\x04"), "hint: this is not a GGUF file"));
  CHECK(contains(gguf_error("tjgg...."), "older GGML formats"));
  CHECK(contains(gguf_error("GGUF\x03"), "the version at byte 4 takes 4 bytes, but only 1 follow"));
  GgufBytes f;
  f.version = 1;
  CHECK(contains(gguf_error(f),
                 "unsupported: w.gguf: the file has GGUF version 1; rlx reads versions 2 and 3\n  hint: convert"));
  f.version = 0x03000000;
  CHECK(contains(gguf_error(f), "the file is big-endian"));
  f.version = 4;
  CHECK(contains(gguf_error(f), "version 4"));
  f.version = 2;
  CHECK(gguf_error(f).empty());
  f.tensors = 1;
  CHECK(contains(gguf_error(f), "the count at byte 8 is 1 tensors, but only 8 bytes follow"));
  f.tensors = ~std::uint64_t{0};
  CHECK(contains(gguf_error(f), "byte 8 is 18446744073709551615 tensors"));
  f.tensors = 0, f.values = 1ull << 61;
  CHECK(
      contains(gguf_error(f), "the count at byte 16 is 2305843009213693952 metadata values, but only 0 bytes follow"));
  const std::string whole = two_tensors().bytes();
  for (std::size_t size = 0; size < whole.size() - 24; ++size)
    CHECK(contains(gguf_error(whole.substr(0, size)), "cut short"));
}

TEST_CASE("gguf: each fault of the metadata has its message") {
  const auto with = [](std::string_view key, GgufKind kind, std::string_view payload) {
    return gguf_error(GgufBytes().value(key, kind, payload));
  };
  CHECK(contains(with("", GgufKind::U8, "1"), "key 0 of the metadata at byte 24 has 0 bytes, expected 1 to 65535"));
  CHECK(contains(with(std::string(65536, 'k'), GgufKind::U8, "1"), "has 65536 bytes, expected 1 to 65535"));
  CHECK(contains(with("\xff", GgufKind::U8, "1"), "key 0 of the metadata at byte 24 is not UTF-8"));
  CHECK(contains(with("k", static_cast<GgufKind>(13), "1"),
                 "the value of \"k\" at byte 33 has the unknown value type 13"));
  CHECK(contains(with("k", GgufKind::Bool, "\2"), "the value of \"k\" at byte 37 is the byte 2, expected 0 or 1"));
  CHECK(contains(with("k", GgufKind::U64, "1234567"), "takes 8 bytes, but only 7 follow"));
  CHECK(contains(with("k", GgufKind::String, number_bytes(~std::uint64_t{0})),
                 "has 18446744073709551615 bytes, but only 0"));
  const auto array = [](GgufKind element, std::uint64_t count, std::string_view payload) {
    return gguf_error(GgufBytes().array("k", element, count, payload));
  };
  CHECK(array(GgufKind::Array, 0, "").empty());
  CHECK(contains(array(static_cast<GgufKind>(99), 1, ""), "the array \"k\" at byte 37 has the unknown value type 99"));
  CHECK(contains(array(GgufKind::U8, 1ull << 60, "12"),
                 "has 1152921504606846976 elements of u8, but only 2 bytes follow"));
  CHECK(contains(array(GgufKind::F64, (1ull << 61) + 1, "12345678"), "elements of f64, but only 8"));
  CHECK(contains(array(GgufKind::String, 2, gguf_string("abcdefgh")), "the array \"k\" at byte 65 takes 8 bytes"));
  CHECK(contains(array(GgufKind::String, 3, gguf_string("abcdefgh")), "has 3 elements of string, but only 16 bytes"));
  CHECK(contains(array(GgufKind::Bool, 2, "\1\2"), "element 1 is the byte 2"));
  std::string nested;
  for (int i = 0; i < 100; ++i) nested += number_bytes(std::uint32_t{9}) + number_bytes(std::uint64_t{1});
  CHECK(contains(array(GgufKind::Array, 1, nested), "has arrays nested more than 4 deep"));
  CHECK(contains(gguf_error(GgufBytes().number("k", GgufKind::U8, 'a').number("k", GgufKind::U8, 'b')),
                 "key \"k\" occurs twice in the metadata"));
  for (const std::uint32_t a : {0U, 3U, 48U})
    CHECK(contains(gguf_error(GgufBytes().number("general.alignment", GgufKind::U32, a)), "expected a power of two"));
  CHECK(contains(gguf_error(GgufBytes().number("general.alignment", GgufKind::U64, std::uint64_t{32})),
                 "key \"general.alignment\" is u64, expected u32"));
  const std::string content = GgufBytes().number("n", GgufKind::U8, 'a').array("s", GgufKind::F32, 1, "abcd").bytes();
  const auto file = parse_gguf(content);
  const GgufValue &n = file->value("n"), &s = file->value("s");
  CHECK(
      contains(error_text([&] { file->architecture(); }), "w.gguf: the metadata has no key \"general.architecture\""));
  CHECK(contains(error_text([&] { n.as_bool(); }), "w.gguf: key \"n\" is u8, expected bool"));
  CHECK(contains(error_text([&] { n.as_string(); }), "expected a string"));
  CHECK(contains(error_text([&] { n.size(); }), "expected an array"));
  CHECK(contains(error_text([&] { s.as_number(); }), "key \"s\" is an array of f32, expected a number"));
  CHECK(contains(error_text([&] { s.strings(); }), "expected an array of strings"));
  CHECK(contains(error_text([&] { s.ints(); }), "expected an array of integers"));
}

TEST_CASE("gguf: each fault of the tensors has its message") {
  CHECK(gguf_error(two_tensors()).empty());
  CHECK(contains(gguf_error(two_tensors(0)), "tensors \"a\" and \"b\" overlap at byte"));
  CHECK(contains(gguf_error(two_tensors(36)),
                 "tensor \"b\" begins at offset 36, expected a multiple of the alignment 32"));
  CHECK(contains(gguf_error(two_tensors(64)), "tensor \"b\" has 8 bytes from offset 64, but the data section has 64"));
  CHECK(contains(gguf_error(two_tensors(~std::uint64_t{31})), "from offset 18446744073709551584, but"));
  const auto one = [](std::string_view name, std::initializer_list<std::uint64_t> dims, std::uint32_t type) {
    GgufBytes f;
    f.record(name, dims, type, 0);
    f.data = std::string(64, '\x01');
    return gguf_error(f);
  };
  CHECK(contains(one("", {4}, kF32), "tensor 0 at byte 24 has no name"));
  CHECK(contains(one("\xc0", {4}, kF32), "the name of tensor 0 at byte 24 is not UTF-8"));
  CHECK(contains(one("t", {1, 1, 1, 1, 1, 1, 1, 1, 1}, kF32), "tensor \"t\" has 9 dimensions, expected at most 8"));
  CHECK(contains(one("t", {1ull << 63}, kF32), "has the dimension 9223372036854775808"));
  CHECK(contains(one("t", {1ull << 40, 1ull << 40}, kF32), "has more bytes than any file can hold"));
  CHECK(contains(one("t", {1ull << 60}, kF32), "has more bytes than any file can hold"));
  CHECK(contains(one("t", {4}, 4), "unsupported: w.gguf: tensor \"t\" has the type number 4"));
  CHECK(contains(one("t", {33}, kQ8_0),
                 "of shape [33] and type Q8_0 has rows of 33 elements, expected a multiple of 32"));
  CHECK(contains(one("t", {}, kQ8_0), "has rows of 1 elements"));
  CHECK(contains(one("t", {17}, kF32), "has 68 bytes from offset 0, but the data section has 64"));
  CHECK(one("t", {}, kF32).empty());
  CHECK(one("t", {0, 1ull << 60, 1ull << 60}, kF32).empty());
  CHECK(one("t", {32, 0}, kQ8_0).empty());
  GgufBytes twice = two_tensors();
  twice.records.clear(), twice.tensors = 0;
  twice.record("a", {2}, kF32, 0).record("a", {2}, kF32, 32);
  CHECK(contains(gguf_error(twice), "tensor \"a\" occurs twice"));
  GgufBytes empty;  // no data, and none is needed
  empty.record("e", {0}, kF32, 0);
  CHECK(gguf_error(empty).empty());
  CHECK(contains(error_text([&] { parse_gguf(two_tensors().bytes())->decoded("c"); }), "has no tensor \"c\""));
}

TEST_CASE("gguf: types by number and name") {
  for (const GgufTypeInfo& t : gguf_types()) {
    CHECK(&gguf_type_info(t.type) == &t);
    CHECK(gguf_type_of_number(static_cast<std::uint32_t>(t.type)) == t.type);
    CHECK(parse_gguf_type(t.name) == t.type);
    if (is_block_scheme(t.scheme)) {
      CHECK(gguf_type_of(t.scheme) == t.type);
      CHECK(block_layout(t.scheme).bytes == t.bytes);
      CHECK(block_layout(t.scheme).elements == t.elements);
    }
  }
  CHECK(parse_gguf_type("q4_k") == GgufType::Q4_K);
  CHECK_FALSE(parse_gguf_type("q4_kk"));
  CHECK_FALSE(parse_gguf_type(""));
  CHECK_FALSE(gguf_type_of_number(5));
}

}  // namespace rlx
