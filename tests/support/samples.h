// Op samples in tests: one-op graphs, and comparison of tensors by dtype.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "tests/support/closeness.h"
#include "tests/support/custom_ops.h"
#include "tests/support/random_samples.h"

namespace rlx::test {

/// The sample as a graph: inputs x0, x1, .. (none for leaves), and every result as an output.
Graph sample_graph(const Sample& sample);
/// {x0: operands[0], ..}.
NamedTensors bind_operands(const std::vector<Tensor>& operands);

/// The distance of two tensors: the largest |a - b| / max(1, |b|). Infinite when shapes or dtypes differ or only one
/// element is NaN.
double distance(const Tensor& a, const Tensor& b);
/// Re(sum(a * b)) in double, without conjugation.
double dot(const Tensor& a, const Tensor& b);
/// a + factor * b, elementwise, in the dtype of a.
Tensor add_scaled(const Tensor& a, double factor, const Tensor& b);

/// Runs `body` for every sample of every op, in a subcase named after the op. An exception fails only that sample.
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

/// The same for the ops that backends run. Leaves are skipped, and so are LIR ops, whose bytes only their backend
/// understands.
template <class Body>
void for_each_run_sample(Body body) {
  for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (def.level != Level::Lir && !def.is_leaf()) body(def, sample);
  });
}

}  // namespace rlx::test
