// The registers of a thread in a tiled matmul: consecutive elements of both operands for some steps of K, and the
// accumulators, all in named variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/codegen/dot.h"

namespace rlx::codegen {

/// `a` + b in u32, and the name of lane `e` of a vec4.
inline std::string plus(std::string_view a, std::int64_t b) {
  return b == 0 ? std::string(a) : concat_text(a, " + ", b, "u");
}
inline char lane(int e) { return "xyzw"[e & 3]; }

/// Consecutive rows or columns of one operand for 1 or 4 steps of K, in variables whose names begin with `name`.
class Fragment {
 public:
  /// `numbers` are the free indices, as u32 expressions. Statements that compute their offsets are added to `k`, where
  /// the name `batch` is the batch index.
  Fragment(KernelBuilder& k, DotReader& reader, std::string name, int steps, const std::vector<std::string>& numbers);
  /// `count` indices from `first` on, a multiple of `count`. Indices beyond `extent` repeat the last one.
  static std::vector<std::string> numbers(KernelBuilder& k, const DotReader& reader, std::string_view first, int count,
                                          const Dim& extent);
  /// Statements that read the scales of the quantized values of one group of K (DotReader::group) from `at` on. Later
  /// loads use them. Only with 4 steps.
  std::string scales(std::string_view at);
  /// Statements that load the elements from index `at` of K on.
  std::string loads(std::string_view at);
  /// Element i in step s.
  std::string one(int i, int s) const;
  /// Elements 4 j to 4 j + 3 in step s.
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

/// `rows` by `columns` accumulators c<row>_<four columns>, initialized to 0.
std::string accumulators(const std::string& type, int rows, int columns);
/// Statements that add the outer products of rows and columns to the accumulators, step by step.
std::string multiplied(const std::string& type, const Fragment& rows, const Fragment& columns);
/// A statement that copies the accumulators to an array `all`, so that a loop can store them.
std::string gathered(const std::string& type, int rows, int columns);
/// Whether an iteration takes four steps of K. Shader compilers then take four times as long, so only matmuls that are
/// large or of unknown extents do.
bool takes_four_steps(const Dot& dot);

}  // namespace rlx::codegen
