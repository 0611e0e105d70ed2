// Detection of stop strings in streamed text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// Holds back text that may be the beginning of a stop string. All pieces together are the text before the first
/// complete stop string. When several end at the same byte, the longest counts.
class StopStrings {
 public:
  /// Errors: InvalidArgument for an empty stop string.
  explicit StopStrings(std::vector<std::string> stops = {});
  /// Appends `piece` and returns the text that no stop string can contain any more. Returns "" once a stop string was
  /// found.
  std::string push(std::string_view piece);
  /// Returns the text that was held back. Call it after the last piece.
  std::string flush();
  /// True after a stop string was found.
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace rlx
