// Patterns of tokenizers: matches equal those of PCRE2 on the whole text, and their work grows with the text alone.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "rlx/text/regex.h"

#include <doctest/doctest.h>
#include <pcre2.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rlx/base/utf8.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using Matches = std::vector<std::pair<std::size_t, std::size_t>>;

Matches matches(const std::string& pattern, const std::string& text) {
  Matches out;
  Regex::Matcher m(Regex(pattern, "test"));
  m.start(text);
  while (const auto found = m.next()) out.push_back(*found);
  return out;
}

// All matches by PCRE2's interpreter, without windows and budgets.
Matches matches_by_pcre2(const std::string& pattern, const std::string& text) {
  const auto* bytes = reinterpret_cast<PCRE2_SPTR>(pattern.data());
  int error = 0;
  PCRE2_SIZE offset = 0;
  const std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code(
      pcre2_compile(bytes, pattern.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, nullptr),
      pcre2_code_free);
  REQUIRE(code);
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(pcre2_match_data_create(1, nullptr),
                                                                                 pcre2_match_data_free);
  Matches out;
  std::size_t at = 0, last = 0;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  while (pcre2_match(code.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK, data.get(), nullptr) >= 0) {
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    if (ends[0] == ends[1] && !out.empty() && last == ends[1]) {
      if (at >= text.size()) break;
      std::size_t next = at;
      (void)decode_utf8(text, next);
      at = next;
      continue;
    }
    at = last = ends[1];
    out.emplace_back(ends[0], ends[1]);
  }
  return out;
}

std::string repeated(const std::string& part, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += part;
  return out;
}

}  // namespace

TEST_CASE("patterns: matches are those of PCRE2, wherever the windows of a search end") {
  const std::vector<std::string> patterns = {
      "\\p{L}+",
      "(?=\\p{L})\\p{L}{1,3}",
      " ?\\p{L}+| ?\\p{N}+| ?[^ \\p{L}\\p{N}]+|[ \\n]+(?![^ \\n])|[ \\n]+",
      "(\\p{L}+ )*\\p{N}",
      "a*",
      "(?:ab|a)*b?",
      "$",
      "^",
      "[^b]*b",
      "(?<=a)b+",
      "(?<!b)a{2,}",
      "a+?b",
      "(?i:'x|'t)|\\p{L}+",
      "(a|b| )+?\\n",
      "\\p{L}{0,5}(?=\\n|$)",
      "(?:a(?=.*b))+",
      ".*",
      "(?>a+)b",
      "a{100,200}",
      "[ab]{150}",
      "(ab)+\\z",
      "\\p{N}{1,3}(?=(?:\\p{N}{3})*$)",
  };
  const std::vector<std::string> parts = {"a", "a", "b", " ", "\n", "ab", "1", "\u65e5", "\u00e9", "x"};
  std::mt19937 dice(11);
  const auto roll = [&](std::size_t n) { return static_cast<std::size_t>(dice() % n); };
  std::size_t compared = 0;
  for (int round = 0; round < 600; ++round) {
    const std::string &pattern = patterns[roll(patterns.size())], &run = parts[roll(parts.size())];
    const std::size_t count = roll(500), how = roll(3);
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += how == 0 ? parts[roll(parts.size())] : how == 1 || roll(40) != 0 ? run : parts[roll(parts.size())];
    CAPTURE(pattern);
    CAPTURE(text);
    const Matches ours = matches(pattern, text), theirs = matches_by_pcre2(pattern, text);
    REQUIRE(ours == theirs);
    compared += ours.size();
  }
  CHECK(compared > 1000);
}

TEST_CASE("patterns: work that grows faster than the text is refused, and long tokens are not") {
  const std::string letters(300'000, 'a'), words = repeated("ab ", 300'000), ends_in_b = letters + "b";
  const std::pair<const char*, const std::string*> attacks[] = {
      {"(\\p{L}+ )*\\p{N}", &words}, {"\\p{L}+\\p{N}", &letters}, {"(?:(?=\\p{L}*\\p{N})\\p{L})*\\p{N}", &letters},
      {"a(?=.*b)|a", &letters},      {"(a+)+$", &ends_in_b},
  };
  for (const auto& attack : attacks) {
    CAPTURE(std::string(attack.first));
    const std::string said = test::error_text([&] { (void)matches(attack.first, *attack.second); });
    CHECK_MESSAGE(test::contains(said, "needs too many steps at byte"), said);
  }
  CHECK(matches(" ?\\p{L}+| ?\\p{N}+|\\s+", letters).size() == 1);
  CHECK(matches("(?:ab )+", words).size() == 1);
  CHECK(matches("\\p{Lu}", letters).empty());
}

}  // namespace rlx
