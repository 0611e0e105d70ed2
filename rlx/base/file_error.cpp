// The reason that the system gives, and a hint for the common ones.
#include "rlx/base/file_error.h"

#include <cerrno>
#include <cstring>

#include "rlx/error.h"

namespace rlx {

void fail_file(const std::string& path, std::string_view action, int code) {
  const bool missing = code == ENOENT || code == ENOTDIR;
  throw Error(missing ? ErrorCode::NotFound : ErrorCode::BadFile,
              concat_text("cannot ", action, " \"", path, "\": ", std::strerror(code)),
              missing          ? "check the path"
              : code == EACCES ? "check the permissions of the file and its folders"
                               : "");
}

}  // namespace rlx
