// Samples of ops, the cases that generic tests run. The library is rlx::testing; rlx::core contains none of it.
//
// A built-in op has its samples in rlx/ops/<name>_samples.cpp as samples<ops::Name>; a kind without that function does
// not link. add_op_samples registers samples of a custom op.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/ir/fill.h"
#include "rlx/ir/op_def.h"

namespace rlx::testing {

/// One operand of a sample: its shape and how its values are drawn.
struct SampleInput {
  Shape shape;
  Fill fill = Fill::Normal;
  std::int64_t bound = 1;                        // the bound of Fill::Index
  SampleInput(Shape s) : shape(std::move(s)) {}  // NOLINT(implicit)
  SampleInput(Shape s, Fill f, std::int64_t b = 1) : shape(std::move(s)), fill(f), bound(b) {}
};
/// One case of an op that generic tests run.
struct Sample {
  std::string name;
  OpBox op;
  std::vector<SampleInput> inputs;
  bool differentiable = true;  // false: skip derivative checks (kinks at the drawn values, integers)
};
/// The set that a samples function fills.
class SampleSet {
 public:
  void add(std::string name, std::vector<SampleInput> inputs, OpBox op) {
    samples_.push_back({std::move(name), std::move(op), std::move(inputs), true});
  }
  void add_discrete(std::string name, std::vector<SampleInput> inputs, OpBox op) {
    samples_.push_back({std::move(name), std::move(op), std::move(inputs), false});
  }
  const std::vector<Sample>& all() const { return samples_; }

 private:
  std::vector<Sample> samples_;
};
using SamplesFn = void (*)(SampleSet&);

/// Adds the samples of one op struct; defined for each in rlx/ops/<name>_samples.cpp.
template <class Op>
void samples(SampleSet& s);

/// The samples of a kind. OpKind::Custom has none.
std::vector<Sample> op_samples(OpKind kind);
/// The samples of an op record. For a registered op these are the samples given to add_op_samples under its name.
std::vector<Sample> op_samples(const OpDef& def);

/// Registers the samples of the custom op `name`, for op_samples and check_op (check_op.h). Throws InvalidArgument when
/// the name has samples already.
void add_op_samples(std::string_view name, SamplesFn fn);

}  // namespace rlx::testing
