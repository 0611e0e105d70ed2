// Bucket ladders, bounds, and errors that name the limit that a value exceeds.
#include "rlx/compiler/symbol_mode.h"

#include <algorithm>

#include "rlx/error.h"
#include "rlx/tensor/shape.h"

namespace rlx {
namespace {

constexpr std::int64_t kUnbounded = SymbolInfo{}.max;

const SymbolMode& mode_of(const SymbolModes& modes, const std::string& symbol) {
  static const SymbolMode specialise;
  auto it = modes.find(symbol);
  return it == modes.end() ? specialise : it->second;
}

// Declared symbols, and symbols that inputs use without a declaration. The latter have no bounds.
std::map<std::string, SymbolInfo> all_symbols(const Graph& g) {
  std::map<std::string, SymbolInfo> out = g.symbols();
  for (NodeId id : g.leaves(OpKind::Input))
    for (const std::string& name : g.shape(id).symbols()) out.emplace(name, SymbolInfo{});
  return out;
}

}  // namespace

std::vector<std::int64_t> power_of_two_ladder(std::int64_t min, std::int64_t max) {
  if (min < 1 || max < min || max > kUnbounded)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("power_of_two_ladder(", min, ", ", max, "): needs 1 <= min <= max <= ", kUnbounded));
  std::vector<std::int64_t> ladder;
  std::int64_t extent = 1;
  while (extent < min) extent *= 2;
  for (; ladder.empty() || ladder.back() < max; extent *= 2) ladder.push_back(extent);
  return ladder;
}

void check_symbol_modes(const Graph& g, const SymbolModes& modes, const SymbolBinding& fixed) {
  const std::map<std::string, SymbolInfo> symbols = all_symbols(g);
  auto info_of = [&](const std::string& name) -> const SymbolInfo& {
    if (auto it = symbols.find(name); it != symbols.end()) return it->second;
    std::vector<std::string> names;
    for (const auto& [symbol, info] : symbols) names.push_back(symbol);
    throw Error(ErrorCode::NotFound, concat_text("graph '", g.name(), "' has no symbol '", name, "'"),
                did_you_mean(name, names, "declare it with g.symbol"));
  };
  for (const auto& [name, value] : fixed) (void)info_of(name);
  for (const auto& [name, mode] : modes) {
    const SymbolInfo& info = info_of(name);
    if (fixed.contains(name)) continue;
    if (mode.kind == SymbolMode::Kind::Bucket) {
      const auto& ladder = mode.ladder;
      const bool ascending = std::adjacent_find(ladder.begin(), ladder.end(), std::greater_equal<>()) == ladder.end();
      if (ladder.empty() || ladder.front() < 1 || !ascending)
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("symbol '", name, "': the ladder ", dims_text(ladder),
                                " must hold positive extents in ascending order"),
                    "power_of_two_ladder(min, max) returns such a ladder");
    }
    if (mode.kind == SymbolMode::Kind::Runtime) {
      if (!mode.bound && info.max >= kUnbounded)
        throw Error(
            ErrorCode::InvalidArgument,
            concat_text("runtime symbol '", name, "' has no upper bound to plan memory for"),
            concat_text("declare a bound with g.symbol(\"", name, "\", {.max = N}), or pass SymbolMode::runtime(N)"));
      if (mode.bound && *mode.bound < std::max<std::int64_t>(1, info.min))
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("runtime symbol '", name, "': the bound ", *mode.bound, " is below its minimum ",
                                std::max<std::int64_t>(1, info.min)));
    }
  }
}

std::map<std::string, SymbolInfo> plan_symbols(const Graph& g, const SymbolModes& modes) {
  std::map<std::string, SymbolInfo> out = all_symbols(g);
  for (auto& [name, info] : out) {
    const SymbolMode& mode = mode_of(modes, name);
    if (mode.kind == SymbolMode::Kind::Runtime && mode.bound) info.max = std::min(info.max, *mode.bound);
    if (mode.kind == SymbolMode::Kind::Bucket) info.max = std::min(info.max, mode.ladder.back());
  }
  return out;
}

std::int64_t upper_extent(const Graph& g, const SymbolModes& modes, const std::string& symbol, std::int64_t value) {
  auto it = g.symbols().find(symbol);
  const SymbolInfo info = it == g.symbols().end() ? SymbolInfo{} : it->second;
  check_symbol_value(symbol, info, value);
  const SymbolMode& mode = mode_of(modes, symbol);
  switch (mode.kind) {
    case SymbolMode::Kind::Specialise: return value;
    case SymbolMode::Kind::Bucket: {
      auto rung = std::lower_bound(mode.ladder.begin(), mode.ladder.end(), value);
      if (rung == mode.ladder.end())
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("symbol '", symbol, "' = ", value, " is above the largest bucket of its ladder ",
                                dims_text(mode.ladder)),
                    "compile with a longer ladder");
      return std::min(*rung, info.max);
    }
    case SymbolMode::Kind::Runtime: break;
  }
  const std::int64_t bound = mode.bound ? std::min(*mode.bound, info.max) : info.max;
  if (value > bound)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("symbol '", symbol, "' = ", value, " is above its runtime bound ", bound),
                "compile with a larger bound");
  return bound;
}

}  // namespace rlx
