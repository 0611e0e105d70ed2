// SIGBUS guard: handles lost pages, pages of mapped files that can no longer be read because another process shortened
// the file or its disk failed. Without it such a read ends the process with SIGBUS.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace rlx {

struct FileStatus;

/// What a read of a lost page does in a mapping without guard_mapping.
enum class OnLostPage : unsigned char {
  End,  // calls the previous SIGBUS handler: as a rule the process ends
  Say,  // the process ends with status 1 and a message that names the file; its unfinished files are deleted
};
/// Installs a handler of SIGBUS. Other faults go to the previous handler. Later calls only change `otherwise`.
void install_sigbus_guard(OnLostPage otherwise) noexcept;

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
// For MappedFile: registers a mapping, so that a signal handler can find it. At most 4,096 mappings at a time are
// known.
void note_mapping(const void* begin, const FileStatus& status, const std::string& path);
void forget_mapping(const void* begin) noexcept;
}  // namespace detail

}  // namespace rlx
