// Speed of loading a tokenizer and of encoding, in CPU time of one thread.
// usage: tokenizer TOKENIZER TEXT_FILE [SECONDS]; TOKENIZER is a model folder, a tokenizer.json or a GGUF file
// Prints one line: load ms; MB/s for the whole text, for its lines, and for decoding; tokens. bench/tokenizers runs it
// beside the Python package `tokenizers`.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/before.h"
#include "rlx/error.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/text/tokenizer.h"

namespace {

// CPU time, since other programs may share the machine.
double seconds_since(std::clock_t start) { return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC; }

std::unique_ptr<rlx::Tokenizer> load(const std::string& path) {
  const std::string_view view = path;
  if (view.ends_with(".json")) return rlx::tokenizer_from_json(rlx::JsonDocument::read(path));
  if (view.ends_with(".gguf")) return rlx::tokenizer_from_gguf(*rlx::GgufFile::open(path));
  return rlx::load_tokenizer(path);
}

// The smallest time of a call, repeated for some seconds.
template <class Work>
double best_of(double seconds, const Work& work) {
  double best = 1e30;
  const std::clock_t start = std::clock();
  do {
    const std::clock_t begin = std::clock();
    work();
    best = std::min(best, seconds_since(begin));
  } while (seconds_since(start) < seconds);
  return best;
}

}  // namespace

int main(int argc, char** argv) try {
  compare_before_if_asked(argc, argv);
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: tokenizer TOKENIZER TEXT_FILE [SECONDS]\n");
    return 2;
  }
  const double seconds = argc == 4 ? std::atof(argv[3]) : 1.0;
  std::unique_ptr<rlx::Tokenizer> tokenizer;
  const double load_seconds = best_of(seconds, [&] { tokenizer = load(argv[1]); });
  const std::string text = rlx::read_file(argv[2]);
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(std::string_view(text).substr(at, end - at));
    at = end + 1;
  }
  std::vector<rlx::TokenId> ids;
  const double whole = best_of(seconds, [&] { ids = tokenizer->encode(text); });
  std::size_t num_line_tokens = 0;
  const double by_line = best_of(seconds, [&] {
    num_line_tokens = 0;
    for (const std::string_view line : lines) num_line_tokens += tokenizer->encode(line).size();
  });
  const double decoding = best_of(seconds, [&] { (void)tokenizer->decode(ids); });
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  std::printf("load %.1f ms, whole %.2f MB/s, lines %.2f MB/s, decode %.2f MB/s, %zu tokens, %zu by lines\n",
              load_seconds * 1e3, megabytes / whole, megabytes / by_line, megabytes / decoding, ids.size(),
              num_line_tokens);
  return 0;
} catch (const rlx::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
