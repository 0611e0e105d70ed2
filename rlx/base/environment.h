// Environment variables and what a process says in their place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rlx {

/// Value of RLX_<NAME> (the prefix may be given or not): an override set by `env_set`, else the process environment.
std::optional<std::string> env_get(std::string_view name);
/// Empty, 0, false, off and no are off; anything else is on.
bool env_flag(std::string_view name);
/// A positive integer; throws InvalidArgument naming the variable and its text when it is none.
std::optional<int> env_int(std::string_view name);
/// Overrides a variable for this process, or removes the override.
void env_set(std::string_view name, std::string value);
void env_unset(std::string_view name);

/// Sets overrides while it lives.
class RuntimeOverrides {
 public:
  RuntimeOverrides(std::string name, std::string value);
  ~RuntimeOverrides();
  RuntimeOverrides(const RuntimeOverrides&) = delete;
  RuntimeOverrides& operator=(const RuntimeOverrides&) = delete;

 private:
  std::string name_;
  std::optional<std::string> old_;
};

}  // namespace rlx
