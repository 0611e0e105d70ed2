// Grammar constraints over the tokens of a tokeniser.
#include "rlx/generation/grammar/answer_grammar.h"

#include <algorithm>
#include <utility>

#include "rlx/error.h"
#include "rlx/text/tokenizer/decoder.h"
#include "rlx/text/unicode.h"

namespace rlx {
namespace {

constexpr std::size_t kGrammarsKept = 16, kTriesKept = 4;

// Bytes as text for a message. Invalid bytes become U+FFFD.
std::string shown(std::string_view bytes) {
  std::string out;
  append_lossy_utf8(out, bytes, false);
  return out;
}

}  // namespace

TokenBytes token_bytes(const Tokenizer& tokenizer, std::int64_t vocab_size, std::span<const TokenId> end) {
  if (vocab_size < 1 || vocab_size > std::int64_t{1} << 30)
    throw Error(ErrorCode::InvalidArgument, concat_text("the vocabulary must have 1 to 2^30 tokens, got ", vocab_size));
  TokenBytes out;
  out.bytes.resize(static_cast<std::size_t>(vocab_size));
  const std::int64_t known = std::min(vocab_size, tokenizer.vocab_size());
  for (std::int64_t id = 0; id < known; ++id) {
    const auto token = static_cast<TokenId>(id);
    if (!tokenizer.id_to_token(token)) continue;
    if (const auto piece = tokenizer.decoded_piece(token, true))
      out.bytes[static_cast<std::size_t>(id)] = tokenizer.decoder().token_bytes(*piece);
  }
  out.end.assign(end.begin(), end.end());
  return out;
}

GrammarMasks GrammarCache::masks(const Grammar& grammar, const Tokenizer& tokenizer, std::int64_t vocab_size,
                                 std::span<const TokenId> end) {
  std::vector<TokenId> ends(end.begin(), end.end());
  std::sort(ends.begin(), ends.end());
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.grammar.automaton() == grammar.automaton() && e.end == ends;
  });
  if (known != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, known);
    return known->masks;
  }
  auto trie = tries_.find(ends);
  if (trie == tries_.end()) {
    if (tries_.size() >= kTriesKept) tries_.clear();
    trie = tries_.emplace(ends, TokenTrie(token_bytes(tokenizer, vocab_size, ends))).first;
  }
  GrammarMasks made(grammar, trie->second);
  entries_.push_front({grammar, std::move(ends), made});
  if (entries_.size() > kGrammarsKept) entries_.pop_back();
  return made;
}

AnswerGrammar::AnswerGrammar(GrammarMasks masks) : masks_(std::move(masks)), matcher_(masks_) {
  if (must_end())
    throw Error(ErrorCode::InvalidArgument, "the grammar allows only the empty text",
                "an answer needs at least one token");
  (void)mask();
}

bool AnswerGrammar::can_go_on() {
  const std::span<const std::uint32_t> words = matcher_.mask();
  std::uint32_t found = 0;
  std::vector<std::pair<std::size_t, std::uint32_t>> ends;  // end tokens and their mask bits, which are ignored
  for (const TokenId id : masks_.tokens().end_tokens())
    ends.emplace_back(static_cast<std::size_t>(id) / 32, 1U << static_cast<std::uint32_t>(id) % 32);
  for (std::size_t i = 0; i < words.size() && found == 0; ++i) {
    found = words[i];
    for (const auto& [word, bit] : ends)
      if (word == i) found &= ~bit;
  }
  return found != 0;
}

std::span<const std::uint32_t> AnswerGrammar::mask() {
  if (!can_go_on() && !matcher_.can_end()) {
    const std::string wanted = matcher_.forced_bytes(40);
    throw Error(ErrorCode::InvalidArgument, "no token of the vocabulary can follow in the grammar",
                wanted.empty() ? std::string() : concat_text("the next text must begin with \"", shown(wanted), "\""));
  }
  return matcher_.mask();
}

std::string AnswerGrammar::accept(TokenId token) {
  if (!matcher_.accept(token))
    throw Error(ErrorCode::InvalidArgument, concat_text("token ", token, " is not allowed by the grammar here"),
                "sample a token that the mask allows");
  held_ += masks_.tokens().bytes(token);
  std::string out;
  held_.erase(0, append_lossy_utf8(out, held_, true));
  return out;
}

bool AnswerGrammar::must_end() { return matcher_.can_end() && !can_go_on(); }

std::string AnswerGrammar::flush() {
  std::string out;
  append_lossy_utf8(out, std::exchange(held_, {}), false);
  return out;
}

}  // namespace rlx
