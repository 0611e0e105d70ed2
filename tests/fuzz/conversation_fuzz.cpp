// Fuzz target: a saved conversation, damaged. Opening it for a small model ends in a conversation that goes on, or in
// an rlx::Error that is no internal one. With an odd first byte the checksums are made right again, so that what is
// behind them is tried too.
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/safetensors.h"
#include "rlx/generation/conversation_file.h"
#include "rlx/ir/serial/fingerprint.h"
#include "tests/fuzz/fuzz_folder.h"

namespace {

using namespace rlx;
namespace fs = std::filesystem;

constexpr std::int64_t kHidden = 8, kVocab = 16, kFeedForward = 8;

// A Llama of one layer, whose cache has rows of 32 bytes.
DecoderModel& model() {
  static DecoderModel loaded = [] {
    std::ofstream(fuzz_folder() / "config.json")
        << R"({"model_type":"llama","vocab_size":16,"hidden_size":8,"intermediate_size":8,"num_hidden_layers":1,)"
        << R"("num_attention_heads":1,"num_key_value_heads":1,"max_position_embeddings":32,"rms_norm_eps":1e-5,)"
        << R"("tie_word_embeddings":true,"hidden_act":"silu"})";
    const std::string layer = "model.layers.0.";
    std::vector<NamedTensor> weights;
    const auto add = [&](const std::string& name, Dims dims) {
      weights.push_back({name + ".weight", Tensor::full(Shape(std::move(dims), DType::F32), 0.25)});
    };
    add("model.embed_tokens", {kVocab, kHidden});
    add("model.norm", {kHidden});
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) add(layer + norm, {kHidden});
    for (const char* product : {"q_proj", "k_proj", "v_proj", "o_proj"})
      add(layer + "self_attn." + product, {kHidden, kHidden});
    for (const char* product : {"gate_proj", "up_proj", "down_proj"})
      add(layer + "mlp." + product, {kFeedForward, kHidden});
    write_safetensors((fuzz_folder() / "model.safetensors").string(), weights);
    DecoderOptions o;
    o.context = 16, o.max_tokens = 16;
    return DecoderModel::load(fuzz_folder().string(), o);
  }();
  return loaded;
}

std::string number(std::uint64_t v, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(v >> (8 * i) & 0xFF);
  return out;
}
std::string checksum(std::string_view bytes) {
  const Fingerprint f = fingerprint_bytes(bytes.data(), bytes.size());
  return number(f.low, 8) + number(f.high, 8);
}

// Where the object that begins at `begin` ends, and the last brace of all where it does not: bytes behind the head may
// be braces too.
std::size_t object_end(std::string_view file, std::size_t begin) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = begin; i < file.size(); ++i) {
    const char c = file[i];
    if (c == '"') quoted = !quoted;
    if (c == '\\' && quoted) ++i;
    if (quoted) continue;
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth == 0) return i;
  }
  return file.rfind('}');
}

// Puts right what would be found wrong first: the size of the head, what it says of the model, all checksums.
std::string repaired(std::string_view file) {
  constexpr std::size_t kChecksum = 16;
  const std::size_t begin = file.find('{');
  const std::size_t end = begin == file.npos ? file.npos : object_end(file, begin);
  if (end == file.npos || end < begin) return std::string(file);
  const std::string head(file.substr(begin, end + 1 - begin));
  std::string out = "RLXCHAT\n" + number(1, 4) + number(head.size(), 4) + head;
  out += checksum(out);
  std::string_view rest = file.substr(std::min(file.size(), end + 1 + kChecksum));
  std::int64_t tokens = 0, cached = 0;
  try {
    const JsonDocument json = JsonDocument::parse(head, "fuzz");
    tokens = json.root_object().get_int("tokens");
    cached = json.root_object().get_int("cached");
  } catch (const Error&) {
    return out + std::string(rest);
  }
  const auto section = [&](std::int64_t size) {
    const auto wanted = static_cast<std::size_t>(std::clamp<std::int64_t>(size, 0, 1 << 12));
    const std::string bytes(rest.substr(0, wanted));
    out += bytes + checksum(bytes);
    rest.remove_prefix(std::min(rest.size(), wanted + kChecksum));
  };
  section(std::clamp<std::int64_t>(tokens, 0, 1 << 10) * 4);
  for (int state = 0; state < 2; ++state) section(std::clamp<std::int64_t>(cached, 0, 1 << 10) * kHidden * 4);
  return out + std::string(rest);
}

// Heads of the corpus say MODEL where they name this model, whose marks need not be the same everywhere.
std::string with_marks(std::string text) {
  const std::array<std::pair<const char*, std::string>, 3> marks{{{"CONFIG", model().config_fingerprint().text()},
                                                                  {"WEIGHTS", model().weights_fingerprint().text()},
                                                                  {"SOURCES", model().sources_fingerprint().text()}}};
  for (const auto& [name, value] : marks)
    if (const std::size_t at = text.find(name); at != text.npos) text.replace(at, std::string_view(name).size(), value);
  return text;
}

// What is sound stays as it is, and opens: else all of this would try nothing.
bool check_repair(const std::string& path) {
  const std::array<TokenId, 3> tokens{1, 2, 3};
  model().reset();
  (void)model().forward(tokens, LogitRows::Last);
  save_conversation(path, model(), {{1, 2, 3}, {{"user", "hi"}}, {2, 1.5}}, 0);
  const std::string whole = read_file(path);
  check(repaired(whole) == whole, "a sound file needs no repair");
  model().reset();
  return load_conversation(path, model(), 0).answer.tokens == 2;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string given = with_marks(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  const fs::path path = fuzz_folder() / "c.rlxchat";
  static const bool sound = check_repair(path.string());
  check(sound, "a sound file is read");
  std::ofstream(path, std::ios::binary) << ((data[0] & 1) != 0 ? repaired(given) : given);
  model().reset();
  try {
    const Conversation c = load_conversation(path.string(), model(), 0);
    check(model().length() <= static_cast<std::int64_t>(c.tokens.size()), "no keys without tokens");
    check(c.answer.tokens >= 0 && c.answer.tokens <= static_cast<std::int64_t>(c.tokens.size()),
          "an answer of the text");
    if (model().length() < model().context()) {
      const std::array<TokenId, 1> more{3};
      check(model().forward(more, LogitRows::Last).dims().back() == kVocab, "it goes on");
    }
    save_conversation(path.string(), model(), {{}, c.messages}, {}, 0);  // and what it holds can be saved
  } catch (const Error& e) {
    if (e.code() == ErrorCode::Internal) throw;
  }
  return 0;
}
