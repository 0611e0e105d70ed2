// Operands of the functions of linear algebra.
#include "rlx/functions/linalg/linalg_operands.h"

namespace rlx::linalg {

void fail(ErrorCode code, std::string message, std::string hint) {
  throw Error(Diagnostic{code, std::move(message), built_at({}), std::move(hint)});
}

Expr as_inexact(Expr x) { return is_int(x.dtype()) || x.dtype() == DType::Bool ? x.graph().cast(x, DType::F32) : x; }

void promote_operands(Expr& a, Expr& b, const char* what) {
  a = as_inexact(a), b = as_inexact(b);
  const auto t = promote(a.dtype(), b.dtype());
  if (!t)
    fail(ErrorCode::DTypeMismatch,
         concat_text(what, ": ", dtype_name(a.dtype()), " and ", dtype_name(b.dtype()), " have no common dtype"),
         "cast one of them first");
  a = a.graph().cast(a, *t), b = b.graph().cast(b, *t);
}

void broadcast_leading(Expr& a, Expr& b, const char* what) {
  const auto leading = [](const Expr& x) {
    const Dims dims = x.shape().dims();
    return Dims(dims.begin(), dims.end() - 2);
  };
  const Dims x = leading(a), y = leading(b);
  if (x == y) return;
  const auto joined = broadcast_dims(x, y);
  if (!joined)
    fail(ErrorCode::ShapeMismatch,
         concat_text(what, ": the leading axes of ", a.shape(), " and ", b.shape(), " do not broadcast"));
  const auto expanded = [&](Expr e) {
    Dims dims = *joined;
    dims.push_back(e.shape().dim(-2));
    dims.push_back(e.shape().dim(-1));
    return e.shape().dims() == dims ? e : e.graph().expand(e, dims);
  };
  a = expanded(a), b = expanded(b);
}

void require_matrix(Expr a, const char* what) {
  if (a.rank() < 2)
    fail(ErrorCode::ShapeMismatch,
         concat_text(what, ": ", a.shape(), " is not a matrix: it must have at least two axes"));
}

void require_square(Expr a, const char* what) {
  require_matrix(a, what);
  if (!(a.shape().dim(-1) == a.shape().dim(-2)))
    fail(ErrorCode::ShapeMismatch, concat_text(what, ": ", a.shape(), " is not square"));
}

double epsilon_of(DType t) { return real_dtype(t) == DType::F64 ? 0x1p-52 : 0x1p-23; }

}  // namespace rlx::linalg
