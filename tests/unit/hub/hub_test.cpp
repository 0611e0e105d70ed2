// Pulls from a hub that fails in every way at every request: no wrong byte is kept, no token goes to another host, and
// what was interrupted continues.
#include "rlx/hub/hub.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <set>

#include "rlx/formats/mapped_file.h"
#include "rlx/hub/hub_client.h"
#include "tests/support/error_text.h"
#include "tests/support/fake_hub.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

using namespace rlx;
using namespace rlx::test;

namespace {

namespace fs = std::filesystem;

const std::string kWeights = [] {
  std::string out(20000, '\0');
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(i * 131 % 251);
  return out;
}();

void add_model(FakeHub& hub) {
  hub.add("config.json", R"({"model_type": "x"})");
  hub.add("tokenizer.json", std::string(5000, 't'), true);
  hub.add("model.safetensors", kWeights, true);
  hub.add("README.md", "not taken");
}

HubSettings settings_in(const TempDir& dir) {
  HubSettings s;
  s.endpoint = "http://127.0.0.1:80";
  s.cache = dir.file("hub");
  s.token = "hf_secret";
  s.retries = 1;
  return s;
}

const HubName kName{FakeHub::kRepo};

std::string pulled(FakeHub& hub, const HubSettings& s, const HubName& name = kName, const PullOptions& o = {}) {
  FakeTransport transport(hub);
  return pull_model(name, transport, s, o);
}

// Everything in the snapshots of the cache is a file of the hub, byte for byte.
void check_no_wrong_file(const FakeHub& hub, const HubSettings& s) {
  const fs::path snapshot = fs::path(s.cache) / "models--org--name/snapshots" / hub.commit;
  if (!fs::exists(snapshot)) return;
  for (const auto& entry : fs::recursive_directory_iterator(snapshot))
    if (entry.is_regular_file())
      CHECK(read_file(entry.path().string()) == hub.files().at(entry.path().lexically_relative(snapshot).string()));
}

void check_token_stays(const FakeHub& hub) {
  for (const HubRequest& r : hub.requests())
    CHECK(r.header("authorization") == (r.origin == "http://127.0.0.1:80" ? "Bearer hf_secret" : ""));
}

std::size_t size_of_partials(const HubSettings& s) {
  std::size_t bytes = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(fs::path(s.cache) / "models--org--name/blobs", none))
    if (entry.path().extension() == ".partial") bytes += fs::file_size(entry.path());
  return bytes;
}

}  // namespace

TEST_CASE("hub: a model is pulled once, in the layout of Hugging Face's cache") {
  const TempDir dir;
  FakeHub hub;
  add_model(hub);
  const HubSettings s = settings_in(dir);
  CHECK_FALSE(cached_model(kName, s));
  std::uint64_t last = 0, total = 0;
  PullOptions o;
  o.progress = [&](std::uint64_t done, std::uint64_t all) {
    CHECK(done >= last);
    last = done, total = all;
  };
  const std::string path = pulled(hub, s, kName, o);
  CHECK(last == total);
  CHECK(total == hub.files().at("config.json").size() + 25000);
  CHECK(path == dir.file("hub/models--org--name/snapshots/" + hub.commit));
  CHECK(read_file(path + "/model.safetensors") == kWeights);
  CHECK_FALSE(fs::exists(path + "/README.md"));
  CHECK(fs::read_symlink(path + "/config.json") == "../../blobs/" + hub.checksum("config.json"));
  CHECK(read_file(dir.file("hub/models--org--name/refs/main")) == hub.commit);
  check_token_stays(hub);
  CHECK(hub.requests().size() == 6);  // the list, a small file, two large ones with a redirect each
  CHECK(cached_model(kName, s) == path);
  CHECK_FALSE(cached_model({FakeHub::kRepo, "other"}, s));
  // Again: only the list is asked for. A new commit takes what is new.
  hub.forget_requests();
  CHECK(pulled(hub, s) == path);
  CHECK(hub.requests().size() == 1);
  hub.commit.back() = '2';
  hub.add("config.json", "{}");
  hub.forget_requests();
  const std::string newer = pulled(hub, s);
  CHECK(newer != path);
  CHECK(hub.requests().size() == 2);
  CHECK(cached_model(kName, s) == newer);
  CHECK(cached_model({FakeHub::kRepo, std::string(39, '0') + "1"}, s) == path);
  check_no_wrong_file(hub, s);
}

TEST_CASE("hub: every fault at every request ends in the right files or in an error, and the next pull mends it") {
  struct Fault {
    std::string name;
    std::function<HubReply(HubReply)> change;
  };
  const auto cut = [](double share) {
    return [share](HubReply r) {
      r.cut = static_cast<std::size_t>(static_cast<double>(r.body.size()) * share);
      return r;
    };
  };
  const auto status = [](int code, const char* after = nullptr) {
    return [code, after](HubReply) {
      HubReply r{code, {}, "<html>error</html>"};
      if (after != nullptr) r.headers.emplace_back("Retry-After", after);
      return r;
    };
  };
  const auto redirect = [](const char* to) { return [to](HubReply) { return HubReply{302, {{"Location", to}}, ""}; }; };
  const std::vector<Fault> faults = {
      {"cut at once", cut(0)},
      {"cut in the middle", cut(0.5)},
      {"cut near the end", cut(0.999)},
      {"no connection",
       [](HubReply r) {
         r.silent = true;
         return r;
       }},
      {"a wrong byte",
       [](HubReply r) {
         if (!r.body.empty()) r.body[r.body.size() / 2] ^= 4;
         return r;
       }},
      {"too short", [](HubReply r) { return r.body.resize(r.body.size() / 3), r; }},
      {"too long", [](HubReply r) { return r.body += std::string(5000, 'x'), r; }},
      {"a page",
       [](HubReply) {
         return HubReply{200, {{"Content-Type", "text/html"}}, "<html>log in</html>"};
       }},
      {"nothing",
       [](HubReply) {
         return HubReply{200, {}, ""};
       }},
      {"wrong part",
       [](HubReply r) {
         return HubReply{206, {{"Content-Range", "bytes 3-9/10"}}, r.body.substr(0, 7)};
       }},
      {"a part without a range", [](HubReply r) { return r.status = 206, r.headers.clear(), r; }},
      {"redirect to http", redirect("http://evil.example/x")},
      {"redirect to a file", redirect("file:///etc/passwd")},
      {"redirect to a user", redirect("http://127.0.0.1:80@evil.example/")},
      {"redirect to itself", redirect("/again")},
      {"redirect to nowhere",
       [](HubReply) {
         return HubReply{302, {}, ""};
       }},
      {"204", status(204)},
      {"304", status(304)},
      {"400", status(400)},
      {"401", status(401)},
      {"403", status(403)},
      {"404", status(404)},
      {"408", status(408)},
      {"416", status(416)},
      {"429", status(429)},
      {"429, soon", status(429, "0")},
      {"429, in an hour", status(429, "3600")},
      {"500", status(500)},
      {"503, no number", status(503, "Wed, 21 Oct 2015 07:28:00 GMT")},
  };
  int tried = 0, failed = 0, mended = 0;
  Share share(3);
  for (const Fault& fault : faults)
    for (std::size_t at = 1; at <= 6; ++at)
      for (const bool lasting : {false, true}) {
        if (!share.next()) continue;
        ++tried;
        CAPTURE(fault.name);
        CAPTURE(at);
        CAPTURE(lasting);
        const TempDir dir;
        FakeHub hub;
        add_model(hub);
        const HubSettings s = settings_in(dir);
        hub.special = [&](const HubRequest& r, std::size_t count) -> std::optional<HubReply> {
          if (r.path == "/again") return HubReply{302, {{"Location", "/again"}}, ""};
          if (lasting ? count < at : count != at) return std::nullopt;
          return fault.change(hub.usual(r));
        };
        const std::string error = error_text([&] { (void)pulled(hub, s); });
        failed += !error.empty();
        if (lasting && error.empty()) CHECK_FALSE(fault.name.starts_with("redirect"));
        CHECK_FALSE(contains(error, "hf_secret"));
        CHECK_FALSE(contains(error, "internal"));
        check_token_stays(hub);
        check_no_wrong_file(hub, s);
        CHECK(hub.requests().size() < 80);
        hub.special = nullptr;
        const std::string path = pulled(hub, s);
        mended += !error.empty();
        CHECK(read_file(path + "/model.safetensors") == kWeights);
        check_no_wrong_file(hub, s);
        CHECK(size_of_partials(s) == 0);
      }
  CHECK(3 * failed > tried);
  CHECK(mended == failed);
}

TEST_CASE("hub: a cut download continues where it ended, in this pull and in the next") {
  const TempDir dir;
  FakeHub hub;
  add_model(hub);
  HubSettings s = settings_in(dir);
  std::vector<std::string> ranges;
  const auto cut_weights = [&](const HubRequest& r, std::size_t) -> std::optional<HubReply> {
    if (r.path != "/large/model.safetensors") return std::nullopt;
    ranges.push_back(r.header("range"));
    HubReply reply = hub.usual(r);
    reply.cut = 7000;
    return reply;
  };
  hub.special = cut_weights;
  CHECK(read_file(pulled(hub, s) + "/model.safetensors") == kWeights);
  CHECK(ranges == std::vector<std::string>{"", "bytes=7000-", "bytes=14000-"});

  const TempDir other;
  s = settings_in(other);
  s.retries = 0;
  ranges.clear();
  hub.special = [&](const HubRequest& r, std::size_t n) {
    auto reply = cut_weights(r, n);
    if (reply && ranges.size() > 1) reply->cut = 0;
    return reply;
  };
  CHECK(contains(error_text([&] { (void)pulled(hub, s); }),
                 "broke for \"model.safetensors\": the connection ended early\n  hint: run the same command again"));
  CHECK(size_of_partials(s) == 7000);
  CHECK_FALSE(cached_model(kName, s));
  hub.special = nullptr;
  hub.forget_requests();
  CHECK(read_file(pulled(hub, s) + "/model.safetensors") == kWeights);
  CHECK(hub.requests().back().header("range") == "bytes=7000-");
  CHECK(size_of_partials(s) == 0);
}

TEST_CASE("hub: what an earlier attempt left is not believed") {
  for (const bool ranges : {true, false})
    for (const std::size_t left : {1, 6000, 20000, 30000})
      for (const bool damaged : {false, true}) {
        CAPTURE(left);
        CAPTURE(damaged);
        const TempDir dir;
        FakeHub hub;
        add_model(hub);
        hub.ranges = ranges;
        const HubSettings s = settings_in(dir);
        std::string old = (kWeights + kWeights).substr(0, left);
        if (damaged) old[left / 2] ^= 1;
        dir.write("hub/models--org--name/blobs/" + hub.checksum("model.safetensors") + ".rlx.partial", old);
        CHECK(read_file(pulled(hub, s) + "/model.safetensors") == kWeights);
        CHECK(size_of_partials(s) == 0);
      }
  // A file of the cache that is damaged: its length is checked always, its bytes when asked.
  const TempDir dir;
  FakeHub hub;
  add_model(hub);
  const HubSettings s = settings_in(dir);
  const std::string path = pulled(hub, s);
  const std::string blob = "hub/models--org--name/blobs/" + hub.checksum("model.safetensors");
  dir.write(blob, "short");
  CHECK(read_file(pulled(hub, s) + "/model.safetensors") == kWeights);
  dir.write(blob, std::string(kWeights.size(), 'x'));
  CHECK(read_file(pulled(hub, s) + "/model.safetensors") != kWeights);
  PullOptions verify;
  verify.verify = true;
  CHECK(read_file(pulled(hub, s, kName, verify) + "/model.safetensors") == kWeights);
}

TEST_CASE("hub: nothing is written through a link, and no folder of others is used") {
  const TempDir dir;
  FakeHub hub;
  add_model(hub);
  const HubSettings s = settings_in(dir);
  const std::string victim = dir.write("victim", "mine"), model = dir.file("hub/models--org--name");
  for (const std::string& name : {concat_text("blobs/", hub.checksum("config.json")),
                                  concat_text("snapshots/", hub.commit, "/config.json"), std::string("refs/main")}) {
    fs::create_directories(fs::path(model + "/" + name).parent_path());
    fs::create_symlink(victim, model + "/" + name);
  }
  CHECK(read_file(pulled(hub, s) + "/config.json") == hub.files().at("config.json"));
  CHECK(read_file(victim) == "mine");
  fs::create_directories(dir.file("open"));
  fs::permissions(dir.file("open"), fs::perms::all);
  HubSettings open = s;
  open.cache = dir.file("open");
  CHECK(contains(error_text([&] { (void)pulled(hub, open); }), "every user may write to it"));
  // A partial file that is a link.
  const TempDir third;
  const HubSettings t = settings_in(third);
  const std::string mine = third.write("victim", "mine"), blobs = third.file("hub/models--org--name/blobs/");
  fs::create_directories(blobs);
  fs::create_symlink(mine, blobs + hub.checksum("config.json") + ".rlx.partial");
  CHECK(contains(error_text([&] { (void)pulled(hub, t); }), "cannot write"));
  CHECK(read_file(mine) == "mine");
}

TEST_CASE("hub: which addresses may be asked, and which get the token") {
  const char* hub = "https://hub.example:8443/path";
  for (const char* url : {"https://hub.example:8443", "https://hub.example:8443/", "HTTPS://Hub.Example:8443/a?b",
                          "https://hub.example:8443?x"})
    CHECK(is_same_origin(url, hub));
  for (const char* url :
       {"https://hub.example", "https://hub.example:84430/", "https://hub.example:8443.evil.example/",
        "https://hub.example:8443@evil.example/", "http://hub.example:8443/", "https://evil.example/hub.example:8443",
        "https://sub.hub.example:8443/", "https://hub.example:8443\\@evil.example/", "", "https://"})
    CHECK_FALSE(is_same_origin(url, hub));
  for (const char* url : {"https://a", "https://a:1/b", "https://[::1]/x"}) CHECK(is_allowed_url(url, false));
  for (const char* url : {"http://127.0.0.1:80/", "http://localhost/x", "http://[::1]:5/"}) {
    CHECK(is_allowed_url(url, true));
    CHECK_FALSE(is_allowed_url(url, false));
  }
  for (const char* url :
       {"http://a/", "ftp://localhost/", "file:///etc", "http://127.0.0.1.evil.example/", "http://localhost@evil/",
        "http://localhost.evil/", "https://", "x", "http://127.x/", "https://user@host/", "http://[::1/"})
    CHECK_FALSE(is_allowed_url(url, true));
}

TEST_CASE("hub: errors say what to do") {
  const TempDir dir;
  FakeHub hub;
  add_model(hub);
  HubSettings s = settings_in(dir);
  const auto failing = [&](HubReply reply, const HubSettings& with) {
    hub.special = [reply](const HubRequest&, std::size_t) { return reply; };
    return error_text([&] { (void)pulled(hub, with); });
  };
  HubSettings open = s;
  open.token.clear();
  HubReply silent;
  silent.silent = true;
  const std::string unreachable = failing(silent, s);
  CHECK(contains(unreachable, "cannot reach http://127.0.0.1:80 for the model \"org/name\": Could not connect"));
  CHECK(contains(unreachable, "hint: without a network, give the path of a model on this machine, or run `rlx pull "));
  CHECK(contains(unreachable, "HF_ENDPOINT names a mirror, https_proxy a proxy"));
  CHECK(contains(failing({401, {{"X-Error-Code", "RepoNotFound"}}, ""}, open),
                 "there is no model \"org/name\" at http://127.0.0.1:80, or it is private\n  hint: check the name; a "
                 "private model needs HF_TOKEN"));
  CHECK(contains(failing({404, {{"X-Error-Code", "RepoNotFound"}}, ""}, s), "whether the token may read it"));
  CHECK(contains(failing({401, {}, ""}, s), "does not accept the token"));
  CHECK(contains(failing({403, {{"X-Error-Code", "GatedRepo"}}, ""}, s), "accept its terms, and set HF_TOKEN"));
  CHECK(contains(failing({404, {{"X-Error-Code", "RevisionNotFound"}}, ""}, s), "has no revision \"main\""));
  CHECK(contains(failing({403, {{"X-Error-Message", "Access\x1b[31m disabled"}}, ""}, s),
                 "with status 403: Access\\x1b[31m disabled"));
  CHECK(contains(failing({429, {{"Retry-After", "120"}}, ""}, open),
                 "try again in 120 seconds; with HF_TOKEN the limit is higher"));
  s.offline = true;
  CHECK(contains(error_text([&] { (void)pulled(hub, s); }), "HF_HUB_OFFLINE forbids to download it"));
  s = settings_in(dir);
  for (const char* endpoint : {"http://hub.example", "hub.example", "ftp://hub", "https://", "https://a b",
                               "https://user:pass@hub", "https://hub?x", ""}) {
    s.endpoint = endpoint;
    CHECK(contains(error_text([&] { (void)pulled(hub, s); }), "is not the address of a hub"));
  }
  s = settings_in(dir);
  s.token = "hf_a\r\nX-Other: 1";
  const std::string bad_token = error_text([&] { (void)pulled(hub, s); });
  CHECK(contains(bad_token, "HF_TOKEN has characters that no token has"));
  CHECK_FALSE(contains(bad_token, "hf_a"));
  for (const char* repo : {"../x", "a/b/c", ""})
    CHECK(contains(error_text([&] { (void)pulled(hub, settings_in(dir), {repo}); }), "is not the name of a model"));
}

TEST_CASE("hub: shards of an index, GGUF files by type, and a list without end") {
  const TempDir dir;
  FakeHub hub;
  hub.add("config.json", "{}");
  hub.add("model.safetensors.index.json", R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  hub.add("m-1.safetensors", "one", true);
  hub.add("m-2.safetensors", "two", true);
  hub.add("other.safetensors", "not taken", true);
  hub.add("q/n-Q4_0.gguf", "small", true);
  hub.add("q/n-Q8_0.gguf", "large", true);
  const HubSettings s = settings_in(dir);
  const std::string path = pulled(hub, s);
  CHECK(read_file(path + "/m-2.safetensors") == "two");
  CHECK_FALSE(fs::exists(path + "/other.safetensors"));
  CHECK(cached_model(kName, s) == path);
  fs::remove(path + "/m-2.safetensors");
  CHECK_FALSE(cached_model(kName, s));  // a part is missing
  CHECK(pulled(hub, s) == path);
  const HubName q8{FakeHub::kRepo, "main", "Q8_0"};
  CHECK_FALSE(cached_model(q8, s));
  const std::string file = pulled(hub, s, q8);
  CHECK(file == path + "/q/n-Q8_0.gguf");
  CHECK(read_file(file) == "large");
  CHECK(cached_model(q8, s) == file);
  hub.add("model.safetensors.index.json", R"({"weight_map": {"a": "m-3.safetensors"}})");
  CHECK(contains(error_text([&] { (void)pulled(hub, s); }), "has no file \"m-3.safetensors\", which its index names"));
  hub.special = [](const HubRequest&, std::size_t) { return HubReply{200, {}, std::string((64 << 20) + 1, ' ')}; };
  FakeTransport large(hub, 1 << 20);
  CHECK(contains(error_text([&] { (void)pull_model(kName, large, s); }), "has more than 67.1 MB"));
}
