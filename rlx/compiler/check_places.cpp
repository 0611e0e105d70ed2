// The place of every value, and the way of values into outputs and states.
#include "rlx/compiler/check_places.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "rlx/compiler/node_devices.h"
#include "rlx/compiler/plan_bodies.h"
#include "rlx/exec/access_history.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/packed_layout.h"

namespace rlx {
namespace {

constexpr std::string_view kPlaces[] = {"arena", "input", "output", "prepared weight", "constant", "state", "nowhere"};

std::string place_text(Place place, std::uint32_t index) {
  const std::string_view name = kPlaces[static_cast<std::size_t>(place)];
  return place == Place::None ? std::string(name) : concat_text(name, " ", index);
}

// Reads of one step that lie in the memory of a result of the same step.
struct Overlap {
  Value read;
  std::optional<std::uint32_t> operand;  // none: quantized values that the kernel reads in place of an operand
  std::uint32_t result;
};

class PlaceChecker {
 public:
  PlaceChecker(const Graph& g, const LirBufferPlan& plan, const PlanCheck& how)
      : g_(g),
        plan_(plan),
        how_(how),
        exact_(g.is_static()),
        homes_(plan),
        uses_(g),
        steps_(g.num_nodes(), 0),
        in_place_(g.outputs().size(), false),
        states_(g.leaves(OpKind::State)) {
    if (how.target) limits_ = how.target->limits();
  }

  std::vector<std::string> run() {
    if (how_.target && plan_.alignment < limits_.alignment)
      problems_.add("it is aligned to ", plan_.alignment, " bytes, but the target needs ", limits_.alignment);
    for (const LirStep& s : plan_.schedule) ++steps_[s.node.index];
    for (std::uint32_t i = 0; i < g_.num_nodes() && !problems_.full(); ++i) check_node(NodeId{i});
    for (const LirStep& s : plan_.schedule)
      if (!problems_.full()) check_step(s);
    check_devices();
    if (how_.whole) check_outputs(), check_states();
    check_aliases();
    return std::move(problems_).take();
  }

 private:
  const LirValue& at(Value v) const { return plan_.at(v); }
  ByteRange range(Value v) const {
    const LirValue& lv = at(v);
    const BufferHome home = homes_(lv);
    return {home.place, home.index, lv.offset, lv.offset + lv.bytes};
  }

  // -- values --

  void check_node(NodeId id) {
    const Node& n = g_.node(id);
    const OpDef& def = op_def(n.kind());
    if (def.is_leaf()) return check_leaf(id);
    const int steps = steps_[id.index];
    if (at(Value(id)).is_view) {
      if (steps != 0) problems_.add(id, " is planned as a view, but a step runs it");
      return check_view(id, def);
    }
    const bool encoded = steps == 0 && is_encoded(id);
    if (steps != 1 && !encoded) problems_.add(id, " is run by ", steps, " steps");
    for (std::uint32_t r = 0; r < n.num_results(); ++r) check_result(Value(id, r), encoded);
  }

  void check_leaf(NodeId id) {
    const LirValue& lv = at(Value(id));
    if (steps_[id.index] != 0) problems_.add(id, " is a leaf, but a step runs it");
    Place place = Place::Constant;
    std::uint32_t index = id.index;
    switch (g_.node(id).kind()) {
      case OpKind::Input: place = Place::Input, index = inputs_++; break;
      case OpKind::Param: place = Place::Prepared, index = params_++; break;
      case OpKind::State: place = Place::State, index = states_seen_++; break;
      default: break;
    }
    if (lv.place != place || lv.index != index)
      problems_.add("leaf ", id, " lies in ", place_text(lv.place, lv.index), " instead of ", place_text(place, index));
    if (lv.is_view || !lv.strides.empty()) problems_.add("leaf ", id, " is planned as a view");
    if (lv.offset != 0) problems_.add("leaf ", id, " has offset ", lv.offset, " instead of 0");
    check_size(Value(id));
  }

  void check_size(Value v) {
    if (!exact_) return;
    if (const std::size_t wants = stored_bytes(g_, v); at(v).bytes != wants)
      problems_.add(v, " has ", at(v).bytes, " bytes and needs ", wants);
  }

  // A view has the bytes that its op picks from those of its operand, and only readers that follow strides read it.
  void check_view(NodeId id, const OpDef& def) {
    const Value v(id);
    const Node& n = g_.node(id);
    if (!def.is_view() || n.inputs.empty()) return problems_.add(id, " is planned as a view, but its op makes none");
    const Value from = n.inputs[0];
    const LirValue &lv = at(v), &operand = at(from);
    if (lv.place != operand.place || lv.index != operand.index || lv.place == Place::None)
      return problems_.add("view ", id, " lies in ", place_text(lv.place, lv.index), ", but its operand ", from, " in ",
                           place_text(operand.place, operand.index));
    const DType dtype = n.shape().dtype();
    if (dtype != g_.shape(from).dtype() || !packed_layout_of(g_, from).empty() ||
        (dtype_bits(dtype) < 8 && def.view != ViewKind::Always))
      return problems_.add(id, " is planned as a view of ", from, ", whose elements no view can pick");
    if (!exact_) return;
    const std::optional<LirValue> wants = placed_view(g_, id, operand);
    if (!wants) return problems_.add(id, " is planned as a view of ", from, ", but its elements must move");
    if (lv.offset != wants->offset || lv.bytes != wants->bytes)
      problems_.add("view ", id, " has ", lv.bytes, " bytes at offset ", lv.offset, ", but shows ", wants->bytes,
                    " bytes at offset ", wants->offset);
    if (lv.strides != wants->strides)
      problems_.add("view ", id, " has the strides ", dims_text(lv.strides), ", but its elements have ",
                    dims_text(wants->strides));
    if (!wants->strides.empty()) check_readers(id);
    if (const std::size_t apart = std::max(limits_.view_alignment, limits_.copy_granule); lv.offset % apart != 0)
      problems_.add("view ", id, " has offset ", lv.offset, ", but the target needs multiples of ", apart);
  }

  // The readers of a view that is not row-major.
  void check_readers(NodeId id) {
    const Value v(id);
    if (uses_.is_output(v)) problems_.add("view ", id, " is not row-major, but it is an output or a new state");
    if (!how_.target) return;
    for (const UseIndex::Use& use : uses_.uses(v))
      if (!at(Value(use.user)).is_view && !how_.target->reads_strided(g_, use.user, static_cast<int>(use.operand)))
        problems_.add(use.user, " reads ", v, ", which is not row-major, and its kernel does not follow strides");
  }

  // A Dequantize or Quantize without a step: every reader reads what it would be computed from.
  bool is_encoded(NodeId id) const {
    const OpKind kind = g_.node(id).kind();
    return (kind == OpKind::Dequantize || kind == OpKind::Quantize) && at(Value(id)).place == Place::None;
  }

  void check_result(Value v, bool encoded) {
    const LirValue& lv = at(v);
    if (lv.is_view || !lv.strides.empty()) problems_.add(v, " is computed, but has the strides of a view");
    switch (lv.place) {
      case Place::None:
        if (lv.bytes != 0) problems_.add(v, " has ", lv.bytes, " bytes, but no place");
        if (encoded && (uses_.is_output(v) || uses_.uses(v).empty())) problems_.add(v, " is read, but never computed");
        if (!encoded) check_skipped(v);
        return;
      case Place::Arena:
        if (lv.bytes == 0) break;
        if (lv.index >= plan_.arenas.size() || lv.offset > plan_.arenas[lv.index] ||
            lv.bytes > plan_.arenas[lv.index] - lv.offset)
          problems_.add(v, " lies outside its arena");
        if (lv.offset % plan_.alignment != 0)
          problems_.add(v, " has offset ", lv.offset, ", but the plan aligns values to ", plan_.alignment, " bytes");
        break;
      case Place::Output: check_owner(v, g_.outputs()[lv.index], how_.home); break;
      case Place::State: check_owner(v, Value(states_[lv.index]), plan_.node_device(states_[lv.index])); break;
      case Place::Input:
      case Place::Prepared:
      case Place::Constant: problems_.add(v, " is written to ", place_text(lv.place, lv.index)); break;
    }
    check_size(v);
  }

  // A result in the memory of an output or a state fills it.
  void check_owner(Value v, Value owner, std::uint32_t device) {
    const LirValue& lv = at(v);
    if (plan_.node_device(v.node) != device)
      problems_.add(v, " is written to ", place_text(lv.place, lv.index), " by device ", plan_.node_device(v.node),
                    ", but device ", device, " owns it");
    if (lv.offset != 0)
      problems_.add(v, " has offset ", lv.offset, " in ", place_text(lv.place, lv.index), " instead of 0");
    if (exact_ && stored_bytes(g_, owner) != stored_bytes(g_, v))
      problems_.add(v, " has ", stored_bytes(g_, v), " bytes, but ", place_text(lv.place, lv.index), " has ",
                    stored_bytes(g_, owner));
  }

  // A result that nobody reads has no place if its kernel can leave it out.
  void check_skipped(Value v) {
    if (uses_.use_count(v) != 0 || uses_.is_output(v)) return problems_.add(v, " is read, but has no place");
    const LirBodies* bodies = plan_.bodies_of(v.node);
    if (how_.target &&
        ((bodies && bodies->host_controlled) || !how_.target->skips_unread(g_, v.node, static_cast<int>(v.result))))
      problems_.add(v, " has no place, but its kernel writes it");
  }

  // -- steps --

  void check_step(const LirStep& s) {
    const Node& n = g_.node(s.node);
    for (std::uint32_t i = 0; i < 32; ++i)
      if ((s.encoded >> i & 1U) != 0) check_encoded(s.node, i);
    for (std::uint32_t i = 0; i < n.inputs.size(); ++i)
      if ((i >= 32 || (s.encoded >> i & 1U) == 0) && at(n.inputs[i]).place == Place::None)
        problems_.add(s.node, " reads ", n.inputs[i], ", which has no place");
    const LirBodies* bodies = plan_.bodies_of(s.node);
    if (how_.target && op_def(n.kind()).bodies != BodyKind::None) {
      const bool host = op_def(n.kind()).bodies == BodyKind::Programs && how_.target->host_controlled(g_, s.node);
      const bool wants = host || how_.target->plans_bodies(g_, s.node);
      if (wants != (bodies != nullptr))
        problems_.add(s.node, wants ? " has no planned bodies" : " has planned bodies, which its kernel does not run");
      else if (bodies && bodies->host_controlled != host)
        problems_.add("the bodies of ", s.node,
                      host ? " are controlled by the host" : " are not controlled by the host",
                      ", but the plan says otherwise");
    }
    check_overlaps(s, bodies);
  }

  // A kernel that reads what operand i would be computed from.
  void check_encoded(NodeId id, std::uint32_t i) {
    const Node& n = g_.node(id);
    if (i >= n.inputs.size()) return problems_.add(id, " has no operand ", i, ", which its step reads encoded");
    const Node& from = g_.node(n.inputs[i].node);
    if (from.kind() != OpKind::Dequantize && from.kind() != OpKind::Quantize)
      return problems_.add(id, " reads its operand ", i, " encoded, but that is no Quantize or Dequantize");
    if (how_.target && !how_.target->reads_encoded(g_, id, static_cast<int>(i)))
      problems_.add(id, " reads its operand ", i, " encoded, but its kernel does not");
    for (Value v : from.inputs)
      if (at(v).place == Place::None) problems_.add(id, " reads ", v, ", which has no place");
  }

  // A result may lie over an operand only where it takes all its bytes, the kernel allows that, and the step reads
  // nothing else there.
  void check_overlaps(const LirStep& s, const LirBodies* bodies) {
    const Node& n = g_.node(s.node);
    results_.clear();
    for (std::uint32_t r = 0; r < n.num_results(); ++r)
      if (const ByteRange bytes = range(Value(s.node, r)); !bytes.empty() && bytes.place != Place::None)
        results_.push_back({bytes, r});
    std::sort(results_.begin(), results_.end(), [](const auto& a, const auto& b) { return before(a.bytes, b.bytes); });
    overlaps_.clear();
    for (std::uint32_t i = 0; i < n.inputs.size(); ++i) {
      if (i < 32 && (s.encoded >> i & 1U) != 0) {
        for (Value code : g_.node(n.inputs[i].node).inputs) find_overlaps(code, std::nullopt);
      } else {
        find_overlaps(n.inputs[i], i);
      }
    }
    if (overlaps_.empty()) return;
    std::sort(overlaps_.begin(), overlaps_.end(),
              [](const Overlap& a, const Overlap& b) { return a.result < b.result; });
    std::vector<std::optional<std::uint32_t>> updates;
    if (bodies) updates = body_updates(n, *bodies);
    for (auto first = overlaps_.begin(), next = first; first != overlaps_.end(); first = next) {
      next = std::find_if(first, overlaps_.end(), [&](const Overlap& o) { return o.result != first->result; });
      const Value result(s.node, first->result), read = first->read;
      const LirValue &from = at(read), &to = at(result);
      const bool one = std::all_of(first, next, [&](const Overlap& o) { return o.operand && o.read == read; });
      if (!one || from.offset != to.offset || from.bytes != to.bytes || !from.strides.empty())
        problems_.add("result ", result, " is written over ", read, ", which the same step reads");
      else if (bodies ? next - first != 1 || updates[first->result] != *first->operand : !allowed(s.node, first, next))
        problems_.add("result ", result, " is written over ", read, ", which the kernel of ", op_text_name(n.op),
                      " does not allow");
    }
  }
  struct ResultRange {
    ByteRange bytes;
    std::uint32_t result;
  };
  static bool before(const ByteRange& a, const ByteRange& b) {
    return std::tuple(a.place, a.index, a.from) < std::tuple(b.place, b.index, b.from);
  }
  // Results of a step do not overlap (the checker of the order reports it), so few of them can meet one operand.
  void find_overlaps(Value v, std::optional<std::uint32_t> operand) {
    const ByteRange bytes = range(v);
    if (bytes.empty()) return;
    auto r = std::partition_point(results_.begin(), results_.end(),
                                  [&](const ResultRange& x) { return before(x.bytes, bytes); });
    if (r != results_.begin()) --r;
    for (; r != results_.end() && !before({bytes.place, bytes.index, bytes.to, bytes.to}, r->bytes); ++r)
      if (r->bytes.meets(bytes)) overlaps_.push_back({v, operand, r->result});
  }
  // The overlaps of one value and one result: true when the kernel allows it for one of the operands that are the
  // value.
  template <class It>
  bool allowed(NodeId id, It first, It end) const {
    if (g_.node(id).kind() == OpKind::Transfer) return false;
    return !how_.target || std::any_of(first, end, [&](const Overlap& o) {
      return how_.target->in_place(g_, id, static_cast<int>(*o.operand), static_cast<int>(o.result));
    });
  }

  void check_devices() {
    if (!how_.target) return;
    const std::vector<std::uint32_t> wants = devices_of_nodes(g_, *how_.target, how_.home);
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i)
      if (plan_.node_device(NodeId{i}) != wants[i])
        problems_.add(NodeId{i}, " is planned for device ", plan_.node_device(NodeId{i}), ", but runs on device ",
                      wants[i]);
  }

  // -- outputs and states --

  // True when the value fills the memory of an output or a state.
  bool fills(Value v, Place place, std::uint32_t index) const {
    const LirValue& lv = at(v);
    return lv.place == place && lv.index == index && lv.offset == 0 && lv.strides.empty();
  }

  void check_outputs() {
    std::vector<int> copies(g_.outputs().size(), 0);
    for (const LirOutputCopy& c : plan_.output_copies) {
      ++copies[c.output];
      if (!(c.value == g_.outputs()[c.output]))
        problems_.add("output ", c.output, " is copied from ", c.value, ", but it is ", g_.outputs()[c.output]);
    }
    for (std::uint32_t o = 0; o < copies.size(); ++o) {
      in_place_[o] = copies[o] == 0;
      if (copies[o] > 1) problems_.add("output ", o, " is copied ", copies[o], " times");
      if (copies[o] == 0 && !fills(g_.outputs()[o], Place::Output, o))
        problems_.add("output ", o, " is ", g_.outputs()[o], ", which is neither computed there nor copied there");
    }
    each_result([&](Value v, const LirValue& lv) {
      if (lv.place == Place::Output && !in_place_[lv.index])
        problems_.add(v, " is computed in output ", lv.index, ", which is copied from another value");
    });
  }

  void check_states() {
    std::vector<std::optional<Value>> now(states_.size());
    for (const Graph::StateUpdate& u : g_.state_updates())  // states_ is in the order of nodes
      now[static_cast<std::size_t>(
          std::lower_bound(states_.begin(), states_.end(), g_.find_leaf(OpKind::State, u.name)) - states_.begin())] =
          u.value;
    std::vector<int> copies(states_.size(), 0);
    for (const auto* list : {&plan_.state_copies, &plan_.remote_state_copies})
      for (const LirStateCopy& c : *list) {
        ++copies[c.state];
        if (!now[c.state] || !(c.value == *now[c.state]))
          problems_.add("state ", c.state, " is copied from ", c.value, ", which is not its new value");
        const bool remote = plan_.node_device(states_[c.state]) != 0;
        if (remote != (list == &plan_.remote_state_copies))
          problems_.add("state ", c.state, " is copied ",
                        remote ? "by a device that does not own it" : "as a state of another device");
      }
    for (std::uint32_t s = 0; s < copies.size(); ++s) {
      if (copies[s] > 1) problems_.add("state ", s, " is copied ", copies[s], " times");
      if (now[s] && copies[s] == 0 && !fills(*now[s], Place::State, s))
        problems_.add("the new value ", *now[s], " of state ", s, " is neither computed there nor copied there");
      if (now[s] && copies[s] == 0 && exact_ && stored_bytes(g_, Value(states_[s])) != at(*now[s]).bytes)
        problems_.add("the new value ", *now[s], " of state ", s, " has ", at(*now[s]).bytes, " bytes instead of ",
                      stored_bytes(g_, Value(states_[s])));
    }
    each_result([&](Value v, const LirValue& lv) {
      if (lv.place == Place::State && (!now[lv.index] || copies[lv.index] != 0))
        problems_.add(v, " is computed in state ", lv.index,
                      now[lv.index] ? ", whose new value is copied there" : ", which keeps its value");
    });
  }

  // Calls f(value, its place) for each result of a step.
  template <class F>
  void each_result(const F& f) const {
    for (const LirStep& s : plan_.schedule)
      for (std::uint32_t r = 0; r < g_.node(s.node).num_results(); ++r) f(Value(s.node, r), at(Value(s.node, r)));
  }

  // A donated input and its output may be one buffer. The output is then computed there, or it is the input itself.
  void check_aliases() {
    const std::vector<NodeId> inputs = g_.leaves(OpKind::Input);
    std::vector<bool> given(inputs.size(), false), taken(g_.outputs().size(), false);
    for (const LirAlias& a : plan_.aliases) {
      if (given[a.input] || taken[a.output])
        problems_.add("input ", a.input, " and output ", a.output, ": one of them is donated twice");
      given[a.input] = taken[a.output] = true;
      const Value from(inputs[a.input]), to = g_.outputs()[a.output];
      if (exact_ && stored_bytes(g_, from) != stored_bytes(g_, to))
        problems_.add("input ", a.input, " is donated to output ", a.output, " of another size");
      if (!a.refused.empty() || !how_.whole) continue;
      if (!in_place_[a.output] && !(fills(to, Place::Input, a.input) && at(to).bytes == at(from).bytes))
        problems_.add("input ", a.input, " is donated to output ", a.output, ", which is copied from other memory");
    }
  }

  const Graph& g_;
  const LirBufferPlan& plan_;
  const PlanCheck& how_;
  TargetLimits limits_;
  bool exact_;  // the shapes are known
  BufferHomes homes_;
  UseIndex uses_;
  std::vector<int> steps_;      // by node: the number of its steps
  std::vector<bool> in_place_;  // by output: it is computed in its memory
  std::vector<NodeId> states_;
  std::uint32_t inputs_ = 0, params_ = 0, states_seen_ = 0;
  std::vector<ResultRange> results_;  // of the current step
  std::vector<Overlap> overlaps_;     // of the current step
  PlanProblems problems_;
};

}  // namespace

std::vector<std::string> check_places(const Graph& g, const LirBufferPlan& plan, const PlanCheck& how) {
  return PlaceChecker(g, plan, how).run();
}

}  // namespace rlx
