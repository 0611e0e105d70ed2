// Kernel entries: copies of elements of any dtype.
#include <algorithm>

#include "rlx/codegen/elements.h"
#include "rlx/codegen/entry.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/codegen/moves.h"
#include "rlx/ir/ops/shape.h"

namespace rlx::codegen {
namespace {

const char* packed_refuses(const Graph& g, NodeId id) {
  bool whole = true;
  for (Value v : g.node(id).inputs) whole = whole && dtype_bits(g.shape(v).dtype()) >= 8;
  for (const Shape& s : g.node(id).shapes) whole = whole && dtype_bits(s.dtype()) >= 8;
  return refuse_unless(whole, "kernels do not move single elements of 4 bits");
}
const char* never_refuses(const Graph&, NodeId) { return nullptr; }
bool any_view(const Graph&, NodeId, int) { return true; }
// The words of an element are one more axis. Its strides are known where the elements' strides are.
bool where_strided(const Graph& g, NodeId id, int operand) {
  return g.is_static() || size_bytes(in_shape(g, id, operand).dtype()) <= 4;
}
bool is_empty(const NodeKernels& node) { return node.out().elements().is_static(0); }
std::string name_of_move(const NodeKernels& node) { return std::string(op_text_name(node.node().op)); }

// -- copies of the operand with other strides --

void write_copy(NodeKernels& node) {
  Ref from = node.in(0);
  if (!(from.dims == node.out().dims) && from.dense) from = reshaped(std::move(from), node.out().dims);
  copy_elements(node, name_of_move(node), node.out(), from);
}
// A reshape of a strided operand iterates over the operand's dims; the result is dense in both.
void write_reshape(NodeKernels& node) {
  const Ref from = node.in(0);
  if (dtype_bits(from.dtype) < 8) {  // two elements per byte
    const auto bytes = [](const Ref& r) {
      Ref b = reshaped(r, {floordiv(r.elements() + Dim(1), Dim(2))});
      b.dtype = DType::U8;
      return b;
    };
    return copy_elements(node, name_of_move(node), bytes(node.out()), bytes(from));
  }
  copy_elements(node, name_of_move(node), reshaped(node.out(), from.dims), from);
}
// Copies elements of the narrower dtype, whose order is the same in both values.
void write_bitcast(NodeKernels& node) {
  Ref from = node.in(0), to = node.out();
  const auto as = [](Ref& r, const Ref& other) {
    r.dtype = other.dtype;
    r.dims = other.dims;
    r.strides = dense_strides(r.dims);
  };
  dtype_bits(to.dtype) <= dtype_bits(from.dtype) ? as(from, to) : as(to, from);
  copy_elements(node, name_of_move(node), to, from);
}
void write_transpose(NodeKernels& node) {
  const Ref from = node.in(0);
  Ref turned = from;
  const auto& perm = node.op<ops::Transpose>().perm;
  for (std::size_t a = 0; a < perm.size(); ++a) {
    turned.dims[a] = from.dims[static_cast<std::size_t>(perm[a])];
    turned.strides[a] = from.strides[static_cast<std::size_t>(perm[a])];
  }
  copy_elements(node, name_of_move(node), node.out(), turned);
}
void write_expand(NodeKernels& node) {
  copy_elements(node, name_of_move(node), node.out(), broadcast_to(node.in(0), node.out().dims));
}
void write_slice(NodeKernels& node) {
  const auto& op = node.op<ops::Slice>();
  Steps steps{op.starts, op.strides};
  steps.steps.resize(steps.starts.size(), 1);  // missing strides are 1
  copy_elements(node, name_of_move(node), node.out(), node.in(0), steps);
}

// -- several operands --

constexpr int kJoined = 6;  // most operands of one kernel

// One kernel for up to six operands. Later kernels do not touch what earlier ones have written.
void write_concat(NodeKernels& node) {
  if (is_empty(node)) return;
  const std::int64_t axis = node.op<ops::Concat>().axis;
  const Ref out = grouped_axes(as_words(node.out()), {axis});
  const std::size_t at = axis == 0 ? 0 : 1;
  std::vector<Ref> parts;
  for (int i = 0; i < node.num_inputs(); ++i)
    if (Ref r = node.in(i); !r.elements().is_static(0)) parts.push_back(grouped_axes(as_words(std::move(r)), {axis}));
  Dim begin(0);
  for (std::size_t first = 0; first < parts.size(); first += kJoined) {
    const std::size_t last = std::min(parts.size(), first + kJoined);
    std::vector<Ref> refs{out};
    refs.insert(refs.end(), parts.begin() + static_cast<std::ptrdiff_t>(first),
                parts.begin() + static_cast<std::ptrdiff_t>(last));
    Mover m(node, "concat", refs);
    const Ref to = m.in_units(out);
    std::vector<std::string> c = Mover::names(to);
    const std::string along = c[at];
    std::string text = m.split(to), value;
    const bool all = first == 0 && last == parts.size();
    const std::string kind = m.elements() * static_cast<int>(size_bytes(out.dtype)) == 16 ? "vec4<u32>" : "u32";
    text += concat_text("var y = ", all || first == 0 ? concat_text(kind, "()") : m.load(to, "i"), ";\n");
    c[at] = "along";
    std::string join = "if";
    if (first != 0) text += concat_text("if (", along, " < ", m.k().size(Size(begin)), ") {}\n"), join = "else if";
    for (std::size_t i = first; i < last; ++i) {
      const Ref part = m.in_units(parts[i]);
      const Dim end = begin + part.dims[at];
      text += concat_text(join, " (", along, " < ", m.k().size(Size(end)), ") {\nlet along = ", along, " - ",
                          m.k().size(Size(begin)), ";\ny = ", m.load(part, m.k().at(part, c)), ";\n}\n");
      begin = end;
      join = "else if";
    }
    m.finish(to, text, "y");
  }
}

void write_pad(NodeKernels& node) {
  if (is_empty(node)) return;
  const auto& op = node.op<ops::Pad>();
  std::vector<std::int64_t> special;
  for (std::size_t a = 0; a < op.low.size(); ++a)
    if (op.low[a] != 0 || op.high[a] != 0 || (!op.interior.empty() && op.interior[a] != 0))
      special.push_back(static_cast<std::int64_t>(a));
  const Ref x = grouped_axes(as_words(node.in(0)), special), out = grouped_axes(as_words(node.out()), special);
  Mover m(node, "pad", {out, x});
  const Ref to = m.in_units(out), from = m.in_units(x);
  const std::vector<std::string> c = Mover::names(to);
  std::vector<std::string> source = c;
  std::string text = m.split(to), inside = "true";
  for (std::int64_t axis : special) {
    const auto a = static_cast<std::size_t>(axis);
    const std::size_t group = group_of(axis, special);
    const std::int64_t step = (op.interior.empty() ? 0 : op.interior[a]) + 1, low = op.low[a];
    const std::string moved = concat_text("m", group), name = concat_text("s", group);
    text += concat_text("let ", moved, " = ", c[group], low >= 0 ? " - " : " + ", low >= 0 ? low : -low, "u;\n");
    text += concat_text("let ", name, " = ", moved, step == 1 ? "" : concat_text(" / ", step, "u"), ";\n");
    inside += concat_text(" && ", low > 0 ? concat_text(c[group], " >= ", low, "u && ") : "", name, " < ",
                          m.k().size(Size(from.dims[group])));
    if (step != 1) inside += concat_text(" && ", moved, " % ", step, "u == 0u");
    source[group] = name;
  }
  text += concat_text("var y = ", m.fill(m.words_of(node.in(1)), c.back()), ";\nif (", inside,
                      ") { y = ", m.load(from, m.k().at(from, source)), "; }\n");
  m.finish(to, text, "y");
}

void write_reverse(NodeKernels& node) {
  if (is_empty(node)) return;
  const std::vector<std::int64_t>& axes = node.op<ops::Reverse>().axes;
  const Ref x = grouped_axes(as_words(node.in(0)), axes), out = grouped_axes(as_words(node.out()), axes);
  Mover m(node, "reverse", {out, x});
  const Ref to = m.in_units(out), from = m.in_units(x);
  std::vector<std::string> source = Mover::names(to);
  for (std::int64_t axis : axes) {
    const std::size_t group = group_of(axis, axes);
    source[group] = concat_text("(", m.k().size(Size(from.dims[group])), " - 1u - ", source[group], ")");
  }
  const std::string text = concat_text(m.split(to), "let source = ", m.k().at(from, source), ";\n");
  m.finish(to, text, m.load(from, "source"));
}

// -- iota --

const char* iota_refuses(const Graph& g, NodeId id) {
  const DType t = g.shape(id).dtype();
  return refuse_unless(computes(t) || t == DType::I64 || t == DType::U64, "WGSL has no type for its dtype");
}
void write_iota(NodeKernels& node) {
  if (is_empty(node)) return;
  const auto axis = static_cast<int>(node.op<ops::Iota>().axis);
  Ref out = node.out();
  const DType t = out.dtype;
  const std::string_view type = computes(t) ? compute_type(t) : "u32";
  const bool wide = !computes(t);  // two words, the high one is 0
  out = reshaped(out, {out.extent(0, axis), out.dim(axis), out.extent(axis + 1, out.rank())});
  if (wide) out = as_words(out);
  KernelBuilder k(node, "iota");
  const std::string at =
      wide ? k.split("i", out.dims, {"c0", "c1", "c2", "c3"}) : k.split("i", out.dims, {"c0", "c1", "c2"});
  std::string value = concat_text(type, "(c1)");
  if (wide) value = "select(c1, 0u, c3 == 1u)";
  // Above 2^24 an f32 does not hold every integer. Rounding to odd makes the later rounding to half precision the only
  // one.
  if (t == DType::F16 || t == DType::BF16) k.use("u32_to_odd_f32"), value = "u32_to_odd_f32(c1)";
  finish_map(k, {out}, at, {value});
}

void write_dim_size(NodeKernels& node) {
  KernelBuilder k(node, "dim_size", 1);
  const Size extent(node.in(0).dim(static_cast<int>(node.op<ops::DimSize>().axis)));
  k << k.store_word(node.out(), "0u", k.size(extent)) << k.store_word(node.out(), "1u", "0u");
  k.finish(Dim(1));
}

// -- conversions between 64-bit and 32-bit integers --

bool is_64bit(DType t) { return t == DType::I64 || t == DType::U64; }
const char* words_refuse(const Graph& g, NodeId id) {
  const auto takes = [](DType t) { return is_64bit(t) || (computes(t) && !is_float(t)); };
  return refuse_unless(takes(in_shape(g, id, 0).dtype()) && takes(g.shape(id).dtype()),
                       "WGSL has no type for the dtype of an operand or result");
}
void write_cast_words(NodeKernels& node) {
  if (is_empty(node)) return;
  const Ref x = node.in(0), out = node.out();
  KernelBuilder k(node, "cast_words");
  if (is_64bit(x.dtype) && is_64bit(out.dtype)) return finish_map(k, {as_words(out)}, {}, {k.load_word(x, "i")});
  if (is_64bit(out.dtype)) {
    const bool has_sign = compute_type(x.dtype) == "i32";
    return finish_map(
        k, {as_words(out)}, concat_text("let x = ", k.load(x, "i >> 1u"), ";\n"),
        {has_sign ? "bitcast<u32>(select(x, x >> 31u, (i & 1u) == 1u))" : "select(x, 0u, (i & 1u) == 1u)"});
  }
  const std::string low = concat_text("let low = ", k.load_word(x, "i * 2u"), ";\n");
  if (out.dtype == DType::Bool)
    return finish_map(k, {out}, concat_text(low, "let high = ", k.load_word(x, "i * 2u + 1u"), ";\n"),
                      {"select(0u, 1u, (low | high) != 0u)"});
  finish_map(k, {out}, low, {compute_type(out.dtype) == "i32" ? "bitcast<i32>(low)" : "low"});
}

// -- Where, for dtypes that kernels do not compute with --

void write_where(NodeKernels& node) {
  if (is_empty(node)) return;
  const Dims dims = node.out().dims;
  const Ref out = as_words(node.out());
  KernelBuilder k(node, "where");
  Ref cond = broadcast_to(node.in(0), dims);
  while (cond.dims.size() < out.dims.size())
    cond.dims.push_back(out.dims[cond.dims.size()]), cond.strides.push_back(Size(0));
  ElementFunction f{
      {cond, as_words(broadcast_to(node.in(1), dims)), as_words(broadcast_to(node.in(2), dims))}, {out}, {}, {}};
  f.values = {"select(x2, x1, x0 != 0u)"};
  finish_elements(k, f);
}

constexpr KernelEntry move_row(OpKind kind, const char* name, void (*write)(NodeKernels&),
                               bool (*strided)(const Graph&, NodeId, int) = nullptr) {
  return {kind, name, packed_refuses, write, strided};
}
bool whole_overwrites(const Graph& g, NodeId id, int operand, int) {
  return operand != 0 && in_shape(g, id, operand).dims() == g.shape(id).dims();
}

constexpr KernelEntry kMoveEntries[] = {
    move_row(OpKind::StopGradient, "copy", write_copy, any_view),
    {OpKind::Reshape, "reshape", never_refuses, write_reshape, any_view},
    move_row(OpKind::Bitcast, "bitcast", write_bitcast),
    move_row(OpKind::Transpose, "transpose", write_transpose, any_view),
    move_row(OpKind::Expand, "expand", write_expand, any_view),
    move_row(OpKind::Slice, "slice", write_slice, any_view),
    move_row(OpKind::Concat, "concat", write_concat),
    move_row(OpKind::Pad, "pad", write_pad),
    move_row(OpKind::Reverse, "reverse", write_reverse),
    {OpKind::Iota, "iota", iota_refuses, write_iota},
    move_row(OpKind::DimSize, "dim_size", write_dim_size),
    {OpKind::Cast, "cast_words", words_refuse, write_cast_words},
    {OpKind::Where, "where", packed_refuses, write_where, where_strided, whole_overwrites},
};

}  // namespace

std::span<const KernelEntry> move_entries() { return kMoveEntries; }

}  // namespace rlx::codegen
