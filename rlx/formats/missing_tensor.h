// Internal: the error of a tensor file for a name that it does not hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// Throws NotFound: `source` holds no tensor `name`. The hint names the closest existing tensor.
[[noreturn]] void throw_no_tensor(std::string_view source, std::string_view name,
                                  const std::vector<std::string>& known);

}  // namespace rlx
