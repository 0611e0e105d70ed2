// Kernel entries of convolutions: a thread computes one element of the result.
#include <algorithm>

#include "rlx/codegen/entries/conv.h"
#include "rlx/codegen/entry.h"
#include "rlx/ir/math/conv_geometry.h"

namespace rlx::codegen {
namespace {

constexpr std::int64_t kMostPlaces = std::int64_t{1} << 30;  // fits i32, with room for a window

int conv_place(std::int64_t axis) { return static_cast<int>(axis); }

const char* conv_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_dtypes(g, id)) return why;
  const Shape &x = in_shape(g, id, 0), &w = in_shape(g, id, 1), &y = g.shape(id);
  for (const ConvAxis& a : conv_geometry(g.node(id).op.as<ops::Conv>(), x.rank()).space) {
    double reach = static_cast<double>(std::max(std::abs(a.low), std::abs(a.high)));
    const auto add = [&](const Dim& d, std::int64_t step) {
      reach += d.is_static() ? static_cast<double>(d.value()) * static_cast<double>(step) : 0;
    };
    add(x.dim(conv_place(a.x)), a.lhs_dilation);
    add(w.dim(conv_place(a.w)), a.rhs_dilation);
    add(y.dim(conv_place(a.y)), a.stride);
    if (reach > static_cast<double>(kMostPlaces))
      return "its padded extents exceed the 2^30 positions that the kernel supports";
  }
  return nullptr;
}

void write_conv(NodeKernels& node) {
  const Ref out = node.out(), x = node.in(0), w = node.in(1);
  if (out.elements().is_static(0)) return;
  const ConvGeometry g = conv_geometry(node.op<ops::Conv>(), out.rank());
  const std::string type(compute_type(out.dtype));
  map_elements(node, "conv", {out}, [&](KernelBuilder& k, const std::string& i) {
    std::vector<std::string> at, x_at(out.dims.size()), w_at(out.dims.size());
    for (std::size_t a = 0; a < out.dims.size(); ++a) at.push_back(concat_text("c", a));
    const std::string& feature = at[static_cast<std::size_t>(g.y_feature)];
    const std::string& member = at[static_cast<std::size_t>(g.y_batch)];
    const Size depth(w.dim(conv_place(g.w_in))), batch(out.dim(conv_place(g.y_batch)));
    k << k.split(i, out.dims, at);
    std::string group = "0u";
    if (const std::int64_t groups = g.groups * g.batch_groups; groups > 1) {
      k << "let group = " << feature << " / (" << k.size(Size(out.dim(conv_place(g.y_feature)))) << " / "
        << concat_text(groups) << "u);\n";
      group = "group";
    }
    const bool by_batch = g.batch_groups > 1, by_feature = g.groups > 1;
    x_at[static_cast<std::size_t>(g.x_batch)] =
        by_batch ? InOrder("(group * ", k.size(batch), " + ", member, ")") : member;
    x_at[static_cast<std::size_t>(g.x_feature)] =
        by_feature ? std::string(InOrder("(group * ", k.size(depth), " + f)")) : "f";
    w_at[static_cast<std::size_t>(g.w_out)] = feature;
    w_at[static_cast<std::size_t>(g.w_in)] = "f";
    k << "var sum = " << type << "(0);\n";
    for (std::size_t s = 0; s < g.space.size(); ++s) {
      const ConvAxis& a = g.space[s];
      const std::string tap = concat_text("t", s), place = concat_text("p", s), from = concat_text("s", s);
      k << InOrder("for (var ", tap, " = 0u; ", tap, " < ", k.size(Size(w.dim(conv_place(a.w)))), "; ", tap, "++) {\n",
                   "let ", place, " = i32(", at[static_cast<std::size_t>(a.y)], " * ", a.stride, "u + ", tap, " * ",
                   a.rhs_dilation, "u) - (", a.low, ");\nlet ", from, " = u32(", place, ") / ", a.lhs_dilation,
                   "u;\nif (", place, " >= 0 && ", from, " < ", k.size(Size(x.dim(conv_place(a.x)))));
      if (a.lhs_dilation > 1) k << concat_text(" && ", place, " % ", a.lhs_dilation, " == 0");
      k << ") {\n";
      x_at[static_cast<std::size_t>(a.x)] = from;
      w_at[static_cast<std::size_t>(a.w)] = tap;
    }
    k << InOrder("for (var f = 0u; f < ", k.size(depth), "; f++) {\nsum += ", type, "(", k.load(x, k.at(x, x_at)),
                 ") * ", type, "(", k.load(w, k.at(w, w_at)), ");\n}\n");
    for (std::size_t s = 0; s < g.space.size(); ++s) k << "}\n}\n";
    return std::vector<std::string>{"sum"};
  });
}

bool conv_reads_strided(const Graph&, NodeId, int) { return true; }

Dim conv_steps(const Graph& g, NodeId id, const Dialect&) {
  const Shape& w = in_shape(g, id, 1);
  const ConvGeometry geo = conv_geometry(g.node(id).op.as<ops::Conv>(), w.rank());
  Dim steps = w.dim(conv_place(geo.w_in));
  for (const ConvAxis& a : geo.space) steps = steps * w.dim(conv_place(a.w));
  return steps;
}

}  // namespace

std::span<const KernelEntry> conv_entries() {
  static constexpr KernelEntry kRows[] = {{.kind = OpKind::Conv,
                                           .kernel = "conv",
                                           .refuses = conv_refuses,
                                           .write = write_conv,
                                           .reads_strided = conv_reads_strided,
                                           .steps = conv_steps}};
  return kRows;
}

}  // namespace rlx::codegen
