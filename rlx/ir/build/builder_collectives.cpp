// Builder functions of collectives.
#include "rlx/ir/build/body_scope.h"
#include "rlx/ir/builder.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/collectives.h"

namespace rlx {
namespace {

std::int64_t axis_of(const Operand& x, const Expr& v, std::int64_t axis, const char* what) try {
  return normalize_axis(axis, v.rank(), what);
} catch (const Error& e) {
  throw Error(Diagnostic{e.code(), e.diagnostic().message, built_at(x.loc()), e.diagnostic().hint});
}

Expr tensor_of(Graph& g, const Operand& x, std::string_view what) {
  if (x.is_scalar())
    throw Error(Diagnostic{ErrorCode::InvalidArgument,
                           concat_text(what, ": x must be a value of a graph, got a number"), built_at(x.loc()),
                           "make the number a value: g.scalar(x)"});
  return value_in(g, x.expr(), what, x.loc());
}

}  // namespace

Expr Builder::all_reduce(Operand x, ReduceKind fn, std::string mesh_axes, std::int64_t ranks) {
  return graph().add(ops::AllReduce{fn, std::move(mesh_axes), ranks}, {tensor_of(graph(), x, "all_reduce")}, x.loc());
}

ExprList Builder::all_reduce_each(const ExprList& xs, ReduceKind fn, std::string mesh_axes, std::int64_t ranks,
                                  SourceLoc loc) {
  std::vector<Value> operands;
  for (const Expr& x : xs) operands.push_back(value_in(graph(), x, "all_reduce", loc).value());
  const Expr first = graph().add(ops::AllReduce{fn, std::move(mesh_axes), ranks}, std::move(operands), loc);
  ExprList out;
  for (std::uint32_t r = 0; r < xs.size(); ++r) out.push_back(first.result(r));
  return out;
}

Expr Builder::all_gather(Operand x, std::int64_t axis, std::string mesh_axes, std::int64_t ranks) {
  const Expr v = tensor_of(graph(), x, "all_gather");
  return graph().add(ops::AllGather{axis_of(x, v, axis, "all_gather"), std::move(mesh_axes), ranks}, {v}, x.loc());
}

Expr Builder::reduce_scatter(Operand x, ReduceKind fn, std::int64_t axis, std::string mesh_axes, std::int64_t ranks) {
  const Expr v = tensor_of(graph(), x, "reduce_scatter");
  return graph().add(ops::ReduceScatter{fn, axis_of(x, v, axis, "reduce_scatter"), std::move(mesh_axes), ranks}, {v},
                     x.loc());
}

Expr Builder::all_to_all(Operand x, std::int64_t split, std::int64_t concat, std::string mesh_axes,
                         std::int64_t ranks) {
  const Expr v = tensor_of(graph(), x, "all_to_all");
  return graph().add(ops::AllToAll{axis_of(x, v, split, "all_to_all"), axis_of(x, v, concat, "all_to_all"),
                                   std::move(mesh_axes), ranks},
                     {v}, x.loc());
}

Expr Builder::permute(Operand x, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, std::string mesh_axes,
                      std::int64_t ranks) {
  std::vector<std::int64_t> flat;
  for (const auto& [source, target] : pairs) flat.push_back(source), flat.push_back(target);
  return graph().add(ops::Permute{std::move(flat), std::move(mesh_axes), ranks}, {tensor_of(graph(), x, "permute")},
                     x.loc());
}

Expr Builder::axis_index(std::string mesh_axes, std::int64_t ranks, SourceLoc loc) {
  return graph().add(ops::AxisIndex{std::move(mesh_axes), ranks}, std::vector<Value>{}, loc);
}

}  // namespace rlx
