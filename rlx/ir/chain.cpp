// Numbers the inputs and ops of a body.
#include "rlx/ir/chain.h"

namespace rlx {

Chain chain_of(const Graph& body) {
  Chain chain;
  std::vector<ChainOperand> at;  // by node
  std::uint32_t inputs = 0;
  for (std::uint32_t i = 0; i < body.num_nodes(); ++i) {
    const Node& n = body.nodes()[i];
    switch (n.kind()) {
      case OpKind::Input: at.push_back({ChainOperand::From::Input, inputs++}); break;
      case OpKind::Constant: at.push_back({ChainOperand::From::Constant, i}); break;
      default: {
        if (n.kind() == OpKind::Param || n.kind() == OpKind::State || n.num_results() != 1)
          throw Error(Diagnostic{ErrorCode::InvalidArgument,
                                 "an elementwise chain must have only inputs, constants and ops with one result",
                                 node_where(body, NodeId{i}), "use the body of an elementwise_region, or an epilogue"});
        ChainStep step{NodeId{i}, {}};
        for (Value v : n.inputs) step.operands.push_back(at[v.node.index]);
        at.push_back({ChainOperand::From::Step, static_cast<std::uint32_t>(chain.steps.size())});
        chain.steps.push_back(std::move(step));
      }
    }
  }
  for (Value v : body.outputs()) chain.results.push_back(at[v.node.index]);
  return chain;
}

}  // namespace rlx
