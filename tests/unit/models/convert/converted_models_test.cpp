// Models written by `rlx convert`: the GGUF file, and the folder made from it, give the logits of transformers, and the
// file equals the one of llama.cpp's converter.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "rlx/formats/safetensors_folder.h"
#include "rlx/models/convert/model_convert.h"
#include "rlx/models/decoder/gguf_decoder.h"
#include "rlx/models/decoder_model.h"
#include "tests/support/decoder_gguf.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"

namespace rlx {
namespace {

DecoderOptions context_of(const test::DecoderReference& r) {
  DecoderOptions o;
  o.context = static_cast<std::int64_t>(r.tokens.size());  // LongRoPE and dynamic scaling depend on it
  return o;
}

// Cases that a GGUF file cannot hold, with part of their errors.
const std::map<std::string, std::string>& not_expressible() {
  static const std::map<std::string, std::string> cases{
      {"deepseek_v2", "\"topk_method\": \"group_limited_greedy\" cannot be expressed"},
      {"gemma2", "\"query_pre_attn_scalar\" is 24, which a GGUF file of gemma2 cannot store"},
      {"gemma3", "\"query_pre_attn_scalar\" is 24, which a GGUF file of gemma3 cannot store"},
      {"llama_dynamic", "the rope scaling \"dynamic\" cannot be expressed"},
      {"qwen2_window", "a sliding window of qwen2 cannot be expressed"},
      {"qwen3_moe", "\"mlp_only_layers\", layers without experts, cannot be expressed"},
  };
  return cases;
}

// A scalar of the metadata as a number, a text or raw bytes.
std::string said(const GgufValue& v) {
  if (v.is_string()) return std::string(v.as_string());
  if (v.is_array() || v.kind() == GgufKind::Bool)
    return std::string(reinterpret_cast<const char*>(v.raw().data()), v.raw().size());
  return concat_text(v.as_number());
}

}  // namespace

TEST_CASE("converted models: logits of the file and of the folder made of it are those of transformers" *
          doctest::test_suite(rlx::test::kSlow)) {
  std::set<std::string> families;
  for (const std::string& name : test::decoder_references()) {
    CAPTURE(name);
    const test::DecoderReference reference = test::decoder_reference(name);
    const test::TempDir folder;
    test::write_model(folder, reference, 2);
    const auto refused = not_expressible().find(name);
    if (refused != not_expressible().end()) {
      const std::string text = test::error_text([&] { convert_to_gguf(folder.path(), folder.file("m.gguf"), {}); });
      CHECK_MESSAGE(test::contains(text, refused->second), text);
      CHECK_FALSE(std::filesystem::exists(folder.file("m.gguf")));
      continue;
    }
    const std::string text = test::error_text([&] {
      convert_to_gguf(folder.path(), folder.file("m.gguf"), {});
      convert_to_folder(folder.file("m.gguf"), folder.file("back"), {});
      for (const char* made : {"m.gguf", "back"}) {
        CAPTURE(std::string(made));
        DecoderModel m = DecoderModel::load(folder.file(made), context_of(reference));
        if (made == std::string("back")) families.insert(m.config().family);
        CHECK(test::logit_error(m.forward(reference.tokens), reference) < 2e-5);
      }
    });
    CHECK(text == "");
  }
  for (const std::string& family : decoder_families())
    CHECK_MESSAGE(families.contains(family), family, " is not supported");
}

TEST_CASE("converted models: the file holds what llama.cpp's converter makes of the same folder, bit for bit") {
  std::set<std::string> architectures;
  for (const std::string& name : test::decoder_references()) {
    if (!test::has_gguf(name)) continue;
    CAPTURE(name);
    const test::DecoderReference reference = test::decoder_reference(name);
    const test::TempDir folder;
    test::write_model(folder, reference);
    ConvertOptions options;
    options.type = GgufType::F32;
    const std::string text = test::error_text([&] {
      convert_to_gguf(folder.path(), folder.file("m.gguf"), options);
      const auto own = GgufFile::open(folder.file("m.gguf"));
      const std::string bytes = test::decoder_gguf(reference);
      const auto other = GgufFile::from_bytes(std::as_bytes(std::span(bytes)), "llama.cpp's");
      architectures.insert(std::string(own->architecture()));
      CHECK(own->tensors().size() == other->tensors().size());
      for (const GgufTensor& t : other->tensors()) {
        CAPTURE(std::string(t.name));
        const GgufTensor& made = own->at(t.name);
        CHECK(made.type == t.type);
        CHECK(std::ranges::equal(made.dims, t.dims));
        CHECK(std::ranges::equal(made.bytes, t.bytes));
      }
      for (const GgufValue& v : other->metadata()) {
        CAPTURE(std::string(v.key()));
        // Keys that name the writer and source of the file. These files have no tokenizer.
        if (v.key() == "general.name" || v.key() == "general.size_label" || v.key() == "general.quantization_version" ||
            v.key().starts_with("tokenizer."))
          continue;
        const GgufValue* made = own->find_value(v.key());
        REQUIRE(made != nullptr);
        CHECK(made->kind() == v.kind());
        CHECK(said(*made) == said(v));
      }
    });
    CHECK(text == "");
  }
  for (const std::string& architecture : gguf_architectures())
    CHECK_MESSAGE(architectures.contains(architecture), architecture, " is not compared");
}

TEST_CASE("converted models: numbers of layers, tensors in a folder and an array in a file, come back bit for bit") {
  const test::DecoderReference reference = test::decoder_reference("apertus");
  const test::TempDir folder;
  test::write_model(folder, reference);
  convert_to_gguf(folder.path(), folder.file("m.gguf"), {});
  convert_to_folder(folder.file("m.gguf"), folder.file("back"), {});
  const auto file = GgufFile::open(folder.file("m.gguf"));
  const auto back = SafetensorsFolder::open(folder.file("back"));
  std::size_t numbers = 0;
  for (const NamedTensor& w : reference.weights) {
    const std::size_t at = w.name.find(".mlp.act_fn.");
    if (at == std::string::npos) continue;
    CAPTURE(w.name);
    ++numbers;
    const std::size_t layer = std::stoul(w.name.substr(std::string("model.layers.").size()));
    const std::vector<float> all = file->value("xielu." + w.name.substr(at + 12)).floats();
    REQUIRE(all.size() == 3);
    CHECK(static_cast<double>(all[layer]) == w.tensor.at(0));
    const std::optional<TensorView> view = back->find(w.name);
    REQUIRE(view);
    CHECK(dims_text(view->dims) == dims_text(w.tensor.dims()));
    CHECK(Tensor::copy_of(view->data, Shape(Dims(view->dims.begin(), view->dims.end()), view->dtype))
              .identical(w.tensor));
  }
  CHECK(numbers == 12);
  // Keys that are no numbers, or are missing.
  const auto refused = [&](const std::function<void(std::vector<NamedTensor>&)>& change) {
    test::DecoderReference r = reference;
    change(r.weights);
    const test::TempDir other;
    test::write_model(other, r);
    return test::error_text([&] { convert_to_gguf(other.path(), other.file("m.gguf"), {}); });
  };
  const char* const name = "model.layers.1.mlp.act_fn.alpha_n";
  const auto set = [&](Tensor t) {
    return [name, t](std::vector<NamedTensor>& weights) {
      for (NamedTensor& w : weights)
        if (w.name == name) w.tensor = t;
    };
  };
  CHECK(test::contains(refused(set(Tensor::zeros(Shape({2}, DType::F32)))), "expected one finite number"));
  CHECK(test::contains(refused(set(Tensor::of<float>({1}, {std::numeric_limits<float>::infinity()}))),
                       "holds inf, expected one finite number"));
  CHECK(test::contains(
      refused([&](std::vector<NamedTensor>& w) { std::erase_if(w, [&](const auto& t) { return t.name == name; }); }),
      "the tensor \"model.layers.1.mlp.act_fn.alpha_n\" is missing"));
}

TEST_CASE("converted models: matrices that are turned and taken apart survive other types and files of blocks") {
  // gpt-oss has gate and up of each expert in one matrix, GPT-2 has transposed matrices.
  for (const char* name : {"gpt_oss", "gpt2", "qwen3_moe_all", "gpt_neox"}) {
    CAPTURE(std::string(name));
    const test::DecoderReference reference = test::decoder_reference(name);
    const test::TempDir folder;
    test::write_model(folder, reference);
    ConvertOptions half;
    half.type = GgufType::F16;
    const std::string text = test::error_text([&] {
      convert_to_gguf(folder.path(), folder.file("half.gguf"), half);
      convert_to_folder(folder.file("half.gguf"), folder.file("back"), {});
      convert_to_gguf(folder.file("back"), folder.file("again.gguf"), {});
      const auto first = GgufFile::open(folder.file("half.gguf")), again = GgufFile::open(folder.file("again.gguf"));
      CHECK(first->tensors().size() == again->tensors().size());
      for (const GgufTensor& t : first->tensors()) {
        CAPTURE(std::string(t.name));
        CHECK(again->at(t.name).type == t.type);
        CHECK(std::ranges::equal(again->at(t.name).bytes, t.bytes));
      }
      // Quantized blocks become F16, the same in a folder and in a file.
      ConvertOptions blocks;
      blocks.type = GgufType::Q8_0;
      convert_to_gguf(folder.path(), folder.file("q8.gguf"), blocks);
      convert_to_gguf(folder.file("q8.gguf"), folder.file("q16.gguf"), half);
      convert_to_folder(folder.file("q8.gguf"), folder.file("from_blocks"), {});
      convert_to_gguf(folder.file("from_blocks"), folder.file("again16.gguf"), half);
      const auto one = GgufFile::open(folder.file("q16.gguf")), two = GgufFile::open(folder.file("again16.gguf"));
      for (const GgufTensor& t : one->tensors()) {
        CAPTURE(std::string(t.name));
        CHECK(two->at(t.name).type == t.type);
        CHECK(std::ranges::equal(two->at(t.name).bytes, t.bytes));
      }
    });
    CHECK(text == "");
  }
}

TEST_CASE("converted models: files of a largest size hold the same tensors, and go on where they ended") {
  const test::DecoderReference reference = test::decoder_reference("gpt_oss");
  const test::TempDir folder;
  test::write_model(folder, reference);
  ConvertOptions options;
  convert_to_gguf(folder.path(), folder.file("whole.gguf"), options);
  const auto whole = GgufFile::open(folder.file("whole.gguf"));
  options.split_max_bytes = 60000;
  struct Stop {};
  std::vector<std::string> notes;
  options.note = [&](const std::string& text) { notes.push_back(text); };
  ConvertOptions stopped = options;
  stopped.progress = [](std::size_t done, std::size_t total) {
    if (done > total / 2) throw Stop();
  };
  CHECK_THROWS_AS(convert_to_gguf(folder.path(), folder.file("m.gguf"), stopped), Stop);
  CHECK(std::none_of(
      std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator(),
      [](const auto& e) { return e.path().filename().string().starts_with("m-") && e.path().extension() == ".gguf"; }));
  notes.clear();
  convert_to_gguf(folder.path(), folder.file("m.gguf"), options);
  CHECK(std::any_of(notes.begin(), notes.end(),
                    [](const std::string& n) { return test::contains(n, "resuming after"); }));
  CHECK_FALSE(std::filesystem::exists(folder.file("m.gguf")));
  std::size_t parts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    CHECK_FALSE(test::contains(name, ".partial"));
    parts += name.starts_with("m-");
  }
  const auto path_of = [&](std::size_t part) {
    const auto padded = [](std::size_t v) { return concat_text(v < 10 ? "0000" : "000", v); };
    return folder.file(concat_text("m-", padded(part), "-of-", padded(parts), ".gguf"));
  };
  REQUIRE(parts > 3);
  REQUIRE(parts < 100);
  for (std::size_t part = 1; part <= parts; ++part) {
    const auto split = GgufFile::open(path_of(part));
    CHECK(split->num_parts() == parts);
    CHECK(split->tensors().size() == whole->tensors().size());
    for (const GgufTensor& t : whole->tensors()) {
      CHECK(split->at(t.name).type == t.type);
      CHECK(std::ranges::equal(split->at(t.name).bytes, t.bytes));
    }
    CHECK(split->get_int("gpt-oss.block_count") == 4);
    CHECK(std::filesystem::file_size(path_of(part)) < 60000 + 8192);  // plus the header
  }
  CHECK(test::logit_error(DecoderModel::load(path_of(2)).forward(reference.tokens), reference) < 2e-5);

  // A sharded folder, from the split files.
  options.split_max_bytes = 100000;
  convert_to_folder(path_of(1), folder.file("back"), options);
  CHECK_FALSE(std::filesystem::exists(folder.file("back/model.safetensors")));
  CHECK(std::filesystem::exists(folder.file("back/model.safetensors.index.json")));
  DecoderModel back = DecoderModel::load(folder.file("back"));
  CHECK(test::logit_error(back.forward(reference.tokens), reference) < 2e-5);
  options.split_max_bytes = 0;
  convert_to_folder(path_of(1), folder.file("one"), options);
  options.split_max_bytes = 100000;
  CHECK(test::contains(test::error_text([&] { convert_to_folder(path_of(1), folder.file("one"), options); }),
                       "has a model.safetensors, which would be loaded instead"));
  options.split_max_bytes = 1;  // one file per tensor
  convert_to_gguf(folder.file("whole.gguf"), folder.file("each.gguf"), options);
  CHECK(GgufFile::open(folder.file(concat_text("each-00001-of-000", whole->tensors().size(), ".gguf")))->num_parts() ==
        whole->tensors().size());
}

TEST_CASE("convert: files that llama.cpp refuses, though the format has room for them, are said to be so") {
  const auto notes_of = [](const test::DecoderReference& r) {
    const test::TempDir folder;
    test::write_model(folder, r);
    std::string out;
    ConvertOptions options;
    options.note = [&](const std::string& text) { out += text + "\n"; };
    convert_to_gguf(folder.path(), folder.file("model.gguf"), options);
    CHECK(DecoderModel::load(folder.file("model.gguf"), context_of(r)).config().num_heads > 0);
    return out;
  };
  const auto changed = [](test::DecoderReference r, const std::string& from, const std::string& to) {
    const std::size_t at = r.config.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, r.config);
    r.config.replace(at, from.size(), to);
    return r;
  };
  const auto with_head = [](test::DecoderReference r, const char* embedding) {
    for (std::size_t i = 0, n = r.weights.size(); i < n; ++i)
      if (r.weights[i].name == embedding) r.weights.push_back({"lm_head.weight", r.weights[i].tensor});
    return r;
  };
  CHECK(test::contains(
      notes_of(test::decoder_reference("qwen2")),
      "llama.cpp reads files of qwen2 only with heads whose sizes add up to the model width: this model has "
      "4 of 16 elements for a width of 48; rlx reads this one"));
  const test::DecoderReference gemma = test::decoder_reference("gemma2_plain");
  CHECK_FALSE(test::contains(notes_of(gemma), "llama.cpp"));
  CHECK(test::contains(
      notes_of(with_head(changed(gemma, "{", "{\"tie_word_embeddings\":false,"), "model.embed_tokens.weight")),
      "llama.cpp reads files of gemma2 only with tied embeddings"));
  test::DecoderReference neox = test::decoder_reference("gpt_neox");
  std::erase_if(neox.weights, [](const NamedTensor& w) { return w.name == "embed_out.weight"; });
  CHECK(test::contains(notes_of(changed(neox, "\"tie_word_embeddings\":false", "\"tie_word_embeddings\":true")),
                       "llama.cpp reads files of gptneox only with a separate output matrix"));
  for (const char* name : {"llama2", "qwen3", "gemma3_plain", "gpt_neox"})
    CHECK_FALSE(test::contains(notes_of(test::decoder_reference(name)), "llama.cpp"));
}

}  // namespace rlx
