// Answers of a hub, and a small HTTP server.
#include "tests/support/fake_hub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

#include "rlx/base/json_writer.h"
#include "rlx/error.h"
#include "rlx/hub/digest.h"

namespace rlx::test {

void FakeHub::add(const std::string& path, std::string content, bool large) {
  files_[path] = std::move(content);
  large_[path] = large;
}

std::string FakeHub::checksum(const std::string& path) const {
  const std::string& content = files_.at(path);
  Digest sum = file_digest(large_.at(path) ? 64 : 40, content.size());
  sum.add(content);
  return sum.finish();
}

std::string FakeHub::listing() const {
  JsonWriter json;
  json.begin_object().member("id", kRepo).member("sha", commit);
  json.key("siblings").begin_array();
  for (const auto& [path, content] : files_) {
    const auto size = static_cast<std::int64_t>(content.size());
    json.begin_object().member("rfilename", path).member("size", size);
    if (large_.at(path)) {
      json.member("blobId", std::string(40, 'f'));
      json.key("lfs").begin_object().member("sha256", checksum(path)).member("size", size).end_object();
    } else {
      json.member("blobId", checksum(path));
    }
    json.end_object();
  }
  json.end_array().end_object();
  return json.take();
}

HubReply FakeHub::answer(const HubRequest& request) {
  requests_.push_back(request);
  if (special)
    if (auto reply = special(request, requests_.size())) return *reply;
  return usual(request);
}

HubReply FakeHub::usual(const HubRequest& request) const {
  const std::string api = concat_text("/api/models/", kRepo, "/revision/");
  if (request.path == api + "main?blobs=true" || request.path == api + commit + "?blobs=true")
    return {200, {{"Content-Type", "application/json"}}, listing()};
  const std::string resolve = concat_text("/", kRepo, "/resolve/", commit, "/"), other = "/large/";
  const bool direct = request.path.starts_with(resolve);
  if (!direct && !request.path.starts_with(other)) return {404, {{"X-Error-Code", "RepoNotFound"}}, "not found"};
  const std::string path = request.path.substr(direct ? resolve.size() : other.size());
  const auto it = files_.find(path);
  if (it == files_.end()) return {404, {{"X-Error-Code", "EntryNotFound"}}, "not found"};
  if (direct && large_.at(path)) {
    const std::string port = request.origin.substr(request.origin.rfind(':'));
    return {302, {{"Location", concat_text(kOther, port, "/large/", path)}}, "elsewhere"};
  }
  const std::string& content = it->second;
  const std::string range = request.header("range");
  if (!ranges || range.empty()) return {200, {}, content};
  const std::size_t start = std::stoul(range.substr(range.find('=') + 1));
  if (start >= content.size()) return {416, {}, ""};
  return {206,
          {{"Content-Range", concat_text("bytes ", start, "-", content.size() - 1, "/", content.size())}},
          content.substr(start)};
}

std::string FakeTransport::get(const HttpRequest& request, HttpSink& sink) {
  HubRequest asked;
  const std::size_t host = request.url.find("://") + 3,
                    path = std::min(request.url.find('/', host), request.url.size());
  asked.origin = request.url.substr(0, path);
  asked.path = request.url.substr(path);
  for (auto [name, value] : request.headers) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    asked.headers[name] = value;
  }
  const HubReply answer = hub_.answer(asked);
  if (answer.silent) return "Could not connect";
  HttpReply reply;
  reply.status = answer.status;
  for (auto [name, value] : answer.headers) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    reply.headers[name] = value;
    if (name == "location") reply.redirect = value.starts_with("/") ? asked.origin + value : value;
  }
  reply.headers.emplace("content-length", std::to_string(answer.body.size()));
  sink.begin(reply);
  const std::size_t end = std::min(answer.cut, answer.body.size());
  for (std::size_t at = 0; at < end; at += piece_)
    if (!sink.body(std::string_view(answer.body).substr(at, std::min(piece_, end - at)))) return {};
  return end < answer.body.size() ? "the connection ended early" : "";
}

HubServer::HubServer(FakeHub& hub) : hub_(hub), listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* at = reinterpret_cast<sockaddr*>(&address);
  if (listening_ < 0 || ::bind(listening_, at, size) != 0 || ::listen(listening_, 16) != 0 ||
      ::getsockname(listening_, at, &size) != 0)
    throw std::runtime_error("cannot listen on the loopback");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

HubServer::~HubServer() {
  ended_ = true;
  thread_.join();
  ::close(listening_);
}

std::string HubServer::url() const { return concat_text("http://127.0.0.1:", port_); }

std::string HubServer::environment(const std::string& home) const {
  return concat_text(
      "env -u HF_TOKEN -u HF_HUB_CACHE -u HF_HUB_OFFLINE -u http_proxy -u https_proxy -u all_proxy -u ALL_PROXY "
      "-u HF_TOKEN_PATH HF_HUB_DOWNLOAD_TIMEOUT=5 HF_HOME='",
      home, "' HF_ENDPOINT=", url(), " ");
}

void HubServer::serve() {
  while (!ended_) {
    pollfd waiting{listening_, POLLIN, 0};
    if (::poll(&waiting, 1, 20) <= 0) continue;
    const int connection = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    serve_one(connection);
    ::close(connection);
  }
}

void HubServer::serve_one(int connection) {
  std::string head;
  for (char block[4096]; head.find("\r\n\r\n") == head.npos && head.size() < 65536;) {
    const ::ssize_t got = ::recv(connection, block, sizeof block, 0);
    if (got <= 0) return;
    head.append(block, static_cast<std::size_t>(got));
  }
  HubRequest request;
  const std::size_t first = head.find(' ') + 1;
  request.path = head.substr(first, head.find(' ', first) - first);
  for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
    const std::size_t end = head.find("\r\n", at), colon = head.find(": ", at);
    if (end == at || end == head.npos || colon > end) break;
    std::string name = head.substr(at, colon - at);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers[name] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  request.origin = concat_text("http://", request.header("host"));
  const HubReply reply = hub_.answer(request);
  if (reply.silent) {  // until the client gives up
    char byte = 0;
    pollfd waiting{connection, POLLIN, 0};
    while (!ended_ && ::poll(&waiting, 1, 20) == 0) {
    }
    (void)::recv(connection, &byte, 1, 0);
    return;
  }
  std::string out = concat_text("HTTP/1.1 ", reply.status,
                                " Answer\r\nConnection: close\r\nContent-Length: ", reply.body.size(), "\r\n");
  for (const auto& [name, value] : reply.headers) out += concat_text(name, ": ", value, "\r\n");
  out += "\r\n";
  out += reply.body.substr(0, reply.cut);
  for (std::string_view rest = out; !rest.empty();) {
    const ::ssize_t sent = ::send(connection, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  ::shutdown(connection, SHUT_WR);
}

}  // namespace rlx::test
