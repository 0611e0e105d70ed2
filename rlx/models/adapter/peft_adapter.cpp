// Reads adapter_config.json and adapter_model.safetensors, and refuses unsupported kinds of PEFT adapters.
#include "rlx/models/adapter/peft_adapter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/models/config_keys.h"

namespace rlx {
namespace {

constexpr std::string_view kModelPrefix = "base_model.model.";
// Suffixes after the name of a module. Longer ones come before those that they end in.
struct Ending {
  std::string_view text;
  int rank;  // rank of the tensor; 0: any
};
constexpr Ending kEndings[] = {
    {".lora_A.weight", 2},         {".lora_B.weight", 2},     {".lora_embedding_A", 2}, {".lora_embedding_B", 2},
    {".lora_magnitude_vector", 1}, {".base_layer.weight", 0}, {".weight", 0},           {".bias", 1},
};
const Ending* ending_of(std::string_view name) {
  for (const Ending& e : kEndings)
    if (name.ends_with(e.text)) return &e;
  return nullptr;
}

// True unless a key is absent, null, false, or an empty list, text or object.
bool says_something(const JsonValue& object, std::string_view key) {
  const auto v = object.find(key);
  if (!v || v->is_null()) return false;
  if (v->kind() == JsonKind::Bool) return v->as_bool(key);
  if (v->is_string()) return !v->as_string(key).empty();
  return v->is_array() || v->is_object() ? v->size() > 0 : true;
}

std::vector<std::string> texts_of(const JsonValue& object, std::string_view key) {
  std::vector<std::string> out;
  const auto v = object.find(key);
  if (!v || v->is_null()) return out;
  if (v->is_string()) return {std::string(v->as_string(key))};
  for (const JsonValue& e : v->elements(key)) out.emplace_back(e.as_string(key));
  return out;
}

Regex whole_name(std::string_view pattern, const std::string& where) {
  return Regex(concat_text("^(?:", pattern, ")$"), where);
}

template <class T>
Tensor floats_of(const TensorView& view) {
  Dims dims(view.dims.begin(), view.dims.end());
  Tensor out = Tensor::uninitialized(Shape(std::move(dims), DType::F32));
  const auto to = out.mutable_values<float>();
  const auto* from = static_cast<const T*>(view.data);
  std::transform(from, from + to.size(), to.begin(), [](T x) { return static_cast<float>(x); });
  return out;
}

}  // namespace

PeftAdapter::PeftAdapter(const std::string& folder) : config_(join_path(folder, "adapter_config.json")) {
  const std::string weights = join_path(folder, "adapter_model.safetensors");
  if (!has_file(config_))
    throw Error(ErrorCode::NotFound, concat_text("\"", folder, "\" holds no adapter_config.json"),
                "give the folder that PEFT's save_pretrained wrote");
  if (!has_file(weights))
    throw Error(ErrorCode::NotFound, concat_text("\"", folder, "\" holds no adapter_model.safetensors"),
                has_file(join_path(folder, "adapter_model.bin"))
                    ? "adapter_model.bin is in Python's pickle format: save the adapter again, with safetensors"
                    : "give the folder that PEFT's save_pretrained wrote");
  read_config(config_);
  file_ = SafetensorsFile::open(weights);
  check_tensors();
}

void PeftAdapter::read_config(const std::string& path) {
  const JsonDocument document = JsonDocument::read(path);
  const JsonValue root = document.root_object();
  const ConfigKeys k(root, document.source());
  const std::string type = k.text("peft_type", "");
  if (type != "LORA") k.unsupported(concat_text("\"peft_type\" is \"", type, "\""), "supported is LORA");
  struct Refused {
    const char *key, *what;
  };
  for (const Refused& r : {Refused{"lora_bias", "lora_A or lora_B have biases"},
                           {"ensure_weight_tying", "tied weights are changed together"},
                           {"target_parameters", "parameters are changed that are not modules"},
                           {"trainable_token_indices", "rows of the embedding are replaced"},
                           {"layer_replication", "layers of the model are repeated"},
                           {"alora_invocation_tokens", "the adapter starts only after certain tokens"},
                           {"use_qalora", "inputs are pooled"},
                           {"use_bdlora", "lora_A and lora_B are block-diagonal"},
                           {"arrow_config", "adapters are chosen by a router"},
                           {"kasa_config", "singular values are scaled"},
                           {"monteclora_config", "weights are sampled"}})
    if (says_something(root, r.key))
      k.unsupported(concat_text("\"", r.key, "\" is set, which is not supported"), r.what);
  if (k.text("bias", "none") != "none")
    k.unsupported(concat_text("\"bias\" is \"", k.text("bias", ""), "\""), "supported is none");
  const auto init = root.find("init_lora_weights");
  if (init && init->is_string()) {
    const std::string how(init->as_string("init_lora_weights"));
    for (const char* name : {"pissa", "olora", "corda", "loftq", "lora_ga"})
      if (how.starts_with(name))
        k.unsupported(
            concat_text("\"init_lora_weights\" is \"", how, "\", which changes the weights of the model too"),
            "let PEFT write it as an adapter of the unchanged model (path_initial_model_for_weight_conversion)");
  }
  (void)k.flag("fan_in_fan_out", false);  // storage order of the model's matrix; irrelevant here
  rank_ = k.size_or("r", 8);
  alpha_ = k.number_or("lora_alpha", 8);
  root_scale_ = k.flag("use_rslora", false);
  dora_ = k.flag("use_dora", false);
  saved_names_ = texts_of(root, "modules_to_save");

  const auto target = root.find("target_modules");
  if (!target || target->is_null()) k.bad("\"target_modules\" is missing");
  if (target->is_string()) {
    target_pattern_ = target->as_string("target_modules");
    std::string lower = target_pattern_;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    all_linear_ = lower == "all-linear";
    if (!all_linear_) target_regex_ = whole_name(target_pattern_, path + ": target_modules");
  } else {
    target_names_ = texts_of(root, "target_modules");
  }
  if (const auto exclude = root.find("exclude_modules"); exclude && exclude->is_string())
    exclude_regex_ = whole_name(exclude->as_string("exclude_modules"), path + ": exclude_modules");
  else
    exclude_names_ = texts_of(root, "exclude_modules");
  if (const auto layers = root.find("layers_to_transform"); layers && !layers->is_null()) {
    if (!layers->is_array())
      layers_ = {layers->as_int("layers_to_transform")};
    else
      for (const JsonValue& e : layers->elements("layers_to_transform"))
        layers_.push_back(e.as_int("layers_to_transform"));
  }
  for (const std::string& p : texts_of(root, "layers_pattern"))
    layer_patterns_.emplace_back(concat_text("^(?:.*?\\.)?", p, "\\.([0-9]+)\\."), path + ": layers_pattern");
  if (layer_patterns_.empty()) layer_patterns_.emplace_back("^.*?\\.[^.]*\\.([0-9]+)\\.", path);
  const auto patterns = [&](const char* key, std::vector<Pattern>& out, bool whole) {
    const auto object = root.find(key);
    if (!object || object->is_null()) return;
    for (const auto& [name, value] : object->members(key)) {
      const double number = value.as_number(key);
      if (!std::isfinite(number) || (whole && (number < 1 || number > 1 << 20 || number != std::floor(number))))
        k.bad(concat_text("\"", key, "\" gives \"", name, "\" ", number));
      out.push_back({Regex(concat_text("^(?:.*\\.)?(?:", name, ")$"), concat_text(path, ": ", key)), number});
    }
  };
  patterns("rank_pattern", ranks_, true);
  patterns("alpha_pattern", alphas_, false);
}

void PeftAdapter::check_tensors() const {
  for (const std::string& name : file_->names()) {
    const auto fail = [&](ErrorCode code, std::string_view what, std::string hint = {}) {
      throw Error(code, concat_text(file_->source(), ": the tensor '", name, "' ", what), std::move(hint));
    };
    if (name.ends_with(".lora_B.bias")) fail(ErrorCode::Unsupported, "is a bias of lora_B");
    const Ending* ending = name.starts_with(kModelPrefix) ? ending_of(name) : nullptr;
    if (!ending || name.size() <= kModelPrefix.size() + ending->text.size())
      fail(ErrorCode::BadFile, "is not a LoRA tensor",
           "names must be base_model.model.MODULE.lora_A.weight and base_model.model.MODULE.lora_B.weight");
    const std::string module =
        name.substr(kModelPrefix.size(), name.size() - kModelPrefix.size() - ending->text.size());
    if (ending->text == ".lora_magnitude_vector" && !dora_)
      fail(ErrorCode::BadFile, "belongs to DoRA, but \"use_dora\" is false");
    if (ending->text.starts_with(".lora_embedding_") && dora_)
      fail(ErrorCode::Unsupported, "changes an embedding, which DoRA does not support");
    if ((ending->text == ".weight" || ending->text == ".bias") && !saves(module))
      fail(ErrorCode::Unsupported, "is a full weight of the model, but not of one of the \"modules_to_save\"",
           "save the adapter again, with save_embedding_layers=False, or merge it into the model");
    const TensorView view = file_->at(name);
    if (!is_float(view.dtype) || dtype_bits(view.dtype) < 16)
      fail(ErrorCode::BadFile, concat_text("holds ", dtype_name(view.dtype), ", expected floats"));
    if (ending->rank > 0 && view.dims.size() != static_cast<std::size_t>(ending->rank))
      fail(ErrorCode::BadFile,
           concat_text("is ", dims_text(view.dims), ", expected a ", ending->rank == 2 ? "matrix" : "vector"));
  }
}

bool PeftAdapter::matches(const Regex& regex, const std::string& module) {
  Regex::Matcher m(regex);
  m.start(module);
  return m.next().has_value();
}
bool PeftAdapter::ends_in(const std::string& module, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return module == name || module.ends_with("." + name); });
}

bool PeftAdapter::targets(const std::string& module, bool head) const {
  if (exclude_regex_ ? matches(*exclude_regex_, module) : ends_in(module, exclude_names_)) return false;
  if (all_linear_) return !head;
  if (target_regex_) return matches(*target_regex_, module);
  if (!ends_in(module, target_names_)) return false;
  // A full module name is not restricted by layer.
  if (layers_.empty() || std::find(target_names_.begin(), target_names_.end(), module) != target_names_.end())
    return true;
  for (const Regex& pattern : layer_patterns_) {
    Regex::Matcher m(pattern);
    m.start(module);
    const auto found = m.next();
    if (!found) continue;
    // The match ends after the layer number and its dot.
    std::int64_t layer = 0, unit = 1;
    for (std::size_t i = found->second - 1; i > 0 && module[i - 1] >= '0' && module[i - 1] <= '9' && unit < 1 << 30;
         --i) {
      layer += (module[i - 1] - '0') * unit;
      unit *= 10;
    }
    return std::find(layers_.begin(), layers_.end(), layer) != layers_.end();
  }
  return false;
}

std::int64_t PeftAdapter::rank(const std::string& module) const {
  for (const Pattern& p : ranks_)
    if (matches(p.regex, module)) return static_cast<std::int64_t>(p.value);
  return rank_;
}
double PeftAdapter::scale(const std::string& module) const {
  double alpha = alpha_;
  for (const Pattern& p : alphas_) {
    if (!matches(p.regex, module)) continue;
    alpha = p.value;
    break;
  }
  const auto r = static_cast<double>(rank(module));
  return alpha / (root_scale_ ? std::sqrt(r) : r);
}

// PEFT compares suffixes of names, not whole components.
bool PeftAdapter::saves(const std::string& module) const {
  return std::any_of(saved_names_.begin(), saved_names_.end(), [&](const std::string& name) {
    return module.ends_with(name) || module.find(name + ".") != module.npos;
  });
}

std::optional<Tensor> PeftAdapter::floats(const std::string& module, std::string_view ending) const {
  const auto view = file_->find(concat_text(kModelPrefix, module, ending));
  if (!view) return std::nullopt;
  switch (view->dtype) {
    case DType::F32: return floats_of<float>(*view);
    case DType::F64: return floats_of<double>(*view);
    case DType::BF16: return floats_of<BF16>(*view);
    default: return floats_of<F16>(*view);
  }
}

std::vector<std::string> PeftAdapter::modules() const {
  std::set<std::string> all;
  for (const std::string& name : file_->names())
    all.insert(name.substr(kModelPrefix.size(), name.size() - kModelPrefix.size() - ending_of(name)->text.size()));
  return {all.begin(), all.end()};
}

std::string PeftAdapter::target_text() const {
  return target_names_.empty() ? concat_text("\"", target_pattern_, "\"") : quoted_names(target_names_);
}

}  // namespace rlx
