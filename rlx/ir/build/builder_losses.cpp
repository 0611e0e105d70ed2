// Builder functions of losses and of matmuls on quantized values.
#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/loss.h"
#include "rlx/ir/ops/quantize.h"

namespace rlx {
using namespace building;

Expr Builder::softmax_cross_entropy(Operand logits, Operand labels) {
  Graph& g = graph();
  const Expr x = own(g, logits);
  Expr t = own(g, labels);
  if (is_float(t.dtype()) && is_float(x.dtype()) && !is_storage_only(t.dtype()))
    t = cast_at(g, t, x.dtype(), labels.loc());
  return g.add(ops::SoftmaxCrossEntropy{}, {x, t}, logits.loc());
}

Expr Builder::fake_quantize_lsq(Operand x, Operand scale, ops::FakeQuantizeLsq op) {
  Graph& g = graph();
  const Expr v = own(g, x);
  if (op.axis) op.axis = normalize_axis_at(x.loc(), *op.axis, v.rank(), "fake_quantize_lsq");
  return g.add(op, {v, own_at(g, scale, x.loc())}, x.loc());
}

namespace {
// Adds the op with x, w and the optional bias.
template <class Op>
Expr add_quantized(Graph& g, Op op, const std::vector<Expr>& operands, const char* what, SourceLoc loc) {
  if (operands.size() != 2 && operands.size() != 3)
    fail(loc, ErrorCode::InvalidArgument,
         concat_text(what, " takes x, w and an optional bias, got ", operands.size(), " operands"));
  std::vector<std::pair<std::string_view, Expr>> named{{"x", operands[0]}, {"w", operands[1]}};
  if (operands.size() == 3) named.emplace_back("bias", operands[2]);
  return g.add_named(std::move(op), named, loc);
}
}  // namespace

Expr Builder::q_matmul(ops::QMatMul op, const std::vector<Expr>& operands, SourceLoc loc) {
  return add_quantized(graph(), std::move(op), operands, "q_matmul", loc);
}
Expr Builder::q_conv(ops::QConv op, const std::vector<Expr>& operands, SourceLoc loc) {
  return add_quantized(graph(), std::move(op), operands, "q_conv", loc);
}

}  // namespace rlx
