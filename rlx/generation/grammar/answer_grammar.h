// Grammar constraints of an answer: the bytes of a tokeniser's tokens, shared masks, and the state of one request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rlx/generation/grammar.h"
#include "rlx/text/tokenizer.h"

namespace rlx {

/// The tokens of a model as bytes: the bytes that each appends to a text. Special tokens, and ids that the tokeniser
/// does not have, are never allowed. `vocab_size` is the model's, which may differ from the tokeniser's. Errors:
/// Unsupported for tokenisers whose decoder rewrites a text as a whole; InvalidArgument for an empty vocabulary.
TokenBytes token_bytes(const Tokenizer& tokenizer, std::int64_t vocab_size, std::span<const TokenId> end);

/// The masks of the most recent grammars, so that requests with one grammar share them. For one tokeniser and
/// vocabulary. Not for concurrent calls.
class GrammarCache {
 public:
  GrammarMasks masks(const Grammar& grammar, const Tokenizer& tokenizer, std::int64_t vocab_size,
                     std::span<const TokenId> end);

 private:
  struct Entry {
    Grammar grammar;  // keeps the automaton alive; its address is the key
    std::vector<TokenId> end;
    GrammarMasks masks;
  };
  std::map<std::vector<TokenId>, TokenTrie> tries_{};  // keyed by end tokens
  std::list<Entry> entries_{};                         // most recently used first
};

/// The state of an answer in its grammar, and its text. A copy is independent.
class AnswerGrammar {
 public:
  /// Errors: InvalidArgument where no token can begin, or the grammar has only the empty text.
  explicit AnswerGrammar(GrammarMasks masks);

  /// The allowed next tokens (GrammarMatcher::mask). Errors: InvalidArgument when there are none, naming what the
  /// grammar expects; those of GrammarMatcher.
  std::span<const std::uint32_t> mask();
  /// Takes an allowed token that does not end the answer, and returns the characters that are now complete. Errors:
  /// InvalidArgument for another token; those of GrammarMatcher.
  std::string accept(TokenId token);
  /// Whether the text is complete and only end tokens may follow.
  bool must_end();
  /// The incomplete character at the end of the text.
  std::string flush();

 private:
  bool can_go_on();

  GrammarMasks masks_;
  GrammarMatcher matcher_;
  std::string held_;  // the incomplete character
};

}  // namespace rlx
