// Random programs: the graph of a seed, and the values of its leaves.
#include "tests/support/random_program.h"

#include <cmath>
#include <limits>

#include "tests/support/random_generator.h"
#include "tests/support/random_samples.h"

namespace rlx::test {
namespace {

double special(Dice& dice) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kSpecial[] = {
      kInf, -kInf, std::numeric_limits<double>::quiet_NaN(), -0.0, 1e-40, -3e-39, 3e38, -3e38, 1e5, -60, 90, 1e-20};
  return dice.of(kSpecial);
}

}  // namespace

SymbolBinding RandomProgram::binding(std::uint64_t variant) const {
  Dice dice(seed * 31 + variant * 0x9e3779b9u + 1);
  SymbolBinding out;
  for (const auto& [name, info] : graph.symbols()) out.emplace(name, info.min + dice.below(info.max - info.min + 1));
  return out;
}

NamedTensors RandomProgram::values(const SymbolBinding& binding, std::uint64_t variant) const {
  NamedTensors out;
  for (OpKind kind : {OpKind::Input, OpKind::Param})
    for (NodeId id : graph.leaves(kind)) {
      const std::string& name = graph.leaf_name(id);
      std::uint64_t mixed = seed * 0x2545f4914f6cdd1dull + variant + 77;
      for (const char c : name) mixed = mixed * 31 + static_cast<unsigned char>(c);  // independent of the other leaves
      if (const auto fill = fills.find(name); fill != fills.end()) {
        out.emplace(name, draw(graph.shape(id), fill->second.fill, fill->second.bound, mixed));
        continue;
      }
      Dice dice(mixed);
      Tensor t = Tensor::zeros(graph.shape(id).bind(binding));
      const auto range = whole.find(name);
      const DType d = t.dtype();
      for (std::int64_t i = 0; i < t.num_elements(); ++i) {
        if (range != whole.end()) {
          t.set_i64(i, range->second.low + dice.below(range->second.high - range->second.low));
        } else if (d == DType::Bool) {
          t.set_i64(i, dice.below(4) != 0);
        } else if (!is_inexact(d)) {
          t.set_i64(i, is_unsigned_int(d) ? dice.below(7) : dice.below(9) - 4);
        } else if (specials && dice.chance(4)) {
          t.set(i, special(dice));
        } else {
          const double normal =
              std::sqrt(-2 * std::log(dice.uniform())) * std::cos(6.28318530717958648 * dice.uniform());
          t.set(i, normal);
        }
      }
      out.emplace(name, std::move(t));
    }
  return out;
}

RandomProgram random_program(std::uint64_t seed, const ProgramOptions& options) {
  return Generator(seed, options).make();
}

}  // namespace rlx::test
