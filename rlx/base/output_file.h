// The writer of every file: a file appears whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

/// What a writer does with a symbolic link at its path.
enum class OutputLinks : unsigned char {
  Follow,   // the file behind the link is replaced, and the link stays: for paths that a user names
  Replace,  // the link itself is replaced, never what it leads to: for paths that a program makes up, as in caches
};

/// A file under construction. Bytes go to a temporary file in the same folder, and `commit` renames it to `path`. Until
/// then an old file stays unchanged, also when the process is killed or the disk is full. Without `commit` the
/// temporary file is deleted; that of a killed process is deleted by the next process that writes into the folder. The
/// permissions of an old file are kept. Targets that are not regular files (a pipe, /dev/null) are written directly, or
/// refused with OutputLinks::Replace. `commit` does not wait for the disk: after a power cut the file system decides
/// what is left.
class OutputFile {
 public:
  /// Errors: NotFound when the folder does not exist, BadFile with the system's reason.
  explicit OutputFile(std::string path, OutputLinks links = OutputLinks::Follow);
  /// A resumable output. The temporary file PATH.KEY.partial stays when the writing ends early, and the next OutputFile
  /// with this path and key continues it: first `keep_whole`, then `write`. Errors: the same, and BadFile where `path`
  /// is not a regular file.
  OutputFile(std::string path, std::string_view resume_key);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// The location of one part of a file after the header.
  struct Extent {
    std::size_t offset, size;
  };
  /// Keeps `head` and the whole parts of an earlier attempt, and drops the rest. Returns how many parts are kept; when
  /// it returns 0, the header is not there either. The next `write` appends to the last kept part. Errors: those of
  /// `write`.
  std::size_t keep_whole(std::string_view head, std::span<const Extent> parts);

  /// Appends. Errors: BadFile, for example a full disk.
  void write(std::string_view bytes);
  /// Flushes the buffer and renames the file to its final name. Call once. Errors: those of `write`.
  void commit();

 private:
  void open_temporary(bool keep_mode, unsigned mode);
  void put(std::string_view bytes);
  void discard();
  [[noreturn]] void fail_write(int reason);
  bool begins_with(std::string_view head) const;

  std::string path_, target_;               // as named; after resolving symbolic links
  struct Unfinished* temporary_ = nullptr;  // null: written directly, or to `partial_`
  std::string partial_;                     // the resumable temporary file
  std::size_t resumed_ = 0;                 // bytes that an earlier attempt left
  int fd_ = -1;
  std::string buffer_;
};

/// Replaces the file `path` by the parts, one after the other. Errors: those of OutputFile.
void replace_file(const std::string& path, std::span<const std::string_view> parts,
                  OutputLinks links = OutputLinks::Follow);
/// Appends to the file `path`, which is made if there is none; for logs. After a failed write the file has its old
/// length again. Errors: NotFound when the folder does not exist, BadFile with the system's reason.
void append_to_file(const std::string& path, std::string_view text);

/// Deletes the temporary files of every OutputFile of the process. It is async-signal-safe, for handlers of signals
/// that end the process.
void remove_unfinished_files() noexcept;

}  // namespace rlx
