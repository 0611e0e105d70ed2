// `--before BUILD` of the programs of bench/: runs the same program of an older build, interleaved with this one.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#if defined(__unix__)
#include <unistd.h>
#endif

/// If the arguments hold `--before BUILD` (and `--pairs N`, `--json FILE`), replaces this process by bench/before. That
/// runs this program of both builds with the other arguments, compares their figures and sets the exit status.
inline void compare_before_if_asked(int argc, char** argv) {
  if (std::none_of(argv + 1, argv + argc, [](const char* word) { return std::string(word) == "--before"; })) return;
  std::string build;
  std::vector<std::string> options, rest;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word != "--before" && word != "--pairs" && word != "--json") {
      rest.push_back(word);
      continue;
    }
    if (++i == argc) {
      std::fprintf(stderr, "error: %s needs a value\n", word.c_str());
      std::exit(2);
    }
    if (word == "--before")
      build = argv[i];
    else
      options.insert(options.end(), {word, argv[i]});
  }
#if defined(__unix__)
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  std::vector<std::string> words{RLX_BENCH_SOURCES "/before", build, "--program", self.filename().string()};
  words.insert(words.end(), {"--build", self.parent_path().parent_path().string()});
  words.insert(words.end(), options.begin(), options.end());
  words.push_back("--");
  words.insert(words.end(), rest.begin(), rest.end());
  std::vector<char*> command;
  for (std::string& word : words) command.push_back(word.data());
  command.push_back(nullptr);
  ::execv(command[0], command.data());
  std::fprintf(stderr, "error: %s cannot be started: %s\n", command[0], std::strerror(errno));
#else
  std::fprintf(stderr, "error: --before needs Linux\n");
#endif
  std::exit(2);
}
