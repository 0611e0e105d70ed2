// The access history of bytes, by half of a step. It says what a step must wait for when its halves run independently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rlx/backends/cpu/entries.h"
#include "rlx/exec/access_history.h"
#include "rlx/threads/thread_pool.h"

namespace rlx::cpu {

/// A set of halves of a step.
enum Halves : std::uint8_t { kLower = 1, kUpper = 2, kBothHalves = 3 };

/// Bytes [begin, end) of one memory (the arena, a state, a caller's buffer), accessed by the chunks of `halves`.
struct Access {
  Place place = Place::Arena;
  std::uint32_t index = 0;
  std::size_t begin = 0, end = 0;
  bool write = false;
  std::uint8_t halves = kBothHalves;
};

/// A step that another step waits for, and which halves wait for which.
struct Wait {
  std::int32_t step = 0;
  HalfWaits waits = kWaitsForAll;
};

/// Sorts the list by step and merges all waits for one step into one entry.
void merge_waits(std::vector<Wait>& waits);

/// The reads and writes of a node. Where `rows` says how the halves of its only task divide rows, accesses are split by
/// half; else `halves` access each value whole. Weights and constants are left out because nothing writes them.
std::vector<Access> node_accesses(const LowerContext& c, const RowTiling& rows, std::uint8_t halves);

/// Takes the steps in order. For each byte it keeps the half that wrote it last and the halves that read it since, and
/// it returns everything that a step must wait for. Transitive waits are returned too, because the halves of a step in
/// between may wait for only a part of that step. Where many halves read the same bytes, the halves that waited for all
/// of them represent them (AccessHistory).
class AccessMap {
 public:
  /// For programs of this plan, whose steps make exactly `accesses`. An output that may alias a donated input is the
  /// same memory.
  AccessMap(const LirBufferPlan& plan, std::span<const Access> accesses);
  /// Returns each earlier step once that conflicts with `accesses` (one of the two writes), or a step that waits for
  /// it. A step may be added in several calls when all its accesses have the same halves.
  std::vector<Wait> add(std::int32_t step, std::span<const Access> accesses);

 private:
  BufferHomes homes_;
  AccessHistory history_;
};

}  // namespace rlx::cpu
