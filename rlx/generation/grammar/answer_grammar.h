// A grammar in an answer: the bytes of a tokeniser's tokens, masks shared by requests, and where one request stands.
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

/// What the tokens of a model are to grammars: what each adds to a text behind others; special ones, and ids that the
/// tokeniser does not have, are never allowed. `vocab_size` is the model's, which may differ from the tokeniser's.
/// Errors: Unsupported for tokenisers whose decoder rewrites a text as a whole; InvalidArgument for a vocabulary
/// of no tokens.
TokenBytes token_bytes(const Tokenizer& tokenizer, std::int64_t vocab_size, std::span<const TokenId> end);

/// The masks of the grammars that came last, so that requests with one grammar share what was found out. One tokeniser
/// and vocabulary. Not for concurrent calls.
class GrammarCache {
 public:
  GrammarMasks masks(const Grammar& grammar, const Tokenizer& tokenizer, std::int64_t vocab_size,
                     std::span<const TokenId> end);

 private:
  struct Entry {
    Grammar grammar;  // keeps the automaton alive, whose address is what is looked for
    std::vector<TokenId> end;
    GrammarMasks masks;
  };
  std::map<std::vector<TokenId>, TokenTrie> tries_{};  // by ends
  std::list<Entry> entries_{};                         // the one used last in front
};

/// Where an answer stands in its grammar, and its text. A copy goes on by itself.
class AnswerGrammar {
 public:
  /// Errors: InvalidArgument where no token can begin, or the empty text is all there is.
  explicit AnswerGrammar(GrammarMasks masks);

  /// The tokens that may follow (GrammarMatcher::mask). Errors: InvalidArgument when there are none, saying what the
  /// grammar wants; those of GrammarMatcher.
  std::span<const std::uint32_t> mask();
  /// Takes a token of the mask that does not end the answer and returns the whole characters that are certain. Errors:
  /// InvalidArgument for another token; those of GrammarMatcher.
  std::string accept(TokenId token);
  /// Whether the text is complete and no token but one that ends it may follow.
  bool must_end();
  /// What is left of a character at the end of the text.
  std::string flush();

 private:
  bool can_go_on();

  GrammarMasks masks_;
  GrammarMatcher matcher_;
  std::string held_;  // the beginning of a character
};

}  // namespace rlx
