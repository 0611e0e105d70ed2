// What a fork leaves behind: threads, and with them the devices that libraries had opened.
#pragma once

#include <string_view>

namespace rlx {

/// How many forks lie between this process and the one that first asked. What remembers the count of its beginning
/// knows whether it has come to a child, where no thread serves it.
int fork_count() noexcept;

inline constexpr std::string_view kForkedAway =
    "was opened before this process was forked, and serves its parent alone";
inline constexpr std::string_view kForkHint =
    "open devices after the fork, or start processes anew (in Python: multiprocessing.get_context(\"spawn\"))";

}  // namespace rlx
