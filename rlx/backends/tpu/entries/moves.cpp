// Kernel entries of ops that move elements without computing.
#include <algorithm>

#include "rlx/backends/tpu/entries.h"
#include "rlx/ir/ops/shape.h"

namespace rlx::tpu {
namespace {

std::vector<std::int64_t> static_values(const Dims& dims) {
  std::vector<std::int64_t> out;
  for (const Dim& d : dims) out.push_back(d.value());
  return out;
}

void emit_reshape(EmitContext& c) { c.set(c.w.reshape(c.in(0), c.dims())); }
void emit_transpose(EmitContext& c) { c.set(c.w.transpose(c.in(0), c.op<ops::Transpose>().perm)); }
void emit_expand(EmitContext& c) { c.set(c.w.broadcast(c.in(0), c.dims())); }

void emit_slice(EmitContext& c) {
  const auto& op = c.op<ops::Slice>();
  const std::vector<std::int64_t> starts = static_values(op.starts), limits = static_values(op.limits);
  std::vector<std::int64_t> strides = op.strides;
  strides.resize(starts.size(), 1);
  c.set(c.w.slice(c.in(0), starts, limits, strides));
}

void emit_concat(EmitContext& c) { c.set(c.w.concat(c.inputs(), c.op<ops::Concat>().axis)); }

void emit_pad(EmitContext& c) {
  const auto& op = c.op<ops::Pad>();
  std::vector<std::int64_t> interior = op.interior;
  interior.resize(op.low.size(), 0);
  c.set(c.w.pad(c.in(0), c.in(1), op.low, op.high, interior));
}

void emit_reverse(EmitContext& c) {
  const auto& axes = c.op<ops::Reverse>().axes;
  if (axes.empty()) return c.set(c.in(0));
  c.set(c.w.op("reverse", {&c.in(0)}, c.type(), concat_text("dimensions = ", i64_array(axes))));
}

void emit_iota(EmitContext& c) {
  const auto& op = c.op<ops::Iota>();
  const bool whole = is_int(op.dtype);
  // For other dtypes each number is rounded separately.
  const Hlo numbers = c.w.iota(whole ? op.dtype : DType::I64, c.dims(), op.axis);
  c.set(whole ? numbers : cast(c.w, numbers, DType::I64, op.dtype));
}

void emit_dim_size(EmitContext& c) {
  c.set(c.w.scalar(DType::I64, static_cast<double>(c.in(0).extent(c.op<ops::DimSize>().axis))));
}

void emit_bitcast(EmitContext& c) {
  c.set(c.in_dtype(0) == c.dtype() ? c.in(0) : c.w.op("bitcast_convert", {&c.in(0)}, c.type()));
}
const char* refuses_bitcast(const Graph& g, NodeId id) {
  const DType from = g.shape(g.node(id).inputs[0]).dtype(), to = g.shape(id).dtype();
  const bool narrow = from != to && (dtype_bits(from) < 8 || dtype_bits(to) < 8);
  return narrow ? "values of 4 bits are bytes in StableHLO text" : nullptr;
}

void emit_same(EmitContext& c) { c.set(c.in(0)); }

}  // namespace

std::span<const KernelEntry> move_entries() {
  static constexpr KernelEntry kRows[] = {
      {OpKind::Reshape, never_refuses, emit_reshape},   {OpKind::Transpose, never_refuses, emit_transpose},
      {OpKind::Expand, never_refuses, emit_expand},     {OpKind::Slice, never_refuses, emit_slice},
      {OpKind::Concat, never_refuses, emit_concat},     {OpKind::Pad, never_refuses, emit_pad},
      {OpKind::Reverse, never_refuses, emit_reverse},   {OpKind::Iota, never_refuses, emit_iota},
      {OpKind::DimSize, never_refuses, emit_dim_size},  {OpKind::StopGradient, never_refuses, emit_same},
      {OpKind::Bitcast, refuses_bitcast, emit_bitcast},
  };
  return kRows;
}

}  // namespace rlx::tpu
