// Float convolutions: as implicit GEMM with packed filters, and depthwise.
#include "rlx/backends/cpu/conv/conv.h"

#include <algorithm>

#include "rlx/backends/cpu/conv/conv_kernels.h"
#include "rlx/backends/cpu/matmul/epilogue.h"
#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/ir/math/conv_geometry.h"

namespace rlx::cpu {
namespace {

std::optional<ConvType> conv_type(DType t) {
  if (t == DType::F32) return ConvType::F32;
  if (t == DType::BF16) return ConvType::BF16;
  if (t == DType::F16) return ConvType::F16;
  if (t == DType::F64) return ConvType::F64;
  return std::nullopt;
}

// -- epilogue of a FusedConv --

int features_axis(const Graph& g, NodeId id) {
  return static_cast<int>(conv_geometry(*conv_of(g.node(id).op), g.shape(id).rank()).y_feature);
}
const char* conv_epilogue_refuses(const Graph& g, NodeId id) {
  return refuse_unless(match_conv_epilogue(g, id, features_axis(g, id)).has_value(),
                       "the kernel does not support this epilogue");
}
void point_conv_epilogue(LowerContext& c, ConvEpilogue& e) {
  if (c.node().kind() != OpKind::FusedConv) return;
  check(c.out().dense(), "the result of a convolution with an epilogue is not row-major");
  const EpilogueMatch layout = *match_conv_epilogue(c.graph(), c.id(), features_axis(c.graph(), c.id()));
  e.used = true;
  e.alpha = layout.alpha;
  e.act = layout.act;
  e.residual_after_act = layout.residual_after_act;
  e.has_low = layout.low.has_value(), e.has_high = layout.high.has_value();
  e.low = layout.low.value_or(0), e.high = layout.high.value_or(0);
  point_epilogue_operand(c, e.bias, layout.bias);
  point_epilogue_operand(c, e.residual, layout.residual);
  point_epilogue_operand(c, e.mul, layout.mul);
}

const char* conv_refuses(const Graph& g, NodeId id) {
  if (const char* why = conv_epilogue_refuses(g, id)) return why;
  const DType x = in_dtype(g, id, 0), w = in_dtype(g, id, 1), y = g.shape(id).dtype();
  const bool floats = conv_type(x) && conv_type(w) && conv_type(y);
  const bool all_or_none = (x == DType::F64) == (y == DType::F64) && (w == DType::F64) == (y == DType::F64);
  if (const char* why =
          refuse_unless(floats && all_or_none, "its operands and result are not f32, bf16 or f16, nor all f64"))
    return why;
  return refuse_unless(g.shape(id).rank() - 2 <= kConvMaxAxes, "it has more axes than the kernel supports");
}

struct ConvRun {
  ConvGemm conv;
  ConvPlan plan;
  ConvGemm filters;  // read by pack_w; its panels are those of `conv`
  ConvPlan filters_plan;
  void* panels = nullptr;
  std::vector<float> zeros;
  const ConvKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;
};
void run_conv_pack(const ConvRun& r, std::int64_t chunk) {
  r.kernels->pack_w(r.filters, r.filters_plan, r.panels, chunk);
}
void run_conv(const ConvRun& r, std::int64_t chunk) { r.kernels->run(r.conv, r.plan, chunk, r.scratch->mine()); }

ConvRowAxis row_axis(const ConvAxis& a, const View& x, const View& w, const View& y) {
  const auto at = [](std::int64_t axis) { return static_cast<int>(axis); };
  return {y.dim(at(a.y)), x.dim(at(a.x)), w.dim(at(a.w)),    a.stride,          a.low,
          a.lhs_dilation, a.rhs_dilation, x.stride(at(a.x)), y.stride(at(a.y)), w.stride(at(a.w))};
}

bool folds(const ConvRowAxis& outer, const ConvRowAxis& inner) {
  const auto plain = [](const ConvRowAxis& a) {
    return a.taps == 1 && a.stride == 1 && a.low == 0 && a.lhs_dilation == 1 && a.places == a.extent;
  };
  return plain(outer) && plain(inner) && outer.x == inner.x * inner.extent && outer.y == inner.y * inner.places;
}

// The row axes: batch and space. Neighbouring axes that fold are merged.
void set_axes(ConvGemm& c, const ConvGeometry& g, const View& x, const View& w, const View& y) {
  const auto at = [](std::int64_t axis) { return static_cast<int>(axis); };
  std::vector<ConvRowAxis> axes;
  ConvRowAxis batch;
  batch.places = batch.extent = y.dim(at(g.y_batch));
  batch.x = x.stride(at(g.x_batch));
  batch.y = y.stride(at(g.y_batch));
  axes.push_back(batch);
  for (const ConvAxis& a : g.space) {
    const ConvRowAxis row = row_axis(a, x, w, y);
    if (folds(axes.back(), row)) {
      ConvRowAxis& one = axes.back();
      one.places *= row.places, one.extent *= row.extent;
      one.x = row.x, one.y = row.y;
    } else {
      axes.push_back(row);
    }
  }
  c.num_axes = static_cast<int>(axes.size());
  std::copy(axes.begin(), axes.end(), c.axes);
}

// When x is packed, lines run along the axis where x is contiguous; else along the innermost axis that is long enough.
int line_of(const ConvGemm& c) {
  constexpr std::int64_t kLong = 6;
  int best = c.num_axes - 1;
  if (c.x_feature != 1) {
    for (int a = c.num_axes; a-- > 0;)
      if (c.axes[a].x == 1 && c.axes[a].places >= 4) return a;
  }
  if (c.axes[best].places / c.axes[best].lhs_dilation >= kLong) return best;
  for (int a = c.num_axes; a-- > 0;)
    if (c.axes[a].places / c.axes[a].lhs_dilation > c.axes[best].places / c.axes[best].lhs_dilation) best = a;
  return best;
}

struct CopyRun {
  ConvCopy copy;
  const ConvKernels* kernels = nullptr;
};
void run_copy(const CopyRun& r, std::int64_t chunk) { r.kernels->copy_x(r.copy, chunk); }

// Makes `conv` read a copy of x with padding, channels last, where rows cannot be read in place but would be read
// often. Returns false where that does not pay.
bool copy_x(LowerContext& c, ConvGemm& conv, const View& x) {
  constexpr std::int64_t kFew = 16;
  const ConvRowAxis& last = conv.axes[conv.num_axes - 1];
  std::int64_t taps = 1;
  for (int a = 0; a < conv.num_axes; ++a) taps *= conv.axes[a].taps;
  const bool few = conv.depth < kFew && last.taps > 1 && last.rhs_dilation == 1;
  const bool scattered = conv.x_feature != 1 || conv.x_type != ConvType::F32;
  // The kernel merges taps along lines.
  if (few && !scattered && last.x == conv.depth && last.lhs_dilation == 1 && line_of(conv) == conv.num_axes - 1)
    return false;
  if (conv.x_type == ConvType::F64 || conv.groups != 1 || conv.depth < 1 || taps == 1 || taps > 512 ||
      !(few || (scattered && conv.depth >= kFew)))
    return false;
  auto& r = c.keep<CopyRun>();
  ConvCopy& p = r.copy;
  r.kernels = &conv_kernels(c.kernels().isa);
  p.num_axes = conv.num_axes;
  std::int64_t elements = conv.depth;
  for (int a = 0; a < conv.num_axes; ++a) {
    const ConvRowAxis& axis = conv.axes[a];
    if (axis.lhs_dilation != 1) return false;
    p.axes[a] = axis;
    p.padded[a] = (axis.places - 1) * axis.stride + (axis.taps - 1) * axis.rhs_dilation + 1;  // everything that is read
    elements *= p.padded[a];
    if (elements > 4 * x.elements() + 65536) return false;
  }
  p.depth = conv.depth;
  p.x_feature = conv.x_feature;
  p.x_type = conv.x_type;
  p.lines = elements / (p.padded[conv.num_axes - 1] * p.depth);
  p.lines_per_chunk = c.grain(std::max<std::int64_t>(1, 16384 * p.lines / elements));
  c.point(p.x, x);
  p.to = reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(elements) * sizeof(float)));
  c.step<run_copy>(r, (p.lines + p.lines_per_chunk - 1) / p.lines_per_chunk, 0.4 * static_cast<double>(elements));
  std::int64_t stride = p.depth;
  for (int a = conv.num_axes; a-- > 0; stride *= p.padded[a]) {
    conv.axes[a].x = stride;
    conv.axes[a].extent = p.padded[a];
    conv.axes[a].low = 0;
  }
  conv.x = p.to;
  conv.x_feature = 1;
  conv.x_type = ConvType::F32;
  return true;
}

void lower_conv(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0 || lower_conv_bf16(c)) return;
  const ConvGeometry g = conv_geometry(*conv_of(c.node().op), x.rank());
  const auto at = [](std::int64_t axis) { return static_cast<int>(axis); };
  auto& r = c.keep<ConvRun>();
  ConvGemm& conv = r.conv;
  set_axes(conv, g, x, w, y);
  conv.groups = g.groups * g.batch_groups;
  conv.depth = w.dim(at(g.w_in));
  conv.features = y.dim(at(g.y_feature)) / conv.groups;
  conv.x_feature = x.stride(at(g.x_feature));
  conv.x_group = g.batch_groups > 1 ? y.dim(at(g.y_batch)) * x.stride(at(g.x_batch)) : conv.depth * conv.x_feature;
  conv.w_out = w.stride(at(g.w_out)), conv.w_in = w.stride(at(g.w_in));
  conv.y_feature = y.stride(at(g.y_feature));
  conv.x_type = *conv_type(x.dtype), conv.w_type = *conv_type(w.dtype), conv.y_type = *conv_type(y.dtype);
  r.kernels = &conv_kernels(c.kernels().isa);
  r.filters = conv;
  r.filters_plan = r.kernels->plan(conv, c.threads());
  c.point(conv.y, y);
  point_conv_epilogue(c, conv.epilogue);
  if (!copy_x(c, conv, x)) c.point(conv.x, x);
  conv.line = line_of(conv);
  r.plan = r.kernels->plan(conv, c.threads());
  std::int64_t most_taps = 1;  // the most taps that the kernel may merge
  for (int a = 0; a < conv.num_axes; ++a) most_taps = std::max(most_taps, conv.axes[a].taps);
  r.zeros.resize(static_cast<std::size_t>(conv.depth * most_taps));
  conv.zeros = r.zeros.data();
  r.scratch = c.scratch(r.plan.scratch_bytes);
  if (const PackedLayout& layout = packed_layout_of(c.graph(), c.node().inputs[1]); !layout.empty()) {
    check(reads_packed_b(c.kernels(), layout, r.plan.k, conv.features),
          "the filters are packed for another instruction set");
    c.point(conv.panels, w);
  } else {
    c.point(r.filters.w, w);
    const std::size_t element = conv.x_type == ConvType::F64 ? sizeof(double) : sizeof(float);
    r.panels = c.workspace(static_cast<std::size_t>(r.plan.panel_elements) * element);
    conv.panels = r.panels;
    c.step<run_conv_pack>(r, r.filters_plan.pack_chunks, 0.3 * static_cast<double>(r.plan.panel_elements));
  }
  const double flops = 2 * static_cast<double>(y.elements()) * static_cast<double>(r.plan.k);
  c.step<run_conv>(r, r.plan.chunks, 1.2 * flops / gemm_flops_per_ns(c.kernels().isa));
}

// -- depthwise --

const char* depthwise_refuses(const Graph& g, NodeId id) {
  if (!packed_layout_of(g, g.node(id).inputs[1]).empty()) return "its filters are prepacked";
  if (const char* why = refuse_unless_f32(g, id)) return why;
  if (const char* why = conv_epilogue_refuses(g, id)) return why;
  const Shape &x = in_shape(g, id, 0), &w = in_shape(g, id, 1);
  const ConvGeometry geo = conv_geometry(*conv_of(g.node(id).op), x.rank());
  const Dim &depth = w.dim(static_cast<int>(geo.w_in)), &features = w.dim(static_cast<int>(geo.w_out));
  if (geo.groups == 1 || geo.space.size() > 2 || !depth.is_static() || !features.is_static() ||
      !takes_few(depth.value(), features.value() / geo.groups, geo.x_feature + 1 == x.rank()))
    return "it is not a depthwise convolution along one or two axes with few features per group";
  for (const ConvAxis& a : geo.space) {
    const Dim& window = w.dim(static_cast<int>(a.w));
    if (a.lhs_dilation != 1 || !window.is_static() || window.value() > 64)
      return "its window is longer than 64 elements, or x is dilated";
  }
  return nullptr;
}

struct DepthwiseRun {
  DepthwiseF32 conv;
  DepthwisePlan plan;
  float* packed = nullptr;
  const ConvKernels* kernels = nullptr;
};
void run_depthwise_pack(const DepthwiseRun& r, std::int64_t) { r.kernels->depthwise_pack(r.conv, r.packed); }
void run_depthwise(const DepthwiseRun& r, std::int64_t chunk) { r.kernels->depthwise(r.conv, r.plan, chunk); }

void lower_depthwise(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  const ConvGeometry g = conv_geometry(*conv_of(c.node().op), x.rank());
  const auto at = [](std::int64_t axis) { return static_cast<int>(axis); };
  auto& r = c.keep<DepthwiseRun>();
  DepthwiseF32& conv = r.conv;
  conv.batch = y.dim(at(g.y_batch));
  conv.features = y.dim(at(g.y_feature));
  conv.x_batch = x.stride(at(g.x_batch)), conv.x_feature = x.stride(at(g.x_feature));
  conv.y_batch = y.stride(at(g.y_batch)), conv.y_feature = y.stride(at(g.y_feature));
  conv.depth = w.dim(at(g.w_in));
  conv.multiple = conv.features / g.groups;
  conv.w_feature = w.stride(at(g.w_out)), conv.w_in = w.stride(at(g.w_in));
  ConvRowAxis* const axes[] = {&conv.rows, &conv.cols};
  for (std::size_t i = 0; i < g.space.size(); ++i) *axes[2 - g.space.size() + i] = row_axis(g.space[i], x, w, y);
  c.point(conv.x, x);
  c.point(conv.w, w);
  c.point(conv.y, y);
  point_conv_epilogue(c, conv.epilogue);
  r.kernels = &conv_kernels(c.kernels().isa);
  r.plan = r.kernels->depthwise_plan(conv, c.threads());
  if (r.plan.lane_bytes > 0) {
    std::byte* const lanes = c.workspace(r.plan.lane_bytes);
    r.kernels->depthwise_lanes(conv, lanes);
    conv.lanes = lanes;
  }
  const std::int64_t taps = conv.rows.taps * conv.cols.taps * conv.depth;
  if (r.plan.features_last) {
    const bool as_they_lie = conv.w_feature == 1 && (conv.depth == 1 || conv.w_in == conv.features) &&
                             (conv.cols.taps == 1 || conv.cols.w == conv.features * conv.depth) &&
                             (conv.rows.taps == 1 || conv.rows.w == conv.features * conv.depth * conv.cols.taps);
    if (as_they_lie) {
      c.point(conv.taps, w);
    } else {
      r.packed = reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(taps * conv.features) * sizeof(float)));
      conv.taps = r.packed;
      c.step<run_depthwise_pack>(r, 1, 1.0 * static_cast<double>(taps * conv.features));
    }
  }
  c.step<run_depthwise>(r, r.plan.chunks, 0.1 * static_cast<double>(y.elements()) * static_cast<double>(taps + 4));
}

// Epilogue operands must be row-major.
bool conv_reads_strided(const Graph&, NodeId, int operand) { return operand < 2; }

// Constant filters are packed B of a matrix [taps * features of x, features of the result].
std::optional<PackedLayout> conv_packed_layout(const KernelTable& kernels, const Graph&, NodeId, int operand,
                                               const ConstantMatrix& m) {
  if (operand != 1 || m.dtype != DType::F32 || m.k < 1 || m.n < 1) return std::nullopt;
  return packed_b_layout(kernels, {m.k, m.n, DType::F32, DType::F32, MatmulPrecision::Exact});
}
bool conv_reads_packed(const Graph&, NodeId, int operand, const PackedLayout& layout) {
  const std::optional<Panels> panels = panels_of(layout);
  return operand == 1 && panels && panels->type == PackedBType::F32;
}

constexpr KernelEntry kConvEntries[] = {
    {OpKind::Conv, "depthwise_f32", depthwise_refuses, lower_depthwise, conv_reads_strided},
    {OpKind::FusedConv, "depthwise_f32", depthwise_refuses, lower_depthwise, conv_reads_strided},
    {OpKind::FusedConv, "conv_product", conv_refuses, lower_conv, conv_reads_strided, nullptr, false,
     conv_packed_layout, conv_reads_packed},
    {OpKind::Conv, "conv_product", conv_refuses, lower_conv, conv_reads_strided, nullptr, false, conv_packed_layout,
     conv_reads_packed},
};

}  // namespace

std::span<const KernelEntry> conv_entries() { return kConvEntries; }

}  // namespace rlx::cpu
