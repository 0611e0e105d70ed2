// The string formats of JSON Schema, as patterns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// The anchored pattern of a format; empty for an unknown format.
std::string_view schema_format_pattern(std::string_view format);
std::vector<std::string> schema_format_names();

}  // namespace rlx
