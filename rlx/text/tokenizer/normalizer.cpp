// The steps of normalisers. Each writes from one buffer into another.
#include "rlx/text/tokenizer/normalizer.h"

#include <algorithm>

#include "rlx/base/utf8.h"
#include "rlx/base/work_budget.h"
#include "rlx/error.h"
#include "rlx/text/tokenizer/byte_level.h"

namespace rlx {
namespace {

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

// Text of `size` bytes that a step may make, given that `limit` is allowed.
void check_growth(std::size_t size, std::size_t limit) {
  if (size > limit)
    throw Error(ErrorCode::Unsupported, concat_text("the normaliser turned a text into more than ", limit, " bytes"),
                "the tokenizer file is damaged or malicious");
}

void replace_text(std::string_view text, std::string_view pattern, std::string_view content, std::size_t limit,
                  std::string& out) {
  std::size_t at = 0;
  for (std::size_t found; (found = text.find(pattern, at)) != std::string_view::npos; at = found + pattern.size()) {
    out += text.substr(at, found - at);
    out += content;
    check_growth(out.size(), limit);
  }
  out += text.substr(at);
}

void replace_matches(std::string_view text, const Regex& regex, std::string_view content, std::size_t limit,
                     std::string& out) {
  if (text.empty()) return;
  Regex::Matcher matcher(regex);
  matcher.start(text);
  std::size_t at = 0;
  while (const auto match = matcher.next()) {
    out += text.substr(at, match->first - at);
    out += content;
    check_growth(out.size(), limit);
    at = match->second;
  }
  out += text.substr(at);
}

// SentencePiece's nmt rules: drops control characters, maps unusual spaces to a space.
void nmt(std::string_view text, std::string& out) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = decode_utf8(text, at);
    if ((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) continue;
    const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                       c == 0xFFFD;
    if (space) {
      out += ' ';
    } else {
      out += text.substr(begin, at - begin);
    }
  }
}

std::string_view strip(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    std::size_t next = 0;
    if (!is_white_space(decode_utf8(text, next))) break;
    text.remove_prefix(next);
  }
  while (right && !text.empty()) {
    std::size_t last = text.size() - 1;
    while (is_utf8_continuation(text[last])) --last;
    std::size_t next = last;
    if (!is_white_space(decode_utf8(text, next))) break;
    text = text.substr(0, last);
  }
  return text;
}

// A cheap check that a step leaves this text unchanged; false when unsure.
bool leaves(const NormalizerStep& step, std::string_view text) {
  switch (step.kind) {
    case NormalizerStep::Kind::Form:
    case NormalizerStep::Kind::StripAccents: return is_ascii(text);
    case NormalizerStep::Kind::Replace: return !step.regex && text.find(step.pattern) == std::string_view::npos;
    case NormalizerStep::Kind::Prepend: return text.empty();
    default: return text.empty();
  }
}

void apply(const NormalizerStep& step, std::string_view text, std::size_t limit, std::string& out) {
  using Kind = NormalizerStep::Kind;
  switch (step.kind) {
    case Kind::Form: return append_normal_form(out, text, step.form);
    case Kind::Lowercase:
      for (std::size_t at = 0; at < text.size();) append_lower(out, decode_utf8(text, at));
      return;
    case Kind::StripAccents:
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        if (!is_mark(decode_utf8(text, at))) out += text.substr(begin, at - begin);
      }
      return;
    case Kind::Strip: out += strip(text, step.left, step.right); return;
    case Kind::Replace:
      if (step.regex) return replace_matches(text, *step.regex, step.content, limit, out);
      return replace_text(text, step.pattern, step.content, limit, out);
    case Kind::Prepend:
      out += step.content;
      out += text;
      return;
    case Kind::Nmt: return nmt(text, out);
    case Kind::Charsmap: return step.charsmap->run(text, out);
    case Kind::Bert: return step.bert->run(text, out);
    case Kind::ByteLevel: return append_byte_characters(out, text);
  }
}

}  // namespace

std::string_view Normalizer::run(std::string_view text, Buffers& buffers) const {
  std::string_view now = text;
  const std::size_t limit = text.size() * 256 + 65536;
  WorkBudget budget((std::uint64_t{1} << 26) + 1024 * std::uint64_t{text.size()}, 0);  // real files need 10 a byte
  for (const NormalizerStep& step : steps_) {
    if (!budget.spend(1 + now.size()))
      throw Error(ErrorCode::Unsupported,
                  concat_text("the normaliser needs too many steps for a text of ", text.size(), " bytes"),
                  "the tokenizer file is damaged or malicious");
    if (leaves(step, now)) continue;
    buffers.next.clear();
    apply(step, now, limit, buffers.next);
    buffers.current.swap(buffers.next);
    now = buffers.current;
    check_growth(now.size(), limit);
  }
  return now;
}

}  // namespace rlx
