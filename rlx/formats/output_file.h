// Writing a file so that it is there whole or not at all: its content lies beside it until it is complete.
#pragma once

#include <cstddef>
#include <span>
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
  /// The same with a temporary that stays when the writing ends early, PATH.KEY.partial, and that the next OutputFile
  /// of this path and key goes on with: first `keep_whole`, then `write`. Errors: the same, and BadFile where `path` is
  /// no regular file.
  OutputFile(std::string path, std::string_view resume_key);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Where one of the parts of a file lies, behind its head.
  struct Extent {
    std::size_t offset, size;
  };
  /// Keeps what an earlier try left of `head` and whole parts, and drops the rest. Returns how many parts are kept;
  /// when it is none, the head is not there either. What is written next follows the last of them. Errors: as `write`.
  std::size_t keep_whole(std::string_view head, std::span<const Extent> parts);

  /// Appends. Errors: BadFile, a full disk for example.
  void write(std::string_view bytes);
  /// Writes out what is buffered and puts the file in its place; call once. Errors as `write`.
  void commit();

 private:
  void put(std::string_view bytes);
  void discard();
  [[noreturn]] void fail_write(int reason);
  bool begins_with(std::string_view head) const;

  std::string path_, target_;               // as named; behind symbolic links
  struct Unfinished* temporary_ = nullptr;  // none: written directly, or to `partial_`
  std::string partial_;                     // the temporary that stays
  std::size_t resumed_ = 0;                 // bytes of it that an earlier try left
  int fd_ = -1;
  std::string buffer_;
};

/// Deletes the temporary files of every OutputFile of the process. For handlers of signals that end it:
/// async-signal-safe.
void remove_unfinished_files() noexcept;

}  // namespace rlx
