// Read-only memory mapping of a whole file, and reading small files into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rlx/base/file_error.h"
#include "rlx/base/sigbus_guard.h"

namespace rlx {

/// The expected access pattern of a mapping; a hint to the kernel.
enum class MapAdvice : unsigned char { Normal, Sequential, Random, WillNeed };

/// A file that is mapped read-only for as long as this object lives. An empty file is a valid, empty mapping. When
/// another process shortens the file, reading the lost pages raises SIGBUS, which is fatal unless sigbus_guard.h
/// handles it.
class MappedFile {
 public:
  MappedFile() = default;
  /// Maps `path`. Errors: NotFound when it does not exist, BadFile when it cannot be read or is not a regular file.
  static MappedFile open(const std::string& path, MapAdvice advice = MapAdvice::Normal);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  std::size_t size() const { return size_; }
  const std::string& path() const { return path_; }
  /// The file's status when it was opened.
  const FileStatus& status() const { return status_; }

  /// Changes the hint for the whole mapping.
  void advise(MapAdvice advice) const;
  /// Drops the resident pages that lie wholly inside bytes [offset, offset + length). A later read loads them again.
  void drop_pages(std::size_t offset, std::size_t length) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string path_;
  FileStatus status_;
};

/// The content of a file; for text files of at most 1 GiB. Errors as MappedFile::open, and BadFile for longer files.
std::string read_file(const std::string& path);

/// Replaces the file `path` by `content` as a whole (OutputFile). Errors: NotFound, BadFile with the system's reason.
void write_file(const std::string& path, std::string_view content);
/// The same for content in several parts.
void write_file(const std::string& path, std::span<const std::string_view> parts);

/// Whether `path` names an existing regular file.
bool is_file(const std::string& path);
/// As is_file, for an optional file. Errors: BadFile for what exists and is no file (a folder, a device, a link to
/// nothing), or cannot be examined: to leave out such a file silently would change what a model computes.
bool has_file(const std::string& path);

/// `folder` and `name` joined by one slash.
std::string join_path(std::string_view folder, std::string_view name);

}  // namespace rlx
