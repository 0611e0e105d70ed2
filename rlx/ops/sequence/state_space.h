// What SelectiveScan, Mamba2 and GatedDeltaNet share: checks of operands, steps in the dtype of the state.
#pragma once

#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/sequence.h"

namespace rlx {

/// Error unless the operand, where it is there, has those dims and the dtype of x or, with `or_state`, of the state.
std::optional<Diagnostic> check_scan_operand(const InferContext& c, std::string_view name, const Dims& dims,
                                             bool or_state);
/// The operand in the dtype of the state.
Expr scan_operand(const DecomposeContext& c, std::string_view name);
/// Where x is narrower than the state: the same op with every float in the state's dtype; false where it is not.
bool decompose_narrow_scan(DecomposeContext& c);
/// A time step: operand + bias, then softplus, in the dtype of the state.
Expr time_step(const DecomposeContext& c, std::string_view name, std::string_view bias, bool softplus, Dims bias_dims);
/// softplus of x in double.
inline double softplus_of(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
inline double silu_of(double x) { return x >= 0 ? x / (1 + std::exp(-x)) : x * std::exp(x) / (1 + std::exp(x)); }

/// How `steps` steps are cut into pieces: none where they are written out one by one.
struct Pieces {
  std::int64_t length = 1, count = 0, padding = 0;
};
std::optional<Pieces> pieces_of(const Dim& steps, std::int64_t chunk);
/// x [B, S, H, ..] -> [B H, pieces, length, ..], padded with zeros at the end of S.
Expr in_pieces(Graph& g, Expr x, const Pieces& p);
/// Bool [length, length]: true at j < i, with `diagonal` at j <= i.
Expr lower_mask(Graph& g, std::int64_t length, bool diagonal);
/// exp(sums_i - sums_j) [.., length, length] of sums [.., length], for j <= i; 0 elsewhere.
Expr decay_of(Graph& g, Expr sums, const Expr& mask);
/// The inverse of I + a, a [.., L, L] strictly lower, L a power of two: inverses of blocks of 2, 4, .. of the diagonal.
Expr inverse_of_unit_lower(Graph& g, Expr a);

}  // namespace rlx
