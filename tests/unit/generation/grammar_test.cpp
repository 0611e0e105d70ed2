// Grammars: reading GBNF, automata against a simple recognizer, masks against single tokens, adversarial grammars.
#include "rlx/generation/grammar.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "rlx/base/utf8.h"
#include "rlx/generation/grammar/code_points.h"
#include "tests/support/build_kind.h"
#include "tests/support/error_text.h"
#include "tests/support/grammar_oracle.h"
#include "tests/support/needs.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::OracleGrammar;

bool matches(std::string_view grammar, std::string_view text) { return Grammar::from_gbnf(grammar).matches(text); }
std::string refused(std::string_view grammar) {
  return error_text([&] { (void)Grammar::from_gbnf(grammar, "g.gbnf"); });
}
std::string repeated(std::string_view part, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += part;
  return out;
}
// Long texts are shorter in a slow build.
#if defined(RLX_SLOW_BUILD)
constexpr std::size_t kShorter = 20;
#else
constexpr std::size_t kShorter = 1;
#endif
// All one-byte tokens, and strings over the letters, whole characters or not; the last token ends the sequence.
TokenBytes small_vocabulary(unsigned seed) {
  std::mt19937 rng(seed);
  TokenBytes t;
  for (const char c : std::string("abc\xC3\xA9\xE2\x82\xAC")) t.bytes.emplace_back(1, c);
  while (t.bytes.size() < 70) {
    std::string s;
    for (unsigned i = 1 + rng() % 4; i > 0; --i) s += OracleGrammar::letters()[rng() % 5];
    const std::size_t from = rng() % 2 == 0 ? 0 : rng() % s.size();
    t.bytes.push_back(s.substr(from, rng() % 2 == 0 ? s.size() : 1 + rng() % s.size()));
  }
  t.bytes.emplace_back();      // a token without bytes
  t.bytes.emplace_back("ab");  // a control token
  t.special.push_back(static_cast<TokenId>(t.bytes.size()) - 1);
  t.bytes.emplace_back("</s>");
  t.end.push_back(static_cast<TokenId>(t.bytes.size()) - 1);
  return t;
}
// The mask of a matcher equals the result of each token on a copy.
void check_mask(GrammarMatcher& m, const TokenTrie& trie) {
  const auto span = m.mask();
  const std::vector<std::uint32_t> mask(span.begin(), span.end());
  REQUIRE(mask.size() == (trie.size() + 31) / 32);
  for (std::size_t id = 0; id < mask.size() * 32; ++id) {
    const bool bit = (mask[id / 32] >> id % 32 & 1U) != 0;
    if (id >= trie.size()) {
      CHECK_FALSE(bit);
      continue;
    }
    GrammarMatcher copy = m;
    const bool taken = copy.accept(static_cast<TokenId>(id));
    if (bit != taken) {
      CAPTURE(id);
      CAPTURE(bit);
      FAIL_CHECK("the mask and the token by itself differ");
    }
  }
}

}  // namespace

TEST_CASE("grammar: GBNF") {
  CHECK(matches("root ::= \"a\"", "a"));
  CHECK_FALSE(matches("root ::= \"a\"", ""));
  CHECK_FALSE(matches("root ::= \"a\"", "aa"));
  CHECK(matches("root ::=", ""));
  CHECK(matches("root ::= \"\"", ""));
  CHECK(matches("root ::= \"x\\n\\t\\r\\\"\\\\\\[\\]\\x41\\u00e9\\U0001F600\"",
                "x\n\t\r\"\\[]A\xC3\xA9\xF0\x9F\x98\x80"));
  CHECK(matches("root ::= [a-c\\]\\x30-9]+", "ab]c059"));
  CHECK_FALSE(matches("root ::= [a-c]+", "abd"));
  CHECK(matches("root ::= [a-]+", "a-a"));
  CHECK(matches("root ::= [-a]+", "a-a"));
  CHECK(matches("root ::= [^a-c]+", "xyz\n\xE2\x82\xAC"));
  CHECK_FALSE(matches("root ::= [^\\n]", "\n"));
  CHECK(matches("root ::= .", "\xF4\x8F\xBF\xBF"));
  CHECK_FALSE(matches("root ::= .", "\xED\xA0\x80"));  // a surrogate
  CHECK_FALSE(matches("root ::= .", "\xC0\x80"));      // an overlong encoding
  CHECK_FALSE(matches("root ::= .", "\xF4\x90\x80\x80"));
  CHECK(matches(
      "# first\nroot ::= # here too\n  \"a\" |\n  # and here\n \"b\" (\n \"c\"\n\n | \"d\" )\n\nb-2 ::= \"x\"", "bd"));
  CHECK(matches("root ::= a b\r\na ::= \"a\"\r\nb ::= \"b\"\r\n", "ab"));
  CHECK(matches("root ::= (\"a\" | \"b\" \"c\"?)* \"d\"+", "abcbadd"));
  CHECK(matches("root ::= \"a\"{2} \"b\"{1,} \"c\"{0,2} \"d\" {1,3}", "aabbccd"));
  CHECK_FALSE(matches("root ::= \"a\"{2}", "aaa"));
  CHECK(matches("root ::= | \"a\"", ""));
  CHECK(matches("start ::= root\nroot ::= \"a\"", "a"));
  CHECK(Grammar::from_gbnf("s ::= \"a\"", "g", "s").matches("a"));

  CHECK(contains(refused(""), "no rule 'root'"));
  CHECK(contains(refused("rot ::= \"a\""), "did you mean 'rot'"));
  CHECK(contains(refused("root ::= a\n"), "g.gbnf:1:10: rule 'a' is not defined"));
  CHECK(contains(refused("root ::= \"a\"\n\n root ::= \"b\""), "g.gbnf:3:2: rule 'root' is defined twice"));
  CHECK(contains(refused("root ::= \"a\n\""), "g.gbnf:1:10: this literal has no end"));
  CHECK(contains(refused("root ::= [a"), "g.gbnf:1:10: this class has no end"));
  CHECK(contains(refused("root ::= [a-"), "no end"));
  CHECK(contains(refused("root ::= []"), "no character"));
  CHECK(contains(refused("root ::= [b-a]"), "g.gbnf:1:11: the first character"));
  CHECK(contains(refused("root ::= (\"a\""), "g.gbnf:1:10: this group has no end"));
  CHECK(contains(refused("root ::= \"a\")"), "has no matching '('"));
  CHECK(contains(refused("root ::= \"a\" ; x"), "g.gbnf:1:14: rule 'root' has an invalid expression"));
  CHECK(contains(refused("root ::= * \"a\""), "this quantifier has nothing"));
  CHECK(contains(refused("root ::= \"a\"{3,2}"), "a minimum above its maximum"));
  CHECK(contains(refused("root ::= \"a\"{99999999999}"), "must be at most 1000000000"));
  CHECK(contains(refused("root ::= \"a\"{,2}"), "expected a number"));
  CHECK(contains(refused("root ::= \"\\q\""), "unknown escape"));
  CHECK(contains(refused("root ::= \"\\ud800\""), "not a Unicode character"));
  CHECK(contains(refused("root ::= \"\\x4\""), "2 hexadecimal digits"));
  CHECK(contains(refused("root ::= <think>"), "tokens by name"));
  CHECK(contains(refused("root = \"a\""), "expected '::='"));
  CHECK(contains(refused("root ::= \"\xFF\""), "g.gbnf:1:11: this is not valid UTF-8"));
  CHECK(contains(refused("root ::= \"a\" | b\nb ::= \"b\" b"), "g.gbnf:2:1: no text matches rule 'b'"));
  CHECK(contains(refused("root ::= root"), "no text matches rule 'root'"));
  CHECK(contains(refused("root ::= " + std::string(300, '(') + "\"a\"" + std::string(300, ')')), "nested more than"));
}

TEST_CASE("grammar: classes are the code points they say, byte by byte") {
  std::mt19937 rng(5);
  const std::vector<char32_t> edges{0,      0x7F,   0x80,    0x7FF,   0x800,   0xFFF,   0x1000,   0xD7FF,
                                    0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FFFF};
  for (int round = 0; round < 60; ++round) {
    std::vector<CodePointRange> ranges;
    for (unsigned i = 1 + rng() % 3; i > 0; --i) {
      const auto point = [&]() -> char32_t {
        const char32_t near = edges[rng() % edges.size()] + rng() % 3;
        return rng() % 2 == 0 ? rng() % 0x110000 : std::min<char32_t>(near, 0x10FFFF);
      };
      char32_t a = point(), b = point();
      ranges.push_back({std::min(a, b), std::max(a, b)});
    }
    const auto inside = [&](char32_t c) {
      return std::any_of(ranges.begin(), ranges.end(), [&](auto r) { return r.first <= c && c <= r.last; });
    };
    std::string text = "root ::= [";
    const auto escape = [](char32_t c) {
      char out[11];
      std::snprintf(out, sizeof out, "\\U%08x", static_cast<unsigned>(c));
      return std::string(out);
    };
    const auto is_surrogate = [](char32_t c) { return c >= 0xD800 && c <= 0xDFFF; };
    if (std::any_of(ranges.begin(), ranges.end(),
                    [&](auto r) { return is_surrogate(r.first) || is_surrogate(r.last); }))
      continue;
    for (const CodePointRange& r : ranges) text += escape(r.first) + "-" + escape(r.last);
    const Grammar plain = Grammar::from_gbnf(text + "]");
    GrammarMatcher in(GrammarMasks(plain, TokenTrie(TokenBytes{{"x"}})));
    std::set<char32_t> tried(edges.begin(), edges.end());
    for (const CodePointRange& r : ranges)
      for (char32_t d = 0; d < 3; ++d) tried.insert({r.first - 1 + d, r.last - 1 + d});
    for (int i = 0; i < 300; ++i) tried.insert(rng() % 0x110000);
    for (const char32_t c : tried) {
      if (c > kLastCodePoint || is_surrogate(c)) continue;
      std::string bytes;
      append_utf8(bytes, c);
      GrammarMatcher m = in;
      const bool taken = m.accept_bytes(bytes);
      CHECK(taken == inside(c));
      if (taken) CHECK(m.can_end());
    }
    CHECK(intersection(normalized(ranges), complement(normalized(ranges))).empty());
    CHECK(complement(complement(normalized(ranges))) == normalized(ranges));
  }
}

TEST_CASE("grammar: membership and what may follow, beside a recogniser of its own") {
  int refused_ones = 0, tried = 0, viable = 0, matched = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    const OracleGrammar oracle(seed);
    CAPTURE(seed);
    CAPTURE(oracle.text());
    if (!oracle.ends()) {
      CHECK(contains(refused(oracle.text()), "no text matches rule"));
      ++refused_ones;
      continue;
    }
    const Grammar grammar = Grammar::from_gbnf(oracle.text());
    const GrammarMatcher start(GrammarMasks(grammar, TokenTrie(TokenBytes{{"x"}})));
    // All texts of up to five letters whose prefixes are viable, and texts that differ by one byte.
    std::vector<std::pair<std::string, GrammarMatcher>> level{{"", start}};
    for (std::size_t length = 0; length <= 7 && !level.empty(); ++length) {
      std::vector<std::pair<std::string, GrammarMatcher>> next;
      for (auto& reached : level) {
        const std::string& text = reached.first;
        GrammarMatcher& matcher = reached.second;
        const OracleGrammar::Answer wanted = oracle.ask(text);
        CAPTURE(text);
        CHECK(wanted.viable);
        CHECK(matcher.can_end() == wanted.matches);
        matched += wanted.matches ? 1 : 0;
        for (const char c : std::string("abc\xC3\xA9\xE2\x82\xAC")) {
          GrammarMatcher m = matcher;
          const bool taken = m.accept_bytes({&c, 1});
          ++tried;
          const std::string longer = text + c;
          if (taken != oracle.ask(longer).viable) {
            CAPTURE(longer);
            FAIL_CHECK("taken: " << taken);
          }
          viable += taken ? 1 : 0;
          if (taken && next.size() < 20) next.emplace_back(longer, std::move(m));
        }
      }
      level = std::move(next);
    }
  }
  CHECK(refused_ones > 5);
  CHECK(viable > 1000);
  CHECK(tried - viable > 1000);
  CHECK(matched > 300);
}

TEST_CASE("grammar: masks are what each token does by itself; ends, rewinding, copies") {
  std::mt19937 rng(1);
  int masks = 0, ended = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const OracleGrammar oracle(seed);
    if (!oracle.ends()) continue;
    CAPTURE(seed);
    CAPTURE(oracle.text());
    const TokenTrie trie(small_vocabulary(seed));
    const GrammarMasks shared(Grammar::from_gbnf(oracle.text()), trie);
    for (int walk = 0; walk < 3; ++walk) {
      GrammarMatcher m(shared);
      std::vector<std::vector<std::uint32_t>> seen;
      std::string text;
      for (int i = 0; i < 6 && !m.ended(); ++i, ++masks) {
        check_mask(m, trie);
        seen.emplace_back(m.mask().begin(), m.mask().end());
        std::vector<TokenId> allowed;
        for (std::size_t id = 0; id < trie.size(); ++id)
          if ((seen.back()[id / 32] >> id % 32 & 1U) != 0) allowed.push_back(static_cast<TokenId>(id));
        const std::string forced = m.forced_bytes();
        if (!forced.empty()) {
          for (const TokenId id : allowed) {
            const std::string_view b = trie.bytes(id);
            CHECK(b.substr(0, std::min(b.size(), forced.size())) ==
                  forced.substr(0, std::min(b.size(), forced.size())));
          }
          CHECK_FALSE(m.can_end());
        }
        if (allowed.empty()) break;
        const TokenId id = allowed[rng() % allowed.size()];
        REQUIRE(m.accept(id));
        if (!trie.is_end(id)) text += trie.bytes(id);
      }
      if (m.ended()) {
        ++ended;
        CHECK(std::all_of(m.mask().begin(), m.mask().end(), [](std::uint32_t w) { return w == 0; }));
        CHECK_FALSE(m.accept(0));
        CHECK_FALSE(m.accept_bytes("a"));
      }
      CHECK(oracle.ask(text).viable);
      CHECK(m.can_end() == oracle.ask(text).matches);
      while (m.size() > 0) {
        m.rewind(1);
        const std::vector<std::uint32_t>& was = seen[m.size()];
        CHECK(std::equal(was.begin(), was.end(), m.mask().begin()));
      }
    }
  }
  CHECK(masks > 800);
  CHECK(ended > 50);
}

TEST_CASE("grammar: counts of repetitions are exact, however large") {
  struct Case {
    std::string part, one;
    std::size_t min, max;
  };
  const std::string fill = "\"" + std::string(70, 'x') + "\"";
  for (const Case& c : std::vector<Case>{{"\"a\"", "a", 0, 255},
                                         {"\"a\"", "a", 256, 256},
                                         {"\"a\"", "a", 255, 257},
                                         {"\"a\"", "a", 0, 512},
                                         {"\"a\"", "a", 0, 513},
                                         {"\"a\"", "a", 3, 1000},
                                         {"[a-z\xC3\xA9]", "\xC3\xA9", 700, 70000},
                                         {"\"a\"", "a", 66000, 131072},
                                         {"(" + fill + " " + fill + ")", std::string(140, 'x'), 2, 300}}) {
    const Grammar g = Grammar::from_gbnf("root ::= " + c.part + "{" + std::to_string(c.min) + "," +
                                         std::to_string(c.max) + "} \"!\"");
    CHECK(g.num_states() < 20000);
    std::set<std::size_t> counts{c.min, c.min + 1, c.max, c.max + 1, (c.min + c.max) / 2};
    if (c.min > 0) counts.insert(c.min - 1);
    for (std::size_t n : {255U, 256U, 257U, 511U, 512U, 513U, 768U}) counts.insert(n);
    for (const std::size_t n : counts) {
      if (n > c.max + 1) continue;
      CAPTURE(n);
      CHECK(g.matches(repeated(c.one, n) + "!") == (n >= c.min && n <= c.max));
    }
  }
  CHECK(matches("root ::= (\"a\"?){1000000000}", "aaa"));
  CHECK(matches("root ::= (((\"a\"?){1000}){1000}){1000}", repeated("a", 3000)));
  CHECK(matches("root ::= ((\"a\"*)*)*", repeated("a", 300)));
  CHECK(matches("root ::= " + repeated("(", 200) + "\"a\"" + repeated(")+", 200), repeated("a", 300)));
  CHECK_FALSE(matches("root ::= (\"a\"+ \"b\"){2,}", "aab"));
  CHECK(matches("root ::= (\"a\"+ \"b\"){2,}", "aababab"));
}

TEST_CASE("grammar: hostile grammars take little time, or say why not") {
  const std::clock_t start = std::clock();
  // The number of derivations doubles with every rule.
  std::string doubling = "root ::= r0\n";
  for (int i = 0; i < 60; ++i)
    doubling += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " r" + std::to_string(i + 1) + " | r" +
                std::to_string(i + 1) + "\n";
  CHECK(matches(doubling + "r60 ::= \"a\"?", "aa"));
  CHECK(
      contains(error_text([&] { (void)matches(doubling + "r60 ::= \"a\"?", repeated("a", 100)); }), "too many parses"));
  // The same alternative many times, at every level of nesting.
  CHECK(matches("root ::= x*\nx ::= \"a\" | \"a\" | \"a\" | y\ny ::= \"a\" | x", repeated("a", 20000)));
  CHECK(matches("root ::= \"(\" root \")\" | \"(\" root \")\" | root2\nroot2 ::= \"(\" root \")\" | \"x\"",
                repeated("(", 3000) + "x" + repeated(")", 3000)));
  // There would be 2^n stacks without sharing.
  CHECK(matches("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"",
                repeated("a", 5000) + "d" + repeated("bc", 2500)));
  // Left and right recursion in constant memory.
  const std::string long_text = repeated("ab,", 200000 / kShorter) + "ab";
  CHECK(matches("root ::= root \",\" \"ab\" | \"ab\"", long_text));
  CHECK(matches("root ::= \"ab\" (\",\" root)?", long_text));
  CHECK(matches("root ::= item (\",\" item)*\nitem ::= \"ab\" | \"[\" item \"]\"", long_text));
  CHECK(matches("root ::= x\nx ::= y \",\" \"ab\" | \"ab\"\ny ::= x", long_text));
  CHECK(matches("root ::= (\"[\" root \"]\" | [a-z]+ | \",\")*", repeated("abc,[def],", 200000 / kShorter)));
  // Every split of the text is a derivation: an error, quickly.
  const std::string error = error_text([] { (void)matches("root ::= root root | \"a\"", repeated("a", 100000)); });
  CHECK(contains(error, "too many parses"));
  // The matcher does not change.
  GrammarMatcher m(GrammarMasks(Grammar::from_gbnf("root ::= root root | \"a\""), TokenTrie(TokenBytes{{"a", "b"}})));
  CHECK(m.accept(0));
  CHECK_FALSE(error_text([&] { (void)m.accept_bytes(repeated("a", 100000)); }).empty());
  CHECK(m.size() == 1);
  CHECK(m.accept(0));
  CHECK(m.mask()[0] == 1);
  CHECK((std::clock() - start) / CLOCKS_PER_SEC < 30);
}

TEST_CASE("grammar: what is too large is refused at once, what is only large is not" *
          doctest::test_suite(rlx::test::kSlow)) {
  const auto many = [](std::string_view part, std::size_t count, std::string_view between) {
    std::string out(part);
    for (std::size_t i = 1; i < count; ++i) out.append(between).append(part);
    return out;
  };
  const auto numbered = [](std::size_t count, const std::function<std::string(const std::string&)>& line) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += line(std::to_string(i));
    return out;
  };
  const std::string blank = " ", bar = " | ";
  struct Case {
    std::string grammar, error, text;
  };
  const std::vector<Case> cases{
      {"root ::= " + many("[a-z]{1,1000000}", 2000, blank), "too large", {}},
      {"root ::= " + numbered(2000, [](const auto& i) { return "r" + i + " "; }) + "\n" +
           numbered(2000, [](const auto& i) { return "r" + i + " ::= [a-z]{1,1000000}\n"; }),
       "makes the grammar too large",
       {}},
      {"root ::= " + many("[a-z]{200}", 2000, blank), {}, repeated("x", 400000)},
      {"root ::= " + many("[a-z]{0,200}", 2000, blank), "rule 'root' makes the grammar too large", {}},
      {"root ::= " + many("[a-z]{1,200}", 2000, bar), {}, repeated("x", 200)},
      {"root ::= " + many("\"a\"?", 20000, blank), "too large", {}},
      {"root ::= " + many("(\"a\" | \"aa\" | \"aaa\")?", 5000, blank), "too large", {}},
      {"root ::= \"" + repeated("a", 2000000) + "\"", "too large", {}},
      {"root ::= \"w0\"" + numbered(100000, [](const auto& i) { return " | \"word" + i + "\""; }), {}, "word99999"},
      // Every second character of a large range, repeated many times.
      {[&] {
         std::string set;
         for (char32_t c = 0x3400; c < 0x9FFF; c += 2) append_utf8(set, c);
         return "root ::= [" + set + "]{0,1000}";
       }(),
       {},
       repeated("\xE4\xB8\x80", 1000)},
  };
  for (const Case& c : cases) {
    CAPTURE(c.grammar.substr(0, 60));
    const std::clock_t start = std::clock();
    const std::string error = error_text([&] {
      const Grammar g = Grammar::from_gbnf(c.grammar);
      CHECK(g.matches(c.text));
    });
    CHECK(error.empty() == c.error.empty());
    CHECK(contains(error, c.error));
    // At most a second in an optimized build.
    CHECK((std::clock() - start) / CLOCKS_PER_SEC < (kShorter == 1 ? 3 : 60));
  }
}

TEST_CASE("grammar: a mask of a place in thousands of states is one walk of the vocabulary, or an error") {
  // So many words that one walk per state would take minutes.
  TokenBytes t;
  for (int b = 'a'; b <= 'z'; ++b) t.bytes.emplace_back(1, static_cast<char>(b));
  std::mt19937 rng(4);
  while (t.bytes.size() < 60000 / kShorter) {
    std::string& word = t.bytes.emplace_back();
    for (unsigned n = 2 + rng() % 6; n > 0; --n) word += static_cast<char>('a' + rng() % 26);
  }
  t.bytes.emplace_back();
  t.end.push_back(static_cast<TokenId>(t.bytes.size()) - 1);
  const TokenTrie trie(t);
  // Recursive rules are not expanded, and each letter leads to a new state.
  std::string text = "root ::= r0";
  for (int i = 1; i < 3000; ++i) text += " | r" + std::to_string(i);
  for (int i = 0; i < 3000; ++i) {
    const std::string n = std::to_string(i);
    text += "\nr" + n + " ::= [a-z] r" + n + " | \"" + n + "\"";
  }
  const std::clock_t start = std::clock();
  GrammarMatcher m(GrammarMasks(Grammar::from_gbnf(text), trie));
  for (int step = 0; step < 3; ++step) {
    const auto mask = m.mask();
    for (std::size_t id = 0; id + 1 < trie.size(); ++id) CHECK_FALSE((mask[id / 32] >> id % 32 & 1U) == 0);
    CHECK_FALSE((mask[(trie.size() - 1) / 32] >> (trie.size() - 1) % 32 & 1U) != 0);
    CHECK(m.accept(0));
  }
  CHECK(std::clock() - start < CLOCKS_PER_SEC * (kShorter == 1 ? 1 : 60));
}

TEST_CASE("grammar: a long sequence keeps what it needs when the shared stacks are begun anew") {
  // Contexts that do not occur again: each depth of nesting, in one sequence and a copy of it.
  const Grammar g = Grammar::from_gbnf("root ::= \"[\" root \"]\" | \"x\"");
  GrammarMatcher m(GrammarMasks(g, TokenTrie(TokenBytes{{"[", "]", "x", ""}, {}, {3}})));
  constexpr std::size_t kDepth = 600000 / kShorter;
  REQUIRE(m.accept_bytes("["));
  GrammarMatcher shallow = m;
  REQUIRE(m.accept_bytes(std::string(kDepth - 1, '[')));
  GrammarMatcher deep = m;
  CHECK(m.accept(2));
  CHECK_FALSE(m.accept_bytes(std::string(kDepth + 1, ']')));
  CHECK(m.accept_bytes(std::string(kDepth, ']')));
  CHECK(m.can_end());
  CHECK(m.mask()[0] == 0b1000);
  CHECK(shallow.accept_bytes("x]"));
  CHECK(shallow.can_end());
  CHECK_FALSE(deep.can_end());
  CHECK(deep.mask()[0] == 0b101);
  m.rewind(3);
  CHECK(m.size() == 1);
  CHECK(m.mask()[0] == 0b101);
  CHECK(m.accept_bytes("x]"));
  CHECK(m.can_end());
}

TEST_CASE("grammar: sequences in several threads share masks") {
  const TokenTrie trie(small_vocabulary(3));
  const Grammar g = Grammar::from_gbnf("root ::= (\"a\" root \"b\" | [b-c\xC3\xA9] root | \"c\" | \"\xE2\x82\xAC\")*");
  // The tokens and masks of a random walk.
  const auto walk = [&](const GrammarMasks& masks, unsigned seed) {
    std::mt19937 rng(seed);
    std::vector<std::uint32_t> out;
    GrammarMatcher m(masks);
    for (int i = 0; i < 40 && !m.ended(); ++i) {
      const std::vector<std::uint32_t> mask(m.mask().begin(), m.mask().end());
      out.insert(out.end(), mask.begin(), mask.end());
      std::size_t id = rng() % trie.size();
      while ((mask[id / 32] >> id % 32 & 1U) == 0) id = (id + 1) % trie.size();
      CHECK(m.accept(static_cast<TokenId>(id)));
      if (i % 7 == 6) m.rewind(rng() % 4);
    }
    return out;
  };
  constexpr unsigned kThreads = 4;
  const GrammarMasks shared(g, trie);
  std::vector<std::vector<std::uint32_t>> got(kThreads);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { got[t] = walk(shared, t); });
  for (std::thread& t : threads) t.join();
  for (unsigned t = 0; t < kThreads; ++t) CHECK(got[t] == walk(GrammarMasks(g, trie), t));
}

}  // namespace rlx
