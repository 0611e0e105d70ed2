// The environment variables that rlx reads; `rlx devices --env` documents them.
#pragma once

#include <span>
#include <string_view>

#include "rlx/base/environment.h"

namespace rlx {

/// One documented variable.
struct EnvVariable {
  std::string_view name;
  std::string_view what;
};
std::span<const EnvVariable> env_variables();

}  // namespace rlx
