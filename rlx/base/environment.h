// Environment variables, and overrides of them within a process.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rlx {

/// The value of RLX_<NAME> (with or without the prefix): an override set by `env_set`, else the process environment.
std::optional<std::string> env_get(std::string_view name);
/// Empty, 0, false, off and no mean off. Anything else means on.
bool env_flag(std::string_view name);
/// A positive integer. Throws InvalidArgument naming the variable and its text when it is not one.
std::optional<int> env_int(std::string_view name);
/// Overrides a variable for this process, or removes the override.
void env_set(std::string_view name, std::string value);
void env_unset(std::string_view name);

/// Sets overrides during its lifetime.
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
