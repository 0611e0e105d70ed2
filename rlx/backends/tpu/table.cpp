// The table of kernel entries, and the traversal of a graph that uses it.
#include <algorithm>
#include <array>

#include "rlx/backends/tpu/entries.h"
#include "rlx/backends/tpu/stablehlo.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx::tpu {
namespace {

// The values of a graph by node that are written so far.
class Walk {
 public:
  Walk(Writer& w, const Graph& g) : w_(w), g_(g), slot_(g), values_(slot_.size()) {}
  void set(Value v, Hlo value) { values_[slot_(v)] = std::move(value); }
  const Hlo& at(Value v) const { return values_[slot_(v)]; }
  void run() {
    Hlos inputs;
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const Node& n = g_.nodes()[i];
      if (const auto* c = n.op.get_if<ops::Constant>()) {
        set(NodeId{i}, w_.constant(c->value));
        continue;
      }
      if (op_def(n.kind()).is_leaf()) continue;
      const std::span<const KernelEntry* const> rows = entry_table().of(n.kind());
      check(!rows.empty(), "a node has no StableHLO kernel entry");
      inputs.clear();
      for (Value v : n.inputs) inputs.push_back(at(v));
      EmitContext c(w_, g_, NodeId{i}, inputs);
      rows[0]->emit(c);
      for (std::uint32_t r = 0; r < n.num_results(); ++r) set(Value(NodeId{i}, r), c.results()[r]);
    }
  }

 private:
  Writer& w_;
  const Graph& g_;
  ValueSlots slot_;
  Hlos values_;
};

// A 4-bit value enters and leaves a program as its bytes.
bool is_packed(DType t) { return dtype_bits(t) == 4; }

HloType border_type(const Shape& s) {
  if (is_packed(s.dtype())) return {DType::U8, {static_cast<std::int64_t>(s.size_bytes())}};
  return {s.dtype(), s.static_dims()};
}

Hlo unpacked(Writer& w, const Hlo& bytes, const Shape& s) {
  if (!is_packed(s.dtype())) return bytes;
  const std::int64_t n = bytes.elements();
  const Hlo column = w.reshape(bytes, {n, 1});
  const Hlo parts[] = {w.both(column, w.full_like(column, 15)),
                       w.op("shift_right_logical", column, w.full_like(column, 4))};
  Hlo quants = w.reshape(w.concat(parts, 1), {2 * n});
  const std::int64_t starts[] = {0}, limits[] = {s.num_elements()}, strides[] = {1};
  quants = w.slice(quants, starts, limits, strides);
  if (s.dtype() == DType::I4) {  // bit 3 is the sign
    const Hlo four = w.full(DType::I8, 4, quants.dims);
    quants = w.op("shift_right_arithmetic", w.op("shift_left", w.convert(quants, DType::I8), four), four);
  }
  return w.reshape(quants, s.static_dims());
}

Hlo packed(Writer& w, const Hlo& value, const Shape& s) {
  if (!is_packed(s.dtype())) return value;
  const std::int64_t n = s.num_elements(), bytes = (n + 1) / 2;
  Hlo quants = w.convert(w.reshape(value, {n}), DType::U8);
  quants = w.both(quants, w.full_like(quants, 15));
  const std::int64_t none[] = {0}, rest[] = {2 * bytes - n};
  if (rest[0] != 0) quants = w.pad(quants, w.scalar(DType::U8, 0), none, rest, none);
  const Hlo pairs = w.reshape(quants, {bytes, 2});
  const auto half = [&](std::int64_t k) {
    const std::int64_t starts[] = {0, k}, limits[] = {bytes, k + 1}, strides[] = {1, 1};
    return w.reshape(w.slice(pairs, starts, limits, strides), {bytes});
  };
  const Hlo low = half(0), high = half(1);
  return w.either(low, w.op("shift_left", high, w.full_like(high, 4)));
}

}  // namespace

const EntryTable<KernelEntry>& entry_table() {
  // Never destroyed: threads may compile while the process ends.
  static const EntryTable<KernelEntry>& table = *new EntryTable<KernelEntry>(
      {elementwise_entries(), move_entries(), index_entries(), order_entries(), reduce_entries(), dot_entries(),
       factor_entries(), grouped_entries(), random_entries(), control_entries(), collective_entries(), fft_entries()},
      "there is no StableHLO for this kind");
  return table;
}

void EmitContext::set(std::uint32_t r, Hlo v) {
  check(v.dtype == kept_as(dtype(r)) && v.dims == dims(r), "a kernel entry wrote a result of another type");
  results_[r] = std::move(v);
}

Hlos emit_body(Writer& w, const Graph& g, std::span<const Hlo> inputs) {
  Walk walk(w, g);
  const std::vector<NodeId> leaves = g.leaves(OpKind::Input);
  check(leaves.size() == inputs.size(), "a body got another number of operands than it has inputs");
  for (std::size_t i = 0; i < leaves.size(); ++i) walk.set(leaves[i], inputs[i]);
  walk.run();
  Hlos out;
  for (Value v : g.outputs()) out.push_back(walk.at(v));
  return out;
}

const char* body_refuses(const Graph& g) {
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (const char* why = stablehlo_refuses(g, NodeId{i})) return why;
  return nullptr;
}

const OpSet& stablehlo_kinds() { return entry_table().kinds(); }
const char* stablehlo_refuses(const Graph& g, NodeId id) { return entry_table().refuses(g, id); }

std::string stablehlo_text(const Graph& g, std::span<const HloAlias> aliases) {
  check(g.is_static(), "a graph with unbound symbols cannot be written as StableHLO");
  std::vector<NodeId> leaves;
  for (OpKind kind : {OpKind::Input, OpKind::State, OpKind::Param}) {
    const std::vector<NodeId> of_kind = g.leaves(kind);
    leaves.insert(leaves.end(), of_kind.begin(), of_kind.end());
  }
  std::vector<Value> results = g.outputs();
  for (NodeId state : g.leaves(OpKind::State)) {
    const auto update = std::find_if(g.state_updates().begin(), g.state_updates().end(),
                                     [&](const Graph::StateUpdate& u) { return u.name == g.leaf_name(state); });
    results.push_back(update == g.state_updates().end() ? Value(state) : update->value);
  }
  std::vector<HloType> argument_types, result_types;
  std::vector<std::string> attributes(leaves.size());
  for (NodeId id : leaves) argument_types.push_back(border_type(g.shape(id)));
  for (Value v : results) result_types.push_back(border_type(g.shape(v)));
  for (const HloAlias& a : aliases)
    attributes[detail::checked_index("argument", a.argument, attributes.size())] =
        concat_text(" {tf.aliasing_output = ", a.result, " : i32}");

  Writer w(std::size_t{256} * g.num_nodes() + 1024);
  const Hlos arguments = w.begin_main(argument_types, attributes, result_types);
  Walk walk(w, g);
  for (std::size_t i = 0; i < leaves.size(); ++i) walk.set(leaves[i], unpacked(w, arguments[i], g.shape(leaves[i])));
  walk.run();
  Hlos given;
  for (Value v : results) given.push_back(packed(w, walk.at(v), g.shape(v)));
  if (w.has_order()) given = w.in_order(given);  // the return is ordered after ops whose results nobody reads
  w.end_main(given);
  return w.take();
}

}  // namespace rlx::tpu
