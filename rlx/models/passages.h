// Splitting a text into passages, and ranking of the passages closest to a query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/tensor/tensor.h"

namespace rlx {

class Tokenizer;

/// A part of a text and the line it starts in, counted from 1.
struct Passage {
  std::string text;
  std::size_t line = 1;
};

/// The lines that are not blank, trimmed.
std::vector<Passage> split_into_lines(std::string_view text);
/// Groups of such lines between blank lines, joined with single spaces.
std::vector<Passage> split_into_paragraphs(std::string_view text);

/// The sizes of chunks, in tokens without special ones.
struct ChunkOptions {
  std::int64_t max_tokens = 256;
  std::int64_t overlap = 32;  // tokens that a chunk shares with the one before, at most half of a chunk

  friend bool operator==(const ChunkOptions&, const ChunkOptions&) = default;
};

/// Consecutive parts of a text of at most `max_tokens` tokens, each beginning with up to `overlap` tokens of the one
/// before. Chunks consist of whole lines, or of parts of lines with more than `overlap` tokens, and end after a
/// paragraph where one ends in their last quarter. Parts without tokens are left out. Errors: InvalidArgument for sizes
/// out of range; those of Tokenizer::encode.
std::vector<Passage> split_into_chunks(std::string_view text, const Tokenizer& tokenizer,
                                       const ChunkOptions& options = {});
/// The passages, with those of more than `max_tokens` tokens in chunks, and without those that have no tokens. Errors:
/// those of split_into_chunks.
std::vector<Passage> split_long_passages(std::vector<Passage> passages, const Tokenizer& tokenizer,
                                         const ChunkOptions& options = {});

/// The index of a passage and its cosine with the query, or another score.
struct Match {
  std::size_t index = 0;
  double score = 0;
};

/// The `count` rows of `vectors` [N, H] with the largest cosine to `query` [H], best first. Equal scores keep row
/// order. Errors: ShapeMismatch when H differs; BadFile for a query with a NaN or an infinity; those of keep_best.
std::vector<Match> best_matches(const Tensor& query, const Tensor& vectors, std::size_t count);

/// Sorts `matches` by descending score, equal ones by position, and keeps the first `count`. BadFile for a score that
/// is NaN, which has no place in an order.
void keep_best(std::vector<Match>& matches, std::size_t count);

}  // namespace rlx
