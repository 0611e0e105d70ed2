// Read-only file mappings through mmap, and whole-file reads and writes.
#include "rlx/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "rlx/base/output_file.h"
#include "rlx/base/sigbus_guard.h"
#include "rlx/error.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

namespace {

// A file descriptor that the destructor closes.
struct FileHandle {
  int fd = -1;
  ~FileHandle() {
    if (fd >= 0) ::close(fd);
  }
};

constexpr std::size_t kMostTextBytes = std::size_t{1} << 30;

// Opens a regular file for reading.
FileStatus open_regular(const std::string& path, FileHandle& handle) {
  // O_NONBLOCK keeps a named pipe from hanging the open; it has no meaning for regular files.
  handle.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle.fd < 0) fail_file(path, "open", errno);
  struct stat info {};
  if (::fstat(handle.fd, &info) != 0) fail_file(path, "examine", errno);
  if (S_ISDIR(info.st_mode)) fail_file(path, "read", EISDIR);
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorCode::BadFile, concat_text("cannot read \"", path, "\": it is not a regular file"),
                "save the data into a file first");
  }
  return detail::file_status(info);
}

int advice_flag(MapAdvice advice) {
  switch (advice) {
    case MapAdvice::Normal: return MADV_NORMAL;
    case MapAdvice::Sequential: return MADV_SEQUENTIAL;
    case MapAdvice::Random: return MADV_RANDOM;
    case MapAdvice::WillNeed: return MADV_WILLNEED;
  }
  return MADV_NORMAL;
}

}  // namespace

MappedFile MappedFile::open(const std::string& path, MapAdvice advice) try {
  FileHandle handle;
  MappedFile file;
  file.status_ = open_regular(path, handle);
  file.size_ = file.status_.size;
  file.path_ = path;
  if (file.size_ == 0) return file;
  void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, handle.fd, 0);
  if (data == MAP_FAILED) {
    file.size_ = 0;
    fail_file(path, "map", errno);
  }
  file.data_ = static_cast<const std::byte*>(data);
  detail::note_mapping(data, file.status_, path);
  if (advice != MapAdvice::Normal) file.advise(advice);
  return file;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("MappedFile::open");
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      path_(std::move(other.path_)),
      status_(std::exchange(other.status_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  std::swap(status_, other.status_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  detail::forget_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::advise(MapAdvice advice) const {
  // Only a hint: if the kernel refuses it, only speed suffers.
  if (data_ != nullptr) (void)::madvise(const_cast<std::byte*>(data_), size_, advice_flag(advice));
}

void MappedFile::drop_pages(std::size_t offset, std::size_t length) const {
  if (data_ == nullptr || offset >= size_) return;
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = length > size_ - offset ? size_ : offset + length;
  const std::size_t first = (offset + page - 1) / page * page;
  // A range to the end of the file includes the whole last page.
  const std::size_t last = end == size_ ? (end + page - 1) / page * page : end / page * page;
  if (first < last) (void)::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

std::string read_file(const std::string& path) try {
  FileHandle handle;
  constexpr std::size_t kPadding = 64;  // parsers read whole vectors, and would copy a text without padding
  const std::size_t size = open_regular(path, handle).size;
  if (size > kMostTextBytes)
    throw Error(
        ErrorCode::BadFile,
        concat_text("\"", path, "\" has ", size, " bytes; files of settings and texts have at most ", kMostTextBytes),
        "the file is damaged or not of the expected kind");
  std::string content;
  content.reserve(size + kPadding);
  content.resize(size);
  std::size_t done = 0;
  while (done < content.size()) {
    const ::ssize_t got = ::read(handle.fd, content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_file(path, "read", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  content.resize(done);
  return content;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("read_file");
}

void write_file(const std::string& path, std::string_view content) try {
  write_file(path, std::span(&content, 1));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("write_file");
}

void write_file(const std::string& path, std::span<const std::string_view> parts) try {
  replace_file(path, parts);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("write_file");
}

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool has_file(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    // Without a name there is no file. What cannot be looked at may be there.
    if (errno == ENOENT || errno == ENOTDIR) return false;
    fail_file(path, "open", errno);
  }
  const bool link = S_ISLNK(info.st_mode);
  if (link && ::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) fail_file(path, "open", errno);
    throw Error(ErrorCode::BadFile, concat_text("\"", path, "\" is a symbolic link to a file that does not exist"),
                "copy what the link stands for (cp -L, rsync -L), or remove the link");
  }
  if (S_ISDIR(info.st_mode))
    throw Error(ErrorCode::BadFile, concat_text("\"", path, "\" is a folder, expected a file"));
  if (!S_ISREG(info.st_mode))
    throw Error(ErrorCode::BadFile, concat_text("\"", path, "\" is a device or a pipe, expected a file"));
  return true;
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  path += name;
  return path;
}

}  // namespace rlx
