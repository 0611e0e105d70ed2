// Folders of caches: files that later runs believe.
#pragma once

#include <string>
#include <string_view>

namespace rlx {

/// Makes the folder of a cache if it is missing, with no permission for other users, and refuses one that other users
/// may write to: what they put there would be used as if this user had computed it. RLX_SHARED_CACHES=1 allows such
/// folders. `what` is "the folder of packed weights". Errors: NotFound or BadFile with the system's reason, BadFile for
/// a folder of others.
void prepare_cache_folder(const std::string& folder, std::string_view what);

}  // namespace rlx
