// Views, in-place results, output placement, arena offsets and ordering edges.
#include "rlx/compiler/memory_plan.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "rlx/compiler/views.h"
#include "rlx/ir/op_def.h"

namespace rlx {
namespace {

constexpr std::int32_t kNoStep = -1;

// One allocation: the values that share it are its views and its in-place successors.
struct Buffer {
  Place place = Place::Arena;
  std::uint32_t index = 0;
  Dim size;               // bytes, as the shape has them
  std::size_t bytes = 0;  // the most that can be
  std::size_t offset = 0;
  std::int32_t first_step = kNoStep, last_step = kNoStep;  // inclusive
  NodeId maker;
};

// Where a value lies within its buffer, for every value of the symbols: what decisions are made from.
struct Location {
  Dim offset, bytes;
  Dims strides;  // empty = row-major
};

// Bytes of a shape as an expression.
Dim bytes_of(const Shape& s) {
  if (s.is_static()) return Dim(s.size_bytes());
  const int bits = dtype_bits(s.dtype());
  if (bits >= 8) return s.num_elements_dim() * Dim(bits / 8);
  return floordiv(s.num_elements_dim() * Dim(bits) + Dim(7), Dim(8));
}

std::size_t largest_bytes(const Dim& d, const SymbolRanges& ranges) {
  return static_cast<std::size_t>(d.is_static() ? d.value() : std::max<std::int64_t>(0, d.range(ranges).max));
}

class Planner {
 public:
  Planner(const Graph& g, const TargetInfo& target, std::span<const LirAlias> donated)
      : g_(g), target_(target), donated_(donated), uses_(g), symbolic_(!g.is_static()), ranges_(symbol_ranges(g)) {
    for (const auto& [name, range] : ranges_) largest_.emplace(name, range.max);
  }

  LirBufferPlan plan() {
    plan_.alignment = target_.memory.alignment;
    plan_.values.reserve(g_.num_nodes());
    buffer_of_.reserve(g_.num_nodes());
    for (const Node& n : g_.nodes()) {
      plan_.values.emplace_back(n.num_results());
      buffer_of_.emplace_back(n.num_results(), 0u);
      where_.emplace_back(n.num_results());
    }
    place_leaves();
    make_views_and_steps();
    set_lives();
    place_states();
    place_donated();
    share_in_place();
    place_outputs();
    assign_offsets();
    finish_values();
    add_edges();
    return std::move(plan_);
  }

 private:
  const Dims& dims_of(Value v) const { return g_.shape(v).dims(); }
  LirValue& at(Value v) { return plan_.values[v.node.index][v.result]; }
  Location& where(Value v) { return where_[v.node.index][v.result]; }
  std::uint32_t& buffer(Value v) { return buffer_of_[v.node.index][v.result]; }
  Dims strides_of(Value v) { return where(v).strides.empty() ? dense_strides(dims_of(v)) : where(v).strides; }
  std::size_t at_most(const Dim& d) const { return largest_bytes(d, ranges_); }
  // A number for reports and the checker: that of the largest extents.
  std::int64_t largest(const Dim& d) const { return d.is_static() ? d.value() : d.evaluate(largest_); }

  std::uint32_t new_buffer(Buffer b) {
    buffers_.push_back(b);
    return static_cast<std::uint32_t>(buffers_.size() - 1);
  }

  void place_leaves() {
    std::uint32_t inputs = 0, params = 0, states = 0;
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const Node& n = g_.nodes()[i];
      Buffer b;
      switch (n.kind()) {
        case OpKind::Input: b.place = Place::Input, b.index = inputs++; break;
        case OpKind::Param: b.place = Place::Prepared, b.index = params++; break;
        case OpKind::State: b.place = Place::State, b.index = states++; break;
        case OpKind::Constant: b.place = Place::Constant, b.index = i; break;
        default: continue;
      }
      b.size = bytes_of(n.shape());
      b.bytes = at_most(b.size);
      b.maker = NodeId{i};
      Value v(NodeId{i});
      buffer(v) = new_buffer(b);
      where(v).bytes = b.size;
    }
  }

  // True when every reader of `v` can follow strides, looking through views of it.
  bool readers_follow(Value v, const Dims& dims, const Dims& strides, int depth = 0) {
    if (uses_.is_output(v)) return false;
    if (dims.empty() || (!(dims.back() == Dim(1)) && !(strides.back() == Dim(1))) || depth > 4) return false;
    for (const UseIndex::Use& use : uses_.uses(v)) {
      const Node& reader = g_.node(use.user);
      if (is_view_op(reader.kind())) {
        const Dims& to = dims_of(Value(use.user));
        std::optional<ViewPlace<Dim>> view = view_place(reader, dims, strides, to);
        if (!view) return false;
        if (!is_dense(to, view->strides) && !readers_follow(Value(use.user), to, view->strides, depth + 1)) return false;
      } else if (!target_.reads_strided || !target_.reads_strided(g_, use.user, static_cast<int>(use.operand))) {
        return false;
      }
    }
    return true;
  }

  void make_views_and_steps() {
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      NodeId id{i};
      const Node& n = g_.node(id);
      if (op_def(n.kind()).is(OpTrait::Leaf)) continue;
      if (is_view_op(n.kind()) && try_view(id)) continue;
      auto step = static_cast<std::int32_t>(plan_.schedule.size());
      step_of_.resize(i + 1, kNoStep);
      step_of_[i] = step;
      plan_.schedule.push_back({id, {}});
      for (std::uint32_t r = 0; r < n.num_results(); ++r) {
        Buffer b;
        b.size = bytes_of(n.shape(r));
        b.bytes = at_most(b.size);
        b.first_step = b.last_step = step;
        b.maker = id;
        if (b.bytes > target_.memory.max_buffer_bytes)
          throw Error(Diagnostic{ErrorCode::OutOfMemory, concat_text("a buffer of ", b.bytes, " bytes is larger than ", target_.name, " allows (",
                                                                     target_.memory.max_buffer_bytes, ")"),
                                 node_where(g_, id), "compute it in slices"});
        buffer(Value(id, r)) = new_buffer(b);
        where(Value(id, r)).bytes = b.size;
      }
    }
    step_of_.resize(g_.num_nodes(), kNoStep);
  }

  bool try_view(NodeId id) {
    const Node& n = g_.node(id);
    Value from = n.inputs[0], v(id);
    if (n.shape().dtype() != g_.shape(from).dtype() || dtype_bits(n.shape().dtype()) < 8) return false;
    const Dims& to = dims_of(v);
    std::optional<ViewPlace<Dim>> view = view_place(n, dims_of(from), strides_of(from), to);
    if (!view) return false;
    const bool dense = is_dense(to, view->strides);
    if (!dense && !readers_follow(v, to, view->strides)) return false;
    const Dim element(size_bytes(n.shape().dtype()));
    at(v).is_view = true;
    where(v).offset = where(from).offset + view->skip * element;
    where(v).bytes = (dense ? n.shape().num_elements_dim() : touched_extent(to, view->strides)) * element;
    if (!dense) where(v).strides = std::move(view->strides);
    buffer(v) = buffer(from);
    return true;
  }

  void extend(Value v, std::int32_t step) {
    Buffer& b = buffers_[buffer(v)];
    b.last_step = std::max(b.last_step, step);
  }

  void set_lives() {
    for (std::size_t s = 0; s < plan_.schedule.size(); ++s)
      for (Value v : g_.node(plan_.schedule[s].node).inputs) extend(v, static_cast<std::int32_t>(s));
    auto end = static_cast<std::int32_t>(plan_.schedule.size());
    for (Value v : g_.outputs()) extend(v, end);
    for (const Graph::StateUpdate& u : g_.state_updates()) extend(u.value, end);
  }

  // True when the value is its whole buffer, whatever the symbols are.
  bool whole(Value v) {
    const Location& w = where(v);
    return w.offset.is_static(0) && w.bytes == buffers_[buffer(v)].size && w.strides.empty();
  }

  // True when `v` may be made in the bytes of buffer `old`: nobody reads them from v's first step on, except that step
  // itself through a kernel that allows it.
  bool may_overwrite(std::uint32_t old, Value v) {
    const Buffer &from = buffers_[old], &own = buffers_[buffer(v)];
    if (own.place != Place::Arena || !(own.size == from.size) || !whole(v)) return false;
    if (from.last_step != own.first_step) return from.last_step < own.first_step;
    return overwrites_operand(own.maker, old, buffer(v));
  }

  // True when the node's kernel may write its result in buffer `own` over an operand that fills buffer `old`.
  bool overwrites_operand(NodeId id, std::uint32_t old, std::uint32_t own) {
    const Node& n = g_.node(id);
    for (std::uint32_t r = 0; r < n.num_results() && target_.in_place; ++r)
      for (std::uint32_t k = 0; k < n.inputs.size() && buffer(Value(id, r)) == own; ++k)
        if (buffer(n.inputs[k]) == old && whole(n.inputs[k]) && where(n.inputs[k]).bytes == where(Value(id, r)).bytes &&
            target_.in_place(g_, id, static_cast<int>(k), static_cast<int>(r)) && !reads_twice(n, old, k))
          return true;
    return false;
  }

  // New values of states that can be made in the state itself. This comes before other sharing, which could tie the value
  // to a buffer that is written too early.
  void place_states() {
    const std::vector<NodeId> states = g_.leaves(OpKind::State);
    for (const Graph::StateUpdate& u : g_.state_updates())
      for (std::uint32_t s = 0; s < states.size(); ++s) {
        if (g_.leaf_name(states[s]) != u.name || !may_overwrite(buffer(Value(states[s])), u.value)) continue;
        Buffer& b = buffers_[buffer(u.value)];
        b.place = Place::State;
        b.index = s;
      }
  }

  // Outputs that may be written over a donated input: the plan then treats both as the same bytes, so that the caller may
  // pass one buffer for both, or two.
  void place_donated() {
    const std::vector<NodeId> inputs = g_.leaves(OpKind::Input);
    for (const LirAlias& a : donated_) {
      Value in(inputs[a.input]), out = g_.outputs()[a.output];
      Buffer& b = buffers_[buffer(out)];
      plan_.aliases.push_back({a.input, a.output, {}});
      if (may_overwrite(buffer(in), out)) {
        b.place = Place::Output;
        b.index = a.output;
      } else if (b.place != Place::Arena || !whole(out)) {
        plan_.aliases.back().refused = "the output is copied from where another value lies";
      } else {
        plan_.aliases.back().refused = late_read(buffer(in), b, "the input");
      }
    }
  }

  // Why buffer `made` cannot be written over `old`, whose last reader comes too late.
  std::string late_read(std::uint32_t old, const Buffer& made, std::string_view what) {
    const std::int32_t last = buffers_[old].last_step;
    if (last == static_cast<std::int32_t>(plan_.schedule.size()))
      return concat_text(what, " itself is an output or the new value of a state");
    const NodeId reader = plan_.schedule[static_cast<std::size_t>(last)].node;
    if (last == made.first_step)
      return concat_text(op_text_name(g_.node(reader).op), " ", node_label(g_, reader), " cannot write over the operand it reads there");
    return concat_text(what, " is still read by ", op_text_name(g_.node(reader).op), " ", node_label(g_, reader), " after the new value is begun");
  }

  // Why a state's new value has to be copied.
  std::string copy_reason(Value v, std::uint32_t state) {
    const Buffer& b = buffers_[buffer(v)];
    switch (b.place) {
      case Place::Input: return concat_text("the new value is input '", g_.leaf_name(b.maker), "' itself");
      case Place::Prepared:
      case Place::Constant: return "the new value is a weight or a constant";
      case Place::State:
        return b.index == state ? std::string("the new value is a view of the old one")
                                : concat_text("the new value lies in state '", g_.leaf_name(g_.leaves(OpKind::State)[b.index]), "'");
      case Place::Arena:
      case Place::Output: break;
    }
    if (!whole(v)) return "the new value is part of a larger one";
    const std::uint32_t old = buffer(Value(g_.leaves(OpKind::State)[state]));
    if (buffers_[old].last_step < b.first_step) return "the new value is also a donated output";
    return late_read(old, b, "the old value");
  }

  // Results that overwrite an operand nobody reads later: the buffers become one.
  void share_in_place() {
    if (!target_.in_place) return;
    for (std::size_t s = 0; s < plan_.schedule.size(); ++s) {
      NodeId id = plan_.schedule[s].node;
      const Node& n = g_.node(id);
      for (std::uint32_t r = 0; r < n.num_results(); ++r) {
        Value result(id, r);
        for (std::uint32_t k = 0; k < n.inputs.size(); ++k) {
          Value operand = n.inputs[k];
          std::uint32_t from = buffer(operand), own = buffer(result);
          Buffer& b = buffers_[from];
          if (from == own || buffers_[own].place != Place::Arena || b.place != Place::Arena) continue;
          if (!whole(operand) || !(b.size == where(result).bytes) || b.last_step != static_cast<std::int32_t>(s)) continue;
          if (!target_.in_place(g_, id, static_cast<int>(k), static_cast<int>(r))) continue;
          if (reads_twice(n, from, k)) continue;
          b.last_step = std::max(b.last_step, buffers_[own].last_step);
          merge(own, from);
          break;
        }
      }
    }
  }

  // Another operand of the node lies in the same buffer: overwriting would corrupt it.
  bool reads_twice(const Node& n, std::uint32_t buffer_index, std::uint32_t except) {
    for (std::uint32_t k = 0; k < n.inputs.size(); ++k)
      if (k != except && buffer(n.inputs[k]) == buffer_index && !(n.inputs[k] == n.inputs[except])) return true;
    return false;
  }

  void merge(std::uint32_t from, std::uint32_t into) {
    for (auto& node : buffer_of_)
      for (std::uint32_t& b : node)
        if (b == from) b = into;
    merged_.resize(buffers_.size(), false);
    merged_[from] = true;
  }

  // An output that fills a buffer of its own is written where the caller wants it; the rest are copied after the steps.
  void place_outputs() {
    merged_.resize(buffers_.size(), false);
    for (std::uint32_t o = 0; o < g_.outputs().size(); ++o) {
      Value v = g_.outputs()[o];
      Buffer& b = buffers_[buffer(v)];
      if (b.place == Place::Output && b.index == o && whole(v)) continue;  // over a donated input
      if (b.place == Place::Arena && whole(v)) {
        b.place = Place::Output;
        b.index = o;
      } else {
        plan_.output_copies.push_back({v, o});
      }
    }
    std::vector<NodeId> states = g_.leaves(OpKind::State);
    for (const Graph::StateUpdate& u : g_.state_updates())
      for (std::uint32_t s = 0; s < states.size(); ++s)
        if (const Buffer& b = buffers_[buffer(u.value)];
            g_.leaf_name(states[s]) == u.name && !(b.place == Place::State && b.index == s && whole(u.value)))
          plan_.state_copies.push_back({u.value, s, copy_reason(u.value, s)});
  }

  // Largest first, each at the lowest offset that meets no buffer alive at the same time.
  void assign_offsets() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < buffers_.size(); ++i)
      if (buffers_[i].place == Place::Arena && !merged_[i]) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(buffers_[b].bytes, buffers_[a].first_step, a) < std::tuple(buffers_[a].bytes, buffers_[b].first_step, b);
    });
    const std::size_t align = plan_.alignment;
    auto padded = [&](std::size_t bytes) { return (bytes + align - 1) / align * align; };
    std::vector<std::uint32_t> placed;
    std::vector<std::pair<std::size_t, std::size_t>> busy;
    for (std::uint32_t i : order) {
      Buffer& b = buffers_[i];
      busy.clear();
      for (std::uint32_t j : placed) {
        const Buffer& other = buffers_[j];
        if (b.first_step <= other.last_step && other.first_step <= b.last_step) busy.emplace_back(other.offset, other.offset + padded(other.bytes));
      }
      std::sort(busy.begin(), busy.end());
      std::size_t best = 0, at = 0, best_gap = std::numeric_limits<std::size_t>::max();
      bool found = false;
      for (const auto& [from, to] : busy) {  // the tightest gap that fits
        if (from > at && from - at >= padded(b.bytes) && from - at < best_gap) {
          best = at;
          best_gap = from - at;
          found = true;
        }
        at = std::max(at, to);
      }
      b.offset = found ? best : at;
      plan_.arena_bytes = std::max(plan_.arena_bytes, b.offset + padded(b.bytes));
      plan_.unshared_bytes += padded(b.bytes);
      placed.push_back(i);
    }
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(plan_.schedule.size()); ++s) {
      std::size_t live = 0;
      for (std::uint32_t i : order)
        if (buffers_[i].first_step <= s && s <= buffers_[i].last_step) live += padded(buffers_[i].bytes);
      plan_.live_peak_bytes = std::max(plan_.live_peak_bytes, live);
    }
  }

  void finish_values() {
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i)
      for (std::uint32_t r = 0; r < g_.nodes()[i].num_results(); ++r) {
        Value v(NodeId{i}, r);
        const Buffer& b = buffers_[buffer(v)];
        const Location& w = where(v);
        LirValue& lv = at(v);
        lv.place = b.place;
        lv.index = b.index;
        lv.offset = b.offset + static_cast<std::size_t>(largest(w.offset));
        lv.bytes = lv.is_view ? static_cast<std::size_t>(std::max<std::int64_t>(0, largest(w.bytes))) : at_most(w.bytes);
        for (const Dim& stride : w.strides) lv.strides.push_back(largest(stride));
      }
  }

  struct Range {
    Place place;
    std::uint32_t index;
    std::size_t from, to;
    bool meets(const Range& o) const { return place == o.place && index == o.index && from < o.to && o.from < to; }
  };
  Range range(Value v) {
    const LirValue& lv = at(v);
    // A view moves with the symbols, its buffer does not.
    const Buffer& b = buffers_[buffer(v)];
    const std::size_t from = symbolic_ ? b.offset : lv.offset, to = symbolic_ ? b.offset + b.bytes : lv.offset + lv.bytes;
    if (lv.place == Place::Input)
      for (const LirAlias& a : plan_.aliases)
        if (a.input == lv.index && a.refused.empty()) return {Place::Output, a.output, from, to};
    return {lv.place, lv.place == Place::Arena ? 0 : lv.index, from, to};
  }

  // A step waits for every earlier step it shares bytes with (unless both only read); implied edges are left out.
  void add_edges() {
    const std::size_t n = plan_.schedule.size(), words = (n + 63) / 64;
    std::vector<std::vector<Range>> reads(n), writes(n);
    for (std::size_t s = 0; s < n; ++s) {
      NodeId id = plan_.schedule[s].node;
      for (Value v : g_.node(id).inputs) {
        Range r = range(v);
        if (r.place == Place::Arena || r.place == Place::Output || r.place == Place::State) reads[s].push_back(r);
      }
      for (std::uint32_t r = 0; r < g_.node(id).num_results(); ++r) writes[s].push_back(range(Value(id, r)));
    }
    auto meet = [](const std::vector<Range>& a, const std::vector<Range>& b) {
      for (const Range& x : a)
        for (const Range& y : b)
          if (x.meets(y)) return true;
      return false;
    };
    std::vector<std::vector<std::uint64_t>> before(n, std::vector<std::uint64_t>(words, 0));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = i; j-- > 0;) {
        if (before[i][j / 64] >> (j % 64) & 1) continue;
        if (!meet(writes[j], reads[i]) && !meet(reads[j], writes[i]) && !meet(writes[j], writes[i])) continue;
        plan_.schedule[i].predecessors.push_back(static_cast<std::int32_t>(j));
        before[i][j / 64] |= std::uint64_t{1} << (j % 64);
        for (std::size_t w = 0; w < words; ++w) before[i][w] |= before[j][w];
      }
  }

  const Graph& g_;
  const TargetInfo& target_;
  std::span<const LirAlias> donated_;
  UseIndex uses_;
  LirBufferPlan plan_;
  std::vector<Buffer> buffers_;
  std::vector<bool> merged_;
  std::vector<std::vector<std::uint32_t>> buffer_of_;
  std::vector<std::vector<Location>> where_;
  bool symbolic_;
  SymbolRanges ranges_;
  SymbolBinding largest_;
  std::vector<std::int32_t> step_of_;
};

}  // namespace

LirBufferPlan plan_memory(const Graph& g, const TargetInfo& target, std::span<const LirAlias> donated) {
  LirBufferPlan plan = Planner(g, target, donated).plan();
  std::vector<std::string> problems = check_plan(g, plan);
  check(problems.empty(), problems.empty() ? std::string() : concat_text("memory plan: ", problems.front()));
  return plan;
}

std::size_t max_bytes(const Graph& g, Value v) { return largest_bytes(bytes_of(g.shape(v)), symbol_ranges(g)); }

LirBufferPlan resize_plan(const Graph& g, const LirBufferPlan& plan) {
  LirBufferPlan out = plan;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    for (std::uint32_t r = 0; r < n.num_results(); ++r) {
      LirValue& lv = out.values[i][r];
      if (!lv.is_view) {
        lv.bytes = n.shape(r).size_bytes();
        continue;
      }
      const LirValue& operand = out.at(n.inputs[0]);
      const std::vector<std::int64_t> dims = g.shape(n.inputs[0]).static_dims(), to = n.shape(r).static_dims();
      std::optional<ViewPlace<std::int64_t>> view = view_place(n, dims, operand.strides.empty() ? dense_strides(dims) : operand.strides, to);
      check(view.has_value(), "a view of symbolic extents is one for each of their values");
      const std::size_t element = size_bytes(n.shape(r).dtype());
      lv.offset = operand.offset + static_cast<std::size_t>(view->skip) * element;
      lv.bytes = static_cast<std::size_t>(touched_extent(to, view->strides)) * element;
      lv.strides.clear();
      if (!is_dense(to, view->strides)) lv.strides = std::move(view->strides);
    }
  }
  return out;
}

std::vector<std::string> check_plan(const Graph& g, const LirBufferPlan& plan) {
  std::vector<std::string> problems;
  const std::size_t n = plan.schedule.size(), words = (n + 63) / 64;
  std::vector<std::int32_t> step_of(g.num_nodes(), kNoStep);
  for (std::size_t s = 0; s < n; ++s) step_of[plan.schedule[s].node.index] = static_cast<std::int32_t>(s);

  // before[i]: the steps that are complete when step i starts.
  std::vector<std::vector<std::uint64_t>> before(n, std::vector<std::uint64_t>(words, 0));
  for (std::size_t i = 0; i < n; ++i)
    for (std::int32_t p : plan.schedule[i].predecessors) {
      if (p < 0 || static_cast<std::size_t>(p) >= i) {
        problems.push_back(concat_text("step ", i, " waits for step ", p));
        continue;
      }
      auto j = static_cast<std::size_t>(p);
      before[i][j / 64] |= std::uint64_t{1} << (j % 64);
      for (std::size_t w = 0; w < words; ++w) before[i][w] |= before[j][w];
    }
  auto done_before = [&](std::int32_t j, std::int32_t i) {
    auto x = static_cast<std::size_t>(j);
    return before[static_cast<std::size_t>(i)][x / 64] >> (x % 64) & 1;
  };
  // A donated input and its output may be one buffer.
  auto home = [&](const LirValue& v) {
    if (v.place == Place::Input)
      for (const LirAlias& a : plan.aliases)
        if (a.input == v.index && a.refused.empty()) return std::pair(Place::Output, a.output);
    return std::pair(v.place, v.place == Place::Arena ? 0u : v.index);
  };
  auto overlap = [&](const LirValue& a, const LirValue& b) {
    bool same = home(a) == home(b);
    return same && a.bytes != 0 && b.bytes != 0 && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  };

  // The step that wrote the bytes of each value: its own, or through views its operand's.
  auto writer = [&](Value v) {
    while (step_of[v.node.index] == kNoStep && plan.at(v).is_view) v = g.node(v.node).inputs[0];
    return step_of[v.node.index];
  };
  // Steps sorted by place would be faster; graphs have some hundred steps, so all pairs are compared.
  auto check_read = [&](Value v, std::int32_t reader, const std::string& who) {
    const LirValue& lv = plan.at(v);
    if (lv.bytes == 0) return;  // nothing that could be written too late or too early
    std::int32_t made = writer(v);
    if (lv.place == Place::Arena && lv.offset + lv.bytes > plan.arena_bytes) problems.push_back(concat_text(v, " lies outside the arena"));
    if (made != kNoStep && reader < static_cast<std::int32_t>(n) && !done_before(made, reader))
      problems.push_back(concat_text(who, " may run before ", v, " is made"));
    for (std::size_t s = 0; s < n; ++s) {
      auto step = static_cast<std::int32_t>(s);
      if (step == made || step == reader) continue;
      bool after_reader = reader < static_cast<std::int32_t>(n) && done_before(reader, step);
      bool before_maker = made != kNoStep && done_before(step, made);
      if (after_reader || before_maker) continue;
      NodeId node = plan.schedule[s].node;
      for (std::uint32_t r = 0; r < g.node(node).num_results(); ++r)
        if (overlap(plan.values[node.index][r], lv)) problems.push_back(concat_text(node, " may overwrite ", v, " before ", who, " reads it"));
    }
  };
  for (std::size_t s = 0; s < n; ++s) {
    NodeId id = plan.schedule[s].node;
    for (Value v : g.node(id).inputs) check_read(v, static_cast<std::int32_t>(s), id.text());
    for (std::uint32_t r = 0; r < g.node(id).num_results(); ++r)
      for (std::uint32_t q = 0; q < r; ++q)
        if (overlap(plan.values[id.index][r], plan.values[id.index][q])) problems.push_back(concat_text("two results of ", id, " overlap"));
  }
  auto end = static_cast<std::int32_t>(n);
  for (Value v : g.outputs()) check_read(v, end, "the caller");
  for (const Graph::StateUpdate& u : g.state_updates()) check_read(u.value, end, concat_text("state '", u.name, "'"));
  return problems;
}

std::string plan_text(const Graph& g, const LirBufferPlan& plan) {
  constexpr std::string_view places[] = {"arena", "input", "output", "prepared", "constant", "state"};
  std::string out = concat_text("arena ", plan.arena_bytes, " bytes (live peak ", plan.live_peak_bytes, ", unshared ", plan.unshared_bytes, "), ",
                                plan.schedule.size(), " steps\n");
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    for (std::uint32_t r = 0; r < g.nodes()[i].num_results(); ++r) {
      const LirValue& v = plan.values[i][r];
      out += concat_text("  ", Value(NodeId{i}, r), " ", places[static_cast<std::size_t>(v.place)]);
      if (v.place != Place::Arena) out += concat_text(" ", v.index);
      out += concat_text(" +", v.offset, " ", v.bytes, " bytes", v.is_view ? " view" : "", v.strides.empty() ? "" : " strided", "  ",
                         op_text_name(g.nodes()[i].op), "\n");
    }
  for (const LirOutputCopy& c : plan.output_copies) out += concat_text("  copy ", c.value, " to output ", c.output, "\n");
  for (const LirStateCopy& c : plan.state_copies) out += concat_text("  copy ", c.value, " to state ", c.state, ": ", c.reason, "\n");
  for (const LirAlias& a : plan.aliases)
    out += concat_text("  output ", a.output, a.refused.empty() ? " may be written over input " : " is apart from donated input ", a.input,
                       a.refused.empty() ? "" : ": ", a.refused, "\n");
  return out;
}

}  // namespace rlx
