// Reads references and draws the weights that they name.
#include "tests/support/decoder_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/safetensors.h"
#include "tests/support/paths.h"

namespace rlx::test {
namespace {

std::string folder_of_references() { return source_path("tests/unit/models/references"); }

// FNV-1a, then SplitMix64 over a counter, as make_references.py draws.
std::uint64_t name_hash(std::string_view name) {
  std::uint64_t h = 0xcbf29ce484222325U;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return h;
}
float drawn(std::uint64_t hash, std::uint64_t i) {
  std::uint64_t x = hash + (i + 1) * 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  x ^= x >> 31;
  return static_cast<float>(x >> 40) / static_cast<float>(1 << 23) - 1.0F;
}

template <class T>
Tensor of_dtype(const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
  std::vector<T> out;
  out.reserve(values.size());
  for (const float v : values) out.push_back(T(v));
  return Tensor::of<T>(dims, out);
}

std::vector<std::string> cases_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<std::string> decoder_references() { return cases_in(folder_of_references()); }

std::vector<NamedTensor> drawn_weights(const std::string& list, const std::string& dtype) {
  std::vector<NamedTensor> out;
  const JsonDocument weights = JsonDocument::parse(list, "weights of a reference");
  for (const JsonValue& w : weights.root().elements("weights")) {
    std::vector<std::int64_t> dims;
    std::size_t count = 1;
    for (const JsonValue& d : w.at("shape").elements("shape")) {
      dims.push_back(d.as_int("shape"));
      count *= static_cast<std::size_t>(dims.back());
    }
    const std::string tensor(w.get_string("name"));
    const auto mean = static_cast<float>(w.get_number("mean")), spread = static_cast<float>(w.get_number("spread"));
    const std::uint64_t hash = name_hash(tensor);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = mean + spread * drawn(hash, i);
    out.push_back({tensor, dtype == "bf16"  ? of_dtype<BF16>(dims, values)
                           : dtype == "f16" ? of_dtype<F16>(dims, values)
                                            : of_dtype<float>(dims, values)});
  }
  return out;
}

DecoderReference decoder_reference(const std::string& name) {
  const auto file = SafetensorsFile::open(folder_of_references() + "/" + name + ".safetensors");
  std::map<std::string, std::string> text(file->metadata().begin(), file->metadata().end());
  DecoderReference out;
  out.name = name;
  out.config = text.at("config");
  out.logits = SafetensorsFile::tensor(file, "logits");
  const Tensor tokens = SafetensorsFile::tensor(file, "tokens");
  for (std::int64_t i = 0; i < tokens.num_elements(); ++i) out.tokens.push_back(static_cast<TokenId>(tokens.at_i64(i)));
  out.weights = drawn_weights(text.at("weights"), text.at("dtype"));
  return out;
}

std::vector<std::string> adapter_references() { return cases_in(folder_of_references() + "/adapters"); }

AdapterReference adapter_reference(const std::string& name) {
  const auto file = SafetensorsFile::open(folder_of_references() + "/adapters/" + name + ".safetensors");
  std::map<std::string, std::string> text(file->metadata().begin(), file->metadata().end());
  return {name, text.at("case"), text.at("config"), SafetensorsFile::tensor(file, "logits"),
          drawn_weights(text.at("weights"), "f32")};
}

void write_adapter(const TempDir& folder, const AdapterReference& adapter) {
  folder.write("adapter_config.json", adapter.config);
  write_safetensors(folder.file("adapter_model.safetensors"), adapter.weights, {{"format", "pt"}});
}

DecoderReference reference_of_wide_heads() {
  DecoderReference out = decoder_reference("qwen3");
  // Turns the projections of two heads of 16 into those of one head.
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = out.config.find(from);
    check(at != std::string::npos, from);
    out.config.replace(at, from.size(), to);
  };
  replace("\"head_dim\":16", "\"head_dim\":32");
  replace("\"num_attention_heads\":4", "\"num_attention_heads\":2");
  replace("\"num_key_value_heads\":2", "\"num_key_value_heads\":1");
  for (NamedTensor& w : out.weights)
    if (w.name.ends_with("q_norm.weight") || w.name.ends_with("k_norm.weight"))
      w.tensor = Tensor::full(Shape({32}, DType::F32), 1);
  return out;
}

void write_model(const TempDir& folder, const DecoderReference& model, std::size_t shards) {
  folder.write("config.json", model.config);
  if (shards == 1) {
    write_safetensors(folder.file("model.safetensors"), model.weights, {{"format", "pt"}});
    return;
  }
  JsonWriter index;
  index.begin_object().key("weight_map").begin_object();
  for (std::size_t s = 0; s < shards; ++s) {
    const std::string file = concat_text("model-", s + 1, "-of-", shards, ".safetensors");
    std::vector<NamedTensor> part;
    for (std::size_t i = s; i < model.weights.size(); i += shards) {
      part.push_back(model.weights[i]);
      index.member(model.weights[i].name, file);
    }
    write_safetensors(folder.file(file), part, {{"format", "pt"}});
  }
  folder.write("model.safetensors.index.json", index.end_object().end_object().take());
}

double logit_error(const Tensor& got, const DecoderReference& model, std::int64_t first) {
  const std::int64_t vocab = model.logits.dim(1);
  if (got.rank() != 2 || got.dim(1) != vocab || first + got.dim(0) > model.logits.dim(0))
    return std::numeric_limits<double>::infinity();
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < model.logits.num_elements(); ++i)
    if (const double x = std::fabs(model.logits.at(i)); !(x <= largest)) largest = x;
  for (std::int64_t i = 0; i < got.num_elements(); ++i) {
    const double gap = std::fabs(got.at(i) - model.logits.at(first * vocab + i));
    if (std::isnan(gap)) return std::numeric_limits<double>::infinity();
    if (!(gap <= worst)) worst = gap;
  }
  return worst / largest;
}

}  // namespace rlx::test
