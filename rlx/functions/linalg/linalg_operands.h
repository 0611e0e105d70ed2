// Operands of the linear algebra functions: dtypes and leading axes.
#pragma once

#include <limits>

#include "rlx/ir/graph.h"
#include "rlx/ir/math/matrices.h"

namespace rlx::linalg {

/// x with integers and Bool cast to F32. The ops check other dtypes.
Expr as_inexact(Expr x);
/// Casts both operands to their common inexact dtype.
void promote_operands(Expr& a, Expr& b, const char* what);
/// Broadcasts the leading axes of matrices a and b to each other.
void broadcast_leading(Expr& a, Expr& b, const char* what);
void require_square(Expr a, const char* what);
void require_matrix(Expr a, const char* what);
/// The distance from 1 to the next larger number in the real dtype of `t`.
double epsilon_of(DType t);
/// Throws an error with this code.
[[noreturn]] void fail(ErrorCode code, std::string message, std::string hint = {});

}  // namespace rlx::linalg
