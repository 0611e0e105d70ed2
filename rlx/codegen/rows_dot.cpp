// Rows: products of two operands, the second of which may be codes, with and without an epilogue; decoding by itself.
#include <algorithm>

#include "rlx/codegen/functions_wgsl.h"
#include "rlx/codegen/matmul.h"
#include "rlx/codegen/row.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/quantize.h"

namespace rlx::codegen {
namespace {

// Bindings of a product whose operand 1 takes `of_weight`.
const char* refuse_many(const Graph& g, NodeId id, std::size_t of_weight) {
  return refuse_unless(g.node(id).inputs.size() + of_weight <= static_cast<std::size_t>(Dialect{}.max_bindings),
                       "it has more operands than a kernel is given");
}

const char* dot_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_dtypes(g, id)) return why;
  if (const char* why = epilogue_refuses(g, id)) return why;
  return refuse_many(g, id, 1);
}
void write_dot(NodeKernels& node) { write_product(Dot(node, false)); }

// Operand 1 is a Dequantize, whose codes the kernels decode.
const char* coded_refuses(const Graph& g, NodeId id) {
  const NodeId from = g.node(id).inputs[1].node;
  if (g.node(from).kind() != OpKind::Dequantize) return "its second operand is not decoded from codes";
  if (g.node(id).inputs[0].node == from) return "both of its operands are the same codes";
  if (const char* why = decoder_refuses(g, from)) return why;
  if (const char* why = dot_refuses(g, id)) return why;
  return refuse_many(g, id, decoder_operands(g, from));
}
void write_coded(NodeKernels& node) { write_product(Dot(node, true)); }
bool reads_codes(const Graph&, NodeId, int operand) { return operand == 1; }

bool dot_any_strides(const Graph&, NodeId, int) { return true; }
bool all_but_codes(const Graph&, NodeId, int operand) { return operand != 1; }

// An operand of the epilogue is read where the result is written, before; the factors are read by others.
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

constexpr Row kRows[] = {
    {OpKind::DotGeneral, "dot_coded", coded_refuses, write_coded, all_but_codes, nullptr, reads_codes},
    {OpKind::FusedDot, "dot_coded", coded_refuses, write_coded, all_but_codes, dot_overwrites, reads_codes},
    {OpKind::DotGeneral, "dot", dot_refuses, write_dot, dot_any_strides},
    {OpKind::FusedDot, "dot", dot_refuses, write_dot, dot_any_strides, dot_overwrites},
    {OpKind::Dequantize, "decode", decoder_refuses, write_decode},
};

}  // namespace

std::span<const Row> dot_rows() { return kRows; }

}  // namespace rlx::codegen
