// Splitting a text into passages, and ranking of the passages closest to a query.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/tensor/tensor.h"

namespace rlx {

/// A part of a text and the line it starts in, counted from 1.
struct Passage {
  std::string text;
  std::size_t line = 1;
};

/// The lines that are not blank, trimmed.
std::vector<Passage> split_into_lines(std::string_view text);
/// Groups of such lines between blank lines, joined with single spaces.
std::vector<Passage> split_into_paragraphs(std::string_view text);

/// The index of a passage and its cosine with the query, or another score.
struct Match {
  std::size_t index = 0;
  double score = 0;
};

/// The `count` rows of `vectors` [N, H] with the largest cosine to `query` [H], best first. Equal scores keep row
/// order. Errors: ShapeMismatch when H differs.
std::vector<Match> best_matches(const Tensor& query, const Tensor& vectors, std::size_t count);

/// Sorts `matches` by descending score, equal ones by position, and keeps the first `count`.
void keep_best(std::vector<Match>& matches, std::size_t count);

}  // namespace rlx
