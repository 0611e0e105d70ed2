// A folder of saved forms, one file each, which later starts map.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "rlx/tensor/packed_weight_cache.h"

namespace rlx {

/// Forms in files of a folder. A file is written beside and renamed; it holds a checksum of its head and one of its
/// bytes.
class PackedWeightFiles final : public PackedWeightCache {
 public:
  struct Options {
    bool verify = false;           // read all bytes and compare their checksum before they are used
    bool strict = false;           // a damaged file is an error; else it is written again, and `problems` says so
    bool keep_lost_pages = false;  // of sigbus_guard.h, for each form that is found: whoever reads them asks `mapped`
  };
  /// Makes the folder when it is missing. Errors, with the system's reason: NotFound for a path that leads through a
  /// file or is one, BadFile where the folder cannot be made (no permission, a full disk).
  explicit PackedWeightFiles(std::string folder, Options options);
  explicit PackedWeightFiles(std::string folder) : PackedWeightFiles(std::move(folder), Options{}) {}

  /// Errors, when strict: BadFile naming the file, for one of another version, cut short, or with a wrong checksum.
  Tensor find(std::string_view key, std::size_t bytes, const SourceIdentity& source,
              const std::function<std::string()>& content) override;
  void save(std::string_view key, std::span<const std::byte> bytes, const SourceIdentity& source,
            const std::string& content) override;
  /// What was wrong with files so far, one line each. Where one cannot be written, no more are tried.
  std::vector<std::string> problems() const;
  /// Where the files of the forms that were found are mapped: addresses for sigbus_guard.h.
  std::vector<const void*> mapped() const;
  /// Bytes of the forms that were found, and of those that were saved, so far.
  std::size_t found_bytes() const;
  std::size_t saved_bytes() const;
  /// The file that `key` is kept in.
  std::string path_of(std::string_view key) const;

 private:
  void note(std::string problem);
  void write(const std::string& path, std::span<const std::string_view> parts);
  std::string folder_;
  Options options_;
  mutable std::mutex mutex_;
  std::vector<std::string> problems_;
  std::vector<const void*> mapped_;
  std::size_t found_bytes_ = 0, saved_bytes_ = 0;
  bool writable_ = true;  // as far as it is known
};

using FormFiles [[deprecated("now PackedWeightFiles")]] = PackedWeightFiles;

}  // namespace rlx
