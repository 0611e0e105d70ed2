// Every request of a pull. What comes back is not trusted: neither where it leads, nor its length, nor its bytes.
#include "rlx/hub/hub_client.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <fstream>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "rlx/base/output_file.h"
#include "rlx/base/printable.h"
#include "rlx/base/stop_request.h"
#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/hub/digest.h"

namespace rlx {
namespace {

constexpr std::size_t kMostListingBytes = 64 << 20;
constexpr int kMostRedirects = 10;
constexpr int kMostWaitSeconds = 60;
constexpr std::string_view kPartialKey = "rlx";  // the partial file is PATH.rlx.partial

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host == "[::1]") return true;
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos;
}

// The host of a URL without user and password; "" for one with them.
std::string_view host_of(std::string_view url) {
  const std::size_t begin = url.find("://");
  if (begin == url.npos) return {};
  std::string_view rest = url.substr(begin + 3);
  rest = rest.substr(0, rest.find_first_of("/?#\\"));
  if (rest.find('@') != rest.npos) return {};
  if (rest.starts_with("[")) return rest.substr(0, std::min(rest.find(']'), rest.size() - 1) + 1);
  return rest.substr(0, rest.find(':'));
}

std::string encoded(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x80 && std::isalnum(byte) != 0) || c == '-' || c == '_' || c == '.' || c == '~' ||
        (c == '/' && keep_slashes)) {
      out += c;
    } else {
      out += '%';
      out += "0123456789ABCDEF"[byte >> 4];
      out += "0123456789ABCDEF"[byte & 15];
    }
  }
  return out;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t v = 0;
  const auto [at, failed] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (failed != std::errc() || at != text.data() + text.size() || text.empty()) return std::nullopt;
  return v;
}

// Whether "bytes 5-9/10" says that a body continues at `start` a file of `size` bytes.
bool continues_at(std::string_view content_range, std::uint64_t start, std::uint64_t size) {
  return content_range.starts_with(concat_text("bytes ", start, "-")) &&
         content_range.ends_with(concat_text("/", size));
}

void check_endpoint(const std::string& endpoint) {
  const std::string_view host = host_of(endpoint);
  const bool clean = std::all_of(endpoint.begin(), endpoint.end(), [](char c) { return c > ' ' && c < 0x7f; }) &&
                     endpoint.find_first_of("?#\\@") == endpoint.npos && !host.empty();
  if (!clean || !is_allowed_url(endpoint, true))
    throw Error(ErrorCode::InvalidArgument,
                concat_text("HF_ENDPOINT = '", printable(endpoint, 80), "' is not the address of a hub"),
                "it begins with https://, or with http:// for a server on this machine");
}

void check_token(const std::string& token) {
  if (!std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; }))
    throw Error(ErrorCode::InvalidArgument, "HF_TOKEN has characters that no token has",
                "copy the token again, or unset HF_TOKEN");
}

void sleep_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    StopRequest::check();
    std::this_thread::sleep_for(std::min(time, std::chrono::milliseconds(50)));
  }
}

}  // namespace

bool is_same_origin(std::string_view url, std::string_view endpoint) {
  const std::size_t scheme = endpoint.find("://");
  const std::size_t end = std::min(endpoint.find('/', scheme + 3), endpoint.size());
  if (scheme == endpoint.npos || url.size() < end) return false;
  for (std::size_t i = 0; i < end; ++i)
    if (std::tolower(static_cast<unsigned char>(url[i])) != std::tolower(static_cast<unsigned char>(endpoint[i])))
      return false;
  // Anything else after the host could be another host: "https://hub.example@other", "https://hub.example.other".
  return url.size() == end || url[end] == '/' || url[end] == '?' || url[end] == '#';
}

bool is_allowed_url(std::string_view url, bool loopback) {
  if (host_of(url).empty()) return false;
  return url.starts_with("https://") || (loopback && url.starts_with("http://") && is_loopback(host_of(url)));
}

// Counts failures in a row, and waits before the next attempt.
class HubClient::Attempts {
 public:
  Attempts(HubClient& client, std::string what) : client_(client), what_(std::move(what)) {}

  /// After a request that did not give all. Throws when another one makes no sense.
  void failed(const Outcome& o, bool progress) {
    if (!o.failure.empty() && !client_.reached_) client_.fail_unreachable(o.failure);
    const int status = o.reply.status;
    const bool refused = o.failure.empty() && !(status >= 200 && status < 300);
    const bool for_now = status == 408 || status == 429 || status >= 500;
    if (refused && !for_now) client_.fail_status(o.reply, what_);
    if (progress) count_ = 0;
    const std::uint64_t asked = refused ? whole_number(o.reply.header("retry-after")).value_or(0) : 0;
    if (count_++ >= client_.settings_.retries || asked > kMostWaitSeconds) {
      if (refused) client_.fail_status(o.reply, what_);
      throw Error(ErrorCode::NotFound,
                  concat_text("the connection to ", client_.settings_.endpoint, " broke for ", what_, ": ",
                              printable(o.failure, 200)),
                  "run the same command again: it continues where this one ended");
    }
    const auto wait = std::chrono::milliseconds(std::min(100 << std::min(count_ - 1, 7), 10000));
    sleep_for(std::max(wait, std::chrono::milliseconds(asked * 1000)));
  }

 private:
  HubClient& client_;
  std::string what_;
  int count_ = 0;
};

HubClient::HubClient(const HubName& name, HttpTransport& transport, const HubSettings& settings,
                     const PullOptions& options)
    : name_(name), transport_(transport), settings_(settings), options_(options) {
  while (settings_.endpoint.ends_with("/")) settings_.endpoint.pop_back();
  check_endpoint(settings_.endpoint);
  check_token(settings_.token);
}

void HubClient::fail_unreachable(const std::string& why) const {
  throw Error(
      ErrorCode::NotFound,
      concat_text("cannot reach ", settings_.endpoint, " for the model \"", name_.text(), "\": ", printable(why, 300)),
      concat_text("without a network, give the path of a model on this machine, or run `rlx pull ", name_.text(),
                  "` on another one and copy its folder in ", settings_.cache,
                  " to the same place here; HF_ENDPOINT names a mirror, https_proxy a proxy"));
}

void HubClient::fail_status(const HttpReply& reply, const std::string& what) const {
  const std::string_view code = reply.header("x-error-code");
  const std::string page = concat_text(settings_.endpoint, "/", name_.repo);
  const bool with_token = !settings_.token.empty();
  if (code == "GatedRepo")
    throw Error(
        ErrorCode::NotFound, concat_text("the model \"", name_.repo, "\" is gated"),
        concat_text("open ", page, " in a browser, accept its terms, and set HF_TOKEN to a token of that account"));
  if (code == "RevisionNotFound")
    throw Error(ErrorCode::NotFound,
                concat_text("the model \"", name_.repo, "\" has no revision \"", name_.revision, "\""),
                concat_text("see ", page, "/tree/main for its branches and tags"));
  if (reply.status == 401 && with_token && code != "RepoNotFound")
    throw Error(ErrorCode::NotFound, concat_text(settings_.endpoint, " does not accept the token"),
                concat_text("set HF_TOKEN to a valid one (", settings_.endpoint, "/settings/tokens), or unset it"));
  if (reply.status == 401 || (reply.status == 404 && code != "EntryNotFound"))
    throw Error(ErrorCode::NotFound,
                concat_text("there is no model \"", name_.repo, "\" at ", settings_.endpoint, ", or it is private"),
                with_token ? "check the name, and whether the token may read it"
                           : "check the name; a private model needs HF_TOKEN");
  if (reply.status == 429) {
    const auto after = whole_number(reply.header("retry-after"));
    throw Error(ErrorCode::NotFound, concat_text(settings_.endpoint, " got too many requests (status 429)"),
                concat_text("try again ", after ? concat_text("in ", *after, " seconds") : "later",
                            with_token ? "" : "; with HF_TOKEN the limit is higher"));
  }
  const std::string_view said = reply.header("x-error-message");
  throw Error(ErrorCode::NotFound,
              concat_text(settings_.endpoint, " answered the request for ", what, " with status ", reply.status,
                          said.empty() ? "" : concat_text(": ", printable(said, 200))),
              reply.status >= 500 ? "try again later" : concat_text("see ", page));
}

HubClient::Outcome HubClient::get(std::string url, const Headers& headers,
                                  const std::function<bool(const HttpReply&)>& begin,
                                  const std::function<bool(std::string_view)>& body) {
  // Bodies of redirects and of errors are read, so that the connection serves the next request, but not without limit.
  struct Sink : HttpSink {
    const std::function<bool(const HttpReply&)>& on_begin;
    const std::function<bool(std::string_view)>& on_body;
    HttpReply reply{};
    bool wanted = false;
    std::uint64_t got = 0;
    Sink(const std::function<bool(const HttpReply&)>& b, const std::function<bool(std::string_view)>& c)
        : on_begin(b), on_body(c) {}
    void begin(const HttpReply& r) override {
      reply = r;
      wanted = r.status >= 200 && r.status < 300 && on_begin(r);
    }
    bool body(std::string_view bytes) override {
      got += bytes.size();
      return wanted ? on_body(bytes) : got < 65536;
    }
  };
  const bool loopback = url.starts_with("http://");
  bool trusted = true;
  for (int i = 0; i <= kMostRedirects; ++i) {
    StopRequest::check();
    trusted = trusted && is_same_origin(url, settings_.endpoint);
    HttpRequest request{url, headers, settings_.timeout};
    if (trusted && !settings_.token.empty())
      request.headers.emplace_back("Authorization", concat_text("Bearer ", settings_.token));
    Sink sink(begin, body);
    std::string failure = transport_.get(request, sink);
    if (sink.reply.status != 0) reached_ = true;
    const int status = sink.reply.status;
    const bool redirect = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
    if (!redirect || sink.reply.redirect.empty()) {
      if (failure.empty() && status == 0) failure = "no answer";
      const auto length = whole_number(sink.reply.header("content-length"));
      if (failure.empty() && sink.wanted && length && sink.got < *length)
        failure = concat_text("the answer ended after ", sink.got, " of ", *length, " bytes");
      return {std::move(sink.reply), std::move(failure)};
    }
    url = sink.reply.redirect;
    if (!is_allowed_url(url, loopback))
      throw Error(ErrorCode::BadFile,
                  concat_text(settings_.endpoint, " redirects to ", printable(url, 100), ", which is not https"),
                  "HF_ENDPOINT must name a hub that you trust");
  }
  throw Error(ErrorCode::BadFile, concat_text(settings_.endpoint, " redirects without end"),
              "HF_ENDPOINT must name a hub");
}

HubListing HubClient::list() {
  const std::string url = concat_text(settings_.endpoint, "/api/models/", name_.repo, "/revision/",
                                      encoded(name_.revision, false), "?blobs=true");
  const std::string what = concat_text("the list of files of \"", name_.repo, "\"");
  std::string text;
  for (Attempts attempts(*this, what);;) {
    text.clear();
    bool too_long = false;
    const Outcome o = get(
        url, {{"Accept", "application/json"}}, [](const HttpReply&) { return true; },
        [&](std::string_view bytes) {
          too_long = text.size() + bytes.size() > kMostListingBytes;
          if (!too_long) text += bytes;
          return !too_long;
        });
    if (too_long)
      throw Error(ErrorCode::BadFile, concat_text(what, " has more than ", size_text(kMostListingBytes)),
                  "HF_ENDPOINT must name a hub");
    if (o.failure.empty() && o.reply.status == 200) break;
    attempts.failed(o, false);
  }
  HubListing listing = parse_listing(text, what);
  if (is_hex(name_.revision, 40) && listing.commit != name_.revision)
    throw Error(ErrorCode::BadFile, concat_text(what, " is of commit ", listing.commit, ", not of ", name_.revision));
  return listing;
}

void HubClient::download(const HubFile& file, const std::string& commit, const std::string& path,
                         const std::function<void(std::uint64_t)>& progress) {
  const std::string url =
      concat_text(settings_.endpoint, "/", name_.repo, "/resolve/", commit, "/", encoded(file.path, true));
  const std::string partial = concat_text(path, ".", kPartialKey, ".partial");
  const std::string what = concat_text("\"", file.path, "\"");
  Digest sum = file_digest(file.checksum.size(), file.size);
  std::uint64_t done = 0;
  // The sum of what an earlier attempt left.
  if (std::ifstream old(partial, std::ios::binary); old) {
    std::string block(1 << 20, '\0');
    while (old.read(block.data(), static_cast<std::streamsize>(block.size())), old.gcount() > 0) {
      StopRequest::check();
      sum.add(std::string_view(block).substr(0, static_cast<std::size_t>(old.gcount())));
      done += static_cast<std::uint64_t>(old.gcount());
    }
  }
  const auto start_over = [&] {
    sum = file_digest(file.checksum.size(), file.size);
    done = 0;
  };
  bool resumed = done > 0;
  std::uint64_t most = 0;  // bytes that were ever there: more of them is progress
  int restarts = 0;
  if (done > file.size) start_over();
  Attempts attempts(*this, what);
  while (true) {
    OutputFile out(path, kPartialKey);
    const auto keep = [&] {
      const std::array<OutputFile::Extent, 1> have = {{{0, static_cast<std::size_t>(done)}}};
      if (out.keep_whole("", std::span(have).first(done > 0 ? 1 : 0)) == 0) start_over();
    };
    keep();
    progress(done);
    most = std::max(most, done);
    const std::uint64_t before = done;
    Outcome o;
    bool too_long = false;
    if (done < file.size) {
      Headers headers;
      if (done > 0) headers.emplace_back("Range", concat_text("bytes=", done, "-"));
      o = get(
          url, headers,
          [&](const HttpReply& r) {
            // A server that does not know ranges, or a part of something else: from the start.
            if (done > 0 && !(r.status == 206 && continues_at(r.header("content-range"), done, file.size))) {
              if (r.status == 206) return false;
              start_over();
              keep();
            }
            return r.status == 200 || r.status == 206;
          },
          [&](std::string_view bytes) {
            too_long = bytes.size() > file.size - done;
            if (too_long) return false;
            out.write(bytes);
            sum.add(bytes);
            done += bytes.size();
            progress(done);
            return true;
          });
    }
    if (too_long)
      throw Error(ErrorCode::BadFile,
                  concat_text(what, " is longer than the ", file.size, " bytes that ", settings_.endpoint, " lists"),
                  concat_text("delete \"", partial, "\" and try again; a mirror may be out of date"));
    if (done == file.size) {
      if (sum.finish() == file.checksum) return out.commit();
      start_over();
      keep();
      if (!std::exchange(resumed, false))
        throw Error(ErrorCode::BadFile, concat_text(what, " has another checksum than ", settings_.endpoint, " lists"),
                    "it was damaged on its way: try again; if it happens again, the mirror or proxy is at fault");
      if (options_.note)
        options_.note(concat_text(file.path, ": what an earlier attempt left was damaged; it starts over"));
      continue;
    }
    // The server has not what the partial file continues.
    const int status = o.reply.status;
    if (before > 0 && o.failure.empty() && (status == 416 || (status == 206 && done == before)) && restarts++ < 3) {
      start_over();
      keep();
      resumed = false;
      continue;
    }
    if (o.failure.empty() && status >= 200 && status < 300)
      o.failure = concat_text("the answer ended after ", done, " of ", file.size, " bytes");
    attempts.failed(o, done > most);
  }
}

}  // namespace rlx
