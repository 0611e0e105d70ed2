// Memory planning: views, in-place results, output placement and ordering edges.
#include "rlx/compiler/memory_plan.h"

#include <algorithm>
#include <optional>
#include <set>

#include "rlx/compiler/arena.h"
#include "rlx/compiler/node_devices.h"
#include "rlx/compiler/node_reads.h"
#include "rlx/compiler/partition.h"
#include "rlx/compiler/plan_bodies.h"
#include "rlx/compiler/sync_points.h"
#include "rlx/compiler/views.h"
#include "rlx/exec/access_history.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/rewrite/symbol_order.h"

namespace rlx {

Dim shape_bytes(const Shape& s) {
  if (s.is_static()) return Dim(s.size_bytes());
  const int bits = dtype_bits(s.dtype());
  if (bits >= 8) return s.num_elements_dim() * Dim(bits / 8);
  return floordiv(s.num_elements_dim() * Dim(bits) + Dim(7), Dim(8));
}

Dim stored_size(const Graph& g, Value v) {
  const PackedLayout& layout = packed_layout_of(g, v);
  return layout.empty() ? shape_bytes(g.shape(v)) : Dim(layout.bytes);
}

namespace {

// One allocation, shared by a value, its views and its in-place successors.
struct Buffer {
  Place place = Place::Arena;
  std::uint32_t index = 0;
  Dim size;                                                // bytes, as an expression of the shape
  std::size_t bytes = 0;                                   // the largest possible size
  std::size_t offset = 0;                                  // in the arena
  std::int32_t first_step = kNoStep, last_step = kNoStep;  // inclusive
  NodeId maker;
  std::uint32_t result = 0;  // of the maker
  std::uint32_t device = 0;  // of its arena
};

// Where a value lies within its buffer, for every value of the symbols. Decisions are made from it.
struct Location {
  Dim offset, bytes;
  Dims strides;  // empty = row-major
};

std::size_t largest_bytes(const Dim& d, const SymbolRanges& ranges) {
  return static_cast<std::size_t>(d.is_static() ? d.value() : std::max<std::int64_t>(0, d.range(ranges).max));
}

void refuse_large(const Graph& g, NodeId id, std::size_t bytes, const Target& target, std::size_t most) {
  if (bytes > most)
    throw Error(
        Diagnostic{ErrorCode::OutOfMemory,
                   concat_text("a buffer of ", bytes, " bytes is larger than ", target.name(), " allows (", most, ")"),
                   node_where(g, id), "compute it in slices"});
}

class Planner {
 public:
  Planner(const Graph& g, const Target& target, std::span<const LirAlias> donated, std::uint32_t home)
      : g_(g),
        target_(target),
        donated_(donated),
        uses_(g),
        slot_(g),
        symbolic_(!g.is_static()),
        ranges_(symbol_ranges(g)) {
    for (const auto& [name, range] : ranges_) largest_.emplace(name, range.max);
    std::vector<std::uint32_t> devices = devices_of_nodes(g, target, home);
    if (std::any_of(devices.begin(), devices.end(), [](std::uint32_t d) { return d != 0; }))
      plan_.node_devices = std::move(devices);
  }

  LirBufferPlan plan() {
    plan_.alignment = limits_.alignment;
    plan_.values.reserve(g_.num_nodes());
    for (const Node& n : g_.nodes()) plan_.values.emplace_back(n.num_results());
    buffer_of_.resize(slot_.size());
    where_.resize(slot_.size());
    place_leaves();
    make_views_and_steps();
    cuts_ = sync_points(g_, plan_.schedule);
    set_lives();
    place_states();
    place_donated();
    share_in_place();
    place_outputs();
    assign_offsets();
    finish_values();
    report_updates();
    add_edges();
    return std::move(plan_);
  }

 private:
  const Dims& dims_of(Value v) const { return g_.shape(v).dims(); }
  LirValue& at(Value v) { return plan_.values[v.node.index][v.result]; }
  Location& where(Value v) { return where_[slot_(v)]; }
  // The buffer of a value, after in-place sharing has merged buffers.
  std::uint32_t buffer(Value v) {
    std::uint32_t& b = buffer_of_[slot_(v)];
    while (joined_[b] != b) b = joined_[b] = joined_[joined_[b]];
    return b;
  }
  void set_buffer(Value v, std::uint32_t b) { buffer_of_[slot_(v)] = b; }
  Dims strides_of(Value v) { return where(v).strides.empty() ? dense_strides(dims_of(v)) : where(v).strides; }
  std::size_t at_most(const Dim& d) const { return largest_bytes(d, ranges_); }
  // The number at the largest extents, for reports and the checker.
  std::int64_t largest(const Dim& d) const { return d.is_static() ? d.value() : d.evaluate(largest_); }

  std::uint32_t new_buffer(Buffer b) {
    buffers_.push_back(std::move(b));
    joined_.push_back(static_cast<std::uint32_t>(joined_.size()));
    return joined_.back();
  }

  void place_leaves() {
    std::uint32_t inputs = 0, params = 0;
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const Node& n = g_.nodes()[i];
      Buffer b;
      switch (n.kind()) {
        case OpKind::Input: b.place = Place::Input, b.index = inputs++; break;
        case OpKind::Param: b.place = Place::Prepared, b.index = params++; break;
        case OpKind::State:
          b.place = Place::State, b.index = static_cast<std::uint32_t>(states_.size());
          states_.push_back(NodeId{i});
          break;
        case OpKind::Constant: b.place = Place::Constant, b.index = i; break;
        default: continue;
      }
      Value v(NodeId{i});
      b.size = stored_size(g_, v);
      b.bytes = at_most(b.size);
      b.maker = NodeId{i};
      set_buffer(v, new_buffer(b));
      where(v).bytes = b.size;
    }
  }

  // True when every reader of `v`, looking through views, can follow strides.
  bool readers_follow(Value v, const Dims& dims, const Dims& strides, int depth = 0) {
    if (uses_.is_output(v)) return false;
    if (dims.empty() || (!(dims.back() == Dim(1)) && !(strides.back() == Dim(1))) || depth > 4) return false;
    for (const UseIndex::Use& use : uses_.uses(v)) {
      const Node& reader = g_.node(use.user);
      if (op_def(reader.kind()).is_view()) {
        const Dims& to = dims_of(Value(use.user));
        std::optional<ViewPlace<Dim>> view = view_place(reader, dims, strides, to);
        if (!view) return false;
        if (!is_dense(to, view->strides) && !readers_follow(Value(use.user), to, view->strides, depth + 1))
          return false;
      } else if (!target_.reads_strided(g_, use.user, static_cast<int>(use.operand))) {
        return false;
      }
    }
    return true;
  }

  void make_views_and_steps() {
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      NodeId id{i};
      const Node& n = g_.node(id);
      const OpDef& def = op_def(n.kind());
      if (def.is_leaf()) continue;
      if (def.is_view() && try_view(id)) continue;
      if (try_encoded(id)) continue;
      auto step = static_cast<std::int32_t>(plan_.schedule.size());
      plan_.schedule.push_back({id, {}, encoded_operands(id)});
      const bool host_controlled_node = def.bodies == BodyKind::Programs && target_.host_controlled(g_, id);
      if (host_controlled_node || (def.bodies != BodyKind::None && target_.plans_bodies(g_, id))) {
        // The device that runs the node runs everything in its bodies.
        const Target& inside = host_controlled_node ? target_ : target_.of_device(plan_.node_device(id));
        PlannedBodies planned = plan_bodies(g_, id, inside, host_controlled_node, plan_.node_device(id));
        for (std::size_t r = 0; r < planned.devices.size(); ++r) {
          Buffer range;
          range.bytes = planned.bodies.ranges[r].bytes;
          range.size = Dim(range.bytes);
          range.first_step = range.last_step = step;
          range.maker = id;
          range.device = planned.devices[r];
          body_ranges_.push_back(new_buffer(range));
        }
        plan_.bodies.push_back(std::move(planned.bodies));
      }
      for (std::uint32_t r = 0; r < n.num_results(); ++r) {
        Buffer b;
        b.first_step = b.last_step = step;
        b.maker = id;
        b.result = r;
        b.device = plan_.node_device(id);
        const Value result(id, r);
        if (uses_.use_count(result) == 0 && !uses_.is_output(result) && !host_controlled_node &&
            target_.skips_unread(g_, id, static_cast<int>(r))) {
          b.place = Place::None;
          b.size = Dim(0);
          set_buffer(result, new_buffer(b));
          where(result).bytes = b.size;
          continue;
        }
        b.size = stored_size(g_, result);
        b.bytes = at_most(b.size);
        const Target& on = target_.of_device(b.device);  // a host that takes over a value has its own limit
        refuse_large(g_, id, b.bytes, on, on.limits().max_buffer_bytes);
        set_buffer(Value(id, r), new_buffer(b));
        where(Value(id, r)).bytes = b.size;
      }
    }
  }

  // A kernel may read the quantized values of a Dequantize directly, or the unquantized operand of a Quantize and
  // encode it itself.
  bool codes_or_numbers(Value v) const {
    const OpKind kind = g_.node(v.node).kind();
    return kind == OpKind::Dequantize || kind == OpKind::Quantize;
  }

  // Operands whose own operands the node's kernel reads, as a bit mask.
  std::uint32_t encoded_operands(NodeId id) const {
    const Node& n = g_.node(id);
    std::uint32_t mask = 0;
    for (std::uint32_t i = 0; i < n.inputs.size() && i < 32; ++i) {
      const Value v = n.inputs[i];
      if (!codes_or_numbers(v) || !target_.reads_encoded(g_, id, static_cast<int>(i))) continue;
      // Quantized values that are made for other readers need not be made again.
      if (g_.node(v.node).kind() == OpKind::Dequantize || plan_.at(v).place == Place::None) mask |= 1U << i;
    }
    return mask;
  }

  // A Dequantize needs no step when all its readers read its quantized values. A Quantize needs no step when all its
  // readers encode its operand themselves.
  bool try_encoded(NodeId id) {
    const Value v(id);
    if (!codes_or_numbers(v) || uses_.is_output(v) || uses_.uses(v).empty()) return false;
    for (const UseIndex::Use& use : uses_.uses(v))
      if (!target_.reads_encoded(g_, use.user, static_cast<int>(use.operand))) return false;
    at(v).place = Place::None;
    Buffer none;
    none.place = Place::None;
    none.maker = id;
    set_buffer(v, new_buffer(none));
    return true;
  }

  bool try_view(NodeId id) {
    const Node& n = g_.node(id);
    Value from = n.inputs[0], v(id);
    if (!packed_layout_of(g_, from).empty()) return false;        // only the kernels of its readers know the layout
    const bool same = op_def(n.kind()).view == ViewKind::Always;  // the whole value, so elements may be parts of bytes
    if (n.shape().dtype() != g_.shape(from).dtype() || (dtype_bits(n.shape().dtype()) < 8 && !same)) return false;
    const Dims& to = dims_of(v);
    std::optional<ViewPlace<Dim>> view = view_place(n, dims_of(from), strides_of(from), to);
    if (!view) return false;
    const bool dense = is_dense(to, view->strides);
    if (!dense && !readers_follow(v, to, view->strides)) return false;
    const Dim element(size_bytes(n.shape().dtype()));
    // Views are bound, and streams copy from them.
    const std::size_t apart = std::max(limits_.view_alignment, limits_.copy_granule);
    if (apart > 1 && !mod(where(from).offset + view->skip * element, Dim(apart)).is_static(0)) return false;
    at(v).is_view = true;
    where(v).offset = where(from).offset + view->skip * element;
    where(v).bytes =
        same ? where(from).bytes : (dense ? n.shape().num_elements_dim() : touched_extent(to, view->strides)) * element;
    if (!dense) where(v).strides = std::move(view->strides);
    set_buffer(v, buffer(from));
    return true;
  }

  void extend(Value v, std::int32_t step) {
    Buffer& b = buffers_[buffer(v)];
    b.last_step = std::max(b.last_step, step);
  }

  void set_lives() {
    for (std::size_t s = 0; s < plan_.schedule.size(); ++s)
      each_read(g_, plan_.schedule[s], [&](Value v) { extend(v, static_cast<std::int32_t>(s)); });
    auto end = static_cast<std::int32_t>(plan_.schedule.size());
    for (const Root& r : roots(g_))
      if (r.is_read() && r.kind != RootKind::SymbolSource) extend(r.value, end);
    // The host reads a source between steps. Steps after the sync point may overwrite it, earlier steps may not.
    for (const SyncPoint& cut : cuts_)
      for (Value source : cut.sources) extend(source, static_cast<std::int32_t>(cut.step));
  }

  // True when no step writes to the buffer before all symbols are known. Outputs need this, because their addresses
  // become known only then.
  bool begins_late(const Buffer& b) const { return b.first_step >= static_cast<std::int32_t>(last_sync_step(cuts_)); }

  // True when the node's kernel, or the kernels of its bodies, may write result r over operand k.
  bool in_place(NodeId id, std::uint32_t k, std::uint32_t r) {
    if (g_.node(id).kind() == OpKind::Transfer) return false;
    const LirBodies* b = plan_.bodies_of(id);
    if (!b) return target_.in_place(g_, id, static_cast<int>(k), static_cast<int>(r));
    if (updates_of(id, *b)[r] != k) return false;
    // The first iteration would corrupt the operand of a carry if it is also another operand.
    if (loop_parts(g_.node(id).op)) return reads_of(id).count(g_.node(id).inputs[k]) == 1;
    return true;  // a branch whose bodies both allow it
  }

  const std::vector<std::optional<std::uint32_t>>& updates_of(NodeId id, const LirBodies& b) {
    if (updates_of_ != id) updates_of_ = id, updates_ = body_updates(g_.node(id), b);
    return updates_;
  }

  // Buffers of a node's operands do not merge while the node is examined. share_in_place begins anew at each step.
  const NodeReads& reads_of(NodeId id) {
    if (reads_node_ == id) return reads_;
    reads_node_ = id;
    reads_.clear();
    for (Value v : g_.node(id).inputs) {
      reads_.add_operand(buffer(v), v);
      if (!codes_or_numbers(v)) continue;
      for (Value code : g_.node(v.node).inputs) reads_.add_code(buffer(code), code);
    }
    reads_.sort();
    return reads_;
  }

  // True when the value fills its whole buffer for all values of the symbols.
  bool whole(Value v) {
    const Location& w = where(v);
    return w.offset.is_static(0) && w.bytes == buffers_[buffer(v)].size && w.strides.empty();
  }

  // Returns a chain of buffers that may all use the bytes of buffer `old`; the last one is the buffer of `v`. A kernel
  // that allows it writes each buffer over the previous one. The first is written over `old`, or after the last read of
  // `old`. Empty when there is no chain.
  std::vector<std::uint32_t> chain_over(std::uint32_t old, Value v) {
    const std::uint32_t last = buffer(v);
    if (buffers_[last].place != Place::Arena || !(buffers_[last].size == buffers_[old].size) || !whole(v)) return {};
    struct Link {
      std::uint32_t buffer;
      std::size_t next_operand;
    };
    std::vector<Link> links{{last, 0}};
    std::set<std::uint32_t> seen{last};
    // Prefer the longest chain: a value made early in the state's bytes is not copied there later.
    std::vector<std::uint32_t> longest;
    while (!links.empty()) {
      const std::uint32_t at = links.back().buffer;
      const bool over_old = links.back().next_operand == 0 && buffers_[old].last_step == buffers_[at].first_step &&
                            overwrites_buffer(old, at);
      if (over_old) {  // the chain cannot start earlier
        longest.clear();
        for (const Link& l : links) longest.push_back(l.buffer);
        break;
      }
      const NodeId maker = buffers_[at].maker;
      const std::vector<Value>& operands = g_.node(maker).inputs;
      std::optional<std::uint32_t> before;
      while (!before && links.back().next_operand < operands.size()) {
        const auto k = static_cast<std::uint32_t>(links.back().next_operand++);
        const std::uint32_t b = buffer(operands[k]);
        const Buffer& from = buffers_[b];
        if (from.place == Place::Arena && from.last_step == buffers_[at].first_step && !seen.contains(b) &&
            overwrites_operand(k, at))
          before = b;
      }
      if (before) {
        seen.insert(*before);
        links.push_back({*before, 0});
      } else {
        if (links.size() > longest.size() && buffers_[old].last_step < buffers_[at].first_step) {
          longest.clear();
          for (const Link& l : links) longest.push_back(l.buffer);
        }
        links.pop_back();
      }
    }
    return {longest.rbegin(), longest.rend()};
  }

  // True when the kernel that makes buffer `own` may write it over operand k, which fills its buffer.
  bool overwrites_operand(std::uint32_t k, std::uint32_t own) {
    const Value made(buffers_[own].maker, buffers_[own].result);
    const Node& n = g_.node(made.node);
    const Value v = n.inputs[k];
    return whole(v) && where(v).bytes == where(made).bytes && in_place(made.node, k, made.result) &&
           !reads_twice(n, made.node, k);
  }
  // The same for any operand that fills buffer `old`.
  bool overwrites_buffer(std::uint32_t old, std::uint32_t own) {
    const std::vector<Value>& operands = g_.node(buffers_[own].maker).inputs;
    for (std::uint32_t k = 0; k < operands.size(); ++k)
      if (buffer(operands[k]) == old && overwrites_operand(k, own)) return true;
    return false;
  }

  // Places new values of states in the state's own bytes where possible. This runs before other sharing, which could
  // merge the value with a buffer that is written too early.
  void place_states() {
    for (const Graph::StateUpdate& u : g_.state_updates()) {
      const std::uint32_t state = buffer(g_.find_leaf(OpKind::State, u.name));
      for (std::uint32_t b : chain_over(state, u.value)) {
        buffers_[b].place = Place::State;
        buffers_[b].index = buffers_[state].index;
      }
    }
  }

  // Places outputs over donated inputs. The plan treats both as the same bytes, so the caller may pass one buffer for
  // both, or two.
  void place_donated() {
    const std::vector<NodeId> inputs = g_.leaves(OpKind::Input);
    for (const LirAlias& a : donated_) {
      Value in(inputs[a.input]), out = g_.outputs()[a.output];
      Buffer& b = buffers_[buffer(out)];
      plan_.aliases.push_back({a.input, a.output, {}});
      const std::vector<std::uint32_t> chain = chain_over(buffer(in), out);
      if (std::any_of(chain.begin(), chain.end(), [&](std::uint32_t made) { return !begins_late(buffers_[made]); })) {
        plan_.aliases.back().refused = concat_text("the output is written before the value of symbol '",
                                                   cuts_.back().symbols.front(), "' is known");
      } else if (!chain.empty()) {
        for (std::uint32_t made : chain) {
          buffers_[made].place = Place::Output;
          buffers_[made].index = a.output;
        }
      } else if (buffer(in) == buffer(out) && whole(out)) {
        // The output is the input itself. It is copied when the caller passes two buffers, and already there when it
        // passes one.
      } else if (b.place != Place::Arena || !whole(out)) {
        plan_.aliases.back().refused = "the output is copied from the memory of another value";
      } else {
        plan_.aliases.back().refused = late_read(buffer(in), b, "the input");
      }
    }
  }

  // Why buffer `made` cannot be written over `old`: the last read of `old` comes too late.
  std::string late_read(std::uint32_t old, const Buffer& made, std::string_view what) {
    const std::int32_t last = buffers_[old].last_step;
    if (last == static_cast<std::int32_t>(plan_.schedule.size()))
      return concat_text(what, " itself is an output or the new value of a state");
    const NodeId reader = plan_.schedule[static_cast<std::size_t>(last)].node;
    if (last == made.first_step)
      return concat_text(op_text_name(g_.node(reader).op), " ", node_label(g_, reader),
                         " cannot write its result over this operand");
    return concat_text(what, " is still read by ", op_text_name(g_.node(reader).op), " ", node_label(g_, reader),
                       " after the new value begins to be written");
  }

  // Why the new value of a state has to be copied.
  std::string copy_reason(Value v, Value state) {
    const std::uint32_t old = buffer(state);
    const Buffer& b = buffers_[buffer(v)];
    switch (b.place) {
      case Place::Input: return concat_text("the new value is input '", g_.leaf_name(b.maker), "' itself");
      case Place::Prepared:
      case Place::Constant: return "the new value is a weight or a constant";
      case Place::State:
        return b.index == buffers_[old].index
                   ? std::string("the new value is a view of the old one")
                   : concat_text("the new value lies in state '", g_.leaf_name(states_[b.index]), "'");
      case Place::Arena:
      case Place::Output:
      case Place::None: break;
    }
    if (!whole(v)) return "the new value is part of a larger one";
    if (buffers_[old].last_step < b.first_step) return "the new value is also a donated output";
    return late_read(old, b, "the old value");
  }

  // Merges the buffer of a result with that of an operand that the result overwrites and that nobody reads later.
  void share_in_place() {
    // By buffer: the last step whose result took it. A result that nobody reads leaves no trace in the buffer's life.
    std::vector<std::int32_t> taken(buffers_.size(), kNoStep);
    for (std::size_t s = 0; s < plan_.schedule.size(); ++s) {
      const auto step = static_cast<std::int32_t>(s);
      const NodeId id = plan_.schedule[s].node;
      const Node& n = g_.node(id);
      reads_node_.reset();
      const LirBodies* bodies = plan_.bodies_of(id);
      for (std::uint32_t r = 0; r < n.num_results(); ++r) {
        if (!bodies) {
          for (std::uint32_t k = 0; k < n.inputs.size() && !share(step, id, k, r, taken); ++k) {
          }
        } else if (const std::optional<std::uint32_t> k = updates_of(id, *bodies)[r]) {
          share(step, id, *k, r, taken);
        }
        taken[buffer(Value(id, r))] = step;
      }
    }
    reads_node_.reset();
  }
  // Merges the buffer of result r with that of operand k. False when that is not allowed.
  bool share(std::int32_t step, NodeId id, std::uint32_t k, std::uint32_t r, const std::vector<std::int32_t>& taken) {
    const Node& n = g_.node(id);
    const Value operand = n.inputs[k], result(id, r);
    const std::uint32_t from = buffer(operand), own = buffer(result);
    Buffer& b = buffers_[from];
    if (from == own || buffers_[own].place != Place::Arena || b.place != Place::Arena || b.last_step != step)
      return false;
    if (taken[from] == step || !whole(operand) || !(b.size == where(result).bytes)) return false;
    if (!in_place(id, k, r) || reads_twice(n, id, k)) return false;
    b.last_step = std::max(b.last_step, buffers_[own].last_step);
    joined_[own] = from;
    return true;
  }

  // True when another operand of the node, or its quantized values, lies in the buffer of operand k. Overwriting would
  // corrupt it.
  bool reads_twice(const Node& n, NodeId id, std::uint32_t k) {
    return reads_of(id).holds_more_than(n.inputs[k], buffer(n.inputs[k]));
  }

  // An output that fills its own buffer is written directly to the caller's memory. The others are copied after the
  // steps.
  void place_outputs() {
    for (std::uint32_t o = 0; o < g_.outputs().size(); ++o) {
      Value v = g_.outputs()[o];
      Buffer& b = buffers_[buffer(v)];
      if (b.place == Place::Output && b.index == o && whole(v)) continue;  // already over a donated input
      if (b.place == Place::Arena && whole(v) && begins_late(b)) {
        b.place = Place::Output;
        b.index = o;
      } else {
        plan_.output_copies.push_back({v, o});
      }
    }
    for (const Graph::StateUpdate& u : g_.state_updates()) {
      const Value state = g_.find_leaf(OpKind::State, u.name);
      const std::uint32_t index = buffers_[buffer(state)].index;
      if (const Buffer& b = buffers_[buffer(u.value)]; !(b.place == Place::State && b.index == index && whole(u.value)))
        (plan_.node_device(state.node) == 0 ? plan_.state_copies : plan_.remote_state_copies)
            .push_back({u.value, index, copy_reason(u.value, state)});
    }
  }

  void assign_offsets() {
    std::uint32_t devices = 1;
    for (const Buffer& b : buffers_) devices = std::max(devices, b.device + 1);
    for (std::uint32_t d = 0; d < devices; ++d) place_on(d);
    if (std::all_of(plan_.arena_devices.begin(), plan_.arena_devices.end(), [](std::uint32_t d) { return d == 0; }))
      plan_.arena_devices.clear();
    std::size_t k = 0;
    for (LirBodies& bodies : plan_.bodies)
      for (LirRange& r : bodies.ranges) {
        r.arena = buffers_[body_ranges_[k]].index;
        r.offset = buffers_[body_ranges_[k++]].offset;
      }
  }

  // Places the arenas of one device after those of the previous devices.
  void place_on(std::uint32_t device) {
    const auto here = [&](std::uint32_t i) {
      return buffers_[i].place == Place::Arena && joined_[i] == i && buffers_[i].device == device;
    };
    std::vector<ArenaBuffer> arena;
    for (std::uint32_t i = 0; i < buffers_.size(); ++i)
      if (here(i)) arena.push_back({buffers_[i].bytes, buffers_[i].first_step, buffers_[i].last_step});
    if (arena.empty() && device != 0) return;
    const std::optional<ArenaSize> size = place_in_arenas(arena, plan_.alignment, limits_.max_arena_bytes);
    if (!size) throw_no_arena();
    const auto before = static_cast<std::uint32_t>(plan_.arenas.size());
    plan_.arenas.insert(plan_.arenas.end(), size->arenas.begin(), size->arenas.end());
    plan_.arena_devices.resize(plan_.arenas.size(), device);
    plan_.arena_bytes += size->bytes;
    plan_.live_peak_bytes += size->live_peak;
    plan_.unshared_bytes += size->unshared;
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < buffers_.size(); ++i)
      if (here(i)) {
        buffers_[i].offset = arena[next].offset;
        buffers_[i].index = before + arena[next++].arena;
      }
  }

  [[noreturn]] void throw_no_arena() const {
    const Buffer* largest = nullptr;
    for (std::uint32_t i = 0; i < buffers_.size(); ++i)
      if (buffers_[i].place == Place::Arena && joined_[i] == i && (!largest || buffers_[i].bytes > largest->bytes))
        largest = &buffers_[i];
    std::string bounds;
    for (const auto& [name, range] : ranges_)
      bounds += concat_text(bounds.empty() ? "" : ", ", name, " <= ", range.max);
    throw Error(Diagnostic{
        ErrorCode::OutOfMemory,
        concat_text("the values that are live together need more bytes than can be addressed; the largest needs ",
                    largest->bytes, " bytes", bounds.empty() ? "" : concat_text(", planned for ", bounds)),
        node_where(g_, largest->maker),
        bounds.empty() ? "compute it in slices"
                       : "declare smaller upper bounds of the symbols, or specialise or bucket them (SymbolMode)"});
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
        lv.bytes =
            lv.is_view ? static_cast<std::size_t>(std::max<std::int64_t>(0, largest(w.bytes))) : at_most(w.bytes);
        // The upper bounds of several symbols may contradict each other, so a view is clamped to the value it views.
        if (lv.is_view && symbolic_) {
          lv.offset = std::min(lv.offset, b.offset + b.bytes);
          lv.bytes = std::min(lv.bytes, b.offset + b.bytes - lv.offset);
        }
        for (const Dim& stride : w.strides) lv.strides.push_back(largest(stride));
      }
  }

  // Reports updates on the way to a state's new value or a donated output that do not run in place: their kernels copy
  // the operand first. Copies after the steps are reported elsewhere.
  void report_updates() {
    homes_ = BufferHomes(plan_);
    for (const Graph::StateUpdate& u : g_.state_updates()) report_updates(u.value);
    for (const LirAlias& a : donated_) report_updates(g_.outputs()[a.output]);
  }
  // Stops where an earlier call has been.
  void report_updates(Value v) {
    while (reported_.insert(v).second) {
      const Node& n = g_.node(v.node);
      if (plan_.at(v).is_view) {
        v = n.inputs[0];
        continue;
      }
      const LirBodies* bodies = plan_.bodies_of(v.node);
      const std::optional<std::uint32_t> k = updated_operand(n.op, v.result, bodies);
      if (!k) return;
      if (const std::string why = copied_because(v, *k, bodies); !why.empty())
        plan_.update_copies.push_back({v.node, *k, v.result, why});
      v = n.inputs[*k];
    }
  }
  // Why an update copies all of operand k. Empty when it does not.
  std::string copied_because(Value v, std::uint32_t k, const LirBodies* bodies) {
    const NodeId id = v.node;
    const Node& n = g_.node(id);
    const LirValue &from = plan_.at(n.inputs[k]), &to = at(v);
    if (!(homes_(from) == homes_(to)) || from.offset != to.offset) {
      const std::uint32_t old = buffer(n.inputs[k]);
      const Buffer& made = buffers_[buffer(v)];
      if (bodies)
        for (const LirBodies::Shared& s : bodies->shared)
          if (s.operand == k && s.result == v.result && !s.refused.empty()) return s.refused;
      if (!in_place(id, k, v.result))
        return concat_text(op_text_name(n.op), " cannot write its result over it on ", target_.name());
      if (buffers_[old].place == Place::Prepared || buffers_[old].place == Place::Constant) return {};  // a fill
      if (buffers_[old].last_step != made.first_step || reads_twice(n, id, k)) return late_read(old, made, "it");
      return "a value computed from the result cannot be written in place";
    }
    if (bodies && loop_parts(n.op)) {
      if (!bodies->reasons[v.result].empty())
        return concat_text("the carry has two buffers: ", bodies->reasons[v.result]);
      if (const auto& inner = bodies->modules.back().plan.update_copies; !inner.empty())
        return concat_text("in its body ", inner.front().node, " copies it: ", inner.front().reason);
    }
    return {};
  }

  ByteRange range(Value v) {
    const LirValue& lv = at(v);
    // The offset of a view depends on the symbols, the offset of its buffer does not.
    const Buffer& b = buffers_[buffer(v)];
    const std::size_t from = symbolic_ ? b.offset : lv.offset,
                      to = symbolic_ ? b.offset + b.bytes : lv.offset + lv.bytes;
    const BufferHome home = homes_(lv);
    return {home.place, home.index, from, to};
  }

  // A step waits for every earlier step that it shares bytes with, unless both only read. Implied edges are left out.
  void add_edges() {
    std::vector<ByteRange> ranges;
    const auto each = [&](const LirStep& step, const auto& read, const auto& write) {
      each_read(g_, step, [&](Value v) {
        if (const ByteRange r = range(v); may_change(r.place)) read(r);
      });
      for (std::uint32_t r = 0; r < g_.node(step.node).num_results(); ++r) write(range(Value(step.node, r)));
      if (const LirBodies* b = plan_.bodies_of(step.node))
        for (const LirRange& r : b->ranges) write(byte_range(r));
    };
    const auto announce = [&](const ByteRange& r) { ranges.push_back(r); };
    for (const LirStep& step : plan_.schedule) each(step, announce, announce);
    AccessHistory history(ranges);
    RecentOrder order(plan_.schedule.size());
    std::vector<AccessUser> earlier;
    std::int32_t last_ordered = kNoStep;  // ordered ops wait for each other
    for (std::size_t i = 0; i < plan_.schedule.size(); ++i) {
      LirStep& step = plan_.schedule[i];
      const auto self = static_cast<std::int32_t>(i);
      earlier.clear();
      each(
          step,
          [&](const ByteRange& r) {
            history.find_writers(r, earlier);
            history.read(r, {self});
          },
          [&](const ByteRange& r) {
            history.find_writers(r, earlier);
            history.find_readers(r, earlier);
            history.write(r, {self});
          });
      if (is_ordered(g_.node(step.node).op)) {
        if (last_ordered != kNoStep) earlier.push_back({last_ordered});
        last_ordered = self;
      }
      std::sort(earlier.begin(), earlier.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
      earlier.erase(std::unique(earlier.begin(), earlier.end()), earlier.end());
      order.begin(i);
      for (const auto [j, parts] : earlier) {
        if (j == kNoStep || j == self || order.before(static_cast<std::size_t>(j), i)) continue;
        step.predecessors.push_back(j);
        order.wait(i, static_cast<std::size_t>(j));
      }
    }
  }
  // True when steps write to this place.
  static bool may_change(Place p) { return p == Place::Arena || p == Place::Output || p == Place::State; }

  const Graph& g_;
  const Target& target_;
  const TargetLimits limits_ = target_.limits();
  std::span<const LirAlias> donated_;
  UseIndex uses_;
  LirBufferPlan plan_;
  std::vector<Buffer> buffers_;
  std::vector<std::uint32_t> joined_;  // buffer -> the buffer that it was merged into, or itself
  std::vector<NodeId> states_;
  std::vector<SyncPoint> cuts_;
  ValueSlots slot_;
  std::vector<std::uint32_t> buffer_of_;  // by slot
  std::vector<Location> where_;           // by slot
  BufferHomes homes_;
  std::set<Value> reported_;                           // by report_updates
  NodeReads reads_;                                    // of reads_node_
  std::optional<NodeId> reads_node_;                   // the node that was examined last
  std::optional<NodeId> updates_of_;                   // a node with bodies
  std::vector<std::optional<std::uint32_t>> updates_;  // of that node
  std::vector<std::uint32_t> body_ranges_;             // buffers, in the order of plan_.bodies and their ranges
  bool symbolic_;
  SymbolRanges ranges_;
  SymbolBinding largest_;
};

}  // namespace

namespace {

// The plan for a device that plans its own memory: which inputs may be reused for which outputs, and which partitions
// the device runs.
LirBufferPlan opaque_plan(const Graph& g, const Target& target, std::span<const LirAlias> donated, std::uint32_t home) {
  LirBufferPlan plan;
  plan.opaque = true;
  plan.alignment = target.limits().alignment;
  plan.aliases.assign(donated.begin(), donated.end());
  const std::size_t most = target.limits().max_buffer_bytes;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    for (std::uint32_t r = 0; r < g.nodes()[i].num_results(); ++r)
      refuse_large(g, NodeId{i}, max_bytes(g, Value(NodeId{i}, r)), target, most);
  partition_parts(g, target, home, plan);
  return plan;
}

}  // namespace

LirBufferPlan plan_unchecked(const Graph& g, const Target& target, std::span<const LirAlias> donated,
                             std::uint32_t home) {
  return target.opaque() ? opaque_plan(g, target, donated, home) : Planner(g, target, donated, home).plan();
}

LirBufferPlan plan_memory(const Graph& g, const Target& target, std::span<const LirAlias> donated, std::uint32_t home) {
  LirBufferPlan plan = plan_unchecked(g, target, donated, home);
  if (plan.opaque) return plan;
  const std::vector<std::string> problems = check_plan(g, plan, {&target, home});
  check(problems.empty(), problems.empty() ? std::string() : concat_text("memory plan: ", problems.front()));
  return plan;
}

std::size_t max_bytes(const Graph& g, Value v) {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, bounds_of(g, stored_size(g, v)).max));
}

}  // namespace rlx
