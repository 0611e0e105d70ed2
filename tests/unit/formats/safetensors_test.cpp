// safetensors: files of the reference implementation, round trips, and one error message for each kind of faulty file.
#include "rlx/formats/safetensors.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

std::string file_of(const std::string& header, std::size_t data_size) {
  std::string out(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(out.data(), &size, 8);
  return out + header + std::string(data_size, '\x01');
}

std::shared_ptr<SafetensorsFile> parse(const std::string& content) {
  return SafetensorsFile::from_bytes(std::as_bytes(std::span(content.data(), content.size())), "w.safetensors");
}

std::string message(const std::string& header, std::size_t data_size) {
  const std::string content = file_of(header, data_size);
  return error_text([&] { parse(content); });
}

}  // namespace

TEST_CASE("safetensors: a file of the reference implementation") {
  const std::shared_ptr<SafetensorsFile> file =
      SafetensorsFile::open(test::source_path("tests/fuzz/corpus/safetensors/mixed.safetensors"));
  CHECK(file->names().size() == 7);
  CHECK(file->metadata() == std::vector<std::pair<std::string, std::string>>{{"format", "np"}});
  const Tensor weight = SafetensorsFile::tensor(file, "weight");
  CHECK(weight.dims() == std::vector<std::int64_t>{2, 3, 4});
  for (int i = 0; i < 24; ++i) CHECK(weight.at(i) == i / 4.0);
  CHECK(SafetensorsFile::tensor(file, "ids")
            .identical(Tensor::of<std::int64_t>({3}, std::vector<std::int64_t>{1, 2, 3})));
  CHECK(SafetensorsFile::tensor(file, "flag").dtype() == DType::Bool);
  CHECK(SafetensorsFile::tensor(file, "scalar").at(0) == 2.5);
  CHECK(SafetensorsFile::tensor(file, "scalar").rank() == 0);
  CHECK(SafetensorsFile::tensor(file, "half").at(1) == 2.0);
  CHECK(SafetensorsFile::tensor(file, "empty").num_elements() == 0);
  const std::optional<TensorView> view = file->find("weight");
  REQUIRE(view);
  CHECK(view->size_bytes == 96);
  CHECK(view->dims.size() == 3);
  CHECK_FALSE(file->find("weights"));
  CHECK(
      contains(error_text([&] { file->at("weights"); }), "has no tensor \"weights\"\n  hint: did you mean 'weight'?"));
  file->drop_all_pages("weight");
  file->drop_all_pages("absent");
  CHECK(weight.at(23) == 23 / 4.0);

  CHECK(SafetensorsFile::open(test::source_path("tests/fuzz/corpus/safetensors/empty.safetensors"))->names().empty());
}

TEST_CASE("safetensors: data that is not aligned is copied") {
  const std::shared_ptr<SafetensorsFile> file =
      SafetensorsFile::open(test::source_path("tests/fuzz/corpus/safetensors/unaligned.safetensors"));
  const TensorView x = file->at("x");
  CHECK(reinterpret_cast<std::uintptr_t>(x.data) % 4 == 0);
  CHECK(static_cast<const float*>(x.data)[0] == 1.5f);
  CHECK(static_cast<const float*>(x.data)[1] == -2.0f);
}

TEST_CASE("safetensors: a tensor outlives its file's other owners") {
  Tensor x;
  {
    const auto file = SafetensorsFile::open(test::source_path("tests/fuzz/corpus/safetensors/mixed.safetensors"));
    x = SafetensorsFile::tensor(file, "weight");
  }
  CHECK(x.at(5) == 1.25);
}

TEST_CASE("safetensors: what is written reads back, aligned for every dtype") {
  const test::TempDir folder;
  std::vector<NamedTensor> tensors;
  for (const DType t : {DType::U8, DType::Bool, DType::F16, DType::F64, DType::BF16, DType::F32, DType::I64,
                        DType::F8E4M3, DType::C64, DType::I16}) {
    tensors.push_back({concat_text("t \"", dtype_name(t), "\""), Tensor::full(Shape({3, 1}, t), 1)});
  }
  tensors.push_back({"empty", Tensor::zeros(Shape({0, 2}, DType::F32))});
  write_safetensors(folder.file("out"), tensors, {{"who", "é\n"}});
  const auto file = SafetensorsFile::open(folder.file("out"));
  CHECK(file->names().size() == tensors.size());
  CHECK(file->metadata()[0].second == "é\n");
  for (const NamedTensor& t : tensors) {
    CAPTURE(t.name);
    const Tensor back = SafetensorsFile::tensor(file, t.name);
    CHECK(back.identical(t.tensor));
    if (t.tensor.size_bytes() > 0)
      CHECK(reinterpret_cast<std::uintptr_t>(back.data()) % size_bytes(t.tensor.dtype()) == 0);
  }
  tensors.push_back(tensors[0]);
  CHECK(contains(error_text([&] { write_safetensors(folder.file("out"), tensors); }), "\"t \"u8\"\" twice"));
  const NamedTensor odd{"q", Tensor::zeros(Shape({2}, DType::I4))};
  CHECK(contains(error_text([&] { write_safetensors(folder.file("out"), std::span(&odd, 1)); }),
                 "safetensors has no dtype i4"));
  const NamedTensor reserved{"__metadata__", Tensor::zeros(Shape({2}, DType::F32))};
  CHECK(contains(error_text([&] { write_safetensors(folder.file("out"), std::span(&reserved, 1)); }), "reserves"));
  // What could not be read again is not written.
  const std::string kept = folder.write("kept", "old");
  const NamedTensor bytes{"q\xff", reserved.tensor}, good{"q", reserved.tensor};
  CHECK(contains(error_text([&] { write_safetensors(kept, std::span(&bytes, 1)); }),
                 "the tensor name \"q\xff\": it is not valid UTF-8 at byte 1"));
  const auto metadata = [&](std::string key, std::string text) {
    return error_text([&] { write_safetensors(kept, std::span(&good, 1), {{"k", "v"}, {key, text}}); });
  };
  CHECK(contains(metadata("\xc3", "v"), "the metadata key \"\xc3\": it is not valid UTF-8 at byte 0"));
  CHECK(contains(metadata("l", "\xc3("), "the metadata of \"l\" \"\xc3(\": it is not valid UTF-8 at byte 0"));
  CHECK(contains(metadata("k", "w"), "cannot write the metadata key \"k\" twice"));
  CHECK(std::filesystem::file_size(kept) == 3);
}

TEST_CASE("safetensors: each fault has its message") {
  const std::string x = R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  CHECK(message(x, 8).empty());
  CHECK(contains(error_text([] { parse("1234567"); }), "w.safetensors: the file has 7 bytes, expected at least the 8"));
  CHECK(contains(error_text([] { parse(std::string(8, '\xFF')); }), "expected at most 100000000"));
  CHECK(contains(error_text([&] { parse(file_of(x, 0).substr(0, 30)); }),
                 "say that the header has 54 bytes, but only 22 follow"));
  CHECK(contains(error_text([] { parse(file_of("", 8)); }), "does not start with '{'"));
  CHECK(contains(message("PK\x03\x04....", 8), "does not start with '{'"));
  CHECK(contains(message(R"({"x":)", 8), "w.safetensors: header (starts at byte 8): not valid JSON at byte 5"));
  CHECK(contains(message(x, 7), "tensor \"x\" ends at byte 70, but the file has 69 bytes"));
  CHECK(contains(message(x, 12), "the last 4 bytes (from byte 70) belong to no tensor"));
  CHECK(contains(message(R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
                 "shape [3] and dtype F32 needs 12 bytes, but \"data_offsets\" [0, 8] hold 8"));
  CHECK(contains(message(R"({"x":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", 8), "unknown dtype \"F99\""));
  CHECK(contains(message(R"({"x":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "negative dimension -2"));
  CHECK(contains(message(R"({"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
                 "more elements than any file"));
  std::string ones = "1";
  for (int i = 1; i < 65; ++i) ones += ",1";
  CHECK(contains(message(R"({"x":{"dtype":"F32","shape":[)" + ones + R"(],"data_offsets":[0,4]}})", 4),
                 "tensor \"x\" has 65 dimensions, expected at most 64"));
  CHECK(contains(message(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "must ascend from 0"));
  CHECK(contains(message(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", 8), "must ascend from 0"));
  CHECK(contains(message(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8), "has 1 values, expected 2"));
  CHECK(contains(message(R"({"x":{"dtype":"F32","shape":[2]}})", 8),
                 "tensor \"x\": the header lacks its \"data_offsets\""));
  CHECK(contains(message(R"({"x":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", 8),
                 "\"shape\" of tensor \"x\" must be an array"));
  CHECK(contains(message(R"({"x":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8),
                 "must be an integer, got a number"));
  CHECK(contains(message(R"({"x":7})", 8), "lacks its \"dtype\""));
  CHECK(contains(message(R"({"__metadata__":{"k":1}})", 0), "\"k\" must be a string"));
  CHECK(contains(message(
                     R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
               "x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                     8),
                 "tensor \"x\" is listed twice"));
  CHECK(contains(message(
                     R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
               "y":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                     12),
                 "tensors \"x\" and \"y\" overlap at byte"));
  CHECK(contains(message(
                     R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
               "y":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                     12),
                 "before tensor \"y\" belong to no tensor"));
  CHECK(message(R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2).empty());
  std::string bad_bool = file_of(R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  bad_bool.back() = '\x02';
  CHECK(contains(error_text([&] { parse(bad_bool); }), "element 1 is the byte 2, expected 0 or 1"));
  CHECK(contains(error_text([] { SafetensorsFile::open("/no/such/model.safetensors"); }),
                 "cannot open \"/no/such/model.safetensors\""));
}

TEST_CASE("safetensors: the MiniLM weights" * doctest::test_suite(test::kNeedsModel)) {
  const std::string folder = test::model_dir();
  if (folder.empty()) return test::skip("the all-MiniLM-L6-v2 model");
  const auto file = SafetensorsFile::open(folder + "/model.safetensors");
  CHECK(file->names().size() == 104);
  CHECK(file->at("embeddings.position_ids").dtype == DType::I64);
  CHECK(SafetensorsFile::tensor(file, "embeddings.word_embeddings.weight").dims() ==
        std::vector<std::int64_t>{30522, 384});
}

}  // namespace rlx
