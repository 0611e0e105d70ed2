// Matrices as values of a graph, for rules and functions: triangles, diagonals, adjoints. A matrix is the last two
// axes.
#pragma once

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::matrices {

/// The conjugate of complex values; real ones unchanged.
Expr conj_of(Expr x);
Expr real_of(Expr x);
/// The imaginary part of complex values.
Expr imag_of(Expr x);
Expr complex_of(Expr re, Expr im);
/// The conjugate transpose.
Expr adjoint(Expr x);
/// `x` (real) as the dtype of `like`.
Expr as_dtype_of(Expr x, Expr like);
/// The row index (axis 0) or column index (axis 1) of each element, integers [M, N].
Expr places(Expr x, int axis, DType t);
/// Bool [M, N]: true on the diagonal; true below it, with or without the diagonal.
Expr on_diagonal(Expr x);
Expr below(Expr x, bool with_diagonal);
/// The lower triangle; 0 elsewhere.
Expr tril(Expr x, bool with_diagonal = true);
Expr triu(Expr x, bool with_diagonal = true);
/// tril with half of the diagonal: x = halved(x) + its adjoint for Hermitian x.
Expr halved_lower(Expr x);
/// halved(x) + its adjoint: the Hermitian matrix whose lower triangle x holds.
Expr hermitian_of_lower(Expr x);
/// The diagonal [.., K] of x [.., K, K], and a matrix with a given diagonal.
Expr diagonal(Expr x);
Expr diagonal_matrix(Expr v);
/// v [.., K] as [.., 1, K] and as [.., K, 1].
Expr as_row(Expr v);
Expr as_column(Expr v);
/// The first `count` rows or columns.
Expr first_rows(Expr x, Dim count);
Expr first_columns(Expr x, Dim count);

/// The rows of x [.., N, K] at the integers `rows` [.., N], separately for each matrix.
Expr take_rows(Expr x, Expr rows);
/// The triangular solve `op` of a and b.
Expr solve_triangular(Expr a, Expr b, ops::TriangularSolve op);
/// The identity with the extents and the dtype of x.
Expr identity_like(Expr x);

}  // namespace rlx::matrices
