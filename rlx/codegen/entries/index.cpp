// Kernel entries: reads and writes at indices that are known at run time.
#include <algorithm>

#include "rlx/codegen/decoder.h"
#include "rlx/codegen/elements.h"
#include "rlx/codegen/entry.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/codegen/indexed.h"
#include "rlx/codegen/moves.h"
#include "rlx/codegen/scatter.h"
#include "rlx/codegen/sorting.h"
#include "rlx/codegen/walk.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::codegen {
namespace {

const char* index_refuses(const Graph& g, NodeId id) {
  return refuse_unless(dtype_bits(in_shape(g, id, 0).dtype()) >= 8, "kernels do not move single elements of 4 bits");
}
const char* gather_refuses(const Graph& g, NodeId id) {
  if (const char* why = index_refuses(g, id)) return why;
  return refuse_many(g.node(id).inputs.size() + 1);
}
// Updates and indices are read while elements are written, so only the table may be overwritten.
bool updates_in_place(const Graph& g, NodeId id, int operand, int) {
  return operand == 0 && is_sole_operand(g, id, operand);
}

void write_gather(NodeKernels& node) {
  if (node.out().elements().is_static(0)) return;
  const auto& op = node.op<ops::Gather>();
  const IndexedAxes axes(node, op.axes, 1);
  const Ref table = axes.target(as_words(node.in(0)), node.in(0).rank()),
            out = axes.picked(as_words(node.out()), table);
  Mover m(node, "gather", {out, table}, axes.strides(as_words(node.in(0))));
  const Ref to = m.in_units(out), from = m.in_units(table);
  std::string text = m.split(to);
  const IndexedAxes::Place place = axes.place(m, as_words(node.in(0)), "c1", op.mode == IndexMode::Clamp);
  text += place.statements;
  text += concat_text("let source = ", m.k().at(from, IndexedAxes::without_count(Mover::names(to))), " + ",
                      place.offset, ";\n");
  if (op.mode == IndexMode::Clamp) return m.finish(to, text, m.load(from, "source"));
  text += concat_text("var y = ", m.fill(Mover::words_of(node.out().dtype, op.fill), concat_text("c", to.rank() - 1)),
                      ";\nif (", place.inside, ") { y = ", m.load(from, "source"), "; }\n");
  m.finish(to, text, "y");
}

// -- rows of quantized values, decoded as they are read --

const char* table_refuses(const Graph& g, NodeId id) {
  const std::vector<Value>& in = g.node(id).inputs;
  const NodeId from = in[0].node;
  if (g.node(from).kind() != OpKind::Dequantize) return "its table is not a dequantize";
  if (const char* why = decoder_refuses(g, from)) return why;
  return refuse_many(in.size() + decoder_operands(g, from));
}
bool reads_quantized_table(const Graph&, NodeId, int operand) { return operand == 0; }

void write_gather_quantized(NodeKernels& node) {
  if (node.out().elements().is_static(0)) return;
  const auto& op = node.op<ops::Gather>();
  const IndexedAxes axes(node, op.axes, 1);
  const Value decoded = node.node().inputs[0];
  const Ref whole = dense_ref(node.graph(), decoded), table = axes.target(whole, whole.rank()),
            out = axes.picked(node.out(), table);
  // Consecutive elements of a row are in one block and are decoded together.
  const bool by_fours = op.axes.back() != whole.rank() - 1 && divided(whole.dim(-1), 4) &&
                        node.is_aligned(out, 4 * size_bytes(out.dtype));
  const std::vector<std::string> names = Mover::names(out);
  // Statements that compute `source`, and the value there. The last coordinate counts groups of `lanes`.
  const auto body = [&](KernelBuilder& k, int lanes) {
    Dims dims = out.dims;
    if (lanes == 4) dims.back() = *divided(dims.back(), 4);
    std::vector<std::string> at = names;
    if (lanes == 4) at.back() = concat_text("(", at.back(), " * 4u)");
    const IndexedAxes::Place place = axes.place(k, whole, "c1", op.mode == IndexMode::Clamp);
    Decoder codes(k, decoded.node, "codes");
    k << k.split("i", dims, names) << place.statements << "let source = " << k.at(table, IndexedAxes::without_count(at))
      << " + " << place.offset << ";\n";
    const std::string value = lanes == 4 ? codes.four("source") : codes.element("source");
    if (op.mode == IndexMode::Clamp) return value;
    const std::string type = lanes == 4 ? "vec4<f32>" : "f32";
    const std::string fill = literal(k, DType::F32, Tensor::full(Shape({}, out.dtype), op.fill).at(0));
    k << concat_text("var y = ", type, "(", fill, ");\nif (", place.inside, ") { y = ", value, "; }\n");
    return std::string("y");
  };
  if (!by_fours)
    return map_elements(node, "gather_coded", {node.out()},
                        [&](KernelBuilder& k, const std::string&) { return std::vector<std::string>{body(k, 1)}; });
  const Dim threads = *divided(out.elements(), 4);
  KernelBuilder k(node, "gather_coded");
  k << "let i = THREAD;\nif (i >= " << k.size(Size(threads)) << ") { return; }\n";
  const std::string value = body(k, 4);
  k << "let four = " << value << ";\n" << store_quad(k, node.out(), "i * 4u", "four");
  k.finish_threads(threads);
}

// -- windows --

// The axes along which the window is smaller than the whole value.
std::vector<std::int64_t> slid_axes(const Dims& whole, const Dims& window) {
  std::vector<std::int64_t> axes;
  for (std::size_t a = 0; a < whole.size(); ++a)
    if (!(whole[a] == window[a])) axes.push_back(static_cast<std::int64_t>(a));
  return axes;
}
// `let startN = ..;` for each joined axis of a sliding window: where the window begins, clamped so that it fits.
std::string window_starts(Mover& m, const Ref& starts, const std::vector<std::int64_t>& axes, const Ref& whole,
                          const Ref& window) {
  std::string text;
  for (std::int64_t a : axes) {
    const std::size_t group = group_of(a, axes);
    text +=
        concat_text("let start", group, " = u32(clamp(", load_index(m.k(), starts, concat_text(a, "u")), ", 0, i32(",
                    m.k().size(Size(whole.dims[group])), " - ", m.k().size(Size(window.dims[group])), ")));\n");
  }
  return text;
}

void write_dynamic_slice(NodeKernels& node) {
  if (node.out().elements().is_static(0)) return;
  const std::vector<std::int64_t> axes = slid_axes(node.in(0).dims, node.out().dims);
  const Ref x = grouped_axes(as_words(node.in(0)), axes), out = grouped_axes(as_words(node.out()), axes);
  Mover m(node, "dynamic_slice", {out, x});
  const Ref to = m.in_units(out), from = m.in_units(x);
  std::vector<std::string> c = Mover::names(to);
  std::string text = m.split(to) + window_starts(m, node.in(1), axes, from, to);
  for (std::int64_t a : axes)
    c[group_of(a, axes)] = concat_text("(c", group_of(a, axes), " + start", group_of(a, axes), ")");
  text += concat_text("let source = ", m.k().at(from, c), ";\n");
  m.finish(to, text, m.load(from, "source"));
}

void write_dynamic_update(NodeKernels& node) {
  if (node.out().elements().is_static(0)) return;
  const bool in_place = node.in_place(0);
  if (node.in(1).elements().is_static(0)) {
    if (!in_place) copy_elements(node, "copy", node.out(), node.in(0));
    return;
  }
  const std::vector<std::int64_t> axes = slid_axes(node.in(0).dims, node.in(1).dims);
  const Ref x = grouped_axes(as_words(node.in(0)), axes), update = grouped_axes(as_words(node.in(1)), axes),
            out = grouped_axes(as_words(node.out()), axes);
  Mover m(node, "dynamic_update", {out, update, x});
  const Ref to = m.in_units(out), part = m.in_units(update), old = m.in_units(x);
  std::vector<std::string> c = Mover::names(to);
  if (in_place && m.owns_words()) {  // only the window is written
    std::string text = m.split(part) + window_starts(m, node.in(2), axes, old, part);
    for (std::int64_t a : axes)
      c[group_of(a, axes)] = concat_text("(c", group_of(a, axes), " + start", group_of(a, axes), ")");
    text += concat_text("let place = ", m.k().at(to, c), ";\n");
    return m.finish_at(to, part.elements(), text, "place", m.load(part, "i"));
  }
  std::string text = m.split(to) + window_starts(m, node.in(2), axes, old, part), inside = "true";
  for (std::int64_t a : axes) {
    const std::size_t group = group_of(a, axes);
    text += concat_text("let d", group, " = c", group, " - start", group, ";\n");  // wraps around before the window
    inside += concat_text(" && d", group, " < ", m.k().size(Size(part.dims[group])));
    c[group] = concat_text("d", group);
  }
  text += concat_text("var y = ", m.load(in_place ? to : old, "i"), ";\nif (", inside,
                      ") { y = ", m.load(part, m.k().at(part, c)), "; }\n");
  m.finish(to, text, "y");
}

const char* scatter_refuses(const Graph& g, NodeId id) {
  const char* why = g.node(id).op.as<ops::Scatter>().fn == ScatterKind::Set
                        ? index_refuses(g, id)
                        : refuse_unless(computes(in_shape(g, id, 0).dtype()),
                                        "WGSL has no type for the dtype of an operand or result");
  return why ? why : refuse_many(g.node(id).inputs.size());  // the result replaces the first operand
}

ScratchBytes scatter_scratch(const Graph& g, NodeId id) {
  const Shape& indices = in_shape(g, id, 1);
  const ScratchBytes widened = widened_bytes(g, id);
  return indices.is_static() ? widened.and_also(sorted_bytes(1, indices.num_elements())) : widened;
}

// A run of equal targets is read twice.
Dim scatter_steps(const Graph& g, NodeId id, const Dialect&) { return in_shape(g, id, 1).num_elements_dim() * Dim(2); }

constexpr KernelEntry kIndexEntries[] = {
    {OpKind::Gather, "gather_coded", table_refuses, write_gather_quantized, nullptr, nullptr, reads_quantized_table},
    {OpKind::Gather, "gather", gather_refuses, write_gather},
    {OpKind::Scatter, "scatter", scatter_refuses, write_scatter, nullptr, updates_in_place, nullptr, 0, scatter_scratch,
     scatter_steps},
    {OpKind::DynamicSlice, "dynamic_slice", index_refuses, write_dynamic_slice},
    {OpKind::DynamicUpdateSlice, "dynamic_update", index_refuses, write_dynamic_update, nullptr, updates_in_place},
};

}  // namespace

std::span<const KernelEntry> index_entries() { return kIndexEntries; }

}  // namespace rlx::codegen
