// Grammars that constrain generated text, by masks of the allowed next tokens.
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

/// A compiled context-free grammar over bytes. It is immutable; copies share it.
class Grammar {
 public:
  /// Reads GBNF, the grammar format of llama.cpp. A text matches when rule `root` matches all of it. Error positions
  /// begin with `source` (a file name). Errors: BadFile with line and column; Unsupported, within a second, beyond the
  /// limits of docs/grammars.md.
  static Grammar from_gbnf(std::string_view text, std::string_view source = "grammar", std::string_view root = "root");
  /// For readers of other grammar formats.
  static Grammar from_rules(const GrammarRules& rules);

  /// Number of automaton states, of all rules together.
  std::size_t num_states() const;
  std::size_t num_rules() const;
  /// Whether the grammar matches `text`. Errors: Unsupported as for GrammarMatcher.
  bool matches(std::string_view text) const;

  /// For rlx itself. Errors: InvalidArgument for a grammar that was moved from.
  const std::shared_ptr<const Automaton>& automaton() const;

 private:
  explicit Grammar(std::shared_ptr<const Automaton> automaton) : automaton_(std::move(automaton)) {}
  std::shared_ptr<const Automaton> automaton_;
};

/// A grammar over the tokens of a vocabulary, with the cache of its masks, shared by all its sequences. Copies share it
/// too. Threads may use matchers of one GrammarMasks at the same time.
class GrammarMasks {
 public:
  GrammarMasks(const Grammar& grammar, const TokenTrie& tokens);

  /// Precomputes the masks of every state, so that the first masks do not wait. Seconds for large schemas.
  void prepare();
  /// Bytes of the cache, approximately.
  std::size_t bytes() const;
  const TokenTrie& tokens() const;

  struct Impl;

 private:
  friend class GrammarMatcher;
  Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

/// Tracks one sequence in a grammar and computes the allowed next tokens. A copy is independent and shares all but four
/// bytes a token. Not for concurrent calls.
///
/// Every call may throw Error{Unsupported}, with the matcher unchanged, where a grammar is so ambiguous or a text nests
/// so deeply that time or memory would explode.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(GrammarMasks masks);

  /// Takes a token if it is allowed; otherwise changes nothing and returns false. An end token is allowed where the
  /// grammar may end, and no token is allowed after it. Errors: InvalidArgument for an id outside the vocabulary.
  bool accept(TokenId token);
  /// Takes bytes, which `rewind` counts as one token: a begun answer of the prompt, or forced text. They need not be
  /// whole characters.
  bool accept_bytes(std::string_view bytes);
  /// Removes the last `count` tokens. Errors: InvalidArgument for more than there are.
  void rewind(std::size_t count);

  /// Bit v % 32 of word v / 32 says whether token v is allowed. Valid until the next call. No bit is set after an end
  /// token, or where no token of the vocabulary fits the grammar.
  std::span<const std::uint32_t> mask();
  /// Whether the text so far is complete.
  bool can_end();
  /// Whether a token has ended the sequence.
  bool ended() const { return ended_; }
  /// The bytes, at most `limit`, that the grammar forces next; they are not accepted yet. They may end inside a
  /// character.
  std::string forced_bytes(std::size_t limit = 256);
  /// Number of tokens (and calls of accept_bytes) accepted.
  std::size_t size() const { return history_.size(); }

 private:
  GrammarMasks::Impl& enter();
  bool follow(std::string_view bytes);

  GrammarMasks masks_;
  std::shared_ptr<SharedStacks> stacks_;
  std::uint32_t config_ = 0;
  std::vector<std::uint32_t> history_;  // the configuration before each token
  bool ended_ = false;
  std::shared_ptr<const std::vector<std::uint32_t>> mask_;
};

}  // namespace rlx
