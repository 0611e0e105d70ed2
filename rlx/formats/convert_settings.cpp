// Settings of models in both of their forms.
#include "rlx/formats/convert_settings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::int64_t kMostLayers = 1024;

// A setting that may lie in `rope_parameters` (transformers 5) or at the top.
std::optional<JsonValue> rope_setting(const JsonValue& config, std::string_view key) {
  if (const auto v = config.find(key); v && !v->is_null()) return v;
  const auto rope = config.find("rope_parameters");
  if (!rope || !rope->is_object()) return std::nullopt;
  const auto v = rope->find(key);
  return v && !v->is_null() ? v : std::nullopt;
}

std::string_view rope_type(const JsonValue& scaling) {
  return scaling.get_string("rope_type", scaling.get_string("type", "default"));
}

// The scaling of rotary positions: none for "default".
std::optional<JsonValue> rope_scaling(const JsonValue& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto v = config.find(key);
    if (v && v->is_object() && rope_type(*v) != "default") return v;
  }
  return std::nullopt;
}

struct Llama3Scaling {
  double factor, low, high;
  std::int64_t context;
};
std::vector<float> llama3_factors(const Llama3Scaling& s, double theta, std::int64_t head_dim) {
  std::vector<float> out;
  const auto context = static_cast<double>(s.context);
  for (std::int64_t i = 0; i < head_dim; i += 2) {
    const double wave = 2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / static_cast<double>(head_dim));
    if (wave < context / s.high) {
      out.push_back(1);
    } else if (wave > context / s.low) {
      out.push_back(static_cast<float>(s.factor));
    } else {
      const double smooth = (context / wave - s.low) / (s.high - s.low);
      out.push_back(static_cast<float>(1 / ((1 - smooth) / s.factor + smooth)));
    }
  }
  return out;
}

void check_sizes_of_model(const ModelSizes& s, const std::string& source) {
  const auto fail = [&](const std::string& what) { throw Error(ErrorCode::BadFile, concat_text(source, ": ", what)); };
  if (s.layers < 1 || s.layers > kMostLayers) fail(concat_text(s.layers, " layers, expected 1 to ", kMostLayers));
  for (const std::int64_t v : {s.hidden, s.heads, s.kv_heads, s.head_dim, s.vocab})
    if (v < 1 || v > (std::int64_t{1} << 30)) fail(concat_text("a size is ", v, ", expected 1 to 2^30"));
  if (s.head_dim % 2 != 0) fail(concat_text("heads of ", s.head_dim, " elements cannot be rotated in pairs"));
}

// What readers of Gemma's files take for granted: the size that scores are scaled by, and which layers see a window.
void check_gemma(const GgufArchitecture& a, const JsonValue& config, const ModelSizes& sizes) {
  const bool three = a.gguf == "gemma3";
  const std::int64_t scalar = config.get_int("query_pre_attn_scalar", sizes.head_dim);
  const bool largest = sizes.layers == (three ? 62 : 46);
  if (scalar != (largest ? sizes.hidden / sizes.heads : sizes.head_dim))
    throw Error(ErrorCode::Unsupported, concat_text("config.json: \"query_pre_attn_scalar\" is ", scalar,
                                                    ", which a GGUF file of ", a.gguf, " cannot say"));
  const auto every = static_cast<std::size_t>(three ? 6 : 2);
  bool same =
      config.get_int("sliding_window_pattern", static_cast<std::int64_t>(every)) == static_cast<std::int64_t>(every);
  if (const auto types = config.find("layer_types"); types && types->is_array()) {
    const std::vector<JsonValue> all = types->elements("layer_types");
    for (std::size_t i = 0; i < all.size(); ++i)
      same &= (all[i].as_string("layer_types") == "full_attention") == ((i + 1) % every == 0);
  }
  if (!same)
    throw Error(ErrorCode::Unsupported, concat_text("config.json: layers with full attention are others than every ",
                                                    every, "th, which a GGUF file of ", a.gguf, " cannot say"));
}

}  // namespace

ModelSizes read_sizes_of_config(const JsonValue& config) {
  ModelSizes s;
  s.layers = config.get_int("num_hidden_layers");
  s.hidden = config.get_int("hidden_size");
  s.heads = config.get_int("num_attention_heads");
  s.kv_heads = config.get_int("num_key_value_heads", s.heads);
  s.vocab = config.get_int("vocab_size");
  s.head_dim = config.get_int("head_dim", s.heads > 0 ? s.hidden / s.heads : 0);
  check_sizes_of_model(s, "config.json");
  return s;
}

ModelSizes read_sizes_of_gguf(const GgufFile& file, const GgufArchitecture& a) {
  const auto key = [&](std::string_view name) { return concat_text(a.gguf, ".", name); };
  ModelSizes s;
  s.layers = file.get_int(key("block_count"));
  s.hidden = file.get_int(key("embedding_length"));
  s.heads = file.get_int(key("attention.head_count"));
  s.kv_heads = file.get_int(key("attention.head_count_kv"), s.heads);
  s.head_dim = file.get_int(key("attention.key_length"), s.heads > 0 ? s.hidden / s.heads : 0);
  const GgufTensor& table = file.at("token_embd.weight");
  s.vocab = table.dims.size() == 2 ? table.dims[0] : 0;
  check_sizes_of_model(s, file.source());
  return s;
}

std::optional<std::vector<float>> rope_factors(const JsonValue& config, const ModelSizes& sizes) {
  const auto scaling = rope_scaling(config);
  if (!scaling || rope_type(*scaling) != "llama3") return std::nullopt;
  const auto theta = rope_setting(config, "rope_theta");
  const Llama3Scaling s{scaling->get_number("factor"), scaling->get_number("low_freq_factor"),
                        scaling->get_number("high_freq_factor"), scaling->get_int("original_max_position_embeddings")};
  if (!(s.factor > 0) || !(s.low > 0) || !(s.high > s.low) || s.context < 1)
    throw Error(ErrorCode::BadFile, "config.json: the settings of the llama3 rope scaling do not fit together");
  return llama3_factors(s, theta ? theta->as_number("rope_theta") : 10000, sizes.head_dim);
}

void write_settings(GgufWriter& out, const GgufArchitecture& a, const JsonValue& config, const ModelSizes& sizes) {
  const auto key = [&](std::string_view name) { return concat_text(a.gguf, ".", name); };
  for (const SettingRule& rule : a.settings) {
    const auto v = rope_setting(config, rule.hf);
    if (!v) {
      if (rule.required) config.at(rule.hf);  // says that it is missing
      continue;
    }
    if (rule.kind == GgufKind::F32)
      out.set_number(key(rule.gguf), rule.kind, v->as_number(rule.hf));
    else
      out.set_int(key(rule.gguf), rule.kind, v->as_int(rule.hf));
  }
  const auto number = [&](std::string_view name, std::int64_t v) {
    if (!out.has(key(name))) out.set_int(key(name), GgufKind::U32, v);
  };
  number("attention.head_count_kv", sizes.kv_heads);
  number("attention.key_length", sizes.head_dim);
  number("attention.value_length", sizes.head_dim);
  number("rope.dimension_count", sizes.head_dim);
  const auto unsupported = [](const std::string& what) {
    throw Error(ErrorCode::Unsupported, concat_text("config.json: ", what, " cannot be expressed in a GGUF file"));
  };
  for (const char* setting : {"hidden_activation", "hidden_act"})
    if (const auto act = config.find(setting); act && act->is_string()) {
      if (act->as_string(setting) != a.activation)
        unsupported(concat_text("the activation \"", act->as_string(setting), "\""));
      break;
    }
  const bool is_gemma = a.gguf.substr(0, 5) == "gemma";
  const bool uses_window = config.get_bool("use_sliding_window", a.model_type == "mistral");
  if (const auto window = config.find("sliding_window"); window && !window->is_null() && uses_window && !is_gemma) {
    if (a.model_type != "mistral") unsupported(concat_text("a sliding window of ", a.model_type));
    number("attention.sliding_window", window->as_int("sliding_window"));
  }
  if (is_gemma) check_gemma(a, config, sizes);
  const auto scaling = rope_scaling(config);
  if (!scaling) return;
  const std::string_view type = rope_type(*scaling);
  if (type == "llama3") {  // a tensor says it; these are for the way back
    number("rope.scaling.original_context_length", scaling->get_int("original_max_position_embeddings"));
    out.set_number(key("rope.scaling.low_freq_factor"), GgufKind::F32, scaling->get_number("low_freq_factor"));
    out.set_number(key("rope.scaling.high_freq_factor"), GgufKind::F32, scaling->get_number("high_freq_factor"));
    return;
  }
  if (type != "linear" && type != "yarn") unsupported(concat_text("the rope scaling \"", type, "\""));
  out.set_string(key("rope.scaling.type"), type);
  out.set_number(key("rope.scaling.factor"), GgufKind::F32, scaling->get_number("factor"));
  if (type == "yarn") {
    number("rope.scaling.original_context_length",
           scaling->get_int("original_max_position_embeddings", config.get_int("max_position_embeddings")));
    for (const char* other : {"attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"})
      if (const auto v = scaling->find(other); v && !v->is_null())
        unsupported(concat_text("the yarn setting \"", other, "\""));
  }
}

std::string config_of_gguf(const GgufFile& file, const GgufArchitecture& a, const ModelSizes& sizes,
                           std::string_view dtype) {
  const auto key = [&](std::string_view name) { return concat_text(a.gguf, ".", name); };
  JsonWriter w(2);
  w.begin_object();
  w.key("architectures").begin_array().value(a.hf_class).end_array();
  w.member("model_type", a.model_type).member("torch_dtype", dtype).member("hidden_act", a.activation);
  const bool is_gemma = a.gguf.substr(0, 5) == "gemma";
  if (is_gemma) w.member("hidden_activation", a.activation);
  for (const SettingRule& rule : a.settings) {
    const GgufValue* v = file.find_value(key(rule.gguf));
    if (rule.hf == "vocab_size" || (!v && !rule.required)) continue;
    if (rule.kind == GgufKind::F32)
      w.member(rule.hf, static_cast<float>(file.get_number(key(rule.gguf))));
    else
      w.member(rule.hf, file.get_int(key(rule.gguf)));
  }
  w.member("vocab_size", sizes.vocab);
  if (is_gemma)
    w.member("query_pre_attn_scalar",
             sizes.layers == (a.gguf == "gemma3" ? 62 : 46) ? sizes.hidden / sizes.heads : sizes.head_dim);
  else
    w.member("head_dim", sizes.head_dim);
  w.member("tie_word_embeddings", file.find_tensor("output.weight") == nullptr);
  w.member("attention_bias", file.find_tensor("blk.0.attn_q.bias") != nullptr);
  for (const char* which : {"bos", "eos"})
    if (const GgufValue* v = file.find_value(concat_text("tokenizer.ggml.", which, "_token_id")))
      w.member(concat_text(which, "_token_id"), v->as_int());
  if (const GgufValue* v = is_gemma ? nullptr : file.find_value(key("attention.sliding_window")))
    w.member("sliding_window", v->as_int());
  const std::string_view type = file.get_string(key("rope.scaling.type"), "none");
  if (file.find_tensor("rope_freqs.weight")) {
    // Where the file does not say them, the numbers of every Llama 3; they have to give the file's own factors.
    const Tensor factors = file.decoded("rope_freqs.weight");
    const std::span<const float> own = factors.values<float>();
    const double largest = own.empty() ? 0 : static_cast<double>(*std::max_element(own.begin(), own.end()));
    const Llama3Scaling s{largest, file.get_number(key("rope.scaling.low_freq_factor"), 1),
                          file.get_number(key("rope.scaling.high_freq_factor"), 4),
                          file.get_int(key("rope.scaling.original_context_length"), 8192)};
    const std::vector<float> made = llama3_factors(s, file.get_number(key("rope.freq_base"), 10000), sizes.head_dim);
    const bool same = made.size() == own.size() &&
                      std::equal(made.begin(), made.end(), own.begin(),
                                 [](float x, float y) { return std::fabs(x - y) <= 1e-5F * std::fabs(x); });
    if (!same)
      throw Error(
          ErrorCode::Unsupported,
          concat_text(
              file.source(),
              ": the factors in \"rope_freqs.weight\" are none of Llama 3's, and config.json has no place for others"));
    w.key("rope_scaling")
        .begin_object()
        .member("rope_type", "llama3")
        .member("factor", s.factor)
        .member("low_freq_factor", s.low);
    w.member("high_freq_factor", s.high).member("original_max_position_embeddings", s.context).end_object();
  } else if (type == "linear" || type == "yarn") {
    w.key("rope_scaling")
        .begin_object()
        .member("rope_type", type)
        .member("factor", file.get_number(key("rope.scaling.factor")));
    if (const GgufValue* v = file.find_value(key("rope.scaling.original_context_length")))
      w.member("original_max_position_embeddings", v->as_int());
    w.end_object();
  } else if (type != "none") {
    throw Error(ErrorCode::Unsupported,
                concat_text(file.source(), ": the rope scaling \"", type, "\" is not converted"));
  }
  w.end_object();
  return w.take() + "\n";
}

}  // namespace rlx
