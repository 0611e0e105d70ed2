// Random driver for a fuzz target where libFuzzer is not used: replays a corpus, then mutates it until time is up.
// usage: fuzz_NAME [--seconds N] [--seed N] [--corpus DIR] [FILE...]   (files are replayed once, without mutation)
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Bytes = std::vector<std::uint8_t>;

// The input being tried, reachable from the abort handler.
const Bytes* current_input = nullptr;

Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void save_current_input() {
  if (current_input == nullptr) return;
  std::FILE* file = std::fopen("fuzz_failure.bin", "wb");
  if (file == nullptr) return;
  std::fwrite(current_input->data(), 1, current_input->size(), file);
  std::fclose(file);
  std::fputs("the failing input is in fuzz_failure.bin\n", stderr);
}

void on_fatal_signal(int signal) {
  std::signal(signal, SIG_DFL);
  save_current_input();
  std::raise(signal);
}

// A sanitizer ends the process without exit handlers, but calls back; everything else arrives as a signal.
void save_input_on_death() {
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_current_input);
  for (const int signal : {SIGABRT, SIGFPE, SIGILL}) std::signal(signal, on_fatal_signal);
  if (__sanitizer_set_death_callback == nullptr) std::signal(SIGSEGV, on_fatal_signal);
}

void run_one(const Bytes& input) {
  // A copy of the exact size, so that address sanitizer sees a read one past the end.
  const Bytes exact(input.begin(), input.end());
  current_input = &exact;
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  current_input = nullptr;
}

/// One mutation of `input`: flip, overwrite, insert, erase, duplicate, splice or an interesting integer.
void mutate(Bytes& input, const std::vector<Bytes>& corpus, std::mt19937_64& random) {
  const auto below = [&](std::size_t bound) {
    return static_cast<std::size_t>(random() % std::max<std::size_t>(bound, 1));
  };
  const std::size_t at = below(input.size());
  const auto position = input.begin() + static_cast<std::ptrdiff_t>(at);
  switch (below(8)) {
    case 0:
      if (!input.empty()) input[at] ^= static_cast<std::uint8_t>(1u << below(8));
      break;
    case 1:
      if (!input.empty()) input[at] = static_cast<std::uint8_t>(random());
      break;
    case 2: input.insert(position, static_cast<std::uint8_t>(random())); break;
    case 3: input.resize(at); break;
    case 4: {
      const std::size_t count = std::min(below(32), input.size() - at);
      input.erase(position, position + static_cast<std::ptrdiff_t>(count));
      break;
    }
    case 5: {
      const Bytes piece(position, position + static_cast<std::ptrdiff_t>(std::min(below(64), input.size() - at)));
      const std::size_t to = below(input.size() + 1);
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(to), piece.begin(), piece.end());
      break;
    }
    case 6: {
      const Bytes& other = corpus[below(corpus.size())];
      const std::size_t from = below(other.size());
      input.resize(at);
      input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
      break;
    }
    default: {
      static constexpr std::uint64_t kValues[] = {0,      1,      0x7f,       0x80,       0xff,
                                                  0x7fff, 0xffff, 0x7fffffff, 0xffffffff, ~0ull};
      const std::uint64_t value = kValues[below(std::size(kValues))];
      const std::size_t count = std::min<std::size_t>(std::size_t{1} << below(4), input.size() - at);
      if (count > 0) std::memcpy(input.data() + at, &value, count);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 1;
  std::uint64_t seed = 1;
  std::vector<Bytes> corpus;
  bool replay_only = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--seconds" && has_value) {
      seconds = std::atof(argv[++i]);
    } else if (word == "--seed" && has_value) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--corpus" && has_value) {
      const std::filesystem::path folder = argv[++i];
      if (!std::filesystem::is_directory(folder)) continue;
      std::vector<std::filesystem::path> files;
      for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
      std::sort(files.begin(), files.end());
      for (const auto& file : files) corpus.push_back(read_bytes(file));
    } else if (std::filesystem::is_regular_file(word)) {
      corpus.push_back(read_bytes(word));
      replay_only = true;
    } else {
      std::fprintf(stderr, "unknown argument or missing file: %s\n", word.c_str());
      return 2;
    }
  }
  save_input_on_death();

  if (corpus.empty()) corpus.push_back({});
  for (const Bytes& input : corpus) run_one(input);
  if (replay_only) return 0;

  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t num_runs = 0;
  while (std::chrono::steady_clock::now() < end) {
    Bytes input = corpus[random() % corpus.size()];
    const std::uint64_t num_mutations = 1 + random() % 6;
    for (std::uint64_t i = 0; i < num_mutations; ++i) mutate(input, corpus, random);
    if (input.size() > (1u << 20)) input.resize(1u << 20);
    run_one(input);
    ++num_runs;
  }
  std::printf("%llu runs, seed %llu\n", static_cast<unsigned long long>(num_runs),
              static_cast<unsigned long long>(seed));
  return 0;
}
