// Patterns for paths, in the form of .gitignore files: which files of a folder are read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/work_budget.h"

namespace rlx {

/// One pattern. `*` and `?` match within a name, `**` as a whole name matches any number of folders, `[a-z]` and
/// `[!a-z]` match one character. A pattern with a slash before its end matches from the folder of its file on, another
/// one the name of a file or folder at any depth. A slash at the end matches folders alone. A backslash takes the next
/// character as it is.
class PathPattern {
 public:
  /// A pattern that never matches, where `text` is malformed (`malformed`).
  explicit PathPattern(std::string_view text);

  /// Whether `path`, relative to the folder of the pattern and without a slash at either end, matches. A match takes
  /// its steps from `budget`; without any left there is no match (`budget.steps()` is then 0).
  bool matches(std::string_view path, bool folder, WorkBudget& budget) const;
  bool negated() const { return negated_; }
  bool malformed() const { return malformed_; }

 private:
  enum class Kind : std::uint8_t { Literal, Any, Set, Star, Folders, Rest };
  struct Part {
    Kind kind = Kind::Literal;
    char character = 0;
    std::string set{};  // pairs of the first and the last character
    bool inverted = false;
  };
  void parse(std::string_view text);
  bool parse_set(std::string_view text, std::size_t& at);
  static bool accepts(const Part& part, char c);

  std::vector<Part> parts_;
  std::string literal_;  // the whole pattern, or the end of a name after one star
  bool negated_ = false, folders_only_ = false, anchored_ = false, malformed_ = false;
  bool whole_literal_ = false, literal_end_ = false;
};

/// What the rules of a list say about a path: the last pattern that matches decides.
enum class PathVerdict : std::uint8_t { None, Match, Negated };

/// The lines of a .gitignore file, or the globs of a command.
class PathRules {
 public:
  /// Lines that are blank or begin with `#` are comments.
  static PathRules parse_lines(std::string_view text);
  void add(std::string_view pattern) { patterns_.emplace_back(pattern); }
  bool empty() const { return patterns_.empty(); }
  const std::vector<PathPattern>& patterns() const { return patterns_; }
  PathVerdict verdict(std::string_view path, bool folder, WorkBudget& budget) const;

 private:
  std::vector<PathPattern> patterns_;
};

}  // namespace rlx
