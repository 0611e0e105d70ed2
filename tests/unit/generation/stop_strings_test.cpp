// Stop strings in streamed text, against a search in the whole text.
#include "rlx/generation/stop_strings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace rlx {

TEST_CASE("stop strings: the text before the first one, however it comes") {
  std::mt19937 rng(11);
  for (int round = 0; round < 2000; ++round) {
    const auto word = [&](std::size_t least, std::size_t most) {
      std::string w(least + rng() % (most - least + 1), 'a');
      for (char& c : w) c = static_cast<char>('a' + rng() % 2);
      return w;
    };
    const std::string text = word(0, 30);
    std::vector<std::string> stops;
    for (auto n = rng() % 3; n > 0; --n) stops.push_back(word(1, 6));
    StopStrings s(stops);
    std::string got;
    // The text ends where the first stop string is complete; of those that end there, the longest is removed.
    std::size_t cut = text.size();
    bool found = false;
    for (std::size_t end = 1; end <= text.size() && !found; ++end)
      for (const std::string& stop : stops)
        if (stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0)
          found = true, cut = std::min(cut, end - stop.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = std::min(text.size() - at, 1 + rng() % 4);
      got += s.push(text.substr(at, n));
      at += n;
    }
    CHECK(s.found() == found);
    got += s.flush();
    CHECK(got == text.substr(0, cut));
    CHECK(s.push(found ? "more" : "") == "");
  }
}

}  // namespace rlx
