// A segment tree over the ends of all byte ranges, and bit rows over the most recent steps.
#include "rlx/exec/access_history.h"

#include <algorithm>

namespace rlx {
namespace {

std::uint64_t home_of(const ByteRange& r) { return std::uint64_t{static_cast<std::uint8_t>(r.place)} << 32 | r.index; }

}  // namespace

BufferHomes::BufferHomes(const LirBufferPlan& plan) {
  for (const LirAlias& a : plan.aliases)
    if (a.refused.empty()) output_of_.emplace(a.input, a.output);
}

BufferHome BufferHomes::operator()(Place place, std::uint32_t index) const {
  if (place == Place::Input)
    if (auto it = output_of_.find(index); it != output_of_.end()) return {Place::Output, it->second};
  return {place, index};
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
    check(it != edges_.end() && *it == (Edge{home_of(r), byte}), "an access has a range that was not declared before");
    return static_cast<std::size_t>(it - edges_.begin());
  };
  return {at(r.from), at(r.to)};
}

void AccessHistory::push_writer(std::size_t node) {
  if (!tree_[node].same) return;
  for (std::size_t child : {2 * node, 2 * node + 1}) tree_[child].writer = tree_[node].writer, tree_[child].same = true;
}

// Moves the readers of a node's byte range to its two halves. Many readers become a group, which the step that writes a
// part of the range joins. Without groups, the lists would be copied in every level below.
void AccessHistory::push_readers(std::size_t node, AccessUser joined_by) {
  std::vector<Reader> readers = std::move(tree_[node].readers);
  tree_[node].readers.clear();
  if (readers.empty()) return;
  if (readers.size() > kManyReaders) {
    const auto group = static_cast<std::int32_t>(groups_.size());
    groups_.push_back({std::move(readers), {joined_by}});
    readers.assign(1, Reader{group, 0, true});
  }
  for (std::size_t child : {2 * node, 2 * node + 1})
    tree_[child].readers.insert(tree_[child].readers.end(), readers.begin(), readers.end());
  tree_[node].below = true;
}

void AccessHistory::find_writers(std::size_t node, Span whole, Span part, std::vector<AccessUser>& out) const {
  if (part.end <= whole.first || whole.end <= part.first) return;
  if (tree_[node].same) {
    const AccessUser& writer = tree_[node].writer;
    if (out.empty() || out.back() != writer) out.push_back(writer);
    return;
  }
  const std::size_t middle = (whole.first + whole.end) / 2;
  find_writers(2 * node, {whole.first, middle}, part, out);
  find_writers(2 * node + 1, {middle, whole.end}, part, out);
}

template <class Visit>
void AccessHistory::visit_readers(std::size_t node, Span whole, Span part, const Visit& visit) const {
  if (part.end <= whole.first || whole.end <= part.first) return;
  for (const Reader& r : tree_[node].readers) visit(r);
  if (!tree_[node].below) return;
  const std::size_t middle = (whole.first + whole.end) / 2;
  visit_readers(2 * node, {whole.first, middle}, part, visit);
  visit_readers(2 * node + 1, {middle, whole.end}, part, visit);
}

void AccessHistory::note_read(std::size_t node, Span whole, Span part, AccessUser user) {
  if (part.end <= whole.first || whole.end <= part.first) return;
  if (part.first <= whole.first && whole.end <= part.end) {
    std::vector<Reader>& readers = tree_[node].readers;
    if (!readers.empty() && !readers.back().is_group && readers.back().index == user.step)
      readers.back().parts |= user.parts;
    else
      readers.push_back({user.step, user.parts});
    return;
  }
  const std::size_t middle = (whole.first + whole.end) / 2;
  tree_[node].below = true;
  note_read(2 * node, {whole.first, middle}, part, user);
  note_read(2 * node + 1, {middle, whole.end}, part, user);
}

void AccessHistory::drop_readers(std::size_t node) {
  Stretch& s = tree_[node];
  s.readers.clear();
  if (!s.below) return;
  s.below = false;
  drop_readers(2 * node);
  drop_readers(2 * node + 1);
}

void AccessHistory::note_write(std::size_t node, Span whole, Span part, AccessUser user) {
  if (part.end <= whole.first || whole.end <= part.first) return;
  if (part.first <= whole.first && whole.end <= part.end) {
    drop_readers(node);
    tree_[node].writer = user;
    tree_[node].same = true;
    return;
  }
  push_writer(node);
  push_readers(node, user);
  const std::size_t middle = (whole.first + whole.end) / 2;
  note_write(2 * node, {whole.first, middle}, part, user);
  note_write(2 * node + 1, {middle, whole.end}, part, user);
  const Stretch &left = tree_[2 * node], &right = tree_[2 * node + 1];
  tree_[node].same = left.same && right.same && left.writer == right.writer;
  tree_[node].writer = left.writer;
}

void AccessHistory::find_writers(const ByteRange& r, std::vector<AccessUser>& writers) const {
  if (!r.empty()) find_writers(1, all(), span_of(r), writers);
}

void AccessHistory::find_readers(const ByteRange& r, std::vector<AccessUser>& readers) const {
  if (r.empty()) return;
  visit_readers(1, all(), span_of(r), [&](const Reader& reader) {
    readers.push_back(reader.is_group ? groups_[static_cast<std::size_t>(reader.index)].joined_by.front()
                                      : AccessUser{reader.index, reader.parts});
  });
}

void AccessHistory::find_readers(const ByteRange& r, std::vector<Reader>& readers) const {
  if (!r.empty()) visit_readers(1, all(), span_of(r), [&](const Reader& reader) { readers.push_back(reader); });
}

void AccessHistory::read(const ByteRange& r, AccessUser user) {
  if (!r.empty()) note_read(1, all(), span_of(r), user);
}

void AccessHistory::write(const ByteRange& r, AccessUser user) {
  if (!r.empty()) note_write(1, all(), span_of(r), user);
}

RecentOrder::RecentOrder(std::size_t steps) : bits_(std::min(steps, kWindow) * kWords, 0) {}

void RecentOrder::begin(std::size_t i) { std::fill_n(row(i), kWords, std::uint64_t{0}); }

void RecentOrder::wait(std::size_t i, std::size_t j) {
  const std::size_t distance = i - j;
  if (distance > kWindow) return;
  std::uint64_t* const own = row(i);
  own[(distance - 1) / 64] |= std::uint64_t{1} << (distance - 1) % 64;
  if (distance == kWindow) return;  // its row has been reused, and held only steps beyond the window
  const std::uint64_t* const other = row(j);
  const std::size_t words = distance / 64, bits = distance % 64;
  for (std::size_t w = words; w < kWords; ++w) {
    own[w] |= other[w - words] << bits;
    if (bits != 0 && w > words) own[w] |= other[w - words - 1] >> (64 - bits);
  }
}

}  // namespace rlx
