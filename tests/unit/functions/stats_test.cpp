// Statistics, array functions and einsum: known values of NumPy, edge cases.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "rlx/functions/einsum.h"
#include "rlx/functions/stats.h"
#include "rlx/ir/evaluate.h"
#include "tests/support/values.h"

using namespace rlx;
using namespace rlx::test;

namespace {

template <class F>
std::vector<double> made_by(F&& build) {
  Graph g("stats");
  g.set_outputs({build(g)});
  return evaluate(g, {})[0].to_f64();
}
Expr numbers(Graph& g, std::vector<std::int64_t> dims, const std::vector<double>& v, DType t = DType::F64) {
  return g.constant(doubles(std::move(dims), v).cast(t));
}
void close_to(const std::vector<double>& got, const std::vector<double>& want, double tolerance = 1e-12) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    if (!std::isfinite(want[i]))
      CHECK((std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]));
    else
      CHECK(std::abs(got[i] - want[i]) <= tolerance * std::max(1.0, std::abs(want[i])));
  }
}
const std::vector<double> kSix = {1, 4, 2, 8, 5, 7};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("var, std, quantile, median, cov and corrcoef are NumPy's") {
  const auto x = [](Graph& g) { return numbers(g, {2, 3}, kSix); };
  close_to(made_by([&](Graph& g) { return stats::var(x(g)); }), {6.25});
  close_to(made_by([&](Graph& g) { return stats::var(x(g), {-1}, 1); }), {7.0 / 3, 7.0 / 3});
  close_to(made_by([&](Graph& g) { return stats::std(x(g), {0}, 0, true); }), {3.5, 0.5, 2.5});
  close_to(made_by([&](Graph& g) { return stats::median(x(g)); }), {2, 7});
  close_to(made_by([&](Graph& g) { return stats::quantile(x(g), 0.3, 0, true); }), {3.1, 4.3, 3.5});
  close_to(made_by([&](Graph& g) { return stats::quantile(numbers(g, {3}, {kInfinity, 1, 2}), 1.0); }), {kInfinity});
  close_to(made_by([&](Graph& g) { return stats::median(numbers(g, {3}, {std::nan(""), 1, 2})); }), {std::nan("")});
  close_to(made_by([&](Graph& g) { return stats::cov(x(g)); }), {7.0 / 3, -7.0 / 3, -7.0 / 3, 7.0 / 3});
  close_to(made_by([&](Graph& g) { return stats::corrcoef(x(g)); }), {1, -1, -1, 1});
  close_to(made_by([&](Graph& g) { return stats::var(numbers(g, {3}, {1, 2, 4}, DType::I32)); }), {14.0 / 9}, 1e-6);
}

TEST_CASE("counts and places are NumPy's") {
  close_to(made_by([](Graph& g) {
             return stats::histogram(numbers(g, {7}, {0, 0.5, 1, 1.5, 4, -1, std::nan("")}), 4, 0, 4);
           }),
           {2, 2, 0, 1});
  close_to(made_by([](Graph& g) {
             return stats::bincount(numbers(g, {6}, {0, 3, 3, 1, 7, -1}, DType::I32), 4);
           }),
           {1, 1, 0, 2});
  const auto at = [](bool right) {
    return made_by([&](Graph& g) {
      return stats::searchsorted(numbers(g, {4}, {1, 2, 2, 5}), numbers(g, {6}, {0, 1, 2, 3, 9, std::nan("")}), right);
    });
  };
  close_to(at(false), {0, 0, 1, 3, 4, 4});
  close_to(at(true), {0, 1, 3, 3, 4, 4});
  for (const bool right : {false, true})
    for (int n = 0; n <= 9; ++n) {  // every position, between elements and at them
      CAPTURE(n);
      std::vector<double> sorted, wanted, places;
      for (int i = 0; i < n; ++i) sorted.push_back(2 * i + 1);
      for (int i = 0; i <= 2 * n; ++i) wanted.push_back(i), places.push_back(right ? (i + 1) / 2 : i / 2);
      close_to(made_by([&](Graph& g) {
                 return stats::searchsorted(numbers(g, {n}, sorted), numbers(g, {2 * n + 1}, wanted), right);
               }),
               places);
    }
  close_to(made_by([](Graph& g) {
             return stats::one_hot(numbers(g, {3}, {1, -1, 5}, DType::I32), 2, 0);
           }),
           {0, 0, 0, 1, 0, 0});
}

TEST_CASE("logsumexp and standardize are those of jax.nn") {
  close_to(made_by([](Graph& g) {
             return stats::logsumexp(numbers(g, {2, 2}, {1000, 1000, -kInfinity, -kInfinity}), {1});
           }),
           {1000 + std::log(2.0), -kInfinity});
  close_to(made_by([](Graph& g) { return stats::logsumexp(numbers(g, {2}, {kInfinity, 1}), {}, true); }), {kInfinity});
  close_to(made_by([](Graph& g) {
             return stats::cumulative_logsumexp(numbers(g, {4}, {-kInfinity, 0, 0, 1}), 0);
           }),
           {-kInfinity, 0, std::log(2.0), std::log(2 + std::exp(1.0))});
  close_to(made_by([](Graph& g) {
             return stats::cumulative_logsumexp(numbers(g, {3}, {0, 0, 0}), 0, true);
           }),
           {std::log(3.0), std::log(2.0), 0});
  close_to(made_by([](Graph& g) { return stats::standardize(numbers(g, {1, 2}, {1, 3}), {-1}, 0); }), {-1, 1});
}

TEST_CASE("small functions of arrays are NumPy's") {
  const auto x = [](Graph& g) { return numbers(g, {2, 3}, kSix); };
  close_to(made_by([](Graph& g) {
             return stats::meshgrid({numbers(g, {2}, {1, 2}), numbers(g, {3}, {3, 4, 5})})[1];
           }),
           {3, 4, 5, 3, 4, 5});
  close_to(made_by([](Graph& g) { return stats::diag(numbers(g, {2}, {3, 4})); }), {3, 0, 0, 4});
  close_to(made_by([](Graph& g) { return stats::diag(numbers(g, {1}, {3}), -1); }), {0, 0, 3, 0});
  close_to(made_by([](Graph& g) { return stats::diag(numbers(g, {1}, {3}), 1); }), {0, 3, 0, 0});
  close_to(made_by([&](Graph& g) { return stats::diag(x(g)); }), {1, 5});
  close_to(made_by([&](Graph& g) { return stats::diag(x(g), 2); }), {2});
  close_to(made_by([&](Graph& g) { return stats::diag(x(g), -1); }), {8});
  close_to(made_by([&](Graph& g) { return stats::diag(x(g), 3); }), {});
  close_to(made_by([](Graph& g) {
             return stats::outer(numbers(g, {2}, {1, 2}), numbers(g, {2}, {3, 4}));
           }),
           {3, 4, 6, 8});
  close_to(made_by([](Graph& g) {
             return stats::kron(numbers(g, {1, 2}, {1, 2}), numbers(g, {2, 1}, {3, 4}));
           }),
           {3, 6, 4, 8});
}

TEST_CASE("einsum is NumPy's: letters, ellipses, diagonals, stretched axes, the order of products") {
  const auto x = [](Graph& g) { return numbers(g, {2, 3}, kSix); };
  const auto square = [](Graph& g) { return numbers(g, {2, 2}, {1, 2, 3, 4}); };
  close_to(made_by([&](Graph& g) { return einsum("ij,kj->ik", {x(g), x(g)}); }), {21, 42, 42, 138});
  close_to(made_by([&](Graph& g) { return einsum("ij,jk", {square(g), x(g)}); }), {17, 14, 16, 35, 32, 34});
  close_to(made_by([&](Graph& g) { return einsum("ba", {x(g)}); }), {1, 8, 4, 5, 2, 7});
  close_to(made_by([&](Graph& g) { return einsum("ij->", {x(g)}); }), {27});
  close_to(made_by([&](Graph& g) { return einsum("ii", {square(g)}); }), {5});
  close_to(made_by([&](Graph& g) { return einsum("ii->i", {square(g)}); }), {1, 4});
  close_to(made_by([&](Graph& g) { return einsum("...i,...i->...", {x(g), x(g)}); }), {21, 138});
  close_to(made_by([&](Graph& g) {
             return einsum("i,j->ij", {numbers(g, {2}, {1, 2}), numbers(g, {2}, {3, 4})});
           }),
           {3, 4, 6, 8});
  close_to(made_by([&](Graph& g) {
             return einsum("ij,ij->ij", {x(g), numbers(g, {1, 3}, {1, 2, 3})});
           }),
           {1, 8, 6, 8, 10, 21});
  for (const bool cheapest : {true, false})
    close_to(made_by([&](Graph& g) {
               return einsum("ab,bc,cd->ad", {square(g), square(g), square(g)}, cheapest);
             }),
             {37, 54, 81, 118});
  close_to(made_by([](Graph& g) {
             return g.cast(
                 einsum("i,i->", {numbers(g, {2}, {1, 1}, DType::Bool), numbers(g, {2}, {1, 1}, DType::Bool)}),
                 DType::F64);
           }),
           {1});
  const auto path = einsum_path("ab,bc,cd->ad", {{Dim(1000), Dim(2)}, {Dim(2), Dim(1000)}, {Dim(1000), Dim(2)}});
  REQUIRE(path.size() == 2);
  CHECK(path[0] == std::pair<std::size_t, std::size_t>(1, 2));
}
