// Random GBNF grammars read by rlx and by llama.cpp: the same prefixes, the same ends, the same masks.
//
// The header llama-grammar.h lies in the sdist of llama-cpp-python (PyPI; tried with 0.3.36), whose llama.cpp has to be
// built as shared libraries. With LLAMA=.../vendor/llama.cpp and LIBS=(folder of libllama.so), from the folder of rlx:
//   cmake --preset dev -DRLX_LLAMA_CPP=$LLAMA -DRLX_LLAMA_CPP_LIBRARIES=$LIBS
//   ninja -C build/dev gbnf_llama && build/dev/tests/gbnf_llama [GRAMMARS [SEED]]
// What only one of the two reads (left recursion is ours alone) is counted and left out. Exit status 0 when all agree.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "llama-grammar.h"
#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/generation/grammar.h"

namespace {

const std::vector<std::string>& letters() {
  static const std::vector<std::string> all{"a",
                                            "b",
                                            "c",
                                            "0",
                                            "\"",
                                            "\\",
                                            "]",
                                            "-",
                                            "\n",
                                            "^",
                                            " ",
                                            "|",
                                            "\t",
                                            "\xC3\xA9",
                                            "\xE2\x82\xAC",
                                            "\xF0\x9F\x98\x80"};
  return all;
}

class RandomGrammar {
 public:
  explicit RandomGrammar(std::uint64_t seed) : random_(seed) {
    num_rules_ = 1 + pick(5);
    for (rule_ = 0; rule_ < num_rules_; ++rule_) {
      text_ += name(rule_) + (pick(4) == 0 ? "::=" : " ::= ") + (pick(8) == 0 ? "\n  " : "") + choice(3);
      text_ += pick(5) == 0 ? " # a comment\n\n" : "\n";
    }
  }
  const std::string& text() const { return text_; }

 private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  static std::string name(unsigned rule) { return rule == 0 ? "root" : "rule-" + std::to_string(rule); }
  // A character as a literal or a class may write it.
  std::string character(bool in_class) {
    const std::string& c = letters()[pick(4) == 0 ? pick(16) : pick(3)];
    std::size_t at = 0;
    const auto code = static_cast<unsigned>(rlx::decode_utf8(c, at));
    char hex[16];
    if (pick(8) == 0) {
      std::snprintf(hex, sizeof hex, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04X" : "\\U%08x", code);
      return hex;
    }
    if (c == "\n") return "\\n";
    if (c == "\t") return pick(2) == 0 ? "\\t" : c;
    if (c == "\\") return "\\\\";
    if (c == "\"") return in_class && pick(2) == 0 ? c : "\\\"";
    if (in_class && (c == "]" || c == "-" || c == "^")) return c == "]" ? "\\]" : c == "-" ? "\\x2d" : "\\x5E";
    return c;
  }
  std::string literal() {
    std::string out = "\"";
    for (unsigned n = 1 + pick(3); n > 0; --n) out += character(false);
    return out + '"';
  }
  std::string one_of() {
    std::string out = pick(4) == 0 ? "[^" : "[";
    for (unsigned n = 1 + pick(3); n > 0; --n) {
      static const char* const kRanges[] = {
          "a-c", "0-9", "a-\xE2\x82\xAC", "\\x00-\\x20", "\xC2\x80-\xE2\x82\xAC", "b-\\U0010FFFF"};
      out += pick(3) == 0 ? kRanges[pick(6)] : character(true);
    }
    return out + ']';
  }
  std::string item(unsigned depth) {
    switch (pick(depth > 0 ? 9 : 6)) {
      case 0:
      case 1:
      case 2: return literal();
      case 3: return one_of();
      case 4: return pick(3) == 0 ? "." : one_of();
      case 5:  // what leads back comes after a character, mostly
        if (rule_ + 1 < num_rules_ && pick(2) == 0) return name(rule_ + 1 + pick(num_rules_ - rule_ - 1));
        return (pick(10) == 0 ? "" : literal() + " ") + name(pick(num_rules_));
      default: return (pick(4) == 0 ? "(\n " : "(") + choice(depth - 1) + ")";
    }
  }
  std::string quantified(unsigned depth) {
    std::string out = item(depth);
    if (pick(3) != 0) return out;
    const unsigned low = pick(3), high = low + pick(3);
    switch (pick(6)) {
      case 0: return out + "*";
      case 1: return out + "+";
      case 2: return out + "?";
      case 3: return out + "{" + std::to_string(low) + "}";
      case 4: return out + "{" + std::to_string(low) + ",}";
      default: return out + "{" + std::to_string(low) + "," + std::to_string(high) + "}";
    }
  }
  std::string sequence(unsigned depth) {
    std::string out = quantified(depth);
    for (unsigned n = pick(3); n > 0; --n) out += " " + quantified(depth);
    return out;
  }
  std::string choice(unsigned depth) {
    std::string out = sequence(depth);
    for (unsigned n = pick(3); n > 0; --n) out += " | " + sequence(depth);
    return depth < 3 && pick(12) == 0 ? out + " |" : out;  // at the end of a rule the next line would go on
  }

  std::mt19937_64 random_;
  unsigned num_rules_ = 0, rule_ = 0;
  std::string text_;
};

// Pieces of text, some of which end within a character.
rlx::TokenBytes vocabulary() {
  rlx::TokenBytes t;
  for (const std::string& c : letters()) t.bytes.push_back(c);
  for (const char* piece :
       {"ab", "abc", "aa", "cb", "a0", "\"a", "b\"", "]]", "\n\n", " a", "a b", "\\\\",
        "\xC3\xA9"
        "a",
        "a\xE2\x82\xAC", "\xE2\x82\xAC\xC3\xA9", "bb\xF0\x9F\x98\x80", "d", "xyz", "1", "\xC3\xA8", "\xE2\x82\xAB",
        // not whole
        "\xC3", "a\xC3", "\xE2", "\xE2\x82", "b\xE2\x82", "\xF0", "\xF0\x9F", "a\xF0\x9F\x98", "\xEF\xBF", "\xF4\x8F"})
    t.bytes.emplace_back(piece);
  return t;
}

struct LlamaDelete {
  void operator()(llama_grammar* g) const { llama_grammar_free_impl(g); }
};
using LlamaGrammar = std::unique_ptr<llama_grammar, LlamaDelete>;

bool can_end(const llama_grammar& g) {
  return std::any_of(g.stacks.begin(), g.stacks.end(), [](const auto& stack) { return stack.empty(); });
}

// Code points of a piece, 0 behind them, and what its last bytes have of one more.
struct Decoded {
  std::vector<std::uint32_t> points;
  llama_partial_utf8 rest{};
};
Decoded decoded(const std::string& piece) {
  Decoded out;
  for (std::size_t at = 0; at < piece.size();) {
    const auto lead = static_cast<unsigned char>(piece[at]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t value = size == 1 ? lead : lead & (0x7FU >> size);
    std::size_t have = 1;
    for (; have < size && at + have < piece.size(); ++have)
      value = value << 6 | (static_cast<unsigned char>(piece[at + have]) & 0x3F);
    if (have == size)
      out.points.push_back(value);
    else
      out.rest = {value, static_cast<int>(size - have)};
    at += have;
  }
  out.points.push_back(0);
  return out;
}

std::vector<bool> llama_mask(llama_grammar& g, const std::vector<Decoded>& pieces) {
  std::vector<bool> out(pieces.size());
  llama_grammar_candidates all;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    all.push_back({i, pieces[i].points.data(), pieces[i].rest, static_cast<llama_token>(i)});
  for (const llama_grammar_stack& stack : g.stacks) {
    std::vector<bool> taken(pieces.size(), true);
    for (const auto& r : llama_grammar_reject_candidates_for_stack(g.rules, stack, all)) taken[r.index] = false;
    for (std::size_t i = 0; i < pieces.size(); ++i) out[i] = out[i] || taken[i];
  }
  return out;
}

struct Counts {
  std::size_t grammars = 0, ours_only = 0, theirs_only = 0, neither = 0, texts = 0, prefixes = 0, refused = 0, ends = 0,
              masks = 0, ambiguous = 0, faults = 0;
};

void fault(Counts& counts, const std::string& what, const std::string& grammar, const std::string& text) {
  ++counts.faults;
  std::printf("%s\n--- grammar\n%s--- text\n%s\n---\n", what.c_str(), grammar.c_str(), text.c_str());
}

// One text, character by character, until either refuses. False where the two part.
void compare_text(const std::string& grammar, const rlx::GrammarMasks& masks, const llama_grammar& theirs_at_start,
                  const std::vector<Decoded>& pieces, std::mt19937_64& rng, Counts& counts) {
  constexpr std::size_t kManyStacks = 100;  // of llama.cpp, which keeps readings one by one
  const LlamaGrammar theirs(llama_grammar_clone_impl(theirs_at_start));
  rlx::GrammarMatcher ours(masks);
  ++counts.texts;
  std::string text;
  const bool wild = rng() % 3 == 0;
  for (std::size_t step = 0; step < 24; ++step) {
    if (theirs->stacks.size() > kManyStacks) {
      ++counts.ambiguous;
      return;
    }
    const auto mask = ours.mask();
    const std::vector<bool> their_mask = llama_mask(*theirs, pieces);
    std::vector<std::size_t> allowed;
    for (std::size_t id = 0; id < pieces.size(); ++id) {
      const bool bit = (mask[id / 32] >> id % 32 & 1U) != 0;
      // A piece that ends in the first bytes of a character: llama.cpp refuses it as soon as one of the characters that
      // it may become is not in a negated class.
      const bool stricter = pieces[id].rest.n_remain != 0 && grammar.find("[^") != std::string::npos;
      if (bit != their_mask[id] && !(bit && stricter)) {
        return fault(counts, rlx::concat_text("token ", id, ": rlx ", bit ? "allows" : "refuses", " it, llama.cpp not"),
                     grammar, text);
      }
      if (bit && pieces[id].rest.n_remain == 0) allowed.push_back(id);
    }
    ++counts.masks;
    if (ours.can_end() != can_end(*theirs)) return fault(counts, "one may end here", grammar, text);
    counts.ends += ours.can_end() ? 1 : 0;
    const std::size_t letter = rng() % letters().size();
    std::size_t id = allowed.empty() || (wild && rng() % 4 == 0) ? letter : allowed[rng() % allowed.size()];
    const std::string piece(masks.tokens().bytes(static_cast<rlx::TokenId>(id)));
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t begin = at;
      const auto c = static_cast<std::uint32_t>(rlx::decode_utf8(piece, at));
      const std::string bytes = piece.substr(begin, at - begin);
      const bool taken = ours.accept_bytes(bytes);
      llama_grammar_accept(theirs.get(), c);
      text += bytes;
      if (taken != !theirs->stacks.empty())
        return fault(counts, taken ? "only rlx reads this" : "only llama.cpp reads this", grammar, text);
      ++counts.prefixes;
      if (!taken) {
        ++counts.refused;
        return;
      }
      if (theirs->stacks.size() > kManyStacks) break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t num_grammars = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2500;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const rlimit memory{rlim_t{1} << 30, rlim_t{1} << 30};
  setrlimit(RLIMIT_AS, &memory);
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  const rlx::TokenTrie trie(vocabulary());
  std::vector<Decoded> pieces;
  for (std::size_t id = 0; id < trie.size(); ++id)
    pieces.push_back(decoded(std::string(trie.bytes(static_cast<rlx::TokenId>(id)))));
  Counts counts;
  for (std::uint64_t i = 0; counts.grammars < num_grammars; ++i) {
    const std::string text = RandomGrammar(seed * 1'000'000 + i).text();
    std::optional<rlx::Grammar> ours;
    std::string error;
    try {
      ours = rlx::Grammar::from_gbnf(text);
    } catch (const rlx::Error& e) {
      error = e.what();
    }
    LlamaGrammar theirs;
    try {
      theirs.reset(llama_grammar_init_impl(nullptr, text.c_str(), "root", false, nullptr, 0, nullptr, 0));
    } catch (const std::bad_alloc&) {
      continue;
    }
    if (!ours || theirs == nullptr) {
      ++(ours ? counts.ours_only : theirs != nullptr ? counts.theirs_only : counts.neither);
      if (!ours && theirs != nullptr && error.find("no text matches") == std::string::npos &&
          error.find("this class allows no character") == std::string::npos)
        fault(counts, error, text, "");
      continue;
    }
    ++counts.grammars;
    const rlx::GrammarMasks masks(*ours, trie);
    std::mt19937_64 rng(seed + i);
    for (int n = 0; n < 12; ++n) {
      try {
        compare_text(text, masks, *theirs, pieces, rng, counts);
      } catch (const std::bad_alloc&) {  // of llama.cpp's readings of one character
        ++counts.ambiguous;
      }
    }
    if (counts.faults > 10) break;
  }
  std::printf(
      "%zu grammars (%zu that llama.cpp refuses, %zu that rlx does, %zu that both do): %zu texts (%zu ended where "
      "llama.cpp had "
      "too many readings), %zu prefixes of which %zu are refused, %zu places where the text may end, %zu masks of %zu "
      "tokens; %zu faults\n",
      counts.grammars, counts.ours_only, counts.theirs_only, counts.neither, counts.texts, counts.ambiguous,
      counts.prefixes, counts.refused, counts.ends, counts.masks, trie.size(), counts.faults);
  return counts.faults == 0 ? 0 : 1;
}
