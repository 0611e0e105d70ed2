// Kernel entries: attention, rotary position embedding, and the gate of two halves.
#include "rlx/codegen/attention.h"
#include "rlx/codegen/entry.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/ir/rewrite/symbol_order.h"

namespace rlx::codegen {
namespace {

bool attention_strided(const Graph&, NodeId, int) { return true; }

std::vector<std::string> axis_names(int rank) {
  std::vector<std::string> names;
  for (int a = 0; a < rank; ++a) names.push_back(concat_text("c", a));
  return names;
}

// Element i of the result, from the pair of elements that it belongs to.
void write_rope(NodeKernels& node) {
  const auto& op = node.op<ops::Rope>();
  const Ref x = node.in(0), cos = node.in(1), sin = node.in(2), out = node.out();
  if (out.elements().is_static(0)) return;
  map_elements(node, concat_text("rope_", dtype_name(out.dtype)), {out}, [&](KernelBuilder& k, const std::string& i) {
    std::vector<std::string> at = axis_names(out.rank());
    k << k.split(i, out.dims, at);
    const std::string depth = concat_text(op.head_dim, "u"), last = at.back(), half = concat_text(op.n_rot / 2, "u");
    k << "let d = " << last << " % " << depth << ";\nvar pair = 0u;\nvar other = d;\nvar second = false;\n";
    k << concat_text("if (d < ", op.n_rot, "u) {\n");
    if (op.pairing == RopePairing::Half)
      k << "second = d >= " << half << ";\npair = d % " << half << ";\nother = select(d + " << half << ", d - " << half
        << ", second);\n";
    else
      k << "second = (d & 1u) == 1u;\npair = d >> 1u;\nother = d ^ 1u;\n";
    k << "}\n";
    const std::string s = op.layout == HeadLayout::HeadsFirst ? at[2] : at[1];
    std::string row = s;
    if (op.present.has(3)) {
      const Ref positions = node.in(3);
      const std::string index = positions.rank() == 2 ? k.at(positions, {at[0], s}) : k.at(positions, {s});
      k << "let place = u32(clamp(" << k.load(positions, index) << ", 0, i32(" << k.size(Size(cos.dim(-2)))
        << ") - 1));\n";
      row = "place";
    }
    const auto table = [&](const Ref& t) {
      return k.load(t, t.rank() == 3 ? k.at(t, {at[0], row, "pair"}) : k.at(t, {row, "pair"}));
    };
    const std::string mine = k.load(x, k.at(x, at));
    at.back() = concat_text("(", last, " - d + other)");
    k << "let own = " << mine << ";\nlet partner = " << k.load(x, k.at(x, at)) << ";\nlet angle = " << table(sin)
      << ";\nlet part = partner * select(" << (op.inverse ? "angle, -angle" : "-angle, angle") << ", second);\n";
    return std::vector<std::string>{concat_text("select(own, own * ", table(cos), " + part, d < ", op.n_rot, "u)")};
  });
}

const char* swiglu_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_dtypes(g, id)) return why;
  return refuse_unless(g.shape(id).dtype() == in_dtype(g, id, 0), "its result is cast");
}

void write_swiglu(NodeKernels& node) {
  const Ref x = node.in(0), out = node.out();
  if (out.elements().is_static(0)) return;
  map_elements(node, concat_text("swiglu_", dtype_name(out.dtype)), {out}, [&](KernelBuilder& k, const std::string& i) {
    std::vector<std::string> at = axis_names(out.rank());
    k << k.split(i, out.dims, at);
    const std::string first = k.load(x, k.at(x, at));
    at.back() = concat_text("(", at.back(), " + ", k.size(Size(out.dim(-1))), ")");
    k << "let first_half = " << first << ";\nlet second_half = " << k.load(x, k.at(x, at)) << ";\n";
    const bool gate_first = node.op<ops::FusedSwiGLU>().gate_first;
    k.use("silu_f32");
    k << "let gate = " << settled(k, out.dtype, gate_first ? "silu_f32(first_half)" : "silu_f32(second_half)") << ";\n";
    return std::vector<std::string>{gate_first ? "second_half * gate" : "first_half * gate"};
  });
}

// With more than kFewRows rows a thread loops over all keys in tiles of 32: three loops over the keys and one along the
// head.
Dim attention_steps(const Graph& g, NodeId id, const Dialect&) {
  const auto& op = g.node(id).op.as<ops::Attention>();
  const int axis = op.layout == HeadLayout::HeadsFirst ? 2 : 1;
  const Dim rows = in_shape(g, id, 0).dim(axis) * Dim(op.num_heads / op.kv_heads), keys = in_shape(g, id, 1).dim(axis);
  const std::int64_t most = bounds_of(g, rows).max;
  if (most <= kFewRows) return floordiv(keys, Dim(128)) + Dim(512);  // parts of 256 keys, merged in two loops
  return keys * Dim(4) + floordiv(keys * Dim(op.head_dim), Dim(32)) + Dim(256);
}

constexpr KernelEntry kAttentionEntries[] = {
    {OpKind::Attention, "attention", attention_refuses, write_attention, attention_strided, nullptr, nullptr, 0b10,
     widened_bytes, attention_steps},
    {OpKind::Rope, "rope", refuse_dtypes, write_rope, attention_strided},
    {OpKind::FusedSwiGLU, "swiglu", swiglu_refuses, write_swiglu, attention_strided},
};

}  // namespace

std::span<const KernelEntry> attention_entries() { return kAttentionEntries; }

}  // namespace rlx::codegen
