// The public functions of a header, read from its text.
#pragma once

#include <string>
#include <vector>

namespace rlx::test {

/// The names of the functions that users of the header can call, as "Class::function", each once, in order. Deleted and
/// defaulted functions, destructors, function pointers, and everything private, protected or in a namespace `detail`
/// are left out.
std::vector<std::string> public_functions(const std::string& header_text);

}  // namespace rlx::test
