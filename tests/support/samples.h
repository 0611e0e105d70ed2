// Op samples as test material: drawn values, one-op graphs, and comparison of tensors by dtype.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "tests/support/closeness.h"
#include "tests/support/custom_ops.h"

namespace rlx::test {

/// A tensor of `shape` with values drawn as `fill` says; the same for the same seed everywhere.
Tensor draw(const Shape& shape, Fill fill, std::int64_t bound, std::uint64_t seed);
/// The operands of a sample; another `variant` gives other values.
std::vector<Tensor> draw_operands(const Sample& sample, std::uint64_t variant = 0);

/// The sample as a graph: inputs x0, x1, .. (none for leaves), every result an output.
Graph sample_graph(const Sample& sample);
/// {x0: operands[0], ..}.
NamedTensors bind_operands(const std::vector<Tensor>& operands);

/// All samples of an op.
std::vector<Sample> samples_of(const OpDef& def);

/// The sample in other sizes: one extent at a time made as long as `elements` elements of work allow, odd where the op
/// takes any extent. At most three, none where nothing can grow.
std::vector<Sample> large_samples(const Sample& sample, std::int64_t elements = 6000);
/// The sample with its F32 operands (or its I32 ones, where they are data; without operands, the dtype that it states)
/// in each other dtype that the op takes.
std::vector<Sample> dtype_samples(const Sample& sample);

/// How far two tensors are apart: the largest |a - b| / max(1, |b|); infinity when shapes or dtypes differ or only one
/// is NaN.
double distance(const Tensor& a, const Tensor& b);
/// Re(sum(a * b)) in double, without conjugation.
double dot(const Tensor& a, const Tensor& b);
/// a + factor * b, elementwise, in the dtype of a.
Tensor add_scaled(const Tensor& a, double factor, const Tensor& b);

/// Runs `body` for every sample of every op inside a subcase named after the op; an exception fails that sample only.
template <class Body>
void for_each_sample(Body body) {
  for (const OpDef* def : ops_under_test()) {
    DOCTEST_SUBCASE(std::string(def->name).c_str()) {
      for (const Sample& sample : samples_of(*def)) {
        INFO("op ", std::string(def->name), ", sample '", sample.name, "'");
        try {
          body(*def, sample);
        } catch (const std::exception& e) {
          FAIL_CHECK(std::string(e.what()));
        }
      }
    }
  }
}

/// The same of the ops that backends run: leaves are no work, and ops of LIR hold bytes that only their backend
/// understands.
template <class Body>
void for_each_run_sample(Body body) {
  for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (def.level != Level::Lir && !def.is_leaf()) body(def, sample);
  });
}

}  // namespace rlx::test
