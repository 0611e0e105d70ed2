// Grammars that hold generated text to a form, by masks of the tokens that may follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/generation/token_trie.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

class Automaton;
class GrammarRules;
struct SharedStacks;

/// A context-free grammar over bytes, compiled. It never changes; copies are the same grammar.
class Grammar {
 public:
  /// Reads GBNF, the form that llama.cpp documents; a text matches when rule `root` matches all of it. `source` (a file
  /// name) opens the places of errors. Errors: BadFile with line and column; Unsupported, within a second, beyond the
  /// limits of docs/grammars.md.
  static Grammar from_gbnf(std::string_view text, std::string_view source = "grammar", std::string_view root = "root");
  /// For readers of other forms.
  static Grammar from_rules(const GrammarRules& rules);

  /// States of the automaton, of all rules together.
  std::size_t num_states() const;
  std::size_t num_rules() const;
  /// Whether `text` is one that the grammar describes. Errors: Unsupported as GrammarMatcher's.
  bool matches(std::string_view text) const;

  /// For rlx itself. Errors: InvalidArgument for a grammar that was moved from.
  const std::shared_ptr<const Automaton>& automaton() const;

 private:
  explicit Grammar(std::shared_ptr<const Automaton> automaton) : automaton_(std::move(automaton)) {}
  std::shared_ptr<const Automaton> automaton_;
};

/// A grammar over the tokens of a vocabulary: what all its sequences share, that is what was found out about masks.
/// Copies share it too. Threads may use matchers of one GrammarMasks at the same time.
class GrammarMasks {
 public:
  GrammarMasks(const Grammar& grammar, const TokenTrie& tokens);

  /// Finds out now what the first masks would have to wait for, in every state. Seconds for large schemas.
  void prepare();
  /// Bytes that it keeps, about.
  std::size_t bytes() const;
  const TokenTrie& tokens() const;

  struct Impl;

 private:
  friend class GrammarMatcher;
  Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

/// Follows one sequence through a grammar and says which tokens may come next. A copy goes on by itself and shares all
/// but four bytes a token. Not for concurrent calls.
///
/// Every call may throw Error{Unsupported}, the matcher staying as it was, where a grammar can be read in so many ways
/// at once, or a text nests so deeply, that time or memory would run away.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(GrammarMasks masks);

  /// Takes a token, if it may follow; otherwise nothing happens and the answer is false. A token that ends the sequence
  /// may follow where the grammar may end, and nothing follows it. Errors: InvalidArgument for an id outside of the
  /// vocabulary.
  bool accept(TokenId token);
  /// The same for any bytes, which `rewind` counts as one token: a prompt that already holds the beginning, or text
  /// that was forced. They need not be whole characters.
  bool accept_bytes(std::string_view bytes);
  /// Forgets the last `count` tokens. Errors: InvalidArgument for more than there are.
  void rewind(std::size_t count);

  /// Bit v % 32 of word v / 32 says whether token v may follow. It is valid until the next call. No bit is set after a
  /// token that ends the sequence, or where the vocabulary lacks what the grammar wants.
  std::span<const std::uint32_t> mask();
  /// Whether the text so far is complete.
  bool can_end();
  /// Whether a token has ended the sequence.
  bool ended() const { return ended_; }
  /// The bytes, at most `limit`, that must follow whatever the model says; they are not accepted yet. May end within a
  /// character.
  std::string forced_bytes(std::size_t limit = 256);
  /// How many tokens (and calls of accept_bytes) were accepted.
  std::size_t size() const { return history_.size(); }

 private:
  GrammarMasks::Impl& enter();
  bool follow(std::string_view bytes);

  GrammarMasks masks_;
  std::shared_ptr<SharedStacks> stacks_;
  std::uint32_t config_ = 0;
  std::vector<std::uint32_t> history_;  // configurations before each token
  bool ended_ = false;
  std::shared_ptr<const std::vector<std::uint32_t>> mask_;
};

}  // namespace rlx
