// The statements of fragments and accumulators.
#include "rlx/codegen/fragment.h"

#include "rlx/codegen/elements.h"

namespace rlx::codegen {
namespace {
using Fours = DotOperand::Fours;
}

Fragment::Fragment(KernelBuilder& k, DotReader& reader, std::string name, int steps,
                   const std::vector<std::string>& numbers)
    : reader_(reader),
      name_(std::move(name)),
      count_(static_cast<int>(numbers.size())),
      steps_(steps),
      fours_(reader.fours()) {
  if (fours_ == Fours::Contract && steps < 4) fours_ = Fours::None;
  k << concat_text("let ", name_, "_base = ", reader.batch("batch"), ";\n");
  for (int i = 0; i < count_; i += fours_ == Fours::Free ? 4 : 1)
    k << concat_text("let ", name_, "_at", i, " = ", name_, "_base + ",
                     reader.free(numbers[static_cast<std::size_t>(i)]), ";\n");
}

std::vector<std::string> Fragment::numbers(KernelBuilder& k, const DotReader& reader, std::string_view first, int count,
                                           const Dim& extent) {
  const int by = reader.fours() == Fours::Free ? 4 : 1;
  const std::string most = k.size(Size(extent));
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back(concat_text("min(", plus(first, i), ", ", most, " - ", by, "u)"));
  return out;
}

std::string Fragment::scales(std::string_view at) {
  has_scales_ = true;
  std::string text = concat_text("let ", name_, "_group = ", reader_.contract(at), ";\n");
  for (int i = 0; i < count_; ++i)
    text += concat_text("let ", name_, "_scale", i, " = ",
                        reader_.scale(concat_text(name_, "_at", i, " + ", name_, "_group")), ";\n");
  return text;
}

std::string Fragment::loads(std::string_view at) {
  std::string text;
  if (fours_ == Fours::Contract) {
    text += concat_text("let ", name_, "_k = ", reader_.contract(at), ";\n");
    for (int i = 0; i < count_; ++i) {
      const std::string index = concat_text(name_, "_at", i, " + ", name_, "_k");
      text +=
          concat_text("let ", name_, i, " = ",
                      has_scales_ ? reader_.four(index, concat_text(name_, "_scale", i)) : reader_.four(index), ";\n");
    }
    return text;
  }
  for (int s = 0; s < steps_; ++s) {
    const std::string inner = concat_text(name_, "_k", s);
    text += concat_text("let ", inner, " = ", reader_.contract(plus(at, s)), ";\n");
    for (int i = 0; i < count_; i += fours_ == Fours::Free ? 4 : 1) {
      const std::string index = concat_text(name_, "_at", i, " + ", inner);
      text += concat_text("let ", name_, i, "_", s, " = ",
                          fours_ == Fours::Free ? reader_.four(index) : reader_.element(index), ";\n");
    }
  }
  return text;
}

std::string Fragment::one(int i, int s) const {
  if (fours_ == Fours::Contract) return concat_text(name_, i, ".", lane(s));
  if (fours_ == Fours::Free) return concat_text(name_, i / 4 * 4, "_", s, ".", lane(i));
  return concat_text(name_, i, "_", s);
}

std::string Fragment::four(const std::string& type, int j, int s) const {
  if (fours_ == Fours::Free) return concat_text(name_, 4 * j, "_", s);
  return concat_text("vec4<", type, ">(", one(4 * j, s), ", ", one(4 * j + 1, s), ", ", one(4 * j + 2, s), ", ",
                     one(4 * j + 3, s), ")");
}

std::string accumulators(const std::string& type, int rows, int columns) {
  std::string text;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns / 4; ++j) text += concat_text("var c", i, "_", j, " = vec4<", type, ">();\n");
  return text;
}

std::string multiplied(const std::string& type, const Fragment& rows, const Fragment& columns) {
  const int quads = columns.count() / 4;
  std::string text;
  for (int s = 0; s < rows.steps(); ++s) {
    for (int j = 0; j < quads; ++j) text += concat_text("let f", s, "_", j, " = ", columns.four(type, j, s), ";\n");
    for (int i = 0; i < rows.count(); ++i)
      for (int j = 0; j < quads; ++j)
        text += concat_text("c", i, "_", j, " = c", i, "_", j, " + ", rows.one(i, s), " * f", s, "_", j, ";\n");
  }
  return text;
}

std::string gathered(const std::string& type, int rows, int columns) {
  std::string text = concat_text("var all = array<vec4<", type, ">, ", rows * columns / 4, ">(");
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns / 4; ++j) text += concat_text(i + j ? ", " : "", "c", i, "_", j);
  return text + ");\n";
}

bool takes_four_steps(const Dot& dot) {
  if (dot.x.fours != Fours::Contract && dot.w.fours != Fours::Contract) return false;
  const Dim work = dot.m * dot.n * dot.k * dot.batches;
  return divided(dot.k, 4) && (!work.is_static() || work.value() >= std::int64_t{1} << 24);
}

}  // namespace rlx::codegen
