// Fork detection. A fork loses threads, and with them the devices that libraries had opened.
#pragma once

#include <string_view>

namespace rlx {

/// The number of forks between the first process that called this function and this process. An object that stores the
/// count at its creation can detect that it is in a child process, where its threads do not exist.
int fork_count() noexcept;

inline constexpr std::string_view kForkedAway =
    "was opened before this process was forked and works only in the parent process";
inline constexpr std::string_view kForkHint =
    "open devices after the fork, or start new processes (in Python: multiprocessing.get_context(\"spawn\"))";

}  // namespace rlx
