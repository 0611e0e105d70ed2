// Shared helpers of the builder functions: operands as values of the graph, casts, errors at the user's line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rlx/ir/build/body_scope.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/rewrite/symbol_order.h"
#include "rlx/tensor/visit.h"

namespace rlx::building {

// Throws the error of a call at the user's line `loc`.
[[noreturn]] inline void fail(SourceLoc loc, ErrorCode code, std::string message, std::string hint = {}) {
  throw Error(Diagnostic{code, std::move(message), built_at(loc), std::move(hint)});
}

/// Requires a value in host memory: the graph prints, hashes and folds its bytes.
inline void require_on_host(SourceLoc loc, const std::string& what, const Tensor& value) {
  if (value.buffer())
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, " got a tensor ", value.shape(), " that lies on a device"),
         "copy the tensor to the host: tensor.to_host()");
}

inline std::int64_t normalize_axis_at(SourceLoc loc, std::int64_t axis, int rank, const char* what) try {
  return normalize_axis(axis, rank, what);
} catch (const Error& e) {
  fail(loc, e.code(), e.diagnostic().message, e.diagnostic().hint);
}

inline constexpr std::string_view kCastWider = "cast the other operand to a wider dtype first";

// A scalar as a tensor of dtype t. When t is an integer dtype that cannot hold it, the error names both. `at` is the
// user's line when the operand does not have it.
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

// The operand as a value of the graph, built at `loc`. For an optional operand `loc` is the line of the call, since
// std::optional constructs the operand in a header of the standard library.
inline Expr own_at(Graph& g, const Operand& x, SourceLoc loc) {
  if (x.is_scalar())
    return g.constant(scalar_tensor(x, x.is_float_scalar() ? DType::F32 : DType::I32, kCastWider, loc), loc);
  return value_in(g, x.expr(), {}, loc);
}
inline Expr own(Graph& g, const Operand& x) { return own_at(g, x, x.loc()); }

// Operands for calls between builder functions. They get the line of the user's call.
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

// An update cast to dtype t of the value that it is written into. Dropping a fraction or an imaginary part is an error.
inline Expr stored_as(Graph& g, const Operand& update, DType t) {
  const Expr e = own(g, update);
  const bool narrows = (is_complex(e.dtype()) && !is_complex(t)) || (is_inexact(e.dtype()) && !is_inexact(t));
  return narrows || is_storage_only(e.dtype()) || is_storage_only(t) ? e : cast_at(g, e, t, update.loc());
}

using rlx::bounds_of;

}  // namespace rlx::building
