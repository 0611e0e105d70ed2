// Who may write to a folder: its owner, its group, everybody.
#include "rlx/base/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "rlx/base/environment.h"
#include "rlx/base/file_error.h"
#include "rlx/error.h"

namespace rlx {

void prepare_cache_folder(const std::string& folder, std::string_view what) {
  const std::string create = concat_text("create ", what);
  std::error_code failed;
  std::filesystem::path path(folder);
  if (!path.has_filename()) path = path.parent_path();  // "a/" is a
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failed);
  if (failed) fail_file(folder, create, failed.value());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail_file(folder, create, errno);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) fail_file(folder, concat_text("examine ", what), errno);
  if (!S_ISDIR(info.st_mode)) fail_file(folder, create, ENOTDIR);
  if (env_flag("SHARED_CACHES")) return;
  const char* who = nullptr;
  if ((info.st_mode & S_IWOTH) != 0)
    who = "every user";
  else if (info.st_uid != ::geteuid() && info.st_uid != 0)
    who = "another user, its owner,";
  else if ((info.st_mode & S_IWGRP) != 0 && info.st_gid != ::getegid())
    who = "a group of other users";
  if (who != nullptr)
    throw Error(ErrorCode::BadFile, concat_text(what, " \"", folder, "\" is refused: ", who, " may write to it"),
                "use a folder of your own, or set RLX_SHARED_CACHES=1 if you trust everybody who may write there");
}

}  // namespace rlx
