// Stop string detection in streamed text.
#include "rlx/generation/stop_strings.h"

#include <algorithm>
#include <utility>

#include "rlx/error.h"

namespace rlx {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& s : stops_)
    if (s.empty()) throw Error(ErrorCode::InvalidArgument, "a stop string is empty", "leave it out");
}

std::string StopStrings::push(std::string_view piece) {
  if (found_) return {};
  held_ += piece;
  // The stop string that ends first, and of those the longest, however the text is split into pieces.
  std::size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& s : stops_) {
    const std::size_t at = held_.find(s);
    if (at == std::string::npos || at + s.size() > end || (at + s.size() == end && at > begin)) continue;
    begin = at;
    end = at + s.size();
  }
  if (begin != std::string::npos) {
    found_ = true;
    held_.resize(begin);
    return std::exchange(held_, {});
  }
  // Holds back the longest suffix of the text that is a prefix of a stop string.
  std::size_t kept = 0;
  for (const std::string& s : stops_)
    for (std::size_t n = std::min(held_.size(), s.size() - 1); n > kept; --n)
      if (held_.compare(held_.size() - n, n, s, 0, n) == 0) kept = n;
  std::string certain = held_.substr(0, held_.size() - kept);
  held_.erase(0, held_.size() - kept);
  return certain;
}

std::string StopStrings::flush() { return std::exchange(held_, {}); }

}  // namespace rlx
