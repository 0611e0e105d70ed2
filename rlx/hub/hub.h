// Models from a hub (Hugging Face, or a server that speaks like it): names, the cache, downloads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/hub/http.h"

namespace rlx {

/// The name of a model on a hub: REPO, REPO:FILE, REPO@REVISION or REPO@REVISION:FILE.
struct HubName {
  std::string repo{};             // "org/name"; old models have no "org/"
  std::string revision = "main";  // a branch, a tag or a commit
  std::string file{};  // a file of the repository, or a type of its GGUF files such as Q4_K_M; "": the model's folder

  /// As a user writes it.
  std::string text() const;
};

/// The name in `text`; nothing when it cannot be one: paths that begin with "/", "." or "~" cannot.
std::optional<HubName> parse_hub_name(std::string_view text);

/// Where the hub and the cache are.
struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // http:// only on the loopback
  std::string token;                                // sent to the endpoint and to no other host
  std::string cache;                                // the folder of Hugging Face's cache
  bool offline = false;                             // no requests
  int timeout = 30;                                 // seconds to connect, and seconds without a byte
  int retries = 8;                                  // attempts in a row without one more byte

  /// From HF_ENDPOINT, HF_TOKEN, HF_HUB_CACHE, HF_HOME, HF_HUB_OFFLINE and HF_HUB_DOWNLOAD_TIMEOUT. Without HF_TOKEN,
  /// the token that `hf auth login` stored is for huggingface.co alone. Errors: InvalidArgument naming the variable.
  static HubSettings from_environment();
};

struct PullOptions {
  bool verify = false;  // reads files of the cache again and compares their checksums
  std::function<void(const std::string& text)> note;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // bytes
};

/// Downloads a model into the cache, or what it lacks of it, and returns its path: the folder, or the file for a name
/// with a file and for a repository with GGUF files alone. Of a repository it takes the files that rlx reads. Every
/// file has the checksum that the hub lists; what an earlier attempt left is continued. Errors: NotFound (no such
/// model, no network), InvalidArgument, BadFile (checksums, the cache), Unsupported (no weights that rlx reads).
std::string pull_model(const HubName& name, HttpTransport& transport, const HubSettings& settings,
                       const PullOptions& options = {});

/// The path of a model in the cache, if all of it is there. Asks nobody.
std::optional<std::string> cached_model(const HubName& name, const HubSettings& settings);

/// The path of a model that a user names: `text` if it is a path of something, or if it cannot be the name of a model
/// on a hub. Else the model of that name in the cache; else it is pulled. Only names with "org/" are looked up. A name
/// whose first part is a folder here is a path. Errors: those of pull_model.
std::string find_model(const std::string& text, HttpTransport& transport, const PullOptions& options = {});

}  // namespace rlx
