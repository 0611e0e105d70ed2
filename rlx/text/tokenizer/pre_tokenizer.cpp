// Splitting of texts into words: each step passes its pieces to the next step at once.
#include "rlx/text/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "rlx/base/utf8.h"
#include "rlx/text/tokenizer/byte_level.h"
#include "rlx/text/unicode.h"

namespace rlx {
namespace {

using Span = std::pair<std::size_t, std::size_t>;

// Combines pieces of a text, in order, as a SplitBehavior requires.
template <class Emit>
class Gatherer {
 public:
  Gatherer(SplitBehavior behavior, const Emit& emit) : behavior_(behavior), emit_(emit) {}

  void add(std::size_t begin, std::size_t end, bool match) {
    switch (behavior_) {
      case SplitBehavior::Isolated: emit_(begin, end); return;
      case SplitBehavior::Removed:
        if (!match) emit_(begin, end);
        return;
      case SplitBehavior::Contiguous: gather(begin, end, match == previous_); break;
      case SplitBehavior::MergedWithPrevious: gather(begin, end, match && !previous_); break;
      case SplitBehavior::MergedWithNext: gather(begin, end, !match && previous_); break;
    }
    previous_ = match;
  }
  void finish() {
    if (open_) emit_(begin_, end_);
    open_ = false;
  }

 private:
  void gather(std::size_t begin, std::size_t end, bool joins) {
    if (open_ && !joins) emit_(begin_, end_);
    if (!open_ || !joins) begin_ = begin;
    end_ = end;
    open_ = true;
  }

  SplitBehavior behavior_;
  const Emit& emit_;
  bool open_ = false, previous_ = false;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace

PreTokenizer::Run::Run(const PreTokenizer& pre_tokenizer)
    : steps_(pre_tokenizer.steps_), states_(pre_tokenizer.steps_.size()) {}

// Calls the next step with each piece. `next_match` returns the matches in order.
template <class NextMatch>
void PreTokenizer::Run::cut(std::size_t index, std::string_view text, bool first, SplitBehavior behavior, bool invert,
                            const NextMatch& next_match) {
  const auto emit = [&](std::size_t begin, std::size_t end) {
    if (end > begin) step(index + 1, text.substr(begin, end - begin), first && begin == 0);
  };
  Gatherer<decltype(emit)> gatherer(behavior, emit);
  std::size_t done = 0;
  while (const std::optional<Span> match = next_match()) {
    if (match->first != done) gatherer.add(done, match->first, invert);
    gatherer.add(match->first, match->second, !invert);
    done = match->second;
  }
  if (done != text.size()) gatherer.add(done, text.size(), invert);
  gatherer.finish();
}

// Splits a text where each character that passes the test is a match.
template <class Test>
void PreTokenizer::Run::cut_characters(std::size_t index, std::string_view text, bool first, SplitBehavior behavior,
                                       const Test& test) {
  std::size_t at = 0;
  cut(index, text, first, behavior, false, [&]() -> std::optional<Span> {
    while (at < text.size()) {
      const std::size_t begin = at;
      if (test(decode_utf8(text, at))) return Span(begin, at);
    }
    return std::nullopt;
  });
}

void PreTokenizer::Run::byte_level(std::size_t index, std::string_view text, bool first) {
  const PreTokenizerStep& s = steps_[index];
  const bool space = s.prefix_space && !text.starts_with(' ');
  std::string with_space;
  if (space) {
    with_space.reserve(text.size() + 1);
    with_space = ' ';
    with_space += text;
    text = with_space;
  }
  const auto map = [&](std::string_view word, bool at_start) {
    std::string& out = states_[index].text;
    out.clear();
    append_byte_characters(out, word);
    step(index + 1, out, at_start);
  };
  if (!s.regex) return map(text, first);
  Regex::Matcher& matcher = *states_[index].matcher;
  matcher.start(text);
  std::size_t done = 0;
  const auto piece = [&](std::size_t begin, std::size_t end) {
    if (end > begin) map(text.substr(begin, end - begin), first && begin == 0);
  };
  while (const std::optional<Span> match = matcher.next()) {
    piece(done, match->first);
    piece(match->first, match->second);
    done = match->second;
  }
  piece(done, text.size());
}

void PreTokenizer::Run::metaspace(std::size_t index, std::string_view text, bool first) {
  const PreTokenizerStep& s = steps_[index];
  std::string out;
  out.reserve(text.size() + text.size() / 4 + 4);
  const bool wanted =
      s.prepend == PreTokenizerStep::Prepend::Always || (s.prepend == PreTokenizerStep::Prepend::First && first);
  if (wanted && !text.starts_with(' ') && !text.starts_with(s.replacement)) out += s.replacement;
  for (const char c : text) {
    if (c == ' ') {
      out += s.replacement;
    } else {
      out += c;
    }
  }
  if (!s.split) return step(index + 1, out, first);
  std::size_t at = 0;
  const std::string_view whole = out;
  cut(index, whole, first, SplitBehavior::MergedWithNext, false, [&]() -> std::optional<Span> {
    const std::size_t found = whole.find(s.replacement, at);
    if (found == std::string_view::npos) return std::nullopt;
    at = found + s.replacement.size();
    return Span(found, at);
  });
}

void PreTokenizer::Run::step(std::size_t index, std::string_view text, bool first) {
  using Kind = PreTokenizerStep::Kind;
  if (text.empty()) return;
  if (index == steps_.size()) return sink_(text);
  const PreTokenizerStep& s = steps_[index];
  if (s.regex && !states_[index].matcher) states_[index].matcher.emplace(*s.regex);
  switch (s.kind) {
    case Kind::ByteLevel: return byte_level(index, text, first);
    case Kind::Metaspace: return metaspace(index, text, first);
    case Kind::Split: {
      Regex::Matcher& matcher = *states_[index].matcher;
      matcher.start(text);
      return cut(index, text, first, s.behavior, s.invert, [&] { return matcher.next(); });
    }
    case Kind::WhitespaceSplit: return cut_characters(index, text, first, SplitBehavior::Removed, is_white_space);
    case Kind::Digits: return cut_characters(index, text, first, s.behavior, is_number);
    case Kind::Punctuation: return cut_characters(index, text, first, s.behavior, is_punctuation);
    case Kind::Delimiter: {
      std::size_t at = 0;
      const char32_t delimiter = decode_utf8(s.replacement, at);
      return cut_characters(index, text, first, SplitBehavior::Removed, [&](char32_t c) { return c == delimiter; });
    }
    case Kind::Bert:
    case Kind::Whitespace: {
      // Runs of one character class. White space is dropped, and each punctuation character of BERT is a word.
      const bool bert = s.kind == Kind::Bert;
      const auto kind_of = [&](char32_t c) {
        if (is_white_space(c)) return 0;
        return bert ? (is_punctuation(c) ? 2 : 1) : is_word_character(c) ? 1 : 2;
      };
      std::size_t begin = 0, at = 0;
      int kind = 0;
      const auto close = [&](std::size_t end) {
        if (kind != 0 && end > begin) step(index + 1, text.substr(begin, end - begin), first && begin == 0);
      };
      while (at < text.size()) {
        const std::size_t here = at;
        const int next = kind_of(decode_utf8(text, at));
        if (next != kind || (bert && next == 2)) {
          close(here);
          begin = here;
          kind = next;
        }
      }
      return close(text.size());
    }
    case Kind::FixedLength: {
      std::size_t at = 0;
      while (at < text.size()) {
        const std::size_t begin = at;
        for (std::int64_t i = 0; i < s.length && at < text.size(); ++i) (void)decode_utf8(text, at);
        step(index + 1, text.substr(begin, at - begin), first && begin == 0);
      }
      return;
    }
  }
}

}  // namespace rlx
