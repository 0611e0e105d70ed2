// Attention: a tile of scores in workgroup memory, weights computed in place, and the weighted values in named vectors.
#include "rlx/codegen/attention.h"

#include <algorithm>
#include <cmath>

#include "rlx/codegen/elements.h"
#include "rlx/codegen/entry.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/codegen/reductions.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"

namespace rlx::codegen {
namespace {

constexpr int kAttentionThreads = 64;
constexpr std::int64_t kKeysOfPart = 256, kMaxHeadDim = 256;
constexpr const char *kMinusInf = "f32_of(0xff800000u)", *kInf = "f32_of(0x7f800000u)", *kNan = "f32_of(0x7fc00000u)";

// q, k, v or y, and the strides of element (b, head, s, d).
struct Heads {
  Ref ref;
  std::int64_t depth;
  Size batch{Dim(0)}, row{Dim(0)}, head{Dim(0)};
  bool fours = false;  // four elements of a head are contiguous

  Heads(const NodeKernels& node, const Ref& r, HeadLayout layout, std::int64_t d) : ref(r), depth(d) {
    batch = r.stride(0);
    if (layout == HeadLayout::Merged) {
      row = r.stride(1), head = Size(Dim(d));
    } else {
      row = r.stride(layout == HeadLayout::HeadsFirst ? 2 : 1),
      head = r.stride(layout == HeadLayout::HeadsFirst ? 1 : 2);
    }
    const auto by_four = [](const Size& s) {
      return s.number().kind == Number::Kind::Extent && divided(s.number().dim, 4).has_value();
    };
    fours = d % 4 == 0 && r.stride(-1).is(1) && by_four(batch) && by_four(row) && by_four(head) &&
            node.is_aligned(r, 4 * size_bytes(r.dtype));
  }
  // The offset of a head's row.
  std::string at(KernelBuilder& k, std::string_view b, std::string_view h, std::string_view s) const {
    return InOrder{"(", b, ") * ", k.size(batch), " + (", s, ") * ", k.size(row), " + (", h, ") * ", k.size(head)};
  }
  // Elements d to d + 3 from `base` on. Elements beyond the depth repeat the last one.
  std::string four(KernelBuilder& k, const std::string& name, std::string_view base, std::string_view d) const {
    if (fours) return load_quad(k, ref, name + "_four", concat_text(base, " + ", d));
    std::string text = "vec4<f32>(";
    for (int e = 0; e < 4; ++e)
      text +=
          concat_text(e ? ", " : "", k.load(ref, concat_text(base, " + min(", d, " + ", e, "u, ", depth - 1, "u)")));
    return text + ")";
  }
};

struct Attention {
  explicit Attention(NodeKernels& of) : node(of), op(of.op<ops::Attention>()) {
    v_depth = op.v_head_dim.value_or(op.head_dim);
    const int axis = op.layout == HeadLayout::HeadsFirst ? 2 : 1;
    batches = node.in(0).dim(0), queries = node.in(0).dim(axis), keys = node.in(1).dim(axis);
    group = op.num_heads / op.kv_heads;
    rows = queries * Dim(group);
    int next = 3;
    if (op.mask == MaskKind::Custom || op.mask == MaskKind::Bias) {
      Ref m = node.in(next++);
      m.dims.insert(m.dims.begin(), static_cast<std::size_t>(4 - m.rank()), Dim(1));
      m.strides.insert(m.strides.begin(), m.dims.size() - m.strides.size(), Size(0));
      mask = broadcast_to(m, {batches, op.num_heads, queries, keys});
    }
    const OpDef& def = op_def(OpKind::Attention);
    for (int place = 0; place < def.inputs.count; ++place) {
      const std::string_view name = def.inputs.names[place];
      if (!op.present.has(place)) continue;
      if (name == "kv_len") kv_len = node.in(next++);
      if (name == "q_len") q_len = node.in(next++);
      if (name == "sinks") sinks = node.in(next++);
    }
    has_lse = node.is_read(1);
  }
  bool hides() const { return op.mask != MaskKind::None || kv_len || q_len; }

  NodeKernels& node;
  const ops::Attention& op;
  std::int64_t v_depth, group;
  Dim batches, queries, keys, rows;
  std::optional<Ref> mask, kv_len, q_len, sinks;
  bool has_lse;
};

// Statement `let name`: the length of batch entry b, at most `extent`.
std::string length_of(KernelBuilder& k, const std::optional<Ref>& lengths, const char* name, const Dim& extent) {
  const std::string most = k.size(Size(extent));
  if (!lengths) return concat_text("let ", name, " = ", most, ";\n");
  return concat_text("let ", name, " = u32(clamp(", k.load(*lengths, k.at(*lengths, {"b"})), ", 0, i32(", most,
                     ")));\n");
}

// fn score(raw, key, i, h, b, keys, queries): the score, -inf for a masked key, and +inf instead of NaN. Both +inf and
// NaN make the row NaN.
void define_score(KernelBuilder& k, const Attention& a) {
  for (const char* helper : {"f32_of", "is_nan"}) k.use(helper);
  const std::string hidden = concat_text("{ return ", kMinusInf, "; }\n");
  const double factor = a.op.scale ? *a.op.scale : 1 / std::sqrt(static_cast<double>(a.op.head_dim));
  std::string text = concat_text("if (key >= keys) ", hidden, "var s = raw * ", literal(k, DType::F32, factor), ";\n");
  if (a.op.softcap) {
    k.use("tanh_f32");
    const std::string cap = literal(k, DType::F32, *a.op.softcap);
    text += concat_text("s = ", cap, " * tanh_f32(s / ", cap, ");\n");
  }
  if (a.op.mask == MaskKind::Causal || a.op.mask == MaskKind::SlidingWindow) {
    text += concat_text("let behind = i32(i) + i32(keys) - i32(queries) - i32(key);\nif (behind < 0) ", hidden);
    if (a.op.mask == MaskKind::SlidingWindow)
      text += concat_text("if (behind > ", std::min<std::int64_t>(a.op.window, 1 << 30), ") ", hidden);
  }
  if (a.mask) {
    text += concat_text("let m = ", k.load(*a.mask, k.at(*a.mask, {"b", "h", "i", "key"})), ";\n");
    if (a.op.mask == MaskKind::Bias)
      text += concat_text("if (bitcast<u32>(m) == 0xff800000u) ", hidden, "s = s + m;\n");
    else if (is_float(a.mask->dtype))
      text += concat_text("if (is_nan(m) || m < 0.5) ", hidden);
    else
      text += concat_text("if (m == 0u) ", hidden);
  }
  k.global(concat_text("fn score(raw: f32, key: u32, i: u32, h: u32, b: u32, keys: u32, queries: u32) -> f32 {\n", text,
                       "return select(s, ", kInf, ", is_nan(s));\n}\n"));
}

// The value to subtract from scores in an exponent, where `top` is their maximum and no NaN.
const char* const kShift =
    "fn shift_of(top: f32) -> f32 { return select(top, 0.0, (bitcast<u32>(top) & 0x7fffffffu) == 0x7f800000u); }\n";

// Statements that finish a row: its maximum `top`, its sum `l` and `count` vectors acc0, .. of columns `column0`, ..
// become y and lse. The names b, h, i and queries are defined.
std::string end_row(KernelBuilder& k, const Attention& a, const Heads& y, int count, const std::string& writes_lse) {
  for (const char* helper : {"f32_of", "is_nan", "exp_f32", "log_f32"}) k.use(helper);
  k.global(kShift);
  std::string text;
  if (a.sinks) {
    std::string index = a.sinks->rank() == 2 ? k.at(*a.sinks, {"b", "h"}) : k.at(*a.sinks, {"h"});
    text += concat_text("let own = ", k.load(*a.sinks, index), ";\nlet sink = select(own, ", kInf, ", is_nan(own));\n");
    text +=
        "let highest = max(top, sink);\nlet off = shift_of(highest);\nlet factor = exp_f32(top - off);\n"
        "l = l * factor + exp_f32(sink - off);\ntop = highest;\n";
    for (int c = 0; c < count; ++c) text += concat_text("acc", c, " = acc", c, " * factor;\n");
  }
  text += concat_text("let bad = bitcast<u32>(top) == 0x7f800000u;\nlet none = i >= queries || (l == 0.0 && !bad);\n");
  text += concat_text("let scale = select(1.0 / select(l, 1.0, l == 0.0), ", kNan, ", bad);\n");
  for (int c = 0; c < count; ++c) {
    text += concat_text("if (column", c, " < ", a.v_depth, "u) {\nlet v = select(acc", c,
                        " * scale, vec4<f32>(), none);\nlet to = ", y.at(k, "b", "h", "i"), " + column", c, ";\n");
    if (y.fours) {
      text += store_quad(k, y.ref, "to", "v");
    } else {
      for (int e = 0; e < 4; ++e)
        text += concat_text("if (column", c, " + ", e, "u < ", a.v_depth, "u) {\n",
                            k.store(y.ref, concat_text("to + ", e, "u"), concat_text("v.", "xyzw"[e])), "}\n");
    }
    text += "}\n";
  }
  if (a.has_lse) {
    const Ref lse = a.node.out(1);
    text += concat_text(
        "if (", writes_lse, ") {\nvar lse = top + log_f32(select(l, 1.0, none));\nif (bad) { lse = ", kNan,
        "; }\nif (none) { lse = ", kMinusInf, "; }\n", k.store(lse, k.at(lse, {"b", "h", "i"}), "lse"), "}\n");
  }
  return text;
}

// The tile: `rows` query rows by `keys` keys, and `own_rows` rows per thread in the matmul with v.
struct Tile {
  int rows, keys, own_rows;
  int across() const { return kAttentionThreads / (rows / own_rows); }  // threads along the columns of v
};

// Adds the kernel that loops over the keys. It stores in `parts` [B, KV, parts, rows, vectors, 4] where given.
void write_walk(const Attention& a, const Tile& t, const Dim& count, const std::optional<Ref>& parts,
                const Ref& result) {
  NodeKernels& node = a.node;
  KernelBuilder k(node, concat_text(t.rows == 4 ? "attention_few_" : "attention_", dtype_name(node.out().dtype)),
                  kAttentionThreads);
  const Heads q(node, node.in(0), a.op.layout, a.op.head_dim), key(node, node.in(1), a.op.layout, a.op.head_dim),
      v(node, node.in(2), a.op.layout, a.v_depth), y(node, result, a.op.layout, a.v_depth);
  const int vectors = static_cast<int>((a.v_depth + 3) / 4), mine = (vectors + t.across() - 1) / t.across();
  const int quads = t.rows / 4, lanes = kAttentionThreads / quads, own_keys = t.keys / lanes,
            share = kAttentionThreads / t.rows;
  const Dim tiles = floordiv(a.rows + Dim(t.rows - 1), Dim(t.rows));
  define_score(k, a);
  k.use("exp_f32");
  k.global(kShift);
  k.global(concat_text("var<workgroup> scores: array<f32, ", t.rows * t.keys, ">;\nvar<workgroup> factors: array<f32, ",
                       t.rows, ">;\n"));
  const std::string rows = k.size(Size(a.rows)), group = concat_text(a.group, "u"), all_keys = k.size(Size(a.keys));
  k << "let first = GROUP % " << k.size(Size(tiles)) << concat_text(" * ", t.rows, "u;\nlet rest = GROUP / ")
    << k.size(Size(tiles)) << ";\n";
  if (parts)
    k << "let part = rest % " << k.size(Size(count)) << ";\nlet pair = rest / " << k.size(Size(count)) << ";\n";
  else
    k << "let pair = rest;\n";
  k << concat_text("let b = pair / ", a.op.kv_heads, "u;\nlet kv = pair % ", a.op.kv_heads, "u;\n");
  k << length_of(k, a.kv_len, "keys", a.keys) << length_of(k, a.q_len, "queries", a.queries);
  // The range of keys that some row of the tile attends to.
  k << "var begin = 0u;\nvar end = keys;\n";
  if (a.op.mask == MaskKind::Causal || a.op.mask == MaskKind::SlidingWindow) {
    k << concat_text("end = u32(clamp(i32(min(first + ", t.rows - 1, "u, ", rows, " - 1u) / ", group,
                     ") + i32(keys) - i32(queries) + 1, 0, i32(keys)));\n");
    if (a.op.mask == MaskKind::SlidingWindow)
      k << concat_text("begin = u32(max(i32(first / ", group, ") + i32(keys) - i32(queries) - ",
                       std::min<std::int64_t>(a.op.window, 1 << 30), ", 0));\n");
  }
  if (parts && !count.is_static(1))
    k << concat_text("begin = max(begin, part * ", kKeysOfPart, "u);\nend = min(end, (part + 1u) * ", kKeysOfPart,
                     "u);\n");
  if (a.kv_len || a.q_len) {  // the lengths are read from memory, so compilers must be told that the bounds are uniform
    k.global("var<workgroup> bounds: vec2<u32>;\n");
    k << "if (LOCAL == 0u) { bounds = vec2<u32>(begin, end); }\nlet agreed = workgroupUniformLoad(&bounds);\n";
  } else {
    k << "let agreed = vec2<u32>(begin, end);\n";
  }
  // The rows and keys of this thread's scores.
  k << concat_text("let quad = LOCAL % ", quads, "u;\nlet lane = LOCAL / ", quads, "u;\n");
  for (int e = 0; e < 4; ++e)
    k << concat_text(
        "let r", e, " = min(first + quad * 4u + ", e, "u, ", rows, " - 1u);\nlet q", e, " = ",
        q.at(k, "b", concat_text("kv * ", group, " + r", e, " % ", group), concat_text("r", e, " / ", group)), ";\n");
  // The row of this thread's weights, and the columns of its values.
  k << concat_text("let row = LOCAL % ", t.rows, "u;\nlet slice = LOCAL / ", t.rows, "u;\nvar highest = ", kMinusInf,
                   ";\nvar mass = 0.0;\n");
  k << concat_text("let base = LOCAL / ", t.across(), "u * ", t.own_rows, "u;\n");
  for (int c = 0; c < mine; ++c)
    k << concat_text("let column", c, " = (LOCAL % ", t.across(), "u + ", c * t.across(), "u) * 4u;\n");
  for (int r = 0; r < t.own_rows; ++r)
    for (int c = 0; c < mine; ++c) k << concat_text("var o", r, "_", c, " = vec4<f32>();\n");
  k << concat_text("for (var start = agreed.x; start < agreed.y; start += ", t.keys, "u) {\n");
  for (int c = 0; c < own_keys; ++c) {
    k << concat_text("let t", c, " = ",
                     key.at(k, "b", "kv", concat_text("min(start + lane + ", c * lanes, "u, ", all_keys, " - 1u)")),
                     ";\n");
    for (int e = 0; e < 4; ++e) k << concat_text("var s", e, "_", c, " = 0.0;\n");
  }
  const bool odd = a.op.head_dim % 4 != 0;
  k << concat_text("for (var d = 0u; d < ", a.op.head_dim, "u; d += ", odd ? 1 : 4, "u) {\n");
  const auto piece = [&](const Heads& h, const std::string& name, const std::string& from) {
    return odd ? k.load(h.ref, concat_text(from, " + d")) : h.four(k, name, from, "d");
  };
  for (int e = 0; e < 4; ++e) k << concat_text("let a", e, " = ", piece(q, "q", concat_text("q", e)), ";\n");
  for (int c = 0; c < own_keys; ++c) {
    k << concat_text("let w", c, " = ", piece(key, "k", concat_text("t", c)), ";\n");
    for (int e = 0; e < 4; ++e)
      k << concat_text("s", e, "_", c, " = s", e, "_", c,
                       odd ? concat_text(" + a", e, " * w", c) : concat_text(" + dot(a", e, ", w", c, ")"), ";\n");
  }
  k << "}\n";
  for (int c = 0; c < own_keys; ++c)
    for (int e = 0; e < 4; ++e)
      k << concat_text("scores[(lane + ", c * lanes, "u) * ", t.rows, "u + quad * 4u + ", e, "u] = s", e, "_", c,
                       ";\n");
  k << concat_text("for (var x = 0u; x < ", 4 * own_keys, "u; x++) {\nlet j = lane + x / 4u * ", lanes,
                   "u;\nlet at = j * ", t.rows, "u + quad * 4u + x % 4u;\nlet r = min(first + quad * 4u + x % 4u, ",
                   rows,
                   " - 1u);\nlet n = start + j;\nscores[at] = score(scores[at], select(n, keys, n >= agreed.y), r / ",
                   group, ", kv * ", group, " + r % ", group, ", b, keys, queries);\n}\nworkgroupBarrier();\n");
  // The weights, relative to the new maximum.
  k << concat_text("var top = highest;\nfor (var j = 0u; j < ", t.keys, "u; j++) { top = max(top, scores[j * ", t.rows,
                   "u + row]); }\n");
  if (share > 1) k << "workgroupBarrier();\n";
  k << concat_text(
      "let off = shift_of(top);\nlet factor = exp_f32(highest - off);\nhighest = top;\nmass = mass * factor;\nfor (var "
      "x = 0u; x < ",
      t.keys / share, "u; x++) {\nlet at = (slice * ", t.keys / share, "u + x) * ", t.rows,
      "u + row;\nlet p = exp_f32(scores[at] - off);\nscores[at] = p;\nmass = mass + p;\n}\nif (slice == 0u) { "
      "factors[row] = factor; }\nworkgroupBarrier();\n");
  for (int r = 0; r < t.own_rows; ++r) {
    k << concat_text("let f", r, " = factors[base + ", r, "u];\n");
    for (int c = 0; c < mine; ++c) k << concat_text("o", r, "_", c, " = o", r, "_", c, " * f", r, ";\n");
  }
  k << concat_text("for (var j = 0u; j < min(", t.keys,
                   "u, agreed.y - start); j++) {\nlet key_row = ", v.at(k, "b", "kv", "start + j"), ";\n");
  for (int r = 0; r < t.own_rows; ++r)
    k << concat_text("let p", r, " = scores[j * ", t.rows, "u + base + ", r, "u];\n");
  for (int c = 0; c < mine; ++c) {
    const int last = v.fours ? static_cast<int>(a.v_depth) - 4 : static_cast<int>(a.v_depth) - 1;
    k << concat_text("let x", c, " = ", v.four(k, "v", "key_row", concat_text("min(column", c, ", ", last, "u)")),
                     ";\n");
    for (int r = 0; r < t.own_rows; ++r) {
      const std::string product = concat_text("p", r, " * x", c);
      k << concat_text("o", r, "_", c, " = o", r, "_", c, " + ",
                       a.hides() ? concat_text("select(vec4<f32>(), ", product, ", p", r, " > 0.0)") : product, ";\n");
    }
  }
  k << "}\nworkgroupBarrier();\n}\n";
  // The threads of a row have the same maximum, and each has a part of the sum.
  k << concat_text("scores[slice * ", t.rows,
                   "u + row] = mass;\nif (slice == 0u) { factors[row] = highest; }\nworkgroupBarrier();\n");
  for (int r = 0; r < t.own_rows; ++r) {
    k << concat_text("{\nlet r = first + base + ", r, "u;\nif (r < ", rows, ") {\nvar top = factors[base + ", r,
                     "u];\nvar l = 0.0;\nfor (var s = 0u; s < ", share, "u; s++) { l = l + scores[s * ", t.rows,
                     "u + base + ", r, "u]; }\n");
    if (parts) {
      const std::string at =
          concat_text("((pair * ", k.size(Size(count)), " + part) * ", rows, " + r) * ", vectors + 1, "u");
      k << "let at = " << at << ";\n";
      for (int c = 0; c < mine; ++c)
        k << concat_text("if (column", c, " < ", 4 * vectors, "u) {\n",
                         k.store4(*parts, concat_text("at + column", c, " / 4u"), concat_text("o", r, "_", c)), "}\n");
      k << concat_text("if (LOCAL % ", t.across(), "u == 0u) {\n",
                       k.store4(*parts, concat_text("at + ", vectors, "u"), "vec4<f32>(top, l, 0.0, 0.0)"), "}\n");
    } else {
      k << concat_text("let i = r / ", group, ";\nlet h = kv * ", group, " + r % ", group, ";\n");
      for (int c = 0; c < mine; ++c) k << concat_text("var acc", c, " = o", r, "_", c, ";\n");
      k << end_row(k, a, y, mine, concat_text("LOCAL % ", t.across(), "u == 0u"));
    }
    k << "}\n}\n";
  }
  k.finish(tiles * a.batches * Dim(a.op.kv_heads) * count);
}

// Adds the kernel that merges the parts of each row, in order.
void write_merge(const Attention& a, const Dim& count, const Ref& parts, const Ref& result) {
  NodeKernels& node = a.node;
  KernelBuilder k(node, "attention_merge", kAttentionThreads);
  for (const char* helper : {"f32_of", "exp_f32"}) k.use(helper);
  k.global(kShift);
  const Heads y(node, result, a.op.layout, a.v_depth);
  const int vectors = static_cast<int>((a.v_depth + 3) / 4);
  const Dim threads = a.batches * Dim(a.op.kv_heads) * a.rows * Dim(vectors);
  const std::string rows = k.size(Size(a.rows)), group = concat_text(a.group, "u"), many = k.size(Size(count));
  k << "if (THREAD >= " << k.size(Size(threads))
    << concat_text(") { return; }\nlet column0 = THREAD % ", vectors, "u * 4u;\nlet rest = THREAD / ", vectors, "u;\n")
    << "let r = rest % " << rows << ";\nlet pair = rest / " << rows << ";\n"
    << concat_text("let b = pair / ", a.op.kv_heads, "u;\nlet i = r / ", group, ";\nlet h = pair % ", a.op.kv_heads,
                   "u * ", group, " + r % ", group, ";\n")
    << length_of(k, a.q_len, "queries", a.queries);
  const std::string at = concat_text("((pair * ", many, " + part) * ", rows, " + r) * ", vectors + 1, "u");
  k << "var top = " << kMinusInf << ";\nfor (var part = 0u; part < " << many << "; part++) { top = max(top, "
    << k.load4(parts, concat_text(at, " + ", vectors, "u")) << ".x); }\n"
    << "let shift = shift_of(top);\nvar l = 0.0;\nvar acc0 = vec4<f32>();\nfor (var part = 0u; part < " << many
    << "; part++) {\nlet at = " << at << ";\nlet own_row = " << k.load4(parts, concat_text("at + ", vectors, "u"))
    << ";\nlet weight = exp_f32(own_row.x - shift);\nl = l + own_row.y * weight;\nacc0 = acc0 + "
    << k.load4(parts, "at + column0 / 4u") << " * weight;\n}\n";
  k << end_row(k, a, y, 1, "column0 == 0u");
  k.finish_threads(threads);
}

}  // namespace

const char* attention_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_dtypes(g, id)) return why;
  const auto& op = g.node(id).op.as<ops::Attention>();
  return refuse_unless(op.head_dim <= kMaxHeadDim && op.v_head_dim.value_or(op.head_dim) <= kMaxHeadDim,
                       "its heads have more than 256 elements");
}

void write_attention(NodeKernels& node) {
  const Attention a(node);
  const Ref out = node.out();
  if (out.elements().is_static(0)) return;
  const bool few = node.upper(a.rows) <= kFewRows;
  const Tile tile = few ? Tile{4, 64, 1} : Tile{32, 32, 4};
  // Narrow results are stored in whole words, or through scratch.
  const bool direct = size_bytes(out.dtype) == 4 || Heads(node, out, a.op.layout, a.v_depth).fours;
  const Ref y = direct ? out : node.scratch(DType::F32, out.dims);
  const bool cut = few && node.upper(a.keys) > 2 * kKeysOfPart;
  const int bound = node.num_inputs() + 1 + (a.has_lse ? 1 : 0);
  if (cut || bound > node.dialect().max_bindings) {
    const Dim count = cut ? floordiv(a.keys + Dim(kKeysOfPart - 1), Dim(kKeysOfPart)) : Dim(1);
    const Ref parts = node.scratch(DType::F32, {a.batches, a.op.kv_heads, count, a.rows, (a.v_depth + 3) / 4 + 1, 4});
    write_walk(a, tile, count, parts, y);
    write_merge(a, count, parts, y);
  } else {
    write_walk(a, tile, 1, std::nullopt, y);
  }
  if (!direct) pack(node, out, y);
}

}  // namespace rlx::codegen
