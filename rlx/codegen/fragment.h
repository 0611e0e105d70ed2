// What a thread holds of a product in tiles: neighbours of both operands for some steps, and accumulators, all in named
// variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/codegen/dot.h"

namespace rlx::codegen {

/// `a` + b of u32, and the name of lane `e` of a vec4.
inline std::string plus(std::string_view a, std::int64_t b) {
  return b == 0 ? std::string(a) : concat_text(a, " + ", b, "u");
}
inline char lane(int e) { return "xyzw"[e & 3]; }

/// Some neighbours of one operand for 1 or 4 steps of the contracted number, in variables that begin with `name`.
class Fragment {
 public:
  /// The free number of each neighbour, as u32 expressions. Statements that find where these lie are added to `k`,
  /// which has the name `batch` for the number of the batch.
  Fragment(KernelBuilder& k, DotReader& reader, std::string name, int steps, const std::vector<std::string>& numbers);
  /// `count` numbers from `first` on, a multiple of `count`; beyond the last of `extent` that again.
  static std::vector<std::string> numbers(KernelBuilder& k, const DotReader& reader, std::string_view first, int count,
                                          const Dim& extent);
  /// Statements that read the scales of codes for a group of contracted numbers (DotReader::group) from `at` on; loads
  /// that follow take them. With steps of 4.
  std::string scales(std::string_view at);
  /// Statements that load what is needed from the contracted number `at` on.
  std::string loads(std::string_view at);
  /// Neighbour i in step s.
  std::string one(int i, int s) const;
  /// Neighbours 4 j to 4 j + 3 in step s.
  std::string four(const std::string& type, int j, int s) const;
  int count() const { return count_; }
  int steps() const { return steps_; }

 private:
  DotReader& reader_;
  std::string name_;
  int count_, steps_;
  DotOperand::Fours fours_;
  bool has_scales_ = false;
};

/// `rows` by `columns` accumulators c<row>_<four columns>, each 0.
std::string accumulators(const std::string& type, int rows, int columns);
/// Statements that add the products of rows and columns to the accumulators, step by step.
std::string multiplied(const std::string& type, const Fragment& rows, const Fragment& columns);
/// The accumulators as an array `all`, so that the statements of one store serve all.
std::string gathered(const std::string& type, int rows, int columns);
/// Whether a turn takes four steps: compilers take four times as long then, so that is for products that are worth it.
bool takes_four_steps(const Dot& dot);

}  // namespace rlx::codegen
