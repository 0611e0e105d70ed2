// The bodies of one node: their ranges of memory, the buffers of carries and rows, and the aliases that a loop or
// branch relies on.
#include <algorithm>
#include <optional>
#include <tuple>

#include "rlx/compiler/check_places.h"
#include "rlx/compiler/plan_bodies.h"
#include "rlx/exec/access_history.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {
namespace {

class BodyChecker {
 public:
  BodyChecker(const Graph& g, const LirBufferPlan& plan, const LirBodies& bodies, const PlanCheck& how)
      : plan_(plan),
        b_(bodies),
        n_(g.node(bodies.node)),
        loop_(loop_parts(n_.op)),
        how_(how),
        homes_(plan),
        used_(bodies.ranges.size(), false) {}

  std::vector<std::string> run() {
    check_ranges();
    for (std::size_t i = 0; i < b_.modules.size(); ++i) check_body(i);
    check_carries();
    check_rows();
    return std::move(problems_).take();
  }

 private:
  ByteRange range(Value v) const {
    const LirValue& lv = plan_.at(v);
    const BufferHome home = homes_(lv);
    return {home.place, home.index, lv.offset, lv.offset + lv.bytes};
  }
  std::uint32_t device_of(const LirRange& r) const {
    return r.arena < plan_.arenas.size() ? plan_.arena_device(r.arena) : 0;
  }

  // All ranges lie in their arenas, apart from each other and from the node's own operands and results.
  void check_ranges() {
    std::vector<ByteRange> taken;
    for (const LirRange& r : b_.ranges) {
      if (r.bytes == 0) continue;
      if (r.offset + r.bytes > plan_.arenas[r.arena])
        problems_.add("the bodies of ", b_.node, " lie outside their arena");
      if (r.offset % plan_.alignment != 0)
        problems_.add("the bodies of ", b_.node, " have a range at offset ", r.offset, ", but the plan aligns to ",
                      plan_.alignment, " bytes");
      taken.push_back(byte_range(r));
    }
    std::sort(taken.begin(), taken.end(), before);
    for (std::size_t i = 1; i < taken.size(); ++i)
      if (taken[i - 1].meets(taken[i])) problems_.add("the bodies of ", b_.node, " have memory ranges that overlap");
    const auto meets = [&](const ByteRange& bytes) {
      auto r = std::partition_point(taken.begin(), taken.end(), [&](const ByteRange& x) { return before(x, bytes); });
      return (r != taken.end() && r->meets(bytes)) || (r != taken.begin() && std::prev(r)->meets(bytes));
    };
    for (Value v : n_.inputs)
      if (meets(range(v))) problems_.add("the bodies of ", b_.node, " overwrite its operand ", v);
    for (std::uint32_t r = 0; r < n_.num_results(); ++r)
      if (meets(range(Value(b_.node, r)))) problems_.add("the bodies of ", b_.node, " overwrite its result ", r);
  }
  static bool before(const ByteRange& a, const ByteRange& b) {
    return std::tuple(a.place, a.index, a.from) < std::tuple(b.place, b.index, b.from);
  }

  void check_body(std::size_t i) {
    const LirModule& m = b_.modules[i];
    if (m.plan.alignment > plan_.alignment)
      problems_.add("a body of ", b_.node, " is aligned to ", m.plan.alignment, " bytes, but the program to ",
                    plan_.alignment);
    if (!m.ranges.empty() || !m.others.empty() || m.prepare.num_nodes() != 0)
      problems_.add("a body of ", b_.node, " has ranges of steps, devices or weights of its own");
    std::vector<std::uint32_t> own = b_.arenas[i];
    for (std::size_t a = 0; a < own.size(); ++a) {
      const LirRange& r = b_.ranges[own[a]];
      used_[own[a]] = true;
      if (m.plan.arenas[a] > r.bytes)
        problems_.add("a body of ", b_.node, " needs more memory than the range of its bodies has");
      else if (m.plan.arenas[a] != 0 && m.plan.arena_device(a) != device_of(r))
        problems_.add("a body of ", b_.node, " has its arena and its memory range on different devices");
    }
    std::sort(own.begin(), own.end());
    if (std::adjacent_find(own.begin(), own.end()) != own.end())
      problems_.add("two arenas of a body of ", b_.node, " are one range");
    check_aliases(i);
    PlanCheck inside = how_;
    inside.whole = true;
    inside.home = plan_.node_device(b_.node);
    if (how_.target && !b_.host_controlled) inside.target = &how_.target->of_device(inside.home);
    for (const std::string& problem : check_named_plan(m.graph, m.plan, inside))
      problems_.add("a body of ", b_.node, ": ", problem);
  }

  // The last body of a loop gets its carries donated, the bodies of a branch what they share with it.
  void check_aliases(std::size_t i) {
    const std::vector<LirAlias>& has = b_.modules[i].plan.aliases;
    const std::size_t carries = loop_ && i + 1 == b_.modules.size() ? loop_->carries : 0;
    bool same = has.size() == carries + b_.shared.size();
    for (std::size_t c = 0; same && c < carries; ++c)
      same = has[c].input == loop_->first_carry() + c && has[c].output == c;
    for (std::size_t k = 0; same && k < b_.shared.size(); ++k) {
      const LirAlias& alias = has[carries + k];
      const LirBodies::Shared& s = b_.shared[k];
      same = alias.input + 1 == s.operand && alias.output == s.result;
      if (same && s.refused.empty() && !alias.refused.empty())
        problems_.add("result ", s.result, " of ", b_.node, " shares operand ", s.operand,
                      ", but a body refuses that: ", alias.refused);
    }
    if (!same) problems_.add("a body of ", b_.node, " does not have the donated inputs of a loop or branch");
  }

  // A buffer of the node alone, besides the arenas of its bodies.
  void own_range(std::uint32_t range, std::size_t bytes, std::string_view what, std::size_t number) {
    if (used_[range]) problems_.add(what, number, " of ", b_.node, " is memory of its bodies or of another buffer");
    used_[range] = true;
    const LirRange& r = b_.ranges[range];
    if (bytes > r.bytes) problems_.add(what, number, " of ", b_.node, " is too small");
    if (bytes != 0 && device_of(r) != plan_.node_device(b_.node))
      problems_.add(what, number, " of ", b_.node, " is on another device than the node");
  }

  void check_carries() {
    const std::vector<LirAlias>& donated = b_.modules.back().plan.aliases;
    for (std::size_t c = 0; c < b_.second.size(); ++c) {
      if (b_.second[c])
        own_range(*b_.second[c], plan_.at(Value(b_.node, static_cast<std::uint32_t>(c))).bytes,
                  "the second buffer of carry ", c);
      else if (c < donated.size() && !donated[c].refused.empty())
        problems_.add("carry ", c, " of ", b_.node,
                      " has no second buffer, but cannot be updated in place: ", donated[c].refused);
    }
  }

  void check_rows() {
    const bool decides = b_.host_controlled && n_.kind() == OpKind::While;
    if (decides != b_.decision.has_value())
      problems_.add("the plan of ", b_.node, decides ? " has no place" : " has a place that it does not need",
                    " for its decision");
    if (b_.decision) own_range(*b_.decision, 1, "the decision ", 0);
    if (b_.rows.empty()) return;
    const Graph& step = b_.modules.back().graph;
    const std::vector<NodeId> inputs = step.leaves(OpKind::Input);
    std::size_t apart = 1;
    if (how_.target) apart = std::max(how_.target->limits().view_alignment, how_.target->limits().copy_granule);
    for (std::size_t i = 0; i < b_.rows.size(); ++i) {
      const Value v =
          i < loop_->xs ? Value(inputs[loop_->first_x() + i]) : step.outputs()[loop_->carries + (i - loop_->xs)];
      const std::size_t bytes = step.shape(v).is_static() ? stored_bytes(step, v) : 0;
      if (b_.rows[i])
        own_range(*b_.rows[i], bytes, "the buffer of row ", i);
      else if (bytes % apart != 0)
        problems_.add("row ", i, " of ", b_.node, " has no buffer, but its ", bytes, " bytes are no multiple of ",
                      apart);
    }
  }

  const LirBufferPlan& plan_;
  const LirBodies& b_;
  const Node& n_;
  const std::optional<LoopParts> loop_;
  const PlanCheck& how_;
  BufferHomes homes_;
  std::vector<bool> used_;  // by range
  PlanProblems problems_;
};

}  // namespace

std::vector<std::string> check_bodies(const Graph& g, const LirBufferPlan& plan, const LirBodies& bodies,
                                      const PlanCheck& how) {
  return BodyChecker(g, plan, bodies, how).run();
}

}  // namespace rlx
