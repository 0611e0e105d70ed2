// Proves a memory plan. The files check_names.cpp, check_places.cpp and check_bodies.cpp check its fields one by one.
// This file proves the order: every read finds the bytes that its value's maker wrote, and two accesses to the same
// bytes, one of them a write, are ordered by the edges. So every order that the edges allow computes what the schedule
// computes.
#include <algorithm>
#include <iterator>
#include <queue>
#include <utility>

#include "rlx/compiler/check_places.h"
#include "rlx/compiler/sync_points.h"
#include "rlx/exec/access_history.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {
namespace {

// A history joins the readers of a value once for each range that covers its bytes: about log2 of the number of steps.
constexpr int kMaxJoins = 64;
constexpr std::size_t kNoEdge = ~std::size_t{0};

class PlanChecker {
 public:
  PlanChecker(const Graph& g, const LirBufferPlan& plan)
      : g_(g),
        plan_(plan),
        homes_(plan),
        order_(plan.schedule.size()),
        maker_(g.num_nodes(), kNoStep),
        last_edge_(plan.schedule.size(), kNoEdge),
        reached_(plan.schedule.size(), kNoStep) {
    for (NodeId id : g.leaves(OpKind::State)) state_devices_.push_back(plan.node_device(id));
    for (std::size_t s = 0; s < plan.schedule.size(); ++s)
      maker_[plan.schedule[s].node.index] = static_cast<std::int32_t>(s);
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
      if (maker_[i] == kNoStep && plan.values[i][0].is_view && !g.nodes()[i].inputs.empty())
        maker_[i] = maker_[g.nodes()[i].inputs[0].node.index];
  }

  std::vector<std::string> run() {
    std::vector<ByteRange> ranges;
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i)
      for (std::uint32_t r = 0; r < g_.nodes()[i].num_results(); ++r) ranges.push_back(range(Value(NodeId{i}, r)));
    for (const LirBodies& b : plan_.bodies)
      for (const LirRange& r : b.ranges) ranges.push_back(byte_range(r));
    AccessHistory history(ranges);
    std::int32_t last_ordered = kNoStep;
    const std::vector<SyncPoint> points = sync_points(g_, plan_.schedule);
    std::size_t next_point = 0;
    for (std::size_t i = 0; i < plan_.schedule.size() && !problems_.full(); ++i) {
      for (; next_point < points.size() && points[next_point].step == i; ++next_point)
        check_sync_point(history, points[next_point]);
      add_edges(i);
      const NodeId id = plan_.schedule[i].node;
      const auto self = static_cast<std::int32_t>(i);
      if (is_ordered(g_.node(id).op)) {
        if (last_ordered != kNoStep && !ordered(last_ordered, self))
          report(id, " is an ordered op, but no edge makes it run after ", name(last_ordered));
        last_ordered = self;
      }
      each_read(g_, plan_.schedule[i], [&](Value v) {
        check_read(history, v, self);
        history.read(range(v), {self});
      });
      check_writes(history, id, self);
      if (const LirBodies* b = plan_.bodies_of(id))
        for (const LirRange& r : b->ranges) check_write(history, byte_range(r), self, "the memory of its bodies");
      if (!plan_.arena_devices.empty() || !plan_.node_devices.empty()) check_devices(id);
    }
    const auto end = static_cast<std::int32_t>(plan_.schedule.size());
    for (; next_point < points.size(); ++next_point) check_sync_point(history, points[next_point]);
    for (const Root& r : roots(g_))
      if (r.is_read() && r.kind != RootKind::SymbolSource) check_read(history, r.value, end);
    for (std::size_t i = 0; i < last_sync_step(points); ++i)
      for (std::uint32_t r = 0; r < g_.node(plan_.schedule[i].node).num_results(); ++r)
        if (plan_.at(Value(plan_.schedule[i].node, r)).place == Place::Output)
          report(plan_.schedule[i].node, " writes an output before all symbols are known");
    return std::move(problems_).take();
  }

 private:
  struct Edge {
    std::int32_t from;   // the step that waits
    std::size_t before;  // index of the previous edge to the same step
  };

  template <class... Parts>
  void report(const Parts&... parts) {
    problems_.add(parts...);
  }

  ByteRange range(Value v) const {
    const LirValue& lv = plan_.at(v);
    const BufferHome home = homes_(lv);
    return {home.place, home.index, lv.offset, lv.offset + lv.bytes};
  }

  std::string name(std::int32_t step) const {
    if (step == kNoStep) return "nobody";
    if (static_cast<std::size_t>(step) == plan_.schedule.size()) return "the caller";
    return plan_.schedule[static_cast<std::size_t>(step)].node.text();
  }

  void add_edges(std::size_t i) {
    order_.begin(i);
    for (std::int32_t p : plan_.schedule[i].predecessors) {
      if (p < 0 || static_cast<std::size_t>(p) >= i)
        report("step ", i, " waits for step ", p, ", which is not an earlier step");
      else
        order_.wait(i, static_cast<std::size_t>(p)), note_edge(static_cast<std::int32_t>(i), p);
    }
  }

  void note_edge(std::int32_t from, std::int32_t to) {
    std::size_t& last = last_edge_[static_cast<std::size_t>(to)];
    edges_.push_back({from, last});
    last = edges_.size() - 1;
  }

  // True when step `j` is known at once to be complete before `i`, the current step. The answer is exact for near
  // steps. For distant steps it needs a direct edge.
  bool directly_ordered(std::int32_t j, std::int32_t i) const {
    const auto from = static_cast<std::size_t>(i), to = static_cast<std::size_t>(j);
    if (from - to <= RecentOrder::kWindow) return order_.before(to, from);
    return last_edge_[to] != kNoEdge && edges_[last_edge_[to]].from == i;
  }

  // The same through any path. Our plans have a direct edge, or a path through one step that joined many readers.
  bool ordered(std::int32_t j, std::int32_t i) {
    if (directly_ordered(j, i)) return true;
    if (static_cast<std::size_t>(i - j) <= RecentOrder::kWindow) return false;
    std::size_t edge = last_edge_[static_cast<std::size_t>(j)];
    for (int tries = 0; tries < kMaxJoins && edge != kNoEdge; ++tries, edge = edges_[edge].before)
      if (directly_ordered(edges_[edge].from, i)) return true;
    return reaches(i, j);
  }

  // True when edges lead back from step `i` to `j`. The search continues where the last one from `i` ended, so that
  // each edge is followed once.
  bool reaches(std::int32_t i, std::int32_t j) {
    if (search_from_ != i) to_visit_ = {}, to_visit_.push(search_from_ = i);
    while (!to_visit_.empty() && to_visit_.top() > j) {
      const std::int32_t at = to_visit_.top();
      to_visit_.pop();
      for (std::int32_t p : plan_.schedule[static_cast<std::size_t>(at)].predecessors)
        if (p >= 0 && p < at && std::exchange(reached_[static_cast<std::size_t>(p)], i) != i) to_visit_.push(p);
    }
    return reached_[static_cast<std::size_t>(j)] == i;
  }

  void check_read(const AccessHistory& history, Value v, std::int32_t reader) {
    const std::int32_t made = maker_[v.node.index];
    writers_.clear();
    history.find_writers(range(v), writers_);
    for (const auto [w, parts] : writers_)
      if (w != made)
        report(name(w), " may overwrite ", v, ", which ", name(made), " writes, before ", name(reader), " reads it");
    if (writers_.empty()) return;  // no bytes: no write can be too late or too early
    if (made != kNoStep && made >= reader)
      report(name(reader), " may run before ", v, " is written");
    else if (made != kNoStep && static_cast<std::size_t>(reader) < plan_.schedule.size() && !ordered(made, reader))
      report(name(reader), " may run before ", v, " is written");
  }

  // The host reads sources between steps, after all earlier steps are complete.
  void check_sync_point(const AccessHistory& history, const SyncPoint& point) {
    for (Value v : point.sources) {
      const std::int32_t made = maker_[v.node.index];
      writers_.clear();
      history.find_writers(range(v), writers_);
      for (const auto [w, parts] : writers_)
        if (w != made) report(name(w), " may overwrite ", v, ", which holds the value of a symbol");
      if (made != kNoStep && static_cast<std::size_t>(made) >= point.step)
        report(v, ", which holds the value of a symbol, is written after its sync point");
    }
  }

  void check_writes(AccessHistory& history, NodeId id, std::int32_t self) {
    for (std::uint32_t r = 0; r < g_.node(id).num_results(); ++r) {
      const Value v(id, r);
      writers_.clear();
      if (r > 0) history.find_writers(range(v), writers_);
      if (std::find(writers_.begin(), writers_.end(), AccessUser{self}) != writers_.end())
        report("two results of ", id, " overlap in memory");
      check_write(history, range(v), self, v);
    }
  }

  template <class What>
  void check_write(AccessHistory& history, const ByteRange& bytes, std::int32_t self, const What& what) {
    earlier_.clear(), readers_.clear();
    history.find_writers(bytes, earlier_);
    history.find_readers(bytes, readers_);
    for (const AccessHistory::Reader& reader : readers_) add_unproven(history, reader, self);
    history.write(bytes, {self});
    std::sort(earlier_.begin(), earlier_.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
    earlier_.erase(std::unique(earlier_.begin(), earlier_.end()), earlier_.end());
    for (const auto [e, parts] : earlier_)
      if (e != kNoStep && e != self && !ordered(e, self))
        report(name(self), " may write ", what, " over bytes that ", name(e),
               " reads or writes: no edge orders the two");
  }

  // For an existing arena only. A missing arena is reported elsewhere.
  std::uint32_t device_of(std::uint32_t arena) const {
    return arena < plan_.arenas.size() ? plan_.arena_device(arena) : 0;
  }

  // The operands and results of a step lie on its device. Only a transfer reads from another device.
  void check_devices(NodeId id) {
    const Node& n = g_.node(id);
    const auto here = [&](Value v) {
      const LirValue& lv = plan_.at(v);
      if (lv.place == Place::State)
        return lv.index < state_devices_.size() && state_devices_[lv.index] == plan_.node_device(id);
      return lv.place != Place::Arena || lv.bytes == 0 || device_of(lv.index) == plan_.node_device(id);
    };
    for (std::uint32_t r = 0; r < n.num_results(); ++r)
      if (!here(Value(id, r))) report(id, " writes to a device other than the one it runs on");
    if (n.kind() == OpKind::Transfer) return;
    for (Value v : n.inputs)
      if (!here(v)) report(id, " reads ", v, " from a device other than the one it runs on");
  }

  // Adds a reader to the steps that `self` must be proved to wait for. A group adds all its readers, unless `self`
  // waits for a step that joined them. The joining step here may differ from the planner's, because the planner's
  // ranges may have differed.
  void add_unproven(AccessHistory& history, const AccessHistory::Reader& reader, std::int32_t self) {
    if (!reader.is_group) {
      earlier_.push_back({reader.index});
      return;
    }
    AccessHistory::Group& group = history.group(reader.index);
    for (const auto [step, parts] : group.joined_by)
      if (step == self || directly_ordered(step, self)) return;
    for (const AccessHistory::Reader& member : group.readers) add_unproven(history, member, self);
    group.joined_by.push_back({joiner(history, group, self)});
  }

  // Returns a step that `self` waits for and that has an edge to each reader of the group. Returns `self` when there is
  // none, and then `self` must be proved to wait for each reader.
  std::int32_t joiner(AccessHistory& history, const AccessHistory::Group& group, std::int32_t self) const {
    const auto first =
        std::find_if(group.readers.begin(), group.readers.end(), [](const auto& r) { return !r.is_group; });
    if (first == group.readers.end()) return self;
    std::size_t edge = last_edge_[static_cast<std::size_t>(first->index)];
    for (int tries = 0; tries < kMaxJoins && edge != kNoEdge; ++tries, edge = edges_[edge].before)
      if (const std::int32_t step = edges_[edge].from;
          step != self && directly_ordered(step, self) && joins(history, group, step))
        return step;
    return self;
  }
  bool joins(AccessHistory& history, const AccessHistory::Group& group, std::int32_t step) const {
    return std::all_of(group.readers.begin(), group.readers.end(), [&](const AccessHistory::Reader& r) {
      if (!r.is_group) return has_edge(step, r.index);
      const AccessHistory::Group& inner = history.group(r.index);
      return std::find(inner.joined_by.begin(), inner.joined_by.end(), AccessUser{step}) != inner.joined_by.end() ||
             joins(history, inner, step);
    });
  }
  bool has_edge(std::int32_t from, std::int32_t to) const {
    std::size_t edge = last_edge_[static_cast<std::size_t>(to)];
    for (int tries = 0; tries < kMaxJoins && edge != kNoEdge; ++tries, edge = edges_[edge].before)
      if (edges_[edge].from == from) return true;
    return from == to;
  }

  const Graph& g_;
  const LirBufferPlan& plan_;
  BufferHomes homes_;
  RecentOrder order_;
  std::vector<std::int32_t> maker_;  // the step that wrote a node's bytes: its own step, or through views its operand's
  std::vector<AccessHistory::Reader> readers_;
  std::vector<Edge> edges_;                    // of all checked steps
  std::vector<std::size_t> last_edge_;         // of each step
  std::vector<AccessUser> writers_, earlier_;  // of the current access
  std::int32_t search_from_ = kNoStep;         // the step whose predecessors were searched last
  std::vector<std::int32_t> reached_;          // by step: the last search that reached it
  std::vector<std::uint32_t> state_devices_;   // by state
  std::priority_queue<std::int32_t> to_visit_;
  PlanProblems problems_;
};

}  // namespace

std::vector<std::string> check_named_plan(const Graph& g, const LirBufferPlan& plan, const PlanCheck& how) {
  std::vector<std::string> problems;
  const auto add = [&](std::vector<std::string> more) {
    problems.insert(problems.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  add(check_places(g, plan, how));
  for (const LirBodies& b : plan.bodies) add(check_bodies(g, plan, b, how));
  add(PlanChecker(g, plan).run());
  return problems;
}

std::vector<std::string> check_plan(const Graph& g, const LirBufferPlan& plan, const PlanCheck& how) {
  std::vector<std::string> problems = check_names(g, plan);
  return problems.empty() ? check_named_plan(g, plan, how) : problems;
}

}  // namespace rlx
