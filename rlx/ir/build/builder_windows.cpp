// Builder functions of windows and of image norms.
#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/norm.h"

namespace rlx {
using namespace building;

Expr Builder::reduce_window(Operand x, ops::ReduceWindow op, const DeclaredShape& shape) {
  return shape.check(graph().add(std::move(op), {own(graph(), x)}, x.loc()));
}

Expr Builder::select_and_scatter(Operand x, Operand source, ops::SelectAndScatter op) {
  return graph().add(std::move(op), {own(graph(), x), own(graph(), source)}, x.loc());
}

Expr Builder::layer_norm2d(Operand x, Operand gamma, Operand beta, double eps) {
  return layer_norm(x, gamma, beta, eps, {1});
}

Expr Builder::group_norm(Operand x, std::int64_t groups, std::optional<Operand> gamma, std::optional<Operand> beta,
                         double eps) {
  Graph& g = graph();
  const Expr v = own(g, x);
  ops::GroupNorm op;
  op.groups = groups, op.eps = eps;
  std::vector<std::pair<std::string_view, Expr>> operands{{"x", v}};
  if (gamma) operands.emplace_back("gamma", cast_at(g, own_at(g, *gamma, x.loc()), v.dtype(), x.loc()));
  if (beta) operands.emplace_back("beta", cast_at(g, own_at(g, *beta, x.loc()), v.dtype(), x.loc()));
  return g.add_named(op, operands, x.loc());
}

}  // namespace rlx
