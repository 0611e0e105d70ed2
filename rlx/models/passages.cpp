// Splits texts, and ranks by cosine.
#include "rlx/models/passages.h"

#include <algorithm>
#include <cmath>

#include "rlx/models/sentence_encoder.h"

namespace rlx {
namespace {

constexpr std::string_view kDamaged = "the weights of the model may be damaged";

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r\v\f";
  const std::size_t first = line.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
}

// Calls f(trimmed line, number from 1) for each line.
template <class F>
void for_each_line(std::string_view text, F f) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    f(trimmed(text.substr(0, end)), number);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace

std::vector<Passage> split_into_lines(std::string_view text) {
  std::vector<Passage> out;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    if (!line.empty()) out.push_back({std::string(line), number});
  });
  return out;
}

std::vector<Passage> split_into_paragraphs(std::string_view text) {
  std::vector<Passage> out;
  bool inside = false;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    if (!line.empty()) {
      if (!inside)
        out.push_back({std::string(line), number});
      else
        out.back().text.append(" ").append(line);
    }
    inside = !line.empty();
  });
  return out;
}

void keep_best(std::vector<Match>& matches, std::size_t count) {
  for (const Match& m : matches)
    if (std::isnan(m.score))
      throw Error(ErrorCode::BadFile, concat_text("the score of passage ", m.index, " is NaN"), std::string(kDamaged));
  count = std::min(count, matches.size());
  std::partial_sort(
      matches.begin(), matches.begin() + static_cast<std::ptrdiff_t>(count), matches.end(),
      [](const Match& a, const Match& b) { return a.score != b.score ? a.score > b.score : a.index < b.index; });
  matches.resize(count);
}

std::vector<Match> best_matches(const Tensor& query, const Tensor& vectors, std::size_t count) {
  if (vectors.rank() != 2 || query.num_elements() != vectors.dim(1))
    throw Error(ErrorCode::ShapeMismatch,
                concat_text("the query ", query.shape(), " does not match the vectors ", vectors.shape()));
  const auto width = static_cast<std::size_t>(vectors.dim(1));
  const std::span<const float> q = query.values<float>(), v = vectors.values<float>();
  if (!std::all_of(q.begin(), q.end(), [](float x) { return std::isfinite(x); }))
    throw Error(ErrorCode::BadFile, "the vector of the query has a NaN or an infinity", std::string(kDamaged));
  std::vector<Match> all(static_cast<std::size_t>(vectors.dim(0)));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {i, cosine_similarity(q, v.subspan(i * width, width))};
  keep_best(all, count);
  return all;
}

}  // namespace rlx
