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
};

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
  BufferHome operator()(const LirValue& v) const;

 private:
  std::unordered_map<std::uint32_t, std::uint32_t> output_of_;  // of a donated input
};

/// Reads and writes of byte ranges in the order of a schedule. Every access takes O(log n) segments, whatever was cut
/// or joined before it.
class AccessHistory {
 public:
  /// When more steps than this have read the same bytes, the next writer of some of them waits for all and stands for
  /// them towards later writers of the rest, which would need an edge to each otherwise.
  static constexpr std::size_t kManyReaders = 64;
  static constexpr std::int32_t kNoStep = -1;  // the writer of bytes that no step has written

  /// All ranges that will be read or written; others must not be.
  explicit AccessHistory(std::span<const ByteRange> ranges);

  /// Appends the steps that wrote the bytes of `r` last (some more than once, kNoStep for bytes that none has written).
  void find_writers(const ByteRange& r, std::vector<std::int32_t>& writers) const;
  /// Notes that `step` reads `r`.
  void read(const ByteRange& r, std::int32_t step);
  /// Notes that `step` writes `r`; appends those who wrote its bytes last, and who has read them since, to `earlier`:
  /// the steps that must be complete by then (some more than once; kNoStep is left out).
  void write(const ByteRange& r, std::int32_t step, std::vector<std::int32_t>& earlier);

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
    std::int32_t writer = kNoStep;
    bool same = true, below = false;
    std::vector<std::int32_t> readers;
  };
  struct Span {
    std::size_t first, end;  // elementary segments
  };

  Span span_of(const ByteRange& r) const;
  void push_writer(std::size_t node);
  void push_readers(std::size_t node, std::int32_t joined_by, std::vector<std::int32_t>& earlier);
  void find_writers(std::size_t node, Span whole, Span part, std::vector<std::int32_t>& out) const;
  void note_read(std::size_t node, Span whole, Span part, std::int32_t step);
  void note_write(std::size_t node, Span whole, Span part, std::int32_t step, std::vector<std::int32_t>& earlier);
  void take_readers(std::size_t node, std::vector<std::int32_t>& out);

  std::vector<Edge> edges_;
  std::vector<Stretch> tree_;
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
