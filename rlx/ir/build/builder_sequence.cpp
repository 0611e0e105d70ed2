// Builder functions of recurrences and state-space scans.
#include "rlx/ir/build/building.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/sequence.h"

namespace rlx {
namespace {

// All results of the node.
ExprList recurrence_of(Graph& g, OpBox op, const std::vector<Expr>& operands, SourceLoc loc) {
  std::vector<Value> own;
  for (const Expr& e : operands) own.push_back(building::own_at(g, Operand(e, loc), loc).value());
  const Expr first = g.add(std::move(op), std::move(own), loc);
  ExprList out;
  const auto results = static_cast<std::uint32_t>(g.node(first.value().node).num_results());
  for (std::uint32_t r = 0; r < results; ++r) out.push_back(first.result(r));
  return out;
}

}  // namespace

ExprList Builder::rnn(ops::Rnn op, const std::vector<Expr>& operands, SourceLoc loc) {
  return recurrence_of(graph(), std::move(op), operands, loc);
}
ExprList Builder::gru(ops::Gru op, const std::vector<Expr>& operands, SourceLoc loc) {
  return recurrence_of(graph(), std::move(op), operands, loc);
}
ExprList Builder::lstm(ops::Lstm op, const std::vector<Expr>& operands, SourceLoc loc) {
  return recurrence_of(graph(), std::move(op), operands, loc);
}
ExprList Builder::selective_scan(ops::SelectiveScan op, const std::vector<Expr>& operands, SourceLoc loc) {
  return recurrence_of(graph(), op, operands, loc);
}
ExprList Builder::mamba2(ops::Mamba2 op, const std::vector<Expr>& operands, SourceLoc loc) {
  return recurrence_of(graph(), op, operands, loc);
}
ExprList Builder::gated_delta_net(ops::GatedDeltaNet op, const std::vector<Expr>& operands, SourceLoc loc) {
  return recurrence_of(graph(), op, operands, loc);
}

}  // namespace rlx
