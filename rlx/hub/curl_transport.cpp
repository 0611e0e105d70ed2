// libcurl's easy interface, declared here: its numbers are those of its stable binary interface.
#include "rlx/hub/curl_transport.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>

#include "rlx/base/stop_request.h"
#include "rlx/error.h"

namespace rlx {
namespace {

#ifdef __APPLE__
constexpr std::array<const char*, 2> kLibraries = {"libcurl.4.dylib", "/usr/lib/libcurl.4.dylib"};
#else
constexpr std::array<const char*, 3> kLibraries = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};
#endif

// Options that take a long (0 ...), a pointer (10000 ...) or a function (20000 ...).
enum CurlOption : int {
  kLowSpeedLimit = 19,
  kLowSpeedTime = 20,
  kNoProgress = 43,
  kConnectTimeout = 78,
  kNoSignal = 99,
  kProtocols = 181,
  kWriteData = 10001,
  kUrl = 10002,
  kErrorBuffer = 10010,
  kUserAgent = 10018,
  kHttpHeader = 10023,
  kHeaderData = 10029,
  kProgressData = 10057,
  kCaInfo = 10065,
  kWriteFunction = 20011,
  kHeaderFunction = 20079,
  kProgressFunction = 20219,
};
constexpr int kRedirectUrl = 0x100000 + 31;
constexpr long kHttpAndHttps = 1 | 2, kGlobalDefault = 3;
constexpr std::size_t kErrorSize = 256;

struct CurlApi {
  int (*global_init)(long);
  void* (*easy_init)();
  void (*easy_cleanup)(void*);
  void (*easy_reset)(void*);
  int (*easy_setopt)(void*, int, ...);
  int (*easy_getinfo)(void*, int, ...);
  int (*easy_perform)(void*);
  const char* (*easy_strerror)(int);
  void* (*slist_append)(void*, const char*);
  void (*slist_free_all)(void*);
};

const CurlApi& curl() {
  static std::mutex mutex;
  static const CurlApi* known = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (known != nullptr) return *known;
  void* library = nullptr;
  for (const char* name : kLibraries)
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error(ErrorCode::Unsupported, "downloads need the library libcurl, which is not installed",
                "install it: the package is libcurl4 in Debian and Ubuntu, libcurl in Fedora and Alpine, curl in Arch");
  CurlApi api{};
  bool whole = true;
  const auto find = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(library, name));
    whole = whole && function != nullptr;
  };
  find(api.global_init, "curl_global_init");
  find(api.easy_init, "curl_easy_init");
  find(api.easy_cleanup, "curl_easy_cleanup");
  find(api.easy_reset, "curl_easy_reset");
  find(api.easy_setopt, "curl_easy_setopt");
  find(api.easy_getinfo, "curl_easy_getinfo");
  find(api.easy_perform, "curl_easy_perform");
  find(api.easy_strerror, "curl_easy_strerror");
  find(api.slist_append, "curl_slist_append");
  find(api.slist_free_all, "curl_slist_free_all");
  if (!whole || api.global_init(kGlobalDefault) != 0)
    throw Error(ErrorCode::Unsupported, "the library libcurl of this machine cannot be used",
                "install libcurl 7.32 or newer: the package is libcurl4 in Debian and Ubuntu");
  return *(known = new CurlApi(api));  // never closed: it may have threads
}

// What the functions below get. No exception may pass through libcurl.
struct Transfer {
  HttpSink& sink;
  void* handle;
  const CurlApi& api;
  HttpReply reply{};
  std::size_t passed_over = 0;
  bool begun = false, stopped = false;
  std::exception_ptr thrown{};

  template <class F>
  bool kept(F&& f) {
    try {
      return f();
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
  bool is_redirect() const { return reply.status >= 300 && reply.status < 400; }
  bool begin() {
    if (std::exchange(begun, true)) return true;
    char* to = nullptr;
    if (api.easy_getinfo(handle, kRedirectUrl, &to) == 0 && to != nullptr) reply.redirect = to;
    return kept([&] { return sink.begin(reply), true; });
  }
};

// One line of the head of an answer. A proxy's answer and "100 Continue" come first, each with a status line.
std::size_t take_header(char* bytes, std::size_t size, std::size_t count, void* data) {
  auto& t = *static_cast<Transfer*>(data);
  std::string_view line(bytes, size * count);
  const bool good = t.kept([&] {
    if (line.starts_with("HTTP/")) {
      t.reply = {};
      const std::size_t at = line.find(' ');
      if (at != line.npos) std::from_chars(line.data() + at + 1, line.data() + line.size(), t.reply.status);
      return true;
    }
    const std::size_t colon = line.find(':');
    if (colon == line.npos || t.reply.headers.size() > 200) return true;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    line.remove_prefix(colon + 1);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())) != 0) line.remove_prefix(1);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.remove_suffix(1);
    t.reply.headers.insert_or_assign(std::move(name), std::string(line));
    return true;
  });
  return good ? size * count : 0;
}

std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* data) {
  auto& t = *static_cast<Transfer*>(data);
  if (t.is_redirect()) {  // libcurl knows where it leads when the answer is whole
    t.passed_over += size * count;
    t.stopped = t.passed_over > 65536;
    return t.stopped ? 0 : size * count;
  }
  if (!t.begin()) return 0;
  const bool good = t.kept([&] {
    if (t.sink.body({bytes, size * count})) return true;
    t.stopped = true;
    return false;
  });
  return good ? size * count : 0;
}

int check_stop(void* data, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
  return static_cast<Transfer*>(data)->kept([] { return StopRequest::check(), true; }) ? 0 : 1;
}

}  // namespace

struct CurlTransport::Impl {
  void* handle = nullptr;
};

CurlTransport::CurlTransport() : impl_(std::make_unique<Impl>()) {}
CurlTransport::~CurlTransport() {
  if (impl_->handle != nullptr) curl().easy_cleanup(impl_->handle);
}

std::string CurlTransport::get(const HttpRequest& request, HttpSink& sink) {
  const CurlApi& api = curl();
  if (impl_->handle == nullptr) impl_->handle = api.easy_init();
  void* const handle = impl_->handle;
  if (handle == nullptr) throw std::bad_alloc();
  api.easy_reset(handle);  // connections stay open

  struct List {
    const CurlApi& api;
    void* first = nullptr;
    ~List() { api.slist_free_all(first); }
  } list{api};
  for (const auto& [name, value] : request.headers) {
    void* const longer = api.slist_append(list.first, concat_text(name, ": ", value).c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list.first = longer;
  }
  Transfer transfer{sink, handle, api};
  std::array<char, kErrorSize> why{};
  const long seconds = request.timeout;
  bool set = true;
  const auto option = [&](int name, auto value) { set = api.easy_setopt(handle, name, value) == 0 && set; };
  option(kUrl, request.url.c_str());
  option(kProtocols, kHttpAndHttps);
  option(kHttpHeader, list.first);
  option(kUserAgent, "rlx");
  option(kNoSignal, 1L);
  option(kConnectTimeout, seconds);
  option(kLowSpeedLimit, 1L);
  option(kLowSpeedTime, seconds);
  option(kErrorBuffer, why.data());
  option(kHeaderFunction, &take_header);
  option(kHeaderData, static_cast<void*>(&transfer));
  option(kWriteFunction, &take_body);
  option(kWriteData, static_cast<void*>(&transfer));
  option(kNoProgress, 0L);
  option(kProgressFunction, &check_stop);
  option(kProgressData, static_cast<void*>(&transfer));
  if (const char* certificates = std::getenv("SSL_CERT_FILE"); certificates != nullptr && *certificates != '\0')
    option(kCaInfo, certificates);
  if (!set) return "libcurl refuses an option: it is too old, or the address is not a URL";
  const int code = api.easy_perform(handle);
  api.easy_setopt(handle, kErrorBuffer, static_cast<char*>(nullptr));
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (transfer.reply.status != 0 && !transfer.begin()) std::rethrow_exception(transfer.thrown);
  if (code == 0 || transfer.stopped) return {};
  return why[0] != '\0' ? why.data() : api.easy_strerror(code);
}

}  // namespace rlx
