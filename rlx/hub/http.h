// What the hub needs of HTTP: one GET at a time. The command asks libcurl (curl_transport.h), the Python package the
// standard library.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rlx {

struct HttpRequest {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  int timeout = 30;  // seconds to connect, and seconds without a byte
};

/// The beginning of an answer.
struct HttpReply {
  int status = 0;                                           // 0: none came
  std::string redirect;                                     // the absolute URL of a Location header
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case

  /// The value of a header; empty when it is absent.
  std::string_view header(std::string_view name) const {
    const auto it = headers.find(name);
    return it == headers.end() ? std::string_view() : std::string_view(it->second);
  }
};

/// Takes an answer as it comes.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  virtual void begin(const HttpReply& reply) = 0;
  /// One piece of the body. False: no more is wanted, and the request ends.
  virtual bool body(std::string_view bytes) = 0;
};

/// Makes requests; certificates are checked.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  /// One GET. Redirects are answers like others: nothing is followed. Returns "", or why no whole answer came.
  /// Exceptions of the sink pass through.
  virtual std::string get(const HttpRequest& request, HttpSink& sink) = 0;
};

}  // namespace rlx
