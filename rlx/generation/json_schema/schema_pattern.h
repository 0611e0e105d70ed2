// Regular expressions of JSON schemas: the regular part of ECMA-262's, as a tree.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "rlx/generation/grammar/grammar_rules.h"

namespace rlx {

/// A regular expression that has to match a whole text; where the pattern may match anywhere, that is part of it.
class SchemaPattern {
 public:
  /// Errors: BadFile for what is no regular expression, Unsupported for what is none that rlx takes (lookaround, back
  /// references, \b, \p); `where` opens them.
  SchemaPattern(std::string_view pattern, std::string_view where);

  /// Characters of the shortest and the longest match; kUnbounded is no limit.
  std::uint32_t min_length() const { return length(root_).first; }
  std::uint32_t max_length() const { return length(root_).second; }
  /// Narrows the lengths of matches, where the expression is a repetition of one class. Otherwise the answer is false,
  /// unless the lengths are within these limits anyway.
  bool limit_length(std::uint32_t min, std::uint32_t max);
  /// As an expression, given what stands for a character of a set.
  ExprId expression(GrammarRules& rules, const std::function<ExprId(const CodePointSet&)>& character) const;

 private:
  friend class SchemaPatternParser;
  struct Node {
    ExprKind kind = ExprKind::Empty;  // Empty, Class, Sequence, Choice or Repeat
    CodePointSet set{};
    std::vector<std::uint32_t> children{};
    std::uint32_t min = 0, max = 0;
  };
  std::pair<std::uint32_t, std::uint32_t> length(std::uint32_t node) const;
  std::vector<Node> nodes_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lengths_;  // by node; children come first
  std::uint32_t root_ = 0;
};

}  // namespace rlx
