// Checked reading of configuration files.
#include "rlx/models/config_keys.h"

#include <cmath>

#include "rlx/error.h"

namespace rlx {

void ConfigKeys::bad(const std::string& message, std::string hint) const {
  throw Error(ErrorCode::BadFile, concat_text(source_, ": ", message), std::move(hint));
}

void ConfigKeys::unsupported(const std::string& message, std::string hint) const {
  throw Error(ErrorCode::Unsupported, concat_text(source_, ": ", message), std::move(hint));
}

std::optional<JsonValue> ConfigKeys::find(std::string_view key) const {
  std::optional<JsonValue> value = object_.find(key);
  if (value && value->is_null()) value.reset();
  return value;
}

bool ConfigKeys::has(std::string_view key) const { return find(key).has_value(); }

std::int64_t ConfigKeys::size(std::string_view key, std::int64_t least, std::int64_t most) const {
  const std::int64_t value = object_.get_int(key);
  if (value < least || value > most) bad(concat_text("\"", key, "\" is ", value, ", expected ", least, " to ", most));
  return value;
}

std::int64_t ConfigKeys::size_or(std::string_view key, std::int64_t fallback, std::int64_t least,
                                 std::int64_t most) const {
  return has(key) ? size(key, least, most) : fallback;
}

double ConfigKeys::number(std::string_view key) const {
  const double value = object_.get_number(key);
  if (!std::isfinite(value)) bad(concat_text("\"", key, "\" is ", value, ", expected a number"));
  return value;
}

double ConfigKeys::number_or(std::string_view key, double fallback) const { return has(key) ? number(key) : fallback; }

double ConfigKeys::positive(std::string_view key, double fallback) const {
  constexpr double kMost = 1e12;
  const double v = number_or(key, fallback);
  if (!(v > 0) || v > kMost) bad(concat_text("\"", key, "\" is ", v, ", expected a positive number"));
  return v;
}

bool ConfigKeys::flag(std::string_view key, bool fallback) const { return object_.get_bool(key, fallback); }

std::string ConfigKeys::text(std::string_view key, std::string_view fallback) const {
  return std::string(object_.get_string(key, fallback));
}

std::vector<double> ConfigKeys::numbers(std::string_view key) const {
  std::vector<double> out;
  for (const JsonValue& v : object_.at(key).elements(key)) {
    out.push_back(v.as_number(key));
    if (!std::isfinite(out.back())) bad(concat_text("\"", key, "\" holds ", out.back(), ", expected finite numbers"));
  }
  return out;
}

std::vector<std::string> ConfigKeys::texts(std::string_view key) const {
  std::vector<std::string> out;
  for (const JsonValue& v : object_.at(key).elements(key)) out.emplace_back(v.as_string(key));
  return out;
}

std::optional<ConfigKeys> ConfigKeys::object(std::string_view key) const {
  const std::optional<JsonValue> value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_object()) bad(concat_text("\"", key, "\" must be an object, got ", json_kind_name(value->kind())));
  return ConfigKeys(*value, source_);
}

ActivationKind parse_activation(const ConfigKeys& k, std::string_view key, std::string_view fallback) {
  const std::string name = k.text(key, fallback);
  if (name == "silu" || name == "swish") return ActivationKind::Silu;
  if (name == "gelu") return ActivationKind::Gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return ActivationKind::GeluApprox;
  if (name == "relu") return ActivationKind::Relu;
  k.unsupported(concat_text("\"", key, "\" is \"", name, "\""),
                "supported are silu, swish, gelu, gelu_new, gelu_pytorch_tanh, gelu_fast and relu");
}

}  // namespace rlx
