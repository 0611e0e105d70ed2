// Rows of matrix products.
#include <algorithm>

#include "rlx/backends/tpu/rows.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::tpu {
namespace {

template <class Op>
Hlo dot(RowContext& c, const Op& op, DType out) {
  Writer& w = c.w;
  const DotTypes t = dot_types(c.in_dtype(0), c.in_dtype(1), out);
  const Hlo lhs = cast(w, c.in(0), c.in_dtype(0), t.operands), rhs = cast(w, c.in(1), c.in_dtype(1), t.operands);
  return cast(w, dot_general(w, lhs, rhs, {op.lhs_contract, op.rhs_contract, op.lhs_batch, op.rhs_batch}, t.result),
              t.result, out);
}

void emit_dot(RowContext& c) { c.set(dot(c, c.op<ops::DotGeneral>(), c.dtype())); }

void emit_fused_dot(RowContext& c) {
  const auto& op = c.op<ops::FusedDot>();
  Hlos inputs{dot(c, op, op.out.value_or(c.in_dtype(0)))};
  inputs.insert(inputs.end(), c.inputs().begin() + 2, c.inputs().end());
  c.set(emit_body(c.w, *op.epilogue, inputs)[0]);
}
const char* refuses_fused_dot(const Graph& g, NodeId id) {
  return body_refuses(*g.node(id).op.as<ops::FusedDot>().epilogue);
}

void emit_region(RowContext& c) {
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
  if (f8) return {DType::BF16, DType::F32};  // which holds both F8 dtypes
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
  // What some devices make of products of F32 by default has the precision of BF16.
  const bool exact = lhs.dtype == DType::F32 || lhs.dtype == DType::F64 || is_complex(lhs.dtype);
  const char* precision = exact ? "HIGHEST" : "DEFAULT";
  return w.op("dot_general", {&lhs, &rhs}, std::move(type),
              concat_text("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = ", i64_list(axes.lhs_batch),
                          ", rhs_batching_dimensions = ", i64_list(axes.rhs_batch), ", lhs_contracting_dimensions = ",
                          i64_list(axes.lhs_contract), ", rhs_contracting_dimensions = ", i64_list(axes.rhs_contract),
                          ">, precision_config = [#stablehlo<precision ", precision, ">, #stablehlo<precision ",
                          precision, ">]"));
}

std::span<const Row> dot_rows() {
  static constexpr Row kRows[] = {
      {OpKind::DotGeneral, never_refuses, emit_dot},
      {OpKind::FusedDot, refuses_fused_dot, emit_fused_dot},
      {OpKind::ElementwiseRegion, refuses_region, emit_region},
  };
  return kRows;
}

}  // namespace rlx::tpu
