// Reads references of encoders.
#include "tests/support/encoder_reference.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "rlx/formats/json.h"
#include "rlx/formats/safetensors.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/paths.h"

namespace rlx::test {
namespace {

std::string path_of_encoder(const std::string& name) {
  return source_path("tests/unit/models/encoder_references") + "/" + name + ".safetensors";
}

std::map<std::string, std::string> texts_of(const SafetensorsFile& file) {
  return {file.metadata().begin(), file.metadata().end()};
}

// A JSON list as text again, as drawn_weights parses text.
std::string rewritten(const JsonValue& list) {
  JsonWriter out;
  out.begin_array();
  for (const JsonValue& w : list.elements("weights")) {
    out.begin_object().member("name", w.get_string("name")).key("shape").begin_array();
    for (const JsonValue& d : w.at("shape").elements("shape")) out.value(d.as_int("shape"));
    out.end_array().member("mean", w.get_number("mean")).member("spread", w.get_number("spread")).end_object();
  }
  return out.end_array().take();
}

}  // namespace

Tensor EncoderReference::mask() const {
  std::vector<float> out(static_cast<std::size_t>(batch() * sequence()), 0);
  for (std::size_t b = 0; b < lengths.size(); ++b)
    std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(b) * sequence(), lengths[b], 1.0F);
  return Tensor::of<float>({batch(), sequence()}, out);
}

Tensor EncoderReference::tokens_of(const Tensor& values) const {
  const std::int64_t width = values.dim(2);
  std::vector<float> out;
  const std::span<const float> from = values.values<float>();
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const auto first = static_cast<std::size_t>(static_cast<std::int64_t>(b) * sequence() * width);
    const auto row = from.subspan(first, static_cast<std::size_t>(lengths[b] * width));
    out.insert(out.end(), row.begin(), row.end());
  }
  return Tensor::of<float>({static_cast<std::int64_t>(out.size()) / width, width}, out);
}

std::vector<std::string> encoder_references() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/unit/models/encoder_references"))) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() == ".safetensors" && !name.starts_with("folder_")) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

EncoderReference encoder_reference(const std::string& name) {
  const auto file = SafetensorsFile::open(path_of_encoder(name));
  const std::map<std::string, std::string> text = texts_of(*file);
  EncoderReference out;
  out.name = name;
  out.config = text.at("config");
  out.ids = SafetensorsFile::tensor(file, "ids"), out.types = SafetensorsFile::tensor(file, "types");
  out.hidden = SafetensorsFile::tensor(file, "hidden");
  if (file->find("scores")) out.scores = SafetensorsFile::tensor(file, "scores");
  const Tensor lengths = SafetensorsFile::tensor(file, "lengths");
  for (std::int64_t i = 0; i < lengths.num_elements(); ++i) out.lengths.push_back(lengths.at_i64(i));
  out.weights = drawn_weights(text.at("weights"), text.at("dtype"));
  return out;
}

void write_model(const TempDir& folder, const EncoderReference& model) {
  folder.write("config.json", model.config);
  write_safetensors(folder.file("model.safetensors"), model.weights, {{"format", "pt"}});
}

FolderReference folder_reference(const std::string& name) {
  const auto file = SafetensorsFile::open(path_of_encoder("folder_" + name));
  const std::map<std::string, std::string> text = texts_of(*file);
  FolderReference out;
  const JsonDocument files = JsonDocument::parse(text.at("files"), name);
  std::string given;
  for (const auto& [path, content] : files.root().members("files")) {
    if (path == "given")
      given = content.as_string("given");
    else
      out.files.emplace_back(path, content.as_string("file"));
  }
  out.weights = drawn_weights(text.at("weights"), "f32");
  const JsonDocument dense = JsonDocument::parse(text.at("dense"), name);
  for (const auto& [path, list] : dense.root().members("dense"))
    out.dense.emplace_back(path, drawn_weights(rewritten(list), "f32"));
  const JsonDocument texts = JsonDocument::parse(given, name);
  for (const JsonValue& one : texts.root().elements("given")) {
    if (one.is_string()) {
      out.texts.emplace_back(one.as_string("text"));
      continue;
    }
    const std::vector<JsonValue> pair = one.elements("pair");
    out.pairs.emplace_back(pair.at(0).as_string("query"), pair.at(1).as_string("passage"));
  }
  for (const std::string& tensor : file->names()) {
    if (tensor == "scores")
      out.scores = SafetensorsFile::tensor(file, tensor);
    else
      out.vectors.emplace_back(tensor.substr(tensor.find(':') + 1), SafetensorsFile::tensor(file, tensor));
  }
  return out;
}

void write_folder(const TempDir& folder, const FolderReference& reference) {
  for (const auto& [path, content] : reference.files) {
    std::filesystem::create_directories(std::filesystem::path(folder.file(path)).parent_path());
    folder.write(path, content);
  }
  write_safetensors(folder.file("model.safetensors"), reference.weights, {{"format", "pt"}});
  for (const auto& [path, weights] : reference.dense)
    write_safetensors(folder.file(path + "/model.safetensors"), weights, {{"format", "pt"}});
}

double relative_error(const Tensor& got, const Tensor& want) {
  if (got.dims() != want.dims()) return std::numeric_limits<double>::infinity();
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < want.num_elements(); ++i)
    if (const double x = std::fabs(want.at(i)); !(x <= largest)) largest = x;
  for (std::int64_t i = 0; i < want.num_elements(); ++i) {
    const double gap = std::fabs(got.at(i) - want.at(i));
    if (std::isnan(gap)) return std::numeric_limits<double>::infinity();
    if (!(gap <= worst)) worst = gap;
  }
  return worst / largest;
}

}  // namespace rlx::test
