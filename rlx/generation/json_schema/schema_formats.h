// The formats of JSON Schema strings, as patterns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// The pattern of a format, anchored; empty for one that is not known.
std::string_view schema_format_pattern(std::string_view format);
std::vector<std::string> schema_format_names();

}  // namespace rlx
