// Families by their names in both formats, and tensor names.
#include "rlx/models/convert/gguf_architectures.h"

#include "rlx/error.h"
#include "rlx/models/model_family.h"

namespace rlx {
namespace {

// The number that stands for "{}" of a pattern in a name; empty text where the pattern has no "{}"; nothing where the
// name does not match.
std::optional<std::string_view> layer_of(std::string_view pattern, std::string_view name) {
  const std::size_t at = pattern.find("{}");
  if (at == std::string_view::npos) return pattern == name ? std::optional<std::string_view>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, at), after = pattern.substr(at + 2);
  if (name.size() <= before.size() + after.size() || name.substr(0, at) != before ||
      name.substr(name.size() - after.size()) != after)
    return std::nullopt;
  const std::string_view number = name.substr(at, name.size() - before.size() - after.size());
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  if (number.size() > 1 && number[0] == '0') return std::nullopt;
  return number;
}

}  // namespace

const DecoderFamily* find_family_of_model_type(std::string_view model_type) {
  for (const ModelFamily* f : model_families())
    if (f->decoder && f->decoder->model_type == model_type) return f->decoder;
  return nullptr;
}

const DecoderFamily* find_family_of_gguf(std::string_view name, bool has_window, bool has_experts) {
  const auto find = [&](GgufFiles files) -> const DecoderFamily* {
    for (const ModelFamily* f : model_families())
      if (f->decoder && f->decoder->gguf == name && f->decoder->files == files) return f->decoder;
    return nullptr;
  };
  const DecoderFamily* found = has_experts ? find(GgufFiles::WithExperts) : nullptr;
  if (!found && has_window) found = find(GgufFiles::WithWindow);
  return found ? found : find(GgufFiles::All);
}

std::string_view setting_of_key(const DecoderFamily& a, std::string_view gguf) {
  for (const SettingRule& rule : a.settings)
    if (rule.gguf == gguf) return rule.hf;
  check(false, "a setting that every architecture has");
  return {};
}

std::string numbered_name(std::string_view name, std::string_view mark, std::int64_t number) {
  std::string out(name);
  if (const std::size_t at = out.find(mark); at != std::string::npos)
    out.replace(at, mark.size(), std::to_string(number));
  return out;
}

std::optional<RuledTensor> translate_tensor(const DecoderFamily& a, std::string_view name) {
  for (const TensorRule& rule : a.tensors) {
    const std::optional<std::string_view> layer = layer_of(rule.gguf, name);
    if (!layer) continue;
    std::string hf(rule.hf);
    if (!layer->empty()) hf.replace(hf.find("{}"), 2, *layer);
    return RuledTensor{&rule, std::move(hf)};
  }
  return std::nullopt;
}

}  // namespace rlx
