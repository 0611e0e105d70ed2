// SIGBUS guard: handles lost pages, pages of mapped files that can no longer be read because another process shortened
// the file or its disk failed. Without it such a read ends the process with SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

struct stat;

namespace rlx {

/// File status from the operating system.
struct FileStatus {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t mtime_ns = 0;
};

/// What a read of a lost page does in a mapping without guard_mapping, outside every GuardedReads.
enum class OnLostPage : unsigned char {
  End,   // calls the previous SIGBUS handler: as a rule the process ends
  Say,   // the process ends with status 1 and a message that names the file; its unfinished files are deleted
  Warn,  // the page reads as zeros, and a message names the file, once for each mapping; later calls of rlx that read
         // the mapping throw
};
/// Installs a handler of SIGBUS, for `Warn` with the first mapping. Other faults go to the previous handler. Later
/// calls only change `otherwise`.
void install_sigbus_guard(OnLostPage otherwise) noexcept;

/// The reads of mapped files by one call. While any such object lives, lost pages read as zeros in the whole process,
/// and the call asks `check` about the addresses that it has read before it uses the data. Costs a few nanoseconds
/// where no file is mapped. Calls of rlx that read mapped files have one; a program needs it where it reads the
/// elements of a mapped tensor itself.
class GuardedReads {
 public:
  GuardedReads() noexcept;
  ~GuardedReads();
  GuardedReads(const GuardedReads&) = delete;
  GuardedReads& operator=(const GuardedReads&) = delete;
  /// Errors: BadFile naming the file, if the mapping at `address` has lost pages, now or earlier.
  static void check(const void* address);
  /// The same after a read of the last of `size` bytes, which finds a file that was made shorter before the call.
  static void check_readable(const void* address, std::size_t size);

 private:
  bool counted_;
};

/// From now on lost pages of the mapping at `address` read as zeros. The owner must ask `damaged_file_at` after reading
/// and before using the data. Installs the handler if there is none yet. Does nothing where no MappedFile lies.
void guard_mapping(const void* address) noexcept;
/// Whether any mapping has lost pages. Costs a few nanoseconds.
bool any_damaged_mapping() noexcept;
/// The path of the mapping at `address` if it has lost pages.
std::optional<std::string> damaged_file_at(const void* address);
/// The path of the mapping at `address` if the file's size or modification time changed since it was opened.
std::optional<std::string> changed_file_at(const void* address);

// Names of the last release.
using LostPages [[deprecated("now OnLostPage")]] = OnLostPage;
[[deprecated("now install_sigbus_guard")]] inline void handle_lost_pages(OnLostPage otherwise) noexcept {
  install_sigbus_guard(otherwise);
}
[[deprecated("now guard_mapping")]] inline void keep_lost_pages(const void* address) noexcept {
  guard_mapping(address);
}
[[deprecated("now any_damaged_mapping")]] inline bool any_lost_pages() noexcept { return any_damaged_mapping(); }
[[deprecated("now damaged_file_at")]] inline std::optional<std::string> lost_file_at(const void* address) {
  return damaged_file_at(address);
}

namespace detail {
FileStatus file_status(const struct ::stat& info);
// For MappedFile: registers a mapping, so that a signal handler can find it. At most 4,096 mappings at a time are
// known.
void note_mapping(const void* begin, const FileStatus& status, const std::string& path);
void forget_mapping(const void* begin) noexcept;
}  // namespace detail

}  // namespace rlx
