// The cache of models: the folders of Hugging Face's own library, so that each finds what the other pulled.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/hub/hub_files.h"

namespace rlx {

/// One repository in the cache:
///   models--ORG--NAME/blobs/CHECKSUM                 the files
///   models--ORG--NAME/snapshots/COMMIT/PATH          links to them
///   models--ORG--NAME/refs/REVISION                  the commit of a branch or a tag
///   .locks/models--ORG--NAME/CHECKSUM.lock           held during a download
class HubCache {
 public:
  HubCache(std::string cache, const std::string& repo);

  /// Makes the folders. Errors: those of prepare_cache_folder.
  void prepare() const;
  std::string folder() const { return folder_; }
  std::string blob(const HubFile& file) const;
  std::string snapshot(const std::string& commit) const;
  std::string lock(const HubFile& file) const;

  /// Makes snapshots/COMMIT/PATH a link to the blob of the file. An old link is replaced, never followed.
  void link(const std::string& commit, const HubFile& file) const;
  void set_commit(const std::string& revision, const std::string& commit) const;
  /// The commit that was pulled last for a revision.
  std::optional<std::string> commit_of(const std::string& revision) const;
  /// The path of what a name asks for, if all of it is there.
  std::optional<std::string> find(const HubName& name) const;

 private:
  std::string cache_, part_, folder_;
};

/// Held for the life of the object: one process at a time writes a file.
class FileLock {
 public:
  /// Waits for another process; `waits` is called first. Errors: BadFile.
  FileLock(const std::string& path, const std::function<void()>& waits);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

}  // namespace rlx
