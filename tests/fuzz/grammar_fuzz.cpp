// Fuzz target: any bytes as a GBNF grammar, as a JSON schema and as a text that a schema's grammar reads. What compiles
// must give masks that agree with each token by itself, and walks whose steps can be taken back.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rlx/error.h"
#include "rlx/generation/grammar.h"
#include "rlx/generation/json_schema.h"

namespace {

using rlx::Grammar, rlx::GrammarMasks, rlx::GrammarMatcher, rlx::TokenId, rlx::TokenTrie;

template <class Call>
void only_errors(const Call& call) {
  try {
    call();
  } catch (const rlx::Error& e) {
    if (e.code() == rlx::ErrorCode::Internal) throw;
  }
}

const TokenTrie& trie() {
  static const TokenTrie t = [] {
    rlx::TokenBytes b;
    for (int byte = 0; byte < 256; ++byte) b.bytes.emplace_back(1, static_cast<char>(byte));
    for (const char* piece :
         {"{\"", "\":", "\",\"", "ab", "abc", "12", "\xC3\xA9", "\xA9\xE2", "\xE2\x82\xAC", "  ", "]}"})
      b.bytes.emplace_back(piece);
    b.bytes.emplace_back();
    b.end.push_back(static_cast<TokenId>(b.bytes.size()) - 1);
    return TokenTrie(b);
  }();
  return t;
}

// Walks a few tokens, chosen by the bytes of the input.
void walk(const Grammar& grammar, std::string_view choices) {
  const GrammarMasks masks(grammar, trie());
  GrammarMatcher m(masks);
  std::vector<std::vector<std::uint32_t>> seen;
  for (std::size_t step = 0; step < 6 && !m.ended(); ++step) {
    const auto span = m.mask();
    seen.emplace_back(span.begin(), span.end());
    std::vector<TokenId> allowed;
    for (std::size_t id = 0; id < trie().size(); ++id) {
      const auto token = static_cast<TokenId>(id);
      const bool bit = (seen.back()[id / 32] >> id % 32 & 1U) != 0;
      GrammarMatcher copy = m;
      rlx::check(copy.accept(token) == bit, "a mask agrees with each token by itself");
      if (bit) allowed.push_back(token);
    }
    // All bytes are tokens, so a text that is not complete can go on.
    rlx::check(m.can_end() || !allowed.empty(), "no dead end");
    if (allowed.empty()) break;
    const std::size_t choice = choices.empty() ? step : static_cast<unsigned char>(choices[step % choices.size()]);
    rlx::check(m.accept(allowed[choice % allowed.size()]), "a token of the mask is accepted");
  }
  while (m.size() > 0) {
    m.rewind(1);
    const auto mask = m.mask();
    rlx::check(std::equal(mask.begin(), mask.end(), seen[m.size()].begin()), "rewinding finds the same mask");
  }
  (void)m.forced_bytes();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  only_errors([&] { walk(Grammar::from_gbnf(text, "fuzz"), text); });
  only_errors([&] { walk(rlx::json_schema_grammar(text, {}, "fuzz"), text); });
  only_errors([&] {
    static const Grammar json = rlx::json_grammar();
    (void)json.matches(text);
  });
  return 0;
}
