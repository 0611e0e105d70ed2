// Kernel entries: matmuls with and without an epilogue, whose second operand may be quantized; and Dequantize alone.
#include <algorithm>

#include "rlx/codegen/entry.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/codegen/matmul.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"

namespace rlx::codegen {
namespace {

const char* dot_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_dtypes(g, id)) return why;
  if (const char* why = epilogue_refuses(g, id)) return why;
  return refuse_many(g.node(id).inputs.size() + 1);
}
void write_dot(NodeKernels& node) { write_product(Dot(node, false)); }

// Operand 1 is a Dequantize, whose quantized values the kernels decode.
const char* quantized_refuses(const Graph& g, NodeId id) {
  const NodeId from = g.node(id).inputs[1].node;
  if (g.node(from).kind() != OpKind::Dequantize) return "its second operand is not a dequantize";
  if (g.node(id).inputs[0].node == from) return "both operands are the same dequantized value";
  if (const char* why = decoder_refuses(g, from)) return why;
  if (const char* why = dot_refuses(g, id)) return why;
  return refuse_many(g.node(id).inputs.size() + decoder_operands(g, from));
}
void write_quantized(NodeKernels& node) { write_product(Dot(node, true)); }
bool reads_quantized(const Graph&, NodeId, int operand) { return operand == 1; }

bool dot_any_strides(const Graph&, NodeId, int) { return true; }
bool all_but_quantized(const Graph&, NodeId, int operand) { return operand != 1; }

// An epilogue operand is read before the result is written at the same element. The matmul's operands are read by other
// threads too.
bool dot_overwrites(const Graph& g, NodeId id, int operand, int) {
  const std::vector<Value>& in = g.node(id).inputs;
  const Value& v = in[static_cast<std::size_t>(operand)];
  const Shape &x = g.shape(v), &y = g.shape(id);
  return operand >= 2 && x.dims() == y.dims() && size_bytes(x.dtype()) == size_bytes(y.dtype()) && !(v == in[0]) &&
         !(v == in[1]);
}

void write_decode(NodeKernels& node) {
  if (node.out().elements().is_static(0)) return;
  map_elements(node, "decode", {node.out()}, [&](KernelBuilder& k, const std::string& i) {
    return std::vector<std::string>{Decoder(k, node.id(), "codes").element(i)};
  });
}

// Iterations along K. With few rows or columns at least four lanes share it.
template <class Op>
Dim steps_of(const Graph& g, NodeId id, const Dialect& dialect) {
  const auto& op = g.node(id).op.as<Op>();
  const Shape &x = in_shape(g, id, 0), &w = in_shape(g, id, 1);
  Dim k(1), m(1), n(1);
  const auto in = [](const std::vector<std::int64_t>& list, int a) {
    return std::count(list.begin(), list.end(), a) != 0;
  };
  for (std::int64_t a : op.lhs_contract) k = k * x.dim(static_cast<int>(a));
  for (int a = 0; a < x.rank(); ++a)
    if (!in(op.lhs_contract, a) && !in(op.lhs_batch, a)) m = m * x.dim(a);
  for (int a = 0; a < w.rank(); ++a)
    if (!in(op.rhs_contract, a) && !in(op.rhs_batch, a)) n = n * w.dim(a);
  if (is_few(m) || is_few(n)) return floordiv(k, Dim(4)) + Dim(256);
  return (dialect.software ? k : k * Dim(2)) + Dim(256);  // tiles also loop over what they copy to shared memory
}
Dim dot_steps(const Graph& g, NodeId id, const Dialect& dialect) {
  return g.node(id).kind() == OpKind::FusedDot ? steps_of<ops::FusedDot>(g, id, dialect)
                                               : steps_of<ops::DotGeneral>(g, id, dialect);
}

constexpr KernelEntry kRows[] = {
    {OpKind::DotGeneral, "dot_coded", quantized_refuses, write_quantized, all_but_quantized, nullptr, reads_quantized,
     0, widened_bytes, dot_steps},
    {OpKind::FusedDot, "dot_coded", quantized_refuses, write_quantized, all_but_quantized, dot_overwrites,
     reads_quantized, 0, widened_bytes, dot_steps},
    {OpKind::DotGeneral, "dot", dot_refuses, write_dot, dot_any_strides, nullptr, nullptr, 0, widened_bytes, dot_steps},
    {OpKind::FusedDot, "dot", dot_refuses, write_dot, dot_any_strides, dot_overwrites, nullptr, 0, widened_bytes,
     dot_steps},
    {OpKind::Dequantize, "decode", decoder_refuses, write_decode},
};

}  // namespace

std::span<const KernelEntry> dot_entries() { return kRows; }

}  // namespace rlx::codegen
