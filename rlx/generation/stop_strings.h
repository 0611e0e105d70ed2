// Where an answer ends: texts that stop it, found in text that comes in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// Holds back what may be the beginning of a stop string. All pieces together are the text up to the stop string that
/// is whole first (of several that end there, the longest), which is not part of them.
class StopStrings {
 public:
  /// Errors: InvalidArgument for an empty one.
  explicit StopStrings(std::vector<std::string> stops = {});
  /// The text that is certain after this piece; nothing more once a stop string was found.
  std::string push(std::string_view piece);
  /// What was held back, at the end of the text.
  std::string flush();
  /// True once one was found.
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace rlx
