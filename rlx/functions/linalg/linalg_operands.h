// Operands of the functions of linear algebra: dtypes, leading axes.
#pragma once

#include <limits>

#include "rlx/ir/graph.h"
#include "rlx/ir/math/matrices.h"

namespace rlx::linalg {

/// Integers and Bool as F32, other dtypes as they are: the ops judge them.
Expr as_inexact(Expr x);
/// Both in their common dtype, inexact.
void promote_operands(Expr& a, Expr& b, const char* what);
/// Leading axes of matrices a and b, broadcast to each other.
void broadcast_leading(Expr& a, Expr& b, const char* what);
void require_square(Expr a, const char* what);
void require_matrix(Expr a, const char* what);
/// The gap between 1 and the next number of the real dtype of `t`.
double epsilon_of(DType t);
/// A real constant of a real dtype, beside values of it.
[[noreturn]] void fail(ErrorCode code, std::string message, std::string hint = {});

}  // namespace rlx::linalg
