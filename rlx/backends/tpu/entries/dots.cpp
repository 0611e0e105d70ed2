// Kernel entries of matmuls and convolutions.
#include <algorithm>
#include <utility>

#include "rlx/backends/tpu/entries.h"
#include "rlx/ir/math/conv_geometry.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::tpu {
namespace {

template <class Op>
Hlo dot(EmitContext& c, const Op& op, DType out) {
  Writer& w = c.w;
  const DotTypes t = dot_types(c.in_dtype(0), c.in_dtype(1), out);
  const Hlo lhs = cast(w, c.in(0), c.in_dtype(0), t.operands), rhs = cast(w, c.in(1), c.in_dtype(1), t.operands);
  return cast(w, dot_general(w, lhs, rhs, {op.lhs_contract, op.rhs_contract, op.lhs_batch, op.rhs_batch}, t.result),
              t.result, out);
}

void emit_dot(EmitContext& c) { c.set(dot(c, c.op<ops::DotGeneral>(), c.dtype())); }

void emit_fused_dot(EmitContext& c) {
  const auto& op = c.op<ops::FusedDot>();
  Hlos inputs{dot(c, op, op.out.value_or(c.in_dtype(0)))};
  inputs.insert(inputs.end(), c.inputs().begin() + 2, c.inputs().end());
  c.set(emit_body(c.w, *op.epilogue, inputs)[0]);
}
const char* refuses_fused_dot(const Graph& g, NodeId id) {
  return body_refuses(*g.node(id).op.as<ops::FusedDot>().epilogue);
}

// The role of each axis: "[b, f, 0, 1]". `names` are the names of the first two axes of the spec.
std::string conv_roles(const char* names, std::int64_t first, std::int64_t second, const ConvGeometry& g,
                       std::int64_t ConvAxis::*place) {
  std::vector<std::string> roles(g.space.size() + 2);
  roles[static_cast<std::size_t>(first)] = names[0];
  roles[static_cast<std::size_t>(second)] = names[1];
  for (std::size_t i = 0; i < g.space.size(); ++i) roles[static_cast<std::size_t>(g.space[i].*place)] = concat_text(i);
  std::string out = "[";
  for (std::size_t i = 0; i < roles.size(); ++i) out += (i == 0 ? "" : ", ") + roles[i];
  return out + "]";
}

void emit_conv(EmitContext& c) {
  Writer& w = c.w;
  const auto& op = c.op<ops::Conv>();
  const HloType result = c.type();
  const auto empty = [](const Hlo& x) { return std::find(x.dims.begin(), x.dims.end(), 0) != x.dims.end(); };
  if (empty(c.in(0)) || empty(c.in(1)) || std::find(result.dims.begin(), result.dims.end(), 0) != result.dims.end())
    return c.set(w.full(result.dtype, 0, result.dims));
  const DotTypes t = dot_types(c.in_dtype(0), c.in_dtype(1), c.dtype());
  Hlo x = cast(w, c.in(0), c.in_dtype(0), t.operands);
  const Hlo filters = cast(w, c.in(1), c.in_dtype(1), t.operands);
  ConvGeometry g = conv_geometry(op, static_cast<int>(x.dims.size()));
  // XLA's CPU treats negative paddings as zero, so the input is sliced before.
  if (std::any_of(g.space.begin(), g.space.end(), [](const ConvAxis& a) { return a.low < 0 || a.high < 0; })) {
    std::vector<std::int64_t> low(x.dims.size(), 0), high = low, interior = low;
    for (ConvAxis& a : g.space) {
      const auto axis = static_cast<std::size_t>(a.x);
      low[axis] = std::exchange(a.low, 0);
      high[axis] = std::exchange(a.high, 0);
      interior[axis] = std::exchange(a.lhs_dilation, 1) - 1;
    }
    x = w.pad(x, w.scalar(x.dtype, 0), low, high, interior);
  }
  std::vector<std::int64_t> strides, lhs_dilation, rhs_dilation;
  std::string padding;
  for (const ConvAxis& a : g.space) {
    strides.push_back(a.stride);
    lhs_dilation.push_back(a.lhs_dilation);
    rhs_dilation.push_back(a.rhs_dilation);
    padding += concat_text(padding.empty() ? "" : ", ", "[", a.low, ", ", a.high, "]");
  }
  const bool exact = t.operands == DType::F32 || t.operands == DType::F64 || is_complex(t.operands);
  const char* precision = exact ? "HIGHEST" : "DEFAULT";
  const Hlo y =
      w.op("convolution", {&x, &filters}, {t.result, result.dims},
           concat_text("batch_group_count = ", g.batch_groups, " : i64, dimension_numbers = #stablehlo.conv<",
                       conv_roles("bf", g.x_batch, g.x_feature, g, &ConvAxis::x), "x",
                       conv_roles("oi", g.w_out, g.w_in, g, &ConvAxis::w), "->",
                       conv_roles("bf", g.y_batch, g.y_feature, g, &ConvAxis::y), ">, feature_group_count = ", g.groups,
                       " : i64, lhs_dilation = ", i64_array(lhs_dilation), ", padding = dense<[", padding,
                       "]> : tensor<", g.space.size(), "x2xi64>, precision_config = [#stablehlo<precision ", precision,
                       ">, #stablehlo<precision ", precision, ">], rhs_dilation = ", i64_array(rhs_dilation),
                       ", window_strides = ", i64_array(strides)));
  c.set(cast(w, y, t.result, c.dtype()));
}

void emit_region(EmitContext& c) {
  const Hlos results = emit_body(c.w, *c.op<ops::ElementwiseRegion>().body, c.inputs());
  for (std::uint32_t r = 0; r < results.size(); ++r) c.set(r, results[r]);
}
const char* refuses_region(const Graph& g, NodeId id) {
  return body_refuses(*g.node(id).op.as<ops::ElementwiseRegion>().body);
}

}  // namespace

DotTypes dot_types(DType lhs, DType rhs, DType out) {
  const bool f8 = lhs == DType::F8E4M3 || lhs == DType::F8E5M2;
  if (out == DType::F64) return {DType::F64, DType::F64};
  if (f8) return {DType::BF16, DType::F32};  // exact for both F8 dtypes
  if (lhs == DType::BF16 || lhs == DType::F16) return {lhs, DType::F32};
  if (is_int(lhs) && lhs != out) return {lhs == DType::I8 && rhs == DType::I8 ? DType::I8 : out, out};
  return {out, out};
}

Hlo dot_general(Writer& w, const Hlo& lhs, const Hlo& rhs, const DotAxes& axes, DType result) {
  HloType type{result, {}};
  for (std::int64_t a : axes.lhs_batch) type.dims.push_back(lhs.extent(a));
  const auto add_free = [&](const Hlo& x, std::span<const std::int64_t> batch, std::span<const std::int64_t> contract) {
    const auto in = [](std::span<const std::int64_t> list, std::int64_t a) {
      return std::find(list.begin(), list.end(), a) != list.end();
    };
    for (std::int64_t a = 0; a < x.rank(); ++a)
      if (!in(batch, a) && !in(contract, a)) type.dims.push_back(x.extent(a));
  };
  add_free(lhs, axes.lhs_batch, axes.lhs_contract);
  add_free(rhs, axes.rhs_batch, axes.rhs_contract);
  // By default some devices compute F32 matmuls with the precision of BF16.
  const bool exact = lhs.dtype == DType::F32 || lhs.dtype == DType::F64 || is_complex(lhs.dtype);
  const char* precision = exact ? "HIGHEST" : "DEFAULT";
  return w.op("dot_general", {&lhs, &rhs}, std::move(type),
              concat_text("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = ", i64_list(axes.lhs_batch),
                          ", rhs_batching_dimensions = ", i64_list(axes.rhs_batch), ", lhs_contracting_dimensions = ",
                          i64_list(axes.lhs_contract), ", rhs_contracting_dimensions = ", i64_list(axes.rhs_contract),
                          ">, precision_config = [#stablehlo<precision ", precision, ">, #stablehlo<precision ",
                          precision, ">]"));
}

std::span<const KernelEntry> dot_entries() {
  static constexpr KernelEntry kRows[] = {
      {OpKind::DotGeneral, never_refuses, emit_dot},
      {OpKind::Conv, never_refuses, emit_conv},
      {OpKind::FusedDot, refuses_fused_dot, emit_fused_dot},
      {OpKind::ElementwiseRegion, refuses_region, emit_region},
  };
  return kRows;
}

}  // namespace rlx::tpu
