// Temporary files beside their targets, the list of them for signal handlers, and the removal of abandoned ones.
#include "rlx/base/output_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "rlx/base/file_error.h"
#include "rlx/base/sigbus_guard.h"
#include "rlx/error.h"

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

// The folder of a path, with its slash; empty for a bare name.
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }  // npos + 1 is 0

// Whether `name` is .rlx-PID-NUMBER.tmp.
bool is_temporary_name(std::string_view name) {
  constexpr std::string_view kBegin = ".rlx-", kEnd = ".tmp";
  if (name.size() <= kBegin.size() + kEnd.size() || !name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  return name.find_first_not_of("0123456789-") == std::string_view::npos;
}

// Whether this process reaches `folder` for the first time.
bool is_new_folder(const std::string& path, int folder) {
  struct stat info {};
  if (::fstat(folder, &info) != 0) return false;
  static std::mutex mutex;
  static std::set<std::string> seen;  // an inode alone may be that of a deleted folder
  const std::lock_guard<std::mutex> lock(mutex);
  return seen.insert(concat_text(path, " ", info.st_dev, " ", info.st_ino)).second;
}

// Deletes the temporary files that killed processes left in a folder. A writer holds a lock on its file until the file
// is complete, so a file without a lock is abandoned. Process ids would not tell: containers share them.
void remove_abandoned_files(const std::string& folder) {
  const int at = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return;
  DIR* const entries = is_new_folder(folder, at) ? ::fdopendir(at) : nullptr;
  if (entries == nullptr) {
    ::close(at);
    return;
  }
  while (const dirent* entry = ::readdir(entries)) {
    if (!is_temporary_name(entry->d_name)) continue;
    const int file = ::openat(at, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info {};
    if (file >= 0 && ::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && ::flock(file, LOCK_EX | LOCK_NB) == 0)
      ::unlinkat(at, entry->d_name, 0);
    if (file >= 0) ::close(file);
  }
  ::closedir(entries);
}

}  // namespace

OutputFile::OutputFile(std::string path, OutputLinks links)
    : path_(std::move(path)), target_(links == OutputLinks::Follow ? behind_links(path_) : path_) {
  if (path_.empty()) fail_file(path_, "write", ENOENT);
  struct stat old {};
  bool exists = ::lstat(target_.c_str(), &old) == 0;
  if (links == OutputLinks::Replace) {
    if (exists && S_ISLNK(old.st_mode)) exists = false;
    if (exists && !S_ISREG(old.st_mode)) fail_file(path_, "replace", S_ISDIR(old.st_mode) ? EISDIR : EINVAL);
  } else if (exists) {
    // Refuses a target that is not writable or is a folder, even where a rename would succeed.
    fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail_file(path_, "write", errno);
    if (!S_ISREG(old.st_mode)) return;
    ::close(std::exchange(fd_, -1));
  }
  remove_abandoned_files(folder_of(target_));
  open_temporary(exists, old.st_mode & 07777);
}

void OutputFile::open_temporary(bool keep_mode, unsigned mode) {
  static std::atomic<unsigned> count{0};
  do {
    const std::string name = concat_text(folder_of(target_), ".rlx-", ::getpid(), "-", count++, ".tmp");
    // Registered before the file exists: a signal in between finds nothing to delete, which is harmless.
    temporary_ = remember(name);
    fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) {
      const int reason = errno;
      forget(std::exchange(temporary_, nullptr));
      if (reason != EEXIST) fail_file(path_, "write", reason);
      continue;
    }
    // A file system without locks has none for remove_abandoned_files either.
    (void)::flock(fd_, LOCK_EX | LOCK_NB);
    struct stat made {};
    if (::fstat(fd_, &made) != 0 || made.st_nlink > 0) break;
    discard();  // another process took it for abandoned before it was locked
  } while (true);
  if (keep_mode && ::fchmod(fd_, static_cast<mode_t>(mode)) != 0) {
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

void replace_file(const std::string& path, std::span<const std::string_view> parts, OutputLinks links) {
  OutputFile file(path, links);
  const GuardedReads reads;
  for (const std::string_view part : parts) {
    file.write(part);
    reads.check(part.data());
  }
  file.commit();
}

void append_to_file(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) fail_file(path, "write", errno);
  struct stat before {};
  int reason = ::fstat(file, &before) == 0 ? 0 : errno;
  while (!text.empty() && reason == 0) {
    const ::ssize_t done = ::write(file, text.data(), text.size());
    if (done < 0 && errno != EINTR) reason = errno;
    if (done > 0) text.remove_prefix(static_cast<std::size_t>(done));
  }
  if (reason != 0 && S_ISREG(before.st_mode) && ::ftruncate(file, before.st_size) != 0) reason = errno;
  if (::close(file) != 0 && reason == 0) reason = errno;
  if (reason != 0) fail_file(path, "write", reason);
}

void remove_unfinished_files() noexcept {
  for (Unfinished* place = unfinished_files.load(); place != nullptr; place = place->next)
    if (char* name = place->name.exchange(nullptr)) {
      ::unlink(name);
      place->removed = name;
    }
}

}  // namespace rlx
