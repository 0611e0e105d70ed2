// Requests by libcurl, which is opened at run time.
#pragma once

#include <memory>

#include "rlx/hub/http.h"

namespace rlx {

/// One connection that is kept between requests. It uses the proxy of https_proxy, and the certificates of the system
/// or of SSL_CERT_FILE. libcurl is opened by the first request. Errors of `get`: Unsupported when libcurl is not
/// installed.
class CurlTransport : public HttpTransport {
 public:
  CurlTransport();
  ~CurlTransport() override;
  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;
  std::string get(const HttpRequest& request, HttpSink& sink) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
