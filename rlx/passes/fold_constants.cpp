// fold-constants: evaluates ops on constants with their reference rules.
#include <algorithm>
#include <optional>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/rewrite/symbol_order.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxResultBytes = 64 * 1024;     // larger results are left to weight preparation
constexpr double kMaxGrowth = 1.1;                     // of decoded quantized values
constexpr std::size_t kSmallResultBytes = 4 * 1024;    // smaller results fold however much they widen
constexpr std::size_t kMaxOperandBytes = 1024 * 1024;  // the reference rules are slow; this limits compile time

// Iota and Expand fold only under an op that folds. By themselves kernels broadcast and count at no cost.
bool lazy(OpKind kind) { return kind == OpKind::Iota || kind == OpKind::Expand; }

std::optional<std::size_t> result_bytes(const Node& n) {
  std::size_t bytes = 0;
  for (const Shape& s : n.shapes) {
    if (!s.is_static()) return std::nullopt;
    bytes += s.size_bytes();
  }
  return bytes;
}

// The value of a constant, of an Iota, or of an Expand of these.
std::optional<Tensor> constant_value(const Graph& g, Value v) {
  const Node& n = g.node(v.node);
  if (const auto* c = n.op.get_if<ops::Constant>()) return c->value;
  std::optional<std::size_t> bytes = result_bytes(n);
  if (!lazy(n.kind()) || !bytes || *bytes > kMaxResultBytes) return std::nullopt;
  std::vector<Tensor> operands;
  for (Value in : n.inputs) {
    std::optional<Tensor> t = constant_value(g, in);
    if (!t) return std::nullopt;
    operands.push_back(std::move(*t));
  }
  return evaluate_op(n.op, operands)[0];
}

std::optional<std::vector<Tensor>> fold(const Graph& g, const Node& n, const std::vector<Value>& operands) {
  if (const auto* d = n.op.get_if<ops::DimSize>()) {
    const Dim& extent = g.shape(operands[0]).dim(static_cast<int>(d->axis));
    if (!extent.is_static()) return std::nullopt;
    return std::vector<Tensor>{Tensor::scalar_i64(DType::I64, extent.value())};
  }
  if (op_def(n.kind()).is_leaf()) return std::nullopt;
  if (is_ordered(n.op)) return std::nullopt;
  std::optional<std::size_t> bytes = result_bytes(n);
  if (bytes == std::size_t{0}) {  // no elements: the result is complete, whatever the operands are
    std::vector<Tensor> empty;
    for (const Shape& s : n.shapes) empty.push_back(Tensor::zeros(s));
    return empty;
  }
  if (n.inputs.empty() || lazy(n.kind())) return std::nullopt;
  // A loop may take any time, or never end. A barrier must stay.
  if (op_def(n.op).bodies == BodyKind::Programs || n.kind() == OpKind::OptimizationBarrier) return std::nullopt;
  // Cheap refusals first: most nodes read a value that is no constant.
  for (Value v : operands) {
    OpKind kind = g.node(v.node).kind();
    if (kind != OpKind::Constant && !lazy(kind)) return std::nullopt;
  }
  if (!bytes || *bytes > kMaxResultBytes || has_symbols(n)) return std::nullopt;
  std::vector<Tensor> values;
  std::size_t operand_bytes = 0;
  for (Value v : operands) {
    std::optional<Tensor> t = constant_value(g, v);
    if (!t || t->shape().rank() != g.shape(v).rank()) return std::nullopt;
    operand_bytes += t->size_bytes();
    if (operand_bytes > kMaxOperandBytes) return std::nullopt;
    values.push_back(std::move(*t));
  }
  // A quantized weight stays quantized, as weight preparation does for params. When the dequantize is decomposed,
  // decoding begins with bits spread over more small integers, or with a cast.
  const bool grows = static_cast<double>(*bytes) > kMaxGrowth * static_cast<double>(operand_bytes);
  const DType t = n.shape().dtype();
  const bool decodes = n.kind() == OpKind::Cast || (is_int(t) && dtype_bits(t) <= 16);
  if (grows && (n.kind() == OpKind::Dequantize || (decodes && *bytes > kSmallResultBytes))) return std::nullopt;
  return evaluate_op(n.op, values);
}

std::optional<Graph> run_fold_constants(const Graph& g, const PassContext&) {
  // Usually nothing folds, and the graph need not be copied.
  if (std::none_of(g.nodes().begin(), g.nodes().end(), [&](const Node& n) { return fold(g, n, n.inputs).has_value(); }))
    return std::nullopt;
  std::vector<Value> operands;
  return replace_nodes(g, fold_constants.name, [&](Rebuilder& r, NodeId id) -> Replacement {
    operands.clear();
    for (Value v : g.node(id).inputs) operands.push_back(r.mapped(v));
    std::optional<std::vector<Tensor>> values = fold(r.graph(), g.node(id), operands);
    if (!values) return std::nullopt;
    std::vector<Expr> results;
    for (Tensor& t : *values) results.push_back(r.graph().constant(std::move(t)));
    return results;
  });
}

}  // namespace

const Pass fold_constants{
    "fold-constants",
    "Evaluates ops whose operands are constants, in their own dtype, if the result has at most 64 KiB; replaces "
    "dim_size of a static extent by a constant. Quantized constants are not decoded to more bytes, and large constants "
    "are not cast to wider types. A result without elements becomes a constant.",
    run_fold_constants};

}  // namespace rlx
