// Random grammars with a recogniser of their own: tables over all parts and positions of one text, filled until nothing
// changes. It shares nothing with rlx/generation but the text of the grammar.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace rlx::test {

/// A grammar of a few rules over "a", "b", "c" and characters of two and three bytes.
class OracleGrammar {
 public:
  /// The grammar of a seed. Left recursion, empty loops, ambiguity and rules without an end come up.
  explicit OracleGrammar(unsigned seed);
  /// As GBNF.
  const std::string& text() const { return text_; }
  /// Whether every rule that the root needs can end.
  bool ends() const { return all_end_; }

  struct Answer {
    bool matches = false;  // the text is in the language
    bool viable = false;   // some text that begins with it is
  };
  Answer ask(const std::string& text) const;

  /// Bytes of the characters that the grammars are made of, each a string.
  static const std::vector<std::string>& letters();

 private:
  enum class Kind { Literal, Class, Sequence, Choice, Repeat, Rule };
  struct Part {
    Kind kind = Kind::Literal;
    std::string literal{};
    std::vector<std::string> characters{};
    std::vector<int> children{};
    int min = 0, max = 0, rule = 0;  // max < 0: no limit
  };
  int make(int depth);
  std::string write(int part, bool inside_sequence) const;
  void find_ends();

  std::mt19937 random_;
  std::vector<Part> parts_;
  std::vector<int> rules_;  // their parts
  std::vector<bool> part_ends_;
  std::string text_;
  bool all_end_ = false;
};

}  // namespace rlx::test
