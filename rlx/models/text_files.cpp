// Walks folders and reads text files.
#include "rlx/models/text_files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>

#include "rlx/base/sigbus_guard.h"
#include "rlx/base/stop_request.h"
#include "rlx/base/utf8.h"
#include "rlx/formats/foreign_file.h"
#include "rlx/formats/gzip.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/models/search/path_rules.h"

namespace rlx {
namespace {

constexpr std::size_t kSniffedBytes = 8192;
constexpr std::uint64_t kMostIgnoreBytes = std::uint64_t{1} << 20;
// Steps for the patterns of one path: a few milliseconds.
constexpr std::uint64_t kStepsOfPath = std::uint64_t{1} << 20;

std::int64_t nanoseconds(const ::timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

// The rules of the ignore files of one folder, and the folder around it.
struct IgnoreScope {
  std::string folder;  // without a slash at the end; "" for the root of the file system
  PathRules rules;
  std::shared_ptr<const IgnoreScope> outer;
};

std::string parent_of(const std::string& folder) {
  return folder.substr(0, std::min(folder.rfind('/'), folder.size()));
}

// `path` without the folder `folder` that it lies in.
std::string_view path_in(std::string_view path, std::string_view folder) { return path.substr(folder.size() + 1); }

class FolderWalk {
 public:
  FolderWalk(const FileSelection& selection, std::vector<LeftOutFile>* left_out)
      : selection_(selection), left_out_(left_out) {
    for (const std::string& glob : selection.globs) {
      globs_.add(glob);
      const PathPattern& added = globs_.patterns().back();
      if (added.malformed())
        throw Error(ErrorCode::InvalidArgument, concat_text("the glob '", glob, "' is malformed"),
                    "a [ needs a ], a backslash a character after it; \\[ matches a bracket");
      chooses_ = chooses_ || !added.negated();
    }
  }

  void add_root(const std::string& path, std::uint32_t root) {
    root_ = root;
    struct ::stat info {};
    if (::stat(path.c_str(), &info) != 0) fail_file(path, "open", errno);
    if (!S_ISDIR(info.st_mode)) return add_file(path, info, true);
    shown_ = without_slash(path), top_ = without_slash(absolute_path(path));
    walk(selection_.ignore_files ? outer_rules(top_) : nullptr);
  }

  std::vector<TextFile> take() { return std::move(files_); }

 private:
  struct Entry {
    std::string name;
    struct ::stat info {};
  };

  static std::string without_slash(std::string path) {
    while (path.ends_with('/')) path.pop_back();
    return path;
  }
  static std::string absolute_path(const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  }
  // An absolute path below `top_`, as the caller would name it.
  std::string shown(const std::string& path) const {
    return path.starts_with(top_) ? shown_ + path.substr(top_.size()) : path;
  }

  void leave_out(Diagnostic why, bool binary = false) {
    if (left_out_) left_out_->push_back({std::move(why), binary});
  }

  // The ignore files above `top`, if a folder above has `.git`.
  std::shared_ptr<const IgnoreScope> outer_rules(const std::string& top) {
    std::vector<std::string> folders;
    struct ::stat info {};
    const auto repository = [&](const std::string& folder) { return ::lstat((folder + "/.git").c_str(), &info) == 0; };
    for (std::string above = top; !repository(above); folders.push_back(above)) {
      if (above.empty()) return nullptr;
      above = parent_of(above);
    }
    std::shared_ptr<const IgnoreScope> scope;
    for (auto f = folders.rbegin(); f != folders.rend(); ++f) scope = with_rules_of(*f, scope);
    return scope;
  }

  // The later file decides, and an inner folder before an outer one.
  std::shared_ptr<const IgnoreScope> with_rules_of(const std::string& folder,
                                                   std::shared_ptr<const IgnoreScope> scope) {
    for (const char* name : {"/.gitignore", "/.ignore"}) {
      const std::string path = folder + name;
      struct ::stat info {};
      if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      try {
        if (static_cast<std::uint64_t>(info.st_size) > kMostIgnoreBytes)
          throw Error(ErrorCode::BadFile,
                      concat_text("\"", shown(path), "\" has more than ", kMostIgnoreBytes, " bytes"));
        PathRules rules = PathRules::parse_lines(read_file(path));
        if (!rules.empty())
          scope = std::make_shared<const IgnoreScope>(IgnoreScope{folder, std::move(rules), std::move(scope)});
      } catch (const Error& e) {
        leave_out(e.diagnostic());
      }
    }
    return scope;
  }

  bool ignored(const std::string& path, bool folder, const IgnoreScope* scope) const {
    WorkBudget budget(kStepsOfPath, 0);
    const auto count_step = [&](const std::string& what) {
      if (budget.steps() == 0)
        throw Error(ErrorCode::BadFile, concat_text(what, " take too much work for \"", shown(path), "\""),
                    "--no-ignore leaves ignore files out of account");
    };
    if (!globs_.empty()) {
      const PathVerdict verdict = globs_.verdict(path_in(path, top_), folder, budget);
      count_step("the globs");
      if (verdict == PathVerdict::Negated || (verdict == PathVerdict::None && chooses_ && !folder)) return true;
    }
    for (; scope; scope = scope->outer.get()) {
      const PathVerdict verdict = scope->rules.verdict(path_in(path, scope->folder), folder, budget);
      count_step(concat_text("the patterns of the ignore files in \"", shown(scope->folder), "\""));
      if (verdict != PathVerdict::None) return verdict == PathVerdict::Match;
    }
    return false;
  }

  std::vector<Entry> entries_of(const std::string& folder) {
    std::vector<Entry> out;
    const std::string path = folder.empty() ? "/" : folder;
    const std::unique_ptr<::DIR, int (*)(::DIR*)> open(::opendir(path.c_str()), &::closedir);
    if (!open) {
      const int reason = errno;
      try {
        fail_file(shown(path), "read", reason);
      } catch (const Error& e) {
        leave_out(e.diagnostic());
      }
      return out;
    }
    while (const ::dirent* entry = ::readdir(open.get())) {
      Entry e{entry->d_name};
      if (e.name == "." || e.name == ".." || (!selection_.hidden && e.name.starts_with('.'))) continue;
      if (e.name == ".git" || ::lstat((folder + "/" + e.name).c_str(), &e.info) != 0) continue;
      if (S_ISDIR(e.info.st_mode) || S_ISREG(e.info.st_mode)) out.push_back(std::move(e));
    }
    std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return out;
  }

  // A stack of its own: folders may be nested deeply.
  void walk(std::shared_ptr<const IgnoreScope> outer) {
    struct Level {
      std::string folder;
      std::shared_ptr<const IgnoreScope> scope;
    };
    std::vector<Level> open{{top_, std::move(outer)}};
    while (!open.empty()) {
      StopRequest::check();
      const Level level = std::move(open.back());
      open.pop_back();
      if (!enter(level.folder)) continue;
      const std::shared_ptr<const IgnoreScope> scope =
          selection_.ignore_files ? with_rules_of(level.folder, level.scope) : nullptr;
      std::vector<Level> inner;
      for (const Entry& e : entries_of(level.folder)) {
        const std::string path = level.folder + "/" + e.name;
        const bool folder = S_ISDIR(e.info.st_mode);
        if (ignored(path, folder, scope.get())) continue;
        if (folder)
          inner.push_back({path, scope});
        else
          add_file(shown(path), e.info, false);
      }
      open.insert(open.end(), std::make_move_iterator(inner.rbegin()), std::make_move_iterator(inner.rend()));
    }
  }

  // False for a folder that was walked already, as part of another path.
  bool enter(const std::string& folder) {
    struct ::stat info {};
    if (::stat(folder.empty() ? "/" : folder.c_str(), &info) != 0) return true;
    return folders_.emplace(info.st_dev, info.st_ino).second;
  }

  void add_file(const std::string& path, const struct ::stat& info, bool named) {
    if (!paths_.insert(absolute_path(path)).second) return;
    TextFile file{path, root_, named};
    file.size = static_cast<std::uint64_t>(info.st_size);
    file.mtime_ns = nanoseconds(info.st_mtim), file.ctime_ns = nanoseconds(info.st_ctim);
    if (!named && file.size > selection_.max_bytes)
      return leave_out({ErrorCode::BadFile,
                        concat_text("\"", path, "\" has ", file.size, " bytes, more than ", selection_.max_bytes),
                        {},
                        "name the file itself, or raise the limit"});
    files_.push_back(std::move(file));
  }

  const FileSelection& selection_;
  std::vector<LeftOutFile>* left_out_;
  PathRules globs_;
  bool chooses_ = false;     // some glob chooses files
  std::string top_, shown_;  // the folder as an absolute path without a slash at the end, and as it is named
  std::uint32_t root_ = 0;
  std::vector<TextFile> files_;
  std::set<std::string> paths_;
  std::set<std::pair<::dev_t, ::ino_t>> folders_;
};

}  // namespace

std::vector<TextFile> find_text_files(std::span<const std::string> paths, const FileSelection& selection,
                                      std::vector<LeftOutFile>* left_out) {
  FolderWalk walk(selection, left_out);
  for (std::size_t i = 0; i < paths.size(); ++i) walk.add_root(paths[i], static_cast<std::uint32_t>(i));
  return walk.take();
}

void check_searchable_text(std::string_view text, const std::string& path) {
  constexpr std::pair<std::string_view, std::string_view> kPacked[] = {{"\xfd"
                                                                        "7zXZ",
                                                                        "xz"},
                                                                       {"\x28\xb5\x2f\xfd", "zstd"},
                                                                       {"BZh", "bzip2"},
                                                                       {"PK\x03\x04", "zip"}};
  for (const auto& [start, name] : kPacked)
    if (text.starts_with(start))
      throw Error(ErrorCode::BadFile, concat_text(path, ": compressed with ", name), "only gzip is supported");
  if (text.find('\0') != std::string::npos) throw Error(ErrorCode::BadFile, concat_text(path, ": a binary file"));
  if (const auto bad = find_invalid_utf8(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*bad), '\n');
    throw Error(ErrorCode::BadFile, concat_text(path, ":", line, ": not valid UTF-8"), "convert it with iconv");
  }
}

std::string read_text_file(const std::string& path) {
  std::string text = read_file(path);
  if (is_gzip(text)) text = gunzip(text, path);
  if (const auto foreign = foreign_file(std::string_view(text).substr(0, 256)); foreign && foreign->is_no_text)
    throw Error(ErrorCode::BadFile, concat_text("'", path, "' is ", foreign->what), std::string(foreign->hint));
  if (const std::size_t mark = text.size() - without_bom(text).size()) text.erase(0, mark);
  check_searchable_text(text, path);
  return text;
}

bool looks_binary(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  const GuardedReads reads;
  const std::string_view start = file.text().substr(0, kSniffedBytes);
  const bool binary = !is_gzip(start) && start.find('\0') != std::string_view::npos && !foreign_file(start);
  if (file.size() > 0) reads.check(file.bytes().data());
  return binary;
}

}  // namespace rlx
