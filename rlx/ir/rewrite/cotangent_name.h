// The two names of a cotangent input. Transforms call it `d_output` or `d_output_0`, and callers may use either.
#pragma once

#include <string_view>

namespace rlx {

/// "d_output_0" for "d_output" and the reverse; empty for every other name. Input lookups try it second.
inline std::string_view other_cotangent_name(std::string_view name) {
  if (name == "d_output") return "d_output_0";
  if (name == "d_output_0") return "d_output";
  return {};
}

}  // namespace rlx
