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
  std::size_t end = std::string::npos;
  for (const std::string& s : stops_) end = std::min(end, held_.find(s));
  if (end != std::string::npos) {
    found_ = true;
    held_.resize(end);
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
