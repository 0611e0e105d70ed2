// Temporary files beside their targets, and the list of them that a signal handler may walk.
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

// A place in the list of unfinished files. Places are used again and never freed, so that a signal handler can walk the
// list at any moment. Who takes the name out owns it.
struct Unfinished {
  std::atomic<char*> name{nullptr};  // of malloc
  char* removed = nullptr;           // the name a handler took; it may not free it
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

// Empties a place; a handler that took the name ends the process and keeps it.
void forget(Unfinished* place) { std::free(place->name.exchange(nullptr)); }

// What a chain of symbolic links points to, whether that exists or not.
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
    // Also where a rename would be allowed, a file that may not be written or is a folder is not replaced.
    fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail_file(path_, "write", errno);
    if (!S_ISREG(old.st_mode)) return;
    ::close(std::exchange(fd_, -1));
  }
  static std::atomic<unsigned> count{0};
  const std::string folder = target_.substr(0, target_.rfind('/') + 1);  // npos + 1 is 0
  do {
    const std::string name = concat_text(folder, ".rlx-", ::getpid(), "-", count++, ".tmp");
    // Remembered before it exists: a signal between the two finds nothing to delete, which does no harm.
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

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (temporary_ == nullptr) return;
  if (const char* name = temporary_->name.load()) ::unlink(name);
  forget(std::exchange(temporary_, nullptr));
}

void OutputFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t done = ::write(fd_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      const int reason = errno;
      discard();  // its bytes may be what fills the disk
      fail_file(path_, "write", reason);
    }
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
}

void OutputFile::write(std::string_view bytes) {
  check(fd_ >= 0, "write to a finished file");
  if (buffer_.size() + bytes.size() > kBufferSize) {
    put(buffer_);
    buffer_.clear();
    if (bytes.size() > kBufferSize) return put(bytes);
  }
  buffer_ += bytes;
}

void OutputFile::commit() {
  check(fd_ >= 0, "commit of a finished file");
  put(buffer_);
  buffer_.clear();
  // Some file systems report a full disk only here.
  const bool closed = ::close(std::exchange(fd_, -1)) == 0;
  const char* name = temporary_ ? temporary_->name.load() : nullptr;
  if (!closed || (name && std::rename(name, target_.c_str()) != 0)) {
    const int reason = errno;
    discard();
    fail_file(path_, "write", reason);
  }
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
