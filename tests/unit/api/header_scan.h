// The public functions of a header, found in its text.
#pragma once

#include <string>
#include <vector>

namespace rlx::test {

/// Names of the functions that users of the header can call, "Class::function", each once, in order. Left out: deleted
/// and defaulted ones, destructors, everything private, protected or in a namespace `detail`, and function pointers.
std::vector<std::string> public_functions(const std::string& header_text);

}  // namespace rlx::test
