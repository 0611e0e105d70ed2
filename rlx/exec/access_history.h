// Who wrote each byte last and who has read it since: what orders the steps of a program and what proves an order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "rlx/ir/module.h"

namespace rlx {

/// Bytes [from, to) of one buffer.
struct ByteRange {
  Place place = Place::Arena;
  std::uint32_t index = 0;
  std::size_t from = 0, to = 0;
  bool empty() const { return from >= to; }
  /// True when both hold some byte.
  bool meets(const ByteRange& other) const {
    return place == other.place && index == other.index && from < other.to && other.from < to;
  }
};

/// The range that the bodies of a node use.
inline ByteRange byte_range(const LirRange& r) { return {Place::Arena, r.arena, r.offset, r.offset + r.bytes}; }

/// The memory that a value lies in, where a donated input and its output are one.
struct BufferHome {
  Place place = Place::Arena;
  std::uint32_t index = 0;
  friend bool operator==(const BufferHome&, const BufferHome&) = default;
};
class BufferHomes {
 public:
  BufferHomes() = default;
  explicit BufferHomes(const LirBufferPlan& plan);
  BufferHome operator()(Place place, std::uint32_t index) const;
  BufferHome operator()(const LirValue& v) const { return (*this)(v.place, v.index); }

 private:
  std::unordered_map<std::uint32_t, std::uint32_t> output_of_;  // of a donated input
};

inline constexpr std::int32_t kNoStep = -1;  // the writer of bytes that no step has written

/// Who touches bytes: a step, or those parts of it that the bits name where the parts are ordered apart.
struct AccessUser {
  std::int32_t step = kNoStep;
  std::uint8_t parts = 1;
  friend bool operator==(const AccessUser&, const AccessUser&) = default;
};

/// Reads and writes of byte ranges in the order of a schedule. A step asks for those it must wait for, and waits for
/// them, before its own accesses are noted. n accesses take O(n log n) stretches of bytes in all, whatever they cut and
/// join, besides those that are found.
class AccessHistory {
 public:
  /// When more steps than this have read the same bytes, the first that waits for all of them to write a part stands
  /// for them towards the writers of the rest, which would need an edge to each otherwise.
  static constexpr std::size_t kManyReaders = 64;

  /// One who has read, or a group of them.
  struct Reader {
    std::int32_t index;  // step or group
    std::uint8_t parts = 1;
    bool is_group = false;
  };
  /// Readers of the same bytes and, each of them, who waits for all.
  struct Group {
    std::vector<Reader> readers;
    std::vector<AccessUser> joined_by;
  };

  /// All ranges that will be read or written; others must not be.
  explicit AccessHistory(std::span<const ByteRange> ranges);

  /// Appends who wrote the bytes of `r` last (some more than once, kNoStep for bytes that no step has written).
  void find_writers(const ByteRange& r, std::vector<AccessUser>& writers) const;
  /// Appends who has read bytes of `r` since (some more than once), or who stands for them.
  void find_readers(const ByteRange& r, std::vector<AccessUser>& readers) const;
  /// The same with groups as they are: for an order that was not made by this history, in which others may stand for
  /// the readers.
  void find_readers(const ByteRange& r, std::vector<Reader>& readers) const;
  Group& group(std::int32_t index) { return groups_[static_cast<std::size_t>(index)]; }
  /// Notes that `user` reads `r`.
  void read(const ByteRange& r, AccessUser user);
  /// Notes that `user`, which waits for all that was found, writes `r`.
  void write(const ByteRange& r, AccessUser user);

 private:
  struct Edge {  // one end of a range
    std::uint64_t home;
    std::size_t at;
    friend bool operator==(const Edge&, const Edge&) = default;
    friend auto operator<=>(const Edge&, const Edge&) = default;
  };
  // A stretch of elementary segments, as in a segment tree. `writer` holds for all of them when `same`; `readers` have
  // read all of them since; those below are noted further down when `below`.
  struct Stretch {
    AccessUser writer;
    bool same = true, below = false;
    std::vector<Reader> readers;
  };
  struct Span {
    std::size_t first, end;  // elementary segments
  };

  Span all() const { return {0, tree_.size() / 2}; }
  Span span_of(const ByteRange& r) const;
  void push_writer(std::size_t node);
  void push_readers(std::size_t node, AccessUser joined_by);
  void find_writers(std::size_t node, Span whole, Span part, std::vector<AccessUser>& out) const;
  template <class Visit>
  void visit_readers(std::size_t node, Span whole, Span part, const Visit& visit) const;
  void note_read(std::size_t node, Span whole, Span part, AccessUser user);
  void note_write(std::size_t node, Span whole, Span part, AccessUser user);
  void drop_readers(std::size_t node);

  std::vector<Edge> edges_;
  std::vector<Stretch> tree_;
  std::vector<Group> groups_;
};

/// Which of the steps shortly before a step are complete when it starts, from the schedule's edges. Steps are taken in
/// their order.
class RecentOrder {
 public:
  static constexpr std::size_t kWindow = 1024;

  explicit RecentOrder(std::size_t steps);
  /// Begins step `i` = 0, 1, ..: nothing is known to be complete before it.
  void begin(std::size_t i);
  /// Step `i`, the last begun, waits for step `j` < `i`, and so for all that `j` waits for.
  void wait(std::size_t i, std::size_t j);
  /// True when step `j` < `i` is complete before `i`, the last begun: exact for the kWindow steps before `i`, false
  /// beyond.
  bool before(std::size_t j, std::size_t i) const {
    const std::size_t distance = i - j;
    return distance <= kWindow && (row(i)[(distance - 1) / 64] >> (distance - 1) % 64 & 1) != 0;
  }

 private:
  static constexpr std::size_t kWords = kWindow / 64;
  std::uint64_t* row(std::size_t i) { return bits_.data() + i % kWindow * kWords; }
  const std::uint64_t* row(std::size_t i) const { return bits_.data() + i % kWindow * kWords; }
  std::vector<std::uint64_t> bits_;  // of the last kWindow steps: bit d: the step d + 1 steps earlier is complete
};

}  // namespace rlx
