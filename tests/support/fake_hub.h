// A hub for tests: files of repositories, answers as of a hub, and faults. In the process, or on the loopback.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rlx/hub/http.h"

namespace rlx::test {

struct HubRequest {
  std::string origin;  // "http://127.0.0.1:80"
  std::string path;
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string header(std::string_view name) const {
    const auto it = headers.find(name);
    return it == headers.end() ? std::string() : it->second;
  }
};

struct HubReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::size_t cut = std::string::npos;  // the connection ends after so many bytes of the body
  bool silent = false;                  // no answer comes
};

/// One repository, org/name, with a commit. Small files come directly, large ones by a redirect to another host.
class FakeHub {
 public:
  static constexpr const char* kRepo = "org/name";
  static constexpr const char* kOther = "http://localhost";  // the host of large files, but for its port
  std::string commit = std::string(39, '0') + "1";
  bool ranges = true;
  /// Asked before anything else; nothing: the usual answer. `count` is the number of requests so far.
  std::function<std::optional<HubReply>(const HubRequest& request, std::size_t count)> special{};

  void add(const std::string& path, std::string content, bool large = false);
  const std::map<std::string, std::string>& files() const { return files_; }
  std::string checksum(const std::string& path) const;
  /// The list of files as a hub sends it.
  std::string listing() const;
  HubReply answer(const HubRequest& request);
  /// The usual answer.
  HubReply usual(const HubRequest& request) const;
  const std::vector<HubRequest>& requests() const { return requests_; }
  void forget_requests() { requests_.clear(); }

 private:
  std::map<std::string, std::string> files_;
  std::map<std::string, bool> large_;
  std::vector<HubRequest> requests_;
};

/// Asks a FakeHub in this process, in pieces of some bytes.
class FakeTransport : public HttpTransport {
 public:
  explicit FakeTransport(FakeHub& hub, std::size_t piece = 1000) : hub_(hub), piece_(piece) {}
  std::string get(const HttpRequest& request, HttpSink& sink) override;

 private:
  FakeHub& hub_;
  std::size_t piece_;
};

/// Serves a FakeHub on the loopback.
class HubServer {
 public:
  explicit HubServer(FakeHub& hub);
  ~HubServer();
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;
  std::string url() const;
  /// HF_ENDPOINT and HF_HOME as the beginning of a shell command, without the other variables of this environment.
  std::string environment(const std::string& home) const;

 private:
  void serve();
  void serve_one(int connection);
  FakeHub& hub_;
  int listening_ = -1, port_ = 0;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace rlx::test
