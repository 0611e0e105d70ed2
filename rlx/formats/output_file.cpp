// Temporary files beside their targets, and the list of them for signal handlers.
#include "rlx/formats/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"

namespace rlx {

// A slot in the list of unfinished files. Slots are reused and never freed, so a signal handler can walk the list at
// any time. Whoever exchanges the name out of the slot owns it.
struct Unfinished {
  std::atomic<char*> name{nullptr};  // allocated by malloc
  char* removed = nullptr;           // the name that a handler took; a handler must not free it
  Unfinished* next = nullptr;
};

namespace {

constexpr std::size_t kBufferSize = 1 << 16;

std::atomic<Unfinished*> unfinished_files{nullptr};

Unfinished* remember(const std::string& name) {
  std::unique_ptr<char, void (*)(void*)> copy(::strdup(name.c_str()), &std::free);
  if (!copy) throw std::bad_alloc();
  for (Unfinished* place = unfinished_files.load(); place != nullptr; place = place->next) {
    char* nothing = nullptr;
    if (place->name.compare_exchange_strong(nothing, copy.get())) {
      copy.release();
      return place;
    }
  }
  auto* place = new Unfinished;
  place->name = copy.release();
  place->next = unfinished_files.load();
  while (!unfinished_files.compare_exchange_weak(place->next, place)) {
  }
  return place;
}

// Clears a slot. A handler that took the name ends the process and keeps the name.
void forget(Unfinished* place) { std::free(place->name.exchange(nullptr)); }

// Resolves a chain of symbolic links. The target need not exist.
std::string behind_links(const std::string& path) {
  std::filesystem::path at = path;
  std::error_code failed;
  for (int i = 0; i < 40 && std::filesystem::is_symlink(at, failed); ++i) {
    const std::filesystem::path to = std::filesystem::read_symlink(at, failed);
    if (failed) break;
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  return at.string();
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)), target_(behind_links(path_)) {
  struct stat old {};
  const bool exists = ::stat(target_.c_str(), &old) == 0;
  if (exists) {
    // Refuses a target that is not writable or is a folder, even where a rename would succeed.
    fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail_file(path_, "write", errno);
    if (!S_ISREG(old.st_mode)) return;
    ::close(std::exchange(fd_, -1));
  }
  static std::atomic<unsigned> count{0};
  const std::string folder = target_.substr(0, target_.rfind('/') + 1);  // npos + 1 is 0
  do {
    const std::string name = concat_text(folder, ".rlx-", ::getpid(), "-", count++, ".tmp");
    // Registered before the file exists: a signal in between finds nothing to delete, which is harmless.
    temporary_ = remember(name);
    fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0) break;
    const int reason = errno;
    forget(std::exchange(temporary_, nullptr));
    if (reason != EEXIST) fail_file(path_, "write", reason);
  } while (true);
  if (exists && ::fchmod(fd_, old.st_mode & 07777) != 0) {
    const int reason = errno;
    discard();
    fail_file(path_, "write", reason);
  }
}

OutputFile::OutputFile(std::string path, std::string_view resume_key)
    : path_(std::move(path)),
      target_(behind_links(path_)),
      partial_(concat_text(target_, ".", resume_key, ".partial")) {
  struct stat old {};
  const bool exists = ::stat(target_.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) fail_file(path_, "replace", S_ISDIR(old.st_mode) ? EISDIR : EINVAL);
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail_file(path_, "write", errno);
  fd_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd_ < 0) fail_file(path_, "write", errno);
  struct stat left {};
  if (::fstat(fd_, &left) != 0 || !S_ISREG(left.st_mode) || (exists && ::fchmod(fd_, old.st_mode & 07777) != 0)) {
    const int reason = errno;
    discard();
    fail_file(partial_, "write", reason);
  }
  resumed_ = static_cast<std::size_t>(left.st_size);
}

bool OutputFile::begins_with(std::string_view head) const {
  if (head.size() > resumed_) return false;
  std::string left(head.size(), '\0');
  std::size_t at = 0;
  while (at < left.size()) {
    const ::ssize_t got = ::pread(fd_, left.data() + at, left.size() - at, static_cast<::off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += static_cast<std::size_t>(got);
  }
  return left == head;
}

std::size_t OutputFile::keep_whole(std::string_view head, std::span<const Extent> parts) {
  check(fd_ >= 0 && !partial_.empty(), "only a file with a partial copy can be resumed");
  std::size_t kept = 0;
  if (begins_with(head))
    while (kept < parts.size() && head.size() + parts[kept].offset + parts[kept].size <= resumed_) ++kept;
  const std::size_t size = kept == 0 ? 0 : head.size() + parts[kept - 1].offset + parts[kept - 1].size;
  if (::ftruncate(fd_, static_cast<::off_t>(size)) != 0 || ::lseek(fd_, static_cast<::off_t>(size), SEEK_SET) < 0)
    fail_write(errno);
  return kept;
}

OutputFile::~OutputFile() {
  // Flushes what a later attempt can resume from. A failure here only leaves less of it.
  std::string_view rest = partial_.empty() || fd_ < 0 ? std::string_view() : std::string_view(buffer_);
  while (!rest.empty()) {
    const ::ssize_t done = ::write(fd_, rest.data(), rest.size());
    if (done <= 0 && errno != EINTR) break;
    if (done > 0) rest.remove_prefix(static_cast<std::size_t>(done));
  }
  discard();
}

void OutputFile::discard() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (temporary_ == nullptr) return;
  if (const char* name = temporary_->name.load()) ::unlink(name);
  forget(std::exchange(temporary_, nullptr));
}

void OutputFile::fail_write(int reason) {
  discard();  // the temporary file may be what fills the disk
  if (partial_.empty()) fail_file(path_, "write", reason);
  throw Error(ErrorCode::BadFile, concat_text("cannot write \"", path_, "\": ", std::strerror(reason)),
              concat_text("run the same command again to resume; delete \"", partial_, "\" to start over"));
}

void OutputFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t done = ::write(fd_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_write(errno);
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
}

void OutputFile::write(std::string_view bytes) {
  check(fd_ >= 0, "write to a committed file");
  if (buffer_.size() + bytes.size() > kBufferSize) {
    put(buffer_);
    buffer_.clear();
    if (bytes.size() > kBufferSize) return put(bytes);
  }
  buffer_ += bytes;
}

void OutputFile::commit() {
  check(fd_ >= 0, "commit of a committed file");
  put(buffer_);
  buffer_.clear();
  // Some file systems report a full disk only here.
  const bool closed = ::close(std::exchange(fd_, -1)) == 0;
  const char* name = temporary_ ? temporary_->name.load() : partial_.empty() ? nullptr : partial_.c_str();
  if (!closed || (name && std::rename(name, target_.c_str()) != 0)) fail_write(errno);
  if (temporary_) forget(std::exchange(temporary_, nullptr));
}

void remove_unfinished_files() noexcept {
  for (Unfinished* place = unfinished_files.load(); place != nullptr; place = place->next)
    if (char* name = place->name.exchange(nullptr)) {
      ::unlink(name);
      place->removed = name;
    }
}

}  // namespace rlx
