// Kernel entries: norms and softmax.
#include <algorithm>

#include "rlx/codegen/elements.h"
#include "rlx/codegen/entry.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/codegen/moves.h"
#include "rlx/codegen/reductions.h"
#include "rlx/codegen/row_kernels.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::codegen {
namespace {

// The common description of the norms.
struct Norm {
  std::vector<int> axes;
  double eps = 0;
  bool centred = false;
  std::vector<Ref> summands;  // one value, or the values that are added first
  const Ref* bias = nullptr;  // a vector that is added too
  const Ref *gamma = nullptr, *beta = nullptr;
  int sum = -1, mean = -1, rstd = -1;  // indices of results
};

void write_norm(NodeKernels& node, const char* name, const Norm& n) {
  const Ref out = node.out();
  if (out.elements().is_static(0)) {
    // Rows without elements have statistics of 0 / 0.
    for (int r : {n.mean, n.rstd})
      if (r >= 0 && node.is_read(r) && !node.out(r).elements().is_static(0))
        map_elements(node, "no_elements", {node.out(r)}, [](KernelBuilder& k, const std::string&) {
          k.use("f32_of");
          return std::vector<std::string>{"f32_of(0x7fc00000u)"};
        });
    if (out.elements().is_static(0)) return;
  }
  const bool keeps_sum = n.sum >= 0 && node.is_read(n.sum);
  std::vector<Ref> with(n.summands.begin() + 1, n.summands.end());
  with.push_back(out);
  if (keeps_sum) with.push_back(node.out(n.sum));
  // Narrow results are stored in whole words, or through scratch.
  const auto in_words = [&](const Ref& r) { return size_bytes(r.dtype) == 4; };
  bool fours = RowKernel(node, "", n.summands[0], n.axes, with).by_fours();
  const Ref y = fours || in_words(out) ? out : node.scratch(DType::F32, out.dims);
  const Ref sum = !keeps_sum ? Ref{} : fours || in_words(out) ? node.out(n.sum) : node.scratch(DType::F32, out.dims);
  RowKernel rows(node, concat_text(name, "_", dtype_name(out.dtype)), n.summands[0], n.axes, with);
  KernelBuilder& k = rows.builder();
  const std::string& type = rows.type();
  // The element. Each sum is rounded.
  std::string element = concat_text("let x0 = ", rows.load(n.summands[0], "x0"), ";\n"), x = "x0";
  const auto add = [&](const std::string& name_of, const std::string& loaded) {
    element +=
        concat_text("let ", name_of, "_own = ", loaded, ";\nlet ", name_of, "_sum = ", x, " + ", name_of, "_own;\n");
    x = rows.lanes(name_of + "_sum", [&](const std::string& v) { return settled(k, out.dtype, v); });
    element += concat_text("let ", name_of, " = ", x, ";\n");
    x = name_of;
  };
  for (std::size_t i = 1; i < n.summands.size(); ++i)
    add(concat_text("x", i), rows.load(n.summands[i], concat_text("x", i)));
  if (n.bias) add("xb", rows.load_vector(*n.bias, "xb"));
  const std::string count = concat_text("f32(", k.size(Size(rows.length())), ")");
  std::string stored = keeps_sum ? rows.store(sum, "kept", x) : std::string();
  std::string from = x;
  if (n.centred) {
    k << "var total = " << type << "();\n" << rows.each(element + concat_text("total = total + ", x, ";\n") + stored);
    k << "let mean = " << rows.sum("total") << " / " << count << ";\n";
    from = concat_text("(", x, " - mean)");
    stored.clear();
  }
  k << "var squares = " << type << "();\n"
    << rows.each(element + concat_text("let d = ", from, ";\nsquares = squares + d * d;\n") + stored);
  k << "let rstd = 1.0 / sqrt(" << rows.sum("squares") << " / " << count << " + " << literal(k, DType::F32, n.eps)
    << ");\n";
  std::string result = concat_text(from, " * rstd");
  if (n.gamma) result += concat_text(" * ", rows.load_vector(*n.gamma, "gamma"));
  if (n.beta) result += concat_text(" + ", rows.load_vector(*n.beta, "beta"));
  k << rows.each(element + concat_text("let y = ", result, ";\n") + rows.store(y, "y", "y"));
  if (n.mean >= 0 && node.is_read(n.mean)) k << rows.store_of_row(node.out(n.mean), "mean");
  if (n.rstd >= 0 && node.is_read(n.rstd)) k << rows.store_of_row(node.out(n.rstd), "rstd");
  rows.finish();
  if (y.scratch >= 0) pack(node, out, y);
  if (keeps_sum && sum.scratch >= 0) pack(node, node.out(n.sum), sum);
}

// The optional operands, by index from `first` on; null where absent.
template <class Op>
std::vector<std::optional<Ref>> optional_operands(NodeKernels& node, int first, int last) {
  std::vector<std::optional<Ref>> out;
  int next = first;
  for (int place = first; place <= last; ++place)
    out.push_back(node.op<Op>().present.has(place) ? std::optional<Ref>(node.in(next++)) : std::nullopt);
  return out;
}
const Ref* pointer_to(const std::optional<Ref>& r) { return r ? &*r : nullptr; }

template <class Op, bool Centred>
void write_plain_norm(NodeKernels& node) {
  const auto& op = node.op<Op>();
  const auto rest = optional_operands<Op>(node, 1, 2);
  Norm n;
  n.axes.assign(op.axes.begin(), op.axes.end());
  n.eps = op.eps, n.centred = Centred;
  n.summands = {node.in(0)};
  n.gamma = pointer_to(rest[0]), n.beta = pointer_to(rest[1]);
  n.mean = Centred ? 1 : -1, n.rstd = Centred ? 2 : 1;
  write_norm(node, Centred ? "layer_norm" : "rms_norm", n);
}

// The sum in a separate kernel, where a single kernel would have too many bindings.
void add_up_first(NodeKernels& node, Norm& n) {
  const Ref out = node.out();
  const bool keeps_sum = node.is_read(n.sum);
  int bound = node.num_inputs() + 1;
  for (int r = 1; r < static_cast<int>(node.node().num_results()); ++r) bound += node.is_read(r) ? 1 : 0;
  if (bound <= node.dialect().max_bindings || out.elements().is_static(0)) return;
  const Ref sum = keeps_sum ? node.out(n.sum) : node.scratch(out.dtype, out.dims);
  KernelBuilder k(node, concat_text("residual_", dtype_name(out.dtype)));
  ElementFunction f{n.summands, {sum}, {}, {}, false};
  std::string x = settled(k, out.dtype, "x0 + x1");
  if (n.bias) {
    f.operands.push_back(broadcast_to(*n.bias, out.dims));
    x = concat_text(x, " + x2");
  }
  f.statements = concat_text("let sum = ", x, ";\n");
  f.values = {"sum"};
  finish_elements(k, f);
  n.summands = {sum};
  n.bias = nullptr;
  n.sum = -1;
}

template <class Op, bool Centred>
void write_residual_norm(NodeKernels& node) {
  const auto rest = optional_operands<Op>(node, 2, 4);
  Norm n;
  n.axes = {node.out().rank() - 1};
  n.eps = node.op<Op>().eps, n.centred = Centred;
  n.summands = {node.in(0), node.in(1)};
  n.bias = pointer_to(rest[0]), n.gamma = pointer_to(rest[1]), n.beta = pointer_to(rest[2]);
  n.sum = 1, n.mean = Centred ? 2 : -1, n.rstd = Centred ? 3 : 2;
  add_up_first(node, n);
  write_norm(node, Centred ? "residual_layer_norm" : "residual_rms_norm", n);
}

void write_softmax(NodeKernels& node) {
  const Ref x = node.in(0), out = node.out();
  if (out.elements().is_static(0)) return;
  const std::vector<int> axes{static_cast<int>(node.op<ops::Softmax>().axis)};
  const bool fours = RowKernel(node, "", x, axes, {out}).by_fours();
  const Ref y = fours || size_bytes(out.dtype) == 4 ? out : node.scratch(DType::F32, out.dims);
  RowKernel rows(node, concat_text("softmax_", dtype_name(out.dtype)), x, axes, {out});
  KernelBuilder& k = rows.builder();
  for (const char* helper : {"f32_of", "is_nan", "exp_f32"}) k.use(helper);
  // A NaN makes the maximum +inf, and both make the row NaN. Differences of infinities are never computed.
  const std::string number = concat_text("let x = ", rows.load(x, "x"), ";\n");
  k << "var top = " << rows.type() << "(f32_of(0xff800000u));\n"
    << rows.each(number + concat_text("top = max(top, ",
                                      rows.lanes("x",
                                                 [](const std::string& v) {
                                                   return concat_text("select(", v, ", f32_of(0x7f800000u), is_nan(", v,
                                                                      "))");
                                                 }),
                                      ");\n"));
  k << "let most = " << rows.largest("top")
    << ";\nlet bits = bitcast<u32>(most);\nlet shift = select(most, 0.0, bits == 0xff800000u);\n";
  const std::string power = concat_text(
      "let e = ", rows.lanes("d", [](const std::string& v) { return concat_text("exp_f32(", v, ")"); }), ";\n");
  k << "var total = " << rows.type() << "();\n"
    << rows.each(number + "let d = x - shift;\n" + power + "total = total + e;\n");
  k << "let all = " << rows.sum("total")
    << ";\nvar scale = 1.0 / select(all, 1.0, all == 0.0);\nif (bits == 0x7f800000u) { scale = f32_of(0x7fc00000u); "
       "}\n";
  k << rows.each(number + "let d = x - shift;\n" + power + "let y = e * scale;\n" + rows.store(y, "y", "y"));
  rows.finish();
  if (y.scratch >= 0) pack(node, out, y);
}

bool norm_strided(const Graph& g, NodeId id, int operand) {
  return g.shape(g.node(id).inputs[0]).rank() > 0 && operand >= 0;
}
// An element is read before it is written at the same place, after all other reads of its row.
bool norm_in_place(const Graph& g, NodeId id, int operand, int result) {
  const std::vector<Value>& in = g.node(id).inputs;
  const Value& v = in[static_cast<std::size_t>(operand)];
  return result == 0 && g.shape(v) == g.shape(id) && std::count(in.begin(), in.end(), v) == 1;
}

// A row is read three times.
template <class Op>
Dim row_steps(const Graph& g, NodeId id, const Dialect&) {
  const Shape& x = in_shape(g, id, 0);
  Dim n(1);
  if constexpr (std::is_same_v<Op, ops::Softmax>)
    n = x.dim(static_cast<int>(g.node(id).op.as<Op>().axis));
  else if constexpr (requires(const Op& op) { op.axes; })
    for (std::int64_t a : g.node(id).op.as<Op>().axes) n = n * x.dim(static_cast<int>(a));
  else
    n = x.dim(-1);
  return floordiv(n, Dim(kRasteriserThreads)) * Dim(3) + Dim(64);
}

constexpr KernelEntry kNormEntries[] = {
    {OpKind::LayerNorm, "layer_norm", refuse_dtypes, write_plain_norm<ops::LayerNorm, true>, norm_strided,
     norm_in_place, nullptr, 0b110, widened_bytes, row_steps<ops::LayerNorm>},
    {OpKind::RmsNorm, "rms_norm", refuse_dtypes, write_plain_norm<ops::RmsNorm, false>, norm_strided, norm_in_place,
     nullptr, 0b10, widened_bytes, row_steps<ops::RmsNorm>},
    {OpKind::FusedResidualLN, "residual_layer_norm", refuse_dtypes, write_residual_norm<ops::FusedResidualLN, true>,
     norm_strided, norm_in_place, nullptr, 0b1110, widened_bytes, row_steps<ops::FusedResidualLN>},
    {OpKind::FusedResidualRmsNorm, "residual_rms_norm", refuse_dtypes,
     write_residual_norm<ops::FusedResidualRmsNorm, false>, norm_strided, norm_in_place, nullptr, 0b110, widened_bytes,
     row_steps<ops::FusedResidualRmsNorm>},
    {OpKind::Softmax, "softmax", refuse_dtypes, write_softmax, norm_strided, norm_in_place, nullptr, 0, widened_bytes,
     row_steps<ops::Softmax>},
};

}  // namespace

std::span<const KernelEntry> norm_entries() { return kNormEntries; }

}  // namespace rlx::codegen
