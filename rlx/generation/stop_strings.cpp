// Stop strings in pieces of text.
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
  // The one that is whole first, and of those the longest: whatever the pieces are.
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
  // The longest end of the text that begins a stop string stays.
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
