// Folders, links and locks of the cache of models.
#include "rlx/hub/hub_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "rlx/base/cache_folder.h"
#include "rlx/base/file_error.h"
#include "rlx/base/output_file.h"
#include "rlx/base/stop_request.h"
#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;

void make_folders(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) fail_file(path, "create the folder", failed.value());
}
std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

// models--ORG--NAME
std::string part_of(const std::string& repo) {
  std::string out = "models--";
  for (const char c : repo) out += c == '/' ? std::string("--") : std::string(1, c);
  return out;
}

// The files below a folder; links that lead nowhere are left out.
std::vector<HubFile> files_below(const fs::path& root) {
  std::vector<HubFile> out;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(root, failed), end; !failed && it != end; it.increment(failed))
    if (std::error_code gone; fs::is_regular_file(it->path(), gone) && out.size() < 100000) {
      HubFile f;
      f.path = it->path().lexically_relative(root).generic_string();
      f.size = fs::file_size(it->path(), gone);
      out.push_back(std::move(f));
    }
  return out;
}

}  // namespace

HubCache::HubCache(std::string cache, const std::string& repo)
    : cache_(std::move(cache)), part_(part_of(repo)), folder_(join_path(cache_, part_)) {}

void HubCache::prepare() const {
  prepare_cache_folder(cache_, "the folder of models");
  prepare_cache_folder(folder_, "the folder of a model");
  make_folders(join_path(folder_, "blobs"));
  make_folders(concat_text(cache_, "/.locks/", part_));
}

std::string HubCache::blob(const HubFile& file) const { return concat_text(folder_, "/blobs/", file.checksum); }
std::string HubCache::snapshot(const std::string& commit) const { return concat_text(folder_, "/snapshots/", commit); }
std::string HubCache::lock(const HubFile& file) const {
  return concat_text(cache_, "/.locks/", part_, "/", file.checksum, ".lock");
}

void HubCache::link(const std::string& commit, const HubFile& file) const {
  const std::string path = join_path(snapshot(commit), file.path);
  make_folders(parent(path));
  std::string target;
  for (std::ptrdiff_t i = std::count(file.path.begin(), file.path.end(), '/') + 2; i > 0; --i) target += "../";
  target += concat_text("blobs/", file.checksum);
  std::error_code failed;
  if (fs::read_symlink(path, failed) == target && !failed) return;
  failed.clear();
  fs::remove(path, failed);
  fs::create_symlink(target, path, failed);
  // Another process may have made the same link meanwhile.
  if (std::error_code other; failed && fs::read_symlink(path, other) != target)
    fail_file(path, "make the link", failed.value());
}

void HubCache::set_commit(const std::string& revision, const std::string& commit) const {
  if (revision == commit) return;
  const std::string path = concat_text(folder_, "/refs/", revision);
  make_folders(parent(path));
  const std::array<std::string_view, 1> content = {commit};
  replace_file(path, content, OutputLinks::Replace);
}

std::optional<std::string> HubCache::commit_of(const std::string& revision) const {
  if (is_hex(revision, 40)) return revision;
  const std::string path = concat_text(folder_, "/refs/", revision);
  if (!is_file(path)) return std::nullopt;
  std::string commit = read_file(path);
  commit.resize(std::min(commit.find_last_not_of(" \r\n") + 1, commit.size()));
  if (!is_hex(commit, 40)) return std::nullopt;
  return commit;
}

std::optional<std::string> HubCache::find(const HubName& name) const {
  const auto commit = commit_of(name.revision);
  if (!commit) return std::nullopt;
  const std::string root = snapshot(*commit);
  const std::vector<HubFile> files = files_below(root);
  if (files.empty()) return std::nullopt;
  try {
    const HubChoice choice = choose_files(name, files);
    const auto there = [&](const std::string& path) {
      return std::any_of(files.begin(), files.end(), [&](const HubFile& f) { return f.path == path; });
    };
    if (!choice.index.empty())
      for (const std::string& shard : shards_of(read_file(join_path(root, choice.index)), choice.index))
        if (!there(shard)) return std::nullopt;
    if (!choice.result.empty()) return join_path(root, choice.result);
    if (!there("config.json") && !there("adapter_config.json")) return std::nullopt;
    return root;
  } catch (const Error&) {  // parts of a repository that another program pulled
    return std::nullopt;
  }
}

FileLock::FileLock(const std::string& path, const std::function<void()>& waits) {
  append_to_file(path, "");
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) fail_file(path, "open the lock", errno);
  bool told = false;
  while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    if (reason == EINTR) continue;
    if (reason != EWOULDBLOCK) return;  // a file system without locks
    if (!std::exchange(told, true)) waits();
    try {
      StopRequest::check();
    } catch (...) {
      ::close(fd_);
      throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}
FileLock::~FileLock() { ::close(fd_); }

}  // namespace rlx
