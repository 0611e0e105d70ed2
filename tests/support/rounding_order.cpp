// Bounds of sorts, arg-maxima and top-k.
#include <algorithm>
#include <numeric>

#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/reduce.h"
#include "tests/support/rounding_rules.h"

namespace rlx::test::rounding {

void sort(const Node& n, const std::vector<const Bounded*>& in, const std::vector<Tensor>& values,
          std::vector<Bounded>& out) {
  const Tensor& keys = in[0]->slack;
  if (any(keys)) {
    double most = 0;
    for (std::size_t i = 0; i < count(keys); ++i) most = std::max(most, reals(keys)[i]);
    for (std::size_t r = 0; r < out.size(); ++r) out[r].slack = like(out[r].value, r == 0 ? most : kApart);
    return;
  }
  std::vector<Tensor> moved{values[0]};
  for (std::size_t r = 1; r < out.size(); ++r) moved.push_back(in[r]->slack);
  const std::vector<Tensor> there = evaluate_op(n.op, moved);
  for (std::size_t r = 1; r < out.size(); ++r) out[r].slack = there[r];
}

void arg_reduce(const Node& n, const Bounded& x, Bounded& out) {
  if (!any(x.slack)) return;
  const auto& op = n.op.as<ops::ArgReduce>();
  const double sign = op.fn == ArgReduceKind::Max ? 1 : -1;
  const std::vector<std::int64_t> dims = x.value.dims();
  std::int64_t outer = 1, extent = 1, inner = 1;
  for (std::int64_t d = 0; d < x.value.rank(); ++d)
    (d < op.axis ? outer : d == op.axis ? extent : inner) *= dims[static_cast<std::size_t>(d)];
  const Tensor wide = x.value.cast(DType::F64);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t k = 0; k < inner; ++k) {
      const std::int64_t winner = out.value.at_i64(o * inner + k);
      const auto at = [&](std::int64_t j) { return static_cast<std::size_t>((o * extent + j) * inner + k); };
      const double top = sign * reals(wide)[at(winner)], top_slack = reals(x.slack)[at(winner)];
      for (std::int64_t j = 0; j < extent; ++j) {
        const double e = reals(x.slack)[at(j)] + top_slack;
        if (j != winner && e > 0 && !(top - sign * reals(wide)[at(j)] > e)) reals(out.slack)[o * inner + k] = kApart;
      }
    }
}

void top_k(const Node& n, const Bounded& x, std::vector<Bounded>& out) {
  if (!any(x.slack)) return;
  const std::int64_t k = n.op.as<ops::TopK>().k, extent = x.value.dim(-1);
  const Tensor wide = x.value.cast(DType::F64);
  for (std::int64_t row = 0; row * k < out[0].value.num_elements(); ++row) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(extent));
    std::iota(order.begin(), order.end(), row * extent);
    const auto key = [&](auto at) {
      return std::isnan(reals(wide)[at]) ? kApart : reals(wide)[at];
    };  // NaN comes first
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) > key(b); });
    double widest = 0;
    for (std::int64_t i : order) widest = std::max(widest, reals(x.slack)[i]);
    for (std::int64_t i = 0; i < k; ++i) {
      reals(out[0].slack)[row * k + i] = widest;
      for (std::int64_t other : {i - 1, i + 1}) {
        if (other < 0 || other >= extent) continue;
        const auto a = order[static_cast<std::size_t>(i)], b = order[static_cast<std::size_t>(other)];
        if (widest > 0 && !(difference(reals(wide)[a], reals(wide)[b]) > 2 * widest))
          reals(out[1].slack)[row * k + i] = kApart;
      }
    }
  }
}

}  // namespace rlx::test::rounding
