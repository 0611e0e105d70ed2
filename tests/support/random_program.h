// Random graphs with all ops, for tests that compare execution modes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/testing/op_samples.h"

namespace rlx::test {

using testing::Sample;
using testing::SampleInput;
using testing::SampleSet;

/// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators"), the same on every platform.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// An integer in [0, n).
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  /// In (0, 1).
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }
  template <class T, std::size_t N>
  const T& of(const T (&list)[N]) {
    return list[below(static_cast<std::int64_t>(N))];
  }
  template <class List>
  const auto& any(const List& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))];
  }

 private:
  std::uint64_t state_;
};

struct ProgramOptions {
  int ops = 12;                     // approximate number of builder calls
  std::int64_t max_elements = 600;  // elements of one value, at the
  bool symbols = true;              // some programs have symbolic dims
  bool states = true;
  bool blocks = true;     // HIR blocks
  int calls = 0;          // percentage of ops that call any op (random_calls.cpp) or function (random_functions.cpp)
  bool specials = false;  // NaN, infinities, subnormal and huge numbers among the drawn values
};

/// A graph, and how its leaves are drawn: integer leaves lie in [low, high).
struct RandomProgram {
  Graph graph;
  std::uint64_t seed = 0;
  bool specials = false;
  struct Range {
    std::int64_t low = -3, high = 4;
  };
  std::map<std::string, Range> whole;
  std::map<std::string, SampleInput> fills;  // leaves that are drawn like operands of samples
  /// Values for the symbols, within their bounds; empty for a static program.
  SymbolBinding binding(std::uint64_t variant) const;
  /// Values for every input and param at `binding`; states start at their initial values.
  NamedTensors values(const SymbolBinding& binding, std::uint64_t variant) const;
};

/// The program of a seed. Calls that the builder refuses are left out; it throws only rlx::Error.
RandomProgram random_program(std::uint64_t seed, const ProgramOptions& options = {});

}  // namespace rlx::test
