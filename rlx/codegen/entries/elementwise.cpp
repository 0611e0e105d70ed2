// Kernel entries: elementwise ops, single and as regions.
#include <algorithm>

#include "rlx/codegen/elements.h"
#include "rlx/codegen/entry.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/ir/ops/fused.h"

namespace rlx::codegen {
namespace {

const char* op_refuses(const Graph& g, NodeId id) { return step_refuses(g, g.node(id)); }

// Operands as kernels read them: values, each once, or literals for one-element constants.
class OperandList {
 public:
  OperandList(NodeKernels& node, KernelBuilder& k) : dims_(node.out().dims) {
    const std::vector<Value>& inputs = node.node().inputs;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Value v = inputs[static_cast<std::size_t>(i)];
      if (const auto same = std::find(inputs.begin(), inputs.begin() + i, v) - inputs.begin(); same < i) {
        terms_.push_back(terms_[static_cast<std::size_t>(same)]);  // so that x - x is recognized
        continue;
      }
      const DType t = node.graph().shape(v).dtype();
      if (auto text = literal_of(k, node.graph(), v)) {
        terms_.push_back({*text, t});
        continue;
      }
      terms_.push_back({concat_text("x", refs_.size()), t});
      refs_.push_back(broadcast_to(node.in(i), dims_));
    }
  }
  const std::vector<Term>& terms() const { return terms_; }
  const std::vector<Ref>& refs() const { return refs_; }

 private:
  Dims dims_;
  std::vector<Term> terms_;
  std::vector<Ref> refs_;
};

bool has_elements(const NodeKernels& node) { return !node.out().elements().is_static(0); }

void write_op(NodeKernels& node) {
  if (!has_elements(node)) return;
  const Ref out = node.out();
  KernelBuilder k(node, concat_text(op_text_name(node.node().op), "_", dtype_name(out.dtype)));
  const OperandList operands(node, k);
  ElementFunction f{operands.refs(), {out}, {}, {}, is_long(node.node().op)};
  f.statements = concat_text("let y = ", step_text(k, node.node().op, operands.terms(), out.dtype), ";\n");
  f.values = {"y"};
  finish_elements(k, f);
}

const char* region_refuses(const Graph& g, NodeId id) {
  const Graph& body = *g.node(id).op.as<ops::ElementwiseRegion>().body;
  for (std::uint32_t i = 0; i < body.num_nodes(); ++i) {
    const Node& n = body.node(NodeId{i});
    if (n.kind() == OpKind::Input) {
      if (!computes(n.shape().dtype())) return "WGSL has no type for the dtype of an operand or result";
    } else if (n.kind() == OpKind::Constant) {
      if (!computes(n.shape().dtype()) || !n.shape().num_elements_dim().is_static(1))
        return "its body has a constant that is not a scalar of a WGSL dtype";
    } else if (const char* why = step_refuses(body, n)) {
      return why;
    }
  }
  return refuse_many(g.node(id).inputs.size() + g.node(id).num_results());
}

void write_region(NodeKernels& node) {
  if (!has_elements(node)) return;
  const Graph& body = *node.op<ops::ElementwiseRegion>().body;
  KernelBuilder k(node, "region");
  const OperandList operands(node, k);
  ElementFunction f{operands.refs(), {}, {}, {}, false};
  std::vector<Term> terms(body.num_nodes());
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < body.num_nodes(); ++i) {
    const Node& n = body.node(NodeId{i});
    const DType t = n.shape().dtype();
    if (n.kind() == OpKind::Input) {
      terms[i] = operands.terms()[next++];
    } else if (n.kind() == OpKind::Constant) {
      terms[i] = {*literal_of(k, body, Value(NodeId{i})), t};
    } else {
      std::vector<Term> in;
      for (Value v : n.inputs) in.push_back(terms[v.node.index]);
      terms[i] = {concat_text("s", i), t};
      f.statements += concat_text("let s", i, " = ", settled(k, t, step_text(k, n.op, in, t)), ";\n");
      f.is_long = f.is_long || is_long(n.op);
    }
  }
  for (std::uint32_t r = 0; r < node.node().num_results(); ++r) {
    f.results.push_back(node.out(static_cast<int>(r)));
    f.values.push_back(terms[body.outputs()[r].node.index].text);
  }
  finish_elements(k, f);
}

// Each element is read before it is written at the same place.
bool overwrites(const Graph& g, NodeId id, int operand, int result) {
  const Shape& x = in_shape(g, id, operand);
  const Shape& y = g.node(id).shapes[static_cast<std::size_t>(result)];
  return x.dims() == y.dims() && size_bytes(x.dtype()) == size_bytes(y.dtype());
}
bool any_strides(const Graph&, NodeId, int) { return true; }

constexpr KernelEntry op_row(OpKind kind) {
  return {kind, "elementwise", op_refuses, write_op, any_strides, overwrites};
}
constexpr KernelEntry kElementwiseEntries[] = {
    op_row(OpKind::Activation),
    op_row(OpKind::Binary),
    op_row(OpKind::Compare),
    op_row(OpKind::Where),
    op_row(OpKind::Cast),
    op_row(OpKind::Clamp),
    {OpKind::ElementwiseRegion, "region", region_refuses, write_region, any_strides, overwrites}};

}  // namespace

std::span<const KernelEntry> elementwise_entries() { return kElementwiseEntries; }

}  // namespace rlx::codegen
