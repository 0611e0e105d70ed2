// Two placement strategies for buffers: largest first with all lifetimes known, and in time order as an allocator does.
#include "rlx/compiler/arena.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace rlx {
namespace {

// Largest-first looks at every pair of buffers that are alive together. The limit is about 2,900 buffers alive at once.
constexpr std::size_t kMaxPairs = std::size_t{1} << 22;

class Placer {
 public:
  Placer(std::span<ArenaBuffer> buffers, std::size_t alignment) : buffers_(buffers), alignment_(alignment) {
    by_start_.resize(buffers.size());
    std::iota(by_start_.begin(), by_start_.end(), std::uint32_t{0});
    std::sort(by_start_.begin(), by_start_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(buffers[a].first, a) < std::tuple(buffers[b].first, b);
    });
  }

  std::optional<ArenaSize> run() {
    ArenaSize size = measure();
    if (size.live_peak == kMostArenaBytes) return std::nullopt;
    // Keeps the smallest arena of those tried. Time may run either way, since a fan-in and a fan-out mirror each other.
    if (pairs_ <= kMaxPairs) keep_if_smaller(largest_first());
    if (best_ > size.live_peak) keep_if_smaller(in_order_of_time());
    if (best_ > size.live_peak) {
      reverse_time();
      keep_if_smaller(in_order_of_time());
      reverse_time();
    }
    if (best_ == kMostArenaBytes) return std::nullopt;
    for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].offset = offsets_[i];
    size.bytes = best_;
    return size;
  }

 private:
  std::size_t padded(const ArenaBuffer& b) const {
    return b.bytes >= kMostArenaBytes - alignment_ ? kMostArenaBytes
                                                   : (b.bytes + alignment_ - 1) / alignment_ * alignment_;
  }
  static std::size_t sum(std::size_t a, std::size_t b) { return b < kMostArenaBytes - a ? a + b : kMostArenaBytes; }

  // Computes the sums of live bytes and the number of pairs alive together in one walk over births and deaths.
  ArenaSize measure() {
    ArenaSize size;
    std::vector<std::uint32_t> by_end = by_start_;
    std::sort(by_end.begin(), by_end.end(),
              [&](std::uint32_t a, std::uint32_t b) { return buffers_[a].last < buffers_[b].last; });
    std::size_t live_bytes = 0, dead = 0;
    for (std::size_t born = 0; born < by_start_.size(); ++born) {
      const ArenaBuffer& b = buffers_[by_start_[born]];
      for (; buffers_[by_end[dead]].last < b.first; ++dead) live_bytes -= padded(buffers_[by_end[dead]]);
      pairs_ += born - dead;
      live_bytes = sum(live_bytes, padded(b));
      size.live_peak = std::max(size.live_peak, live_bytes);
      size.unshared = sum(size.unshared, padded(b));
      if (live_bytes == kMostArenaBytes) break;
    }
    return size;
  }

  void keep_if_smaller(std::size_t bytes) {
    if (bytes >= best_) return;
    best_ = bytes;
    offsets_.clear();
    for (const ArenaBuffer& b : buffers_) offsets_.push_back(b.offset);
  }

  // Places the largest buffers first. Each goes into the tightest gap between placed buffers that are alive at the same
  // time. Returns the size of the arena, as in_order_of_time does.
  std::size_t largest_first() {
    std::vector<std::uint32_t> order = by_start_;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(buffers_[b].bytes, buffers_[a].first, a) < std::tuple(buffers_[a].bytes, buffers_[b].first, b);
    });
    build_last_tree();
    placed_.assign(buffers_.size(), false);
    std::vector<std::pair<std::size_t, std::size_t>> busy;
    std::size_t top = 0;
    for (std::uint32_t i : order) {
      ArenaBuffer& b = buffers_[i];
      busy.clear();
      const auto begun = std::partition_point(by_start_.begin(), by_start_.end(),
                                              [&](std::uint32_t j) { return buffers_[j].first <= b.last; });
      add_alive(1, 0, last_tree_.size() / 2, static_cast<std::size_t>(begun - by_start_.begin()), b.first, busy);
      std::sort(busy.begin(), busy.end());
      std::size_t at = 0, best = 0, best_gap = std::numeric_limits<std::size_t>::max();
      for (const auto& [from, to] : busy) {
        if (from > at && from - at >= padded(b) && from - at < best_gap) best = at, best_gap = from - at;
        at = std::max(at, to);
      }
      if (sum(at, padded(b)) == kMostArenaBytes) return kMostArenaBytes;
      b.offset = best_gap == std::numeric_limits<std::size_t>::max() ? at : best;
      placed_[i] = true;
      top = std::max(top, b.offset + padded(b));
    }
    return top;
  }

  // Builds a binary tree over by_start_ that holds the latest end of each range.
  void build_last_tree() {
    std::size_t leaves = 1;
    while (leaves < by_start_.size()) leaves *= 2;
    last_tree_.assign(2 * leaves, -1);
    for (std::size_t k = 0; k < by_start_.size(); ++k) last_tree_[leaves + k] = buffers_[by_start_[k]].last;
    for (std::size_t k = leaves; k-- > 1;) last_tree_[k] = std::max(last_tree_[2 * k], last_tree_[2 * k + 1]);
  }
  // Collects the places of buffers by_start_[k], k < end, that are placed and alive at `step` or later.
  void add_alive(std::size_t node, std::size_t from, std::size_t to, std::size_t end, std::int32_t step,
                 std::vector<std::pair<std::size_t, std::size_t>>& busy) const {
    if (from >= end || last_tree_[node] < step) return;
    if (to - from > 1) {
      const std::size_t middle = (from + to) / 2;
      add_alive(2 * node, from, middle, end, step, busy);
      add_alive(2 * node + 1, middle, to, end, step, busy);
    } else if (placed_[by_start_[from]]) {
      const ArenaBuffer& b = buffers_[by_start_[from]];
      busy.emplace_back(b.offset, b.offset + padded(b));
    }
  }

  void reverse_time() {
    for (ArenaBuffer& b : buffers_) b = {b.bytes, -b.last, -b.first, b.offset, b.arena};
  }

  // Places each buffer at its birth, larger ones first, in the smallest hole that holds it.
  std::size_t in_order_of_time() {
    std::vector<std::uint32_t> births = by_start_, deaths = by_start_;
    std::sort(births.begin(), births.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(buffers_[a].first, buffers_[b].bytes, a) < std::tuple(buffers_[b].first, buffers_[a].bytes, b);
    });
    std::sort(deaths.begin(), deaths.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(buffers_[a].last, a) < std::tuple(buffers_[b].last, b);
    });
    std::map<std::size_t, std::size_t> holes;               // offset -> end; holes never touch
    std::set<std::pair<std::size_t, std::size_t>> by_size;  // (size, offset) of each hole
    std::size_t top = 0;
    const auto erase = [&](std::map<std::size_t, std::size_t>::iterator hole) {
      by_size.erase({hole->second - hole->first, hole->first});
      return holes.erase(hole);
    };
    const auto insert = [&](std::size_t from, std::size_t to) {
      if (from == to) return;
      holes.emplace(from, to);
      by_size.emplace(to - from, from);
    };
    std::size_t dead = 0;
    for (std::uint32_t i : births) {
      ArenaBuffer& b = buffers_[i];
      for (; buffers_[deaths[dead]].last < b.first; ++dead) {
        const ArenaBuffer& gone = buffers_[deaths[dead]];
        std::size_t from = gone.offset, to = gone.offset + padded(gone);
        auto next = holes.lower_bound(from);
        if (next != holes.end() && next->first == to) to = next->second, next = erase(next);
        if (next != holes.begin() && std::prev(next)->second == from) {
          from = std::prev(next)->first;
          erase(std::prev(next));
        }
        insert(from, to);
      }
      const auto fit = by_size.lower_bound({padded(b), 0});
      if (fit != by_size.end()) {
        b.offset = fit->second;
        const std::size_t end = fit->second + fit->first;
        erase(holes.find(b.offset));
        insert(b.offset + padded(b), end);
        continue;
      }
      b.offset = top;  // grow the arena, starting in the last hole if it reaches the end
      if (!holes.empty() && std::prev(holes.end())->second == top) {
        b.offset = std::prev(holes.end())->first;
        erase(std::prev(holes.end()));
      }
      top = sum(b.offset, padded(b));
      if (top == kMostArenaBytes) break;
    }
    return top;
  }

  std::span<ArenaBuffer> buffers_;
  std::size_t alignment_;
  std::size_t pairs_ = 0;
  std::vector<std::uint32_t> by_start_;
  std::vector<std::int32_t> last_tree_;
  std::vector<bool> placed_;
  std::size_t best_ = kMostArenaBytes;
  std::vector<std::size_t> offsets_;  // of the smallest arena so far
};

}  // namespace

namespace {

// Buffers that do not fit below `most_bytes` in one arena go to further arenas in time order, so that values computed
// together lie together. Each arena takes a contiguous range of buffers. A binary search finds the longest range whose
// arena is small enough: O(log n) placements per arena.
ArenaSize place_in_several(std::span<ArenaBuffer> buffers, std::size_t alignment, std::size_t most_bytes,
                           ArenaSize size) {
  std::vector<std::uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return buffers[a].first < buffers[b].first; });
  size.arenas.clear();
  size.bytes = 0;
  std::vector<ArenaBuffer> some;
  const auto place = [&](std::size_t from, std::size_t to) {
    some.clear();
    for (std::size_t i = from; i < to; ++i) some.push_back(buffers[order[i]]);
    return Placer(some, alignment).run()->bytes;  // a subset needs fewer bytes than all buffers
  };
  for (std::size_t from = 0; from < order.size();) {
    std::size_t fits = from + 1, step = 1;  // [from, fits) fits, or is a single buffer
    while (fits + step <= order.size() && place(from, fits + step) <= most_bytes) fits += step, step *= 2;
    for (; step > 0; step /= 2)
      if (fits + step <= order.size() && place(from, fits + step) <= most_bytes) fits += step;
    size.arenas.push_back(place(from, fits));
    size.bytes += size.arenas.back();
    for (std::size_t i = from; i < fits; ++i) {
      buffers[order[i]].offset = some[i - from].offset;
      buffers[order[i]].arena = static_cast<std::uint32_t>(size.arenas.size() - 1);
    }
    from = fits;
  }
  return size;
}

}  // namespace

std::optional<ArenaSize> place_in_arenas(std::span<ArenaBuffer> buffers, std::size_t alignment,
                                         std::size_t most_bytes) {
  std::optional<ArenaSize> size = Placer(buffers, alignment).run();
  if (!size) return size;
  for (ArenaBuffer& b : buffers) b.arena = 0;
  if (size->bytes > most_bytes) return place_in_several(buffers, alignment, most_bytes, std::move(*size));
  if (!buffers.empty()) size->arenas = {size->bytes};
  return size;
}

}  // namespace rlx
