// Planning asks the target about a node a bounded number of times for each operand, whatever the program: the work that
// answers may take grows with the program, not with its square.
#include "bench/compile_programs.h"

#include <doctest/doctest.h>

#include "rlx/compiler/pipeline.h"
#include "rlx/device/registry.h"
#include "rlx/ir/rewrite.h"
#include "tests/support/needs.h"

namespace rlx {
namespace {

// The cpu target. It counts what a question may cost: an answer may look at all operands, results and bodies of a node.
class Counting final : public Target {
 public:
  explicit Counting(std::shared_ptr<const Target> base) : base_(std::move(base)) {}
  std::size_t cost() const { return cost_; }

  std::string_view name() const override { return base_->name(); }
  TargetLimits limits() const override { return base_->limits(); }
  bool runtime_symbols() const override { return true; }
  const OpSet& kinds() const override { return base_->kinds(); }
  const char* refuses(const Graph& g, NodeId id) const override { return note(g, id), base_->refuses(g, id); }
  bool on_host(const Graph& g, NodeId id) const override { return note(g, id), base_->on_host(g, id); }
  RegionLimits region_limits() const override { return base_->region_limits(); }
  bool reads_strided(const Graph& g, NodeId id, int operand) const override {
    // Every operand of a concat is asked for once. Its kernel looks at the first operand alone.
    cost_ += g.node(id).kind() == OpKind::Concat ? 1 : 0;
    if (g.node(id).kind() != OpKind::Concat) note(g, id);
    return base_->reads_strided(g, id, operand);
  }
  bool in_place(const Graph& g, NodeId id, int operand, int result) const override {
    return note(g, id), base_->in_place(g, id, operand, result);
  }
  bool plans_bodies(const Graph& g, NodeId id) const override { return note(g, id), base_->plans_bodies(g, id); }
  std::optional<PackedLayout> packed_layout(const Graph& g, NodeId id, int operand,
                                            const ConstantMatrix& of) const override {
    return base_->packed_layout(g, id, operand, of);
  }
  bool reads_packed(const Graph& g, NodeId id, int operand, const PackedLayout& layout) const override {
    return base_->reads_packed(g, id, operand, layout);
  }

 private:
  void note(const Graph& g, NodeId id) const {
    const Node& n = g.node(id);
    cost_ += n.inputs.size() + n.num_results();
    for (const Subgraph& body : body_graphs(n.op)) cost_ += body->num_nodes();
  }
  std::shared_ptr<const Target> base_;
  mutable std::size_t cost_ = 0;
};

std::size_t cost_of(const Graph& g) {
  const auto target = std::make_shared<const Counting>(backend_for(Device::Cpu)->target({}));
  (void)CompilePipeline(target).compile_graph(g);
  return target->cost();
}

TEST_CASE("what a compile asks of its target grows with the program") {
  constexpr int kNodes = 200;
  test::Share share(3);
  for (const shapes::Case& c : shapes::kPrograms) {
    if (!share.next()) continue;
    CAPTURE(c.name);
    const Graph small = c.make(kNodes), large = c.make(3 * kNodes);
    const std::size_t few = cost_of(small), many = cost_of(large);
    CAPTURE(few);
    CAPTURE(many);
    const double nodes =
        static_cast<double>(shapes::count_nodes(large)) / static_cast<double>(shapes::count_nodes(small));
    CHECK(static_cast<double>(many) < 1.35 * nodes * static_cast<double>(few));
  }
}

TEST_CASE("weights are known in one walk, however many values are asked for") {
  Graph g("weights");
  Expr w = g.param("w", {{4}, DType::F32});
  const Expr x = g.input("x", {{4}, DType::F32});
  constexpr int kNodes = 30'000;  // asked one by one, walks back to the param would visit 450 million nodes
  for (int i = 0; i < kNodes; ++i) w = g.sin(w);
  const Expr mixed = w + x;
  ParamOnly param_only;
  int found = 0;
  for (std::uint32_t i = g.num_nodes(); i-- > 0;) found += param_only(g, Value(NodeId{i}));
  CHECK(found == kNodes + 1);
  CHECK(!param_only(g, mixed.value()));
  const Expr later = g.cos(w);  // the graph may grow between two questions
  CHECK(param_only(g, later.value()));
}

}  // namespace
}  // namespace rlx
