// A segment tree over the ends of all ranges, and bit rows over the last steps.
#include "rlx/compiler/access_history.h"

#include <algorithm>

namespace rlx {
namespace {

std::uint64_t home_of(const ByteRange& r) { return std::uint64_t{static_cast<std::uint8_t>(r.place)} << 32 | r.index; }

}  // namespace

BufferHomes::BufferHomes(const LirBufferPlan& plan) {
  for (const LirAlias& a : plan.aliases)
    if (a.refused.empty()) output_of_.emplace(a.input, a.output);
}

BufferHome BufferHomes::operator()(const LirValue& v) const {
  if (v.place == Place::Input)
    if (auto it = output_of_.find(v.index); it != output_of_.end()) return {Place::Output, it->second};
  return {v.place, v.place == Place::Arena ? 0 : v.index};
}

AccessHistory::AccessHistory(std::span<const ByteRange> ranges) {
  for (const ByteRange& r : ranges) {
    if (r.empty()) continue;
    edges_.push_back({home_of(r), r.from});
    edges_.push_back({home_of(r), r.to});
  }
  std::sort(edges_.begin(), edges_.end());
  edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
  std::size_t leaves = 1;
  while (leaves < edges_.size()) leaves *= 2;
  tree_.resize(2 * leaves);
}

AccessHistory::Span AccessHistory::span_of(const ByteRange& r) const {
  auto at = [&](std::size_t byte) {
    const auto it = std::lower_bound(edges_.begin(), edges_.end(), Edge{home_of(r), byte});
    check(it != edges_.end() && *it == (Edge{home_of(r), byte}), "an access that was not announced");
    return static_cast<std::size_t>(it - edges_.begin());
  };
  return {at(r.from), at(r.to)};
}

void AccessHistory::push_writer(std::size_t node) {
  if (!tree_[node].same) return;
  for (std::size_t child : {2 * node, 2 * node + 1}) tree_[child].writer = tree_[node].writer, tree_[child].same = true;
}

// Hands the readers of a whole stretch to its halves, or, where there are many, has the step that writes a part wait
// for all of them: lists in both halves would be copied at every level below.
void AccessHistory::push_readers(std::size_t node, std::int32_t joined_by, std::vector<std::int32_t>& earlier) {
  std::vector<std::int32_t> readers = std::move(tree_[node].readers);
  tree_[node].readers.clear();
  if (readers.empty()) return;
  if (readers.size() > kManyReaders) {
    earlier.insert(earlier.end(), readers.begin(), readers.end());
    readers.assign(1, joined_by);
  }
  for (std::size_t child : {2 * node, 2 * node + 1})
    tree_[child].readers.insert(tree_[child].readers.end(), readers.begin(), readers.end());
  tree_[node].below = true;
}

void AccessHistory::find_writers(std::size_t node, Span whole, Span part, std::vector<std::int32_t>& out) const {
  if (part.end <= whole.first || whole.end <= part.first) return;
  if (tree_[node].same) {
    if (out.empty() || out.back() != tree_[node].writer) out.push_back(tree_[node].writer);
    return;
  }
  const std::size_t middle = (whole.first + whole.end) / 2;
  find_writers(2 * node, {whole.first, middle}, part, out);
  find_writers(2 * node + 1, {middle, whole.end}, part, out);
}

void AccessHistory::note_read(std::size_t node, Span whole, Span part, std::int32_t step) {
  if (part.end <= whole.first || whole.end <= part.first) return;
  if (part.first <= whole.first && whole.end <= part.end) {
    if (tree_[node].readers.empty() || tree_[node].readers.back() != step) tree_[node].readers.push_back(step);
    return;
  }
  const std::size_t middle = (whole.first + whole.end) / 2;
  tree_[node].below = true;
  note_read(2 * node, {whole.first, middle}, part, step);
  note_read(2 * node + 1, {middle, whole.end}, part, step);
}

void AccessHistory::take_readers(std::size_t node, std::vector<std::int32_t>& out) {
  Stretch& s = tree_[node];
  out.insert(out.end(), s.readers.begin(), s.readers.end());
  s.readers.clear();
  if (!s.below) return;
  s.below = false;
  take_readers(2 * node, out);
  take_readers(2 * node + 1, out);
}

void AccessHistory::note_write(std::size_t node, Span whole, Span part, std::int32_t step,
                               std::vector<std::int32_t>& earlier) {
  if (part.end <= whole.first || whole.end <= part.first) return;
  if (part.first <= whole.first && whole.end <= part.end) {
    take_readers(node, earlier);
    tree_[node].writer = step;
    tree_[node].same = true;
    return;
  }
  push_writer(node);
  push_readers(node, step, earlier);
  const std::size_t middle = (whole.first + whole.end) / 2;
  note_write(2 * node, {whole.first, middle}, part, step, earlier);
  note_write(2 * node + 1, {middle, whole.end}, part, step, earlier);
  const Stretch &left = tree_[2 * node], &right = tree_[2 * node + 1];
  tree_[node].same = left.same && right.same && left.writer == right.writer;
  tree_[node].writer = left.writer;
  tree_[node].below = tree_[node].below || !left.readers.empty() || !right.readers.empty();
}

void AccessHistory::find_writers(const ByteRange& r, std::vector<std::int32_t>& writers) const {
  if (!r.empty()) find_writers(1, {0, tree_.size() / 2}, span_of(r), writers);
}

void AccessHistory::read(const ByteRange& r, std::int32_t step) {
  if (!r.empty()) note_read(1, {0, tree_.size() / 2}, span_of(r), step);
}

void AccessHistory::write(const ByteRange& r, std::int32_t step, std::vector<std::int32_t>& earlier) {
  if (r.empty()) return;
  const std::size_t first = earlier.size();
  find_writers(1, {0, tree_.size() / 2}, span_of(r), earlier);
  note_write(1, {0, tree_.size() / 2}, span_of(r), step, earlier);
  earlier.erase(std::remove_if(earlier.begin() + static_cast<std::ptrdiff_t>(first), earlier.end(),
                               [&](std::int32_t s) { return s == kNoStep || s == step; }),
                earlier.end());
}

RecentOrder::RecentOrder(std::size_t steps) : bits_(std::min(steps, kWindow) * kWords, 0) {}

void RecentOrder::begin(std::size_t i) { std::fill_n(row(i), kWords, std::uint64_t{0}); }

void RecentOrder::wait(std::size_t i, std::size_t j) {
  const std::size_t distance = i - j;
  if (distance > kWindow) return;
  std::uint64_t* const own = row(i);
  own[(distance - 1) / 64] |= std::uint64_t{1} << (distance - 1) % 64;
  if (distance == kWindow) return;  // its row is this one now, and held only what lies beyond the window
  const std::uint64_t* const other = row(j);
  const std::size_t words = distance / 64, bits = distance % 64;
  for (std::size_t w = words; w < kWords; ++w) {
    own[w] |= other[w - words] << bits;
    if (bits != 0 && w > words) own[w] |= other[w - words - 1] >> (64 - bits);
  }
}

}  // namespace rlx
