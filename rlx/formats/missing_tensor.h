// Internal: what files of tensors say of a name that they do not hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// Throws NotFound: `source` holds no tensor `name`; the hint names the closest of those it holds.
[[noreturn]] void throw_no_tensor(std::string_view source, std::string_view name,
                                  const std::vector<std::string>& known);

}  // namespace rlx
