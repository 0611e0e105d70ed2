// Every function that writes a file, on a full disk and where a limit stops it: the old file stays as it was.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "rlx/base/output_file.h"
#include "rlx/base/trace.h"
#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/npy.h"
#include "rlx/formats/safetensors.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

// A process that may not write files of more than `bytes`.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &was_) == 0);
    const struct rlimit now {
      bytes, was_.rlim_max
    };
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &now) == 0);
  }
  ~FileLimit() {
    (void)::setrlimit(RLIMIT_FSIZE, &was_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  struct rlimit was_ {};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("writers: a file that cannot be written whole leaves the old one, and no other") {
  const Tensor t = Tensor::zeros(Shape({Dim(300), Dim(300)}, DType::F32));  // more than one buffer of a writer
  const NamedTensor named[] = {{"t", t}};
  const std::map<std::string, std::function<void(const std::string&)>> writers = {
      {"npy", [&](const std::string& path) { write_npy(path, t); }},
      {"npz", [&](const std::string& path) { write_npz(path, named); }},
      {"safetensors", [&](const std::string& path) { write_safetensors(path, named); }},
      {"gguf",
       [&](const std::string& path) {
         GgufWriter w(path);
         const std::int64_t dims[] = {300, 300};
         w.add_tensor("t", GgufType::F32, dims);
         w.begin();
         w.write(std::as_bytes(std::span(static_cast<const std::byte*>(t.data()), t.size_bytes())));
         w.commit();
       }},
      {"text", [&](const std::string& path) { write_file(path, std::string(100000, 'x')); }},
      {"trace",
       [&](const std::string& path) {
         Trace trace(path);
         const std::uint32_t name = trace.name("test", "step", "");
         for (int i = 0; i < 5000; ++i) trace.record(name, i, i + 1, 0);
         trace.flush();
       }},
  };
  for (const auto& writer : writers) {
    const std::string& what = writer.first;
    const auto& write = writer.second;
    CAPTURE(what);
    const test::TempDir folder;
    const std::string path = folder.write("file", "old");
    for (const rlim_t bytes : {0, 1, 4096, 65536 - 1}) {
      CAPTURE(bytes);
      std::string refused;
      {
        const FileLimit limit(bytes);
        refused = error_text([&] { write(path); });
      }
      CHECK(contains(refused, path));
      CHECK(contains(refused, "File too large"));
      CHECK(read_file(path) == "old");
      CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
    }
    CHECK(contains(error_text([&] { write("/dev/full"); }), "No space left"));
    CHECK(contains(error_text([&] { write(folder.file("none/file")); }), "No such file"));
    write(path);
    CHECK(read_file(path).size() > 3);
  }
}

}  // namespace rlx
