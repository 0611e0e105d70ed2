// Bounds of matrix factorizations, from the factors of nearby matrices. A stable algorithm returns the exact factors of
// a matrix within some eps of the given one. The reference rule, run on such matrices, shows how far their factors are
// from the exact ones.
#include <algorithm>

#include "tests/support/rounding_rules.h"

namespace rlx::test::rounding {
namespace {

constexpr double kFactorTerms = 4;  // times eps, the order of the matrix and its largest number
constexpr int kNeighbours = 3;

double largest(const Tensor& t) {
  const Tensor size = magnitude(t);
  return count(size) == 0 ? 0 : *std::max_element(reals(size), reals(size) + count(size));
}

// Adds +step or -step to each element, by a fixed sequence.
Tensor steps_around(const Bounded& x, double step, std::uint64_t seed) {
  Tensor out = like(x.value, 0);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (std::size_t i = 0; i < count(out); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    reals(out)[i] = (state >> 63 != 0 ? 1 : -1) * (step + reals(x.slack)[i]);
  }
  return out;
}

}  // namespace

void factor(const Node& n, DType t, const Operands& in, const std::vector<Tensor>& values, std::vector<Bounded>& out) {
  const double eps = sum_epsilon(t);
  const double order = static_cast<double>(std::max({values[0].dim(-1), values[0].dim(-2), std::int64_t{1}}));
  std::vector<double> distance(out.size(), 0);
  for (int k = 0; k < kNeighbours; ++k) {
    std::vector<Tensor> moved;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const double step = kFactorTerms * eps * order * largest(values[i]);
      moved.push_back(shifted(values[i], steps_around(*in[i], step, static_cast<std::uint64_t>(k) + 7 * i + 1), 1));
    }
    const std::vector<Tensor> results = evaluate_op(n.op, moved);
    for (std::size_t r = 0; r < out.size(); ++r)
      for (std::size_t i = 0; i < count(out[r].value); ++i) {
        const double by = apart(results[r], out[r].value, i);
        if (!has_bound(n.shapes[r].dtype()) && by != 0) reals(out[r].slack)[i] = kApart;
        if (by == by) distance[r] = std::max(distance[r], by);
      }
  }
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (!has_bound(n.shapes[r].dtype())) continue;
    const double bound = 2 * distance[r] + kFactorTerms * eps * largest(out[r].value);
    std::fill_n(reals(out[r].slack), count(out[r].slack), bound);
    // For a matrix with NaN or infinities, which factors are NaN depends on the algorithm.
    for (std::size_t i = 0; i < count(out[r].value); ++i)
      if (!std::isfinite(value_at(out[r].value, i))) reals(out[r].slack)[i] = kApart;
  }
}

}  // namespace rlx::test::rounding
