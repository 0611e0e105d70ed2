// Writing a file so that it is there whole or not at all: its content lies beside it until it is complete.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlx {

/// A file being written. The bytes go to a temporary file in the same folder, which `commit` renames to `path`; until
/// then an old file stays as it was, and without `commit` the temporary disappears. A symbolic link is followed and
/// stays one, the permissions of an old file are kept. What is no regular file (a pipe, /dev/null) is written directly.
class OutputFile {
 public:
  /// Errors: NotFound when the folder does not exist, BadFile with the system's reason.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Appends. Errors: BadFile, a full disk for example.
  void write(std::string_view bytes);
  /// Writes out what is buffered and puts the file in its place; call once. Errors as `write`.
  void commit();

 private:
  void put(std::string_view bytes);
  void discard();

  std::string path_, target_;               // as named; behind symbolic links
  struct Unfinished* temporary_ = nullptr;  // none: written directly
  int fd_ = -1;
  std::string buffer_;
};

/// Deletes the temporary files of every OutputFile of the process. For handlers of signals that end it:
/// async-signal-safe.
void remove_unfinished_files() noexcept;

}  // namespace rlx
