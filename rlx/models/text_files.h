// The text files in folders: which are read, and their text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rlx/error.h"

namespace rlx {

/// Which files of a folder are read. Folders are walked whole, without following symbolic links. Files that are named
/// themselves are always read.
struct FileSelection {
  /// Patterns as in .gitignore files. Files must match one of those without `!`, if there are any; files and folders
  /// whose last match begins with `!` are left out.
  std::vector<std::string> globs{};
  bool hidden = false;                                // reads files and folders whose name begins with a dot
  bool ignore_files = true;                           // follows .gitignore and .ignore files
  std::uint64_t max_bytes = std::uint64_t{16} << 20;  // larger files are left out

  friend bool operator==(const FileSelection&, const FileSelection&) = default;
};

/// A file to read.
struct TextFile {
  std::string path;
  std::uint32_t root = 0;  // index of the path that it was found in
  bool named = false;      // it is this path itself
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;  // times of the last change of its content and of its entry
};

/// A file that is not read, and why.
struct LeftOutFile {
  Diagnostic why;
  bool binary = false;  // a binary file in a folder, which is expected there
};

/// The files of `paths`, sorted within each folder, each once. .gitignore and .ignore files hold for their folder and
/// those in it; those of the folders above a path hold up to the folder with `.git`. Errors: NotFound for a path that
/// does not exist; InvalidArgument for a malformed glob; BadFile for ignore files that take too much work.
std::vector<TextFile> find_text_files(std::span<const std::string> paths, const FileSelection& selection,
                                      std::vector<LeftOutFile>* left_out = nullptr);

/// The text of a regular file; gzip is unpacked, and a byte order mark is removed. Errors: NotFound, and BadFile for a
/// file that is not text in UTF-8.
std::string read_text_file(const std::string& path);
/// Checks that the content of the file `path` is text. Errors: BadFile.
void check_searchable_text(std::string_view text, const std::string& path);
/// Whether a file is binary by its first bytes. False for gzip, whose content decides. Errors: those of opening it.
bool looks_binary(const std::string& path);

}  // namespace rlx
