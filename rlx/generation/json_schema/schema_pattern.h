// Regular expressions of JSON schemas: the regular subset of ECMA-262, as a tree.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "rlx/generation/grammar/grammar_rules.h"

namespace rlx {

/// A regular expression that matches whole texts. For an unanchored pattern the expression includes the text around it.
class SchemaPattern {
 public:
  /// Errors begin with `where`: BadFile for an invalid regular expression, Unsupported for lookaround, back references,
  /// \b and \p.
  SchemaPattern(std::string_view pattern, std::string_view where);

  /// Characters of the shortest and the longest match; kUnbounded: no limit.
  std::uint32_t min_length() const { return length(root_).first; }
  std::uint32_t max_length() const { return length(root_).second; }
  /// Narrows the match lengths of a repetition of one class. Otherwise returns false, unless the lengths already are
  /// within these limits.
  bool limit_length(std::uint32_t min, std::uint32_t max);
  /// The grammar expression, given a function for a character of a set.
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
