// Pulls a model: list, choice, downloads, links.
#include "rlx/hub/hub.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "rlx/base/stop_request.h"
#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/hub/digest.h"
#include "rlx/hub/hub_cache.h"
#include "rlx/hub/hub_client.h"
#include "rlx/hub/hub_files.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;

// Whether the cache has the file. One of another length, or a link, is removed.
bool is_cached(const std::string& path, const HubFile& file, bool verify) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (!fs::exists(status)) return false;
  bool good = fs::is_regular_file(status) && fs::file_size(path, failed) == file.size && !failed;
  if (good && verify) {
    Digest sum = file_digest(file.checksum.size(), file.size);
    const MappedFile mapped = MappedFile::open(path, MapAdvice::Sequential);
    constexpr std::size_t kPiece = 1 << 22;
    for (std::size_t at = 0; at < mapped.size(); at += kPiece) {
      StopRequest::check();
      sum.add(mapped.text().substr(at, kPiece));
    }
    good = sum.finish() == file.checksum;
  }
  if (!good) fs::remove(path, failed);
  return good;
}

class Pull {
 public:
  Pull(const HubName& name, HttpTransport& transport, const HubSettings& settings, const PullOptions& options)
      : name_(name),
        settings_(settings),
        options_(options),
        client_(name, transport, settings, options),
        cache_(settings.cache, name.repo) {}

  std::string run() {
    listing_ = client_.list();
    HubChoice choice = choose_files(name_, listing_.files);
    cache_.prepare();
    std::vector<std::string> wanted = choice.files;
    if (!choice.index.empty()) {  // which shards are wanted is in it
      fetch({choice.index});
      const std::string index = read_file(cache_.blob(listed(choice.index)));
      for (const std::string& shard : shards_of(index, choice.index)) choice.weights.push_back(shard);
    }
    wanted.insert(wanted.end(), choice.weights.begin(), choice.weights.end());
    fetch(wanted);
    cache_.set_commit(name_.revision, listing_.commit);
    const std::string root = cache_.snapshot(listing_.commit);
    return choice.result.empty() ? root : join_path(root, choice.result);
  }

 private:
  const HubFile& listed(const std::string& path) const {
    if (const HubFile* file = listing_.find(path)) return *file;
    throw Error(ErrorCode::NotFound,
                concat_text("\"", name_.repo, "\" has no file \"", path, "\", which its index names"),
                "the repository lacks a part of the model");
  }

  void check_disk(std::uint64_t bytes) const {
    std::error_code failed;
    const fs::space_info space = fs::space(settings_.cache, failed);
    if (!failed && space.available < bytes)
      throw Error(ErrorCode::BadFile,
                  concat_text("\"", name_.text(), "\" needs ", size_text(bytes), " more, but ", settings_.cache,
                              " has ", size_text(space.available)),
                  "free some, or set HF_HUB_CACHE to a folder on another disk");
  }

  void fetch(const std::vector<std::string>& paths) {
    std::uint64_t total = 0, done = 0;
    std::vector<const HubFile*> missing;
    std::set<std::string> seen;
    for (const std::string& path : paths) {
      const HubFile& file = listed(path);
      if (!seen.insert(file.checksum).second || is_cached(cache_.blob(file), file, options_.verify)) continue;
      missing.push_back(&file);
      total += file.size;
    }
    std::uint64_t left = total;
    for (const HubFile* file : missing) {
      std::error_code none;
      const std::uint64_t there = fs::file_size(cache_.blob(*file) + ".rlx.partial", none);
      if (!none) left -= std::min(there, std::min(left, file->size));
    }
    check_disk(left);
    if (total > 0 && options_.note)
      options_.note(concat_text("downloading ", name_.text(), ": ", missing.size(),
                                missing.size() == 1 ? " file, " : " files, ", size_text(total)));
    for (const HubFile* file : missing) {
      const FileLock lock(cache_.lock(*file), [&] {
        if (options_.note) options_.note(concat_text("another process downloads ", file->path, "; waiting for it"));
      });
      if (!is_cached(cache_.blob(*file), *file, false))
        client_.download(*file, listing_.commit, cache_.blob(*file), [&](std::uint64_t now) {
          if (options_.progress) options_.progress(done + now, total);
        });
      done += file->size;
    }
    for (const std::string& path : paths) cache_.link(listing_.commit, listed(path));
  }

  const HubName& name_;
  const HubSettings& settings_;
  const PullOptions& options_;
  HubClient client_;
  HubCache cache_;
  HubListing listing_;
};

void check_online(const HubName& name, const HubSettings& settings) {
  if (settings.offline)
    throw Error(ErrorCode::NotFound,
                concat_text("the model \"", name.text(), "\" is not in ", settings.cache,
                            ", and HF_HUB_OFFLINE forbids to download it"),
                concat_text("unset HF_HUB_OFFLINE, give the path of a model, or copy the folder that `rlx pull ",
                            name.text(), "` makes on another machine"));
}

}  // namespace

std::string pull_model(const HubName& name, HttpTransport& transport, const HubSettings& settings,
                       const PullOptions& options) {
  const std::optional<HubName> parsed = parse_hub_name(name.text());
  if (!parsed || parsed->repo != name.repo || parsed->revision != name.revision || parsed->file != name.file)
    throw Error(ErrorCode::InvalidArgument, concat_text("\"", name.text(), "\" is not the name of a model on a hub"),
                "names are ORG/NAME, ORG/NAME:FILE or ORG/NAME@REVISION");
  if (settings.offline) {
    if (auto path = cached_model(name, settings)) return *path;
    check_online(name, settings);
  }
  return Pull(name, transport, settings, options).run();
}

std::optional<std::string> cached_model(const HubName& name, const HubSettings& settings) {
  return HubCache(settings.cache, name.repo).find(name);
}

std::string find_model(const std::string& text, HttpTransport& transport, const PullOptions& options) {
  std::error_code ignored;
  if (fs::exists(text, ignored)) return text;
  const std::optional<HubName> name = parse_hub_name(text);
  const std::size_t slash = text.find('/');
  if (!name || name->repo.find('/') == std::string::npos || fs::exists(text.substr(0, slash), ignored)) return text;
  const HubSettings settings = HubSettings::from_environment();
  if (auto path = cached_model(*name, settings)) return *path;
  try {
    return pull_model(*name, transport, settings, options);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::Interrupted) throw;
    Diagnostic d = e.diagnostic();
    d.message = concat_text("there is no file or folder \"", text, "\" here, and as the name of a model: ", d.message);
    throw Error(std::move(d));
  }
}

}  // namespace rlx
