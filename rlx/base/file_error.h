// The error of a failed system call on a file.
#pragma once

#include <string>
#include <string_view>

namespace rlx {

/// Throws the Error for a failed system call on a file: `cannot ACTION "PATH": reason`. `code` is errno.
[[noreturn]] void fail_file(const std::string& path, std::string_view action, int code);

}  // namespace rlx
