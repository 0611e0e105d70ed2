// The last writer of each byte and its readers since. It gives the order of a program's steps and proves an order.
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
  /// True when the ranges share a byte.
  bool meets(const ByteRange& other) const {
    return place == other.place && index == other.index && from < other.to && other.from < to;
  }
};

/// The range that the bodies of a node use.
inline ByteRange byte_range(const LirRange& r) { return {Place::Arena, r.arena, r.offset, r.offset + r.bytes}; }

/// Maps a place to the memory that holds it. A donated input and its output are one.
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
  std::unordered_map<std::uint32_t, std::uint32_t> output_of_;  // by donated input
};

inline constexpr std::int32_t kNoStep = -1;  // the writer of bytes that no step has written

/// Who accesses bytes: a whole step, or the parts of it whose bits are set in `parts` when they are ordered separately.
struct AccessUser {
  std::int32_t step = kNoStep;
  std::uint8_t parts = 1;
  friend bool operator==(const AccessUser&, const AccessUser&) = default;
};

/// Reads and writes of byte ranges in the order of a schedule. A step first finds the accesses that it must wait for,
/// and waits for them. Then its own accesses are recorded. n accesses visit O(n log n) tree nodes in total, however
/// they split and merge ranges, plus the accesses that are found.
class AccessHistory {
 public:
  /// More readers of the same bytes than this form a group. The first step that writes a part of the bytes waits for
  /// all of them. Steps that write the rest then wait for that step alone, which saves them an edge to each reader.
  static constexpr std::size_t kManyReaders = 64;

  /// One reader, or a group of readers.
  struct Reader {
    std::int32_t index;  // step or group
    std::uint8_t parts = 1;
    bool is_group = false;
  };
  /// Readers of the same bytes, and the steps that each wait for all of them.
  struct Group {
    std::vector<Reader> readers;
    std::vector<AccessUser> joined_by;
  };

  /// `ranges`: all ranges that will be read or written. Other ranges must not be used.
  explicit AccessHistory(std::span<const ByteRange> ranges);

  /// Appends the last writers of the bytes of `r`. Some appear more than once. kNoStep stands for bytes that no step
  /// has written.
  void find_writers(const ByteRange& r, std::vector<AccessUser>& writers) const;
  /// Appends the readers of bytes of `r` since the last write, or the steps that represent them. Some appear more than
  /// once.
  void find_readers(const ByteRange& r, std::vector<AccessUser>& readers) const;
  /// The same with groups not expanded. For checking an order that this history did not make, in which other steps may
  /// represent the readers.
  void find_readers(const ByteRange& r, std::vector<Reader>& readers) const;
  Group& group(std::int32_t index) { return groups_[static_cast<std::size_t>(index)]; }
  /// Records that `user` reads `r`.
  void read(const ByteRange& r, AccessUser user);
  /// Records that `user`, which waits for all accesses found, writes `r`.
  void write(const ByteRange& r, AccessUser user);

 private:
  struct Edge {  // one end of a range
    std::uint64_t home;
    std::size_t at;
    friend bool operator==(const Edge&, const Edge&) = default;
    friend auto operator<=>(const Edge&, const Edge&) = default;
  };
  // A range of elementary segments, as in a segment tree. `writer` is valid for all of them when `same`. `readers` have
  // read all of them since. `below`: further readers are recorded in nodes below.
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

/// Tells which of the most recent steps are complete when a step starts, from the schedule's edges. Steps are visited
/// in order.
class RecentOrder {
 public:
  static constexpr std::size_t kWindow = 1024;

  explicit RecentOrder(std::size_t steps);
  /// Begins step `i` = 0, 1, ... No step is known to be complete before it.
  void begin(std::size_t i);
  /// Step `i`, the last one begun, waits for step `j` < `i`, and so for all steps that `j` waits for.
  void wait(std::size_t i, std::size_t j);
  /// True when step `j` < `i` is complete before `i`, the last one begun. Exact for the kWindow steps before `i`, false
  /// for earlier steps.
  bool before(std::size_t j, std::size_t i) const {
    const std::size_t distance = i - j;
    return distance <= kWindow && (row(i)[(distance - 1) / 64] >> (distance - 1) % 64 & 1) != 0;
  }

 private:
  static constexpr std::size_t kWords = kWindow / 64;
  std::uint64_t* row(std::size_t i) { return bits_.data() + i % kWindow * kWords; }
  const std::uint64_t* row(std::size_t i) const { return bits_.data() + i % kWindow * kWords; }
  std::vector<std::uint64_t> bits_;  // of the last kWindow steps; bit d: the step d + 1 earlier is complete
};

}  // namespace rlx
