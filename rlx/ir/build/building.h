// What the files of builder functions share: operands as values of the graph, casts, errors at the user's line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rlx/ir/build/body_scope.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/tensor/visit.h"

namespace rlx::building {

// An error of a call at the user's line `loc`.
[[noreturn]] inline void fail(SourceLoc loc, ErrorCode code, std::string message, std::string hint = {}) {
  throw Error(Diagnostic{code, std::move(message), built_at(loc), std::move(hint)});
}

/// A value of the graph itself: its bytes are printed, hashed and folded here.
inline void require_on_host(SourceLoc loc, const std::string& what, const Tensor& value) {
  if (value.buffer())
    fail(loc, ErrorCode::InvalidArgument,
         concat_text(what, " was given a tensor ", value.shape(), " that lies on a device"),
         "bring it to the host: give it tensor.to_host()");
}

inline std::int64_t normalize_axis_at(SourceLoc loc, std::int64_t axis, int rank, const char* what) try {
  return normalize_axis(axis, rank, what);
} catch (const Error& e) {
  fail(loc, e.code(), e.diagnostic().message, e.diagnostic().hint);
}

inline constexpr std::string_view kCastWider = "cast the operand beside it to a wider dtype first";

// A scalar as a tensor of dtype t; an error naming both where t is an integer dtype without that value, built at `at`
// where the operand's own line is not the user's.
inline Tensor scalar_tensor(const Operand& x, DType t, std::string_view hint = kCastWider,
                            std::optional<SourceLoc> at = {}) {
  std::optional<Diagnostic> problem =
      x.is_float_scalar() ? detail::not_held(t, x.scalar()) : detail::not_held(t, x.integer_bits(), x.scalar() < 0);
  if (problem) {
    problem->where = built_at(at.value_or(x.loc()));
    problem->hint = hint;
    throw Error(*std::move(problem));
  }
  if (!is_int(t) || x.is_float_scalar()) return Tensor::scalar(t, x.scalar());
  Tensor out = Tensor::zeros(Shape({}, t));
  out.set_i64(0, static_cast<std::int64_t>(x.integer_bits()));
  return out;
}

// The operand as a value of the graph, built at `loc`. Of one that may be left out that is the line of the call, for
// std::optional makes the operand in a header of the standard library.
inline Expr own_at(Graph& g, const Operand& x, SourceLoc loc) {
  if (x.is_scalar())
    return g.constant(scalar_tensor(x, x.is_float_scalar() ? DType::F32 : DType::I32, kCastWider, loc), loc);
  return value_in(g, x.expr(), {}, loc);
}
inline Expr own(Graph& g, const Operand& x) { return own_at(g, x, x.loc()); }

// Operands of the calls that builder functions make of each other: at the line of the user's call, not at their own.
struct At {
  SourceLoc loc;
  Operand operator()(const Expr& e) const { return Operand(e, loc); }
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand operator()(T scalar) const {
    return Operand(scalar, loc);
  }
};

inline Expr cast_at(Graph& g, Expr x, DType to, SourceLoc loc) {
  return x.dtype() == to ? x : g.add(ops::Cast{to}, {x}, loc);
}

inline DType promoted(DType a, DType b, const char* what, SourceLoc loc) {
  auto t = promote(a, b);
  if (!t)
    fail(loc, ErrorCode::DTypeMismatch,
         concat_text(what, ": ", dtype_name(a), " and ", dtype_name(b), " have no common dtype"),
         "cast one of them first");
  return *t;
}

// What is written into a value of dtype t: cast to it, unless that would drop a fraction or an imaginary part.
inline Expr stored_as(Graph& g, const Operand& update, DType t) {
  const Expr e = own(g, update);
  const bool narrows = (is_complex(e.dtype()) && !is_complex(t)) || (is_inexact(e.dtype()) && !is_inexact(t));
  return narrows || is_storage_only(e.dtype()) || is_storage_only(t) ? e : cast_at(g, e, t, update.loc());
}

// The least and the largest value of a dimension; symbols that nobody declared have the bounds of SymbolInfo{}.
inline DimRange bounds_of(const Graph& g, const Dim& d) {
  SymbolRanges ranges = symbol_ranges(g);
  for (const std::string& name : d.symbols()) ranges.emplace(name, DimRange{SymbolInfo{}.min, SymbolInfo{}.max});
  return d.range(ranges);
}

}  // namespace rlx::building
