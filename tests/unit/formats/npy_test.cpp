// npy and npz: files written by NumPy, round trips, and one error message for each fault.
#include "rlx/formats/npy.h"

#include <doctest/doctest.h>

#include "rlx/formats/mapped_file.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

std::string corpus(const std::string& name) { return test::source_path("tests/fuzz/corpus/npy/" + name); }

std::span<const std::byte> npy_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string npy_text(const std::string& dictionary, const std::string& data) {
  std::string out = "\x93NUMPY\x01";
  out += '\0';
  out += static_cast<char>(dictionary.size() & 0xFF);
  out += static_cast<char>(dictionary.size() >> 8);
  return out + dictionary + data;
}

std::string npy_message(const std::string& dictionary, const std::string& data) {
  const std::string text = npy_text(dictionary, data);
  return error_text([&] { parse_npy(npy_bytes(text), "x.npy"); });
}

std::string npz_message(const std::string& text) {
  return error_text([&] { parse_npz(npy_bytes(text), "x.npz"); });
}

// arange(24).reshape(2, 3, 4) / 4
void check_ramp(const Tensor& t, DType dtype) {
  CHECK(t.dtype() == dtype);
  CHECK(t.dims() == std::vector<std::int64_t>{2, 3, 4});
  for (int i = 0; i < 24; ++i) CHECK(t.at(i) == i / 4.0);
}

}  // namespace

TEST_CASE("npy: files NumPy wrote") {
  check_ramp(read_npy(corpus("f4_v1.npy")), DType::F32);
  check_ramp(read_npy(corpus("f4_v2.npy")), DType::F32);
  check_ramp(read_npy(corpus("f4_v3.npy")), DType::F32);
  check_ramp(read_npy(corpus("f4_fortran.npy")), DType::F32);
  check_ramp(read_npy(corpus("f8_big_endian.npy")), DType::F64);
  const Tensor complex = read_npy(corpus("c16_big_endian_fortran.npy"));
  CHECK(complex.dtype() == DType::C128);
  CHECK(complex.dims() == std::vector<std::int64_t>{3, 4});
  const double* parts = reinterpret_cast<const double*>(complex.data());
  for (int i = 0; i < 12; ++i) {
    CHECK(parts[2 * i] == i / 4.0);
    CHECK(parts[2 * i + 1] == (12 + i) / 4.0);
  }
  CHECK(read_npy(corpus("i8_scalar.npy")).identical(Tensor::scalar_i64(DType::I64, -5)));
  const Tensor flags = read_npy(corpus("bool_vector.npy"));
  CHECK(flags.at(0) == 1);
  CHECK(flags.at(1) == 0);
  CHECK(read_npy(corpus("u2_empty.npy")).dims() == std::vector<std::int64_t>{0, 3});
  CHECK(read_npy(corpus("f2.npy")).at(1) == -2.0);
  CHECK(contains(error_text([] { read_npy(corpus("string.npy")); }), "the element type '<U2' is not supported"));
  CHECK(contains(error_text([] { read_npy(corpus("record.npy")); }), "structured dtype"));
}

TEST_CASE("npy: what is written reads back, byte for byte as NumPy writes it") {
  CHECK(npy_bytes(read_npy(corpus("f4_v1.npy"))) == read_file(corpus("f4_v1.npy")));
  CHECK(npy_bytes(read_npy(corpus("i8_scalar.npy"))) == read_file(corpus("i8_scalar.npy")));
  CHECK(npy_bytes(read_npy(corpus("bool_vector.npy"))) == read_file(corpus("bool_vector.npy")));
  const test::TempDir folder;
  for (const DType t : {DType::Bool, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32,
                        DType::U64, DType::F16, DType::F32, DType::F64, DType::C64, DType::C128}) {
    for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{}, {5}, {2, 3}, {0, 7}}) {
      const Tensor x = Tensor::full(Shape(Dims(dims.begin(), dims.end()), t), 1);
      write_npy(folder.file("x.npy"), x);
      CHECK(read_npy(folder.file("x.npy")).identical(x));
      CHECK(npy_header(t, dims).size() % 64 == 0);
    }
  }
  CHECK(contains(error_text([] { npy_header(DType::BF16, {}); }), "NumPy has no dtype bf16"));
}

TEST_CASE("npy: nonzero bytes of a boolean array are true") {
  const std::string text =
      npy_text("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", std::string("\x02\0", 2));
  const Tensor t = parse_npy(npy_bytes(text), "x");
  CHECK(static_cast<int>(t.data()[0]) == 1);
  CHECK(static_cast<int>(t.data()[1]) == 0);
}

TEST_CASE("npy: each fault has its message") {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2L), }  \n";
  const std::string data(8, '\0');
  CHECK(npy_message(good, data).empty());
  CHECK(npy_message("{\"shape\":(),\"fortran_order\":True,\"descr\":\"f8\"}", data).empty());
  CHECK(contains(npy_message(good, data.substr(1)),
                 "x.npy: the shape [1, 2] of '<f4' needs 8 bytes of data from byte 73, but 7 follow"));
  CHECK(contains(npy_message(good, data + "x"), "more than one array"));
  CHECK(contains(error_text([] { parse_npy(npy_bytes(""), "x.npy"); }), "not an npy file"));
  CHECK(contains(error_text([] { parse_npy(npy_bytes("\x93NUMPY\x01"), "x.npy"); }), "ends inside its header"));
  std::string cut = npy_text(good, data).substr(0, 40);
  CHECK(contains(error_text([&] { parse_npy(npy_bytes(cut), "x.npy"); }),
                 "the header needs 73 bytes, but the file has 40"));
  cut[6] = 9;
  CHECK(contains(error_text([&] { parse_npy(npy_bytes(cut), "x.npy"); }), "npy version 9.0"));
  CHECK(contains(npy_message("{'descr': '<f4', 'shape': (1,)}", data), "lacks 'fortran_order'"));
  CHECK(contains(npy_message("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", data),
                 "bad header at byte 44: expected True or False"));
  CHECK(contains(npy_message("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", data),
                 "a dimension of 0 or more"));
  CHECK(contains(npy_message("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", data),
                 "fits 64 bits"));
  CHECK(contains(npy_message("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", data),
                 "more elements"));
  CHECK(contains(npy_message("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", data),
                 "the end of the header"));
  CHECK(contains(npy_message("{'descr': '<f4", data), "closing quote"));
  CHECK(contains(npy_message("{'order': 'C'}", data), "not 'order'"));
  CHECK(contains(npy_message("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,)}", data),
                 "'<M8[s]' is not supported"));
}

TEST_CASE("npz: archives NumPy wrote, stored and deflated") {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    CAPTURE(name);
    const std::vector<NamedTensor> arrays = read_npz(corpus(name));
    int seen = 0;
    for (const NamedTensor& t : arrays) {
      if (t.name == "a") {
        check_ramp(t.tensor, DType::F32);
        ++seen;
      }
      if (t.name == "ids") {
        CHECK(t.tensor.at_i64(1) == -2);
        ++seen;
      }
      if (t.name == "zeros") CHECK(t.tensor.num_elements() == 5000);
    }
    CHECK(seen == 2);
  }
}

TEST_CASE("npz: what is written reads back") {
  const test::TempDir folder;
  const std::vector<NamedTensor> arrays = {{"é/x", Tensor::full(Shape({3, 5}, DType::F32), 2)},
                                           {"y", Tensor::scalar_i64(DType::I64, 9)},
                                           {"z", Tensor::zeros(Shape({0}, DType::U8))}};
  write_npz(folder.file("x.npz"), arrays);
  const std::vector<NamedTensor> back = read_npz(folder.file("x.npz"));
  REQUIRE(back.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(back[i].name == arrays[i].name);
    CHECK(back[i].tensor.identical(arrays[i].tensor));
  }
  write_npz(folder.file("none.npz"), {});
  CHECK(read_npz(folder.file("none.npz")).empty());
  const std::vector<NamedTensor> twice = {arrays[1], arrays[1]};
  CHECK(contains(error_text([&] { write_npz(folder.file("x.npz"), twice); }), "names must be unique"));
}

TEST_CASE("npz: each fault has its message") {
  const std::string good = read_file(corpus("deflated.npz"));
  CHECK(npz_message(good).empty());
  CHECK(contains(npz_message(""), "too few for a zip archive"));
  CHECK(contains(npz_message(std::string(1000, 'x')), "no end of central directory"));
  CHECK(contains(npz_message(good.substr(100)), "x.npz: "));
  std::string bad = good;
  const std::size_t central = bad.find("PK\x01\x02");
  REQUIRE(central != std::string::npos);
  bad[central + 16] ^= 1;
  CHECK(contains(npz_message(bad), "the checksum differs"));
  bad = good;
  bad[central + 10] = 12;
  CHECK(contains(npz_message(bad), "compressed by method 12"));
  bad = good;
  bad[central + 8] |= 1;
  CHECK(contains(npz_message(bad), "is encrypted"));
  bad = good;
  bad.replace(central + 24, 4, "\xFF\xFF\xFF\x7F");
  CHECK(contains(npz_message(bad), "claims 2147483647 bytes"));
  bad = good;
  bad.replace(central + 42, 4, "\xF0\xFF\xFF\x7F");
  CHECK(contains(npz_message(bad), "at byte 2147483632 needs 30 bytes"));
  bad = good;
  bad[100] ^= 0x55;  // inside the first entry's compressed data
  CHECK_FALSE(npz_message(bad).empty());
}

TEST_CASE("npz: entries that share the bytes of one array are refused") {
  const test::TempDir folder;
  const NamedTensor one[] = {{"a", Tensor::zeros(Shape({Dim(1000)}, DType::F32))}};
  write_npz(folder.file("a.npz"), one);
  const std::string file = read_file(folder.file("a.npz"));
  constexpr std::size_t kEndBytes = 22;
  const std::size_t directory = file.find("PK\x01\x02"), end = file.size() - kEndBytes;
  std::string entry = file.substr(directory, end - directory), all = file.substr(0, end), last = file.substr(end);
  for (char name = 'b'; name <= 'z'; ++name) {
    entry[46] = name;
    all += entry;
  }
  const auto set = [&](std::size_t at, std::size_t bytes, std::size_t value) {
    for (std::size_t i = 0; i < bytes; ++i) last[at + i] = static_cast<char>(value >> 8 * i & 0xFF);
  };
  set(8, 2, 26), set(10, 2, 26), set(12, 4, 26 * entry.size());
  CHECK(contains(npz_message(all + last), "shares bytes with others"));
}

}  // namespace rlx
