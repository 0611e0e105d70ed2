// Shared rules of matrix factors: checks of operands, and matrices as values of a graph. A matrix is the last two axes.
// Cotangents pair without conjugation (transforms/reverse.h). The formulas assume pairings with conjugation, so rules
// conjugate their inputs and outputs.
#pragma once

#include <optional>

#include "rlx/ir/math/matrices.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::factors {

using namespace matrices;

// -- shape rules --

/// Error unless operand i, called `name`, is F32, F64, C64 or C128 and has at least two axes.
std::optional<Diagnostic> check_matrix(const InferContext& c, int i, const char* name);
/// The same, and an error unless the last two extents are equal.
std::optional<Diagnostic> check_square(const InferContext& c, int i, const char* name);
/// The smaller of the last two extents; an error when symbols leave it undetermined.
Result<Dim> least_extent(const InferContext& c, int i, const char* name);
/// x with the last two extents `rows` and `columns`, and x with the last two replaced by one.
Shape with_matrix(const Shape& x, Dim rows, Dim columns);
Shape with_vector(const Shape& x, Dim extent, DType dtype);
/// The number of matrices in the leading axes of `x`.
double matrix_count(const Shape& x);
/// Operations of a multiply-add: 2, or 8 for complex numbers.
double multiply_add(DType t);

// -- graph-building rules (rlx/ir/math/matrices.h) --

/// The mask of anchors, 1 at each anchor, in the real dtype. Columns of complex unit vectors are unique up to a factor
/// of modulus 1; ours have a real anchor (linalg.h).
Expr anchors(Expr v);
/// The phase rate phi [.., 1, K] of the anchors of v under the tangents `dv`: v exp(-i phi) keeps them real.
Expr anchor_rotation(Expr v, Expr dv);
/// x * i * real phi.
Expr times_i(Expr x, Expr phi);
/// The cotangent of dv from the cotangent [.., 1, K] of the rates.
Expr anchor_turn_transposed(Expr v, Expr rates);

}  // namespace rlx::factors
