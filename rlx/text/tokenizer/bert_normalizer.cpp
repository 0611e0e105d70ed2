// BERT's normaliser, one character at a time.
#include "rlx/text/tokenizer/bert_normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/unicode.h"

namespace rlx {
namespace {

constexpr std::uint8_t kDropByte = 0xFF;

// The state of a pass: marks that wait for the next starter.
class Walk {
 public:
  Walk(const BertNormalizerOptions& options, std::string& out) : options_(options), out_(out) {}

  void clean(char32_t c) {
    if (options_.clean_text) {
      if (is_bert_dropped(c)) return;
      if (is_white_space(c)) c = ' ';
    }
    if (options_.handle_chinese_chars && is_cjk(c)) {
      flush();
      out_ += ' ';
      strip(c);
      flush();
      out_ += ' ';
    } else {
      strip(c);
    }
  }

  void flush() {
    if (pending_.empty()) return;
    std::stable_sort(pending_.begin(), pending_.end(),
                     [](const Pending& a, const Pending& b) { return a.combining_class < b.combining_class; });
    for (const Pending& p : pending_) lower(p.c);
    pending_.clear();
  }

 private:
  // Canonical decomposition without nonspacing marks. Marks of another category with a combining class wait in pending_
  // until the next starter, because canonical order sorts them by that class.
  void strip(char32_t c) {
    if (!options_.strip_accents) return lower(c);
    const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
    const bool hangul = c >= 0xAC00 && c <= 0xD7A3;
    if (property->decomp_seqindex == UINT16_MAX && !hangul) return place(c, property);
    utf8proc_int32_t parts[8];
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 8, UTF8PROC_DECOMPOSE, &boundary);
    check(count > 0 && count <= 8, "a canonical decomposition has at most four characters");
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      place(static_cast<char32_t>(parts[i]), utf8proc_get_property(parts[i]));
    }
  }

  void place(char32_t c, const utf8proc_property_t* property) {
    const bool mark = property->category == UTF8PROC_CATEGORY_MN;
    if (property->combining_class != 0) {
      if (!mark) pending_.push_back({property->combining_class, c});
      return;
    }
    flush();
    if (!mark) lower(c);
  }

  void lower(char32_t c) {
    if (options_.lowercase) {
      append_lower(out_, c);
    } else {
      append_utf8(out_, c);
    }
  }

  struct Pending {
    int combining_class;
    char32_t c;
  };
  const BertNormalizerOptions& options_;
  std::string& out_;
  std::vector<Pending> pending_;
};

}  // namespace

BertNormalizer::BertNormalizer(const BertNormalizerOptions& options) : options_(options) {
  for (unsigned c = 0; c < 128; ++c) {
    unsigned mapped = c;
    if (options.clean_text && is_bert_dropped(c)) mapped = kDropByte;
    if (options.clean_text && is_white_space(c) && mapped != kDropByte) mapped = ' ';
    if (options.lowercase && c >= 'A' && c <= 'Z') mapped = c + 32;
    ascii_[c] = static_cast<std::uint8_t>(mapped);
  }
}

void BertNormalizer::run(std::string_view text, std::string& out) const {
  Walk walk(options_, out);
  std::size_t at = 0;
  while (at < text.size()) {
    // The fast path for ASCII runs: a table look-up per byte into reserved space.
    std::size_t end = at;
    while (end < text.size() && static_cast<unsigned char>(text[end]) < 0x80) ++end;
    if (end > at) {
      walk.flush();
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
    while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) walk.clean(decode_utf8(text, at));
  }
  walk.flush();
}

}  // namespace rlx
