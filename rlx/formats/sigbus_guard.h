// Pages of mapped files that are lost while they are in use: another process makes the file shorter, or its disk fails.
// Without this such a read ends the process by SIGBUS.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace rlx {

struct FileStatus;

/// What a read of a lost page does where no owner looks after it (keep_lost_pages).
enum class LostPages : unsigned char {
  End,  // what the handler of SIGBUS before did: as a rule the process ends
  Say,  // the process ends with status 1, a message that names the file, and without its unfinished files: for programs
};
/// Installs a handler of SIGBUS. Other faults go to the handler that was there. More calls change `otherwise` alone.
void handle_lost_pages(LostPages otherwise) noexcept;

/// From now on the mapping at `address` reads as zeros where its pages are lost. Its owner has to ask `lost_file_at`
/// after reading and before using what was read. Installs the handler where none is yet. Nothing happens where no
/// MappedFile lies there.
void keep_lost_pages(const void* address) noexcept;
/// Whether any mapping has lost pages: a few nanoseconds.
bool any_lost_pages() noexcept;
/// The path of the mapping at `address` if it has lost pages.
std::optional<std::string> lost_file_at(const void* address);
/// The path of the mapping at `address` if its file was written to since it was opened, as far as its size and time
/// say.
std::optional<std::string> changed_file_at(const void* address);

namespace detail {
// Of MappedFile: mappings that a handler can find. Of more than 4,096 at a time the rest is not known.
void note_mapping(const void* begin, const FileStatus& status, const std::string& path);
void forget_mapping(const void* begin) noexcept;
}  // namespace detail

}  // namespace rlx
