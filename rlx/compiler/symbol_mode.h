// How the values of a graph's symbols reach the compiled program.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// The mode of one symbol. Results are those of the exact extents in every mode. Modes differ in the cost of a new
/// value and in the memory that is held.
struct SymbolMode {
  enum class Kind : std::uint8_t {
    Specialise,  // compiled for each value (the default): the best code and plan, milliseconds per new value
    Bucket,      // compiled once per upper extent of a ladder; memory follows the bucket
    Runtime,     // compiled once for all values up to a bound, and planned at the bound
  };
  Kind kind = Kind::Specialise;
  std::vector<std::int64_t> ladder;   // Bucket: upper extents, ascending; a value goes to the lowest one that holds it
  std::optional<std::int64_t> bound;  // Runtime: the largest value; none: the declared upper bound of the symbol

  static SymbolMode specialise() { return {}; }
  static SymbolMode bucket(std::vector<std::int64_t> ladder) { return {Kind::Bucket, std::move(ladder), {}}; }
  static SymbolMode runtime(std::optional<std::int64_t> bound = {}) { return {Kind::Runtime, {}, bound}; }
};

/// Symbol name -> mode; symbols that are not named are specialised.
using SymbolModes = std::map<std::string, SymbolMode, std::less<>>;

/// Powers of two, from the smallest that is not below `min` to the first that is not below `max`: (8, 256) gives 8, 16,
/// .., 256. Throws InvalidArgument unless 1 <= min <= max <= 2^40.
std::vector<std::int64_t> power_of_two_ladder(std::int64_t min, std::int64_t max);

/// Throws for a mode that `g` cannot have, naming the symbol: a symbol that the graph does not have (also in `fixed`),
/// a ladder that is empty or not ascending, a runtime symbol without an upper bound. Modes of `fixed` symbols have no
/// effect.
void check_symbol_modes(const Graph& g, const SymbolModes& modes, const SymbolBinding& fixed = {});

/// The symbols of `g` with the upper bounds that a program is planned for. A runtime symbol has its bound, a bucket
/// symbol the end of its ladder.
std::map<std::string, SymbolInfo> plan_symbols(const Graph& g, const SymbolModes& modes);

/// The largest value that the code for `value` serves: `value` itself when specialised, the bucket's upper extent, or
/// the runtime bound. Never above the declared upper bound. Throws InvalidArgument naming the symbol, the value and the
/// limit that it exceeds: the declared bounds or divisor, the ladder, the runtime bound.
std::int64_t upper_extent(const Graph& g, const SymbolModes& modes, const std::string& symbol, std::int64_t value);

}  // namespace rlx
