// The library of WGSL functions that kernels call by name.
#pragma once

#include <string_view>
#include <vector>

namespace rlx::codegen {

/// The definitions of `name` and of all functions that it calls, callees first. Internal for an unknown name.
std::vector<std::string_view> helper_texts(std::string_view name);

}  // namespace rlx::codegen
