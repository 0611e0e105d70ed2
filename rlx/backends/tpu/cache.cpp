// A file is a header and the plug-in's own bytes. The header has a checksum of the bytes.
#include "rlx/backends/tpu/cache.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "rlx/base/cache_folder.h"
#include "rlx/base/output_file.h"

namespace rlx::tpu {
namespace {

struct Header {
  char magic[8] = {'r', 'l', 'x', 'p', 'j', 'r', 't', '1'};
  std::uint64_t bytes = 0;
  Fingerprint key{}, checksum{};
};

constexpr std::string_view kFolder = "the folder of compiled programs";

std::string path_of(const std::string& folder, const Fingerprint& key) {
  return (std::filesystem::path(folder) / (key.text() + ".pjrt")).string();
}

// Code compiled for a CPU may use instructions that another CPU lacks.
std::string host_processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string out;
  for (std::string line; std::getline(file, line) && !line.empty();)
    if (line.starts_with("model name") || line.starts_with("flags") || line.starts_with("Features")) out += line;
  return out;
}

std::string file_identity(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return path;  // found by the loader
  return concat_text(static_cast<std::int64_t>(s.st_size), " ", static_cast<std::int64_t>(s.st_mtim.tv_sec), " ",
                     static_cast<std::int64_t>(s.st_mtim.tv_nsec));
}

void say_once(const std::string& folder, std::string_view who, const std::string& why) {
  static std::mutex mutex;
  static std::set<std::string> said;
  std::lock_guard lock(mutex);
  if (said.insert(folder).second)
    std::fprintf(stderr,
                 "note: %s: a compiled program could not be saved in %s: %s; it runs, but the next start compiles it "
                 "again. Free space there, or set RLX_TPU_CACHE to another folder\n",
                 std::string(who).c_str(), folder.c_str(), why.c_str());
}

}  // namespace

Fingerprint cache_key(const Client& client, std::string_view text, std::string_view compile_options) {
  std::string all;
  const auto add = [&all](std::string_view part) { all += concat_text(part.size(), ":", part); };
  add(client.platform());
  add(client.version());
  add(client.library().api_version());
  add(file_identity(client.library().path()));
  add(client.is_cpu() ? host_processor() : client.device_kind());
  // compilers read these variables themselves
  for (const char* flags : {"XLA_FLAGS", "LIBTPU_INIT_ARGS"}) add(setting(flags));
  add(compile_options);
  add(fingerprint_bytes(text.data(), text.size()).text());
  return fingerprint_bytes(all.data(), all.size());
}

std::optional<std::string> read_cached(const std::string& folder, const Fingerprint& key) {
  const std::string path = path_of(folder, key);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;  // reading a pipe would block
  try {
    prepare_cache_folder(folder, kFolder);
  } catch (const Error&) {
    return std::nullopt;  // write_cached says why
  }
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  Header header;
  const Header expected;
  if (!file || size < static_cast<std::streamoff>(sizeof header)) return std::nullopt;
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || !(header.key == key) ||
      header.bytes != static_cast<std::uint64_t>(size) - sizeof header)
    return std::nullopt;
  std::string bytes(header.bytes, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file || !(fingerprint_bytes(bytes.data(), bytes.size()) == header.checksum)) return std::nullopt;
  return bytes;
}

void write_cached(const std::string& folder, const Fingerprint& key, std::string_view bytes, std::string_view who) try {
  prepare_cache_folder(folder, kFolder);
  Header header;
  header.bytes = bytes.size();
  header.key = key;
  header.checksum = fingerprint_bytes(bytes.data(), bytes.size());
  const std::string_view parts[] = {{reinterpret_cast<const char*>(&header), sizeof header}, bytes};
  replace_file(path_of(folder, key), parts, OutputLinks::Replace);
} catch (const Error& e) {
  say_once(folder, who, e.diagnostic().message);
}

}  // namespace rlx::tpu
