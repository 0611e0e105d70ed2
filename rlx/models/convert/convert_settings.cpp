// Converts model settings between config.json and GGUF metadata.
#include "rlx/models/convert/convert_settings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>

#include "rlx/error.h"
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/family_config.h"

namespace rlx {

std::optional<JsonValue> present(const JsonValue& object, std::string_view key) {
  const auto v = object.find(key);
  return v && !v->is_null() ? v : std::nullopt;
}

std::optional<JsonValue> rope_parameters(const JsonValue& config, std::string_view layers) {
  const auto rope = present(config, "rope_parameters");
  if (!rope || !rope->is_object()) return std::nullopt;
  const auto part = present(*rope, layers);
  return part && part->is_object() ? part : rope;
}

std::string_view rope_type(const JsonValue& scaling) {
  return scaling.get_string("rope_type", scaling.get_string("type", "default"));
}

double number_or(const JsonValue& object, std::string_view key, double fallback) {
  const auto v = present(object, key);
  return v ? v->as_number(key) : fallback;
}

namespace {

// A setting in `rope_parameters`, of which Gemma 3 has two, or at the top level.
std::optional<JsonValue> rope_setting(const JsonValue& config, std::string_view key) {
  const bool local = key == "rope_local_base_freq";
  if (const auto rope = rope_parameters(config, local ? "sliding_attention" : "full_attention"))
    if (const auto v = present(*rope, local && rope->find("rope_type") ? "rope_theta" : key)) return v;
  return present(config, key);
}

// The scaling of rotary positions; none for "default".
std::optional<JsonValue> rope_scaling(const JsonValue& config) {
  auto v = present(config, "rope_scaling");  // it wins over the other one, as in transformers
  if (!v || !v->is_object() || v->size() == 0) v = rope_parameters(config);
  return v && rope_type(*v) != "default" ? v : std::nullopt;
}

// The context before scaling.
std::int64_t original_context(const JsonValue& config, const JsonValue& scaling) {
  constexpr std::string_view key = "original_max_position_embeddings";
  const std::int64_t v = config.get_int(key, scaling.get_int(key, config.get_int("max_position_embeddings")));
  if (v < 1) throw Error(ErrorCode::BadFile, concat_text("config.json: \"", key, "\" is ", v, ", expected 1 or more"));
  return v;
}

double rope_theta(const DecoderFamily& a, const JsonValue& config) {
  if (const auto v = rope_setting(config, "rope_theta")) return v->as_number("rope_theta");
  for (const SettingRule& rule : a.settings)
    if (rule.gguf == "rope.freq_base") return number_or(config, rule.hf, rule.fallback > 0 ? rule.fallback : 10000);
  return 10000;
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

// The attention factor of scaled contexts: YaRN's and LongRoPE's.
double yarn_growth(double factor) { return factor <= 1 ? 1 : 0.1 * std::log(factor) + 1; }
double long_growth(std::int64_t context, std::int64_t original) {
  const double factor = static_cast<double>(context) / static_cast<double>(original);
  return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original)));
}

void check_sizes_of_model(const ModelSizes& s, const std::string& source) {
  const auto fail = [&](const std::string& what) { throw Error(ErrorCode::BadFile, concat_text(source, ": ", what)); };
  if (s.layers < 1 || s.layers > kMostLayers) fail(concat_text(s.layers, " layers, expected 1 to ", kMostLayers));
  for (const std::int64_t v : {s.hidden, s.heads, s.kv_heads, s.head_dim, s.vocab})
    if (v < 1 || v > (std::int64_t{1} << 30)) fail(concat_text("a size is ", v, ", expected 1 to 2^30"));
  if (s.rotated % 2 != 0 || s.rotated < 0 || s.rotated > s.head_dim)
    fail(concat_text("heads of ", s.head_dim,
                     " elements cannot be rotated: the rotated part must be even and fit in a head"));
  if (s.experts < 0 || s.experts > kMostExperts)
    fail(concat_text(s.experts, " experts, expected at most ", kMostExperts));
  for (const std::int64_t v : {s.shared_experts, s.dense_layers, s.q_rank, s.nope_dim, s.v_dim})
    if (v < 0 || v > (std::int64_t{1} << 30)) fail(concat_text("a size is ", v, ", expected 0 to 2^30"));
}

// The family's fallback for a metadata key that config.json lacks; none for a key without a rule.
std::optional<std::int64_t> fallback_of_key(const DecoderFamily& a, std::string_view gguf) {
  for (const SettingRule& rule : a.settings)
    if (rule.gguf == gguf && rule.need == SettingNeed::Fallback) return static_cast<std::int64_t>(rule.fallback);
  return std::nullopt;
}

}  // namespace

// -- config.json to metadata --

std::string SettingsWriter::key(std::string_view name) const { return concat_text(a_.gguf, ".", name); }

void SettingsWriter::refuse(const std::string& what) {
  throw Error(ErrorCode::Unsupported, concat_text("config.json: ", what, " cannot be expressed in a GGUF file"));
}

void SettingsWriter::integer(std::string_view name, std::int64_t v) {
  if (!out_.has(key(name))) out_.set_int(key(name), GgufKind::U32, v);
}

void SettingsWriter::number(std::string_view name, double v) {
  if (!out_.has(key(name))) out_.set_number(key(name), GgufKind::F32, v);
}

void SettingsWriter::flag(std::string_view name, bool v) {
  if (!out_.has(key(name))) out_.set_bool(key(name), v);
}

void SettingsWriter::need(std::string_view setting, bool value) const {
  if (config_.get_bool(setting, value) != value) refuse(concat_text("\"", setting, "\": ", value ? "false" : "true"));
}

void SettingsWriter::check_window_pattern(std::size_t n) const {
  bool same = true;
  for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"})
    if (const auto v = present(config_, key)) same &= v->as_int(key) == static_cast<std::int64_t>(n);
  if (const auto types = present(config_, "layer_types"); types && types->is_array()) {
    const std::vector<JsonValue> all = types->elements("layer_types");
    for (std::size_t i = 0; i < all.size(); ++i)
      same &= (all[i].as_string("layer_types") == "full_attention") == ((i + 1) % n == 0);
  }
  if (!same)
    throw Error(ErrorCode::Unsupported, concat_text("config.json: the layers with full attention are not every ", n,
                                                    "th layer, as a GGUF file of ", a_.gguf, " needs"));
}

void SettingsWriter::write() {
  for (const SettingRule& rule : a_.settings) write_rule(rule);
  if (!a_.own_heads) {
    integer("attention.head_count_kv", sizes_.kv_heads);
    integer("attention.key_length", sizes_.head_dim);
    integer("attention.value_length", sizes_.head_dim);
  }
  if (sizes_.rotated > 0) {
    integer("rope.dimension_count", sizes_.rotated);
    number("rope.freq_base", rope_theta(a_, config_));
  }
  check_activation();
  if (!config_.get_bool("is_causal", true) || config_.get_bool("use_bidirectional_attention", false))
    refuse("bidirectional attention");
  write_window();
  if (a_.write_gguf) a_.write_gguf(*this);
  write_scaling();
}

void SettingsWriter::write_rule(const SettingRule& rule) {
  if (rule.gguf == "rope.freq_base") return;  // the key may have another name
  const auto v = rope_setting(config_, rule.hf);
  if (!v && rule.need == SettingNeed::Required) (void)config_.at(rule.hf).as_int(rule.hf);  // throws with the reason
  if (!v && rule.need == SettingNeed::Optional) return;
  if (!v && config_.find(rule.hf) && rule.hf.ends_with("softcapping"))  // null means none, not the default
    refuse(concat_text("\"", rule.hf, "\": null"));
  if (rule.kind == GgufKind::F32)
    out_.set_number(key(rule.gguf), rule.kind, v ? v->as_number(rule.hf) : rule.fallback);
  else if (rule.kind == GgufKind::Bool)
    out_.set_bool(key(rule.gguf), v ? v->as_bool(rule.hf) : rule.fallback != 0);
  else
    out_.set_int(key(rule.gguf), rule.kind, v ? v->as_int(rule.hf) : static_cast<std::int64_t>(rule.fallback));
}

void SettingsWriter::check_activation() const {
  for (const char* setting : {"hidden_activation", "hidden_act", "activation_function"})
    if (const auto act = config_.find(setting); act && act->is_string()) {
      const std::string_view name = act->as_string(setting);
      if (name != a_.activation && name != a_.activation_alias) refuse(concat_text("the activation \"", name, "\""));
      return;
    }
}

void SettingsWriter::write_window() {
  const auto window = present(config_, "sliding_window");
  const bool all_layers = a_.window != GgufWindow::Rules;
  if (a_.window == GgufWindow::Always)
    integer("attention.sliding_window", window ? window->as_int("sliding_window") : 0);
  const bool used = config_.get_bool("use_sliding_window", all_layers);
  if (!window || out_.has(key("attention.sliding_window")) || !used) return;
  if (!all_layers) refuse(concat_text("a sliding window of ", a_.model_type));
  if (const auto types = present(config_, "layer_types"); types && types->is_array())
    for (const JsonValue& type : types->elements("layer_types"))
      if (type.as_string("layer_types") != "sliding_attention") refuse("a sliding window in only some layers");
  integer("attention.sliding_window", window->as_int("sliding_window"));
}

void SettingsWriter::write_scaling() {
  const auto scaling = rope_scaling(config_);
  if (a_.rope.longrope)
    if (const auto v = rope_setting(config_, "original_max_position_embeddings"))
      integer("rope.scaling.original_context_length", v->as_int("original_max_position_embeddings"));
  if (!scaling) return;
  const std::string_view type = rope_type(*scaling);
  if (type == "llama3" && a_.rope.llama3) {  // stored as a tensor; these settings are for the way back
    integer("rope.scaling.original_context_length", original_context(config_, *scaling));
    number("rope.scaling.low_freq_factor", scaling->get_number("low_freq_factor"));
    number("rope.scaling.high_freq_factor", scaling->get_number("high_freq_factor"));
    return;
  }
  if ((type == "longrope" || type == "su") && a_.rope.longrope) {
    const std::int64_t context = config_.get_int("max_position_embeddings"),
                       original = original_context(config_, *scaling);
    integer("rope.scaling.original_context_length", original);
    number("rope.scaling.attn_factor", number_or(*scaling, "attention_factor", long_growth(context, original)));
    return;
  }
  if (type != "linear" && type != "yarn") refuse(concat_text("the rope scaling \"", type, "\""));
  if (sizes_.rotated == 0) refuse(concat_text("a rope scaling of ", a_.model_type));
  const double factor = scaling->get_number("factor");
  out_.set_string(key("rope.scaling.type"), type);
  number("rope.scaling.factor", factor);
  if (type == "yarn") write_yarn(*scaling, factor);
}

void SettingsWriter::write_yarn(const JsonValue& scaling, double factor) {
  integer("rope.scaling.original_context_length", original_context(config_, scaling));
  for (const char* beta : {"beta_fast", "beta_slow"})
    if (const auto v = present(scaling, beta)) number(concat_text("rope.scaling.yarn_", beta), v->as_number(beta));
  // Files have no key for it: readers decide it by the architecture.
  if (scaling.get_bool("truncate", true) != a_.rope.truncate)
    refuse(concat_text("the yarn setting \"truncate\": ", a_.rope.truncate ? "false" : "true"));
  const double up = number_or(scaling, "mscale", 0), all = number_or(scaling, "mscale_all_dim", 0);
  if (a_.rope.mscale) {
    if (all == 0 || up != all || present(scaling, "attention_factor"))
      refuse("yarn whose \"mscale\" and \"mscale_all_dim\" are not the same number");
    number("rope.scaling.yarn_log_multiplier", 0.1 * all);
    return;
  }
  if (up != 0 && all != 0) refuse("the yarn setting \"mscale\"");
  if (const auto v = present(scaling, "attention_factor"))
    number("rope.scaling.attn_factor", v->as_number("attention_factor") / yarn_growth(factor));
}

// -- metadata to config.json --

std::string ConfigWriter::key(std::string_view name) const { return concat_text(a_.gguf, ".", name); }

void ConfigWriter::unsupported(const std::string& what) const {
  throw Error(ErrorCode::Unsupported, concat_text(file_.source(), ": ", what));
}

double ConfigWriter::part_rotated() const {
  return static_cast<double>(sizes_.rotated) / static_cast<double>(sizes_.head_dim);
}

// The default of llama.cpp's readers where a file has no value.
double ConfigWriter::theta() const { return file_.get_number(key("rope.freq_base"), a_.rope.theta); }

bool ConfigWriter::writes(std::string_view setting) const {
  return std::any_of(a_.settings.begin(), a_.settings.end(),
                     [&](const SettingRule& r) { return r.hf == setting && file_.find_value(key(r.gguf)); });
}

std::string ConfigWriter::text(std::string_view dtype) {
  w_.begin_object();
  w_.key("architectures").begin_array().value(a_.hf_class).end_array();
  w_.member("model_type", a_.model_type).member("torch_dtype", dtype);
  for (const std::string_view name : a_.activation_keys)
    if (!name.empty()) w_.member(name, a_.activation);
  if (a_.write_config)
    a_.write_config(*this);
  else
    settings(), heads(), flags();
  write_scaling();
  w_.end_object();
  return w_.take() + "\n";
}

void ConfigWriter::settings() {
  for (const SettingRule& rule : a_.settings) write_rule(rule);
  w_.member("vocab_size", sizes_.vocab);
  if (sizes_.rotated > 0) w_.member("rope_theta", static_cast<float>(theta()));
}

void ConfigWriter::heads() {
  if (a_.has_head_dim && !writes("head_dim")) w_.member("head_dim", sizes_.head_dim);
}

void ConfigWriter::flags() {
  w_.member("tie_word_embeddings", !has_tensor("output.weight"));
  w_.member("attention_bias", has_tensor(a_.attention_bias));
  w_.member("mlp_bias", has_tensor("blk.0.ffn_up.bias"));
  for (const char* which : {"bos", "eos"})
    if (const GgufValue* v = file_.find_value(concat_text("tokenizer.ggml.", which, "_token_id")))
      w_.member(concat_text(which, "_token_id"), v->as_int());
  write_windows();
}

void ConfigWriter::write_common_window() {
  const std::int64_t window = file_.get_int(key("attention.sliding_window"), 0);
  if (window > 0)
    w_.member("sliding_window", window);
  else
    w_.key("sliding_window").null();
}

void ConfigWriter::write_windows() {
  if (const GgufValue* v = file_.find_value(key("attention.sliding_window_pattern"))) {
    const std::int64_t n = a_.full_every;
    bool same = n > 0;
    if (same && v->is_array()) {
      const std::vector<std::int64_t> all = v->ints();
      for (std::size_t i = 0; i < all.size(); ++i)
        same &= (all[i] != 0) == ((static_cast<std::int64_t>(i) + 1) % n != 0);
    } else if (same) {
      same = v->as_int() == n;
    }
    if (!same) unsupported(concat_text("the pattern of layers with sliding windows is not supported"));
  }
  if (a_.window != GgufWindow::Rules) write_common_window();
}

void ConfigWriter::write_rule(const SettingRule& rule) {
  const GgufValue* v = file_.find_value(key(rule.gguf));
  if (rule.gguf == "vocab_size" || rule.gguf == "rope.freq_base") return;
  if (!v && rule.need != SettingNeed::Required) return;
  // config.json says null for models without a low-rank query projection, not 0.
  if (rule.hf == "q_lora_rank" && sizes_.q_rank == 0) {
    w_.key(rule.hf).null();
  } else if (rule.kind == GgufKind::F32) {
    w_.member(rule.hf, static_cast<float>(file_.get_number(key(rule.gguf))));
  } else if (rule.kind == GgufKind::Bool) {
    w_.member(rule.hf, file_.get_bool(key(rule.gguf)));
  } else {
    w_.member(rule.hf, file_.get_int(key(rule.gguf)));
  }
}

// Where the file has no settings, those of every Llama 3. They must give the file's own factors.
void ConfigWriter::write_llama3() {
  const Tensor factors = file_.decoded("rope_freqs.weight");
  const std::span<const float> own = factors.values<float>();
  const double largest = own.empty() ? 0 : static_cast<double>(*std::max_element(own.begin(), own.end()));
  const Llama3Scaling s{largest, file_.get_number(key("rope.scaling.low_freq_factor"), 1),
                        file_.get_number(key("rope.scaling.high_freq_factor"), 4),
                        file_.get_int(key("rope.scaling.original_context_length"), 8192)};
  const std::vector<float> made = llama3_factors(s, theta(), sizes_.rotated);
  const bool same = made.size() == own.size() &&
                    std::equal(made.begin(), made.end(), own.begin(),
                               [](float x, float y) { return std::fabs(x - y) <= 1e-5F * std::fabs(x); });
  if (!same)
    unsupported(
        "the factors in \"rope_freqs.weight\" are not those of Llama 3, and config.json cannot hold other factors");
  w_.key("rope_scaling").begin_object().member("rope_type", "llama3");
  w_.member("factor", s.factor).member("low_freq_factor", s.low);
  w_.member("high_freq_factor", s.high).member("original_max_position_embeddings", s.context).end_object();
}

void ConfigWriter::write_long() {
  w_.key("rope_scaling").begin_object().member("type", "longrope");
  for (const char* which : {"short", "long"}) {
    const Tensor factors = file_.decoded(concat_text("rope_factors_", which, ".weight"));
    w_.key(concat_text(which, "_factor")).begin_array();
    for (const float v : factors.values<float>()) w_.value(v);
    w_.end_array();
  }
  const std::int64_t context = file_.get_int(key("context_length"));
  const std::int64_t original = file_.get_int(key("rope.scaling.original_context_length"), context);
  if (original < 1) unsupported(concat_text("the model was trained for a context of ", original, " tokens"));
  // transformers supports three settings only, so this one is written only where it matters.
  const double grown = long_growth(context, original), own = file_.get_number(key("rope.scaling.attn_factor"), 1);
  if (!(std::fabs(own - grown) <= 1e-6 * grown)) w_.member("attention_factor", static_cast<float>(own));
  w_.end_object();
}

void ConfigWriter::write_yarn() {
  const double factor = file_.get_number(key("rope.scaling.factor"));
  w_.key("rope_scaling").begin_object().member("rope_type", "yarn").member("factor", factor);
  if (const GgufValue* v = file_.find_value(key("rope.scaling.original_context_length")))
    w_.member("original_max_position_embeddings", v->as_int());
  for (const char* beta : {"beta_fast", "beta_slow"})
    if (const GgufValue* v = file_.find_value(key(concat_text("rope.scaling.yarn_", beta))))
      w_.member(beta, static_cast<float>(v->as_number()));
  if (const GgufValue* v = file_.find_value(key("rope.scaling.attn_factor")))
    w_.member("attention_factor", v->as_number() * yarn_growth(factor));
  if (!a_.rope.truncate) w_.member("truncate", false);
  if (a_.rope.mscale) {
    const auto all = static_cast<float>(10 * file_.get_number(key("rope.scaling.yarn_log_multiplier")));
    w_.member("mscale", all).member("mscale_all_dim", all);
  }
  w_.end_object();
}

void ConfigWriter::write_scaling() {
  if (a_.rope.longrope)
    if (const GgufValue* v = file_.find_value(key("rope.scaling.original_context_length")))
      w_.member("original_max_position_embeddings", v->as_int());
  const std::string_view type = file_.get_string(key("rope.scaling.type"), "none");
  if (file_.find_tensor("rope_freqs.weight")) return write_llama3();
  if (file_.find_tensor("rope_factors_long.weight")) return write_long();
  if (type == "yarn") return write_yarn();
  if (type == "linear")
    w_.key("rope_scaling")
        .begin_object()
        .member("rope_type", type)
        .member("factor", file_.get_number(key("rope.scaling.factor")))
        .end_object();
  else if (type != "none")
    unsupported(concat_text("the rope scaling \"", type, "\" is not supported"));
}

ModelSizes read_sizes_of_config(const DecoderFamily& a, const JsonValue& config) {
  const auto size = [&](std::string_view gguf) { return config.get_int(setting_of_key(a, gguf)); };
  ModelSizes s;
  s.layers = size("block_count");
  s.hidden = size("embedding_length");
  s.heads = size("attention.head_count");
  s.kv_heads = config.get_int("num_key_value_heads", s.heads);
  s.vocab = size("vocab_size");
  s.head_dim = config.get_int(
      "head_dim", fallback_of_key(a, "attention.key_length").value_or(s.heads > 0 ? s.hidden / s.heads : 0));
  if (a.sizes_of_config) {
    a.sizes_of_config(config, s);
  } else if (a.rope.rotates) {
    double part = a.rope.part;
    if (!a.rope.part_key.empty()) part = number_or(config, a.rope.part_key, part);
    if (const auto v = rope_setting(config, "partial_rotary_factor")) part = v->as_number("partial_rotary_factor");
    if (part != 1 && !a.rope.partly) SettingsWriter::refuse("a partial rotary factor");
    if (!(part > 0) || part > 1)
      throw Error(ErrorCode::BadFile,
                  concat_text("config.json: the rotated fraction of a head is ", part, ", expected 0 to 1"));
    s.rotated = static_cast<std::int64_t>(static_cast<double>(s.head_dim) * part);
  }
  for (const SettingRule& rule : a.settings)
    if (rule.gguf == "expert_count") s.experts = config.get_int(rule.hf);
  check_sizes_of_model(s, "config.json");
  return s;
}

ModelSizes read_sizes_of_gguf(const GgufFile& file, const DecoderFamily& a) {
  const auto key = [&](std::string_view name) { return concat_text(a.gguf, ".", name); };
  ModelSizes s;
  s.layers = file.get_int(key("block_count"));
  s.hidden = file.get_int(key("embedding_length"));
  s.heads = file.get_int(key("attention.head_count"));
  s.kv_heads = file.get_int(key("attention.head_count_kv"), s.heads);
  s.head_dim = file.get_int(key("attention.key_length"), s.heads > 0 ? s.hidden / s.heads : 0);
  s.rotated = !a.rope.rotates ? 0 : file.get_int(key("rope.dimension_count"), s.head_dim);
  s.experts = file.get_int(key("expert_count"), 0);
  if (a.sizes_of_gguf) a.sizes_of_gguf(file, s);
  const GgufTensor& table = file.at("token_embd.weight");
  s.vocab = table.dims.size() == 2 ? table.dims[0] : 0;
  check_sizes_of_model(s, file.source());
  return s;
}

std::map<std::string, std::vector<float>> rope_factors(const DecoderFamily& a, const JsonValue& config,
                                                       const ModelSizes& sizes) {
  std::map<std::string, std::vector<float>> out;
  const auto scaling = rope_scaling(config);
  if (!scaling) return out;
  const std::string_view type = rope_type(*scaling);
  if (type == "longrope" || type == "su") {
    for (const std::string which : {"short", "long"}) {
      const std::string setting = which + "_factor";
      std::vector<float>& factors = out[concat_text("rope_factors_", which, ".weight")];
      for (const JsonValue& v : scaling->at(setting).elements(setting))
        factors.push_back(static_cast<float>(v.as_number(setting)));
      if (static_cast<std::int64_t>(factors.size()) != sizes.rotated / 2)
        throw Error(ErrorCode::BadFile, concat_text("config.json: \"", setting, "\" has ", factors.size(),
                                                    " entries for ", sizes.rotated / 2, " pairs"));
    }
  }
  if (type != "llama3") return out;
  const Llama3Scaling s{scaling->get_number("factor"), scaling->get_number("low_freq_factor"),
                        scaling->get_number("high_freq_factor"), original_context(config, *scaling)};
  if (!(s.factor > 0) || !(s.low > 0) || !(s.high > s.low) || s.context < 1)
    throw Error(ErrorCode::BadFile,
                "config.json: llama3 rope scaling needs factor > 0, 0 < low_freq_factor < high_freq_factor, and an "
                "original context of at least 1");
  out["rope_freqs.weight"] = llama3_factors(s, rope_theta(a, config), sizes.rotated);
  return out;
}

void write_settings(GgufWriter& out, const DecoderFamily& a, const JsonValue& config, const ModelSizes& sizes) {
  SettingsWriter(out, a, config, sizes).write();
}

std::string config_of_gguf(const GgufFile& file, const DecoderFamily& a, const ModelSizes& sizes,
                           std::string_view dtype) {
  return ConfigWriter(file, a, sizes).text(dtype);
}

}  // namespace rlx
