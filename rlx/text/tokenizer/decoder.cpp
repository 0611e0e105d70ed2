// Token-by-token decoding. A step either transforms a token at once, or holds it until the result is certain.
#include "rlx/text/tokenizer/decoder.h"

#include <algorithm>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/tokenizer/byte_level.h"
#include "rlx/text/unicode.h"

namespace rlx {
namespace {

[[noreturn]] void refuse_growth() {
  throw Error(ErrorCode::Unsupported, "the decoder of this tokeniser makes far more text than its tokens have",
              "the tokenizer file is damaged or malicious");
}

// Text that a decoder may make of a token's bytes, and of any text.
constexpr std::uint64_t kBytesPerByte = 256, kFreeBytes = 65536;
// Bytes that all steps together may read. Real decoders read a token about ten times.
constexpr std::uint64_t kReadsPerByte = 4096, kFreeReads = std::uint64_t{1} << 24;

std::string replaced(std::string_view text, const DecoderStep& step, WorkBudget& budget) {
  std::string out;
  std::size_t at = 0;
  const auto content = [&] {
    if (!budget.take(step.content.size())) refuse_growth();
    out += step.content;
  };
  if (step.regex) {
    Regex::Matcher matcher(*step.regex);
    matcher.start(text);
    while (!text.empty()) {
      const auto match = matcher.next();
      if (!match) break;
      out += text.substr(at, match->first - at);
      content();
      at = match->second;
    }
  } else if (!step.pattern.empty()) {
    for (std::size_t found; (found = text.find(step.pattern, at)) != std::string_view::npos;
         at = found + step.pattern.size()) {
      out += text.substr(at, found - at);
      content();
    }
  }
  out += text.substr(at);
  return out;
}

std::string characters_to_bytes(std::string_view token) {
  std::string out;
  append_character_bytes(out, token);
  return out;
}

std::string_view stripped(std::string_view text, const DecoderStep& step) {
  if (step.pattern.empty()) return text;
  for (std::size_t i = 0; i < step.start && text.starts_with(step.pattern); ++i)
    text.remove_prefix(step.pattern.size());
  for (std::size_t i = 0; i < step.stop && text.ends_with(step.pattern); ++i) text.remove_suffix(step.pattern.size());
  return text;
}

// The byte of a token like <0x0A>, or -1.
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace

void clean_up_tokenization(std::string& text) {
  static constexpr std::pair<std::string_view, std::string_view> kCleanups[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kCleanups) {
    std::size_t at = 0, found = text.find(from);
    if (found == std::string::npos) continue;
    std::string out;
    for (; found != std::string::npos; at = found + from.size(), found = text.find(from, at)) {
      out.append(text, at, found - at);
      out += to;
    }
    out.append(text, at);
    text = std::move(out);
  }
}

void TokenDecoder::add(DecoderStep step) {
  step.fused = false;
  if (!steps_.empty()) {
    const DecoderStep& last = steps_.back();
    step.fused = last.fused || last.kind == DecoderStep::Kind::Fuse || last.kind == DecoderStep::Kind::ByteLevel;
  }
  steps_.push_back(std::move(step));
}

TokenDecoder::Run::Run(const TokenDecoder& decoder)
    : steps_(decoder.steps_), states_(decoder.steps_.size()), budget_(kFreeReads, kFreeBytes) {}

void TokenDecoder::Run::push(std::string_view token, std::string& out) {
  out_ = &out;
  budget_.allow(kReadsPerByte * (1 + token.size()), kBytesPerByte * token.size());
  feed(0, token);
}

void TokenDecoder::Run::finish(std::string& out) {
  out_ = &out;
  for (std::size_t i = 0; i < steps_.size(); ++i) flush(i);
  std::fill(states_.begin(), states_.end(), State());
}

std::string TokenDecoder::token_bytes(std::string_view token) const {
  using Kind = DecoderStep::Kind;
  std::string text(token);
  WorkBudget budget(0, kFreeBytes + kBytesPerByte * token.size());
  for (const DecoderStep& s : steps_) {
    // After the first token there is nothing to strip at the start, and the end is not known yet.
    if (s.kind == Kind::Fuse || (s.kind == Kind::Strip && s.fused)) continue;
    if (s.fused || s.kind == Kind::Ctc)
      throw Error(ErrorCode::Unsupported,
                  "grammars do not support the decoder of this tokeniser, which rewrites the whole text",
                  "grammars need the bytes of each token");
    DecoderStep to_space = s;
    to_space.content = " ";
    switch (s.kind) {
      case Kind::Join: text.insert(0, 1, ' '); break;
      case Kind::ByteLevel: text = characters_to_bytes(text); break;
      case Kind::ByteFallback:
        if (const int byte = byte_of(text); byte >= 0) text.assign(1, static_cast<char>(byte));
        break;
      case Kind::Strip: text = std::string(stripped(text, s)); break;
      case Kind::Replace:
        if (!s.regex || !find_invalid_utf8(text)) text = replaced(text, s, budget);
        break;
      case Kind::WordPiece:
        if (text.starts_with(s.pattern))
          text.erase(0, s.pattern.size());
        else
          text.insert(0, 1, ' ');
        if (s.flag) clean_up_tokenization(text);
        break;
      case Kind::Metaspace:
      case Kind::Bpe: text = replaced(text, to_space, budget); break;
      default: break;
    }
  }
  return text;
}

// Applies a step to a complete token.
void TokenDecoder::Run::whole(std::size_t index, std::string_view token) {
  using Kind = DecoderStep::Kind;
  const DecoderStep& s = steps_[index];
  State& state = states_[index];
  switch (s.kind) {
    case Kind::Join:
      if (state.count++ > 0) feed(index + 1, " ");
      return feed(index + 1, token);
    case Kind::Replace: return feed(index + 1, replaced(token, s, budget_));
    case Kind::Strip: return feed(index + 1, stripped(token, s));
    case Kind::Metaspace: {
      const bool first = s.fused || state.count++ == 0;
      DecoderStep to_space = s;
      to_space.content = first && s.flag ? "" : " ";
      return feed(index + 1, replaced(token, to_space, budget_));
    }
    case Kind::WordPiece: {
      std::string piece(token);
      if (state.count++ > 0) {
        if (token.starts_with(s.pattern)) {
          piece.erase(0, s.pattern.size());
        } else {
          piece.insert(0, 1, ' ');
        }
      }
      if (s.flag) clean_up_tokenization(piece);
      return feed(index + 1, piece);
    }
    case Kind::Ctc: {
      if (state.open && state.pending == token) return;
      state.pending = token;
      state.open = true;
      DecoderStep without = s;
      without.content.clear();
      std::string piece = replaced(token, without, budget_);
      if (s.flag) {
        clean_up_tokenization(piece);
        without.pattern = s.content;
        without.content = " ";
        piece = replaced(piece, without, budget_);
      }
      if (!piece.empty()) feed(index + 1, piece);
      return;
    }
    default: return feed(index + 1, token);
  }
}

void TokenDecoder::Run::feed(std::size_t index, std::string_view piece) {
  using Kind = DecoderStep::Kind;
  if (index == steps_.size()) {
    *out_ += piece;
    return;
  }
  if (!budget_.spend(1 + piece.size()))
    throw Error(ErrorCode::Unsupported, "the decoder of this tokeniser needs too many steps for its tokens",
                "the tokenizer file is damaged or malicious");
  const DecoderStep& s = steps_[index];
  switch (s.kind) {
    case Kind::Fuse: return feed(index + 1, piece);
    case Kind::ByteLevel: return byte_level(index, piece);
    case Kind::ByteFallback:
      if (!s.fused) return byte_fallback(index, piece);
      break;
    case Kind::Strip:
      if (s.fused) return strip_in_stream(index, piece);
      return whole(index, piece);
    case Kind::Replace:
      if (s.fused && !s.regex) return replace_in_stream(index, piece);
      break;
    case Kind::Metaspace: return whole(index, piece);
    case Kind::Bpe: {
      // Only the last token has no space after it.
      State& state = states_[index];
      if (s.fused) break;
      if (state.open) {
        DecoderStep to_space = s;
        to_space.content = " ";
        feed(index + 1, replaced(state.pending, to_space, budget_));
      }
      state.pending = piece;
      state.open = true;
      return;
    }
    default: break;
  }
  if (!s.fused) return whole(index, piece);
  states_[index].pending += piece;  // the joined token is complete only at the end
  states_[index].open = true;
}

void TokenDecoder::Run::flush(std::size_t index) {
  using Kind = DecoderStep::Kind;
  const DecoderStep& s = steps_[index];
  State& state = states_[index];
  const std::string pending = std::exchange(state.pending, {});
  const bool open = std::exchange(state.open, false);
  switch (s.kind) {
    case Kind::ByteLevel: {
      std::string text;
      append_lossy_utf8(text, pending, false);
      return feed(index + 1, text);
    }
    case Kind::ByteFallback:
      if (s.fused) {
        if (!open) return;
        const int byte = byte_of(pending);
        if (byte < 0) return feed(index + 1, pending);
        return feed(index + 1,
                    byte < 0x80 ? std::string(1, static_cast<char>(byte)) : std::string(kReplacementCharacter));
      }
      if (pending.empty()) return;
      if (!find_invalid_utf8(pending)) return feed(index + 1, pending);
      for (std::size_t i = 0; i < pending.size(); ++i) feed(index + 1, kReplacementCharacter);
      return;
    case Kind::Strip: return;  // drops the characters that are stripped at the end
    case Kind::Replace:
      if (!s.fused) return;
      return s.regex ? (open ? whole(index, pending) : void()) : feed(index + 1, pending);
    case Kind::Bpe: {
      if (!open) return;
      DecoderStep to_nothing = s;
      to_nothing.content.clear();
      return feed(index + 1, replaced(pending, to_nothing, budget_));
    }
    case Kind::Ctc:
    case Kind::WordPiece:
    case Kind::Join:
      if (s.fused && open) whole(index, pending);
      return;
    default: return;
  }
}

void TokenDecoder::Run::byte_level(std::size_t index, std::string_view piece) {
  State& state = states_[index];
  append_character_bytes(state.pending, piece);
  std::string text;
  state.pending.erase(0, append_lossy_utf8(text, state.pending, true));
  if (!text.empty()) feed(index + 1, text);
}

void TokenDecoder::Run::byte_fallback(std::size_t index, std::string_view piece) {
  const int byte = byte_of(piece);
  if (byte >= 0) {
    states_[index].pending += static_cast<char>(byte);
    return;
  }
  flush(index);
  feed(index + 1, piece);
}

// In the joined token a match may begin in one piece and end in another.
void TokenDecoder::Run::replace_in_stream(std::size_t index, std::string_view piece) {
  const DecoderStep& s = steps_[index];
  State& state = states_[index];
  if (s.pattern.empty()) return feed(index + 1, piece);
  const std::string text = std::exchange(state.pending, {}) + std::string(piece);
  std::string out;
  std::size_t at = 0;
  for (std::size_t found; (found = text.find(s.pattern, at)) != std::string::npos; at = found + s.pattern.size()) {
    out.append(text, at, found - at);
    if (!budget_.take(s.content.size())) refuse_growth();
    out += s.content;
  }
  std::size_t keep = std::min(s.pattern.size() - 1, text.size() - at);
  while (keep > 0 && text.compare(text.size() - keep, keep, s.pattern, 0, keep) != 0) --keep;
  out.append(text, at, text.size() - at - keep);
  state.pending = text.substr(text.size() - keep);
  if (!out.empty()) feed(index + 1, out);
}

void TokenDecoder::Run::strip_in_stream(std::size_t index, std::string_view piece) {
  const DecoderStep& s = steps_[index];
  State& state = states_[index];
  if (s.pattern.empty()) return feed(index + 1, piece);
  while (state.count < s.start && piece.starts_with(s.pattern)) {
    piece.remove_prefix(s.pattern.size());
    ++state.count;
  }
  if (piece.empty()) return;
  state.count = s.start;  // nothing more is stripped at the start
  const std::string text = std::exchange(state.pending, {}) + std::string(piece);
  std::string_view rest = text;
  for (std::size_t i = 0; i < s.stop && rest.ends_with(s.pattern); ++i) rest.remove_suffix(s.pattern.size());
  state.pending = text.substr(rest.size());
  if (!rest.empty()) feed(index + 1, rest);
}

}  // namespace rlx
