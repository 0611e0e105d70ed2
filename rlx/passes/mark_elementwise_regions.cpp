// mark-elementwise-regions: connected elementwise ops of one shape become one op that runs per element.
#include <bit>
#include <cmath>
#include <memory>
#include <set>
#include <unordered_map>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

constexpr std::string_view kRegionPattern = "elementwise_region";
constexpr std::uint32_t kNone = 0xffffffffu;
constexpr int kMaxResults = 4;  // of a region; targets would split a region with more

class RegionMarker {
 public:
  RegionMarker(GraphRewriter& r, const PassContext& context)
      : r_(r),
        g_(r.source()),
        context_(context),
        param_only_(param_only_nodes(g_)),
        region_of_(g_.num_nodes(), kNone),
        held_in_(g_.num_nodes(), kNone),
        last_reader_(g_.num_nodes(), kNone),
        met_(g_.num_nodes(), 0),
        slots_(g_),
        standings_(slots_.size()) {}

  void run() {
    // Readers come first in reverse order, so each node sees the final regions of its readers.
    for (std::uint32_t i = static_cast<std::uint32_t>(g_.num_nodes()); i-- > 0;)
      if (eligible(NodeId{i})) place(i, {context_.options.max_region_steps.value_or(0), max_inputs(), true}, 0);
    for (std::size_t k = 0; k < regions_.size(); ++k) {  // emitting may add the parts of a refused region
      const std::vector<std::uint32_t> members = std::move(regions_[k].members);
      if (members.size() >= 2) emit(members, static_cast<std::uint32_t>(k));
    }
  }

 private:
  struct Limits {
    int steps = 0, inputs = 0;  // 0: no limit
    bool report = true;         // for the user's limits: ops that they exclude are recorded
  };
  struct Region {
    std::vector<std::uint32_t> members;  // descending; the first is the tail, which all others lead to
    std::set<Value> inputs;              // operands from outside, without scalar constants; only with a limit
    int results = 0;                     // the tail, and members that are outputs or new values of states
  };

  int max_inputs() const { return context_.options.max_region_inputs.value_or(0); }

  // An op that a region may hold: elementwise, not left to weight preparation, and taken by the target.
  bool eligible(NodeId id) {
    const Node& n = g_.node(id);
    if (!runs_per_element(g_, id) || param_only_[id.index]) return false;
    // A target that claims by kinds does not say how its regions treat bits.
    if (context_.claims->by_kind()) return n.kind() != OpKind::Bitcast;
    // The target is asked once for all nodes that would make the same region.
    std::uint64_t hash = static_cast<std::uint64_t>(n.kind());
    for (Value v : n.inputs) {
      const Shape& s = g_.shape(v);
      hash = hash * 31 + static_cast<std::uint64_t>(s.dtype());
      for (const Dim& d : s.dims()) hash = hash * 31 + (d.is_static() ? static_cast<std::uint64_t>(d.value()) : 1);
    }
    std::vector<Asked>& asked = asked_[hash];
    const std::uint32_t at = context_.claims->place_of(n.origin.label);
    for (const Asked& a : asked)
      if (a.place == at && same_alone(n, g_.node(a.node))) return a.claimed;
    const bool claimed = claimed_alone(id);
    if (asked.size() < kMostAsked) asked.push_back({id, at, claimed});
    return claimed;
  }

  // Asks on a temporary graph. The stage would keep a region of every node that is asked about.
  bool claimed_alone(NodeId id) {
    std::optional<Body> body = build({id.index});
    if (!body) return false;
    Graph asked("asked");
    std::vector<Value> operands;
    for (Value v : body->operands) operands.push_back(asked.input(concat_text("in", operands.size()), g_.shape(v)));
    const Expr alone = asked.add(ops::ElementwiseRegion{std::move(body->graph)}, std::move(operands));
    return !context_.refuses(alone, g_.node(id));
  }

  // True when regions of one node each would be equal except for the names of their operands.
  bool same_alone(const Node& a, const Node& b) const {
    if (!same_op(a.op, b.op) || a.inputs.size() != b.inputs.size() || !(a.shapes == b.shapes)) return false;
    for (std::size_t i = 0; i < a.inputs.size(); ++i) {
      if (!(g_.shape(a.inputs[i]) == g_.shape(b.inputs[i]))) return false;
      const std::optional<double> x = inside_constant(a.inputs[i]), y = inside_constant(b.inputs[i]);
      if (x.has_value() != y.has_value()) return false;
      if (x && std::bit_cast<std::uint64_t>(*x) != std::bit_cast<std::uint64_t>(*y)) return false;
      const Value from = behind_expands(a.inputs[i]), to = behind_expands(b.inputs[i]);
      if (!(g_.shape(from) == g_.shape(to))) return false;
      for (std::size_t k = 0; k < i; ++k)
        if ((behind_expands(a.inputs[k]) == from) != (behind_expands(b.inputs[k]) == to) ||
            (a.inputs[k] == a.inputs[i]) != (b.inputs[k] == b.inputs[i]))
          return false;
    }
    return true;
  }

  Value behind_expands(Value v) const {
    while (g_.node(v.node).kind() == OpKind::Expand) v = g_.node(v.node).inputs[0];
    return v;
  }

  // A scalar constant inside the body instead of an operand. I64 values of 2^53 and more may have been rounded to a
  // double.
  std::optional<double> inside_constant(Value v) const {
    std::optional<double> c = constant_scalar(g_, v);
    if (c && !is_float(g_.shape(v).dtype()) && std::abs(*c) >= 0x1p53) c.reset();
    return c;
  }

  // Adds node i to the region of its readers, or opens a new region. Regions before `first_region` are not extended.
  void place(std::uint32_t i, Limits limits, std::size_t first_region) {
    const Value v{NodeId{i}};
    std::uint32_t target = kNone;
    for (const UseIndex::Use& u : r_.uses().uses(v)) {
      const std::uint32_t region = region_of_[u.user.index];
      if (region == kNone || region < first_region || (target != kNone && region != target)) {
        target = kNone;
        break;
      }
      target = region;
    }
    if (target == kNone || !fits(regions_[target], i, limits)) {
      target = static_cast<std::uint32_t>(regions_.size());
      regions_.emplace_back();
    }
    Region& region = regions_[target];
    if (region.members.empty() || r_.uses().is_output(v)) ++region.results;
    region.members.push_back(i);
    region_of_[i] = target;
    if (limits.inputs > 0) read_by(region.inputs, i);
  }

  // Updates `inputs` of a region when node i becomes a member.
  void read_by(std::set<Value>& inputs, std::uint32_t i) const {
    inputs.erase(Value(NodeId{i}));
    for (Value in : g_.node(NodeId{i}).inputs)
      if (!inside_constant(in)) inputs.insert(in);
  }

  // Members must have the dims of the result, because a smaller value would be computed once per repetition. They must
  // also be placed on the device of the result.
  bool fits(const Region& region, std::uint32_t i, Limits limits) {
    const NodeId tail{region.members.front()};
    if (g_.node(NodeId{i}).shape().dims() != g_.node(tail).shape().dims()) return false;
    if (!context_.together(g_, NodeId{i}, tail)) return false;
    // A half float is rounded where it is stored. The region would continue with the unrounded value.
    if (const Value v{NodeId{i}}; r_.uses().is_output(v))
      if (const DType t = g_.shape(v).dtype(); region.results == kMaxResults || t == DType::BF16 || t == DType::F16)
        return false;
    if (limits.steps > 0 && static_cast<int>(region.members.size()) >= limits.steps) {
      if (limits.report)
        context_.missed(kRegionPattern, g_, NodeId{i}, MissReason::RegionTooLarge,
                        concat_text("the region of ", tail, " has ", limits.steps, " steps already"));
      return false;
    }
    if (limits.inputs > 0) {
      std::set<Value> inputs = region.inputs;
      read_by(inputs, i);
      if (static_cast<int>(inputs.size()) > limits.inputs) {
        if (limits.report)
          context_.missed(kRegionPattern, g_, NodeId{i}, MissReason::RegionTooLarge,
                          concat_text("the region of ", tail, " would read ", inputs.size(), " values; the limit is ",
                                      limits.inputs));
        return false;
      }
    }
    return true;
  }

  struct Body {
    Subgraph graph;
    std::vector<Value> operands;
  };

  // The body and operands of a region of `members` (descending). None when it would have no operand.
  std::optional<Body> build(const std::vector<std::uint32_t>& members) {
    // The body reads through expands, because it broadcasts, unless the operands would then no longer span the result.
    std::optional<Body> body = build(members, true);
    return body ? body : build(members, false);
  }

  std::optional<Body> build(const std::vector<std::uint32_t>& members, bool through_expands) {
    auto source = [&](Value v) { return through_expands ? behind_expands(v) : v; };
    // Inputs come first in a body, in the order of their first reader.
    auto body = std::make_shared<Graph>("region");
    ++body_;
    std::vector<Value> operands;
    Dims space;
    for (std::size_t k = members.size(); k-- > 0;) {
      for (Value v : g_.node(NodeId{members[k]}).inputs) {
        if (in_body(v) || inside_constant(v)) continue;
        v = source(v);
        if (in_body(v)) continue;
        put_in_body(v, body->input(concat_text("in", operands.size()), g_.shape(v)));
        operands.push_back(v);
        std::optional<Dims> wider = broadcast_dims(space, g_.shape(v).dims());
        if (!wider) return std::nullopt;
        space = std::move(*wider);
      }
      put_in_body(Value(NodeId{members[k]}), Value());  // computed below
    }
    const Dims& dims = g_.node(NodeId{members.front()}).shape().dims();
    if (operands.empty() || space != dims) return std::nullopt;
    std::vector<Expr> results;
    for (std::size_t k = members.size(); k-- > 0;) {
      const Node& n = g_.node(NodeId{members[k]});
      std::vector<Value> in;
      in.reserve(n.inputs.size());
      for (Value v : n.inputs) {
        if (const Value* known = in_body(v))
          in.push_back(*known);
        else if (const std::optional<double> number = inside_constant(v))
          in.push_back(body->scalar(*number, g_.shape(v).dtype()));
        else
          in.push_back(*in_body(source(v)));
      }
      const Expr made = body->add(n.op, std::move(in));
      put_in_body(Value(NodeId{members[k]}), made);
      if (!is_result(members, k)) continue;
      if (made.shape().dims() != dims) return std::nullopt;
      results.push_back(made);
    }
    body->set_outputs(std::move(results));
    return Body{std::move(body), std::move(operands)};
  }

  // The value in the body that `build` makes for a value of the graph, or null. Operands are no members: the value
  // behind an expand is read by the expand, which is in no region.
  const Value* in_body(Value v) const {
    const Standing& s = standings_[slots_(v)];
    return s.body == body_ ? &s.value : nullptr;
  }
  void put_in_body(Value v, Value now) { standings_[slots_(v)] = {body_, now}; }

  // True when member k of a region is one of its results. Results are in the order of the graph.
  bool is_result(const std::vector<std::uint32_t>& members, std::size_t k) const {
    return k == 0 || r_.uses().is_output(Value(NodeId{members[k]}));
  }

  // True when the region exceeds what the target takes. A refused region of n ops is split in half log n times, and
  // most of these halves need not be built. Returns true only for a region that `build` would make and the target would
  // refuse.
  bool surely_refused(const std::vector<std::uint32_t>& members, std::uint32_t region) {
    const auto [most_inputs, most_alive] = context_.claims->region_limits();
    if (most_inputs == 0 && most_alive == 0) return false;
    const Dims& dims = g_.node(NodeId{members.front()}).shape().dims();
    bool spans = false;  // if so, the operands are read without their expands
    int inputs = 0;
    ++walk_;
    // By member: the member whose value it passes on (a cast may need no storage), and its last reader.
    for (std::size_t k = members.size(); k-- > 0;) {
      const Node& n = g_.node(NodeId{members[k]});
      held_in_[members[k]] = members[k];
      for (Value v : n.inputs) {
        if (region_of_[v.node.index] == region) {
          const std::uint32_t maker = held_in_[v.node.index];
          if (n.kind() == OpKind::Cast) held_in_[members[k]] = maker;
          if (maker != kNone) last_reader_[maker] = members[k];
        } else if (!inside_constant(v)) {
          const Value from = behind_expands(v);
          if (n.kind() == OpKind::Cast) held_in_[members[k]] = kNone;
          if (met_[from.node.index] == walk_ && from.result == 0) continue;
          if (from.result == 0) met_[from.node.index] = walk_;
          spans = spans || g_.shape(from).dims() == dims;
          inputs += from.result == 0;  // later results of a node are neither distinguished nor counted
        }
      }
    }
    if (!spans) return false;
    if (most_inputs > 0 && inputs > most_inputs) return true;
    if (most_alive == 0) return false;
    last_reader_[held_in_[members.front()] == kNone ? members.front() : held_in_[members.front()]] = kNone;
    int alive = inputs;
    for (std::size_t k = members.size(); k-- > 0;) {
      if (held_in_[members[k]] == members[k] && ++alive > most_alive) return true;
      for (Value v : g_.node(NodeId{members[k]}).inputs) {
        if (region_of_[v.node.index] != region) continue;
        const std::uint32_t maker = held_in_[v.node.index];
        if (maker == kNone || last_reader_[maker] != members[k]) continue;
        last_reader_[maker] = kNone;
        --alive;
      }
    }
    return false;
  }

  void emit(const std::vector<std::uint32_t>& members, std::uint32_t region) {
    const NodeId tail{members.front()};
    const char* why = "it has too many operands or values";
    if (!surely_refused(members, region)) {
      std::optional<Body> body = build(members);
      if (!body) return;
      std::vector<Value> operands;
      for (Value v : body->operands) operands.push_back(r_.expr(v));
      const Expr fused = r_.stage().add(ops::ElementwiseRegion{std::move(body->graph)}, std::move(operands));
      why = context_.refuses(fused, g_.node(tail));
      if (!why) {
        std::uint32_t result = 0;
        for (std::size_t k = members.size(); k-- > 0;)
          if (is_result(members, k))
            r_.replace(Value(NodeId{members[k]}), r_.stage().expr(Value(fused.value().node, result++)));
        context_.fused(kRegionPattern);
        return;
      }
    }
    // The region may be too long for the target's kernel, so try its halves.
    const int half = static_cast<int>(members.size()) / 2;
    if (half < 2) {
      context_.missed(kRegionPattern, g_, tail, MissReason::NotClaimed,
                      concat_text("the target does not claim a region of these ", members.size(), " ops: ", why));
      return;
    }
    for (std::uint32_t i : members) region_of_[i] = kNone;
    const std::size_t first = regions_.size();
    for (std::uint32_t i : members) place(i, {half, max_inputs(), false}, first);
  }

  struct Asked {
    NodeId node;
    std::uint32_t place;
    bool claimed;
  };
  static constexpr std::size_t kMostAsked = 8;  // per hash
  struct Standing {
    std::uint32_t body = 0;  // the body that this entry belongs to; stale for other bodies
    Value value;
  };

  GraphRewriter& r_;
  const Graph& g_;
  const PassContext& context_;
  std::vector<bool> param_only_;
  std::vector<std::uint32_t> region_of_;
  std::vector<Region> regions_;
  std::unordered_map<std::uint64_t, std::vector<Asked>> asked_;
  std::vector<std::uint32_t> held_in_, last_reader_, met_;  // by node, for surely_refused
  std::uint32_t walk_ = 0;
  const ValueSlots slots_;
  std::vector<Standing> standings_;  // by value, for build
  std::uint32_t body_ = 0;
};

std::optional<Graph> run_mark_elementwise_regions(const Graph& g, const PassContext& context) {
  if (!context.claims->has(OpKind::ElementwiseRegion)) return std::nullopt;
  GraphRewriter r(g);
  RegionMarker(r, context).run();
  if (!r.changed()) return std::nullopt;
  return r.commit(mark_elementwise_regions.name).graph;
}

}  // namespace

const Pass mark_elementwise_regions{"mark-elementwise-regions",
                                    "Joins connected elementwise ops whose results have one shape; operands broadcast "
                                    "by NumPy's rules and expands are read through. Legal: a member "
                                    "is read by its region alone; at least two ops; within the limits of the options; "
                                    "the target claims the region. Its results are the last op and up to three "
                                    "members that are outputs or new values of states.",
                                    run_mark_elementwise_regions};

}  // namespace rlx
