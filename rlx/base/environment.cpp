// Environment variables and their overrides.
#include "rlx/base/environment.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>

#include "rlx/base/forks.h"
#include "rlx/error.h"

namespace rlx {
namespace {

struct Overrides {
  ProcessMutex mutex;
  std::map<std::string, std::string, std::less<>> values;
};
Overrides& overrides() {
  static Overrides& o = *new Overrides;  // never destroyed: threads may outlive exit()
  return o;
}
std::string key_of(std::string_view name) {
  return name.starts_with("RLX_") ? std::string(name) : concat_text("RLX_", name);
}
}  // namespace

std::optional<std::string> env_get(std::string_view name) {
  std::string key = key_of(name);
  {
    std::lock_guard lock(overrides().mutex);
    auto it = overrides().values.find(key);
    if (it != overrides().values.end()) return it->second;
  }
  const char* value = std::getenv(key.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

bool env_flag(std::string_view name) {
  std::string v = env_get(name).value_or("");
  std::transform(v.begin(), v.end(), v.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return !(v.empty() || v == "0" || v == "false" || v == "off" || v == "no");
}

void env_set(std::string_view name, std::string value) {
  std::lock_guard lock(overrides().mutex);
  overrides().values.insert_or_assign(key_of(name), std::move(value));
}
void env_unset(std::string_view name) {
  std::lock_guard lock(overrides().mutex);
  overrides().values.erase(key_of(name));
}

std::optional<int> env_int(std::string_view name) {
  auto v = env_get(name);
  if (!v || v->empty()) return std::nullopt;
  bool digits =
      v->size() <= 6 && std::all_of(v->begin(), v->end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  int n = digits ? std::atoi(v->c_str()) : 0;
  if (n < 1)
    throw Error(ErrorCode::InvalidArgument, concat_text(key_of(name), " = '", *v, "' is not a positive number"),
                "unset it, or set it to a number from 1 on");
  return n;
}

RuntimeOverrides::RuntimeOverrides(std::string name, std::string value) : name_(key_of(name)) {
  {
    std::lock_guard lock(overrides().mutex);
    auto it = overrides().values.find(name_);
    if (it != overrides().values.end()) old_ = it->second;
  }
  env_set(name_, std::move(value));
}
RuntimeOverrides::~RuntimeOverrides() {
  if (old_)
    env_set(name_, *old_);
  else
    env_unset(name_);
}

}  // namespace rlx
