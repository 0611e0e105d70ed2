// Host fallback: a node without kernel or decomposition runs by its reference rule, as one task of the program.
#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx::cpu {
namespace {

struct HostStep {
  std::optional<OpBox> op;
  std::vector<Shape> input_shapes;
  std::vector<const void*> inputs;  // some pointers are relocated to callers' buffers
  std::vector<void*> outputs;
};

// It allocates, because reference rules work on tensors of their own.
void run_host(HostStep& s, std::int64_t) {
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < s.inputs.size(); ++i)
    operands.push_back(Tensor::borrowed(s.inputs[i], s.input_shapes[i], nullptr));
  const std::vector<Tensor> results = evaluate_op(*s.op, operands);
  for (std::size_t r = 0; r < results.size(); ++r)
    if (results[r].size_bytes() != 0) std::memcpy(s.outputs[r], results[r].data(), results[r].size_bytes());
}

void lower_host(LowerContext& c) {
  constexpr double kNsPerByte = 10;  // element by element, with conversions
  auto& s = c.keep<HostStep>();
  s.op = c.node().op;
  s.inputs.resize(c.node().inputs.size());
  s.outputs.resize(c.node().num_results());
  double bytes = 0;
  for (std::size_t i = 0; i < s.inputs.size(); ++i) {
    const View x = c.in(static_cast<int>(i));
    check(x.dense(), "a reference rule got a strided value");
    s.input_shapes.push_back(c.graph().shape(c.node().inputs[i]));
    c.point(s.inputs[i], x);
    bytes += static_cast<double>(s.input_shapes.back().size_bytes());
  }
  for (std::size_t r = 0; r < s.outputs.size(); ++r) {
    const View y = c.out(static_cast<int>(r));
    c.point(s.outputs[r], y);
    bytes += static_cast<double>(c.node().shapes[r].size_bytes());
  }
  if (is_ordered(c.node().op))  // runs on the thread that called the run
    c.step_alone<run_host>(s, bytes * kNsPerByte);
  else
    c.step<run_host>(s, 1, bytes * kNsPerByte);
}

}  // namespace

bool runs_on_host(const Graph& g, NodeId id) {
  const OpDef& def = op_def(g.node(id).op);
  return def.reference.has() && !def.is_leaf() && def.level != Level::Lir;
}

const KernelEntry& host_entry() {
  // The kind is not used: this entry is chosen when no other entry accepts a node.
  static constexpr KernelEntry row{OpKind::Custom, "reference rule", never_refuses, lower_host};
  return row;
}

}  // namespace rlx::cpu
