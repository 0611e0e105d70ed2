// WordPiece: Unicode normalisation, splitting into words, and the vocabulary search.
// The steps are those of the BERT paper's tokeniser as the Python `tokenizers` library runs them; where they differ in
// detail, ids equal to the library's count (tests/parity/wordpiece_parity.py).
#include "rlx/text/wordpiece.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/ir/utf8.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// Property White_Space of Unicode.
bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

// The CJK ideograph blocks of BERT's tokeniser; kana and hangul are not among them.
bool is_cjk(char32_t c) {
  return c >= 0x3400 &&
         ((c >= 0x4E00 && c <= 0x9FFF) || c <= 0x4DBF || (c >= 0xF900 && c <= 0xFAFF) ||
          (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) ||
          (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0x2F800 && c <= 0x2FA1F));
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_punctuation(char32_t c) {
  if (c < 0x80) return is_ascii_punctuation(c);
  const utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

// Control, format and private use are dropped; unassigned code points stay, they are words of unknown kind.
bool is_dropped(char32_t c) {
  if (c == 0 || c == 0xFFFD) return true;
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const utf8proc_category_t k = category(c);
  return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO;
}

// What a regular expression calls \w.
bool is_word_character(char32_t c) {
  const utf8proc_category_t k = category(c);
  return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC || c == 0x200C ||
         c == 0x200D || (c >= 0x24B6 && c <= 0x24E9);
}

constexpr std::uint8_t kDropByte = 0xFF;
enum class CharClass : std::uint8_t { Word, Space, Punctuation };

constexpr std::array<CharClass, 128> make_ascii_classes() {
  std::array<CharClass, 128> classes{};
  for (std::size_t c = 0; c < 128; ++c) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    const bool punctuation =
        (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    classes[c] = space ? CharClass::Space : punctuation ? CharClass::Punctuation : CharClass::Word;
  }
  return classes;
}
constexpr std::array<CharClass, 128> kAsciiClasses = make_ascii_classes();

// Turns text into normalised text, one character at a time.
class Normalizer {
 public:
  explicit Normalizer(const WordPieceOptions& options) : options_(options) {
    for (unsigned c = 0; c < 128; ++c) {
      unsigned mapped = c;
      if (options.clean_text && is_dropped(c)) mapped = kDropByte;
      if (options.clean_text && is_white_space(c) && mapped != kDropByte) mapped = ' ';
      if (options.lowercase && c >= 'A' && c <= 'Z') mapped = c + 32;
      ascii_[c] = static_cast<std::uint8_t>(mapped);
    }
  }

  // Appends the normal form of valid UTF-8 to `out`.
  void run(std::string_view text, std::string& out) {
    std::size_t at = 0;
    while (at < text.size()) {
      // A run of ASCII, the usual case, is a table look-up per byte into space made once.
      std::size_t end = at;
      while (end < text.size() && static_cast<unsigned char>(text[end]) < 0x80) ++end;
      if (end > at) {
        flush(out);
        const std::size_t start = out.size();
        out.resize(start + (end - at));
        char* write = out.data() + start;
        for (; at < end; ++at) {
          const std::uint8_t mapped = ascii_[static_cast<unsigned char>(text[at])];
          *write = static_cast<char>(mapped);
          write += mapped != kDropByte ? 1 : 0;
        }
        out.resize(static_cast<std::size_t>(write - out.data()));
      }
      while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) clean(decode_utf8(text, at), out);
    }
    flush(out);
  }

 private:
  void clean(char32_t c, std::string& out) {
    if (options_.clean_text) {
      if (is_dropped(c)) return;
      if (is_white_space(c)) c = ' ';
    }
    if (options_.handle_chinese_chars && is_cjk(c)) {
      flush(out);
      out += ' ';
      strip(c, out);
      flush(out);
      out += ' ';
    } else {
      strip(c, out);
    }
  }

  // Canonical decomposition without nonspacing marks. Marks of another category that have a combining class wait in
  // pending_ until the next starter, because canonical order sorts them by that class.
  void strip(char32_t c, std::string& out) {
    if (!options_.strip_accents) {
      lower(c, out);
      return;
    }
    const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
    const bool hangul = c >= 0xAC00 && c <= 0xD7A3;
    if (property->decomp_seqindex == 0xFFFF && !hangul) {
      place(c, property, out);
      return;
    }
    utf8proc_int32_t parts[8];
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 8, UTF8PROC_DECOMPOSE, &boundary);
    check(count > 0 && count <= 8, "a canonical decomposition has at most four characters");
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      place(static_cast<char32_t>(parts[i]), utf8proc_get_property(parts[i]), out);
    }
  }

  void place(char32_t c, const utf8proc_property_t* property, std::string& out) {
    const bool mark = property->category == UTF8PROC_CATEGORY_MN;
    if (property->combining_class != 0) {
      if (!mark) pending_.push_back({property->combining_class, c});
      return;
    }
    flush(out);
    if (!mark) lower(c, out);
  }

  void flush(std::string& out) {
    if (pending_.empty()) return;
    std::stable_sort(pending_.begin(), pending_.end(),
                     [](const Pending& a, const Pending& b) { return a.combining_class < b.combining_class; });
    for (const Pending& p : pending_) lower(p.c, out);
    pending_.clear();
  }

  void lower(char32_t c, std::string& out) const {
    if (!options_.lowercase) {
      append_utf8(out, c);
    } else if (c == 0x130) {
      out += "i\xCC\x87";  // the one character whose lower case is two
    } else {
      append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  }

  struct Pending {
    int combining_class;
    char32_t c;
  };
  const WordPieceOptions& options_;
  std::array<std::uint8_t, 128> ascii_{};
  std::vector<Pending> pending_;
};

// Calls `rest(text)` for the stretches of `text` between added tokens and `token(id)` for the tokens, in order.
// Among tokens that start at the same place the longest wins, and a match is consumed even when `single_word` rejects
// it.
template <class Pattern, class Rest, class Token>
void split_added(std::string_view text, const std::vector<Pattern>& patterns, const Rest& rest, const Token& token) {
  std::array<bool, 256> starts{};
  for (const Pattern& p : patterns) starts[static_cast<unsigned char>(p.text[0])] = true;
  const bool single_start = std::count(starts.begin(), starts.end(), true) == 1;
  std::size_t done = 0, at = 0;
  while (at < text.size()) {
    if (single_start) {
      at = std::min(text.find(patterns[0].text[0], at), text.size());
    } else {
      while (at < text.size() && !starts[static_cast<unsigned char>(text[at])]) ++at;
    }
    const Pattern* best = nullptr;
    for (const Pattern& p : patterns) {
      if ((best == nullptr || p.text.size() > best->text.size()) && text.substr(at, p.text.size()) == p.text) best = &p;
    }
    if (best == nullptr) {
      ++at;
      continue;
    }
    std::size_t start = at, stop = at + best->text.size();
    at = stop;
    const AddedToken& added = *best->token;
    if (added.single_word) {
      std::size_t before = start, after = stop;
      while (before > 0 && is_utf8_continuation(text[before - 1])) --before;
      if (before > 0 && (--before, is_word_character(decode_utf8(text, before)))) continue;
      if (after < text.size() && is_word_character(decode_utf8(text, after))) continue;
    }
    if (added.lstrip) {
      while (start > done) {
        std::size_t previous = start - 1;
        while (is_utf8_continuation(text[previous])) --previous;
        std::size_t next = previous;
        if (!is_white_space(decode_utf8(text, next))) break;
        start = previous;
      }
      start = std::max(start, done);
    }
    if (added.rstrip) {
      while (stop < text.size()) {
        std::size_t next = stop;
        if (!is_white_space(decode_utf8(text, next))) break;
        stop = next;
      }
    }
    if (done < start) rest(text.substr(done, start - done));
    token(added.id);
    done = stop;
  }
  if (done < text.size()) rest(text.substr(done));
}

struct AddedPattern {
  std::string text;
  const AddedToken* token;
};

void require_utf8(std::string_view text) {
  if (const std::optional<std::size_t> bad = find_invalid_utf8(text)) {
    constexpr char kHex[] = "0123456789ABCDEF";
    const unsigned byte = static_cast<unsigned char>(text[*bad]);
    throw Error(
        ErrorCode::InvalidArgument,
        concat_text("invalid UTF-8 at byte ", *bad, " of ", text.size(), " (0x", kHex[byte >> 4], kHex[byte & 15], ")"),
        "convert the text to UTF-8, for example with iconv");
  }
}

}  // namespace

/// One call of encode: the buffers it needs and the steps after splitting.
class WordPieceEncoder {
 public:
  WordPieceEncoder(const WordPieceTokenizer& tokenizer, std::vector<TokenId>& ids)
      : t_(tokenizer), ids_(ids), normalizer_(tokenizer.options_), hashes_(tokenizer.vocabulary_.longest()) {}

  void run(std::string_view text) {
    const auto raw = [&](std::string_view rest) {
      normal_.clear();
      normalizer_.run(rest, normal_);
      if (normalized_patterns_.empty()) {
        words(normal_);
      } else {
        split_added(
            normal_, normalized_patterns_, [&](std::string_view w) { words(w); },
            [&](TokenId id) { ids_.push_back(id); });
      }
    };
    std::vector<AddedPattern> patterns;
    for (const AddedToken& added : t_.added_) {
      if (added.normalized) {
        std::string content;
        normalizer_.run(added.content, content);
        if (!content.empty()) normalized_patterns_.push_back({std::move(content), &added});
      } else {
        patterns.push_back({added.content, &added});
      }
    }
    if (patterns.empty()) {
      raw(text);
    } else {
      split_added(text, patterns, raw, [&](TokenId id) { ids_.push_back(id); });
    }
  }

 private:
  void words(std::string_view text) {
    std::size_t start = 0, at = 0;
    const auto close = [&](std::size_t end) {
      if (end > start) word(text.substr(start, end - start));
    };
    while (at < text.size()) {
      const unsigned char byte = static_cast<unsigned char>(text[at]);
      std::size_t next = at;
      CharClass kind = CharClass::Word;
      if (byte < 0x80) {
        kind = kAsciiClasses[byte];
        ++next;
      } else {
        const char32_t c = decode_utf8(text, next);
        kind = is_white_space(c) ? CharClass::Space : is_punctuation(c) ? CharClass::Punctuation : CharClass::Word;
      }
      if (kind != CharClass::Word) {
        close(at);
        if (kind == CharClass::Punctuation) word(text.substr(at, next - at));
        start = next;
      }
      at = next;
    }
    close(text.size());
  }

  // Greedy longest match from the left; a word with any unmatched rest is one unknown token.
  void word(std::string_view w) {
    if (static_cast<std::int64_t>(w.size()) > t_.options_.max_chars_per_word) {
      const auto chars = std::count_if(w.begin(), w.end(), [](char c) { return !is_utf8_continuation(c); });
      if (chars > t_.options_.max_chars_per_word) {
        ids_.push_back(t_.unk_);
        return;
      }
    }
    const std::size_t before = ids_.size();
    std::size_t at = 0;
    while (at < w.size()) {
      const std::string_view head = at == 0 ? std::string_view() : std::string_view(t_.options_.continuation);
      std::uint64_t state = at == 0 ? Vocabulary::kHashSeed : t_.continuation_state_;
      const std::size_t limit = std::min(w.size() - at, hashes_.size());
      for (std::size_t i = 0; i < limit; ++i) hashes_[i] = state = Vocabulary::hash_step(state, w[at + i]);
      std::size_t length = limit;
      for (; length > 0; --length) {
        if (at + length < w.size() && is_utf8_continuation(w[at + length])) continue;
        if (const std::optional<TokenId> id = t_.vocabulary_.find(hashes_[length - 1], head, w.substr(at, length))) {
          ids_.push_back(*id);
          break;
        }
      }
      if (length == 0) {
        ids_.resize(before);
        ids_.push_back(t_.unk_);
        return;
      }
      at += length;
    }
  }

  const WordPieceTokenizer& t_;
  std::vector<TokenId>& ids_;
  Normalizer normalizer_;
  std::vector<std::uint64_t> hashes_;
  std::vector<AddedPattern> normalized_patterns_;
  std::string normal_;
};

std::vector<TokenId> WordPieceTokenizer::encode(std::string_view text, bool add_special_tokens) const try {
  require_utf8(text);
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 8);
  if (add_special_tokens) ids.insert(ids.end(), prefix_.begin(), prefix_.end());
  WordPieceEncoder(*this, ids).run(text);
  if (add_special_tokens) ids.insert(ids.end(), suffix_.begin(), suffix_.end());
  return ids;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("WordPieceTokenizer::encode");
}

std::string WordPieceTokenizer::normalize(std::string_view text) const try {
  require_utf8(text);
  std::string out;
  Normalizer(options_).run(text, out);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("WordPieceTokenizer::normalize");
}

std::string WordPieceTokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const try {
  static constexpr std::pair<std::string_view, std::string_view> kCleanups[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  std::string out;
  bool first = true;
  for (const TokenId id : ids) {
    const std::optional<std::string_view> token = id_to_token(id);
    if (!token) {
      throw Error(ErrorCode::InvalidArgument, concat_text("no token has the id ", id),
                  concat_text("ids of this tokeniser are 0 to ", vocab_size() - 1));
    }
    const bool special =
        std::any_of(added_.begin(), added_.end(), [&](const AddedToken& a) { return a.id == id && a.special; });
    if (special && skip_special_tokens) continue;
    std::string piece;
    if (first) {
      piece = *token;
    } else if (!options_.continuation.empty() &&
               token->substr(0, options_.continuation.size()) == options_.continuation) {
      piece = token->substr(options_.continuation.size());
    } else {
      piece = concat_text(" ", *token);
    }
    first = false;
    if (options_.cleanup_decoded) {
      for (const auto& cleanup : kCleanups) {
        for (std::size_t at = 0; (at = piece.find(cleanup.first, at)) != std::string::npos;
             at += cleanup.second.size()) {
          piece.replace(at, cleanup.first.size(), cleanup.second);
        }
      }
    }
    out += piece;
  }
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("WordPieceTokenizer::decode");
}

std::optional<TokenId> WordPieceTokenizer::token_to_id(std::string_view text) const {
  for (const AddedToken& added : added_) {
    if (added.content == text) return added.id;
  }
  return vocabulary_.find(text);
}

std::optional<std::string_view> WordPieceTokenizer::id_to_token(TokenId id) const {
  if (!vocabulary_.has(id)) return std::nullopt;
  return vocabulary_.token(id);
}

}  // namespace rlx
