// Requests to a hub: redirects, the token, attempts after failures, downloads that continue.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "rlx/hub/hub.h"
#include "rlx/hub/hub_files.h"

namespace rlx {

class HubClient {
 public:
  /// Checks endpoint and token. Errors: InvalidArgument.
  HubClient(const HubName& name, HttpTransport& transport, const HubSettings& settings, const PullOptions& options);

  /// The files of the revision.
  HubListing list();
  /// Downloads one file to `path`: to a partial file beside it first, from where an earlier attempt ended. `progress`
  /// gets the number of bytes that are there. Errors: BadFile for a wrong checksum.
  void download(const HubFile& file, const std::string& commit, const std::string& path,
                const std::function<void(std::uint64_t)>& progress);

 private:
  using Headers = std::vector<std::pair<std::string, std::string>>;
  // What one request gave.
  struct Outcome {
    HttpReply reply;
    std::string failure;  // "": a whole answer
  };
  Outcome get(std::string url, const Headers& headers, const std::function<bool(const HttpReply&)>& begin,
              const std::function<bool(std::string_view)>& body);
  class Attempts;
  [[noreturn]] void fail_status(const HttpReply& reply, const std::string& what) const;
  [[noreturn]] void fail_unreachable(const std::string& why) const;

  const HubName& name_;
  HttpTransport& transport_;
  HubSettings settings_;
  const PullOptions& options_;
  bool reached_ = false;  // whether any answer ever came
};

/// Whether a token for `endpoint` may be sent to `url`: scheme, host and port are equal.
bool is_same_origin(std::string_view url, std::string_view endpoint);
/// Whether requests may go to `url`: https, or http on the loopback.
bool is_allowed_url(std::string_view url, bool loopback);

}  // namespace rlx
