// Who touched which bytes last, by half of a step: what a step has to wait for when halves may run ahead of each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rlx/backends/cpu/entries.h"
#include "rlx/exec/access_history.h"
#include "rlx/threads/thread_pool.h"

namespace rlx::cpu {

/// Halves of a step, as a set.
enum Halves : std::uint8_t { kLower = 1, kUpper = 2, kBothHalves = 3 };

/// Bytes [begin, end) of one memory (the arena, a state, a buffer of the caller), touched by chunks of those halves.
struct Access {
  Place place = Place::Arena;
  std::uint32_t index = 0;
  std::size_t begin = 0, end = 0;
  bool write = false;
  std::uint8_t halves = kBothHalves;
};

/// A step that another waits for, and how.
struct Wait {
  std::int32_t step = 0;
  HalfWaits waits = kWaitsForAll;
};

/// Makes a list sorted by step, each step once with all of its waits.
void merge_waits(std::vector<Wait>& waits);

/// What a node reads and writes, by the halves of its one piece where `rows` says how they divide rows, else each value
/// whole by `halves`. Weights and constants, which nothing writes, are left out.
std::vector<Access> node_accesses(const LowerContext& c, const RowTiling& rows, std::uint8_t halves);

/// Fed the steps in order, it knows for each byte the half that wrote it last and the halves that read it since, and
/// names all that a step must wait for. An order that only follows from others is named too, since the halves of a step
/// in between may wait for less than all of it; but where many read the same bytes, the halves that waited for all of
/// them stand for them (AccessHistory).
class AccessMap {
 public:
  /// For programs of this plan, whose steps make `accesses` and no others: an output that may lie over a donated input
  /// is the same memory.
  AccessMap(const LirBufferPlan& plan, std::span<const Access> accesses);
  /// Every earlier step whose accesses meet those of `step` where one of the two writes, or one that waits for them,
  /// each once. A step may come in several calls when all that it does is by the same halves.
  std::vector<Wait> add(std::int32_t step, std::span<const Access> accesses);

 private:
  BufferHomes homes_;
  AccessHistory history_;
};

}  // namespace rlx::cpu
