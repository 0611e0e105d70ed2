// Who touched which bytes last, by half of a step: what a step has to wait for when halves may run ahead of each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "rlx/backends/cpu/rows.h"
#include "rlx/driver/thread_pool.h"

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
std::vector<Access> node_accesses(const LowerContext& c, const RowHalves& rows, std::uint8_t halves);

/// Fed the steps in order, it knows for each byte the half that wrote it last and the halves that read it since, and
/// names all that a step must wait for. An order that only follows from others is named too, since the halves of a step
/// in between may wait for less than all of it. n log n in the accesses, as long as values are read in few parts.
class AccessMap {
 public:
  /// For programs of this plan: an output that may lie over a donated input is the same memory.
  explicit AccessMap(const LirBufferPlan& plan);
  /// Every earlier step whose accesses meet those of `step` where one of the two writes, each once.
  std::vector<Wait> add(std::int32_t step, const std::vector<Access>& accesses);

 private:
  struct User {
    std::int32_t step = -1;
    std::uint8_t halves = 0;
  };
  struct Range {
    std::size_t end = 0;
    User writer;
    std::vector<User> readers;  // since
  };
  using Ranges = std::map<std::size_t, Range>;  // by begin; disjoint

  Ranges::iterator cut(Ranges& ranges, std::size_t at);
  void enter(Ranges& ranges, std::int32_t step, const Access& a);
  std::map<std::uint64_t, Ranges> memories_;
  std::map<std::uint64_t, std::uint64_t> donated_;  // output -> the input it may lie over
};

}  // namespace rlx::cpu
