// Names of models, and the variables that say where the hub is.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/hub/hub.h"
#include "rlx/hub/hub_files.h"

namespace rlx {
namespace {

// A part of a repository's name. Two dashes separate the parts in names of cache folders.
bool is_name_part(std::string_view part) {
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !part.empty() && part.size() <= 96 && word(part.front()) && word(part.back()) &&
         std::all_of(part.begin(), part.end(), [&](char c) { return word(c) || c == '-' || c == '.'; }) &&
         part.find("--") == part.npos && part.find("..") == part.npos;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string without_space(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// ~/.cache/huggingface, or where the variables of Hugging Face's own library put it.
std::string hub_home() {
  if (std::string home = variable("HF_HOME"); !home.empty()) return home;
  if (const std::string caches = variable("XDG_CACHE_HOME"); !caches.empty()) return join_path(caches, "huggingface");
  const std::string home = variable("HOME");
  if (home.empty())
    throw Error(ErrorCode::InvalidArgument, "there is no folder for models of a hub: HOME is not set",
                "set HF_HOME to a folder");
  return join_path(home, ".cache/huggingface");
}

}  // namespace

std::string HubName::text() const {
  std::string out = repo;
  if (revision != "main") out += concat_text("@", revision);
  if (!file.empty()) out += concat_text(":", file);
  return out;
}

std::optional<HubName> parse_hub_name(std::string_view text) {
  HubName name;
  if (const std::size_t colon = text.find(':'); colon != text.npos) {
    name.file = text.substr(colon + 1);
    if (!is_safe_path(name.file)) return std::nullopt;
    text = text.substr(0, colon);
  }
  if (const std::size_t at = text.find('@'); at != text.npos) {
    name.revision = text.substr(at + 1);
    if (!is_safe_path(name.revision)) return std::nullopt;
    text = text.substr(0, at);
  }
  name.repo = text;
  const std::size_t slash = text.find('/');
  if (slash != text.npos && !is_name_part(text.substr(0, slash))) return std::nullopt;
  if (!is_name_part(slash == text.npos ? text : text.substr(slash + 1))) return std::nullopt;
  return name;
}

HubSettings HubSettings::from_environment() {
  HubSettings s;
  const std::string home = hub_home();
  s.cache = variable("HF_HUB_CACHE");
  if (s.cache.empty()) s.cache = join_path(home, "hub");
  const std::string endpoint = without_space(variable("HF_ENDPOINT"));
  const bool usual = endpoint.empty() || endpoint == s.endpoint || endpoint == s.endpoint + "/";
  if (!endpoint.empty()) s.endpoint = endpoint;
  s.token = without_space(variable("HF_TOKEN"));
  if (s.token.empty() && usual) {
    std::string file = variable("HF_TOKEN_PATH");
    if (file.empty()) file = join_path(home, "token");
    if (is_file(file)) s.token = without_space(read_file(file));
  }
  std::string offline = variable("HF_HUB_OFFLINE");
  std::transform(offline.begin(), offline.end(), offline.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  s.offline = offline == "1" || offline == "true" || offline == "yes" || offline == "on";
  if (const std::string seconds = variable("HF_HUB_DOWNLOAD_TIMEOUT"); !seconds.empty()) {
    const char* end = seconds.data() + seconds.size();
    const auto [at, failed] = std::from_chars(seconds.data(), end, s.timeout);
    if (failed != std::errc() || at != end || s.timeout < 1 || s.timeout > 86400)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("HF_HUB_DOWNLOAD_TIMEOUT = '", seconds, "' is not a number of seconds from 1 to 86400"),
                  "unset it, or set it to whole seconds");
  }
  return s;
}

}  // namespace rlx
