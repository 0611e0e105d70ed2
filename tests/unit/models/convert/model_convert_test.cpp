// Conversions between folders and GGUF files: names, row orders, types, interrupted conversions, refusals.
#include "rlx/models/convert/model_convert.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/json.h"
#include "rlx/formats/safetensors_folder.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

// A model of two layers: 40 tokens, width 64, four heads of 16, two kv heads, tied embeddings or not.
struct SmallModel {
  test::TempDir dir;
  std::map<std::string, Tensor> tensors;
  std::string settings =
      R"("vocab_size": 40, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 96, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
         "rope_theta": 500000.0)";

  explicit SmallModel(DType t = DType::F16, bool tied = false) {
    add("model.embed_tokens.weight", {40, 64}, t);
    add("model.norm.weight", {64}, t);
    if (!tied) add("lm_head.weight", {40, 64}, t);
    for (int i = 0; i < 2; ++i) {
      const std::string layer = concat_text("model.layers.", i, ".");
      for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) add(layer + norm + ".weight", {64}, t);
      add(layer + "self_attn.q_proj.weight", {64, 64}, t);
      for (const char* kv : {"k", "v"}) add(concat_text(layer, "self_attn.", kv, "_proj.weight"), {32, 64}, t);
      add(layer + "self_attn.o_proj.weight", {64, 64}, t);
      for (const char* ff : {"gate", "up"}) add(concat_text(layer, "mlp.", ff, "_proj.weight"), {96, 64}, t);
      add(layer + "mlp.down_proj.weight", {64, 96}, t);
    }
  }
  void add(const std::string& name, std::vector<std::int64_t> dims, DType t) {
    Tensor v = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), t));
    for (std::int64_t i = 0; i < v.num_elements(); ++i)
      v.set(i, static_cast<double>((i * 37 + static_cast<std::int64_t>(tensors.size()) * 11) % 101 - 50) / 64);
    tensors.insert_or_assign(name, v);
  }
  std::string write(const std::string& model_type) const {
    std::vector<NamedTensor> all;
    for (const auto& [name, t] : tensors) all.push_back({name, t});
    dir.write("hf/config.json", concat_text("{\"model_type\": \"", model_type, "\", ", settings, "}"));
    write_safetensors(dir.file("hf/model.safetensors"), all, {{"format", "pt"}});
    return dir.file("hf");
  }
  std::string convert(const std::string& model_type, const ConvertOptions& options = {}) const {
    convert_to_gguf(write(model_type), dir.file("m.gguf"), options);
    return dir.file("m.gguf");
  }
};

std::string conversion_error(const SmallModel& m, const std::string& model_type, const ConvertOptions& options = {}) {
  const std::string text = error_text([&] { m.convert(model_type, options); });
  CHECK_FALSE(std::filesystem::exists(m.dir.file("m.gguf")));
  return text;
}

}  // namespace

TEST_CASE("convert: a folder becomes a file whose metadata and tensors say the same, and comes back bit for bit") {
  for (const char* model_type : {"llama", "mistral", "qwen2", "qwen3"}) {
    CAPTURE(model_type);
    const bool is_llama = std::string(model_type) == "llama" || std::string(model_type) == "mistral";
    SmallModel m(DType::F16, !is_llama);
    if (!is_llama) m.settings += R"(, "tie_word_embeddings": true, "head_dim": 16)";
    for (int i = 0; i < 2; ++i) {
      const std::string attention = concat_text("model.layers.", i, ".self_attn.");
      if (std::string(model_type) == "qwen2") {
        m.add(attention + "q_proj.bias", {64}, DType::F16);
        for (const char* kv : {"k", "v"}) m.add(concat_text(attention, kv, "_proj.bias"), {32}, DType::F16);
      } else if (std::string(model_type) == "qwen3") {
        for (const char* qk : {"q", "k"}) m.add(concat_text(attention, qk, "_norm.weight"), {16}, DType::F16);
      }
    }
    const auto file = GgufFile::open(m.convert(model_type));
    const std::string a(file->architecture());
    CHECK(a == (is_llama ? "llama" : model_type));
    CHECK(file->get_int(a + ".context_length") == 128);
    CHECK(file->get_int(a + ".embedding_length") == 64);
    CHECK(file->get_int(a + ".block_count") == 2);
    CHECK(file->get_int(a + ".feed_forward_length") == 96);
    CHECK(file->get_int(a + ".attention.head_count") == 4);
    CHECK(file->get_int(a + ".attention.head_count_kv") == 2);
    CHECK(file->get_int(a + ".attention.key_length") == 16);
    CHECK(file->get_int(a + ".rope.dimension_count") == 16);
    CHECK(file->get_number(a + ".rope.freq_base") == 500000);
    CHECK(file->get_number(a + ".attention.layer_norm_rms_epsilon") == static_cast<double>(1e-6F));
    CHECK(file->get_int("general.file_type") == 1);
    CHECK(file->tensors().size() == m.tensors.size());
    CHECK(file->at("token_embd.weight").type == GgufType::F16);
    CHECK(file->at("output_norm.weight").type == GgufType::F32);
    // Row r of a head of q: rows of both halves alternate if the model rotates adjacent pairs.
    const Tensor q = file->decoded("blk.1.attn_q.weight"), own = m.tensors.at("model.layers.1.self_attn.q_proj.weight");
    for (int r = 0; r < 64; ++r) {
      const int from = is_llama ? r / 16 * 16 + r % 2 * 8 + r % 16 / 2 : r;
      for (int c = 0; c < 64; ++c) REQUIRE(q.at(r * 64 + c) == own.at(from * 64 + c));
    }
    CHECK(file->decoded("blk.1.attn_v.weight").at(70) == m.tensors.at("model.layers.1.self_attn.v_proj.weight").at(70));

    std::vector<std::string> notes;
    ConvertOptions back;
    back.note = [&](const std::string& text) { notes.push_back(text); };
    convert_to_folder(file->source(), m.dir.file("back"), back);
    CHECK(notes == std::vector<std::string>{"tokenizer.json is not written: the GGUF file has no vocabulary; copy it "
                                            "from the original model's folder"});
    const auto weights = SafetensorsFolder::open(m.dir.file("back"));
    CHECK(weights->names().size() == m.tensors.size());
    for (const auto& entry : m.tensors) {
      const Tensor& t = entry.second;
      CAPTURE(entry.first);
      const std::optional<TensorView> view = weights->find(entry.first);
      REQUIRE(view);
      const Tensor got = Tensor::copy_of(view->data, Shape(Dims(view->dims.begin(), view->dims.end()), view->dtype));
      CHECK(got.cast(DType::F64).identical(t.cast(DType::F64)));
    }
    // The folder converted back gives the same file again.
    convert_to_gguf(m.dir.file("back"), m.dir.file("again.gguf"), {});
    const auto again = GgufFile::open(m.dir.file("again.gguf"));
    CHECK(again->architecture() == a);
    for (const GgufTensor& t : file->tensors()) {
      CHECK(again->at(t.name).type == t.type);
      CHECK(std::ranges::equal(again->at(t.name).bytes, t.bytes));
    }
    for (const GgufValue& v : file->metadata())
      if (v.key() != "general.name") CHECK(std::ranges::equal(again->value(v.key()).raw(), v.raw()));
    for (const auto& entry : std::filesystem::directory_iterator(m.dir.path()))
      CHECK_FALSE(contains(entry.path().string(), ".partial"));
  }
}

TEST_CASE("convert: Gemma's norms have their 1 added, and lose it again; what its files cannot say is refused") {
  SmallModel m(DType::F16, true);
  for (int i = 0; i < 2; ++i) {
    const std::string layer = concat_text("model.layers.", i, ".");
    for (const char* norm : {"pre_feedforward_layernorm", "post_feedforward_layernorm"})
      m.add(layer + norm + ".weight", {64}, DType::F16);
    for (const char* norm : {"q_norm", "k_norm"}) m.add(layer + "self_attn." + norm + ".weight", {16}, DType::F16);
  }
  const std::string plain = m.settings;
  m.settings = plain + R"(, "head_dim": 16, "tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh",
      "query_pre_attn_scalar": 16, "sliding_window": 32, "rope_local_base_freq": 10000.0)";
  const auto file = GgufFile::open(m.convert("gemma3_text"));
  CHECK(file->architecture() == "gemma3");
  CHECK(file->get_int("gemma3.attention.sliding_window") == 32);
  CHECK(file->get_number("gemma3.rope.freq_base_swa") == 10000);
  const Tensor norm = file->decoded("blk.1.post_ffw_norm.weight"),
               own = m.tensors.at("model.layers.1.post_feedforward_layernorm.weight");
  for (int i = 0; i < 64; ++i) CHECK(norm.at(i) == 1 + own.at(i));
  convert_to_folder(file->source(), m.dir.file("back"), {});
  const auto weights = SafetensorsFolder::open(m.dir.file("back"));
  CHECK(weights->names().size() == m.tensors.size());
  const TensorView view = *weights->find("model.layers.1.post_feedforward_layernorm.weight");
  CHECK(Tensor::copy_of(view.data, Shape({64}, view.dtype)).cast(DType::F64).identical(own.cast(DType::F64)));
  convert_to_gguf(m.dir.file("back"), m.dir.file("again.gguf"), {});
  CHECK(std::ranges::equal(GgufFile::open(m.dir.file("again.gguf"))->at("blk.1.post_ffw_norm.weight").bytes,
                           file->at("blk.1.post_ffw_norm.weight").bytes));
  std::filesystem::remove(m.dir.file("m.gguf"));
  m.settings = plain + R"(, "head_dim": 16, "sliding_window": 32, "query_pre_attn_scalar": 24)";
  CHECK(contains(conversion_error(m, "gemma3_text"),
                 "\"query_pre_attn_scalar\" is 24, which a GGUF file of gemma3 cannot store"));
  m.settings = plain + R"(, "head_dim": 16, "sliding_window": 32, "query_pre_attn_scalar": 16,
                   "layer_types": ["full_attention", "sliding_attention"])";
  CHECK(contains(conversion_error(m, "gemma3_text"), "are not every 6th layer"));

  // The layout of transformers 5: RoPE parameters per layer type; the GGUF keys hold both.
  const std::string three = plain + R"(, "head_dim": 16, "sliding_window": 32,
      "query_pre_attn_scalar": 16, "final_logit_softcapping": 5.0)";
  const auto angles = [&](const std::string& global, const std::string& local) {
    return three + ", \"rope_parameters\": {\"full_attention\": {" + global + "}, \"sliding_attention\": {" + local +
           "}}";
  };
  m.settings = angles(R"("rope_type": "linear", "factor": 8.0, "rope_theta": 2e6)",
                      R"("rope_type": "default", "rope_theta": 3e4)");
  {
    const auto newer = GgufFile::open(m.convert("gemma3_text"));
    CHECK(newer->get_number("gemma3.rope.freq_base") == 2e6);
    CHECK(newer->get_number("gemma3.rope.freq_base_swa") == 3e4);
    CHECK(newer->get_string("gemma3.rope.scaling.type") == "linear");
    CHECK(newer->get_number("gemma3.rope.scaling.factor") == 8);
    CHECK(newer->get_number("gemma3.final_logit_softcapping") == 5);
  }
  std::filesystem::remove(m.dir.file("m.gguf"));
  m.settings = angles(R"("rope_type": "default")", R"("rope_type": "linear", "factor": 2.0)");
  CHECK(contains(conversion_error(m, "gemma3_text"),
                 "a rope scaling of layers with sliding windows cannot be expressed"));
  m.settings =
      three.substr(0, three.rfind(',', three.find("\"rope_theta\""))) + R"(, "head_dim": 16, "sliding_window": 32,
      "query_pre_attn_scalar": 16)";
  CHECK(GgufFile::open(m.convert("gemma3_text"))->get_number("gemma3.rope.freq_base") == 1e6);
  std::filesystem::remove(m.dir.file("m.gguf"));
  m.settings = plain + R"(, "head_dim": 16, "sliding_window": 32, "query_pre_attn_scalar": 16,
      "attn_logit_softcapping": null, "final_logit_softcapping": 30.0)";
  CHECK(contains(conversion_error(m, "gemma2"), "\"attn_logit_softcapping\": null cannot be expressed"));
}

TEST_CASE("convert: types of matrices, of the output matrix, and of rows that no block divides") {
  SmallModel m(DType::F32);
  std::vector<std::string> notes;
  std::size_t last = 0, all = 0;
  ConvertOptions options;
  options.type = GgufType::Q4_0;
  options.note = [&](const std::string& text) { notes.push_back(text); };
  options.progress = [&](std::size_t done, std::size_t total) {
    CHECK(done >= last);
    last = done, all = total;
  };
  auto file = GgufFile::open(m.convert("llama", options));
  CHECK(last == all);
  CHECK(file->get_int("general.file_type") == 2);
  CHECK(file->at("output.weight").type == GgufType::Q8_0);  // rows of 64 do not fit Q6_K
  CHECK(file->at("token_embd.weight").type == GgufType::Q4_0);
  CHECK(file->at("blk.0.attn_norm.weight").type == GgufType::F32);
  CHECK(notes == std::vector<std::string>{
                     concat_text(m.dir.file("hf"), " has no tokenizer.json: the file will have no vocabulary")});
  const Tensor down = file->decoded("blk.0.ffn_down.weight"), own = m.tensors.at("model.layers.0.mlp.down_proj.weight");
  for (int i = 0; i < 64 * 96; ++i) REQUIRE(std::fabs(down.at(i) - own.at(i)) < 0.1);
  last = 0;
  options.head_type = GgufType::BF16;
  options.type = GgufType::Q6_K;
  notes.clear();
  file = GgufFile::open(m.convert("llama", options));
  CHECK(file->at("output.weight").type == GgufType::BF16);
  CHECK(file->at("blk.0.ffn_down.weight").type == GgufType::Q8_0);
  CHECK(contains(notes.at(1), "has rows of 64 elements, which is not a multiple of 256: Q8_0 is used instead of Q6_K"));
  // From one file to another, and to a folder: quantized blocks become F16.
  ConvertOptions half;
  half.type = GgufType::F16;
  convert_to_gguf(file->source(), m.dir.file("half.gguf"), half);
  const auto other = GgufFile::open(m.dir.file("half.gguf"));
  CHECK(other->get_int("general.file_type") == 1);
  CHECK(other->at("blk.0.ffn_down.weight").type == GgufType::F16);
  CHECK(other->at("blk.0.ffn_norm.weight").type == GgufType::F32);
  convert_to_folder(file->source(), m.dir.file("back"), {});
  CHECK(SafetensorsFolder::open(m.dir.file("back"))->find("model.layers.0.mlp.down_proj.weight")->dtype == DType::F16);
}

TEST_CASE("convert: importance weights lower the error of the columns that they name") {
  SmallModel m(DType::F32);
  const auto error_of_column = [&](const std::string& importance) {
    ConvertOptions options;
    options.type = GgufType::Q4_0;
    options.importance = importance;
    options.threads = 2;
    const auto file = GgufFile::open(m.convert("llama", options));
    const Tensor up = file->decoded("blk.0.ffn_up.weight"), own = m.tensors.at("model.layers.0.mlp.up_proj.weight");
    double sum = 0;
    for (int r = 0; r < 96; ++r) sum += std::pow(up.at(r * 64 + 3) - own.at(r * 64 + 3), 2);
    return sum;
  };
  Tensor w = Tensor::full(Shape({64}, DType::F32), 0.01), sums = Tensor::full(Shape({1, 64}, DType::F32), 0.1);
  w.set(3, 100), sums.set(3, 1000);
  const NamedTensor own{"blk.0.ffn_up.weight", w};
  write_safetensors(m.dir.file("w.safetensors"), std::span(&own, 1));
  GgufWriter imatrix(m.dir.file("w.gguf"));
  const std::vector<std::int64_t> dims{1, 64}, one{1, 1};
  imatrix.add_tensor("blk.0.ffn_up.weight.in_sum2", GgufType::F32, dims);
  imatrix.add_tensor("blk.0.ffn_up.weight.counts", GgufType::F32, one);
  imatrix.begin();
  imatrix.write({sums.data(), sums.size_bytes()});
  const float count = 10;
  imatrix.write(std::as_bytes(std::span(&count, 1)));
  imatrix.commit();
  const double plain = error_of_column(""), weighted = error_of_column(m.dir.file("w.safetensors"));
  CHECK(weighted < 0.3 * plain);
  CHECK(error_of_column(m.dir.file("w.gguf")) == weighted);
  std::filesystem::remove(m.dir.file("m.gguf"));
  Tensor few = Tensor::full(Shape({63}, DType::F32), 1);
  const NamedTensor wrong{"blk.0.ffn_up.weight", few};
  write_safetensors(m.dir.file("w.safetensors"), std::span(&wrong, 1));
  ConvertOptions options;
  options.type = GgufType::Q4_0;
  options.importance = m.dir.file("w.safetensors");
  CHECK(contains(conversion_error(m, "llama", options), "has 63 numbers, the matrix has 64 columns"));
  few.set(0, -1);
  write_safetensors(m.dir.file("w.safetensors"), std::span(&wrong, 1));
  Tensor bad = Tensor::full(Shape({64}, DType::F32), -1);
  const NamedTensor negative{"x", bad};
  write_safetensors(m.dir.file("w.safetensors"), std::span(&negative, 1));
  CHECK(contains(conversion_error(m, "llama", options), "importance of \"x\": a weight is -1"));
}

TEST_CASE("convert: matrices of experts have importance weights of their own") {
  const test::TempDir dir;
  const std::vector<std::int64_t> dims{2, 8, 32}, columns{2, 32}, counts{2};
  std::vector<float> x(512), sums(64, 0.01F);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5F;
  sums[3] = 100, sums[32 + 9] = 100;  // column 3 of the first expert, column 9 of the second
  const float one[] = {1, 1};
  GgufWriter model(dir.file("m.gguf")), imatrix(dir.file("w.gguf"));
  model.add_tensor("experts", GgufType::F32, dims);
  model.begin();
  model.write(std::as_bytes(std::span(x)));
  model.commit();
  imatrix.add_tensor("experts.in_sum2", GgufType::F32, columns);
  imatrix.add_tensor("experts.counts", GgufType::F32, counts);
  imatrix.begin();
  imatrix.write(std::as_bytes(std::span(sums)));
  imatrix.write(std::as_bytes(std::span(one)));
  imatrix.commit();
  ConvertOptions options;
  options.type = GgufType::Q4_0;
  options.importance = dir.file("w.gguf");
  convert_to_gguf(dir.file("m.gguf"), dir.file("q.gguf"), options);
  const Tensor y = GgufFile::open(dir.file("q.gguf"))->decoded("experts");
  const auto error = [&](int expert, int column) {
    double sum = 0;
    for (int r = 0; r < 8; ++r) {
      const int i = (expert * 8 + r) * 32 + column;
      sum += std::pow(y.at(i) - static_cast<double>(x[static_cast<std::size_t>(i)]), 2);
    }
    return sum;
  };
  CHECK(error(0, 3) < 0.2 * error(0, 9));
  CHECK(error(1, 9) < 0.2 * error(1, 3));
}

TEST_CASE("convert: what ended early goes on, to the same bytes") {
  SmallModel m(DType::F32);
  ConvertOptions options;
  options.type = GgufType::Q8_0;
  const std::string whole = read_file(m.convert("llama", options));
  std::filesystem::remove(m.dir.file("m.gguf"));
  struct Stop {};
  ConvertOptions stopped = options;
  stopped.progress = [](std::size_t done, std::size_t total) {
    if (done > total / 2) throw Stop();
  };
  CHECK_THROWS_AS(m.convert("llama", stopped), Stop);
  CHECK_FALSE(std::filesystem::exists(m.dir.file("m.gguf")));
  // The folder is unchanged, so its files keep their times.
  std::vector<std::string> notes;
  options.note = [&](const std::string& text) { notes.push_back(text); };
  stopped.progress = [](std::size_t done, std::size_t total) {
    if (done > total * 3 / 4) throw Stop();
  };
  CHECK_THROWS_AS(convert_to_gguf(m.dir.file("hf"), m.dir.file("m.gguf"), stopped), Stop);
  convert_to_gguf(m.dir.file("hf"), m.dir.file("m.gguf"), options);
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& n) { return contains(n, "resuming after"); }));
  CHECK(read_file(m.dir.file("m.gguf")) == whole);
  stopped.type = GgufType::F32;
  CHECK_THROWS_AS(convert_to_folder(m.dir.file("m.gguf"), m.dir.file("back"), stopped), Stop);
  CHECK_FALSE(std::filesystem::exists(m.dir.file("back/model.safetensors")));
  notes.clear();
  ConvertOptions back;
  back.type = GgufType::F32;
  back.note = options.note;
  convert_to_folder(m.dir.file("m.gguf"), m.dir.file("back"), back);
  CHECK(contains(notes.at(0), "resuming after"));
  CHECK(SafetensorsFolder::open(m.dir.file("back"))->names().size() == m.tensors.size());
}

TEST_CASE("convert: vocabularies of bytes and of SentencePiece, special tokens, and patterns without a name") {
  const std::string bytes =
      R"("pre_tokenizer": {"type": "ByteLevel", "use_regex": true}, "decoder": {"type": "ByteLevel"},
      "added_tokens": [{"id": 3, "content": "<|end|>", "special": true},
                       {"id": 4, "content": "<tool>", "special": false},
                       {"id": 40, "content": "<beyond>", "special": true}],
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";
  SmallModel m;
  m.dir.write("hf/tokenizer.json", "{" + bytes + "}");
  m.dir.write("hf/tokenizer_config.json",
              R"({"model_max_length": 1000000000000000019884624838656, "add_bos_token": false,
      "eos_token": {"content": "<|end|>"}, "bos_token": null, "chat_template": "{{ 10000000000000000000000 }}"})");
  m.dir.write("hf/generation_config.json", R"({"bos_token_id": [0, 1], "pad_token_id": 3})");
  std::vector<std::string> notes;
  ConvertOptions options;
  options.note = [&](const std::string& text) { notes.push_back(text); };
  auto file = GgufFile::open(m.convert("llama", options));
  CHECK(notes ==
        std::vector<std::string>{"the added token \"<beyond>\" is left out: its id 40 is not below the 40 tokens"});
  CHECK(file->get_string("tokenizer.ggml.model") == "gpt2");
  CHECK(file->get_string("tokenizer.ggml.pre") == "gpt-2");
  const std::vector<std::string_view> tokens = file->value("tokenizer.ggml.tokens").strings();
  REQUIRE(tokens.size() == 40);
  CHECK(tokens[2] == "ab");
  CHECK(tokens[3] == "<|end|>");
  CHECK(tokens[39] == "[PAD39]");
  const std::vector<std::int64_t> kinds = file->value("tokenizer.ggml.token_type").ints();
  CHECK(std::vector<std::int64_t>(kinds.begin(), kinds.begin() + 6) == std::vector<std::int64_t>{1, 1, 1, 3, 4, 5});
  CHECK(file->value("tokenizer.ggml.merges").strings() == std::vector<std::string_view>{"a b"});
  CHECK(file->find_value("tokenizer.ggml.scores") == nullptr);
  CHECK(file->get_int("tokenizer.ggml.eos_token_id") == 3);
  CHECK(file->get_int("tokenizer.ggml.bos_token_id") == 0);
  CHECK(file->get_int("tokenizer.ggml.padding_token_id") == 3);
  CHECK_FALSE(file->get_bool("tokenizer.ggml.add_bos_token"));
  CHECK(file->get_string("tokenizer.chat_template") == "{{ 10000000000000000000000 }}");
  m.dir.write("hf/chat_template.jinja", "own");
  CHECK(GgufFile::open(m.convert("llama"))->get_string("tokenizer.chat_template") == "own");

  m.dir.write("hf/tokenizer.json",
              R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}]},
      "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
                "vocab": {"<unk>": 0, "<0x41>": 1, "a": 2, "b": 3, "ab": 4, "abab": 5},
                "merges": [["a", "b"], ["ab", "ab"]]}})");
  file = GgufFile::open(m.convert("llama"));
  CHECK(file->get_string("tokenizer.ggml.model") == "llama");
  CHECK(file->get_bool("tokenizer.ggml.add_space_prefix"));
  const std::vector<float> scores = file->value("tokenizer.ggml.scores").floats();
  CHECK(scores[4] > scores[5]);
  CHECK(scores[5] > scores[2]);
  const std::vector<std::int64_t> pieces = file->value("tokenizer.ggml.token_type").ints();
  CHECK(std::vector<std::int64_t>(pieces.begin(), pieces.begin() + 3) == std::vector<std::int64_t>{2, 6, 1});
  std::filesystem::remove(m.dir.file("m.gguf"));

  m.dir.write("hf/tokenizer.json",
              R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "x"}}, "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  CHECK(contains(conversion_error(m, "llama"),
                 "is not known\n  hint: give llama.cpp's name of the pre-tokeniser with --pre"));
  options.pre_tokenizer = "own-pre";
  CHECK(GgufFile::open(m.convert("llama", options))->get_string("tokenizer.ggml.pre") == "own-pre");
  std::filesystem::remove(m.dir.file("m.gguf"));
  m.dir.write("hf/tokenizer.json", R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})");
  CHECK(contains(conversion_error(m, "llama"), "its model is \"WordPiece\"; only BPE is supported"));
  m.dir.write("hf/tokenizer.json",
              R"({"decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 40}, "merges": []}})");
  CHECK(contains(conversion_error(m, "llama"), "the token \"a\" has the id 40, but the model has 40 tokens"));
}

TEST_CASE("convert: rope scalings of both forms") {
  SmallModel m;
  m.settings +=
      R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 8192})";
  const auto file = GgufFile::open(m.convert("llama"));
  const Tensor factors = file->decoded("rope_freqs.weight");
  CHECK(factors.num_elements() == 8);
  CHECK(factors.at(0) == 1);
  CHECK(factors.at(7) == 8);
  convert_to_folder(file->source(), m.dir.file("back"), {});
  const JsonDocument config = JsonDocument::read(m.dir.file("back/config.json"));
  const JsonValue scaling = config.root().at("rope_scaling");
  CHECK(scaling.get_string("rope_type") == "llama3");
  CHECK(scaling.get_number("factor") == 8);
  SmallModel linear;
  linear.settings += R"(, "rope_scaling": {"type": "linear", "factor": 2.0})";
  CHECK(GgufFile::open(linear.convert("llama"))->get_string("llama.rope.scaling.type") == "linear");
  SmallModel dynamic;
  dynamic.settings += R"(, "rope_scaling": {"type": "dynamic", "factor": 2.0})";
  CHECK(contains(conversion_error(dynamic, "llama"), "the rope scaling \"dynamic\" cannot be expressed"));
  SmallModel both;  // if both layouts are given, the older one is used, plus keys that only the newer one has
  const std::string plain = both.settings;
  both.settings +=
      R"(, "rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {"rope_type": "default"})";
  CHECK(GgufFile::open(both.convert("llama"))->get_number("llama.rope.scaling.factor") == 2);
  both.settings = plain + R"(, "rope_parameters": {"rope_type": "default", "rope_theta": 77.0})";
  CHECK(GgufFile::open(both.convert("llama"))->get_number("llama.rope.freq_base") == 77);
  std::filesystem::remove(both.dir.file("m.gguf"));
  both.settings = plain + R"(, "partial_rotary_factor": 0.5)";
  CHECK(contains(conversion_error(both, "llama"), "a partial rotary factor cannot be expressed"));
  both.settings = plain + R"(, "is_causal": false)";
  CHECK(contains(conversion_error(both, "llama"), "bidirectional attention cannot be expressed"));
  both.settings = plain + R"(, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"])";
  CHECK(contains(conversion_error(both, "mistral"), "a sliding window in only some layers cannot be expressed"));
}

TEST_CASE("convert: settings of families that a GGUF file cannot say are refused by name") {
  struct Case {
    const char *model_type, *settings, *message;
  };
  // Settings are checked before weights, so these models need no weights.
  for (const Case& c : {
           Case{"qwen2", R"("use_sliding_window": true, "sliding_window": 8)", "a sliding window of qwen2"},
           {"qwen3_moe", R"("num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8,
                            "norm_topk_prob": true, "mlp_only_layers": [0])",
            "\"mlp_only_layers\""},
           {"qwen3_moe", R"("num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8,
                            "norm_topk_prob": true, "decoder_sparse_step": 2)",
            "a \"decoder_sparse_step\" other than 1"},
           {"qwen3_moe", R"("num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8)",
            "\"norm_topk_prob\": false"},
           {"gpt_oss", R"("num_local_experts": 4, "num_experts_per_tok": 2, "swiglu_limit": 6.0)",
            "a \"swiglu_limit\" of 6"},
           {"gpt_oss", R"("num_local_experts": 4, "num_experts_per_tok": 2,
                          "layer_types": ["full_attention", "sliding_attention"])",
            "are not every 2th layer"},
           {"gpt_oss", R"("num_local_experts": 4, "num_experts_per_tok": 2,
                          "rope_scaling": {"rope_type": "yarn", "factor": 4.0})",
            "the yarn setting \"truncate\": true"},
           {"llama", R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0, "truncate": false})",
            "the yarn setting \"truncate\": false"},
           {"smollm3", R"("no_rope_layers": [1, 0])", "a rope pattern other than no rope in every 4th layer"},
           {"smollm3", R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                          "high_freq_factor": 4.0, "original_max_position_embeddings": 64})",
            "the rope scaling \"llama3\""},
           {"gpt_neox", R"("attention_bias": false, "hidden_act": "gelu")", "\"attention_bias\": false"},
           {"gpt_neox", R"("hidden_act": "relu")", "the activation \"relu\""},
           {"ernie4_5", R"("use_bias": true)", "\"use_bias\": true"},
           {"apertus", R"("hidden_act": "xielu")", "the default rope scaling of a file without \"rope_parameters\""},
           {"apertus", R"("hidden_act": "silu", "rope_scaling": {"rope_type": "linear", "factor": 2.0})",
            "the activation \"silu\""},
           {"gpt2", R"("n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "scale_attn_weights": false)",
            "\"scale_attn_weights\": false"},
           {"gpt2", R"("n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64,
                       "scale_attn_by_inverse_layer_idx": true)",
            "\"scale_attn_by_inverse_layer_idx\": true"},
       }) {
    CAPTURE(std::string(c.model_type));
    CAPTURE(std::string(c.settings));
    SmallModel m;
    m.settings += concat_text(", ", c.settings);
    const std::string text = conversion_error(m, c.model_type);
    CHECK_MESSAGE(contains(text, c.message), text);
    CHECK(contains(text, "GGUF file"));
  }
  const std::string latent =
      R"(, "kv_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "n_routed_experts": 4,
         "num_experts_per_tok": 2, "moe_intermediate_size": 8)";
  for (const auto& c : std::map<std::string, std::string>{
           {R"("topk_method": "group_limited_greedy")", "\"topk_method\": \"group_limited_greedy\""},
           {R"("scoring_func": "sigmoid")", "\"scoring_func\": \"sigmoid\""},
           {R"("moe_layer_freq": 2)", "a \"moe_layer_freq\" other than 1"},
           {R"("attention_bias": true)", "\"attention_bias\": true"},
           {R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 0.5})",
            "yarn whose \"mscale\" and \"mscale_all_dim\" are not the same number"}}) {
    SmallModel m;
    m.settings += latent + ", " + c.first;
    const std::string text = conversion_error(m, "deepseek_v2");
    CHECK_MESSAGE(contains(text, c.second), text);
  }
  SmallModel quantised;
  quantised.settings += R"(, "quantization_config": {"quant_method": "mxfp4"})";
  CHECK(contains(conversion_error(quantised, "gpt_oss"), "weights quantized as \"mxfp4\" cannot be converted"));
}

TEST_CASE("convert: each fault has its message, and leaves no file") {
  const auto with = [](const std::function<void(SmallModel&)>& change, const std::string& model_type = "llama",
                       const ConvertOptions& options = {}) {
    SmallModel m;
    change(m);
    return conversion_error(m, model_type, options);
  };
  const auto nothing = [](SmallModel&) {};
  CHECK(contains(with(nothing, "t5"), "models of type \"t5\" cannot be converted\n  hint: supported are '"));
  CHECK(contains(with([](SmallModel& m) { m.tensors.erase("model.layers.1.mlp.up_proj.weight"); }),
                 "the tensor \"model.layers.1.mlp.up_proj.weight\" is missing"));
  CHECK(contains(
      with([](SmallModel& m) {
        m.add("model.layers.2.mlp.up_proj.weight", {96, 64}, DType::F16);
      }),
      "the tensor \"model.layers.2.mlp.up_proj.weight\" does not belong to a model of type \"llama\" with 2 layers"));
  CHECK(contains(with([](SmallModel& m) {
                   m.add("model.layers.0.self_attn.q_proj.weight", {63, 64}, DType::F16);
                 }),
                 "has 63 rows, expected 4 heads of 16"));
  CHECK(contains(with([](SmallModel& m) {
                   m.add("model.embed_tokens.weight", {41, 64}, DType::F16);
                 }),
                 "is [41, 64], expected [40, 64]"));
  CHECK(contains(with([](SmallModel& m) { m.add("model.norm.weight", {64}, DType::Bool); }),
                 "has the dtype bool, which GGUF does not have"));
  CHECK(
      contains(with([](SmallModel& m) { m.settings = R"("hidden_size": 64)"; }), "missing key \"num_hidden_layers\""));
  CHECK(contains(with([](SmallModel& m) { m.settings += R"(, "hidden_act": "gelu")"; }),
                 "the activation \"gelu\" cannot be expressed"));
  ConvertOptions options;
  options.type = GgufType::IQ2_XS;
  CHECK(contains(with(nothing, "llama", options),
                 "tensors of type IQ2_XS can be read, but not written\n  hint: rlx writes F32, F16"));
  options.type = GgufType::Q8_0;
  CHECK(contains(
      with([](SmallModel& m) { m.tensors.at("model.layers.1.mlp.down_proj.weight").set(100, std::nan("")); }, "llama",
           options),
      "tensor \"model.layers.1.mlp.down_proj.weight\": element 4 of row 1 is nan, which blocks of Q8_0 cannot hold"));
  const test::TempDir dir;
  CHECK(contains(error_text([&] { convert_to_gguf(dir.path(), dir.file("m.gguf"), {}); }), "config.json"));
  CHECK(contains(error_text([&] { convert_to_gguf("/nowhere", dir.file("m.gguf"), {}); }), "cannot open \"/nowhere\""));
  SmallModel m;
  const std::string file = m.convert("llama");
  options.type = GgufType::Q4_0;
  CHECK(contains(error_text([&] { convert_to_folder(file, m.dir.file("back"), options); }),
                 "F32, F16 or BF16, got Q4_0"));
  CHECK(contains(error_text([&] { convert_to_folder(file, file + "/back", {}); }), "cannot create the folder"));
}

}  // namespace rlx
