// What the rules of matrix factors share: checks of operands, and matrices as values of a graph. Matrices are the last
// two axes. Cotangents pair without conjugation (transforms/reverse.h); the formulas are written for pairings with it,
// so rules conjugate what comes in and what goes out.
#pragma once

#include <optional>

#include "rlx/ir/math/matrices.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::factors {

using namespace matrices;

// -- shape rules --

/// Error unless operand i, called `name`, is F32, F64, C64 or C128 and has two axes at least.
std::optional<Diagnostic> check_matrix(const InferContext& c, int i, const char* name);
/// The same, and that the last two extents are equal.
std::optional<Diagnostic> check_square(const InferContext& c, int i, const char* name);
/// The smaller of the last two extents; an error where symbols leave it open.
Result<Dim> least_extent(const InferContext& c, int i, const char* name);
/// x with the last two extents `rows` and `columns`, and with the last two replaced by one.
Shape with_matrix(const Shape& x, Dim rows, Dim columns);
Shape with_vector(const Shape& x, Dim extent, DType dtype);
/// Matrices in the leading axes of `x`.
double matrix_count(const Shape& x);
/// Operations per multiply and add: 2, and 8 of complex numbers.
double multiply_add(DType t);

// -- graph-building rules (rlx/ir/math/matrices.h) --

/// Columns of complex unit vectors are given up to a factor of modulus 1, and ours have their anchor real (linalg.h):
/// 1 where that is, of the real dtype.
Expr anchors(Expr v);
/// The rate phi [.., 1, K] at which tangents `dv` turn the anchors of v: v exp(-i phi) keeps them real.
Expr anchor_turn(Expr v, Expr dv);
/// x * i * real phi.
Expr times_i(Expr x, Expr phi);
/// The cotangent of dv, given the cotangent turned [.., 1, K] of the rates.
Expr anchor_turn_transposed(Expr v, Expr rates);

}  // namespace rlx::factors
