// Splits texts into overlapping chunks of a number of tokens.
#include <algorithm>
#include <optional>
#include <tuple>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/models/passages.h"
#include "rlx/text/tokenizer.h"

namespace rlx {
namespace {

constexpr std::string_view kChunkBlanks = " \t\r\v\f";
// Longer parts are divided before their tokens are counted, so that no text is encoded much more than once.
constexpr std::size_t kCountedBytes = 4096;

std::int64_t count_tokens(std::string_view text, const Tokenizer& tokenizer) {
  return static_cast<std::int64_t>(tokenizer.encode(text, false).size());
}

// A part of a line, which chunks hold whole.
struct ChunkPiece {
  std::size_t begin = 0, end = 0;  // bytes of the text
  std::size_t line = 1;
  std::int64_t tokens = 0;
  bool begins_paragraph = false;
};

class ChunkSplitter {
 public:
  ChunkSplitter(std::string_view text, const Tokenizer& tokenizer, const ChunkOptions& options)
      : text_(text), tokenizer_(tokenizer), most_(options.max_tokens), overlap_(options.overlap) {
    if (most_ < 1 || overlap_ < 0 || overlap_ > most_ / 2)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("chunks of ", most_, " tokens cannot overlap by ", overlap_, " tokens"),
                  "a chunk has at least one token, and at most half of them are those of the chunk before");
  }

  std::vector<Passage> split() {
    find_pieces();
    std::vector<Passage> out;
    for (std::size_t first = 0, end = 0; end < pieces_.size();) {
      std::size_t next = end_of_chunk(first);
      if (next <= end) first = end, next = end_of_chunk(first);  // the repeated pieces leave no room for others
      end = next;
      const ChunkPiece &begin = pieces_[first], &last = pieces_[end - 1];
      out.push_back({std::string(text_.substr(begin.begin, last.end - begin.begin)), begin.line});
      if (end < pieces_.size()) first = next_chunk(first, end);
    }
    return out;
  }

 private:
  void find_pieces() {
    bool blank = true;
    std::size_t line = 1;
    for (std::size_t at = 0; at < text_.size(); ++line) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      const std::size_t before = pieces_.size();
      add_piece(at, end, line);
      if (pieces_.size() > before && blank) pieces_[before].begins_paragraph = true;
      blank = text_.substr(at, end - at).find_first_not_of(kChunkBlanks) == std::string_view::npos;
      at = end + 1;
    }
  }

  // Adds the bytes [begin, end) of a line, in halves where they have too many tokens.
  void add_piece(std::size_t begin, std::size_t end, std::size_t line) {
    std::vector<std::pair<std::size_t, std::size_t>> open{{begin, end}};
    while (!open.empty()) {
      std::tie(begin, end) = open.back();
      open.pop_back();
      while (begin < end && kChunkBlanks.find(text_[begin]) != std::string_view::npos) ++begin;
      while (begin < end && kChunkBlanks.find(text_[end - 1]) != std::string_view::npos) --end;
      if (begin == end) continue;
      const std::string_view part = text_.substr(begin, end - begin);
      const std::optional<std::size_t> middle = middle_of(part);
      std::int64_t tokens = 0;
      if (part.size() <= kCountedBytes || !middle) {
        tokens = count_tokens(part, tokenizer_);
        if (tokens == 0) continue;
        if (tokens <= std::max<std::int64_t>(overlap_, 1) || (overlap_ == 0 && tokens <= most_) || !middle) {
          pieces_.push_back({begin, end, line, tokens});
          continue;
        }
      }
      open.emplace_back(begin + *middle, end);
      open.emplace_back(begin, begin + *middle);
    }
  }

  // Where to divide a part: after the sentence, else the word, that ends nearest to its middle, else between two
  // characters. Nothing for a single character.
  static std::optional<std::size_t> middle_of(std::string_view part) {
    const std::size_t half = part.size() / 2, reach = part.size() / 4;
    std::optional<std::size_t> word;
    for (std::size_t away = 0; away < reach; ++away)
      for (const std::size_t at : {half + away, half - away}) {
        if (at == 0 || part[at] != ' ') continue;
        if (std::string_view(".!?;:").find(part[at - 1]) != std::string_view::npos) return at;
        if (!word) word = at;
      }
    if (word) return word;
    for (std::size_t at = half; at > 0; --at)
      if (!is_utf8_continuation(part[at])) return at;
    for (std::size_t at = half + 1; at < part.size(); ++at)
      if (!is_utf8_continuation(part[at])) return at;
    return std::nullopt;
  }

  std::size_t end_of_chunk(std::size_t first) const {
    std::int64_t tokens = pieces_[first].tokens;
    std::size_t end = first + 1;
    while (end < pieces_.size() && tokens + pieces_[end].tokens <= most_) tokens += pieces_[end++].tokens;
    if (end == pieces_.size()) return fitting(first, end);
    // The end of a paragraph in the last quarter.
    std::int64_t left = tokens;
    for (std::size_t at = end; at > first + 1 && left > most_ - most_ / 4; left -= pieces_[--at].tokens)
      if (pieces_[at].begins_paragraph) return fitting(first, at);
    return fitting(first, end);
  }

  // Some tokenisers make more tokens of pieces together than of each alone.
  std::size_t fitting(std::size_t first, std::size_t end) const {
    while (end > first + 1) {
      const std::size_t begin = pieces_[first].begin;
      if (count_tokens(text_.substr(begin, pieces_[end - 1].end - begin), tokenizer_) <= most_) break;
      --end;
    }
    return end;
  }

  // The first piece of the chunk after [first, end): it repeats pieces, and has room for one more than those.
  std::size_t next_chunk(std::size_t first, std::size_t end) const {
    std::size_t next = end;
    for (std::int64_t tokens = 0; next > first + 1; --next) {
      tokens += pieces_[next - 1].tokens;
      if (tokens > overlap_ || tokens + pieces_[end].tokens > most_) break;
    }
    return next;
  }

  std::string_view text_;
  const Tokenizer& tokenizer_;
  std::int64_t most_, overlap_;
  std::vector<ChunkPiece> pieces_;
};

}  // namespace

std::vector<Passage> split_into_chunks(std::string_view text, const Tokenizer& tokenizer, const ChunkOptions& options) {
  return ChunkSplitter(text, tokenizer, options).split();
}

std::vector<Passage> split_long_passages(std::vector<Passage> passages, const Tokenizer& tokenizer,
                                         const ChunkOptions& options) {
  std::vector<Passage> out;
  for (Passage& p : passages) {
    const bool counted = p.text.size() <= kCountedBytes;
    const std::int64_t tokens = counted ? count_tokens(p.text, tokenizer) : 0;
    if (counted && tokens == 0) continue;
    if (counted && tokens <= options.max_tokens) {
      out.push_back(std::move(p));
      continue;
    }
    for (Passage& chunk : split_into_chunks(p.text, tokenizer, options)) {
      chunk.line += p.line - 1;
      out.push_back(std::move(chunk));
    }
  }
  return out;
}

}  // namespace rlx
