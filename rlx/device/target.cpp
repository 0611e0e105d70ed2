// Target wrappers that change the answers of a backend's target.
#include "rlx/device/target.h"

#include <algorithm>
#include <utility>

#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {

bool Target::host_controlled(const Graph& g, NodeId id) const {
  const OpBox& op = g.node(id).op;
  if (op_def(op).bodies != BodyKind::Programs || op.kind() == OpKind::Call || !refuses(g, id)) return false;
  // Rows of values that a loop iterates over must be whole bytes.
  const std::vector<Subgraph> bodies = body_graphs(op);
  if (const std::optional<LoopParts> p = loop_parts(op)) {
    const Node& n = g.node(id);
    for (std::size_t i = p->first_x(); i < n.inputs.size(); ++i)
      if (dtype_bits(g.shape(n.inputs[i]).dtype()) < 8) return false;
    for (std::size_t r = p->carries; r < n.num_results(); ++r)
      if (dtype_bits(n.shapes[r].dtype()) < 8) return false;
  }
  return std::all_of(bodies.begin(), bodies.end(), [&](const Subgraph& body) {
    for (std::uint32_t i = 0; i < body->num_nodes(); ++i) {
      const OpDef& def = op_def(body->nodes()[i].op);
      if (def.is_leaf() || def.view == ViewKind::Always || body->nodes()[i].kind() == OpKind::Transfer) continue;
      const NodeId inner{i};
      if (refuses(*body, inner) && !on_host(*body, inner) && !host_controlled(*body, inner)) return false;
    }
    return true;
  });
}

namespace {

// Another target's answers, without some kinds and with a larger alignment.
class Adjusted final : public Target {
 public:
  Adjusted(std::shared_ptr<const Target> base, const OpSet& kinds, std::size_t alignment)
      : base_(std::move(base)), allowed_(kinds), kinds_(base_->kinds() & kinds), alignment_(alignment) {}

  std::string_view name() const override { return base_->name(); }
  Device device() const override { return base_->device(); }
  int threads() const override { return base_->threads(); }
  bool opaque() const override { return base_->opaque(); }
  bool runtime_symbols() const override { return base_->runtime_symbols(); }
  TargetLimits limits() const override {
    TargetLimits l = base_->limits();
    l.alignment = std::max(l.alignment, alignment_);
    return l;
  }
  const OpSet& kinds() const override { return kinds_; }
  const char* refuses(const Graph& g, NodeId id) const override {
    const char* why = allowed_.refuses(g, id);
    return why ? why : base_->refuses(g, id);
  }
  bool by_kind() const override { return base_->by_kind(); }
  std::uint32_t device_of(const Graph& g, NodeId id, std::uint32_t home) const override {
    return base_->device_of(g, id, home);
  }
  bool on_host(const Graph& g, NodeId id) const override { return allowed_.claims(g, id) && base_->on_host(g, id); }
  RegionLimits region_limits() const override { return base_->region_limits(); }
  bool branches_freely() const override { return has(OpKind::If) && base_->branches_freely(); }
  bool reads_strided(const Graph& g, NodeId id, int operand) const override {
    return base_->reads_strided(g, id, operand);
  }
  bool reads_encoded(const Graph& g, NodeId id, int operand) const override {
    return base_->reads_encoded(g, id, operand);
  }
  bool in_place(const Graph& g, NodeId id, int operand, int result) const override {
    return base_->in_place(g, id, operand, result);
  }
  bool skips_unread(const Graph& g, NodeId id, int result) const override { return base_->skips_unread(g, id, result); }
  bool plans_bodies(const Graph& g, NodeId id) const override { return base_->plans_bodies(g, id); }
  std::optional<PackedLayout> packed_layout(const Graph& g, NodeId id, int operand,
                                            const ConstantMatrix& of) const override {
    return base_->packed_layout(g, id, operand, of);
  }
  bool reads_packed(const Graph& g, NodeId id, int operand, const PackedLayout& layout) const override {
    return base_->reads_packed(g, id, operand, layout);
  }

 private:
  std::shared_ptr<const Target> base_;
  OpSet allowed_, kinds_;
  std::size_t alignment_;
};

void require(const std::shared_ptr<const Target>& base, std::string_view who) {
  if (!base)
    throw Error(ErrorCode::InvalidArgument, concat_text(who, ": no target was given (a null pointer)"),
                "pass the target of a session: session.target()");
}

// Each of packed_layout and its old name asks the other, so that a target may override either. This is the target whose
// default packed_layout runs on the thread: its default `form` must not ask back.
class InDefaultLayout {
 public:
  explicit InDefaultLayout(const Target* t) : outer_(std::exchange(target, t)) {}
  ~InDefaultLayout() { target = outer_; }
  InDefaultLayout(const InDefaultLayout&) = delete;
  InDefaultLayout& operator=(const InDefaultLayout&) = delete;
  static inline thread_local const Target* target = nullptr;

 private:
  const Target* outer_;
};

}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
std::optional<PackedLayout> Target::packed_layout(const Graph& g, NodeId id, int operand,
                                                  const ConstantMatrix& of) const {
  const InDefaultLayout here(this);
  return form(g, id, operand, of);
}

std::optional<PackedLayout> Target::form(const Graph& g, NodeId id, int operand, const ConstantMatrix& of) const {
  if (InDefaultLayout::target == this) return std::nullopt;  // neither name is overridden
  return packed_layout(g, id, operand, of);
}
#pragma GCC diagnostic pop

std::shared_ptr<const Target> limited_to(std::shared_ptr<const Target> base, const OpSet& kinds) {
  require(base, "limited_to");
  return std::make_shared<const Adjusted>(std::move(base), kinds, 0);
}

std::shared_ptr<const Target> with_alignment(std::shared_ptr<const Target> base, std::size_t bytes) {
  require(base, "with_alignment");
  if (bytes <= base->limits().alignment) return base;
  return std::make_shared<const Adjusted>(std::move(base), OpSet::everything(), bytes);
}

}  // namespace rlx
