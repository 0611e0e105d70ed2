// A folder of saved packed layouts, one file each. Later starts map them.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "rlx/base/forks.h"
#include "rlx/tensor/packed_weight_cache.h"

namespace rlx {

/// Packed weights in the files of a folder. A file is written under a temporary name and renamed. It holds one checksum
/// of its header and one of its bytes.
class PackedWeightFiles final : public PackedWeightCache {
 public:
  struct Options {
    bool verify = false;         // read all bytes and compare their checksum before use
    bool strict = false;         // a damaged file is an error; else it is written again, and `problems` reports it
    bool guard_mapping = false;  // call guard_mapping (sigbus_guard.h) for each file found; readers check `mapped`
  };
  /// Makes the folder when it is missing. Errors, with the system's reason: NotFound for a path that leads through a
  /// file or is one, BadFile where the folder cannot be made (no permission, a full disk) or where other users may
  /// write to it, unless RLX_SHARED_CACHES=1.
  explicit PackedWeightFiles(std::string folder, Options options);
  explicit PackedWeightFiles(std::string folder) : PackedWeightFiles(std::move(folder), Options{}) {}

  /// Errors, when strict: BadFile naming the file, for another version, a truncated file, or a wrong checksum.
  Tensor find(std::string_view key, std::size_t bytes, const SourceIdentity& source,
              const std::function<std::string()>& content) override;
  void save(std::string_view key, std::span<const std::byte> bytes, const SourceIdentity& source,
            const std::string& content) override;
  /// Problems with files so far, one line each. After one failed write no more writes are attempted.
  std::vector<std::string> problems() const;
  /// Addresses of the mapped files that were found, for sigbus_guard.h.
  std::vector<const void*> mapped() const;
  /// Bytes of the packed weights that were found so far; `saved_bytes`: of those saved so far.
  std::size_t found_bytes() const;
  std::size_t saved_bytes() const;
  /// The path of the file for `key`.
  std::string path_of(std::string_view key) const;

 private:
  void note(std::string problem);
  void write(const std::string& path, std::span<const std::string_view> parts);
  std::string folder_;
  Options options_;
  mutable ObjectMutex mutex_{"a folder of packed weights"};
  std::vector<std::string> problems_;
  std::vector<const void*> mapped_;
  std::size_t found_bytes_ = 0, saved_bytes_ = 0;
  bool writable_ = true;  // as far as is known
};

using FormFiles [[deprecated("now PackedWeightFiles")]] = PackedWeightFiles;

}  // namespace rlx
