// A string table of a report: each text is written once and named by its number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rlx {

class ReportStrings {
 public:
  ReportStrings() { (void)id(""); }
  /// The number of a text; 0 is the empty text.
  std::uint32_t id(std::string_view text) {
    const auto at = ids_.emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
    if (at.second) texts_.push_back(&at.first->first);
    return at.first->second;
  }
  const std::vector<const std::string*>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;  // its nodes have stable addresses
  std::vector<const std::string*> texts_;
};

}  // namespace rlx
